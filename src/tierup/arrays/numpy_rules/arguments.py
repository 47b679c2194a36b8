"""Binding of call arguments to parameters, and reading of the arguments that must be known."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from tierup.arrays.builder import Builder, NoRule
from tierup.arrays.numpy_rules.operands import integer
from tierup.arrays.protocol import Rule
from tierup.arrays.values import ArrayValue, ConstValue, ScalarValue, TupleValue, Value

Bound = dict[str, Value | None]
BoundRule = Callable[[Builder, Bound], Value]

NONE: Final = ConstValue(None)


def signature(text: str) -> Callable[[BoundRule], Rule]:
    """Decorator: the rule takes a dict of the parameters in `text`, None for those not given.

    text is a list like "a, axis=, dtype=, /, out=, *, keepdims=": '=' marks the optional ones; before '/' positional only, after '*' by
    keyword only.
    """
    positional, by_name, required = _parse(text)

    def decorate(rule: BoundRule) -> Rule:
        @wraps(rule)
        def call(b: Builder, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
            if len(args) > len(positional):
                raise NoRule("too many positional arguments")
            bound: Bound = dict.fromkeys((*positional, *by_name))
            bound.update(zip(positional, args, strict=False))
            for name, value in kwargs.items():
                if name not in by_name or bound[name] is not None:
                    raise NoRule(f"the keyword argument {name!r}")
                bound[name] = value
            if any(bound[name] is None for name in required):
                raise NoRule("a missing argument")
            return rule(b, bound)

        return call

    return decorate


def _parse(text: str) -> tuple[list[str], list[str], list[str]]:
    positional: list[str] = []
    by_name: list[str] = []
    required: list[str] = []
    keyword_only = False
    for part in text.replace(" ", "").split(","):
        if part == "/":
            by_name.clear()
        elif part == "*":
            keyword_only = True
        else:
            name = part.rstrip("=")
            by_name.append(name)
            if not keyword_only:
                positional.append(name)
            if name == part:
                required.append(name)
    return positional, by_name, required


def array_argument(value: Value | None) -> ArrayValue:
    """The array, or NoRule."""
    if isinstance(value, ArrayValue):
        return value
    raise NoRule("an argument that is not an array")


def is_none(value: Value | None) -> bool:
    """Not given, or None."""
    return value is None or (isinstance(value, ConstValue) and value.value is None)


def require_absent(bound: Bound, *names: str) -> None:
    """NoRule unless the named arguments are absent or None."""
    for name in names:
        if not is_none(bound[name]):
            raise NoRule(f"the argument {name!r}")


def constant(value: Value | None, default: Any, *allowed: Any) -> Any:
    """A constant argument that must be one of `allowed` (compared with type)."""
    if value is None:
        return default
    if isinstance(value, ConstValue):
        for candidate in (default, *allowed):
            if type(value.value) is type(candidate) and value.value == candidate:
                return candidate
    raise NoRule("an argument with an unusual value")


def flag(value: Value | None, default: bool) -> bool:
    """A constant True or False."""
    return bool(constant(value, default, True, False))


def axis_argument(b: Builder, value: Value, ndim: int) -> int:
    """A normalised axis in range, as a constant."""
    axis = b.concrete(value)
    if not -ndim <= axis < ndim:
        raise NoRule("an axis out of bounds")
    return axis % ndim


def items_of(value: Value) -> tuple[Value, ...] | None:
    """The items of a tuple, symbolic or constant; None for anything else."""
    if isinstance(value, TupleValue):
        return value.items
    if isinstance(value, ConstValue) and type(value.value) is tuple:
        return tuple(ConstValue(item) for item in value.value)
    return None


def axes_argument(b: Builder, value: Value, ndim: int) -> tuple[int, ...]:
    """Distinct normalised axes of an int or a tuple of ints."""
    items = items_of(value)
    axes = tuple(axis_argument(b, item, ndim) for item in ((value,) if items is None else items))
    if len(set(axes)) != len(axes):
        raise NoRule("a repeated axis")
    return axes


def shape_argument(b: Builder, value: Value) -> list[ScalarValue]:
    """The lengths of a shape given as an int or a tuple of ints."""
    items = items_of(value)
    lengths = [integer(b, item) for item in ((value,) if items is None else items)]
    if any(n.hint is None for n in lengths):
        raise NoRule("a length that was computed from array elements")
    return lengths


def secure_lengths(b: Builder, lengths: list[ScalarValue]) -> tuple[int, ...]:
    """Hints of a new array's lengths, each checked not to be negative; rank 1 to 8."""
    if not 1 <= len(lengths) <= 8:
        raise NoRule("an array of unsupported rank")
    for n in lengths:
        if not b.compare("ge", n, b.index(0)):
            raise NoRule("a negative length")
    return tuple(n.hint for n in lengths)
