"""Whose suites are run, what they need, and what is left out by default, with the reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Package:
    """A package whose tests are run.

    Attributes:
        name: As its index knows it.
        tests: The folder of its tests within its sources.
        requires: What its tests import beyond its own dependencies.
        in_sdist: Whether its sdist holds them; if not, it is run where a checkout is given.
        options: Given to pytest, plainly and watched.
        left_out: File → why it is not run by default; ``--whole`` runs it.
        never: File → why it cannot be run.
    """

    name: str
    tests: str
    requires: tuple[str, ...] = ()
    in_sdist: bool = True
    options: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    never: Mapping[str, str] = field(default_factory=dict)

    def files(self, tree: Path, *, whole: bool = False) -> list[str]:
        """Return the files of tests to be run, relative to ``tree``, in the order of their names."""
        found = {
            str(path.relative_to(tree))
            for pattern in ("*_test.py", "test_*.py")
            for path in (tree / self.tests).rglob(pattern)
        }
        return sorted(found - self.never.keys() - (frozenset() if whole else self.left_out.keys()))


PACKAGES: Mapping[str, Package] = {
    package.name: package
    for package in (
        Package("chex", "chex", ("cloudpickle", "dm-tree")),
        Package(
            "optax",
            "optax",
            ("flax", "scipy", "scikit-learn"),
            never={"optax/_src/test_utils.py": "named as one, but holds no tests"},
            left_out={
                "optax/_src/alias_test.py": "takes as long as all others: 623 runs of optimisers",
                "optax/contrib/_common_test.py": "as above, 545 runs",
                "optax/_src/linesearch_test.py": "takes minutes: 240 line searches",
            },
        ),
        Package(
            "rlax",
            "rlax",
            ("dm-haiku", "flax", "optax"),
            left_out={"rlax/_src/mpo_ops_test.py": "takes minutes"},
        ),
        Package("equinox", "tests", ("beartype", "optax"), in_sdist=False),
    )
}
