"""where, clip, round and other functions that choose or combine elements."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy._core import umath

from tierup.arrays.builder import Builder, NoRule
from tierup.arrays.numpy_rules import stores
from tierup.arrays.numpy_rules.arguments import Bound, array_argument, constant, is_none, require_absent, signature
from tierup.arrays.numpy_rules.dtypes import DTYPE, INT_RANGE, KIND, can_astype, dtype_argument, require_code
from tierup.arrays.numpy_rules.indexing import view_newaxis, view_slice
from tierup.arrays.numpy_rules.operands import Operand, element_node, operand, scalar_node
from tierup.arrays.numpy_rules.ufuncs import apply, call_with_out, ufunc_rule
from tierup.arrays.protocol import Rule
from tierup.arrays.values import ArrayValue, ConstValue, Value
from tierup.graph.ir import Node

_CLIP: Final[np.ufunc] = vars(umath)["clip"]
_WEAK_SAMPLE: Final[dict[type, Any]] = {int: 0, float: 0.0, complex: 0j}


@signature("condition, x, y, /")
def where(b: Builder, bound: Bound) -> Value:
    """np.where(condition, x, y): all three broadcast, x and y promoted to a common dtype."""
    choices = [operand(bound[name] or ConstValue(None)) for name in ("x", "y")]
    condition = operand(bound["condition"] or ConstValue(None))
    arrays = [op.array for op in (condition, *choices) if op.array is not None]
    if not arrays:
        raise NoRule("where without an array")
    samples = [_WEAK_SAMPLE[op.weak] if op.weak else op.promotes for op in choices]
    code = require_code(np.result_type(*samples))
    test = condition_node(b, condition)
    nodes = [_choice(b, op, code) for op in choices]
    shape = b.broadcast_shape(arrays) if len(arrays) > 1 else arrays[0].shape
    return b.array("where", (test, *nodes), code, shape, ccontig=all(array.ordered for array in arrays))


def condition_node(b: Builder, op: Operand) -> Node:
    """The condition as booleans."""
    if op.array is not None:
        if op.array.dtype != "b1" and not op.array.ordered:
            raise NoRule("a condition that needs a cast")
        return stores.truth(b, op.array).node
    if op.code == "b1":
        return scalar_node(b, op, "b1")
    raise NoRule("a scalar condition that is not a bool")


def _choice(b: Builder, op: Operand, code: str) -> Node:
    if op.array is None:
        return element_node(b, op, code)
    if op.array.dtype == code:
        return op.array.node
    if not can_astype(op.array.dtype, code) or not op.array.ordered:
        raise NoRule("a choice that needs a cast")
    return stores.astype(b, op.array, code).node


@signature("a, min=, max=, out=, *, dtype=")
def clip_method(b: Builder, bound: Bound) -> Value:
    """a.clip(min, max)"""
    return _clip(b, bound, bound["min"], bound["max"])


@signature("a, a_min=, a_max=, out=, *, min=, max=, dtype=")
def clip_function(b: Builder, bound: Bound) -> Value:
    """np.clip(a, a_min, a_max)"""
    if (bound["min"] or bound["max"]) and (bound["a_min"] or bound["a_max"]):
        raise NoRule("bounds of clip given twice")
    return _clip(b, bound, bound["a_min"] or bound["min"], bound["a_max"] or bound["max"])


def _clip(b: Builder, bound: Bound, low: Value | None, high: Value | None) -> Value:
    """NumPy's _methods._clip: bounds that are no bounds for the array's integers are dropped first."""
    array = array_argument(bound["a"])
    dtype = dtype_argument(bound["dtype"])
    result = None if dtype is None else DTYPE[dtype]
    lower = None if low is None or is_none(low) or _is_no_bound(b, array, low, 0) else operand(low)
    upper = None if high is None or is_none(high) or _is_no_bound(b, array, high, 1) else operand(high)
    x = operand(array)
    out = bound["out"]
    if lower and upper:
        return call_with_out(b, _CLIP, (x, lower, upper), result, out)
    if upper:
        return call_with_out(b, np.minimum, (x, upper), result, out)
    if lower:
        return call_with_out(b, np.maximum, (x, lower), result, out)
    return call_with_out(b, np.positive, (x,), result, out)


def _is_no_bound(b: Builder, array: ArrayValue, value: Value, side: int) -> bool:
    """Whether a Python int is at or beyond the end of the integer array's range."""
    if array.dtype not in INT_RANGE or operand(value).weak is not int:
        return False
    limit = INT_RANGE[array.dtype][side]
    if abs(limit) >= 2**63 - 1:
        if not isinstance(value, ConstValue):
            raise NoRule("a variable bound at the end of the range of 64-bit integers")
        return bool(value.value <= limit if side == 0 else value.value >= limit)
    return b.compare("ge" if side else "le", b.index(value), b.index(limit))


@signature("a, decimals=, out=")
def round_rule(b: Builder, bound: Bound) -> Value:
    """np.round(a), a.round(): floats to whole numbers, integers unchanged but copied."""
    require_absent(bound, "out")
    decimals = 0 if bound["decimals"] is None else b.concrete(bound["decimals"])
    array = array_argument(bound["a"])
    if decimals != 0 or KIND[array.dtype] != "f":
        raise NoRule("rounding to decimals, or of other than floats")
    return apply(b, np.rint, (operand(array),))


@signature("a, b, out=")
def outer(b: Builder, bound: Bound) -> Value:
    """np.outer(a, b) of vectors."""
    left, right = array_argument(bound["a"]), array_argument(bound["b"])
    if left.ndim != 1 or right.ndim != 1:
        raise NoRule("outer of other than vectors")
    column, row = view_newaxis(b, left, 1), view_newaxis(b, right, 0)
    return call_with_out(b, np.multiply, (operand(column), operand(row)), None, bound["out"])


def ufunc_outer(ufunc: np.ufunc) -> Rule:
    """The rule of ufunc.outer(a, b): the ufunc of all pairs (ufunc_object.c, ufunc_outer)."""

    def call(b: Builder, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        if ufunc.nin != 2 or len(args) != 2:
            raise NoRule("other than two operands")
        left, right = array_argument(args[0]), array_argument(args[1])
        for _ in range(right.ndim):
            left = view_newaxis(b, left, left.ndim)
        return ufunc_rule(ufunc)(b, (left, right), kwargs)

    return call


@signature("a, n=, axis=, prepend=, append=")
def diff(b: Builder, bound: Bound) -> Value:
    """np.diff(a) along one axis, once."""
    require_absent(bound, "prepend", "append")
    constant(bound["n"], 1)
    array = array_argument(bound["a"])
    axis = array.ndim - 1 if bound["axis"] is None else b.concrete(bound["axis"])
    if not -array.ndim <= axis < array.ndim:
        raise NoRule("an axis out of bounds")
    later = view_slice(b, array, axis % array.ndim, ConstValue(1), ConstValue(None), ConstValue(None))
    earlier = view_slice(b, array, axis % array.ndim, ConstValue(None), ConstValue(-1), ConstValue(None))
    return apply(b, np.not_equal if array.dtype == "b1" else np.subtract, (operand(later), operand(earlier)))
