"""Which scopes are worth a run: found from what is called within what, never all combinations. Pure."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from jaxwatch._advise.outcome import Function
from jaxwatch.errors import BadOptionError

Place = tuple[str, str]
Jitted = frozenset[Place]

_SMALL_SHARE = 0.01  # of all time in calls and compiling: what takes less is left as it is
_ALL_SUBSETS = 3  # functions that hang together, up to which all that differ in effect are tried
_MOST_SCOPES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be compared.

    Attributes:
        functions: The functions that are jitted or bypassed, dearest first.
        groups: Those of them that hang together: one is called within another one.
        scopes: Sets of functions that are jitted; the first one is that of the program as it is written.
        kept: Functions that stay jitted in all of them: of installed packages, or too cheap to matter.
        left_out: Scopes beyond the bound.
    """

    functions: tuple[Place, ...]
    groups: tuple[frozenset[Place], ...]
    scopes: tuple[Jitted, ...]
    kept: tuple[Place, ...]
    left_out: int

    def variables(self, jitted: Collection[Place]) -> list[str]:
        """Return what ``JAXWATCH_JIT_SCOPE`` is to name for a scope."""
        labels = self.labels()
        return [labels[place] for place in (*self.functions, *self.kept) if place in jitted or place in self.kept]

    def labels(self) -> dict[Place, str]:
        """Return what each function is called: by its name, where no other one has it."""
        every = (*self.functions, *self.kept)
        return {place: label(place, every) for place in every}


def label(place: Place, every: Iterable[Place]) -> str:
    """Return a name that tells the function from the others: ``step``, or ``step@train.py:12``."""
    name, definition = place
    others = [other for other in every if other[0] == name and other != place]
    if not others:
        return name.replace(",", ";")
    short = os.path.basename(definition)
    alike = any(os.path.basename(other) == short for _, other in others)
    return f"{name}@{definition if alike else short}".replace(",", ";")


def plan(functions: Sequence[Function], chosen: Collection[str] | None = None) -> Plan:
    """Return the scopes to compare.

    Args:
        functions: What a run of the program as it is written saw.
        chosen: Names of the functions that may be bypassed; None: all but those of installed packages that are called
            within others alone.

    Raises:
        BadOptionError: No function has a name that was chosen.
    """
    called = {(each.name, each.definition): each for each in functions if each.calls}
    wanted = _wanted(called, chosen)
    nested = {place: _within(place, called, wanted) for place in wanted}
    groups = _groups(wanted, nested)
    weights = {group: sum(called[p].compile_seconds + called[p].seconds for p in group) for group in groups}
    whole = sum(weights.values())
    large = [group for group in groups if chosen is not None or weights[group] >= _SMALL_SHARE * whole]
    large.sort(key=lambda group: (-weights[group], sorted(group)))
    every = frozenset(place for group in large for place in group)
    order = sorted(every, key=lambda p: (-called[p].seconds - called[p].compile_seconds, p))
    scopes: dict[Jitted, None] = {every: None}
    for group in large:
        entries = [place for place in group if called[place].outermost]
        for jitted in _of_group(group, entries, nested):
            scopes.setdefault((every - group) | jitted)
    if large:
        scopes.setdefault(frozenset())
    return Plan(
        functions=tuple(order),
        groups=tuple(large),
        scopes=tuple(scopes)[:_MOST_SCOPES],
        kept=tuple(place for place in called if place not in every),
        left_out=max(0, len(scopes) - _MOST_SCOPES),
    )


def _wanted(called: Mapping[Place, Function], chosen: Collection[str] | None) -> list[Place]:
    if chosen is None:
        # what a wrapper of a library makes of a function has its code in the library: equinox.filter_jit, say
        return [place for place, function in called.items() if not function.in_library or function.outermost]
    labels = {label(place, called): place for place in called}
    names = {name for name, _ in called}
    for name in chosen:
        if name not in labels and name not in names:
            problem = f"functions={sorted(chosen)!r} names {name!r}, which is no watched function that was called."
            raise BadOptionError(problem, f"Give some of: {', '.join(sorted(labels)) or 'none were called'}.")
    return [place for text, place in labels.items() if text in chosen or place[0] in chosen]


def _within(place: Place, called: Mapping[Place, Function], wanted: Collection[Place]) -> frozenset[Place]:
    """Return the wanted functions that are called within a function, with none of them in between."""
    found: set[Place] = set()
    seen, todo = {place}, list(called[place].nested)
    while todo:
        inner = todo.pop()
        if inner in seen or inner not in called:
            continue
        seen.add(inner)
        if inner in wanted:
            found.add(inner)
        else:
            todo += called[inner].nested
    return frozenset(found)


def _groups(wanted: Sequence[Place], nested: Mapping[Place, frozenset[Place]]) -> list[frozenset[Place]]:
    groups: list[set[Place]] = []
    for place in wanted:
        joined = {place, *nested[place]}
        for group in [group for group in groups if group & joined]:
            groups.remove(group)
            joined |= group
        groups.append(joined)
    return [frozenset(group) for group in groups]


def _of_group(
    group: Collection[Place], entries: Sequence[Place], nested: Mapping[Place, frozenset[Place]]
) -> Iterator[Jitted]:
    """Yield the sets of functions of one group that are worth a run, as they come out: see ``effective``."""
    if len(group) <= _ALL_SUBSETS:
        ordered = sorted(group)
        subsets: Iterable[frozenset[Place]] = (
            frozenset(some) for number in range(len(ordered) + 1) for some in combinations(ordered, number)
        )
    else:
        levels = _levels(entries, nested)
        alone = frozenset(entries)
        subsets = [frozenset(), *levels, *(level | alone for level in levels)]
    yield from dict.fromkeys(effective(subset, entries, nested) for subset in subsets)


def effective(jitted: Collection[Place], entries: Iterable[Place], nested: Mapping[Place, frozenset[Place]]) -> Jitted:
    """Return those of the jitted functions whose jit is not seen through: no jitted one is around all of their calls.

    Args:
        jitted: Functions.
        entries: Those that are called on their own.
        nested: Function → those that are called within it.
    """
    found: set[Place] = set()
    seen: set[Place] = set()
    todo = list(entries)
    while todo:
        place = todo.pop()
        if place in seen:
            continue
        seen.add(place)
        if place in jitted:
            found.add(place)
        else:
            todo += nested[place]
    return frozenset(found)


def _levels(entries: Iterable[Place], nested: Mapping[Place, frozenset[Place]]) -> list[frozenset[Place]]:
    """Return the functions by how deep below those that nothing is around they are first met."""
    inner = frozenset(place for found in nested.values() for place in found)
    level = frozenset(place for place in entries if place not in inner) or frozenset(entries)
    levels, seen = [], set(level)
    while level:
        levels.append(level)
        level = frozenset(place for outer in level for place in nested[outer]) - seen
        seen |= level
    return levels
