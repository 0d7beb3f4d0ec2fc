"""Do the test suites of other people's packages come out the same under jaxwatch? ``python -m benchmarks.suites``.

``packages`` says which suites; ``environment`` makes for each a virtual environment with this checkout's jaxwatch;
``running`` runs a file of tests plainly and watched; ``outcomes`` reads and compares what came of each test;
``seen`` reads what jaxwatch saw; ``tables`` prints.
"""
