"""New arrays: zeros and relatives, copies, casts."""

from __future__ import annotations

from typing import Final

from tierup.arrays.builder import Builder, NoRule
from tierup.arrays.numpy_rules import stores
from tierup.arrays.numpy_rules.arguments import (
    Bound,
    array_argument,
    constant,
    flag,
    require_absent,
    secure_lengths,
    shape_argument,
    signature,
)
from tierup.arrays.numpy_rules.dtypes import dtype_argument, required_dtype, same_kind
from tierup.arrays.numpy_rules.indexing import fill, masked_store, number_node, setitem
from tierup.arrays.numpy_rules.operands import operand
from tierup.arrays.protocol import Rule
from tierup.arrays.values import ArrayValue, ConstValue, Value

_NOTHING: Final = ConstValue(None)


def _shaped(op: str) -> Rule:
    """np.zeros and np.empty"""

    @signature("shape, dtype=, order=, *, device=, like=")
    def rule(b: Builder, bound: Bound) -> Value:
        require_absent(bound, "device", "like")
        constant(bound["order"], "C")
        return _new(b, op, bound["shape"], dtype_argument(bound["dtype"]) or "f8")

    return rule


def _new(b: Builder, op: str, shape: Value | None, code: str) -> ArrayValue:
    assert shape is not None
    lengths = shape_argument(b, shape)
    hints = secure_lengths(b, lengths)
    return b.array(op, [n.node for n in lengths], code, hints, ccontig=True, dtype=code)


zeros: Final = _shaped("zeros")
empty: Final = _shaped("empty")


@signature("shape, dtype=, buffer=, offset=, strides=, order=")
def ndarray_type(b: Builder, bound: Bound) -> Value:
    """np.ndarray(shape, dtype): as np.empty."""
    require_absent(bound, "buffer", "offset", "strides")
    constant(bound["order"], None, "C")
    return _new(b, "empty", bound["shape"], dtype_argument(bound["dtype"]) or "f8")


@signature("shape, dtype=, order=, *, device=, like=")
def ones(b: Builder, bound: Bound) -> Value:
    """np.ones(shape, dtype)"""
    require_absent(bound, "device", "like")
    constant(bound["order"], "C")
    return _full(b, bound["shape"], ConstValue(1), dtype_argument(bound["dtype"]) or "f8")


@signature("shape, fill_value, dtype=, order=, *, device=, like=")
def full(b: Builder, bound: Bound) -> Value:
    """np.full(shape, fill_value, dtype): the value's own dtype by default."""
    require_absent(bound, "device", "like")
    constant(bound["order"], "C")
    value = bound["fill_value"]
    assert value is not None
    return _full(b, bound["shape"], value, dtype_argument(bound["dtype"]) or operand(value).code)


def _full(b: Builder, shape: Value | None, value: Value, code: str) -> ArrayValue:
    assert shape is not None
    lengths = shape_argument(b, shape)
    hints = secure_lengths(b, lengths)
    return b.array("full", [number_node(b, code, value), *(n.node for n in lengths)], code, hints, ccontig=True, dtype=code)


def _like(op: str) -> Rule:
    """np.zeros_like and np.empty_like"""

    @signature("a, dtype=, order=, subok=, shape=, *, device=")
    def rule(b: Builder, bound: Bound) -> Value:
        return _new_like(b, op, bound)

    return rule


def _new_like(b: Builder, op: str, bound: Bound) -> ArrayValue:
    require_absent(bound, "shape", "device")
    flag(bound["subok"], True)
    array = array_argument(bound["a"])
    order = constant(bound["order"], "K", "C", "A")
    if not array.ordered and order != "K":
        raise NoRule("an order other than K")
    code = dtype_argument(bound["dtype"]) or array.dtype
    return b.array(op, (array.node,), code, array.shape, ccontig=array.ordered, dtype=code)


zeros_like: Final = _like("zeros_like")
empty_like: Final = _like("empty_like")


@signature("a, dtype=, order=, subok=, shape=, *, device=")
def ones_like(b: Builder, bound: Bound) -> Value:
    """np.ones_like(a)"""
    return _full_like(b, bound, ConstValue(1))


@signature("a, fill_value, dtype=, order=, subok=, shape=, *, device=")
def full_like(b: Builder, bound: Bound) -> Value:
    """np.full_like(a, fill_value): the dtype of a."""
    value = bound["fill_value"]
    assert value is not None
    return _full_like(b, bound, value)


def _full_like(b: Builder, bound: Bound, value: Value) -> ArrayValue:
    array = array_argument(bound["a"])
    if not array.ordered:
        raise NoRule("an array like one whose axes are not in C order")
    require_absent(bound, "shape", "device")
    flag(bound["subok"], True)
    constant(bound["order"], "K", "C", "A")
    code = dtype_argument(bound["dtype"]) or array.dtype
    dims = [b.dim(array, axis).node for axis in range(array.ndim)]
    return b.array("full", [number_node(b, code, value), *dims], code, array.shape, ccontig=True, dtype=code)


# -- copies and casts -----------------------------------------------------------------------------------------------


def _copy_ordered(b: Builder, array: ArrayValue, order: str) -> ArrayValue:
    if order in ("A", "F") and not array.ordered:
        raise NoRule("a copy in an order other than C or K")
    return stores.copy(b, array, "C" if order == "C" else "K")


@signature("a, order=")
def copy_method(b: Builder, bound: Bound) -> Value:
    """a.copy(order='C')"""
    return _copy_ordered(b, array_argument(bound["a"]), constant(bound["order"], "C", "K", "A"))


@signature("a, order=, subok=")
def copy_function(b: Builder, bound: Bound) -> Value:
    """np.copy(a, order='K')"""
    flag(bound["subok"], False)
    return _copy_ordered(b, array_argument(bound["a"]), constant(bound["order"], "K", "C", "A"))


@signature("a, dtype, order=, casting=, subok=, copy=")
def astype(b: Builder, bound: Bound) -> Value:
    """a.astype(dtype): a copy, in K order, unless copy=False."""
    constant(bound["order"], "K")
    constant(bound["casting"], "unsafe")
    flag(bound["subok"], True)
    code = required_dtype(bound["dtype"])
    return converted(b, array_argument(bound["a"]), code, flag(bound["copy"], True))


@signature("x, dtype, /, *, copy=, device=")
def astype_function(b: Builder, bound: Bound) -> Value:
    """np.astype(x, dtype, copy=True)"""
    require_absent(bound, "device")
    code = required_dtype(bound["dtype"])
    return converted(b, array_argument(bound["x"]), code, flag(bound["copy"], True))


def converted(b: Builder, array: ArrayValue, code: str, fresh: bool) -> ArrayValue:
    """The array in another dtype, or itself or a copy of it in its own."""
    if code == array.dtype:
        return stores.copy(b, array) if fresh else array
    return stores.astype(b, array, code)


@signature("a, dtype=, order=, *, device=, copy=, like=")
def asarray(b: Builder, bound: Bound) -> Value:
    """np.asarray(a, dtype): the array itself where nothing is to be converted."""
    require_absent(bound, "device", "copy", "like", "order")
    array = array_argument(bound["a"])
    return converted(b, array, dtype_argument(bound["dtype"]) or array.dtype, False)


@signature("a, dtype=, *, like=")
def ascontiguousarray(b: Builder, bound: Bound) -> Value:
    """np.ascontiguousarray(a): the array itself if it is known to be C-contiguous."""
    require_absent(bound, "like")
    array = array_argument(bound["a"])
    if not array.ccontig or (dtype_argument(bound["dtype"]) or array.dtype) != array.dtype:
        raise NoRule("ascontiguousarray of an array that may need a copy")
    return array


@signature("object, dtype=, *, copy=, order=, subok=, ndmin=, ndmax=, like=")
def array_function(b: Builder, bound: Bound) -> Value:
    """np.array(a, dtype): a copy in K order, unless copy is False or None."""
    require_absent(bound, "like", "ndmax")
    constant(bound["order"], "K")
    constant(bound["ndmin"], 0)
    flag(bound["subok"], False)
    fresh = bound["copy"] is None or constant(bound["copy"], True, None)
    array = array_argument(bound["object"])
    return converted(b, array, dtype_argument(bound["dtype"]) or array.dtype, bool(fresh))


@signature("dst, src, casting=, where=")
def copyto(b: Builder, bound: Bound) -> Value:
    """np.copyto(dst, src): as dst[...] = src, but only with same-kind casts."""
    constant(bound["casting"], "same_kind")
    constant(bound["where"], True)
    target, value = array_argument(bound["dst"]), bound["src"]
    assert value is not None
    source = operand(value)
    if (source.weak is not None and target.dtype == "b1") or (source.weak is None and not same_kind(source.code, target.dtype)):
        raise NoRule("a cast that is not of the same kind")
    setitem(b, target, ConstValue(Ellipsis), value)
    return _NOTHING


@signature("a, mask, values")
def putmask(b: Builder, bound: Bound) -> Value:
    """np.putmask(a, mask, number)"""
    value = bound["values"]
    assert value is not None
    target = array_argument(bound["a"])
    stores.require_writeable(target)
    masked_store(b, target, array_argument(bound["mask"]), value)
    return _NOTHING


@signature("a, value")
def fill_method(b: Builder, bound: Bound) -> Value:
    """a.fill(value)"""
    value = bound["value"]
    assert value is not None
    fill(b, array_argument(bound["a"]), value)
    return _NOTHING
