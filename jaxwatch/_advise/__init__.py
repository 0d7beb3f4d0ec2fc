"""``jaxwatch advise``: a workload run under several scopes of jit, each in processes of its own, and compared.

``search.py`` is the procedure on one page; ``spawn.py`` starts a run, ``child.py`` is the run; ``plan.py``,
``judge.py`` and ``curves.py`` are pure; ``table.py``, ``plot.py`` and ``files.py`` tell.
"""
