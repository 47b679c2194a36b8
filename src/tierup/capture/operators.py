"""Operators: unary, binary, in place, comparison, identity, containment, subscripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierup.arrays.builder import NoRule
from tierup.arrays.values import ArrayValue, ConstValue, DictValue, ListValue, ScalarValue, SliceValue, TupleValue, Value
from tierup.bytecode.canonical import Canon, Op
from tierup.capture import containers, control, identity, scalars
from tierup.capture.dispatch import handles
from tierup.capture.outcome import Break

if TYPE_CHECKING:
    from tierup.capture.executor import Executor
    from tierup.capture.scope import Scope


def _numpy_like(value: Value) -> bool:
    return isinstance(value, ArrayValue) or (isinstance(value, ScalarValue) and not value.is_python)


def describe(value: Value) -> str:
    """A few words on a value for a break's reason."""
    live: Any = getattr(value, "live", None)
    if isinstance(value, ConstValue):
        live = value.value
    return type(live).__name__ if live is not None else type(value).__name__


@handles(Op.BINARY_OP)
def binary_op(ex: Executor, scope: Scope, canon: Canon) -> None:
    left, right = ex.region.force(scope.stack[-2]), ex.region.force(scope.stack[-1])
    if isinstance(left, ArrayValue) and canon.arg.endswith("=") and _update_fresh(ex, canon.arg[:-1], left, right):
        result = scope.stack[-2]
    else:
        result = binary(ex, canon.arg, left, right)
    scope.popn(2)
    scope.push(result)


def _update_fresh(ex: Executor, symbol: str, left: ArrayValue, right: Value) -> bool:
    """`left op= right` on an array that was made in this region and of which there are no views: every name for it then means the new
    result, and no store is needed. False where that would not be the same to the user (dtype, shape or memory order would differ)."""
    region = ex.region
    if not left.buffer.fresh or not left.ordered or region.has_views(left):
        return False
    mark = region.mark()
    try:
        new = ex.library.binary_op(ex.builder, symbol, left, right)
    except NoRule:
        new = None
    if isinstance(new, ArrayValue) and ex.library.depends_on_output(new):
        new = None
    if isinstance(new, ArrayValue) and (new.dtype, new.shape) == (left.dtype, left.shape) and new.ordered and new.buffer.fresh:
        region.set_version(left, new)
        return True
    region.rollback(mark)
    return False


def binary(ex: Executor, symbol: str, left: Value, right: Value) -> Value:
    """left `symbol` right; both already forced. In-place symbols end in '='."""
    plain = symbol.rstrip("=") if symbol not in ("==", "<=", ">=", "!=") else symbol
    if scalars.is_number(left) and scalars.is_number(right):
        return scalars.binary(ex.builder, plain, left, right)
    if _numpy_like(left) or _numpy_like(right):
        result: Value = ex.library.binary_op(ex.builder, symbol if isinstance(left, ArrayValue) else plain, left, right)
        return result
    if isinstance(left, TupleValue) and isinstance(right, TupleValue) and symbol == "+":
        if not left.items or not right.items:
            return right if right.items else left  # as Python: no new tuple
        return TupleValue(left.items + right.items)
    if isinstance(left, ConstValue) and isinstance(right, ConstValue):
        folded = scalars.fold(plain, left, right)
        if folded is not None:
            return folded
    raise Break(f"{symbol} on {describe(left)} and {describe(right)}")


@handles(Op.UNARY_NEGATIVE, Op.UNARY_INVERT, Op.UNARY_POSITIVE)
def unary(ex: Executor, scope: Scope, canon: Canon) -> None:
    symbol = {Op.UNARY_NEGATIVE: "-", Op.UNARY_INVERT: "~", Op.UNARY_POSITIVE: "+"}[canon.op]
    value = ex.region.force(scope.stack[-1])
    if scalars.is_number(value):
        result = scalars.unary(ex.builder, symbol, value)
    elif _numpy_like(value):
        result = ex.library.unary_op(ex.builder, symbol, value)
    else:
        raise Break(f"unary {symbol} on {describe(value)}")
    scope.pop()
    scope.push(result)


@handles(Op.COMPARE)
def compare(ex: Executor, scope: Scope, canon: Canon) -> None:
    symbol, as_bool = canon.arg
    left, right = ex.region.force(scope.stack[-2]), ex.region.force(scope.stack[-1])
    if scalars.is_number(left) and scalars.is_number(right):
        result = scalars.compare(ex.builder, symbol, left, right)
    elif _numpy_like(left) or _numpy_like(right):
        result = ex.library.compare(ex.builder, symbol, left, right)
    elif isinstance(left, ConstValue) and isinstance(right, ConstValue):
        folded = scalars.fold(symbol, left, right)
        if folded is None:
            raise Break(f"{symbol} on {describe(left)} and {describe(right)}")
        result = folded
    else:
        raise Break(f"{symbol} on {describe(left)} and {describe(right)}")
    if as_bool and not (isinstance(result, ScalarValue) and result.is_python):
        result = ConstValue(control.truth(ex, result))
    scope.popn(2)
    scope.push(result)


@handles(Op.IS_OP)
def is_op(ex: Executor, scope: Scope, canon: Canon) -> None:
    same = identity.same_object(ex.region, scope.stack[-2], scope.stack[-1])
    scope.popn(2)
    scope.push(ConstValue(same is not bool(canon.arg)))


@handles(Op.CONTAINS_OP)
def contains_op(ex: Executor, scope: Scope, canon: Canon) -> None:
    key, container = ex.region.force(scope.stack[-2]), ex.region.force(scope.stack[-1])
    if isinstance(container, DictValue) and isinstance(key, ConstValue) and type(key.value) is str:
        found = key.value in container.items
    elif isinstance(container, ConstValue) and isinstance(key, ConstValue) and _plain_members(container.value, key.value):
        found = key.value in container.value
    else:
        raise Break(f"containment in {describe(container)}")
    scope.popn(2)
    scope.push(ConstValue(found is not bool(canon.arg)))


def _plain_members(container: Any, key: Any) -> bool:
    plain = (str, int, float, type(None))
    if type(container) is str:
        return type(key) is str
    return type(container) in (tuple, frozenset) and type(key) in plain and all(type(x) in plain for x in container)


@handles(Op.BINARY_SUBSCR)
def binary_subscr(ex: Executor, scope: Scope, canon: Canon) -> None:
    result = subscript(ex, scope.stack[-2], scope.stack[-1])
    scope.popn(2)
    scope.push(result)


@handles(Op.BINARY_SLICE)
def binary_slice(ex: Executor, scope: Scope, canon: Canon) -> None:
    start, stop = scope.stack[-2], scope.stack[-1]
    result = subscript(ex, scope.stack[-3], SliceValue(start, stop, ConstValue(None)))
    scope.popn(3)
    scope.push(result)


def subscript(ex: Executor, container: Value, key: Value) -> Value:
    """container[key]."""
    container = ex.region.force(container)
    if isinstance(container, ArrayValue):
        item: Value = ex.library.getitem(ex.builder, container, containers.deep_force(ex, key))
        return item
    key = ex.region.force(key)
    if isinstance(container, TupleValue | ListValue):
        return containers.sequence_item(ex, container, key)
    if isinstance(container, DictValue) and isinstance(key, ConstValue) and type(key.value) is str and key.value in container.items:
        return container.items[key.value]
    raise Break(f"subscript of {describe(container)}")


@handles(Op.STORE_SUBSCR)
def store_subscr(ex: Executor, scope: Scope, canon: Canon) -> None:
    value, container, key = scope.stack[-3], scope.stack[-2], scope.stack[-1]
    store(ex, container, key, value)
    scope.popn(3)


@handles(Op.STORE_SLICE)
def store_slice(ex: Executor, scope: Scope, canon: Canon) -> None:
    value, container, start, stop = scope.stack[-4:]
    store(ex, container, SliceValue(start, stop, ConstValue(None)), value)
    scope.popn(4)


def store(ex: Executor, container: Value, key: Value, value: Value) -> None:
    """container[key] = value. Only array elements and fresh containers; everything else keeps its original instruction."""
    container = ex.region.force(container)
    if isinstance(container, ArrayValue):
        ex.library.setitem(ex.builder, container, containers.deep_force(ex, key), ex.region.force(value))
        return
    key = ex.region.force(key)
    if isinstance(container, DictValue) and container.origin is None and isinstance(key, ConstValue) and type(key.value) is str:
        ex.region.change(container, "items", {**container.items, key.value: value})
        return
    if isinstance(container, ListValue) and container.origin is None:
        items = list(container.items)
        items[containers.position(ex, key, len(items))] = value
        ex.region.change(container, "items", items)
        return
    raise Break(f"a store into {describe(container)}")
