"""Reductions: sum, prod, min, max, any, all, mean, var, std."""

from __future__ import annotations

from typing import Final

import numpy as np

from tierup.arrays.builder import Builder, NoRule
from tierup.arrays.numpy_rules import stores
from tierup.arrays.numpy_rules.arguments import (
    Bound,
    array_argument,
    axis_argument,
    constant,
    flag,
    is_none,
    items_of,
    require_absent,
    signature,
)
from tierup.arrays.numpy_rules.dtypes import DTYPE, KIND, dtype_argument
from tierup.arrays.numpy_rules.indexing import view_index
from tierup.arrays.numpy_rules.loops import find_loop
from tierup.arrays.numpy_rules.operands import Operand, operand
from tierup.arrays.numpy_rules.scalars import load, scalar_ufunc
from tierup.arrays.numpy_rules.ufuncs import apply, call_with_out
from tierup.arrays.protocol import Rule
from tierup.arrays.values import ArrayValue, ConstValue, ScalarValue, Value
from tierup.graph.ir import ScalarType

_F8: Final = ScalarType("f8", "numpy")
_FLOAT32_INTEGERS: Final = 2**24


def reduce(b: Builder, array: ArrayValue, ufunc: np.ufunc, axis: int | None, keepdims: bool) -> Value:
    """ufunc.reduce(array, axis, keepdims=…) in a loop whose types all are the array's dtype (or bool)."""
    loop = find_loop(ufunc, (DTYPE[array.dtype], DTYPE[array.dtype]))
    if loop[0] != loop[-1]:
        raise NoRule(f"a reduction by {ufunc.__name__} that casts")
    _require_elements(b, array, ufunc, axis)
    if axis is not None and array.ndim == 1 and not keepdims:
        axis = None
    name = ufunc.__name__
    if axis is None and not keepdims:
        type = ScalarType(array.dtype, "numpy")
        return ScalarValue(b.node("reduce", (array.node,), type, ufunc=name, loop=loop, axis=None, keepdims=False), None)
    shape = [1 if axis is None or i == axis else n for i, n in enumerate(array.shape) if keepdims or i != axis]
    return b.array("reduce", (array.node,), array.dtype, shape, ccontig=array.ordered, ufunc=name, loop=loop, axis=axis, keepdims=keepdims)


def _require_elements(b: Builder, array: ArrayValue, ufunc: np.ufunc, axis: int | None) -> None:
    """NumPy raises for an empty reduction without an identity."""
    if ufunc.identity is not None:
        return
    count = b.size(array) if axis is None else b.dim(array, axis)
    if not b.compare("gt", count, b.index(0)):
        raise NoRule("a reduction of nothing without an identity")


def _axis(b: Builder, value: Value | None, ndim: int) -> int | None:
    if value is None or is_none(value):
        return None
    items = items_of(value)
    if items is None:
        return axis_argument(b, value, ndim)
    if len(items) == 1:
        return axis_argument(b, items[0], ndim)
    if sorted(axis_argument(b, item, ndim) for item in items) == list(range(ndim)):
        return None
    raise NoRule("a reduction over several axes")


def _accumulator(b: Builder, array: ArrayValue, dtype: str | None) -> ArrayValue:
    """The array as sum and prod take it: small integers and bools are cast to the platform's int (unsigned to unsigned)."""
    if dtype is None:
        dtype = array.dtype
        if KIND[dtype] in "bi" and DTYPE[dtype].itemsize < 8:
            dtype = "i8"
        elif KIND[dtype] == "u" and DTYPE[dtype].itemsize < 8:
            dtype = "u8"
    if dtype == array.dtype:
        return array
    if KIND[dtype] not in "iu" or KIND[array.dtype] not in "biu":
        raise NoRule("a reduction that casts to floats in buffers")
    if not array.ordered:
        raise NoRule("a reduction that casts an array whose axes are not in C order")
    return stores.astype(b, array, dtype)


def _summing(ufunc: np.ufunc) -> Rule:
    """sum and prod, as function and method"""

    @signature("a, axis=, dtype=, out=, keepdims=, initial=, where=")
    def rule(b: Builder, bound: Bound) -> Value:
        require_absent(bound, "out", "initial")
        constant(bound["where"], True)
        array = array_argument(bound["a"])
        axis = _axis(b, bound["axis"], array.ndim)
        return reduce(b, _accumulator(b, array, dtype_argument(bound["dtype"])), ufunc, axis, flag(bound["keepdims"], False))

    return rule


def _extreme(ufunc: np.ufunc) -> Rule:
    """min and max, as function and method"""

    @signature("a, axis=, out=, keepdims=, initial=, where=")
    def rule(b: Builder, bound: Bound) -> Value:
        require_absent(bound, "out", "initial")
        constant(bound["where"], True)
        array = array_argument(bound["a"])
        return reduce(b, array, ufunc, _axis(b, bound["axis"], array.ndim), flag(bound["keepdims"], False))

    return rule


def _logical(ufunc: np.ufunc) -> Rule:
    """any and all, as function and method: of the truth of each element"""

    @signature("a, axis=, out=, keepdims=, *, where=")
    def rule(b: Builder, bound: Bound) -> Value:
        require_absent(bound, "out")
        constant(bound["where"], True)
        array = array_argument(bound["a"])
        axis = _axis(b, bound["axis"], array.ndim)
        if array.dtype != "b1" and axis is not None and not array.ordered:
            raise NoRule("a reduction that casts an array whose axes are not in C order")
        return reduce(b, stores.truth(b, array), ufunc, axis, flag(bound["keepdims"], False))

    return rule


@signature("a, axis=, out=, keepdims=")
def ptp(b: Builder, bound: Bound) -> Value:
    """np.ptp(a, axis): the maximum minus the minimum."""
    require_absent(bound, "out")
    array = array_argument(bound["a"])
    axis, keepdims = _axis(b, bound["axis"], array.ndim), flag(bound["keepdims"], False)
    ends = [operand(reduce(b, array, ufunc, axis, keepdims)) for ufunc in (np.maximum, np.minimum)]
    return call_with_out(b, np.subtract, ends, None, None)


sum_rule: Final = _summing(np.add)
prod_rule: Final = _summing(np.multiply)
min_rule: Final = _extreme(np.minimum)
max_rule: Final = _extreme(np.maximum)
any_rule: Final = _logical(np.logical_or)
all_rule: Final = _logical(np.logical_and)


# -- mean and variance: NumPy's _methods.py -----------------------------------------------------------------------


@signature("a, axis=, dtype=, out=, keepdims=, *, where=")
def mean_rule(b: Builder, bound: Bound) -> Value:
    """Sum, then one division by the count."""
    array, axis, keepdims = _moment_arguments(b, bound)
    return _divided_sum(b, array, axis, keepdims, _count(b, array, axis))


@signature("a, axis=, dtype=, out=, ddof=, keepdims=, *, where=, mean=, correction=")
def var_rule(b: Builder, bound: Bound) -> Value:
    """Sum of squared deviations from the mean, divided by count - ddof."""
    return _variance(b, bound)


@signature("a, axis=, dtype=, out=, ddof=, keepdims=, *, where=, mean=, correction=")
def std_rule(b: Builder, bound: Bound) -> Value:
    """The square root of the variance."""
    variance = _variance(b, bound)
    if isinstance(variance, ArrayValue):
        return apply(b, np.sqrt, (operand(variance),))
    return scalar_ufunc(b, np.sqrt, (operand(variance),))


def _variance(b: Builder, bound: Bound) -> Value:
    require_absent(bound, "mean", "correction")
    array, axis, keepdims = _moment_arguments(b, bound)
    ddof = b.index(bound["ddof"] or 0)
    count = _count(b, array, axis)
    if not b.compare("lt", ddof, count):
        raise NoRule("no degrees of freedom left")
    if not array.ordered:
        raise NoRule("a variance of an array whose axes are not in C order")
    mean = _divided_sum(b, array, axis, True, count)
    assert isinstance(mean, ArrayValue)
    deviation = apply(b, np.subtract, (operand(array), operand(mean)))
    square = apply(b, np.square, (operand(deviation),))
    return _divided_sum(b, square, axis, keepdims, b.arith("isub", count, ddof))


def _moment_arguments(b: Builder, bound: Bound) -> tuple[ArrayValue, int | None, bool]:
    require_absent(bound, "out")
    constant(bound["where"], True)
    array = array_argument(bound["a"])
    if KIND[array.dtype] != "f" or dtype_argument(bound["dtype"]) not in (None, array.dtype):
        raise NoRule("a mean that casts in buffers, or of complex numbers")
    return array, _axis(b, bound["axis"], array.ndim), flag(bound["keepdims"], False)


def _count(b: Builder, array: ArrayValue, axis: int | None) -> ScalarValue:
    """The number of elements that go into one result; at least one (NumPy warns of an empty mean)."""
    count = b.size(array) if axis is None else b.dim(array, axis)
    if not b.compare("gt", count, b.index(0)):
        raise NoRule("a mean of nothing")
    return count


def _divided_sum(b: Builder, array: ArrayValue, axis: int | None, keepdims: bool, count: ScalarValue) -> Value:
    """add.reduce(array) / count. NumPy divides in double and rounds to the array's dtype. For float32 a division in float32 gives the same
    bits, because 53 >= 2 * 24 + 2 (rounding twice is innocuous for quotients, Figueroa 1995) as long as the count is exact in float32."""
    if array.dtype == "f4" and not b.compare("le", count, b.index(_FLOAT32_INTEGERS)):
        raise NoRule("a float32 mean of very many elements")
    whole = (axis is None or array.ndim == 1) and not keepdims
    if whole and array.dtype == "f8":
        total = reduce(b, array, np.add, axis, False)
        assert isinstance(total, ScalarValue)
        return ScalarValue(b.node("fdiv", (total.node, b.to_double(count)), _F8), None)
    total = reduce(b, array, np.add, axis, keepdims or whole)
    assert isinstance(total, ArrayValue)
    value: ConstValue | ScalarValue = count if b.known(count) is None else ConstValue(count.hint)
    mean = apply(b, np.true_divide, (operand(total), Operand(value, int)))
    if not whole:
        return mean
    while mean.ndim:
        mean = view_index(b, mean, 0, b.index(0))
    return load(b, mean.node, mean.dtype)
