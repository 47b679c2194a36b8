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
    """The ufunc of that name; also those behind Python functions, such as clip. Raises NoLoop."""
    for where in (np, importlib.import_module("numpy._core.umath")):
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


_SLOW: Final = {
    "exp": 2.0, "log": 2.5, "sin": 4.0, "cos": 4.0, "tan": 10.0, "tanh": 3.0, "power": 15.0, "arctan2": 15.0, "hypot": 5.0,
    "divide": 1.0, "sqrt": 1.0, "floor_divide": 5.0, "remainder": 5.0, "fmod": 5.0,
}  # fmt: skip


def cost_of(name: str, generated: bool) -> float:
    """Rough nanoseconds per element of one operation, for the decision how many threads a kernel is worth."""
    if name in _SLOW:
        return _SLOW[name]
    return 0.15 if generated else 0.5 if name in ("multiply", "add", "subtract", "where", "cast") else 5.0
