"""A static look at jitted functions: what freezes or fails while they are traced. Imports neither jax nor the code.

In the order of a run: ``run`` (files → findings), ``files``, ``notebooks``, ``check`` (one source), ``scopes`` and
``names`` (what a name stands for), ``jits`` (which functions are traced, and with what), ``evidence`` and ``classes``
(what a parameter is); ``engine``, which runs a function on ``values`` in ``frames``: ``statements``, ``truths``,
``stores``, ``expressions``, ``attributes``, ``subscripts``, and ``calls`` of the module's functions (``invocations``),
of jax's (``transforms``, ``control``), of others (``libraries``, ``numpy_calls``, ``builtin_calls``), of ``methods``;
``jit_options``, ``jit_places``; ``ignores``, ``output``, ``sarif``. All codes and messages stand in ``rules``.
"""
