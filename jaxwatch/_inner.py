"""Jits within a jit: which watched functions are called while another one is traced, and what moves between them."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from jaxwatch import _explain, _limits, _options
from jaxwatch._content import Called, Content
from jaxwatch._frames import THREAD, Frame
from jaxwatch._keys import Key
from jaxwatch._registry import REGISTRY, Subject
from jaxwatch._signature import key_of
from jaxwatch.events import Change, Inner, Program


class Within:
    """The calls of one watched function while another one is traced."""

    __slots__ = ("calls", "keys")

    def __init__(self) -> None:
        self.calls = 0
        self.keys: list[Key] = []  # those that differ, of the first calls


def note(frame: Frame) -> None:
    """Take a call that was inlined in the trace of another watched function; never raises an ``Exception``."""
    outer = _outer(frame)
    if outer is None:
        return
    started, key = time.perf_counter(), None
    try:
        key = _looked_at(frame, outer)
    except Exception:  # noqa: BLE001 -- a fault of ours must not reach the user's trace
        REGISTRY.count_dropped("key")
    plain = not any(not name.startswith("static_") for name, _ in frame.subject.plan.options)  # else its jit says more
    REGISTRY.count_inlined(frame.subject, outer.subject.name, key.signature if key is not None and plain else None)
    REGISTRY.add_overhead("miss", time.perf_counter() - started)


def _looked_at(frame: Frame, outer: Frame) -> Key | None:
    """Return the key of a call within the trace of ``outer``; None beyond the first ones."""
    if outer.inner is None:
        outer.inner = {}
    if frame.subject not in outer.inner and len(outer.inner) >= _limits.INNER_FUNCTIONS:
        return None
    within = outer.inner.setdefault(frame.subject, Within())
    within.calls += 1
    if within.calls > _limits.INNER_CALLS:
        return None
    key: Key | None = frame.key if frame.seen else _key(frame)
    if key is not None and all(key.signature != other.signature for other in within.keys):
        within.keys.append(key)
    return key


def _key(frame: Frame) -> Key:
    return key_of(frame.subject.plan, frame.args, frame.kwargs, redact=_options.redacted())


def _outer(frame: Frame) -> Frame | None:
    """Return the watched call whose own trace is under way around this one."""
    for opened in reversed(THREAD.open):
        if opened.own and opened.kind == "trace" and opened.frame is not frame:
            return opened.frame
    return None


def program(content: Content | None, within: Mapping[Subject, Within] | None) -> Program | None:
    """Return what a program is made of, with what moved between the calls of the watched functions in it."""
    if content is None:
        return None
    total = sum(constant.size for constant in content.constants)
    most = sorted(content.called, key=lambda called: (-called.variants, -called.calls))[: _limits.INNER_TOLD]
    return Program(
        equations=content.equations,
        constant_bytes=total,
        constants=_largest(content, total),
        inner=tuple(_inner(called, within or {}) for called in most),
        partial=content.partial,
        distinct=content.makeup.distinct,
        primitives=content.makeup.primitives,
        lines=content.makeup.lines,
        loops=content.makeup.loops,
        touched=content.touched,
        bodies=content.makeup.bodies,
        donatable=content.donatable,
    )


def _largest(content: Content, total: int) -> tuple[str, ...]:
    large = [constant.text for constant in content.constants if 100 * constant.size >= total]  # from 1 % on
    return tuple(large[: _limits.CONSTANTS_TOLD])


def _inner(called: Called, within: Mapping[Subject, Within]) -> Inner:
    named = [
        (subject, seen)
        for subject, seen in within.items()
        if subject.event_name == called.name and subject.definition == called.definition
    ]
    told = Inner(function=called.name, definition=called.definition, calls=called.calls, variants=called.variants)
    if not named:
        return told
    told = replace(told, function=named[0][0].name)
    signatures = {key.signature: key for _, seen in named for key in seen.keys}
    whole = all(seen.calls <= _limits.INNER_CALLS for _, seen in named)
    if not whole or len(signatures) > called.variants:  # some calls are not looked at, or not in the program
        return told
    return replace(told, signatures=len(signatures), changes=moved(list(signatures.values())))


def moved(keys: Sequence[Key]) -> tuple[Change, ...]:
    """Return what differs between the first of the keys and the others, each place once; the note counts its values."""
    found: dict[tuple[str, str | None], Change] = {}
    values: dict[tuple[str, str | None], set[str | None]] = {}
    for change in _all(keys):
        place = change.reason, change.path
        found.setdefault(place, change)
        values.setdefault(place, {change.before}).add(change.after)
    told = sorted(found.values(), key=lambda change: _explain.ORDER.index(change.reason))
    return tuple(
        replace(change, note=f"{len(values[change.reason, change.path])} values")
        if len(values[change.reason, change.path]) > 2  # noqa: PLR2004 -- before and after tell two
        else change
        for change in told[: _limits.CHANGES_NAMED]
    )


def _all(keys: Sequence[Key]) -> Iterable[Change]:
    for key in keys[1:]:
        yield from _explain.compare(keys[0], key)
