"""Basic indexing: integers, slices, Ellipsis and newaxis."""

from __future__ import annotations

from collections.abc import Sequence

from tierup.arrays.builder import Builder, NoRule
from tierup.arrays.numpy_rules import stores
from tierup.arrays.numpy_rules.arguments import is_none, items_of
from tierup.arrays.numpy_rules.dtypes import DTYPE, can_astype, safe
from tierup.arrays.numpy_rules.operands import element_node, integer, operand
from tierup.arrays.numpy_rules.scalars import load
from tierup.arrays.values import ArrayValue, ConstValue, ScalarValue, SliceValue, Value
from tierup.graph.ir import Node

_ELLIPSIS = object()
_NEWAXIS = object()
Part = object


def getitem(b: Builder, array: ArrayValue, index: Value) -> Value:
    """array[index]: a view, or a NumPy scalar where every axis has an integer."""
    parts = _parts(b, index, array.ndim)
    view = _view(b, array, parts)
    if view.ndim:
        return view
    if any(part is _ELLIPSIS for part in _raw_parts(index)):
        raise NoRule("an index that makes a rank 0 array")
    return load(b, view.node, array.dtype)


def setitem(b: Builder, array: ArrayValue, index: Value, value: Value) -> None:
    """array[index] = value"""
    stores.require_writeable(array)
    if isinstance(index, ArrayValue):
        masked_store(b, array, index, value)
        return
    target = _view(b, array, _parts(b, index, array.ndim))
    if isinstance(value, ArrayValue):
        if stores.same_view(target.node, value.node):
            return  # `x[i] += y` ends with the assignment of the view to itself
        node = _array_value(b, target, value)
    else:
        node = number_node(b, target.dtype, value)
    stores.store(b, target, node)


def fill(b: Builder, array: ArrayValue, value: Value) -> None:
    """array.fill(value)"""
    stores.require_writeable(array)
    stores.store(b, array, number_node(b, array.dtype, value))


def masked_store(b: Builder, array: ArrayValue, mask: ArrayValue, value: Value) -> None:
    """array[mask] = number: the number where the mask holds, what is there elsewhere."""
    if mask.dtype != "b1" or mask.ndim != array.ndim or isinstance(value, ArrayValue):
        raise NoRule("an assignment by an array of indices, or of an array by a mask")
    for axis in range(array.ndim):
        if not b.compare("eq", b.dim(mask, axis), b.dim(array, axis)):
            raise NoRule("a mask of another shape")
    chosen = b.array("where", (mask.node, number_node(b, array.dtype, value), array.node), array.dtype, array.shape)
    stores.store(b, array, chosen.node)


def _array_value(b: Builder, target: ArrayValue, value: ArrayValue) -> Node:
    """The node of an array to be stored: broadcastable, of the target's dtype, in memory that no later store changes."""
    if not target.ndim:
        raise NoRule("an array assigned to a single element")
    while value.ndim > target.ndim:
        length = b.dim(value, 0)
        if not b.compare("eq", length, b.index(1)):
            raise NoRule("a value that does not broadcast to the target")
        value = view_index(b, value, 0, b.index(0))
    stores.secure_broadcast(b, target, value)
    if value.dtype != target.dtype:
        if not can_astype(value.dtype, target.dtype):
            raise NoRule(f"an assignment of {value.dtype} to {target.dtype}")
        return stores.astype(b, value, target.dtype).node
    if value.buffer.fresh and value.buffer is not target.buffer:
        return value.node
    node = stores.copy(b, value).node
    node.elements = 0  # only the store is a pass over memory
    return node


def number_node(b: Builder, code: str, value: Value) -> Node:
    """The node of a number as an element of dtype `code`, converted as assignment does."""
    op = operand(value)
    if op.weak is None and not safe(op.code, code):
        raise NoRule(f"an assignment of {op.code} to {code}")
    return element_node(b, op, code)


# -- parsing -----------------------------------------------------------------------------------------------------------


def _raw_parts(index: Value) -> list[Part]:
    """The parts of an index as written."""
    items = items_of(index)
    return [_part(item) for item in ((index,) if items is None else items)]


def _part(item: Value) -> Part:
    if isinstance(item, ConstValue):
        if item.value is None:
            return _NEWAXIS
        if item.value is Ellipsis:
            return _ELLIPSIS
        if type(item.value) is slice:
            s = item.value
            return SliceValue(ConstValue(s.start), ConstValue(s.stop), ConstValue(s.step))
        if type(item.value) in (int, DTYPE["i8"].type):
            return item
    if isinstance(item, SliceValue) or (isinstance(item, ScalarValue) and item.type.dtype == "i8"):
        return item
    raise NoRule("an index that is not made of plain ints, slices, Ellipsis and None")


def _parts(b: Builder, index: Value, ndim: int) -> list[Part]:
    """The parts with the Ellipsis, written or implied at the end, replaced by full slices (None)."""
    parts = _raw_parts(index)
    consumed = sum(part is not _NEWAXIS and part is not _ELLIPSIS for part in parts)
    if consumed > ndim or sum(part is _ELLIPSIS for part in parts) > 1:
        raise NoRule("too many indices")
    if len(parts) - consumed + ndim > 8 + sum(isinstance(p, ConstValue | ScalarValue) for p in parts):
        raise NoRule("a view of unsupported rank")
    full: list[Part] = [None] * (ndim - consumed)
    at = next((i for i, part in enumerate(parts) if part is _ELLIPSIS), None)
    if at is None:
        return parts + full
    return parts[:at] + full + parts[at + 1 :]


# -- views -------------------------------------------------------------------------------------------------------------


def _view(b: Builder, array: ArrayValue, parts: Sequence[Part]) -> ArrayValue:
    """The view that the parts describe: always a new object, even if it shows the whole array."""
    view, axis = array, 0
    for part in parts:
        if part is None:
            axis += 1
        elif part is _NEWAXIS:
            view = view_newaxis(b, view, axis)
            axis += 1
        elif isinstance(part, SliceValue):
            if not (is_none(part.start) and is_none(part.stop) and is_none(part.step)):
                view = view_slice(b, view, axis, part.start, part.stop, part.step)
            axis += 1
        else:
            assert isinstance(part, ConstValue | ScalarValue)
            view = view_index(b, view, axis, integer(b, part))
    return view_whole(b, view) if view is array else view


def view_whole(b: Builder, array: ArrayValue) -> ArrayValue:
    """A new view on all of an array."""
    return b.view("slice", array, (), array.shape, ccontig=array.ccontig, corder=array.corder, axis=0, given=(False, False, False))


def view_index(b: Builder, array: ArrayValue, axis: int, i: ScalarValue) -> ArrayValue:
    """The view without `axis`, at position i of it. The hint must be in bounds; the node leaves the region where the index is not."""
    if i.hint is not None and not -array.shape[axis] <= i.hint < array.shape[axis]:
        raise NoRule("an index out of bounds")
    shape = array.shape[:axis] + array.shape[axis + 1 :]
    return b.view("index", array, (i.node,), shape, ccontig=(array.ccontig and axis == 0) or not shape, corder=array.ordered, axis=axis)


def view_newaxis(b: Builder, array: ArrayValue, axis: int) -> ArrayValue:
    """The view with an axis of length one before `axis`."""
    shape = (*array.shape[:axis], 1, *array.shape[axis:])
    return b.view("newaxis", array, (), shape, ccontig=array.ccontig, corder=array.ordered, axis=axis)


def view_slice(b: Builder, array: ArrayValue, axis: int, start: Value, stop: Value, step: Value) -> ArrayValue:
    """The view with `axis` sliced."""
    limits = [None if is_none(limit) else integer(b, limit) for limit in (start, stop, step)]
    if any(limit is not None and limit.hint is None for limit in limits):
        raise NoRule("a slice by a number computed in this region")
    by = limits[2]
    if by is not None and not b.compare("ne", by, b.index(0)):
        raise NoRule("a slice step of zero")
    hints = (None if limit is None else limit.hint for limit in limits)
    length = len(range(*slice(*hints).indices(array.shape[axis])))
    shape = (*array.shape[:axis], length, *array.shape[axis + 1 :])
    dense = axis == 0 and (by is None or b.known(by) == 1)
    given = tuple(limit is not None for limit in limits)
    nodes = [limit.node for limit in limits if limit is not None]
    return b.view("slice", array, nodes, shape, ccontig=array.ccontig and dense, corder=array.ordered, axis=axis, given=given)
