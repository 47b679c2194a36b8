"""What `for` goes through: ranges, arrays, lists, and `enumerate` and `zip` of these.

An iterator is over or not before anything moves, so a loop asks first, and moves all parts of a `zip` only if none is over. What `zip` has
moved when it turns out to be over nobody can see, because iterators that something else refers to are not compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tierup.loops import lists, memory, numbers
from tierup.loops.values import Refused, Value, integer, tuple_of

if TYPE_CHECKING:
    from tierup.loops.tracer import Tracer

KINDS: Final = ("iterator", "elements", "enumerate", "zip")


def iterated(t: Tracer, value: Value) -> Value:
    """iter(value)"""
    if value.kind == "range":
        return Value("iterator", None, value.parts)
    if value.kind in ("array", "list"):
        return Value("elements", None, ("0",), (value,))
    if value.kind in KINDS:
        return value
    raise Refused(f"a loop over a {value.kind}")


def is_over(t: Tracer, iterator: Value) -> str:
    """i1: there is no next item."""
    let = t.fn.let
    match iterator.kind:
        case "iterator":
            return let(f"icmp eq i64 {iterator.parts[2]}, 0")
        case "elements":
            through = iterator.items[0]
            length = lists.length(t, through) if through.kind == "list" else memory.geometry(t, through).shape[0]
            return let(f"icmp sge i64 {iterator.one}, {length}")
        case "enumerate":
            return is_over(t, iterator.items[0])
        case "zip":
            first, *rest = (is_over(t, part) for part in iterator.items)
            for flag in rest:
                first = let(f"or i1 {first}, {flag}")
            return first
    raise Refused("a loop over something that is no range, array or list")


def advanced(t: Tracer, iterator: Value) -> tuple[Value, Value]:
    """The iterator behind its next item, and that item."""
    let, detail = t.fn.let, iterator.detail
    match iterator.kind:
        case "iterator":
            item, step, left = iterator.parts
            after = (let(f"add nsw i64 {item}, {step}"), step, let(f"sub nsw i64 {left}, 1"))
            return Value("iterator", detail, after), integer(item)
        case "elements":
            through = iterator.items[0]
            element = (lists.item_at if through.kind == "list" else memory.element)(t, through, iterator.one)
            return Value("elements", detail, (let(f"add i64 {iterator.one}, 1"),), iterator.items), element
        case "enumerate":
            inner, element = advanced(t, iterator.items[0])
            after_index = let(f"add i64 {iterator.one}, 1")
            return Value("enumerate", detail, (after_index,), (inner,)), tuple_of([integer(iterator.one), element])
    moved = [advanced(t, part) for part in iterator.items]
    return Value("zip", detail, (), tuple(part for part, _ in moved)), tuple_of([element for _, element in moved])


# ---- calls ---------------------------------------------------------------------------------------------------------


def enumerated(t: Tracer, args: Sequence[Value]) -> Value:
    """enumerate(x) and enumerate(x, start)"""
    if len(args) not in (1, 2):
        raise Refused(f"a call with {len(args)} arguments")
    start = numbers.number(args[1]) if len(args) == 2 else integer("0")
    if start.kind != "int":
        raise Refused("enumerate from other than an int")
    t.require(t.fn.let(f"icmp slt i64 {start.one}, {1 << 62}"))
    return Value("enumerate", None, (start.one,), (iterated(t, args[0]),))


def zipped(t: Tracer, args: Sequence[Value]) -> Value:
    """zip(x, …)"""
    if not args:
        raise Refused("zip of nothing")
    return Value("zip", None, (), tuple(iterated(t, arg) for arg in args))


def backwards(t: Tracer, args: Sequence[Value]) -> Value:
    """reversed(range)"""
    if len(args) != 1 or args[0].kind != "range":
        raise Refused("reversed of other than a range")
    start, step, count = args[0].parts
    let = t.fn.let
    turns = let(f"sub i64 {count}, 1")
    last = let(f"add i64 {start}, {let(f'mul i64 {turns}, {step}')}")
    first = let(f"select i1 {let(f'icmp eq i64 {count}, 0')}, i64 {start}, i64 {last}")
    return Value("iterator", None, (first, let(f"sub i64 0, {step}"), count))
