"""What differs between two keys. Pure: plain data in, plain data out; nothing is claimed that the keys do not show."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from jaxwatch import _limits
from jaxwatch._keys import Key, Leaf, Node, Param, Static, Tree, bare_spec
from jaxwatch._texts import shortened
from jaxwatch.events import Change, Reason

# Most telling first.
ORDER: tuple[Reason, ...] = (
    "first_call",
    "new_function",
    "cache_lost",
    "options",
    "transform",
    "config",
    "mesh",
    "axis_env",
    "structure",
    "metadata",
    "static",
    "call_form",
    "shape",
    "dtype",
    "weak_type",
    "sharding",
    "placement",
    "layout",
    "fast_path",
    "unknown",
)
_RANK = {reason: rank for rank, reason in enumerate(ORDER)}


def compare(before: Key, after: Key) -> tuple[Change, ...]:
    """Return what differs from ``before`` to ``after``, most telling first; empty where nothing is seen to.

    Of many differences some are named, at least one for each reason, and the last one's note says how many more.
    """
    return _with_limit(differences(before, after))


def differences(before: Key, after: Key) -> tuple[Change, ...]:
    """Return all that differs from ``before`` to ``after``, most telling first, however much it is."""
    found = [
        *_named("options", before.options, after.options),
        *_named("config", before.config, after.config),
        *_text("transform", before.transform, after.transform, "no transform"),
        *_text("mesh", before.mesh, after.mesh, "no mesh"),
        *_text("axis_env", before.axis_env, after.axis_env, "no axis names"),
        *_params(before, after),
    ]
    if not found:
        found = [change for a, b in _common(before, after) for change in _hidden(b.name, a.tree, b.tree)]
    return tuple(sorted(found, key=lambda change: _RANK[change.reason]))


def reasons_of(changes: Iterable[Change]) -> tuple[Reason, ...]:
    """Return the distinct reasons of ``changes``, most telling first."""
    return tuple(sorted({change.reason for change in changes}, key=_RANK.__getitem__))


def distance(changes: Sequence[Change]) -> tuple[int, int]:
    """Return how far apart two keys are: kinds of difference, then differences."""
    return len({change.reason for change in changes}), len(changes)


def nearest(keys: Sequence[Key], key: Key) -> tuple[int, tuple[Change, ...]] | None:
    """Return the index of the key that differs least, the earliest of several, and what differs; None of none."""
    best: tuple[tuple[int, int], int, tuple[Change, ...]] | None = None
    for index, earlier in enumerate(keys):
        changes = differences(earlier, key)
        if best is None or distance(changes) < best[0]:
            best = distance(changes), index, changes
        if not changes:
            break
    return None if best is None else (best[1], _with_limit(best[2]))


# ------------------------------------------------------------------ beside the arguments


def _named(reason: Reason, before: tuple[tuple[str, str], ...], after: tuple[tuple[str, str], ...]) -> Iterator[Change]:
    if before == after:
        return
    old, new = dict(before), dict(after)
    for name in [*old, *(name for name in new if name not in old)]:
        if old.get(name) != new.get(name):
            yield Change(reason=reason, path=name, before=old.get(name), after=new.get(name))


def _text(reason: Reason, before: str, after: str, nothing: str) -> Iterator[Change]:
    if before != after:
        yield Change(reason=reason, before=before or nothing, after=after or nothing)


# ------------------------------------------------------------------ arguments


def _common(before: Key, after: Key) -> Iterator[tuple[Param, Param]]:
    for param in after.params:
        if (earlier := before.by_name.get(param.name)) is not None:
            yield earlier, param


def _params(before: Key, after: Key) -> Iterator[Change]:
    for earlier, param in _common(before, after):
        if earlier.form != param.form:
            yield Change(reason="call_form", path=param.name, before=earlier.form, after=param.form)
        yield from _trees(param.name, earlier.tree, param.tree)
    for param in before.params:
        if param.name not in after.by_name:
            yield _left_out(param, str(param.tree), None)
    for param in after.params:
        if param.name not in before.by_name:
            yield _left_out(param, None, str(param.tree))


def _left_out(param: Param, before: str | None, after: str | None) -> Change:
    """Tell of an argument that only one of the two calls gives."""
    if param.defaulted and not param.variadic:
        texts = ("given" if before is not None else "left out"), ("given" if after is not None else "left out")
        note = f"its default is used where it is left out; given as {before or after}"
        return Change(reason="call_form", path=param.name, before=texts[0], after=texts[1], note=note)
    texts2 = _cut(before), _cut(after)
    return Change(reason="structure", path=param.name, before=texts2[0], after=texts2[1])


def _cut(text: str | None) -> str | None:
    return None if text is None else shortened(text, 2 * _limits.REPR_CHARACTERS)


def _trees(path: str, before: Tree, after: Tree) -> Iterator[Change]:
    if before is after or before == after:
        return
    if isinstance(before, Leaf) and isinstance(after, Leaf):
        yield from _leaves(path, before, after)
    elif isinstance(before, Static) and isinstance(after, Static):
        yield from _statics(path, before, after)
    elif isinstance(before, Node) and isinstance(after, Node) and before.kind == after.kind:
        yield from _nodes(path, before, after)
    elif isinstance(before, Static) or isinstance(after, Static):
        return  # static in the one and not in the other: the options' difference says it
    else:
        yield Change(reason="structure", path=path, before=_cut(str(before)), after=_cut(str(after)))


def _nodes(path: str, before: Node, after: Node) -> Iterator[Change]:
    if before.aux is not None and after.aux is not None and before.aux.token != after.aux.token:
        note = _same_text(before.aux, after.aux)
        yield Change(reason="metadata", path=path, before=before.aux.text, after=after.aux.text, note=note)
    old, new = _numbered(before), _numbered(after)
    for place, child in new.items():
        if place in old:
            yield from _trees(path + place[0], old[place], child)
        else:
            yield Change(reason="structure", path=path + place[0], before=None, after=_cut(str(child)))
    for place, child in old.items():
        if place not in new:
            yield Change(reason="structure", path=path + place[0], before=_cut(str(child)), after=None)
    if old.keys() == new.keys() and list(old) != list(new):
        note = "the same keys in another order"
        yield Change(reason="structure", path=path, before=_cut(str(before)), after=_cut(str(after)), note=note)


def _numbered(node: Node) -> dict[tuple[str, int], Tree]:
    """Return the children by label; a node of the user's may give one label to several."""
    seen: Counter[str] = Counter()
    found = {}
    for label, child in node.children:
        found[label, seen[label]] = child
        seen[label] += 1
    return found


def _leaves(path: str, before: Leaf, after: Leaf) -> Iterator[Change]:
    texts = {"path": path, "before": str(before), "after": str(after)}
    if before.shape != after.shape:
        yield Change(reason="shape", **texts)
    if before.dtype != after.dtype:
        yield Change(reason="dtype", **texts)
    if before.weak != after.weak:
        yield Change(reason="weak_type", **texts)
    if _differ(before.sharding, after.sharding) and bare_spec(before.sharding or "") != bare_spec(after.sharding or ""):
        one = "one device"
        yield Change(reason="sharding", path=path, before=before.sharding or one, after=after.sharding or one)
    elif _differ(before.placement, after.placement):
        yield Change(reason="placement", path=path, before=before.placement, after=after.placement)
    if _differ(before.layout, after.layout):
        usual = "default"
        yield Change(reason="layout", path=path, before=before.layout or usual, after=after.layout or usual)


def _differ(before: str | None, after: str | None) -> bool:
    return before is not None and after is not None and before != after


def _statics(path: str, before: Static, after: Static) -> Iterator[Change]:
    if before.token == after.token:
        return
    note = _same_text(before, after)
    if note is None and before.by_identity and after.by_identity:
        note = "compared by identity: another object is another key, whatever it holds"
    yield Change(reason="static", path=path, before=before.text, after=after.text, note=note)


def _same_text(before: Static, after: Static) -> str | None:
    """Return a note for values that differ and have the same text."""
    if before.text != after.text:
        return None
    if before.by_identity and after.by_identity:
        return "the class has no __eq__: another object is another key, whatever it holds"
    if before.redacted or after.redacted:
        return "the values are left out"
    return "equal-looking values that do not compare equal"


def _hidden(path: str, before: Tree, after: Tree) -> Iterator[Change]:
    """Statics whose hashes agree and whose texts do not: told only where nothing else differs."""
    if isinstance(before, Static) and isinstance(after, Static) and before.opaque and before.text != after.text:
        note = "the hashes are equal, the values are not"
        yield Change(reason="static", path=path, before=before.text, after=after.text, note=note)


def _with_limit(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Keep the first differences and the first for each reason, and say with the last how many more there are."""
    most = _limits.CHANGES_NAMED
    if len(changes) <= most:
        return tuple(changes)
    places = range(len(changes))
    first_of_each = {changes[place].reason: place for place in reversed(places)}.values()
    wanted = [*first_of_each, *(place for place in places if place not in first_of_each)][:most]
    *kept, last = (changes[place] for place in sorted(wanted))
    more = f"and {len(changes) - most} more differences"
    return (*kept, replace(last, note=f"{last.note}; {more}" if last.note else more))
