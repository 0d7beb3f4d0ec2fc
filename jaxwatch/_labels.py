"""Label values within their bounds: what was given one keeps it, what comes too late is ``other``."""

import os
from collections.abc import Hashable, Mapping

from jaxwatch import _limits
from jaxwatch._metrics import OTHER
from jaxwatch._places import program_folder
from jaxwatch._stats import FunctionStats

# What the registry folds definitions beyond ``_limits.DEFINITIONS`` into.
_FOLDED_DEFINITION = "<other>"


def clean(value: str) -> str:
    """Return ``value`` fit for an exposition: a lone surrogate has no UTF-8, and NUL ends a text for some readers.

    All else the exposition formats can escape: quotes, backslashes, newlines.
    """
    return value.encode("utf-8", "replace").decode().replace("\0", "?")


def shortened(value: str, characters: int) -> str:
    """Return ``value`` cleaned and cut to so many characters, with a sign where something was cut off."""
    value = clean(value)
    return value if len(value) <= characters else value[: characters - 1] + "…"


class Labels:
    """The label values that one collector has given out.

    A value stays with what it was given to as long as this object lives, and what was folded into "other" stays there:
    else a counter would go down, or jump from one name to another. Not locked: its collector is.

    Args:
        folder: Sites below it are told relative to it; None for that of the program which runs when the first is told.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._functions: dict[tuple[str, str], str] = {}
        self._taken = {OTHER}
        self._of_libraries = 0
        self._signatures: dict[str, set[str]] = {}
        self._signature_count = 0
        self._of_other = 0  # signatures of functions that are "other"
        self._sites: set[str] = set()
        self._folded: dict[str, set[Hashable]] = {"function": set(), "signature": set(), "site": set()}

    def function(self, stats: FunctionStats) -> str:
        """Return the ``function`` label: the name, ``name@file:line`` where that is another's, or "other"."""
        key = stats.function, stats.definition
        if (kept := self._functions.get(key)) is not None:
            return kept
        if key == (OTHER, _FOLDED_DEFINITION):  # folded, and counted, by the registry
            return OTHER
        full = len(self._functions) >= _limits.LABEL_FUNCTIONS
        if stats.in_library:
            full |= self._of_libraries >= _limits.LABEL_FUNCTIONS - _limits.LABEL_FUNCTIONS_OF_USER
        if full or key in self._folded["function"]:
            self._folded["function"].add(key)
            return OTHER
        self._of_libraries += bool(stats.in_library)
        self._functions[key] = label = self._free_name(stats)
        self._taken.add(label)
        return label

    def _free_name(self, stats: FunctionStats) -> str:
        name = shortened(stats.function, _limits.NAME_CHARACTERS)
        if name not in self._taken:
            return name
        name = full = f"{name}@{clean(stats.definition)}"
        number = 1
        while name in self._taken:  # Watch(name=…) may spell another's label
            number += 1
            name = f"{full}#{number}"
        return name

    def signature(self, function: str, signature: str) -> str:
        """Return the ``signature`` label for a signature of the function with that label."""
        signature = clean(signature)
        if signature == OTHER:  # folded, and counted, by the registry
            return OTHER
        kept = self._signatures.setdefault(function, set())
        if signature in kept:
            return signature
        full = len(kept) >= _limits.LABEL_SIGNATURES_PER_FUNCTION or self._signature_count >= _limits.LABEL_SIGNATURES
        if full:
            self._folded["signature"].add((function, signature))
            return OTHER
        kept.add(signature)
        self._signature_count += 1
        return signature

    def fold_signatures(self, number: int) -> None:
        """Count the signatures of all functions that are "other": so many by now."""
        self._of_other = max(self._of_other, number)

    def site(self, site: str) -> str:
        """Return the ``site`` label for a place in the user's code, its file relative to the program's folder."""
        if self._folder is None:  # not before: ``jaxwatch run`` may not have started the program
            self._folder = program_folder()
        site = clean(site.removeprefix(self._folder + os.sep) if self._folder else site)
        if site == OTHER or site in self._sites:
            return site
        if len(self._sites) >= _limits.LABEL_SITES:
            self._folded["site"].add(site)
            return OTHER
        self._sites.add(site)
        return site

    def folded(self) -> Mapping[str, int]:
        """Return label → how many distinct values went into "other"."""
        found = {label: len(values) for label, values in self._folded.items()}
        return {**found, "signature": found["signature"] + self._of_other}
