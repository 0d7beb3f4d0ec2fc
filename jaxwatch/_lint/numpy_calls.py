"""numpy and `math`, called on what may be traced."""

import ast

from jaxwatch._lint.frames import Engine, Frame
from jaxwatch._lint.tables import words
from jaxwatch._lint.values import DOUBT, MAYBE, NUMPY, STATIC, TRACED, UNKNOWN, Value, traced_in

# Of numpy: those that look at no value, and those that call the method of that name, which a tracer has (numpy 2.4).
_STATIC_NUMPY = words(
    """
    shape ndim size dtype result_type promote_types isscalar issubdtype iscomplexobj isrealobj can_cast finfo
    iinfo iterable broadcast_shapes testing printoptions
    """
)
_BY_METHOD = words(
    """
    all any amax amin argmax argmin argsort around array_equal array_equiv array_split cumprod cumsum dsplit flip hsplit
    imag isreal max mean min moveaxis permute_dims prod real repeat reshape rollaxis round searchsorted split squeeze
    std sum swapaxes take_along_axis transpose unstack var vsplit
    """
)


def values_of(engine: Engine, node: ast.Call, frame: Frame) -> list[Value]:
    """Evaluate a call's arguments, those by name last."""
    given = [engine.eval(part, frame) for part in node.args]
    return given + [engine.eval(word.value, frame) for word in node.keywords]


def held_by(values: list[Value]) -> bool | None:
    """Return whether any of the values is traced: None where one may be."""
    held = [traced_in(value) for value in values]
    return True if True in held else None if None in held else False


def call_numpy(engine: Engine, node: ast.Call, path: str, frame: Frame) -> Value:
    """Return what numpy gives, and report where it gets a tracer."""
    values, name = values_of(engine, node, frame), path.rpartition(".")[2]
    held = held_by(values)
    if name in _STATIC_NUMPY:
        return STATIC
    if held is False:
        return NUMPY
    if name in _BY_METHOD and values[0].kind in MAYBE:
        return TRACED if held else DOUBT
    engine.report("JW402", node, node, frame, doubt=held is None)
    return UNKNOWN


def call_math(engine: Engine, node: ast.Call, path: str, frame: Frame) -> Value:
    """Return what `math` gives, and report where it gets a tracer."""
    values = values_of(engine, node, frame)
    held = held_by(values)
    if held is False or path == "math.prod":
        return STATIC if held is False else TRACED
    engine.report("JW401", node, node, frame, doubt=held is None)
    return STATIC
