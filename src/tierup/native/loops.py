"""NumPy's ufuncs and their inner loops, found by name."""

from __future__ import annotations

import functools
import importlib
from typing import Final

import numpy as np

from tierup import _core


class NoLoop(Exception):
    """NumPy has no such ufunc, or the ufunc no such loop."""


@functools.cache
def find_ufunc(name: str) -> np.ufunc:
    """The ufunc of that name; also those behind Python functions, such as clip. Raises NoLoop.

    NumPy's C module comes first: whoever rebinds `numpy.add` does not change what an operator does.
    """
    for where in (importlib.import_module("numpy._core.umath"), np):
        found = getattr(where, name, None)
        if isinstance(found, np.ufunc):
            return found
    raise NoLoop(f"NumPy has no ufunc {name!r}")


def loop_pointers(name: str, loop: str) -> tuple[int, int]:
    """(function, data) of a ufunc's loop. Raises NoLoop."""
    pointers = _core.ufunc_loop(find_ufunc(name), loop)
    if pointers is None:
        raise NoLoop(f"ufunc {name!r} has no loop {loop}")
    return pointers


_FIRST_ELEMENT: Final = ("maximum", "minimum", "fmax", "fmin")


@functools.cache
def reduction_identity(name: str, dtype: str) -> bytes | None:
    """What NumPy's reduction of non-empty input starts from, as an element's bytes; None where that is the first element.

    Sums of floats start from -0.0 in some NumPy versions and from 0.0 in others: ask.
    """
    identity = find_ufunc(name).identity
    if identity is None or name in _FIRST_ELEMENT:
        return None
    if name == "add" and dtype[0] in "fc":
        part = "f" if dtype in ("f4", "c8") else "d"
        minus = np.full(2 if dtype[0] == "c" else 1, -0.0, part).view(dtype)
        return bytes(np.add.reduce(minus, keepdims=True).tobytes())
    return bytes(np.dtype(dtype).type(identity).tobytes())


@functools.cache
def extrema_choose_second_zero() -> bool:
    """Whether maximum, minimum and clip treat ±0 and NaNs as our code for them does. It depends on the CPU for which NumPy was built."""
    corner = [0.0, -0.0, 1.0, np.nan, -np.nan, np.inf]
    for dtype in ("f4", "f8"):
        a, b = (np.ascontiguousarray(g.ravel()) for g in np.meshgrid(np.array(corner, dtype), np.array(corner, dtype)))
        for x, y in ((a, b), (a[::-1], b[::-1]), (a[:1], b[:1]), (a, b[:1]), (a[:1], b)):
            if not _same(np.maximum(x, y), np.where(np.isnan(x) | (x > y), x, y)):
                return False
            if not _same(np.minimum(x, y), np.where(np.isnan(x) | (x < y), x, y)):
                return False
        if not all(_same(find_ufunc("clip")(a, low, high), _clip_model(a, low, high)) for low in b[::6] for high in (low, b[0], b[-1])):
            return False
    return True


def _clip_model(x: np.ndarray, low: np.generic, high: np.generic) -> np.ndarray:
    if np.isnan(low) or np.isnan(high):
        return np.full_like(x, low if np.isnan(low) else high)
    x = np.where(x < low, low, x)
    return np.where(x > high, high, x)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.tobytes() == b.tobytes()


_SLOW: Final = {
    "exp": 2.0, "log": 2.5, "sin": 4.0, "cos": 4.0, "tan": 10.0, "tanh": 3.0, "power": 15.0, "arctan2": 15.0, "hypot": 5.0,
    "divide": 1.0, "sqrt": 1.0, "floor_divide": 5.0, "remainder": 5.0, "fmod": 5.0,
}  # fmt: skip
_QUICK: Final = frozenset({
    "multiply", "add", "subtract", "where", "cast", "minimum", "maximum", "fmin", "fmax", "absolute", "negative", "positive", "square",
    "conjugate", "reciprocal", "invert", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "logical_and",
    "logical_or", "logical_xor", "logical_not", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "signbit",
    "isnan", "isinf", "isfinite", "copysign", "sign", "floor", "ceil", "trunc", "rint",
})  # fmt: skip
"""NumPy's loops for these are bound by memory."""


def cost_of(name: str, generated: bool) -> float:
    """Rough nanoseconds per element of one operation, for the decision how many threads a kernel is worth."""
    return slowness(name) or (0.15 if generated else 0.5)


def slowness(name: str) -> float:
    """Rough nanoseconds per element of an operation that computing bounds, 0 if memory does."""
    return _SLOW.get(name, 0.0 if name in _QUICK else 5.0)
