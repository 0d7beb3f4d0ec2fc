"""The keys of earlier misses, and what a new one is to be compared with. Bounded; what goes is counted."""

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

from jaxwatch import _explain, _limits
from jaxwatch._keys import Key
from jaxwatch._registry import REGISTRY
from jaxwatch.events import Change, Reason


@dataclass(frozen=True, slots=True)
class Remembered:
    """A key that missed."""

    key: Key
    miss: int  # its id
    call: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a call missed."""

    reasons: tuple[Reason, ...]
    changes: tuple[Change, ...]
    compared_with: Remembered | None


class History:
    """The keys of all watched functions, by code and then by function object."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._codes: OrderedDict[str, OrderedDict[str, list[Remembered]]] = OrderedDict()

    def explain(self, code: str, identity: str, key: Key | None, *, traced: bool, again: bool) -> Explanation:
        """Say why a call of ``key`` missed, without keeping it.

        Args:
            code: Of the function, as ``Plan.code``.
            identity: Of the function object, as ``Plan.identity``.
            key: None where it could not be read.
            traced: Whether JAX traces the function anew, so that an equal key must have been lost.
            again: Whether the watched object has missed before, though its keys may be gone from here.
        """
        with self.lock:
            objects = self._objects(code)
            own = list(objects.get(identity, ()))
            others = [kept for name, keys in objects.items() if name != identity for kept in keys]
        if not own and again:
            note = "its earlier keys could not be read, or are no longer kept"
            return Explanation(("unknown",), (Change(reason="unknown", note=note),), None)
        if not own and not others:
            return Explanation(("first_call",), (), None)
        if key is None:
            return Explanation(("unknown",), (Change(reason="unknown", note="the key could not be read"),), None)
        found = _explain.nearest([kept.key for kept in own or others], key)
        assert found is not None, "there is at least one"  # noqa: S101 -- for the reader and the type checker
        earlier, changes = (own or others)[found[0]], found[1]
        if not own:
            note = "the same code as another function object: JAX caches by function object"
            changes = (Change(reason="new_function", note=note), *changes)
        elif not changes:
            changes = (_equal_key(key, traced=traced),)
        return Explanation(_explain.reasons_of(changes), changes, earlier)

    def keep(self, code: str, identity: str, remembered: Remembered) -> None:
        """Keep a key to compare later ones with; one that looks the same as a kept one is not kept twice."""
        with self.lock:
            objects = self._codes.setdefault(code, OrderedDict())
            self._codes.move_to_end(code)
            keys = objects.setdefault(identity, [])
            objects.move_to_end(identity)
            if any(kept.key == remembered.key for kept in keys):
                return
            keys.append(remembered)
            while len(keys) > _limits.KEYS_PER_FUNCTION or _too_large(keys):
                del keys[1]  # the first is what the others are mostly compared with
                REGISTRY.count_dropped("key")
            while len(objects) > _limits.OBJECTS_PER_DEFINITION:
                REGISTRY.count_dropped("key", len(objects.popitem(last=False)[1]))
            while len(self._codes) > _limits.DEFINITIONS:
                gone = self._codes.popitem(last=False)[1]
                REGISTRY.count_dropped("key", sum(map(len, gone.values())))

    def keys(self, code: str, identity: str) -> list[Key]:
        """Return the kept keys of one function object, oldest first."""
        with self.lock:
            return [kept.key for kept in self._objects(code).get(identity, ())]

    def _objects(self, code: str) -> OrderedDict[str, list[Remembered]]:
        return self._codes.get(code) or OrderedDict()

    def restart_ids(self) -> None:
        """In a forked child: the parent's misses are no events of this process, so they are compared with as 0."""
        self.lock = threading.RLock()
        for objects in self._codes.values():
            for keys in objects.values():
                keys[:] = [replace(kept, miss=0) for kept in keys]

    def reset(self) -> None:
        """Forget all keys."""
        with self.lock:
            self._codes.clear()


def _too_large(keys: list[Remembered]) -> bool:
    return len(keys) > 2 and sum(kept.key.leaves for kept in keys) > _limits.LEAVES_PER_FUNCTION  # noqa: PLR2004 -- first and last stay


def _equal_key(key: Key, *, traced: bool) -> Change:
    if traced and not key.opaque:
        return Change(reason="cache_lost", note="an equal key was compiled before; its entry is gone from JAX's cache")
    return Change(reason="unknown", note="no difference from an earlier key can be seen")


HISTORY = History()
