"""`is`: decided for the objects of this translation, and secured so that other objects find another decision or none.

What a guard says of a value is not enough: equal strings and functions of one code are told apart by identity only. Objects from outside
are therefore compared again at run time, unless their types differ, which a guard can demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierup.arrays.values import ArrayValue, ConstValue, ObjectValue, ScalarValue, TupleValue, Value
from tierup.capture.outcome import Break
from tierup.capture.variables import MethodValue
from tierup.graph.ir import NOTHING, OBJECT, Node
from tierup.guards.sources import Pinned

if TYPE_CHECKING:
    from tierup.capture.region import Region

_SINGLETONS = (type(None), bool, type(Ellipsis), type(NotImplemented))
_NUMBERS = (int, float, complex, bool)


def same_object(region: Region, a: Value, b: Value) -> bool:
    """Whether two values are one object. Raises Break where it depends on how Python keeps numbers."""
    a, b = _reached(region, a), _reached(region, b)
    if a is b:
        return True
    if isinstance(a, ObjectValue | ConstValue) and isinstance(b, ObjectValue | ConstValue):
        return _same_existing(region, a, b)
    if isinstance(a, ScalarValue):
        _refuse_number(region, b)
    if isinstance(b, ScalarValue):
        _refuse_number(region, a)
    return False  # what the region made is no object from outside


def _reached(region: Region, value: Value) -> Value:
    """The object itself where it is one from outside: by its source if it has one."""
    if isinstance(value, ArrayValue):
        value = region.force(value)
    if isinstance(value, ConstValue) and value.source is not None:
        return ObjectValue(value.source, value.value)
    if isinstance(value, TupleValue) and not value.items:
        return ConstValue(())
    origin = getattr(value, "origin", None)
    return origin if isinstance(origin, ObjectValue) else value


def _same_existing(region: Region, a: ObjectValue | ConstValue, b: ObjectValue | ConstValue) -> bool:
    if isinstance(a, ObjectValue) and isinstance(b, ObjectValue) and a.source == b.source:
        return True
    if isinstance(a, ConstValue) and isinstance(b, ConstValue):
        return a.value is b.value
    x, y = _live(a), _live(b)
    if type(x) is not type(y):
        _fix_type(region, a)
        _fix_type(region, b)
        return False
    if type(x) in _SINGLETONS:
        region.force(a)
        region.force(b)
        return x is y
    region.builder.node("check_is" if x is y else "check_isnot", (_node(region, a), _node(region, b)), NOTHING)
    return x is y


def _live(value: ObjectValue | ConstValue) -> object:
    return value.live if isinstance(value, ObjectValue) else value.value


def _node(region: Region, value: ObjectValue | ConstValue) -> Node:
    if isinstance(value, ObjectValue):
        return region.object_node(value)
    return region.builder.node("constant", (), OBJECT, value=value.value)


def _fix_type(region: Region, value: ObjectValue | ConstValue) -> None:
    """Guard the exact type of an object from outside, if nothing does so far."""
    if isinstance(value, ConstValue):
        return
    if type(value.live) in _SINGLETONS or region.library.recognise(value.live):
        region.force(value)
    elif isinstance(region.known(value), ObjectValue | MethodValue):
        region.guard("TYPE_IS", value.source, Pinned(type(value.live)))


def _refuse_number(region: Region, other: Value) -> None:
    """Raises Break if the other side of a computed number may be the same number."""
    if isinstance(other, ObjectValue | ConstValue):
        if type(_live(other)) in _NUMBERS:
            raise Break("identity of numbers")
        _fix_type(region, other)
    elif isinstance(other, ScalarValue):
        raise Break("identity of numbers")
