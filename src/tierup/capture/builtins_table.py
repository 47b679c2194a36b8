"""Builtin functions that capture understands on numbers and known containers, found by identity."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tierup.arrays.values import ArrayValue, ConstValue, DictValue, ListValue, ScalarValue, TupleValue, Value
from tierup.capture import containers, scalars
from tierup.capture.outcome import Break
from tierup.capture.variables import ContainerMethodValue, IterValue, RangeValue, ViewValue

if TYPE_CHECKING:
    from tierup.capture.executor import Executor

BuiltinHandler = Callable[["Executor", list[Value], dict[str, Value]], Value]
_TABLE: dict[int, tuple[Any, BuiltinHandler]] = {}


def lookup(target: Any) -> BuiltinHandler | None:
    """The handler for a builtin, or None."""
    entry = _TABLE.get(id(target))
    return entry[1] if entry is not None and entry[0] is target else None


def _builtin(target: Any, count: range) -> Callable[[BuiltinHandler], BuiltinHandler]:
    def register(fn: BuiltinHandler) -> BuiltinHandler:
        def checked(ex: Executor, args: list[Value], kwargs: dict[str, Value]) -> Value:
            if kwargs or len(args) not in count:
                raise Break(f"these arguments of {target.__name__}")
            return fn(ex, args, kwargs)

        _TABLE[id(target)] = (target, checked)
        return fn

    return register


@_builtin(builtins.len, range(1, 2))
def _len(ex: Executor, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = ex.region.force(args[0])
    if isinstance(value, ArrayValue):
        result: Value = ex.library.length(ex.builder, value)
        return result
    if isinstance(value, TupleValue | ListValue | DictValue):
        return ConstValue(len(value.items))
    if isinstance(value, ConstValue) and type(value.value) in (str, bytes, tuple):
        return ConstValue(len(value.value))
    raise Break("len of this object")


@_builtin(builtins.range, range(1, 4))
def _range(ex: Executor, args: list[Value], kwargs: dict[str, Value]) -> Value:
    ints = [ex.builder.index(ex.region.force(a)) for a in args]
    zero, one = ex.builder.index(0), ex.builder.index(1)
    if len(ints) == 1:
        return RangeValue(zero, ints[0], one)
    step = ints[2] if len(ints) == 3 else one
    if step.hint == 0:
        raise Break("range() with a zero step")
    return RangeValue(ints[0], ints[1], step)


@_builtin(builtins.abs, range(1, 2))
def _abs(ex: Executor, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = ex.region.force(args[0])
    if scalars.is_number(value):
        return scalars.unary(ex.builder, "abs", value)
    if isinstance(value, ArrayValue | ScalarValue):
        result: Value = ex.library.unary_op(ex.builder, "abs", value)
        return result
    raise Break("abs of this object")


def _extreme(ex: Executor, args: list[Value], symbol: str) -> Value:
    values = [ex.region.force(a) for a in args]
    if len(values) == 1:
        values = [ex.region.force(v) for v in containers.known_items(ex, values[0])]
    if not values or not all(scalars.is_number(v) for v in values):
        raise Break("min or max of these values")
    best = values[0]
    for value in values[1:]:
        better = scalars.compare(ex.builder, symbol, value, best)
        if not isinstance(better, ConstValue):
            raise Break("min or max of computed floats")
        best = value if better.value else best
    return best


@_builtin(builtins.min, range(1, 9))
def _min(ex: Executor, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return _extreme(ex, args, "<")


@_builtin(builtins.max, range(1, 9))
def _max(ex: Executor, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return _extreme(ex, args, ">")


@_builtin(builtins.float, range(1, 2))
def _float(ex: Executor, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = ex.region.force(args[0])
    if scalars.is_number(value):
        return scalars.to_float(ex.builder, value)
    raise Break("float() of this object")


@_builtin(builtins.int, range(1, 2))
def _int(ex: Executor, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = ex.region.force(args[0])
    if isinstance(value, ScalarValue) and value.is_int:
        return value
    if isinstance(value, ConstValue) and type(value.value) in (int, bool):
        return ConstValue(int(value.value))
    raise Break("int() of this object")


@_builtin(builtins.tuple, range(0, 2))
def _tuple(ex: Executor, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if not args:
        return ConstValue(())
    value = ex.region.force(args[0])
    known = isinstance(value, TupleValue) or (isinstance(value, ConstValue) and type(value.value) is tuple)
    return value if known else TupleValue(tuple(_items(ex, value)))


@_builtin(builtins.list, range(0, 2))
def _list(ex: Executor, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return ListValue(_items(ex, args[0]) if args else [])


def _items(ex: Executor, value: Value) -> list[Value]:
    if isinstance(ex.region.force(value), ArrayValue):
        raise Break("iteration over an array")
    return containers.known_items(ex, value)


def _stable_items(ex: Executor, value: Value) -> list[Value]:
    """Items of what cannot change or be consumed while a lazy iterator runs over it."""
    value = ex.region.force(value)
    if isinstance(value, IterValue) or (isinstance(value, ListValue | DictValue) and value.origin is None):
        raise Break("a lazy iterator over something that may change")
    return _items(ex, value)


@_builtin(builtins.enumerate, range(1, 2))
def _enumerate(ex: Executor, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return IterValue([TupleValue((ConstValue(i), v)) for i, v in enumerate(_stable_items(ex, args[0]))])


@_builtin(builtins.zip, range(1, 9))
def _zip(ex: Executor, args: list[Value], kwargs: dict[str, Value]) -> Value:
    rows = zip(*(_stable_items(ex, a) for a in args), strict=False)
    return IterValue([TupleValue(tuple(row)) for row in rows])


@_builtin(builtins.isinstance, range(2, 3))
def _isinstance(ex: Executor, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value, kind = ex.region.force(args[0]), ex.region.force(args[1])
    kinds = kind.items if isinstance(kind, TupleValue) else (kind,)
    known = [ex.region.force(k) for k in kinds]
    live = _exact_live(value)
    if live is None or not all(isinstance(k, ConstValue) and type(k.value) is type for k in known):
        raise Break("isinstance of these")
    return ConstValue(any(isinstance(live[0], k.value) for k in known if isinstance(k, ConstValue)))


def _exact_live(value: Value) -> tuple[Any] | None:
    """The present object if guards have fixed its exact type."""
    if isinstance(value, ConstValue) and value.source is None:
        return (value.value,)
    origin = getattr(value, "origin", None)
    if origin is not None and not isinstance(value, ConstValue):
        return (origin.live,)
    return None


def container_method(ex: Executor, method: ContainerMethodValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Methods of lists and dicts that are made in the region or guarded."""
    target = method.container
    if kwargs:
        raise Break(f"{method.name} with keywords")
    if isinstance(target, ListValue) and method.name == "append" and len(args) == 1:
        if target.origin is not None:
            raise Break("append to a list from outside")
        ex.region.change(target, "items", [*target.items, args[0]])
        return ConstValue(None)
    if isinstance(target, DictValue) and target.origin is not None:
        return _dict_method(ex, target, method.name, args)
    raise Break(f"method {method.name}")


def _dict_method(ex: Executor, target: DictValue, name: str, args: list[Value]) -> Value:
    if name == "get" and args:
        key = ex.region.force(args[0])
        if isinstance(key, ConstValue) and type(key.value) is str:
            default = args[1] if len(args) > 1 else ConstValue(None)
            return target.items.get(key.value, default)
    if name == "items" and not args:
        return ViewValue(tuple(TupleValue((ConstValue(k), v)) for k, v in target.items.items()))
    if name == "keys" and not args:
        return ViewValue(tuple(ConstValue(k) for k in target.items))
    if name == "values" and not args:
        return ViewValue(tuple(target.items.values()))
    raise Break(f"dict.{name}")
