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
        options: Given to pytest, plainly and watched.
        left_out: File → why it is not run by default; ``--whole`` runs it.
        never: File → why it cannot be run.
    """

    name: str
    tests: str
    requires: tuple[str, ...] = ()
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
            left_out={
                "optax/_src/alias_test.py": "takes as long as all others: each optimiser with each of some options",
                "optax/contrib/_common_test.py": "as above, of the contributed optimisers",
                "optax/_src/linesearch_test.py": "takes minutes: each line search on each of some problems",
            },
        ),
        Package("rlax", "rlax", ("dm-haiku", "flax", "optax")),
        Package("dm-haiku", "haiku", ("chex", "optax", "cloudpickle", "dill", "mock", "dm-tree")),
        Package("flax", "tests", ("cloudpickle", "optax")),
        Package("equinox", "tests", ("beartype", "optax")),
    )
}
