"""Calls that leave JAX's C++ fast path though nothing is traced or compiled: which never get onto it, and why.

A call that leaves it once is nothing to tell: another kind of array in the same place has an entry of its own. One that
leaves it again and again with the same key is told, once for each function.
"""

import time
from typing import Any

from jax.tree_util import tree_leaves

from jaxwatch import _compat, _inner, _listeners, _misses, _options
from jaxwatch._callsite import user_site
from jaxwatch._frames import THREAD, Frame, under_way
from jaxwatch._hub import HUB
from jaxwatch._keys import Key
from jaxwatch._origin import origin
from jaxwatch._registry import REGISTRY
from jaxwatch._signature import key_of
from jaxwatch.events import Advice, CacheMiss, Change, PhaseSeconds

_TOLD_AT = 3  # departures of one key
_KEYS = 64  # different keys that are looked at; a function with more is left in peace


def left(frame: Frame, nanoseconds: int) -> None:
    """Take a call that left the fast path and in which JAX neither traced nor compiled its function."""
    try:
        _left(frame, nanoseconds)
    except Exception:  # noqa: BLE001 -- a fault of ours is counted; the user's result goes through
        frame.subject.departures = None
        REGISTRY.count_dropped("event")


def _left(frame: Frame, nanoseconds: int) -> None:
    if THREAD.open and under_way():  # inside a trace every call does
        _inner.note(frame)
        return
    subject = frame.subject
    subject.counters.cell.add(nanoseconds)
    if _listeners.ensure():  # the program has cleared them: what looks like a departure may have been a compile
        return
    if subject.departures is not None:
        _note(frame, subject.departures, nanoseconds)


def _note(frame: Frame, departures: dict[Any, list[int]], nanoseconds: int) -> None:
    subject = frame.subject
    if any(map(_compat.is_tracer, tree_leaves((frame.args, frame.kwargs)))):  # under grad or vmap every call does
        return
    key = key_of(subject.plan, frame.args, frame.kwargs, redact=_options.redacted())
    kind = key.signature, _leaf_types(frame.args, frame.kwargs)
    seen = departures.setdefault(kind, [])
    seen.append(nanoseconds)
    if len(seen) == _TOLD_AT:
        subject.departures = None
        seconds = sorted(seen)[_TOLD_AT // 2] / 1e9
        change, advice = _cause(frame, key, f"such a call takes {seconds * 1e6:,.0f} µs.")
        _never_fast(frame, key, change, advice, seconds)
    elif len(departures) >= _KEYS:
        subject.departures = None


def _leaf_types(args: Any, kwargs: Any) -> tuple[str, ...]:
    """Return the types of all leaves: the fast path has entries of their own for NumPy's arrays and JAX's."""
    return tuple(type(leaf).__name__ for leaf in tree_leaves((args, kwargs)))


def _cause(frame: Frame, key: Key, price: str) -> tuple[Change, tuple[Advice, ...]]:
    name = frame.subject.name
    effects = ""
    if key.signature in frame.subject.counters.by_signature:  # else a callback has changed an argument meanwhile
        effects = _effects_of(frame.subject.jitted(), frame.args, frame.kwargs)
    if effects:
        note = f"its program has effects ({effects}): each call goes through Python"
        text = f"Take the callback or print out of {name}, or keep it to a debugging build of the function: {price}"
        return Change(reason="fast_path", note=note), (Advice(code="remove_callback", text=text),)
    if key.signature in frame.subject.failed:
        note = "an earlier call raised while it was traced: JAX keeps such a key off the fast path"
        text = f"Call {name}.clear_cache() once, after the call that failed: {price}"
        return Change(reason="fast_path", note=note), (Advice(code="clear_cache", text=text),)
    return Change(reason="fast_path", note="each call of this key goes through Python; why cannot be shown"), ()


def _effects_of(jitted: Any, args: Any, kwargs: Any) -> str:
    """Return the effects of a program that was traced before, as text; "" where it has none, or they cannot be had.

    ``trace`` is a look-up then: only for a call of a key that has just returned, whose arguments it did not change.
    """
    try:
        effects = jitted.trace(*args, **kwargs).jaxpr.effects
    except Exception:  # noqa: BLE001 -- an argument that is gone, a newer JAX: not told
        return ""
    return ", ".join(sorted({str(effect) for effect in effects}))[:160]


def _never_fast(frame: Frame, key: Key, change: Change, advice: tuple[Advice, ...], seconds_per_call: float) -> None:
    """Tell, once for a function, that its calls do not stay on JAX's fast path, and what such a call takes."""
    subject, site = frame.subject, user_site(5)
    miss = CacheMiss(
        id=next(_misses.IDS.numbers),
        origin=origin(),
        function=subject.name,
        definition=subject.definition,
        site=site.text,
        via=site.via,
        call=frame.call,
        layer="dispatch",
        traces=0,
        lowerings=0,
        compiles=0,
        persistent_cache=None,
        seconds=PhaseSeconds(),
        reasons=(change.reason,),
        changes=(change,),
        compared_with=None,
        fingerprint=None,
        signature=key.signature,
        abstract=key.abstract,
        advice=advice,
        seconds_per_call=seconds_per_call,
    )
    REGISTRY.count_miss(subject, miss, time.time())
    HUB.publish(miss)
