"""Python's complex numbers inside loops: two doubles each, with CPython's own formulas (Objects/complexobject.c).

Zero divisors, and powers and absolute values that are not finite, leave the loop: Python raises there.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from tierup.loops import math_functions, numbers
from tierup.loops.values import Refused, Value, boolean, floating

if TYPE_CHECKING:
    from tierup.loops.tracer import Tracer

_KNOWN: Final = sys.version_info < (3, 14)
"""CPython 3.14 treats a real operand apart, and later ones recover infinities in products."""
_ROUNDED: Final = (complex(1 + 2.0**-30, 1) ** 2).real == 2.0**-29
"""Whether CPython was compiled so that products are rounded before they are added up."""
_MAX_POWER: Final = 100
"""Up to here CPython multiplies (complex_pow)."""
_LARGE: Final = 1e300
_SMALL: Final = 1e-100
_MARGIN: Final = 2.0**-40
_SIDES: Final = {"<": "below", "<=": "below", ">": "above", ">=": "above"}
Parts = tuple[str, str]


def complex_value(re: str, im: str) -> Value:
    return Value("complex", None, (re, im))


def constant(value: complex) -> Value:
    return complex_value(numbers.double_text(value.real), numbers.double_text(value.imag))


def _parts(t: Tracer, value: Value) -> Parts:
    """Of a Python number; a real one gets the imaginary part 0."""
    if value.kind == "complex":
        return value.parts[0], value.parts[1]
    return numbers.as_double(t, value), numbers.double_text(0.0)


def binary(t: Tracer, symbol: str, left: Value, right: Value) -> Value:
    """left symbol right, Python numbers of which one is complex. Raises Refused."""
    if not _KNOWN or not _ROUNDED:
        raise Refused("complex numbers of this interpreter")
    if symbol == "**":
        return _power(t, left, right)
    a, b = _parts(t, left), _parts(t, right)
    match symbol:
        case "+" | "-":
            how = "fadd" if symbol == "+" else "fsub"
            re, im = (t.fn.let(f"{how} double {x}, {y}") for x, y in zip(a, b, strict=True))
            return complex_value(re, im)
        case "*":
            return complex_value(*_product(t, a, b))
        case "/":
            return complex_value(*_quotient(t, a, b))
    raise Refused(f"{symbol} on complex numbers")


def _product(t: Tracer, a: Parts, b: Parts) -> Parts:
    """_Py_c_prod"""
    let = t.fn.let
    re = let(f"fsub double {let(f'fmul double {a[0]}, {b[0]}')}, {let(f'fmul double {a[1]}, {b[1]}')}")
    im = let(f"fadd double {let(f'fmul double {a[0]}, {b[1]}')}, {let(f'fmul double {a[1]}, {b[0]}')}")
    return re, im


def _quotient(t: Tracer, a: Parts, b: Parts) -> Parts:
    """_Py_c_quot: divides by the larger part of the divisor first. Divisors with a NaN leave, they have a rule of their own."""
    let = t.fn.let
    sizes = [t.fn.call("double", "llvm.fabs.f64", ("double", part)) for part in b]
    for part in b:
        t.require(let(f"fcmp ord double {part}, {part}"))
    real_first = let(f"fcmp oge double {sizes[0]}, {sizes[1]}")
    t.require(_any_nonzero(t, b))

    def chosen(yes: str, no: str) -> str:
        return let(f"select i1 {real_first}, double {yes}, double {no}")

    large, small = chosen(b[0], b[1]), chosen(b[1], b[0])
    ratio = let(f"fdiv double {small}, {large}")
    denominator = let(f"fadd double {large}, {let(f'fmul double {small}, {ratio}')}")
    by_ratio = [let(f"fmul double {part}, {ratio}") for part in a]
    re = chosen(let(f"fadd double {a[0]}, {by_ratio[1]}"), let(f"fadd double {by_ratio[0]}, {a[1]}"))
    im = chosen(let(f"fsub double {a[1]}, {by_ratio[0]}"), let(f"fsub double {by_ratio[1]}, {a[0]}"))
    return let(f"fdiv double {re}, {denominator}"), let(f"fdiv double {im}, {denominator}")


def _any_nonzero(t: Tracer, parts: Parts) -> str:
    flags = [t.fn.let(f"fcmp une double {part}, 0.0") for part in parts]
    return t.fn.let(f"or i1 {flags[0]}, {flags[1]}")


def _power(t: Tracer, base: Value, exponent: Value) -> Value:
    """By repeated squaring for a small constant exponent (c_powu)."""
    count = int(exponent.one) if exponent.kind == "int" and exponent.one.isdigit() else 0
    if not 1 <= count <= _MAX_POWER:
        raise Refused("** of complex numbers other than by a small constant")
    result: Parts = (numbers.double_text(1.0), numbers.double_text(0.0))
    square = _parts(t, base)
    for bit in range(count.bit_length()):
        if count >> bit & 1:
            result = _product(t, result, square)
        square = _product(t, square, square)
    for part in result:
        t.require(numbers.is_finite(t, part, "double"))
    return complex_value(*result)


def equal(t: Tracer, symbol: str, left: Value, right: Value) -> Value:
    """== and != of Python numbers of which one is complex."""
    if symbol not in ("==", "!="):
        raise Refused(f"{symbol} on complex numbers")
    for value in (left, right):
        numbers.require_exact_double(t, value)
    flags = [t.fn.let(f"fcmp oeq double {x}, {y}") for x, y in zip(_parts(t, left), _parts(t, right), strict=True)]
    both = t.fn.let(f"and i1 {flags[0]}, {flags[1]}")
    return boolean(both if symbol == "==" else t.fn.let(f"xor i1 {both}, true"))


def truth(t: Tracer, value: Value) -> str:
    """bool(value) as an i1."""
    return _any_nonzero(t, _parts(t, value))


def negative(t: Tracer, value: Value) -> Value:
    re, im = (t.fn.let(f"fneg double {part}") for part in value.parts)
    return complex_value(re, im)


def conjugate(t: Tracer, value: Value) -> Value:
    return complex_value(value.parts[0], t.fn.let(f"fneg double {value.parts[1]}"))


def absolute(t: Tracer, value: Value) -> Value:
    """abs(value) with the C library's hypot (_Py_c_abs); leaves for parts so large that it may overflow, infinities and NaNs."""
    for part in value.parts:
        magnitude = t.fn.call("double", "llvm.fabs.f64", ("double", part))
        t.require(t.fn.let(f"fcmp olt double {magnitude}, {numbers.double_text(_LARGE)}"))
    size = floating(math_functions.library(t, "hypot", *value.parts))
    t.sizes[id(size)] = (size, value.parts)
    return size


def compare_size(t: Tracer, symbol: str, size: Value, bound: Value) -> Value | None:
    """abs(z) compared with a constant: the squares decide unless they are within a few roundings of each other, so that hypot need not be
    called. None where that is not possible."""
    if id(size) not in t.sizes or symbol not in _SIDES or not bound.one.startswith("0x"):
        return None
    limit = numbers.double_of(bound.one)
    if not _SMALL < limit < 1 / _SMALL:
        return None
    fn, (_, (re, im)) = t.fn, t.sizes[id(size)]
    square = fn.let(f"fadd double {fn.let(f'fmul double {re}, {re}')}, {fn.let(f'fmul double {im}, {im}')}")
    below = fn.let(f"fcmp olt double {square}, {numbers.double_text(limit * limit * (1 - _MARGIN))}")
    above = fn.let(f"fcmp ogt double {square}, {numbers.double_text(limit * limit * (1 + _MARGIN))}")
    close, decided, before = fn.label("close"), fn.label("decided"), fn.block.label
    fn.line(f"br i1 {fn.let(f'or i1 {below}, {above}')}, label %{decided}, label %{close}, !prof !0")
    fn.begin(close)
    exact = fn.let(f"fcmp {numbers.ORDERED[symbol]} double {size.one}, {bound.one}")
    fn.line(f"br label %{decided}")
    flag = fn.name()
    sure = below if _SIDES[symbol] == "below" else above
    fn.begin(decided).head.append(f"  {flag} = phi i1 [{sure}, %{before}], [{exact}, %{close}]")
    return boolean(flag)


def made(t: Tracer, parts: list[Value]) -> Value:
    """complex(re, im) of real Python numbers."""
    if any(part.kind not in ("int", "bool", "float") for part in parts):
        raise Refused("complex of other than Python's real numbers")
    names = [numbers.as_double(t, part) for part in parts]
    return complex_value(names[0], names[1] if len(names) > 1 else numbers.double_text(0.0))
