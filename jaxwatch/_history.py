"""The keys of earlier misses, and what a new one is to be compared with. Bounded; what goes is counted."""

import threading
from collections import OrderedDict
from typing import NamedTuple

from jaxwatch import _explain, _limits
from jaxwatch._advisor import DEFINED_AGAIN, Sizes, Varying, add
from jaxwatch._keys import Key, Shape
from jaxwatch._registry import REGISTRY
from jaxwatch.events import Change, Reason


class Remembered(NamedTuple):
    """A key that missed."""

    key: Key
    miss: int  # its id
    call: int
    cell: int | None = None  # as ``Plan.cell``


class Explanation(NamedTuple):
    """Why a call missed."""

    reasons: tuple[Reason, ...]
    changes: tuple[Change, ...]
    compared_with: Remembered | None


class _Kept:
    """The keys of one function object, oldest first; and what finds one without looking at all."""

    __slots__ = ("all", "by_outline", "caches", "cell", "keys", "leaves", "sizes", "statics")

    def __init__(self, cell: int | None) -> None:
        self.cell = cell  # of a notebook, that was run when it was jitted
        self.all: list[Remembered] = []
        self.keys: list[Key] = []  # those of ``all``
        self.by_outline: dict[int, list[Key]] = {}
        self.statics: dict[frozenset[str], int] = {}
        self.caches: dict[str, object] = {}  # signature → _compat.caches() when a call of that key last missed
        self.leaves = 0
        self.sizes: dict[str, Sizes] = {}  # of the leaves that were asked for, by path

    def has(self, key: Key) -> bool:
        """Whether an equal key is kept."""
        return key in self.by_outline.get(key.outline, ())

    def may_have_alike(self, key: Key) -> bool:
        """Whether there may be a key from which no difference is seen."""
        return key.outline in self.by_outline or len(self.statics) > 1 or key.statics not in self.statics

    def add(self, remembered: Remembered) -> None:
        """Keep one more."""
        key = remembered.key
        self.by_outline.setdefault(key.outline, []).append(key)
        self.all.append(remembered)
        self.keys.append(key)
        self._count(key, 1)

    def drop_one(self) -> bool:
        """Drop the oldest but the first, with which the others are mostly compared; False where the rest is kept."""
        few = self.leaves <= _limits.LEAVES_PER_FUNCTION or len(self.all) <= 2  # noqa: PLR2004 -- first and last stay
        if few and len(self.all) <= _limits.KEYS_PER_FUNCTION:
            return False
        del self.all[1]
        key = self.keys.pop(1)
        self.caches.pop(key.signature, None)
        alike = self.by_outline[key.outline]
        alike.remove(key)
        if not alike:
            del self.by_outline[key.outline]
        self._count(key, -1)
        return True

    def _count(self, key: Key, number: int) -> None:
        self.leaves += number * key.leaves
        add(self.statics, key.statics, number)
        for path, sizes in self.sizes.items():
            if (shape := key.shape_at(path)) is not None:
                sizes.count(shape, number)

    def sizes_at(self, path: str) -> Sizes:
        """Return the sizes that the leaf at a path has in the keys; it is asked for anew at each miss."""
        sizes = self.sizes.get(path)
        if sizes is None:
            if len(self.sizes) >= _limits.PATHS_COUNTED:
                self.sizes.clear()
            sizes = self.sizes[path] = Sizes()
            for key in self.keys:
                if (shape := key.shape_at(path)) is not None:
                    sizes.count(shape, 1)
        return sizes


class History:
    """The keys of all watched functions, by code and then by function object."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._codes: OrderedDict[str, OrderedDict[str, _Kept]] = OrderedDict()

    def explain(  # noqa: PLR0913 -- the last ones by keyword
        self,
        code: str,
        identity: str,
        key: Key | None,
        *,
        traced: bool,
        again: bool,
        caches: object = None,
        cell: int | None = None,
    ) -> Explanation:
        """Say why a call of ``key`` missed, without keeping it.

        Args:
            code: Of the function, as ``Plan.code``.
            identity: Of the function object, as ``Plan.identity``.
            key: None where it could not be read.
            traced: Whether JAX traces the function anew, so that an equal key must have been lost.
            again: Whether the watched object has missed before, though its keys may be gone from here.
            caches: ``_compat.caches()``: another object where all of JAX's caches were cleared meanwhile.
            cell: As ``Plan.cell``.
        """
        with self.lock:
            objects = self._objects(code)
            own = objects.get(identity)
            if own is None and again:
                note = "its earlier keys are not known: not read, no longer kept, or from before it was watched"
                return Explanation(("unknown",), (Change(reason="unknown", note=note),), None)
            if not objects:
                return Explanation(("first_call",), (), None)
            if key is None:
                return Explanation(("unknown",), (Change(reason="unknown", note="the key could not be read"),), None)
            earlier, changes = _nearest(list(objects.values()) if own is None else [own], key)
        if own is None:
            again_by_cell = cell is not None and all(kept.cell not in (cell, None) for kept in objects.values())
            note = DEFINED_AGAIN if again_by_cell else "the same code as another function object"
            note += ": JAX caches by function object"
            changes = (Change(reason="new_function", note=note), *changes)
        elif not changes:
            cleared = own.caches.get(key.signature, caches) is not caches
            changes = (_equal_key(key, traced=traced, cleared=cleared),)
        return Explanation(_explain.reasons_of(changes), changes, earlier)

    def keep(self, code: str, identity: str, remembered: Remembered, *, caches: object = None) -> None:
        """Keep a key to compare later ones with; one that looks the same as a kept one is not kept twice.

        Args:
            code: As in ``explain``.
            identity: As in ``explain``.
            remembered: The key.
            caches: As in ``explain``.
        """
        with self.lock:
            objects = self._codes.setdefault(code, OrderedDict())
            self._codes.move_to_end(code)
            kept = objects.get(identity) or _Kept(remembered.cell)
            if not kept.has(remembered.key):
                kept.add(remembered)
            kept.caches[remembered.key.signature] = caches
            objects[identity] = kept
            objects.move_to_end(identity)
            while kept.drop_one():
                REGISTRY.count_dropped("key")
            while len(objects) > _limits.OBJECTS_PER_DEFINITION:
                REGISTRY.count_dropped("key", len(objects.popitem(last=False)[1].all))
            while len(self._codes) > _limits.DEFINITIONS:
                gone = self._codes.popitem(last=False)[1]
                REGISTRY.count_dropped("key", sum(len(kept.all) for kept in gone.values()))

    def keys(self, code: str, identity: str) -> list[Key]:
        """Return the kept keys of one function object, oldest first."""
        with self.lock:
            kept = self._objects(code).get(identity)
            return [] if kept is None else list(kept.keys)

    def varying(self, code: str, identity: str, path: str, own: Shape | None) -> Varying | None:
        """Return the one axis along which the leaf at a path varies in the keys of one function object and in ``own``.

        And its sizes; None where it is not one axis.
        """
        with self.lock:
            kept = self._objects(code).get(identity)
            sizes = Sizes() if kept is None else kept.sizes_at(path)
            if own is None:
                return sizes.varying()
            sizes.count(own, 1)
            found = sizes.varying()
            sizes.count(own, -1)
            return found

    def first(self, code: str, identity: str) -> Key | None:
        """Return the oldest key of one function object, else of the newest other one of its code; None of none."""
        with self.lock:
            objects = self._objects(code)
            kept = objects.get(identity) or next(reversed(objects.values()), None)
            return None if kept is None else kept.keys[0]

    def _objects(self, code: str) -> OrderedDict[str, _Kept]:
        return self._codes.get(code) or OrderedDict()

    def restart_ids(self) -> None:
        """In a forked child: the parent's misses are no events of this process, so they are compared with as 0."""
        self.lock = threading.RLock()
        for objects in self._codes.values():
            for kept in objects.values():
                kept.all = [remembered._replace(miss=0) for remembered in kept.all]

    def reset(self) -> None:
        """Forget all keys."""
        with self.lock:
            self._codes.clear()


def _nearest(known: list[_Kept], key: Key) -> tuple[Remembered, tuple[Change, ...]]:
    """Return the earlier key that differs least, and what differs; there is at least one."""
    keys = known[0].keys if len(known) == 1 else [earlier for kept in known for earlier in kept.keys]
    found = _explain.nearest(keys, key, alike=any(kept.may_have_alike(key) for kept in known))
    assert found is not None, "there is at least one"  # noqa: S101 -- for the reader and the type checker
    place, changes = found
    for kept in known:
        if place < len(kept.all):
            break
        place -= len(kept.all)
    return kept.all[place], changes


def _equal_key(key: Key, *, traced: bool, cleared: bool) -> Change:
    if traced and not key.opaque:
        note = "an equal key was compiled before; its entry is gone from JAX's cache"
        return Change(reason="cache_lost", note=f"{note}: jax.clear_caches() was called" if cleared else note)
    return Change(reason="unknown", note="no difference from an earlier key can be seen")


HISTORY = History()
