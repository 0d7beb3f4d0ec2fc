"""How many numbers one run of a small program reads and writes at most: whether it can be less work than its dispatch.

Duck-typed, as ``_content``. Nothing is said of a large program, nor of one that does what is not counted here.
"""

import math
from collections.abc import Callable
from typing import Any

from jaxwatch import _limits

# What works through its operands and results a few times at most.
_THROUGH = """
    abs acos acosh add add_any and argmax argmin asin asinh atan atan2 atanh bitcast_convert_type broadcast_in_dim cbrt
    ceil clamp complex concatenate conj convert_element_type copy copy_p cos cosh div dynamic_slice dynamic_update_slice
    eq erf erfc exp exp2 expand_dims expm1 floor gather ge gt imag integer_pow iota is_finite le log log1p logistic lt
    max min mul mul_add ne neg nextafter not or pad pow random_unwrap random_wrap real reduce_and reduce_max reduce_min
    reduce_or reduce_prod reduce_sum rem reshape rev round rsqrt scatter scatter-add select_n shift_left
    shift_right_arithmetic shift_right_logical sign sin sinh slice split sqrt square squeeze stop_gradient sub tan tanh
    transpose xor
"""
# Many operations for each number: threefry's rounds, a polynomial.
_DEAR = """
    erf_inv random_bits random_fold_in random_seed random_split threefry2x32
"""
_DEAR_TIMES = 40
# What only holds another program, which is counted in its place.
_HOLDERS = """
    checkpoint closed_call cond core_call custom_jvp_call custom_vjp_call custom_vjp_call_jaxpr jit pjit remat remat2
"""
_TIMES = {**dict.fromkeys(_THROUGH.split(), 1), **dict.fromkeys(_DEAR.split(), _DEAR_TIMES), "dot_general": 1}
_HOLDING = frozenset([*_HOLDERS.split(), "scan"])


def touched(jaxpr: Any, below: Callable[[Any], list[Any]]) -> int | None:
    """Return an upper bound of the numbers that one run reads and writes, each operation counted by itself.

    Args:
        jaxpr: As JAX lowers it, closed or not.
        below: Returns the jaxprs among the parameters of an equation.

    Returns:
        Results and operands of all operations, those in a loop or a called function as often as they run, of a matrix
        product each product; None above ``TOUCHED_TOLD``, or where anything is done that is not counted.
    """
    try:
        return _counted(jaxpr, below)
    except Exception:  # noqa: BLE001 -- a primitive of the user's may hold anything
        return None


def _counted(jaxpr: Any, below: Callable[[Any], list[Any]]) -> int | None:
    total, todo = 0, [(jaxpr, 1)]
    while todo:
        current, times = todo.pop()
        for equation in current.eqns:
            name = equation.primitive.name
            if name in _TIMES:
                total += times * _TIMES[name] * _work(equation)
            elif name in _HOLDING and (inners := below(equation.params)):
                runs = times * equation.params.get("length", 1)
                todo += [(inner, runs) for inner in inners]
            else:
                return None
            total += times  # so that what has no elements comes to an end too
            if total > _limits.TOUCHED_TOLD:
                return None
    return total


def _work(equation: Any) -> int:
    size: int = sum(math.prod(variable.aval.shape) for variable in (*equation.invars, *equation.outvars))
    if equation.primitive.name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        shape = equation.invars[0].aval.shape
        size += math.prod(shape[axis] for axis in contracted) * math.prod(equation.outvars[0].aval.shape)
    return size
