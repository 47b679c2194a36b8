"""Arithmetic and comparison of Python numbers, with Python's rules.

Ints are 64-bit symbolic values that leave the region on overflow; floats are IEEE doubles, their power is libm's. What Python makes of more
than one operation (`//` and `%` on floats) is not captured.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from tierup.arrays.builder import Builder, NoRule
from tierup.arrays.values import ConstValue, ScalarValue, Value
from tierup.capture.outcome import Break
from tierup.graph.ir import NOTHING, ScalarType

FLOAT = ScalarType("f8", "python")
BOOL = ScalarType("b1", "python")

_INT_OPS = {"+": "iadd", "-": "isub", "*": "imul", "//": "ifloordiv", "%": "imod", "**": "ipow"}
_FLOAT_OPS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv", "**": "fpow"}
_CONDITIONS = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}
_FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
_FOLDABLE = (int, float, str, bool, type(None), complex)


def is_number(value: Value) -> bool:
    """A Python int, float or bool (symbolic or known)."""
    if isinstance(value, ScalarValue):
        return value.is_python and value.type.dtype in ("i8", "f8")
    return isinstance(value, ConstValue) and type(value.value) in (int, float, bool)


def fold(symbol: str, left: ConstValue, right: ConstValue) -> Value | None:
    """The result on two known plain values, None if it would raise or grow large."""
    a, b = left.value, right.value
    if type(a) not in _FOLDABLE or type(b) not in _FOLDABLE or symbol not in _FOLD:
        return None
    if symbol in ("**", "<<") and not (type(b) in (int, bool) and 0 <= b <= 64 and isinstance(a, int) and abs(a) < 2**63):
        return None
    if symbol in ("*", "%") and (isinstance(a, str) or isinstance(b, str)):
        return None
    try:
        return ConstValue(_FOLD[symbol](a, b))
    except (ArithmeticError, TypeError, ValueError):
        return None


def _as_float(b: Builder, value: Value) -> ScalarValue:
    if isinstance(value, ConstValue):
        number = value.value
        if isinstance(number, int) and abs(number) > 2**53:
            raise Break("an int that a float cannot hold exactly")
        return ScalarValue(b.literal(float(number), FLOAT), float(number))
    assert isinstance(value, ScalarValue)
    if value.is_int:
        known = b.known(value)
        if known is not None:
            return _as_float(b, ConstValue(known))
        if abs(value.hint) > 2**53:
            raise Break("an int that a float cannot hold exactly")
        return ScalarValue(b.node("itodouble", (value.node,), FLOAT), float(value.hint))
    return value


def _no_bool(value: Value) -> Value:
    """A known bool as the int that arithmetic makes of it."""
    if isinstance(value, ConstValue) and type(value.value) is bool:
        return ConstValue(int(value.value))
    return value


def _is_int(value: Value) -> bool:
    if isinstance(value, ScalarValue):
        return value.is_int
    return isinstance(value, ConstValue) and type(value.value) is int


def binary(b: Builder, symbol: str, left: Value, right: Value) -> Value:
    """left `symbol` right for two Python numbers. Raises Break for what is not captured."""
    if isinstance(left, ConstValue) and isinstance(right, ConstValue):
        folded = fold(symbol, left, right)
        if folded is None:
            raise Break(f"{symbol} on these numbers")
        return folded
    left, right = _no_bool(left), _no_bool(right)
    if _is_int(left) and _is_int(right) and symbol != "/":
        return _int_binary(b, symbol, left, right)
    if symbol not in _FLOAT_OPS:
        raise Break(f"{symbol} on Python floats")
    x, y = _as_float(b, left), _as_float(b, right)
    if symbol == "/":
        _check_divisor(b, y)
    hint = None
    if x.hint is not None and y.hint is not None:
        hint = _float_result(symbol, x.hint, y.hint)
    return ScalarValue(b.node(_FLOAT_OPS[symbol], (x.node, y.node), FLOAT), hint)


def _float_result(symbol: str, x: float, y: float) -> float | None:
    """What Python computes now. Raises Break where it raises or leaves the real numbers."""
    try:
        result = _FOLD[symbol](x, y)
    except ArithmeticError:
        raise Break(f"{symbol} raises on these floats") from None
    if type(result) is not float:
        raise Break(f"{symbol} on these floats is complex")
    return result


def _check_divisor(b: Builder, divisor: ScalarValue) -> None:
    """Python raises ZeroDivisionError whatever np.errstate says."""
    if divisor.hint == 0.0:
        raise Break("float division by zero")
    b.node("check", (divisor.node, b.literal(0.0, FLOAT)), NOTHING, cond="ne")


def _int_binary(b: Builder, symbol: str, left: Value, right: Value) -> Value:
    x, y = b.index(left), b.index(right)
    if symbol not in _INT_OPS:
        raise Break(f"{symbol} on Python ints")
    return b.arith(_INT_OPS[symbol], x, y)


def compare(b: Builder, symbol: str, left: Value, right: Value) -> Value:
    """A comparison of two Python numbers: decided now and secured where the operands' present values are known, else a run-time bool."""
    if isinstance(left, ConstValue) and isinstance(right, ConstValue):
        folded = fold(symbol, left, right)
        if folded is None:
            raise Break(f"{symbol} on these numbers")
        return folded
    left, right = _no_bool(left), _no_bool(right)
    if _is_int(left) and _is_int(right):
        return ConstValue(b.compare(_CONDITIONS[symbol], b.index(left), b.index(right)))
    x, y = _as_float(b, left), _as_float(b, right)
    if x.hint is None or y.hint is None:
        return ScalarValue(b.node("fcmp", (x.node, y.node), BOOL, cond=_CONDITIONS[symbol]), None)
    return ConstValue(_decide_floats(b, symbol, x, y))


def _decide_floats(b: Builder, symbol: str, x: ScalarValue, y: ScalarValue) -> bool:
    holds = bool(_FOLD[symbol](x.hint, y.hint))
    if symbol in (">", ">="):
        symbol, x, y = {">": "<", ">=": "<="}[symbol], y, x
    positive = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne"}
    negative = {"<": "nlt", "<=": "nle", "==": "ne", "!=": "eq"}
    b.node("check", (x.node, y.node), NOTHING, cond=(positive if holds else negative)[symbol])
    return holds


def unary(b: Builder, symbol: str, value: Value) -> Value:
    """-x, +x on a Python number, and abs under the symbol 'abs'."""
    if isinstance(value, ConstValue):
        fn: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "abs": abs}
        if symbol == "~" and type(value.value) is not int:
            raise Break("~ on this value")
        return ConstValue(fn[symbol](value.value))
    assert isinstance(value, ScalarValue)
    if symbol == "+":
        return ScalarValue(value.node, value.hint, value.origin)
    if value.is_int and symbol in ("-", "abs"):
        hint = -value.hint if symbol == "-" else abs(value.hint)
        return ScalarValue(b.node("ineg" if symbol == "-" else "iabs", (value.node,), ScalarType("i8", "python")), hint)
    if value.type == FLOAT and symbol in ("-", "abs"):
        hint = None if value.hint is None else (-value.hint if symbol == "-" else math.fabs(value.hint))
        return ScalarValue(b.node("fneg" if symbol == "-" else "fabs", (value.node,), FLOAT), hint)
    raise Break(f"unary {symbol} on this number")


def truth(b: Builder, value: ScalarValue) -> bool:
    """bool(x) of a number, decided now and secured. Raises Break for numbers computed from array contents."""
    if value.hint is None:
        raise Break("a branch on a computed value")
    zero = 0 if value.is_int else 0.0
    holds = bool(value.hint)
    if value.is_int:
        return b.compare("ne", value, b.index(0))
    if value.type.dtype != "f8":
        raise Break("a branch on this kind of number")
    b.node("check", (value.node, b.literal(zero, value.type)), NOTHING, cond="ne" if holds else "eq")
    return holds


def to_float(b: Builder, value: Value) -> Value:
    """float(x) of a Python number or np.float64."""
    if isinstance(value, ScalarValue) and value.type.dtype == "f8" and value.type.box == "numpy":
        raise NoRule("float() of a NumPy scalar")
    return _as_float(b, value)
