"""What jaxwatch costs, measured. ``python -m benchmarks`` writes a table, ``--json FILE`` the figures behind it.

Every figure is a ratio: of runs that were interleaved in one process, in random order in each round, and compared
within the round; or of processes started in pairs. The machine's own noise is a column: jax.jit against itself.

    _paired.py      rounds, ratios, quartiles
    variants.py     the columns: jax.jit, jaxwatch's two cores, what people write by hand, what else there is
    cases.py        the rows: one kind of call each
    hot_path.py     a call that runs from the cache
    breakdown.py    where each nanosecond of it goes: the core built without this and that
    miss_path.py    a call that compiles
    imports.py      import time
    memory.py       bytes per function and per signature; 1e6 keys on one function
    scrape.py       a scrape of 1,000 watched functions
    threads.py      throughput of 1 to 8 threads
    soak.py         a random program for an hour, with and without, side by side (soaked/: the program)
    bounds.py       what --check holds the figures to
"""
