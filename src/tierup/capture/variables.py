"""Symbolic values that only capture knows: call slots, methods, ranges and iterators (the others are in `arrays.values`)."""

from __future__ import annotations

from dataclasses import dataclass

from tierup.arrays.protocol import Rule
from tierup.arrays.values import ArrayValue, ScalarValue, Value


@dataclass(frozen=True, slots=True, eq=False)
class NullValue(Value):
    """A NULL on the value stack (the empty half of a call's two slots)."""


NULL = NullValue()


@dataclass(frozen=True, slots=True, eq=False)
class MethodValue(Value):
    """A Python function found on a type, bound to an object; `function` is a ConstValue of the function."""

    function: Value
    self: Value


@dataclass(frozen=True, slots=True, eq=False)
class ArrayMethodValue(Value):
    """A method of an array, not called yet."""

    name: str
    array: ArrayValue


@dataclass(frozen=True, slots=True, eq=False)
class FunctionMethodValue(Value):
    """A method of one of the array library's functions, not called yet."""

    name: str
    rule: Rule


@dataclass(frozen=True, slots=True, eq=False)
class ContainerMethodValue(Value):
    """A method of a list, dict or tuple made in the region or guarded."""

    name: str
    container: Value


@dataclass(frozen=True, slots=True, eq=False)
class RangeValue(Value):
    """range(start, stop, step) with symbolic ends."""

    start: ScalarValue
    stop: ScalarValue
    step: ScalarValue


@dataclass(slots=True, eq=False)
class IterValue(Value):
    """An iterator made in the region over items that are all known; it cannot outlive the region."""

    items: list[Value]
    position: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class ViewValue(Value):
    """A dict's items(), keys() or values(): can be iterated again and again, nothing else is known of it."""

    items: tuple[Value, ...]
