"""The slow path on one page: key → explanation → event → hub. Runs only where JAX traced, lowered or compiled."""

import itertools
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

from jaxwatch import _advisor, _annotate, _compat, _guards, _inner, _limits, _options, _program_advice, _violations
from jaxwatch._callsite import user_site
from jaxwatch._frames import THREAD, Frame, Phase
from jaxwatch._history import HISTORY, Explanation, Remembered
from jaxwatch._hub import HUB
from jaxwatch._keys import Key, in_full
from jaxwatch._origin import origin
from jaxwatch._plan import in_library
from jaxwatch._registry import REGISTRY, Subject
from jaxwatch._signature import key_of
from jaxwatch._wrappers import users_arguments, with_users_argument
from jaxwatch.errors import JaxwatchWarning, RetraceError
from jaxwatch.events import (
    Advice,
    AheadOfTime,
    CacheMiss,
    Change,
    DiskResult,
    EagerCompile,
    Layer,
    PhaseSeconds,
    TraceError,
)


class _Ids:
    """The ids of this process's misses: 1, 2, … also in a forked child."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)


IDS = _Ids()


# ------------------------------------------------------------------ a call's first phase


def begin(frame: Frame, phase: Phase) -> None:
    """Read the key before the user's body runs, and refuse the call where a guard forbids it.

    Raises:
        RetraceError: A guard with the action ``raise`` forbids it; JAX hands it on to the user's call.
    """
    frame.begin()
    plan = frame.subject.plan
    try:
        like = HISTORY.first(plan.code, plan.identity)
        frame.key = key_of(plan, frame.args, frame.kwargs, redact=_options.redacted(), like=like)
    except Exception:  # noqa: BLE001 -- no key: told as `unknown`; the program goes on
        REGISTRY.count_dropped("key")
    if not frame.aot and _guards.any_for(frame.subject):
        _judge(frame, phase)


def _judge(frame: Frame, phase: Phase) -> None:
    subject = frame.subject
    counters = subject.counters
    key: Key | None = frame.key
    if _inlined_from(frame) or HUB.busy:  # what an exporter or a hook does itself is not the program's
        return
    signature = None if key is None else key.signature
    new = signature is None or signature not in counters.by_signature
    broken = _guards.judge(subject, signature, new_signature=new, first=not _missed_before(subject))
    frame.broken = broken
    for guard, entry in broken:
        if entry.action != "raise":
            continue
        site = user_site(2).text
        frame.refusal = error = _refusal(frame, entry.by, phase, site)
        error.signature = signature
        if guard is not None:
            guard.refusals.append((threading.get_ident(), error))
        _violations.violated(subject, entry, None, site)
        raise error


def _refusal(frame: Frame, by: str, phase: Phase, site: str) -> RetraceError:
    explanation = _explanation(frame, traced=phase == "trace", caches=_compat.caches())
    advice = _advice(frame, explanation.changes)
    return _guards.refusal(frame.subject, explanation, advice, by, site=site, call=frame.call, phase=phase)


def _inlined_from(frame: Frame) -> bool:
    """Whether the call is a part of an outer trace, by its arguments: then it compiles nothing."""
    key: Key | None = frame.key
    return key is not None and "trace" in key.transform.replace(", ", " of ").split(" of ")


# ------------------------------------------------------------------ a call's end


def finish(frame: Frame) -> bool:
    """As ``_finish``; raises nothing but a warning of ours that the program has made an error, and interrupts."""
    try:
        return _finish(frame)
    except JaxwatchWarning:
        raise
    except Exception:  # noqa: BLE001 -- without memory, or at the end of the stack: the user's result goes through
        REGISTRY.count_dropped("event")
        return False


def _finish(frame: Frame) -> bool:
    """Tell of a call in which JAX traced, lowered or compiled its function, once it has returned.

    Returns:
        Whether it ran from the cache all the same: JAX told of a trace that ran no body, as that of an equal function
        (a bound method jitted anew, say), and built nothing.
    """
    started = time.perf_counter()
    close(frame)
    layer: Layer = "compile" if frame.compiles else "trace"
    inlined = layer == "trace" and (_around(frame) or (frame.key is not None and frame.key.transform))
    miss, built = None, bool(frame.compiles or frame.lowerings)
    if inlined:
        _inner.note(frame)
    elif built:
        miss = _miss(frame, layer)
    REGISTRY.add_overhead("miss", time.perf_counter() - started)
    if miss is not None:
        _credit(miss.seconds.total)
        HUB.publish(miss)  # which counts its own time
        _violations.tell(frame.subject, frame.broken, miss)
    return not inlined and not built


def close(frame: Frame, error: BaseException | None = None) -> None:
    """Forget phases of the call that never ended: where a listener raised at their start, JAX tells no end."""
    _annotate.end(frame, {} if error is None else {"error": type(error).__qualname__})
    opened = THREAD.open
    while opened and opened[-1].frame is frame:
        opened.pop()


def _around(frame: Frame) -> bool:
    """Whether an outer trace is under way on this thread."""
    return any(phase.kind == "trace" and phase.frame is not frame for phase in THREAD.open)


def _credit(seconds: float) -> None:
    """Take what has an event of its own out of the trace around it."""
    if THREAD.open:
        opened = THREAD.open[-1]
        opened.elsewhere += seconds
        if opened.own and opened.frame is not None:
            opened.frame.within += 1
            opened.frame.within_seconds += seconds


def _explanation(frame: Frame, *, traced: bool, caches: object) -> Explanation:
    plan, key, again = frame.subject.plan, frame.key, _missed_before(frame.subject)
    return HISTORY.explain(plan.code, plan.identity, key, traced=traced, again=again, caches=caches, cell=plan.cell)


def _missed_before(subject: Subject) -> bool:
    return bool(subject.counters.by_cause) or subject.called_before


def _advice(
    frame: Frame, changes: Sequence[Change], found: Mapping[str, str] = MappingProxyType({})
) -> tuple[Advice, ...]:
    """Return advice on the changes, in the words of the user's own arguments where they are known."""
    plan = frame.subject.plan
    key: Key | None = frame.key
    own = {name.partition(" of ")[0]: path for path, name in found.items()}
    by_path = {path: name for name, path in own.items()}
    changes = [replace(change, path=by_path.get(change.path or "", change.path)) for change in changes]

    def varying(path: str) -> _advisor.Varying | None:
        path = own.get(path, path)
        return HISTORY.varying(plan.code, plan.identity, path, None if key is None else key.shape_at(path))

    cleared = any("clear_caches" in (change.note or "") for change in changes)
    return _advisor.advise(frame.subject.name, changes, varying, new=frame.call == 1 and not cleared)


def _miss(frame: Frame, layer: Layer) -> CacheMiss:
    subject, plan = frame.subject, frame.subject.plan
    key: Key = frame.key if frame.key is not None else Key(params=(), partial=True)
    caches = _compat.caches()
    with HISTORY.lock:  # so that ids grow in the order in which keys are compared
        explanation = _explanation(frame, traced=frame.traces > 0, caches=caches)
        number = next(IDS.numbers)
        if frame.key is not None:
            HISTORY.keep(plan.code, plan.identity, Remembered(key, number, frame.call, plan.cell), caches=caches)
    earlier = explanation.compared_with
    seconds = PhaseSeconds(trace=frame.seconds[0], lower=frame.seconds[1], backend_compile=frame.seconds[2])
    site = user_site(3)
    # what a library jitted is not the user's to change; gradients are of what they are about to change
    donates = site.via is None and not in_library(subject.definition) and not plan.gradient
    program, on_program = _program_advice.advised(
        subject.name, _inner.program(frame.content, frame.inner), seconds, explanation.reasons, donates=donates
    )
    found = users_arguments(frame, explanation.changes, 2) if site.via is not None else {}
    changes = tuple(with_users_argument(change, found) for change in explanation.changes)
    miss = CacheMiss(
        id=number,
        origin=origin(),
        function=subject.name,
        definition=subject.definition,
        site=site.text,
        via=site.via,
        call=frame.call,
        layer=layer,
        traces=frame.traces,
        lowerings=frame.lowerings,
        compiles=frame.compiles,
        persistent_cache=_disk(frame.disk),
        seconds=seconds,
        reasons=explanation.reasons,
        changes=changes,
        compared_with=earlier.miss or None if earlier is not None else None,
        fingerprint=None if frame.fingerprint is None else str(frame.fingerprint),
        signature=key.signature,
        abstract=key.abstract,
        advice=_advice(frame, changes, found) + on_program,
        program=program,
        disk=frame.entry,
        compiled_within=frame.within,
        compiled_within_seconds=frame.within_seconds,
        keys=_both_keys(explanation, frame.key),
        steady=any(entry.steady for _, entry in frame.broken),
    )
    REGISTRY.count_miss(subject, miss, time.time())
    return miss


def _both_keys(explanation: Explanation, key: Key | None) -> tuple[dict[str, Any], ...]:
    """Return the nearest earlier key and this one where the reason is unknown, for a report of it."""
    if "unknown" not in explanation.reasons:
        return ()
    earlier = explanation.compared_with
    return tuple(in_full(each) for each in (None if earlier is None else earlier.key, key) if each is not None)


def _disk(results: list[str]) -> DiskResult | None:
    return "miss" if "miss" in results else "hit" if "hit" in results else None


def failed(frame: Frame, error: BaseException) -> None:
    """Tell of a call that raised while it was traced, lowered or compiled; a refusal of ours was told already."""
    try:
        close(frame, error)
        if frame.key is not None and len(frame.subject.failed) < _limits.FAILED_SIGNATURES:
            frame.subject.failed.add(frame.key.signature)
        if frame.refusal is not None or _around(frame):
            return
        REGISTRY.count_error(frame.subject)
        event = TraceError(
            origin=origin(),
            function=frame.subject.name,
            definition=frame.subject.definition,
            site=user_site(2).text,
            call=frame.call,
            error=type(error).__qualname__,
            seconds=sum(frame.seconds),
        )
        HUB.publish(event)
    except Exception:  # noqa: BLE001 -- as in `finish`
        REGISTRY.count_dropped("event")


# ------------------------------------------------------------------ outside of calls


def ahead_of_time(frame: Frame) -> None:
    """Tell of ``trace``, ``lower`` or ``eval_shape`` of a watched function."""
    try:
        close(frame)
        signature = frame.key.signature if frame.key is not None else None
        _publish_ahead(frame.subject, user_site(2).text, sum(frame.seconds), signature)
    except Exception:  # noqa: BLE001 -- as in `finish`
        REGISTRY.count_dropped("event")


def _publish_ahead(subject: Subject, site: str, seconds: float, signature: str | None) -> None:
    REGISTRY.count_unseen(subject)  # what was compiled ahead serves later calls without a miss
    HUB.publish(
        AheadOfTime(
            origin=origin(),
            function=subject.name,
            definition=subject.definition,
            site=site,
            seconds=seconds,
            signature=signature,
        )
    )


def outside(name: str, seconds: float, disk: Literal["hit", "miss"] | None) -> None:
    """Tell of a compile that is no watched call's own: an eager op, an unwatched jit, or ``Lowered.compile``."""
    if HUB.busy:  # an exporter's own doing
        return
    site = user_site(2)
    subject = REGISTRY.named(name) if site.ahead_of_time else None
    if subject is not None:
        _publish_ahead(subject, site.text, seconds, None)
        return
    _credit(seconds)
    HUB.publish(
        EagerCompile(
            origin=origin(),
            function=name,
            site=site.text,
            via=site.via,
            seconds=seconds,
            persistent_cache=disk,
            count=REGISTRY.count_eager(site.text, seconds, disk),
        )
    )


def _after_fork() -> None:
    """In a forked child ids start anew; the parent's history stays, as JAX's caches do."""
    IDS.numbers = itertools.count(1)
    HISTORY.restart_ids()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
