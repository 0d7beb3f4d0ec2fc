"""The random program of ``python -m benchmarks soak``: run twice side by side, with jaxwatch and with ``JAXWATCH=0``.

counts.py       what the program itself counts: its calls, bodies that ran, jax.monitoring's events
functions.py    the functions that it jits
calls.py        what any of its threads does: calls that hit, miss and fail in all ways
serial.py       what the main thread does between: guards, limits, attach, install, fork, deleted arrays
outlets.py      what is read and disturbed meanwhile: scrapes, the live page, subscriptions, the log's files
logs.py         the log's lines, counted file by file
equalities.py   which counts must be equal, and whether they are
__main__.py     one process: a round for each line on stdin, figures to stdout
"""
