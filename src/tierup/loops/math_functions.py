"""Functions of Python floats inside loops: the `math` module, and the operators that need the C library.

The functions called are the ones that CPython itself calls (Modules/mathmodule.c, Objects/floatobject.c). Arguments and results that are
infinite or no numbers leave the loop: Python raises for most of them, and treats the others one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from tierup import _core
from tierup.loops import memory, numbers
from tierup.loops.values import Refused, Value, boolean, floating, integer

if TYPE_CHECKING:
    from tierup.loops.tracer import Tracer

Rule = Callable[["Tracer", Sequence[Value]], Value]
_SMALLEST_NORMAL: Final = 2.0**-1022


def library(t: Tracer, name: str, *operands: str) -> str:
    """A function of the C library on doubles."""
    function = t.entry.pointer(_core.LOOP_HELPERS[name])
    given = ", ".join(f"double {operand}" for operand in operands)
    return t.fn.let(f"call double {function}({given}) memory(none) nounwind willreturn")


# ---- operators -----------------------------------------------------------------------------------------------------


def quotient_and_rest(t: Tracer, a: str, b: str) -> tuple[str, str]:
    """a // b and a % b (_float_div_mod and float_rem; npy_divmod is the same); leaves for a zero divisor."""
    let = t.fn.let
    t.require(let(f"fcmp une double {b}, 0.0"))
    rest = library(t, "fmod", a, b)
    quotient = let(f"fdiv double {let(f'fsub double {a}, {rest}')}, {b}")
    some = let(f"fcmp une double {rest}, 0.0")
    signs = let(f"xor i1 {let(f'fcmp olt double {b}, 0.0')}, {let(f'fcmp olt double {rest}, 0.0')}")
    differs = let(f"and i1 {some}, {signs}")
    lower = let(f"select i1 {differs}, double {let(f'fsub double {quotient}, 1.0')}, double {quotient}")
    moved = let(f"select i1 {differs}, double {let(f'fadd double {rest}, {b}')}, double {rest}")
    zero = t.fn.call("double", "llvm.copysign.f64", ("double", "0.0"), ("double", b))
    return _snapped(t, lower, a, b), let(f"select i1 {some}, double {moved}, double {zero}")


def _snapped(t: Tracer, quotient: str, a: str, b: str) -> str:
    """The nearest integer below a quotient that is one but for rounding."""
    let = t.fn.let
    floor = t.fn.call("double", "llvm.floor.f64", ("double", quotient))
    up = let(f"fcmp ogt double {let(f'fsub double {quotient}, {floor}')}, 5.0e-1")
    nearest = let(f"select i1 {up}, double {let(f'fadd double {floor}, 1.0')}, double {floor}")
    zero = t.fn.call("double", "llvm.copysign.f64", ("double", "0.0"), ("double", let(f"fdiv double {a}, {b}")))
    return let(f"select i1 {let(f'fcmp une double {quotient}, 0.0')}, double {nearest}, double {zero}")


def power(t: Tracer, base: Value, exponent: Value) -> str:
    """base ** exponent (float_pow) for a positive base, or any base that is not zero and a constant integer."""
    let, x, y = t.fn.let, numbers.as_double(t, base), numbers.as_double(t, exponent)
    whole = _constant_integer(exponent)
    if whole is None:
        t.require(let(f"fcmp ogt double {x}, 0.0"))
        return _finite_power(t, x, y)
    size = t.fn.call("double", "llvm.fabs.f64", ("double", x))
    t.require(let(f"fcmp ogt double {size}, 0.0"))
    result = _finite_power(t, size, y)
    return t.fn.call("double", "llvm.copysign.f64", ("double", result), ("double", x)) if whole % 2 else result


def _constant_integer(value: Value) -> int | None:
    text = value.one
    if value.kind == "int" and text.lstrip("-").isdigit() and abs(int(text)) <= 1 << 53:
        return int(text)
    if value.kind == "float" and text.startswith("0x"):
        known = numbers.double_of(text)
        return int(known) if math.isfinite(known) and known.is_integer() and abs(known) <= 1 << 53 else None
    return None


def _finite_power(t: Tracer, x: str, y: str) -> str:
    for operand in (x, y):
        t.require(numbers.is_finite(t, operand, "double"))
    result = library(t, "pow", x, y)
    t.require(numbers.is_finite(t, result, "double"))
    t.require(t.fn.let(f"fcmp oge double {result}, {numbers.double_text(_SMALLEST_NORMAL)}"))  # errno may be set below
    return result


# ---- the math module -----------------------------------------------------------------------------------------------


def _arguments(t: Tracer, args: Sequence[Value], count: int) -> list[str]:
    if len(args) != count:
        raise Refused(f"a call with {len(args)} arguments")
    return [_as_float(t, numbers.number(arg)) for arg in args]


def _as_float(t: Tracer, value: Value) -> str:
    if value.kind == "numpy":
        return numbers.element_as(t, value, "f8")
    if value.kind in ("int", "bool", "float"):
        return numbers.as_double(t, value)
    raise Refused(f"math function of a {value.kind}")


def _finite(t: Tracer, *names: str) -> None:
    for name in names:
        t.require(numbers.is_finite(t, name, "double"))


def _of_library(name: str, count: int = 1) -> Rule:
    """A function that math calls as it is for finite arguments; what is not finite then is an error."""

    def rule(t: Tracer, args: Sequence[Value]) -> Value:
        operands = _arguments(t, args, count)
        _finite(t, *operands)
        result = library(t, name, *operands)
        _finite(t, result)
        return floating(result)

    return rule


def _logarithm(name: str) -> Rule:
    def rule(t: Tracer, args: Sequence[Value]) -> Value:
        (x,) = _arguments(t, args, 1)
        t.require(t.fn.let(f"fcmp ogt double {x}, 0.0"))
        _finite(t, x)
        return floating(library(t, name, x))

    return rule


def _sqrt(t: Tracer, args: Sequence[Value]) -> Value:
    (x,) = _arguments(t, args, 1)
    t.require(t.fn.let(f"fcmp oge double {x}, 0.0"))
    return floating(t.fn.call("double", "llvm.sqrt.f64", ("double", x)))


def _fabs(t: Tracer, args: Sequence[Value]) -> Value:
    return floating(t.fn.call("double", "llvm.fabs.f64", ("double", _arguments(t, args, 1)[0])))


def _copysign(t: Tracer, args: Sequence[Value]) -> Value:
    x, y = _arguments(t, args, 2)
    return floating(t.fn.call("double", "llvm.copysign.f64", ("double", x), ("double", y)))


def _fmod(t: Tracer, args: Sequence[Value]) -> Value:
    x, y = _arguments(t, args, 2)
    _finite(t, x, y)
    t.require(t.fn.let(f"fcmp une double {y}, 0.0"))
    return floating(library(t, "fmod", x, y))


def _pow(t: Tracer, args: Sequence[Value]) -> Value:
    x, y = _arguments(t, args, 2)
    t.require(t.fn.let(f"fcmp ogt double {x}, 0.0"))
    return floating(_finite_power(t, x, y))


def _rounded(intrinsic: str) -> Rule:
    """floor, ceil and trunc make ints of floats."""

    def rule(t: Tracer, args: Sequence[Value]) -> Value:
        (x,) = _arguments(t, args, 1)
        value = numbers.number(args[0])
        if value.kind == "int":
            return value
        if value.kind == "numpy" and value.dtype != "f8":
            raise Refused(f"an int of a {value.dtype}")
        return integer(memory.truncated(t, floating(t.fn.call("double", intrinsic, ("double", x)))))

    return rule


def _class(condition: str) -> Rule:
    """isnan, isinf, isfinite: by a comparison of the absolute value with infinity."""

    def rule(t: Tracer, args: Sequence[Value]) -> Value:
        size = t.fn.call("double", "llvm.fabs.f64", ("double", _arguments(t, args, 1)[0]))
        return boolean(t.fn.let(f"fcmp {condition} double {size}, {numbers.double_text(math.inf)}"))

    return rule


_PLAIN: Final = ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp", "expm1", "log1p")

RULES: Final[dict[Any, Rule]] = {
    **{getattr(math, name): _of_library(name) for name in _PLAIN},
    math.atan2: _of_library("atan2", 2),
    math.log: _logarithm("log"), math.log2: _logarithm("log2"), math.log10: _logarithm("log10"),
    math.sqrt: _sqrt, math.fabs: _fabs, math.copysign: _copysign, math.fmod: _fmod, math.pow: _pow,
    math.floor: _rounded("llvm.floor.f64"), math.ceil: _rounded("llvm.ceil.f64"), math.trunc: _rounded("llvm.trunc.f64"),
    math.isnan: _class("uno"), math.isinf: _class("oeq"), math.isfinite: _class("olt"),
}  # fmt: skip
"""By function."""


def rounded_to_even(t: Tracer, value: Value) -> Value:
    """round(value) of a float (float___round___impl)."""
    return integer(memory.truncated(t, floating(t.fn.call("double", "llvm.roundeven.f64", ("double", value.one)))))
