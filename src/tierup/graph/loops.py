"""Facts about ufunc loops that passes and code generation share: types of a signature, and which loops may raise floating-point flags."""

from __future__ import annotations

import functools
from typing import Final

CHARS: Final[dict[str, str]] = {
    "?": "b1", "b": "i1", "B": "u1", "h": "i2", "H": "u2", "i": "i4", "I": "u4",
    "l": "i8", "L": "u8", "q": "i8", "Q": "u8", "f": "f4", "d": "f8", "F": "c8", "D": "c16",
}  # fmt: skip
"""NumPy's type characters on platforms whose C long has 64 bits."""

SILENT: Final = frozenset((
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not",
    "isnan", "isinf", "isfinite", "signbit", "copysign", "negative", "positive", "conjugate", "fabs",
    "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift", "bitwise_count",
    "maximum", "minimum", "fmax", "fmin", "clip", "sign", "floor", "ceil", "trunc", "rint",
))  # fmt: skip
"""Ufuncs whose loops raise no flag that NumPy would report; but see the next."""

_LOUD_ON_COMPLEX: Final = frozenset(("less", "less_equal", "greater", "greater_equal", "sign"))
"""Of those, the ones whose complex loops do: ordering on a NaN is an invalid operation there, and a sign is a quotient."""

_COMPLEX: Final = frozenset(("c8", "c16"))

_SILENT_ON_INTEGERS: Final = frozenset(("add", "subtract", "multiply", "square", "absolute"))
_INTEGERS: Final = frozenset(("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"))


@functools.cache
def loop_dtypes(loop: str) -> tuple[tuple[str, ...], str]:
    """('dd->?') → (('f8', 'f8'), 'b1'). Raises ValueError for loops that a graph cannot hold."""
    ins, arrow, outs = loop.partition("->")
    if not arrow or len(outs) != 1 or not ins or any(c not in CHARS for c in ins + outs):
        raise ValueError(f"loop {loop!r}: not a loop of one output over plain numbers")
    return tuple(CHARS[c] for c in ins), CHARS[outs]


def loop_raises(name: str, loop: str) -> bool:
    """Whether a ufunc's loop may raise a floating-point flag."""
    if name in SILENT:
        return name in _LOUD_ON_COMPLEX and loop_dtypes(loop)[0][0] in _COMPLEX
    ins, out = loop_dtypes(loop)
    if name == "absolute":
        return ins[0] in _COMPLEX
    return not (name in _SILENT_ON_INTEGERS and out in _INTEGERS and set(ins) <= _INTEGERS)


def follows_strides(name: str, loop: str) -> bool:
    """Whether a loop's bits depend on its operands' strides.

    power has ways of its own for a constant exponent; products of complex numbers are fused multiply-adds for some strides only.
    """
    complex_ = any(c in "FD" for c in loop)
    return name in ("power", "float_power") or (complex_ and name in ("multiply", "square", "absolute", "divide", "reciprocal"))


def cast_raises(source: str, target: str) -> bool:
    """Whether converting a number may raise a flag: only where a float loses range."""
    return source in ("f8", "c16") and target in ("f4", "c8")
