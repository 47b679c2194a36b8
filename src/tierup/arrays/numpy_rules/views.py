"""Functions, methods and attributes whose result is a view."""

from __future__ import annotations

from typing import Final

from tierup.arrays.builder import Builder, NoRule
from tierup.arrays.numpy_rules import stores
from tierup.arrays.numpy_rules.arguments import (
    NONE,
    Bound,
    array_argument,
    axes_argument,
    axis_argument,
    constant,
    is_none,
    items_of,
    secure_lengths,
    shape_argument,
    signature,
)
from tierup.arrays.numpy_rules.dtypes import REAL_PART
from tierup.arrays.numpy_rules.indexing import view_index, view_slice, view_whole
from tierup.arrays.values import ArrayValue, ConstValue, ScalarValue, Value
from tierup.graph.ir import NOTHING

_MINUS_ONE: Final = ConstValue(-1)


# -- transposition --------------------------------------------------------------------------------------------------


def view_transpose(b: Builder, array: ArrayValue, perm: tuple[int, ...]) -> ArrayValue:
    """The view with axes permuted."""
    same = perm == tuple(range(array.ndim))
    shape = tuple(array.shape[axis] for axis in perm)
    return b.view("transpose", array, (), shape, ccontig=array.ccontig and same, corder=array.ordered and same, perm=perm)


def transpose_attribute(b: Builder, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
    """a.T"""
    array = array_argument(args[0])
    return view_transpose(b, array, tuple(reversed(range(array.ndim))))


def matrix_transpose_attribute(b: Builder, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
    """a.mT"""
    array = array_argument(args[0])
    if array.ndim < 2:
        raise NoRule("the matrix transpose of a vector")
    return _swapped(b, array, array.ndim - 2, array.ndim - 1)


def transpose_method(b: Builder, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
    """a.transpose(), a.transpose(None), a.transpose(axes), a.transpose(*axes)"""
    array, *axes = args
    array = array_argument(array)
    if kwargs:
        raise NoRule("keyword arguments of transpose")
    if not axes or (len(axes) == 1 and is_none(axes[0])):
        return transpose_attribute(b, (array,), {})
    items = items_of(axes[0]) if len(axes) == 1 else None
    return _permuted(b, array, tuple(axes) if items is None else items)


@signature("a, axes=")
def transpose_function(b: Builder, bound: Bound) -> Value:
    """np.transpose(a, axes=None)"""
    array = array_argument(bound["a"])
    axes = bound["axes"]
    if axes is None or is_none(axes):
        return transpose_attribute(b, (array,), {})
    items = items_of(axes)
    if items is None:
        raise NoRule("axes that are not a tuple")
    return _permuted(b, array, items)


def _permuted(b: Builder, array: ArrayValue, axes: tuple[Value, ...]) -> ArrayValue:
    perm = tuple(axis_argument(b, axis, array.ndim) for axis in axes)
    if sorted(perm) != list(range(array.ndim)):
        raise NoRule("axes that do not match the array")
    return view_transpose(b, array, perm)


def _swapped(b: Builder, array: ArrayValue, first: int, second: int) -> ArrayValue:
    perm = list(range(array.ndim))
    perm[first], perm[second] = second, first
    return view_transpose(b, array, tuple(perm))


@signature("a, axis1, axis2")
def swapaxes(b: Builder, bound: Bound) -> Value:
    """np.swapaxes(a, axis1, axis2)"""
    array = array_argument(bound["a"])
    first, second = bound["axis1"], bound["axis2"]
    assert first is not None and second is not None
    return _swapped(b, array, axis_argument(b, first, array.ndim), axis_argument(b, second, array.ndim))


@signature("a, source, destination")
def moveaxis(b: Builder, bound: Bound) -> Value:
    """np.moveaxis(a, source, destination)"""
    array = array_argument(bound["a"])
    source, destination = bound["source"], bound["destination"]
    assert source is not None and destination is not None
    sources, destinations = axes_argument(b, source, array.ndim), axes_argument(b, destination, array.ndim)
    if len(sources) != len(destinations):
        raise NoRule("a different number of source and destination axes")
    order = [axis for axis in range(array.ndim) if axis not in sources]
    for where, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(where, axis)
    return view_transpose(b, array, tuple(order))


@signature("a, axis, start=")
def rollaxis(b: Builder, bound: Bound) -> Value:
    """np.rollaxis(a, axis, start=0)"""
    array, axis = array_argument(bound["a"]), bound["axis"]
    assert axis is not None
    moved = axis_argument(b, axis, array.ndim)
    start = 0 if bound["start"] is None else b.concrete(bound["start"])
    start += array.ndim if start < 0 else 0
    if not 0 <= start <= array.ndim:
        raise NoRule("an axis out of bounds")
    start -= moved < start
    if moved == start:
        return view_whole(b, array)
    order = [other for other in range(array.ndim) if other != moved]
    order.insert(start, moved)
    return view_transpose(b, array, tuple(order))


# -- reshaping ------------------------------------------------------------------------------------------------------


def require_contiguous(b: Builder, array: ArrayValue) -> None:
    """Make sure that the array is C-contiguous, by a check where it is not known."""
    if array.ccontig:
        return
    live = getattr(array.origin, "live", None)
    if live is None or not live.flags.c_contiguous:
        raise NoRule("a reshape of an array that is not known to be C-contiguous")
    b.node("check_contiguous", (array.node,), NOTHING)


def view_reshape(b: Builder, array: ArrayValue, lengths: list[ScalarValue]) -> ArrayValue:
    """The C order view of another shape; one length may be -1."""
    require_contiguous(b, array)
    if not 1 <= len(lengths) <= 8:
        raise NoRule("a reshape to an unsupported rank")
    free = [i for i, n in enumerate(lengths) if n.hint < 0]
    if len(free) > 1:
        raise NoRule("more than one unknown length")
    lengths = list(lengths)
    known = b.index(1)
    for i, n in enumerate(lengths):
        if i in free:
            if not b.compare("eq", n, b.index(-1)):
                raise NoRule("a negative length")
        else:
            b.compare("ge", n, b.index(0))
            known = b.arith("imul", known, n)
    size = b.size(array)
    if free:
        if not b.compare("gt", known, b.index(0)) or not b.compare("eq", b.arith("imod", size, known), b.index(0)):
            raise NoRule("a shape that does not fit the array's size")
        lengths[free[0]] = b.arith("ifloordiv", size, known)
    elif not b.compare("eq", size, known):
        raise NoRule("a shape that does not fit the array's size")
    shape = tuple(n.hint for n in lengths)
    return b.view("reshape", array, [n.node for n in lengths], shape, ccontig=True)


def reshape_method(b: Builder, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
    """a.reshape(shape), a.reshape(*shape)"""
    array, *shape = args
    options = dict(kwargs)
    constant(options.pop("order", None), "C")
    if options or not shape:
        raise NoRule("keyword arguments of reshape")
    return view_reshape(b, array_argument(array), _lengths(b, shape))


def _lengths(b: Builder, shape: list[Value]) -> list[ScalarValue]:
    return shape_argument(b, shape[0]) if len(shape) == 1 else [b.index(n) for n in shape]


@signature("a, /, shape, order=, *, copy=")
def reshape_function(b: Builder, bound: Bound) -> Value:
    """np.reshape(a, shape)"""
    constant(bound["order"], "C")
    constant(bound["copy"], None)
    shape = bound["shape"]
    assert shape is not None
    return view_reshape(b, array_argument(bound["a"]), shape_argument(b, shape))


@signature("a, order=")
def ravel(b: Builder, bound: Bound) -> Value:
    """a.ravel(): a new view of a C-contiguous array."""
    constant(bound["order"], "C", "A", "K")
    array = array_argument(bound["a"])
    return view_reshape(b, array, [b.size(array)])


@signature("a, order=")
def flatten(b: Builder, bound: Bound) -> Value:
    """a.flatten(): always a copy."""
    constant(bound["order"], "C", "A", "K")
    array = array_argument(bound["a"])
    if array.ndim > 1:
        array = view_reshape(b, array, [b.size(array)])
    return stores.copy(b, array, "C")


@signature("a, axis")
def expand_dims(b: Builder, bound: Bound) -> Value:
    """np.expand_dims(a, axis): a reshape, whose strides along the new axes are not those of newaxis."""
    array, axis = array_argument(bound["a"]), bound["axis"]
    assert axis is not None
    items = items_of(axis)
    count = 1 if items is None else len(items)
    if not count or array.ndim + count > 8:
        raise NoRule("an unsupported number of new axes")
    require_contiguous(b, array)
    lengths = [b.dim(array, i) for i in range(array.ndim)]
    for where in sorted(axes_argument(b, axis, array.ndim + count)):
        lengths.insert(where, b.index(1))
    return b.view("reshape", array, [n.node for n in lengths], [n.hint for n in lengths], ccontig=True)


@signature("a, axis=")
def squeeze(b: Builder, bound: Bound) -> Value:
    """a.squeeze(axis)"""
    array, axis = array_argument(bound["a"]), bound["axis"]
    if axis is None or is_none(axis):
        one = b.index(1)
        axes = tuple(i for i in range(array.ndim) if b.compare("eq", b.dim(array, i), one))
        if not axes:
            return array
    else:
        axes = axes_argument(b, axis, array.ndim)
        if not all(b.compare("eq", b.dim(array, i), b.index(1)) for i in axes):
            raise NoRule("an axis to squeeze that is longer than one")
    if len(axes) == array.ndim:
        raise NoRule("a view of rank 0")
    view = array
    for axis_number in sorted(axes, reverse=True):
        view = view_index(b, view, axis_number, b.index(0))
    return view_whole(b, view) if view is array else _kept_contiguous(array, view)


def _kept_contiguous(array: ArrayValue, view: ArrayValue) -> ArrayValue:
    """Dropping axes of length one keeps an array contiguous."""
    return ArrayValue(view.node, view.shape, view.buffer, None, array.ccontig, view.writeable, array.ordered)


# -- others ---------------------------------------------------------------------------------------------------------


@signature("m, axis=")
def flip(b: Builder, bound: Bound) -> Value:
    """np.flip(m, axis=None)"""
    array, axis = array_argument(bound["m"]), bound["axis"]
    axes = tuple(range(array.ndim)) if axis is None or is_none(axis) else axes_argument(b, axis, array.ndim)
    return _reversed(b, array, axes)


@signature("m")
def flipud(b: Builder, bound: Bound) -> Value:
    """np.flipud(m)"""
    return _reversed(b, array_argument(bound["m"]), (0,))


@signature("m")
def fliplr(b: Builder, bound: Bound) -> Value:
    """np.fliplr(m)"""
    array = array_argument(bound["m"])
    if array.ndim < 2:
        raise NoRule("fliplr of a vector")
    return _reversed(b, array, (1,))


def _reversed(b: Builder, array: ArrayValue, axes: tuple[int, ...]) -> ArrayValue:
    view = array
    for axis in axes:
        view = view_slice(b, view, axis, NONE, NONE, _MINUS_ONE)
    return view_whole(b, view) if view is array else view


@signature("array, shape, subok=")
def broadcast_to(b: Builder, bound: Bound) -> Value:
    """np.broadcast_to(array, shape): a read-only view."""
    constant(bound["subok"], False, True)
    array, shape = array_argument(bound["array"]), bound["shape"]
    assert shape is not None
    lengths = shape_argument(b, shape)
    hints = secure_lengths(b, lengths)
    if len(lengths) < array.ndim:
        raise NoRule("a broadcast to a lower rank")
    for axis in range(array.ndim):
        have, want = b.dim(array, axis), lengths[len(lengths) - array.ndim + axis]
        if not b.compare("eq", have, want) and not b.compare("eq", have, b.index(1)):
            raise NoRule("a shape that the array does not broadcast to")
    view = b.view("broadcast", array, [n.node for n in lengths], hints)
    return ArrayValue(view.node, view.shape, view.buffer, None, writeable=False)


def real_attribute(b: Builder, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
    """a.real: a view for complex arrays, the array itself for others."""
    array = array_argument(args[0])
    if array.dtype not in REAL_PART:
        return array
    return b.view("real", array, (), array.shape, dtype=REAL_PART[array.dtype], corder=array.ordered)


def imag_attribute(b: Builder, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
    """a.imag of a complex array."""
    array = array_argument(args[0])
    if array.dtype not in REAL_PART:
        raise NoRule("the imaginary part of a real array")
    return b.view("imag", array, (), array.shape, dtype=REAL_PART[array.dtype], corder=array.ordered)


@signature("val")
def real_function(b: Builder, bound: Bound) -> Value:
    """np.real(val)"""
    return real_attribute(b, (array_argument(bound["val"]),), {})


@signature("val")
def imag_function(b: Builder, bound: Bound) -> Value:
    """np.imag(val)"""
    return imag_attribute(b, (array_argument(bound["val"]),), {})
