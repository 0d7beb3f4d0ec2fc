"""Two runs held against each other: ``jaxwatch diff``. Plain data in, plain data out.

``side`` gathers the records of one side, ``pairing`` finds what is the same function on both, ``comparison`` what
differs (``data``), and ``limits`` says whether it is within what is allowed.
"""
