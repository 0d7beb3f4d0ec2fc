"""A static look at jitted functions: what freezes or fails while they are traced. Imports neither jax nor the code.

In the order of a run: ``run`` (files → findings → text), ``files``, ``notebooks``, ``check`` (one source), ``scopes``
and ``names`` (what a name stands for), ``jits`` (which functions are traced, and how), ``engine`` with ``statements``,
``expressions``, ``truths``, ``calls``, ``libraries``, ``transforms``, ``stores`` (runs a function on ``values``, which
say what is traced), ``evidence`` and ``classes`` (what a parameter is), ``jit_rules``, ``ignores``, ``output``,
``sarif``. All codes and messages stand in ``rules``.
"""
