"""Arithmetic and comparisons of Python numbers and NumPy scalars, with the exits that keep Python's and NumPy's meaning.

Whatever the interpreter would answer with an exception, a warning or an integer of more than 64 bits leaves the loop before the operation.
A NumPy scalar's operation warns only where its result is not finite, so that is what is looked at, not the floating-point flags.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tierup.loops import complexes, math_functions
from tierup.loops.values import ITEMSIZE, Refused, Value, boolean, const, floating, integer, llvm_type, numpy

if TYPE_CHECKING:
    from tierup.loops.tracer import Tracer

_EXACT: Final = 1 << 53
"""Integers up to here are doubles, too."""


def double_text(value: float) -> str:
    """An LLVM constant of that double."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def double_of(text: str) -> float:
    """The double of such a constant."""
    value: float = struct.unpack("<d", struct.pack("<Q", int(text, 16)))[0]
    return value


def number(value: Value) -> Value:
    """Constants that are numbers as computed values; all else as it is."""
    if value.kind == "const":
        plain = value.constant
        if type(plain) is int and -(1 << 63) <= plain < 1 << 63:
            return integer(str(plain))
        if type(plain) is float:
            return floating(double_text(plain))
        if type(plain) is complex:
            return complexes.constant(plain)
        if type(plain) is bool:
            return boolean("true" if plain else "false")
    return value


def _is_float(dtype: str) -> bool:
    return dtype[0] == "f"


# ---- conversions ---------------------------------------------------------------------------------------------------


def as_int(t: Tracer, value: Value) -> str:
    """i64 of an int or bool."""
    if value.kind == "bool":
        return t.fn.let(f"zext i1 {value.one} to i64")
    return value.one


def as_double(t: Tracer, value: Value) -> str:
    """double of an int, bool or float, rounded to nearest as Python and NumPy do."""
    if value.kind == "float":
        return value.one
    return t.fn.let(f"sitofp i64 {as_int(t, value)} to double")


def element_as(t: Tracer, value: Value, dtype: str) -> str:
    """A NumPy scalar converted to a wider or equal type (no exits)."""
    have, name = value.dtype, value.one
    if have == dtype:
        return name
    to, of = llvm_type(dtype), llvm_type(have)
    if _is_float(dtype):
        if _is_float(have):
            return t.fn.let(f"{'fpext' if ITEMSIZE[dtype] > ITEMSIZE[have] else 'fptrunc'} {of} {name} to {to}")
        return t.fn.let(f"{'sitofp' if have[0] == 'i' else 'uitofp'} {of} {name} to {to}")
    if ITEMSIZE[dtype] == ITEMSIZE[have] and have != "b1":
        return name
    widen = "sext" if have[0] == "i" else "zext"
    return t.fn.let(f"{widen if have == 'b1' or ITEMSIZE[dtype] > ITEMSIZE[have] else 'trunc'} {of} {name} to {to}")


def fits(t: Tracer, name: str, dtype: str) -> str:
    """An i64 as an integer element; leaves where it does not fit."""
    size = 8 * ITEMSIZE[dtype]
    if size == 64 and dtype[0] == "i":
        return name
    if size == 64:
        t.require(t.fn.let(f"icmp sge i64 {name}, 0"))
        return name
    narrow = t.fn.let(f"trunc i64 {name} to i{size}")
    back = t.fn.let(f"{'sext' if dtype[0] == 'i' else 'zext'} i{size} {narrow} to i64")
    t.require(t.fn.let(f"icmp eq i64 {back}, {name}"))
    return narrow


def python_as(t: Tracer, value: Value, dtype: str) -> str:
    """A Python number as an element of a type that NumPy gives it beside a NumPy scalar; leaves where it cannot have it."""
    if dtype == "f8":
        return as_double(t, value)
    if dtype == "f4":
        wide = as_double(t, value)
        return narrowed(t, wide)
    if value.kind == "float":
        raise Refused("a float that becomes an integer")
    return fits(t, as_int(t, value), dtype)


def narrowed(t: Tracer, wide: str) -> str:
    """double → float; leaves where a finite number becomes infinite, of which NumPy warns."""
    narrow = t.fn.let(f"fptrunc double {wide} to float")
    bad = t.fn.let(f"and i1 {t.fn.let('xor i1 ' + is_finite(t, narrow, 'float') + ', true')}, {is_finite(t, wide, 'double')}")
    t.require(t.fn.let(f"xor i1 {bad}, true"))
    return narrow


def is_finite(t: Tracer, name: str, type_: str) -> str:
    magnitude = t.fn.call(type_, f"llvm.fabs.{'f64' if type_ == 'double' else 'f32'}", (type_, name))
    return t.fn.let(f"fcmp olt {type_} {magnitude}, 0x7FF0000000000000")


def truth(t: Tracer, value: Value) -> str | bool:
    """bool(value) as an i1, or as what it is if that is known."""
    value = number(value)
    match value.kind:
        case "bool":
            return {"true": True, "false": False}.get(value.one, value.one)
        case "int":
            return t.fn.let(f"icmp ne i64 {value.one}, 0")
        case "float":
            return t.fn.let(f"fcmp une double {value.one}, 0.0")
        case "complex":
            return complexes.truth(t, value)
        case "numpy":
            of = llvm_type(value.dtype)
            if value.dtype == "b1":
                return value.one
            return t.fn.let(f"fcmp une {of} {value.one}, 0.0" if _is_float(value.dtype) else f"icmp ne {of} {value.one}, 0")
        case "tuple":
            return bool(value.items)
        case "const" if type(value.constant) in (str, bytes, type(None), tuple):
            return bool(value.constant)
    raise Refused(f"truth of a {value.kind}")


def index_of(t: Tracer, value: Value) -> str:
    """i64 of what may index (no bool: NumPy takes it for a mask)."""
    value = number(value)
    if value.kind == "int":
        return value.one
    if value.kind == "numpy" and value.dtype[0] in "iu":
        wide = element_as(t, value, "i8")
        if value.dtype == "u8":
            t.require(t.fn.let(f"icmp sge i64 {wide}, 0"))
        return wide
    raise Refused(f"an index that is a {value.kind}")


# ---- Python ints and floats ----------------------------------------------------------------------------------------

_OVERFLOWING: Final = {"+": "add", "-": "sub", "*": "mul"}
_BITWISE: Final = {"&": "and", "|": "or", "^": "xor"}
_FLOATING: Final = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}


def checked(t: Tracer, what: str, sign: str, bits: int, a: str, b: str) -> str:
    """An integer operation that leaves where it overflows."""
    type_ = f"i{bits}"
    both = t.fn.call(f"{{ {type_}, i1 }}", f"llvm.{sign}{what}.with.overflow.{type_}", (type_, a), (type_, b))
    t.leave_if(t.fn.let(f"extractvalue {{ {type_}, i1 }} {both}, 1"))
    return t.fn.let(f"extractvalue {{ {type_}, i1 }} {both}, 0")


def _floor_division(t: Tracer, a: str, b: str, bits: int) -> tuple[str, str]:
    """Quotient and remainder, signs as Python's (Objects/longobject.c, l_divmod)."""
    type_, let = f"i{bits}", t.fn.let
    t.require(let(f"icmp ne {type_} {b}, 0"))
    lowest = let(f"icmp eq {type_} {a}, {-(1 << (bits - 1))}")
    t.leave_if(let(f"and i1 {lowest}, {let(f'icmp eq {type_} {b}, -1')}"))
    quotient, rest = let(f"sdiv {type_} {a}, {b}"), let(f"srem {type_} {a}, {b}")
    differs = let(f"icmp slt {type_} {let(f'xor {type_} {rest}, {b}')}, 0")
    adjust = let(f"and i1 {differs}, {let(f'icmp ne {type_} {rest}, 0')}")
    quotient = let(f"select i1 {adjust}, {type_} {let(f'sub {type_} {quotient}, 1')}, {type_} {quotient}")
    rest = let(f"select i1 {adjust}, {type_} {let(f'add {type_} {rest}, {b}')}, {type_} {rest}")
    return quotient, rest


def _shift(t: Tracer, symbol: str, a: str, b: str) -> Value:
    let = t.fn.let
    if symbol == ">>":
        t.require(let(f"icmp sge i64 {b}, 0"))
        count = t.fn.call("i64", "llvm.smin.i64", ("i64", b), ("i64", "63"))
        return integer(let(f"ashr i64 {a}, {count}"))
    t.require(let(f"icmp ult i64 {b}, 63"))
    shifted = let(f"shl i64 {a}, {b}")
    t.require(let(f"icmp eq i64 {let(f'ashr i64 {shifted}, {b}')}, {a}"))
    return integer(shifted)


def _ints(t: Tracer, symbol: str, left: Value, right: Value) -> Value:
    if symbol in _BITWISE and left.kind == right.kind == "bool":
        return boolean(t.fn.let(f"{_BITWISE[symbol]} i1 {left.one}, {right.one}"))
    a, b = as_int(t, left), as_int(t, right)
    if symbol in _OVERFLOWING:
        return integer(checked(t, _OVERFLOWING[symbol], "s", 64, a, b))
    if symbol in _BITWISE:
        return integer(t.fn.let(f"{_BITWISE[symbol]} i64 {a}, {b}"))
    if symbol in ("//", "%"):
        return integer(_floor_division(t, a, b, 64)[symbol == "%"])
    if symbol in ("<<", ">>"):
        return _shift(t, symbol, a, b)
    if symbol == "/":
        for value in (left, right):
            require_exact_double(t, value)
        t.require(t.fn.let(f"icmp ne i64 {b}, 0"))
        return floating(t.fn.let(f"fdiv double {as_double(t, left)}, {as_double(t, right)}"))
    if symbol == "**" and b == "2":
        return integer(checked(t, "mul", "s", 64, a, a))
    raise Refused(f"{symbol} on ints")


def _floats(t: Tracer, symbol: str, left: Value, right: Value) -> Value:
    if symbol == "**":
        return floating(math_functions.power(t, left, right))
    a, b = as_double(t, left), as_double(t, right)
    if symbol in ("//", "%"):
        return floating(math_functions.quotient_and_rest(t, a, b)[symbol == "%"])
    if symbol not in _FLOATING:
        raise Refused(f"{symbol} on floats")
    if symbol == "/":
        t.require(t.fn.let(f"fcmp une double {b}, 0.0"))
    return floating(t.fn.let(f"{_FLOATING[symbol]} double {a}, {b}"))


# ---- NumPy scalars -------------------------------------------------------------------------------------------------

OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_SAMPLES: Final[dict[str, Any]] = {"int": 1, "float": 1.0, "bool": True}


def _sample(value: Value) -> Any:
    return np.dtype(value.dtype).type(1) if value.kind == "numpy" else _SAMPLES[value.kind]


def _result_dtype(symbol: str, left: Value, right: Value) -> str:
    """Element type of an operation on scalars, asked of NumPy itself."""
    try:
        dtype = OPERATORS[symbol](_sample(left), _sample(right)).dtype
    except (TypeError, KeyError) as error:
        raise Refused(f"{symbol} on {left.kind} and {right.kind}") from error
    text = "b1" if dtype == np.bool_ else f"{dtype.kind}{dtype.itemsize}"
    if text not in ITEMSIZE:
        raise Refused(f"{symbol} gives {dtype}")
    return text


def _common(t: Tracer, value: Value, dtype: str) -> str:
    if value.kind != "numpy":
        return python_as(t, value, dtype)
    if _is_float(value.dtype) and not _is_float(dtype):
        raise Refused("a float among integers")
    return element_as(t, value, dtype)


def _scalars(t: Tracer, symbol: str, left: Value, right: Value) -> Value:
    out = _result_dtype(symbol, left, right)
    if out == "b1":
        return _bits(t, symbol, left, right)
    a, b = _common(t, left, out), _common(t, right, out)
    if _is_float(out):
        if out == "f8" and symbol in ("//", "%"):
            quotient, rest = math_functions.quotient_and_rest(t, a, b)
            for result in (quotient, rest):  # NumPy computes both, and warns of either
                t.require(is_finite(t, result, "double"))
            return numpy(out, quotient if symbol == "//" else rest)
        if symbol not in _FLOATING:
            raise Refused(f"{symbol} on {out} scalars")
        type_ = llvm_type(out)
        result = t.fn.let(f"{_FLOATING[symbol]} {type_} {a}, {b}")
        t.needs_underflow_ignored = True
        t.finite_later(result, type_, (a,) if symbol == "/" else (a, b))  # a divisor that is infinite does not show
        return numpy(out, result)
    return numpy(out, _integer_scalars(t, symbol, out, a, b))


def _integer_scalars(t: Tracer, symbol: str, out: str, a: str, b: str) -> str:
    bits = 8 * ITEMSIZE[out]
    if symbol in _OVERFLOWING:
        return checked(t, _OVERFLOWING[symbol], "s" if out[0] == "i" else "u", bits, a, b)
    if symbol in _BITWISE:
        return t.fn.let(f"{_BITWISE[symbol]} i{bits} {a}, {b}")
    if symbol in ("//", "%"):
        if out[0] == "i":
            return _floor_division(t, a, b, bits)[symbol == "%"]
        t.require(t.fn.let(f"icmp ne i{bits} {b}, 0"))
        return t.fn.let(f"{'udiv' if symbol == '//' else 'urem'} i{bits} {a}, {b}")
    if symbol in ("<<", ">>"):  # NumPy gives 0 or -1 for counts from the width on
        t.require(t.fn.let(f"icmp ult i{bits} {b}, {bits}"))
        how = "shl" if symbol == "<<" else "ashr" if out[0] == "i" else "lshr"
        return t.fn.let(f"{how} i{bits} {a}, {b}")
    raise Refused(f"{symbol} on {out} scalars")


def _bits(t: Tracer, symbol: str, left: Value, right: Value) -> Value:
    if symbol not in _BITWISE:
        raise Refused(f"{symbol} on NumPy bools")
    a, b = truth(t, left), truth(t, right)
    names = [x if isinstance(x, str) else "true" if x else "false" for x in (a, b)]
    return numpy("b1", t.fn.let(f"{_BITWISE[symbol]} i1 {names[0]}, {names[1]}"))


def binary(t: Tracer, symbol: str, left: Value, right: Value) -> Value:
    """left symbol right. Raises Refused for what is not compiled."""
    symbol = symbol.removesuffix("=") if symbol not in ("==", "<=", ">=", "!=") else symbol
    if left.kind == right.kind == "const":
        folded = _fold(symbol, left.constant, right.constant)
        if folded is not None:
            return const(folded)
    left, right = number(left), number(right)
    kinds = {left.kind, right.kind}
    if kinds <= {"int", "bool"}:
        return _ints(t, symbol, left, right)
    if kinds <= {"int", "bool", "float"}:
        return _floats(t, symbol, left, right)
    if kinds <= {"int", "bool", "float", "complex"}:
        return complexes.binary(t, symbol, left, right)
    if kinds <= {"int", "bool", "float", "numpy"}:
        return _scalars(t, symbol, left, right)
    raise Refused(f"{symbol} on {left.kind} and {right.kind}")


def _fold(symbol: str, a: object, b: object) -> object | None:
    """An operation on small constants."""
    if type(a) is int and type(b) is int and symbol in ("+", "-", "*") and max(abs(a), abs(b)) < 1 << 31:
        return OPERATORS[symbol](a, b)  # type: ignore[no-any-return]
    return None


# ---- comparisons and unary operations ------------------------------------------------------------------------------

_SIGNED: Final = {"<": "slt", "<=": "sle", "==": "eq", "!=": "ne", ">": "sgt", ">=": "sge"}
ORDERED: Final = {"<": "olt", "<=": "ole", "==": "oeq", "!=": "une", ">": "ogt", ">=": "oge"}


def compare(t: Tracer, symbol: str, left: Value, right: Value) -> Value:
    """left symbol right: a bool, or a NumPy bool where a NumPy scalar takes part."""
    left, right = number(left), number(right)
    kinds = {left.kind, right.kind}
    let = t.fn.let
    if kinds <= {"int", "bool"}:
        return boolean(let(f"icmp {_SIGNED[symbol]} i64 {as_int(t, left)}, {as_int(t, right)}"))
    if kinds <= {"int", "bool", "float"}:
        for value in (left, right):
            require_exact_double(t, value)
        by_squares = complexes.compare_size(t, symbol, left, right)
        if by_squares is not None:
            return by_squares
        return boolean(let(f"fcmp {ORDERED[symbol]} double {as_double(t, left)}, {as_double(t, right)}"))
    if kinds <= {"int", "bool", "float", "complex"}:
        return complexes.equal(t, symbol, left, right)
    if kinds <= {"int", "bool", "float", "numpy"}:
        return numpy("b1", _compare_scalars(t, symbol, left, right))
    raise Refused(f"{symbol} on {left.kind} and {right.kind}")


def require_exact_double(t: Tracer, value: Value) -> None:
    """Leaves where an int is no double: comparisons are exact in Python, whatever the size."""
    if value.kind == "int":
        t.require(t.fn.let(f"icmp ult i64 {t.fn.let(f'add i64 {value.one}, {_EXACT}')}, {2 * _EXACT + 1}"))


def _compare_scalars(t: Tracer, symbol: str, left: Value, right: Value) -> str:
    dtypes = [v.dtype for v in (left, right) if v.kind == "numpy"]
    floats = any(_is_float(d) for d in dtypes) or "float" in (left.kind, right.kind)
    if not floats:
        if "u8" in dtypes:
            raise Refused("comparisons of uint64 scalars")
        a, b = (element_as(t, v, "i8") if v.kind == "numpy" else as_int(t, v) for v in (left, right))
        return t.fn.let(f"icmp {_SIGNED[symbol]} i64 {a}, {b}")
    out = _result_dtype("+", left, right)
    if not _is_float(out):
        raise Refused(f"a comparison of {left.kind} and {right.kind}")
    a, b = _common(t, left, out), _common(t, right, out)
    return t.fn.let(f"fcmp {ORDERED[symbol]} {llvm_type(out)} {a}, {b}")


def negative(t: Tracer, value: Value) -> Value:
    """-value"""
    value = number(value)
    if value.kind in ("int", "bool"):
        return integer(checked(t, "sub", "s", 64, "0", as_int(t, value)))
    if value.kind == "float":
        return floating(t.fn.let(f"fneg double {value.one}"))
    if value.kind == "complex":
        return complexes.negative(t, value)
    if value.kind == "numpy" and _is_float(value.dtype):
        return numpy(value.dtype, t.fn.let(f"fneg {llvm_type(value.dtype)} {value.one}"))
    if value.kind == "numpy" and value.dtype[0] == "i":
        return numpy(value.dtype, checked(t, "sub", "s", 8 * ITEMSIZE[value.dtype], "0", value.one))
    raise Refused(f"- on a {value.kind}")


def inverted(t: Tracer, value: Value) -> Value:
    """~value"""
    value = number(value)
    if value.kind == "int":
        return integer(t.fn.let(f"xor i64 {value.one}, -1"))
    if value.kind == "numpy" and value.dtype[0] in "iu":
        return numpy(value.dtype, t.fn.let(f"xor {llvm_type(value.dtype)} {value.one}, -1"))
    if value.kind == "numpy" and value.dtype == "b1":
        return numpy("b1", t.fn.let(f"xor i1 {value.one}, true"))
    raise Refused(f"~ on a {value.kind}")


def absolute(t: Tracer, value: Value) -> Value:
    """abs(value)"""
    value = number(value)
    if value.kind in ("int", "bool"):
        name = as_int(t, value)
        t.require(t.fn.let(f"icmp ne i64 {name}, {-(1 << 63)}"))
        return integer(t.fn.call("i64", "llvm.abs.i64", ("i64", name), ("i1", "true")))
    if value.kind == "float":
        return floating(t.fn.call("double", "llvm.fabs.f64", ("double", value.one)))
    if value.kind == "complex":
        return complexes.absolute(t, value)
    if value.kind == "numpy" and _is_float(value.dtype):
        of = llvm_type(value.dtype)
        return numpy(value.dtype, t.fn.call(of, f"llvm.fabs.{'f64' if of == 'double' else 'f32'}", (of, value.one)))
    if value.kind == "numpy" and value.dtype[0] == "u":
        return value
    if value.kind == "numpy" and value.dtype[0] == "i":  # NumPy warns of the lowest one
        bits = 8 * ITEMSIZE[value.dtype]
        t.require(t.fn.let(f"icmp ne i{bits} {value.one}, {-(1 << (bits - 1))}"))
        return numpy(value.dtype, t.fn.call(f"i{bits}", f"llvm.abs.i{bits}", (f"i{bits}", value.one), ("i1", "true")))
    raise Refused(f"abs of a {value.kind}")
