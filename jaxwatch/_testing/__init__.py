"""What the pytest plugin does beyond its hooks' names: who compiled what, limits, the baseline, and the summary.

``ledger`` counts by test and fixture. ``recording`` and ``reporting`` are the hooks: of each process that runs tests,
and of the one that sums up. ``calls`` and ``limits`` hold a test's call to what its markers say. The rest is pure but
for the file of ``baseline``: ``judge`` says what is new, ``sums``, ``runs`` and ``update`` bring a baseline up to date,
``summary`` and ``texts`` say it.
"""
