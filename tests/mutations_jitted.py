"""Really jitted calls with random mutations: ``python mutations_jitted.py FIRST END`` prints them as lines of JSON.

For each example JAX itself is asked first, by plain ``jax.jit`` and its monitoring alone: whether a mutation by itself
makes it build anything. Only what does is to be told.
"""

import contextlib
import dataclasses
import json
import linecache
import random
import sys
from collections import Counter, OrderedDict, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding
from mutation_kinds import KINDS, a_call
from mutations import USUAL, Array, Call, Fixed, Mutated, Told, Tree, mutated, sound, told

import jaxwatch
from jaxwatch._hub import HUB
from jaxwatch.events import CacheMiss, Event

Pair = namedtuple("Pair", "x y")  # noqa: PYI024 -- as users write them
Twin = namedtuple("Twin", "x y")  # noqa: PYI024 -- as above


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Batch:
    x: Any
    y: Any
    n: int = dataclasses.field(metadata={"static": True})


# ------------------------------------------------------------------ descriptions made real

DEVICES = np.array(jax.devices())
LINE, FIELD = Mesh(DEVICES, ("d",)), Mesh(DEVICES.reshape(2, 4), ("p", "q"))
_P: Any = PartitionSpec  # whose constructor has no types
SPLIT = {"rows": _P("d"), "columns": _P(None, "d"), "whole": _P()}
PLACES: dict[str, Any] = {
    "first": DEVICES[0],
    "second": DEVICES[1],
    "pinned": SingleDeviceSharding(DEVICES[0], memory_kind="pinned_host"),
    **{name: NamedSharding(LINE, spec) for name, spec in SPLIT.items()},
}
# options of JAX's own, as they are switched for a block of code
CONFIG: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "jax_enable_x64": (jax.enable_x64, True),
    "jax_default_matmul_precision": (jax.default_matmul_precision, "float32"),
    "jax_numpy_dtype_promotion": (jax.numpy_dtype_promotion, "strict"),
    "jax_numpy_rank_promotion": (jax.numpy_rank_promotion, "warn"),
    "jax_threefry_partitionable": (jax.threefry_partitionable, False),
    "jax_default_device": (jax.default_device, DEVICES[1]),
    "jax_debug_key_reuse": (jax.debug_key_reuse, True),
    "jax_debug_nans": (jax.debug_nans, True),
    "jax_debug_infs": (jax.debug_infs, True),
    "jax_default_prng_impl": (jax.default_prng_impl, "rbg"),
    "jax_transfer_guard": (jax.transfer_guard, "allow"),
}


def an_array(array: Array, stacked: int) -> Any:
    shape = (stacked,) * bool(stacked) + array.shape
    made: Any = np.ones(shape, array.dtype)
    if array.weak:
        one = 1.0 if array.dtype == "float32" else 1
        if array.made == "python" and not stacked:
            return one
        made = jax.lax.broadcast(jnp.asarray(one), shape)
    else:
        if array.made == "numpy":
            return made
        made = jnp.asarray(made)
    placed = made if array.place == "free" else jax.device_put(made, PLACES[array.place])
    assert (placed.dtype, placed.weak_type) == (array.dtype, array.weak), array
    return placed


def real(tree: Tree | Fixed, stacked: int = 0) -> Any:
    """Return what a description describes; its arrays with one dimension more in front, where asked for."""
    if tree is None or isinstance(tree, Fixed):
        return None if tree is None else tree.value
    if isinstance(tree, Array):
        return an_array(tree, stacked)
    children = {name: real(child, stacked) for name, child in tree.fields}
    if tree.kind in ("list", "tuple"):
        return {"list": list, "tuple": tuple}[tree.kind](children.values())
    if tree.kind in ("dict", "OrderedDict"):
        return children if tree.kind == "dict" else OrderedDict(children)
    kinds: dict[str, Any] = {"Pair": Pair, "Twin": Twin, "Batch": Batch}
    return kinds[tree.kind](**children, **({} if tree.held is None else {"n": tree.held}))


class Ready:
    """A call whose arguments are made, so that no making of theirs is seen as a part of it."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.stacked = 2 if call.transform else 0
        self.args = [real(each.value, self.stacked * (each.name == "a")) for each in call.arguments if self.first(each)]
        named = {each.name.removeprefix("kwargs['").removesuffix("']"): each for each in call.arguments}
        self.kwargs = {
            name: real(each.value, self.stacked * (each.name == "a"))
            for name, each in named.items()
            if not self.first(each)
        }

    @staticmethod
    def first(argument: Any) -> bool:
        return bool(argument.form == "positional")

    def make(self, function: Any) -> None:
        with contextlib.ExitStack() as stack:
            for name, _ in self.call.config:
                switch, value = CONFIG[name]
                stack.enter_context(switch(value))
            if self.call.mesh:
                stack.enter_context(jax.set_mesh(LINE if self.call.mesh == "mesh(d=8)" else FIELD))
            if self.call.transform:
                self.mapped(function)
            else:
                function(*self.args, **self.kwargs)

    def mapped(self, function: Any) -> None:
        if "a" in self.kwargs:
            rest = {name: value for name, value in self.kwargs.items() if name != "a"}
            over, value = (lambda a: function(*self.args, a=a, **rest)), self.kwargs["a"]
        else:
            over, value = (lambda a: function(a, *self.args[1:], **self.kwargs)), self.args[0]
        mapped: Any = jax.vmap(over, axis_name="i" if self.call.axes else None)
        mapped(value)


# ------------------------------------------------------------------ functions, and what is seen of them

# bodies that use all and compute nothing: the key is what is looked at, and a compile takes a third of the time
_PLAIN = "def {}(a, b, mode, scale=2.0):\n    return jax.tree.leaves((a, b, scale))"
_SEVERAL = "def {}(a, *args, **kwargs):\n    return jax.tree.leaves((a, args, kwargs))"


def a_function(name: str, call: Call) -> Any:
    """Return a function with code of its own, so that none is another's made anew."""
    source, space = (_SEVERAL if call.several else _PLAIN).format(name), {"jax": jax}
    exec(compile(source, f"<{name}>", "exec"), space)  # noqa: S102 -- its text stands above
    linecache.cache[f"<{name}>"] = len(source), None, source.splitlines(keepends=True), f"<{name}>"
    return space[name]


def statics(call: Call) -> dict[str, Any]:
    return {} if call.several else {"static_argnames": ("mode",)}


class Seen:
    """What JAX built, by the function's name, from its monitoring; and what jaxwatch told."""

    def __init__(self) -> None:
        self.built: Counter[str] = Counter()
        self.misses: list[CacheMiss] = []
        jax.monitoring.register_event_duration_secs_listener(self.duration)
        HUB.add("mutations", self.event)

    def duration(self, event: str, duration_secs: float, **fields: str | int) -> None:
        del duration_secs
        name = str(fields.get("fun_name", "")).removeprefix("jit(").removesuffix(")")
        if event.startswith("/jax/core/compile/"):
            self.built[name] += 1

    def event(self, event: Event, /) -> None:
        if isinstance(event, CacheMiss):
            self.misses.append(event)

    def told(self) -> list[CacheMiss]:
        found, self.misses = self.misses, []
        return found


def builds(seen: Seen, name: str, before: Ready, after: Call) -> bool:
    """Whether JAX alone builds anything for ``after``, once it has run ``before``."""
    plain, second = jax.jit(a_function(name, before.call), **statics(before.call)), Ready(after)
    before.make(plain)
    already = seen.built[name]
    second.make(plain)
    return seen.built[name] > already


# ------------------------------------------------------------------ examples


def example(number: int) -> tuple[Call, Mutated]:
    """Return a random call and one or two mutations of it; the first kind goes round, so that each has its share."""
    choose = random.Random(number).choice  # noqa: S311 -- no secret
    kinds = [kind for kind in KINDS if kind != "options"]  # another jit is another function object
    while True:
        wanted = [kinds[number % len(kinds)], choose(kinds)][: 1 + number // len(kinds) % 2]
        call = a_call(choose)
        done = mutated(call, wanted, KINDS, choose) if sound(call) else Mutated(call)
        if len(done.steps) == len(wanted):
            return call, done


def run(number: int, seen: Seen) -> dict[str, Any]:
    """Make the calls of one example; return what was to be told and what was."""
    call, done = example(number)
    before, after, name = Ready(call), Ready(done.call), f"watched{number}"
    telling = [builds(seen, f"plain{number}_{n}", before, alone) for n, (_, alone, _) in enumerate(done.steps)]
    claims = [c for (_, _, claims), tells in zip(done.steps, telling, strict=True) if tells for c in claims]
    watched = jaxwatch.jit(a_function(name, call), **statics(call))
    counts, answers = [], []
    for ready in (before, before, after, after, before):
        already = seen.built[name]
        ready.make(watched)
        counts.append(seen.built[name] - already)
        answers.append(seen.told())
    quiet = [[miss.reasons for miss in misses] for misses in (answers[1], *answers[3:])]
    return {
        "example": number,
        "kinds": [kind for kind, _, _ in done.steps],
        "builds alone": telling,
        "built": counts,
        "first": [miss.reasons for miss in answers[0]],
        "quiet": quiet,
        "expected": sorted(told(call, done.call, claims), key=str),
        "told": [
            {
                "reasons": miss.reasons,
                "changes": sorted((Told(c.reason, c.path, c.before, c.after) for c in miss.changes), key=str),
            }
            for miss in answers[2]
        ],
        "call": f"{call}",
        "then": f"{done.call}",
    }


def main(numbers: Iterable[int]) -> Iterator[dict[str, Any]]:
    """Run the examples of these numbers; a failure says which one it was."""
    seen = Seen()
    for number in numbers:
        try:
            yield run(number, seen)
        except Exception as error:
            call, done = example(number)
            error.add_note(f"example {number}: {call} then {done.call}")
            raise


assert set(CONFIG) == set(USUAL)
USUAL["jax_default_device"] = "None", str(DEVICES[1])  # jax 0.8.3 calls it TFRT_CPU_1

if __name__ == "__main__":
    for row in main(range(*map(int, sys.argv[1:]))):
        print(json.dumps(row))
