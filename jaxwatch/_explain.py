"""What differs between two keys. Pure: plain data in, plain data out; nothing is claimed that the keys do not show."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from jaxwatch import _limits
from jaxwatch._keys import Key, Leaf, Node, Param, Static, Tree, bare_spec
from jaxwatch._texts import around_difference, shortened
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


class Difference(NamedTuple):
    """A ``Change`` before it is put in words, which is most of its price."""

    reason: Reason
    path: str | None = None
    before: Tree | str | None = None
    after: Tree | str | None = None
    note: str | None = None


def compare(before: Key, after: Key) -> tuple[Change, ...]:
    """Return what differs from ``before`` to ``after``, most telling first; empty where nothing is seen to.

    Of many differences some are named, at least one for each reason, and the last one's note says how many more.
    """
    return _told(differences(before, after))


def differences(before: Key, after: Key) -> Iterator[Difference]:
    """Find all that differs from ``before`` to ``after``, however much it is; the caller may stop early."""
    found = False
    for difference in _seen(before, after):
        found = True
        yield difference
    if not found:
        for earlier, param in _common(before, after):
            yield from _hidden(param.name, earlier.tree, param.tree)


def _seen(before: Key, after: Key) -> Iterator[Difference]:
    if before.options != after.options:
        yield from _named("options", before.options, after.options)
    if before.config is not after.config and before.config != after.config:
        yield from _named("config", before.config, after.config)
    if before.transform != after.transform:
        yield _text("transform", before.transform, after.transform, "no transform")
    if before.mesh != after.mesh:
        yield _text("mesh", before.mesh, after.mesh, "no mesh")
    if before.axis_env != after.axis_env:
        yield _text("axis_env", before.axis_env, after.axis_env, "no axis names")
    yield from _params(before, after)


def _told(found: Iterable[Difference]) -> tuple[Change, ...]:
    return tuple(map(_change, _with_limit(sorted(found, key=lambda difference: _RANK[difference.reason]))))


def _change(difference: Difference) -> Change:
    reason, path, before, after, note = difference
    old, new = (None if value is None else str(value) for value in (before, after))
    if reason == "structure":  # of a container, whose text may be long
        old, new = _cut(old), _cut(new)
    return Change(reason=reason, path=path, before=old, after=new, note=note)


def _cut(text: str | None) -> str | None:
    return None if text is None else shortened(text, 2 * _limits.REPR_CHARACTERS)


def reasons_of(changes: Iterable[Change]) -> tuple[Reason, ...]:
    """Return the distinct reasons of ``changes``, most telling first."""
    return tuple(sorted({change.reason for change in changes}, key=_RANK.__getitem__))


# ------------------------------------------------------------------ the nearest earlier key


class _Found(NamedTuple):
    place: tuple[int, int, int]  # kinds of difference, differences, index: the least is the nearest
    differences: list[Difference]


_LEAST = (1, 1)  # where any difference is seen


def nearest(keys: Sequence[Key], key: Key, *, alike: bool = True) -> tuple[int, tuple[Change, ...]] | None:
    """Return the index of the key that differs least, the earliest of several, and what differs; None of none.

    What differs least has the fewest kinds of difference, then the fewest differences. The keys in which none may be
    seen come first; then the oldest ones, until nothing can be nearer.

    Args:
        keys: The earlier ones, oldest first.
        key: The new one.
        alike: False where it is known that a difference is seen from each of ``keys``.
    """
    best: _Found | None = None
    for index, earlier in enumerate(keys) if alike else ():
        if earlier.outline == key.outline or earlier.statics != key.statics:
            best = _nearer(earlier, key, index, best)
    for index, earlier in enumerate(keys):
        if best is not None and best.place <= (*_LEAST, index):
            break
        best = _nearer(earlier, key, index, best)
    return None if best is None else (best.place[2], _told(best.differences))


def _nearer(before: Key, after: Key, index: int, best: _Found | None) -> _Found | None:
    """Return what differs from ``before``, or ``best`` as soon as that is seen to be no farther."""
    kinds, found = set(), []
    for difference in differences(before, after):
        kinds.add(difference.reason)
        found.append(difference)
        if best is not None and (len(kinds), len(found), index) >= best.place:
            return best
    place = len(kinds), len(found), index
    return best if best is not None and best.place <= place else _Found(place, found)


# ------------------------------------------------------------------ beside the arguments


def _named(
    reason: Reason, before: tuple[tuple[str, str], ...], after: tuple[tuple[str, str], ...]
) -> Iterator[Difference]:
    old, new = dict(before), dict(after)
    for name in [*old, *(name for name in new if name not in old)]:
        if old.get(name) != new.get(name):
            yield Difference(reason, name, old.get(name), new.get(name))


def _text(reason: Reason, before: str, after: str, nothing: str) -> Difference:
    return Difference(reason, None, before or nothing, after or nothing)


# ------------------------------------------------------------------ arguments


def _common(before: Key, after: Key) -> Iterator[tuple[Param, Param]]:
    for param in after.params:
        if (earlier := before.by_name.get(param.name)) is not None:
            yield earlier, param


def _params(before: Key, after: Key) -> Iterator[Difference]:
    old, new = before.by_name, after.by_name
    for param in after.params:
        earlier = old.get(param.name)
        if earlier is None or earlier is param:
            continue
        if earlier.form != param.form:
            yield Difference("call_form", param.name, earlier.form, param.form)
        if earlier.tree != param.tree:
            yield from _trees(param.name, earlier.tree, param.tree)
    if old.keys() == new.keys():
        return
    for param in before.params:
        if param.name not in new:
            yield _left_out(param, str(param.tree), None)
    for param in after.params:
        if param.name not in old:
            yield _left_out(param, None, str(param.tree))


def _left_out(param: Param, before: str | None, after: str | None) -> Difference:
    """Tell of an argument that only one of the two calls gives."""
    if param.defaulted and not param.variadic:
        texts = ("given" if before is not None else "left out"), ("given" if after is not None else "left out")
        note = f"its default is used where it is left out; given as {before or after}"
        return Difference("call_form", param.name, *texts, note)
    return Difference("structure", param.name, before, after)


def _trees(path: str, before: Tree, after: Tree) -> Iterator[Difference]:
    if isinstance(before, Leaf) and isinstance(after, Leaf):
        yield from _leaves(path, before, after)
    elif isinstance(before, Static) and isinstance(after, Static):
        yield from _statics(path, before, after)
    elif isinstance(before, Node) and isinstance(after, Node) and before.kind == after.kind:
        yield from _nodes(path, before, after)
    elif not isinstance(before, Static) and not isinstance(after, Static):
        # static in the one and not in the other: the options' difference says it
        yield Difference("structure", path, before, after)


def _nodes(path: str, before: Node, after: Node) -> Iterator[Difference]:
    if before.aux is not None and after.aux is not None and before.aux.token != after.aux.token:
        note = _same_text(before.aux, after.aux)
        yield Difference("metadata", path, *_told_apart(before.aux, after.aux), note)
    if [label for label, _ in before.children] == [label for label, _ in after.children]:
        for (label, old), (_, new) in zip(before.children, after.children, strict=True):
            if old != new:
                yield from _trees(path + label, old, new)
    else:
        yield from _other_children(path, before, after)


def _other_children(path: str, before: Node, after: Node) -> Iterator[Difference]:
    old, new = _numbered(before), _numbered(after)
    for place, child in new.items():
        if place in old:
            yield from _trees(path + place[0], old[place], child)
        else:
            yield Difference("structure", path + place[0], None, child)
    for place, child in old.items():
        if place not in new:
            yield Difference("structure", path + place[0], child, None)
    if old.keys() == new.keys():
        yield Difference("structure", path, before, after, "the same keys in another order")


def _numbered(node: Node) -> dict[tuple[str, int], Tree]:
    """Return the children by label; a node of the user's may give one label to several."""
    seen: Counter[str] = Counter()
    found = {}
    for label, child in node.children:
        found[label, seen[label]] = child
        seen[label] += 1
    return found


def _leaves(path: str, before: Leaf, after: Leaf) -> Iterator[Difference]:
    if before.shape != after.shape:
        yield Difference("shape", path, before, after)
    if before.dtype != after.dtype:
        yield Difference("dtype", path, before, after)
    if before.weak != after.weak:
        yield Difference("weak_type", path, before, after)
    if _differ(before.sharding, after.sharding) and bare_spec(before.sharding or "") != bare_spec(after.sharding or ""):
        one = "one device"
        yield Difference("sharding", path, before.sharding or one, after.sharding or one)
    elif _differ(before.placement, after.placement):
        yield Difference("placement", path, before.placement, after.placement)
    if _differ(before.layout, after.layout):
        usual = "default"
        yield Difference("layout", path, before.layout or usual, after.layout or usual)


def _differ(before: str | None, after: str | None) -> bool:
    return before is not None and after is not None and before != after


def _statics(path: str, before: Static, after: Static) -> Iterator[Difference]:
    if before.token == after.token:
        return
    note = _of_functions(before, after) or _same_text(before, after)
    if note is None and before.by_identity and after.by_identity:
        note = "compared by identity: another object is another key, whatever it holds"
    yield Difference("static", path, *_told_apart(before, after), note)


def _told_apart(before: Static, after: Static) -> tuple[str, str]:
    """Return the two texts; of long ones that look the same when cut, what is around the place where they differ."""
    old, new = before.whole or before.text, after.whole or after.text
    if before.text != after.text or old == new:
        return before.text, after.text
    return around_difference(old, new)


_FUNCTIONS = ("<PjitFunction ", "<function ", "<bound method ", "partial(")


def _of_functions(before: Static, after: Static) -> str | None:
    """Return a note for functions, which people do not think of as values."""
    if not (before.by_identity and after.by_identity and after.text.startswith(_FUNCTIONS)):
        return None
    if before.text != after.text:
        return "functions are compared by identity"
    jitted = "jitted " if after.text.startswith("<PjitFunction ") else ""
    return f"a {jitted}function that is made anew never compares equal"


def _same_text(before: Static, after: Static) -> str | None:
    """Return a note for values that differ and have the same text."""
    if before.text != after.text or before.whole != after.whole:
        return None
    if before.digest != after.digest and not (before.redacted or after.redacted):
        return "they differ beyond what is kept of their texts"
    if before.by_identity and after.by_identity:
        return "the class has no __eq__: another object is another key, whatever it holds"
    if before.redacted or after.redacted:
        return "the values are left out"
    return "equal-looking values that do not compare equal"


def _hidden(path: str, before: Tree, after: Tree) -> Iterator[Difference]:
    """Statics whose hashes agree and whose texts do not: told only where nothing else differs."""
    if isinstance(before, Static) and isinstance(after, Static) and before.opaque and before.text != after.text:
        note = "the hashes are equal, the values are not"
        yield Difference("static", path, before.text, after.text, note)


def _with_limit(found: Sequence[Difference]) -> Sequence[Difference]:
    """Keep the first differences and the first for each reason, and say with the last how many more there are."""
    most = _limits.CHANGES_NAMED
    if len(found) <= most:
        return found
    places = range(len(found))
    first_of_each = {found[place].reason: place for place in reversed(places)}.values()
    wanted = [*first_of_each, *(place for place in places if place not in first_of_each)][:most]
    *kept, last = (found[place] for place in sorted(wanted))
    more = f"and {len(found) - most} more differences"
    return (*kept, last._replace(note=f"{last.note}; {more}" if last.note else more))
