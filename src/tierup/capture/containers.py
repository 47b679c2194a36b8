"""Tuples, lists, dicts, slices, unpacking, iteration over what is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierup.arrays.values import ArrayValue, ConstValue, DictValue, ListValue, ObjectValue, SliceValue, TupleValue, Value
from tierup.bytecode.canonical import Canon, Op
from tierup.capture.dispatch import handles
from tierup.capture.outcome import Break
from tierup.capture.variables import IterValue, RangeValue, ViewValue

if TYPE_CHECKING:
    from tierup.capture.executor import Executor
    from tierup.capture.scope import Scope

_MAX_UNROLL = 32


def deep_force(ex: Executor, value: Value) -> Value:
    """Force a value and what it is made of (for indices and arguments of array rules)."""
    value = ex.region.force(value)
    if isinstance(value, TupleValue):
        return TupleValue(tuple(deep_force(ex, v) for v in value.items), value.origin)
    if isinstance(value, ListValue):
        return ListValue([deep_force(ex, v) for v in value.items], value.origin)
    if isinstance(value, SliceValue):
        return SliceValue(*(ex.region.force(v) for v in (value.start, value.stop, value.step)))
    if isinstance(value, ConstValue) and type(value.value) is tuple:
        return TupleValue(tuple(deep_force(ex, ConstValue(v)) for v in value.value))
    if isinstance(value, ConstValue) and type(value.value) is slice:
        s = value.value
        return SliceValue(ConstValue(s.start), ConstValue(s.stop), ConstValue(s.step))
    if isinstance(value, ObjectValue) and type(value.live) is slice:
        raise Break("a slice object from outside")
    return value


def known_items(ex: Executor, value: Value) -> list[Value]:
    """The items of a sequence, dict (keys) or range that is known. Raises Break otherwise."""
    value = ex.region.force(value)
    if isinstance(value, TupleValue | ListValue):
        return list(value.items)
    if isinstance(value, DictValue):
        return [ConstValue(k) for k in value.items]
    if isinstance(value, ConstValue) and type(value.value) in (tuple, str):
        return [ConstValue(v) for v in value.value]
    if isinstance(value, RangeValue):
        return _range_items(ex, value)
    if isinstance(value, ViewValue):
        return list(value.items)
    if isinstance(value, IterValue):
        rest = value.items[value.position :]
        ex.region.change(value, "position", len(value.items))
        return rest
    raise Break(f"iteration over {type(value).__name__}")


def _range_items(ex: Executor, value: RangeValue) -> list[Value]:
    trip = range(value.start.hint, value.stop.hint, value.step.hint)
    if len(trip) > _MAX_UNROLL:
        raise Break("a loop of more than 32 iterations")
    start, stop, step = (ex.builder.concrete(v) for v in (value.start, value.stop, value.step))
    return [ConstValue(i) for i in range(start, stop, step)]


def position(ex: Executor, key: Value, length: int) -> int:
    """A list position from an index value. Raises Break if out of range or not an int."""
    index = ex.builder.concrete(key)
    if not -length <= index < length:
        raise Break("index out of range")
    return index


def sequence_item(ex: Executor, container: TupleValue | ListValue, key: Value) -> Value:
    """container[key] for an int or a constant slice."""
    items = list(container.items)
    if isinstance(key, SliceValue):
        bounds = [ex.region.force(v) for v in (key.start, key.stop, key.step)]
        ints = [None if isinstance(v, ConstValue) and v.value is None else ex.builder.concrete(v) for v in bounds]
        part = items[slice(*ints)]
        if isinstance(container, TupleValue) and len(part) == len(items) and ints[2] in (None, 1):
            return container  # as Python: all of a tuple is the tuple itself
        return TupleValue(tuple(part)) if isinstance(container, TupleValue) else ListValue(part)
    return items[position(ex, key, len(items))]


@handles(Op.BUILD_TUPLE)
def build_tuple(ex: Executor, scope: Scope, canon: Canon) -> None:
    scope.push(TupleValue(tuple(scope.popn(canon.arg))))


@handles(Op.BUILD_LIST)
def build_list(ex: Executor, scope: Scope, canon: Canon) -> None:
    scope.push(ListValue(scope.popn(canon.arg)))


@handles(Op.BUILD_MAP)
def build_map(ex: Executor, scope: Scope, canon: Canon) -> None:
    flat = scope.popn(2 * canon.arg)
    items: dict[str, Value] = {}
    for key, value in zip(flat[::2], flat[1::2], strict=True):
        items[_string_key(ex.region.force(key))] = value
    scope.push(DictValue(items))


@handles(Op.BUILD_CONST_KEY_MAP)
def build_const_key_map(ex: Executor, scope: Scope, canon: Canon) -> None:
    keys = scope.pop()
    if not isinstance(keys, ConstValue) or any(type(k) is not str for k in keys.value):
        raise Break("a dict with keys that are not str")
    scope.push(DictValue(dict(zip(keys.value, scope.popn(canon.arg), strict=True))))


def _string_key(key: Value) -> str:
    if not isinstance(key, ConstValue) or type(key.value) is not str:
        raise Break("a dict with keys that are not str")
    return str(key.value)


@handles(Op.BUILD_SLICE)
def build_slice(ex: Executor, scope: Scope, canon: Canon) -> None:
    parts = scope.popn(canon.arg)
    scope.push(SliceValue(parts[0], parts[1], parts[2] if len(parts) == 3 else ConstValue(None)))


@handles(Op.LIST_APPEND)
def list_append(ex: Executor, scope: Scope, canon: Canon) -> None:
    value = scope.pop()
    target = scope.stack[-canon.arg]
    if not isinstance(target, ListValue) or target.origin is not None:
        raise Break("append to a list from outside")
    ex.region.change(target, "items", [*target.items, value])


@handles(Op.LIST_EXTEND)
def list_extend(ex: Executor, scope: Scope, canon: Canon) -> None:
    items = known_items(ex, scope.stack[-1])
    target = scope.stack[-1 - canon.arg]
    if not isinstance(target, ListValue) or target.origin is not None:
        raise Break("extension of a list from outside")
    scope.pop()
    ex.region.change(target, "items", [*target.items, *items])


@handles(Op.UNPACK_SEQUENCE)
def unpack_sequence(ex: Executor, scope: Scope, canon: Canon) -> None:
    value = ex.region.force(scope.stack[-1])
    if isinstance(value, ArrayValue):
        raise Break("unpacking of an array")
    items = known_items(ex, value)
    if len(items) != canon.arg:
        raise Break("wrong number of values to unpack")
    scope.pop()
    for item in reversed(items):
        scope.push(item)


@handles(Op.GET_ITER)
def get_iter(ex: Executor, scope: Scope, canon: Canon) -> None:
    value = ex.region.force(scope.stack[-1])
    if isinstance(value, IterValue):
        return
    if isinstance(value, RangeValue) and not scope.inlined:
        raise Break("a loop over a range")
    if isinstance(value, ListValue | DictValue) and value.origin is None:
        raise Break("a loop over a container made in the region")
    items = known_items(ex, value)
    if len(items) > _MAX_UNROLL:
        raise Break("a loop of more than 32 iterations")
    scope.pop()
    scope.push(IterValue(items))


@handles(Op.FOR_ITER)
def for_iter(ex: Executor, scope: Scope, canon: Canon) -> None:
    iterator = scope.stack[-1]
    if not isinstance(iterator, IterValue):
        raise Break("a loop over an iterator from outside")
    if iterator.position < len(iterator.items):
        item = iterator.items[iterator.position]
        ex.region.change(iterator, "position", iterator.position + 1)
        scope.push(item)
        return
    scope.pop()
    scope.jump(canon.arg)


@handles(Op.LIST_TO_TUPLE)
def list_to_tuple(ex: Executor, scope: Scope, canon: Canon) -> None:
    items = known_items(ex, scope.stack[-1])
    scope.pop()
    scope.push(TupleValue(tuple(items)))
