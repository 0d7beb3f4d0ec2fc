"""``python -m jaxwatch``: the command."""

import sys

if __name__ == "__main__":
    # Python put the current folder first, and the program's click.py or inspect.py may lie there.
    folder = [] if sys.flags.safe_path else [sys.path.pop(0)]
    from jaxwatch._cli import main

    sys.path[:0] = folder
    sys.exit(main())
