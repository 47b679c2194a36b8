"""Deterministic arguments for generated programs: arrays of every dtype, layout and flavour that guards must tell apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


class Tagged(np.ndarray):
    """A harmless ndarray subclass that carries an attribute along."""

    tag = "none"

    def __array_finalize__(self, source: Any) -> None:
        self.tag = getattr(source, "tag", "none")


class Loud(np.ndarray):
    """An ndarray subclass whose multiplication is not NumPy's."""

    def __mul__(self, other: Any) -> Any:
        return np.asarray(self) * other + 1000


# A quiet NaN with a payload of its own: values that are only moved must keep it.
MARKED_NAN = float(np.array(0x7FF8_0000_DEAD_BEEF, dtype="u8").view("f8"))

_FLOAT_VALUES = {
    "plain": [0.5, -1.25, 2.0, 3.75, -0.75, 1.0, -2.5, 0.25, 4.5, -3.0],
    "unit": [0.125, 0.5, 0.75, 0.875, 0.25, 0.9375, 0.0625, 0.375, 0.625],
    "edge": [0.0, -0.0, 1.0, math.nan, -1.0, 1e-310, 3e38, 1.5, math.inf, -math.inf, 2.0**53, 0.1, 1e300],
    "zero": [0.0, -0.0, 0.0, 1.0, 2.0, -0.0],
    "nan": [1.0, MARKED_NAN, -0.0, -MARKED_NAN, math.inf, 0.3],
}
_INT_VALUES = {
    "plain": [3, -1, 7, 2, -5, 1, 4, -2, 6, 5],
    "unit": [1, 2, 1, 3, 1, 2, 2],
    "edge": [0, 1, -1, 127, 128, 255, 32767, -32768, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 5],
    "zero": [0, 1, 0, 2, -3],
    "nan": [0, 1, 2, 3, -1],
}
VALUE_SETS = tuple(_FLOAT_VALUES)


def _flat(dtype: np.dtype[Any], count: int, seed: int, values: str) -> np.ndarray:
    """`count` values of a set, in an order that depends on the seed."""
    pool: list[Any] = _FLOAT_VALUES[values] if dtype.kind in "fc" else _INT_VALUES[values]
    picks = [pool[(seed * 7 + i * (3 + seed % 4) + i * i % 5) % len(pool)] for i in range(count)]
    with np.errstate(all="ignore"):
        if dtype.kind == "c":
            others = picks[1:] + picks[:1]
            out = np.empty(count, "c16")
            out.real, out.imag = picks, others
            return out.astype(dtype)
        if dtype.kind == "b":
            return np.array([pick % 2 == 1 for pick in picks], dtype="?")
        if dtype.kind in "iu":
            return np.array(picks, dtype="i8").astype(dtype)
        return np.array(picks, dtype="f8").astype(dtype)


def _strided(base: np.ndarray) -> np.ndarray:
    if base.ndim == 0:
        return base
    room = np.repeat(base, 2, axis=-1)
    return room[..., ::2]


def _reversed(base: np.ndarray) -> np.ndarray:
    if base.ndim == 0:
        return base
    return base[..., ::-1].copy()[..., ::-1]


def _offset(base: np.ndarray) -> np.ndarray:
    room = np.empty((base.shape[0] + 2, *base.shape[1:]), base.dtype) if base.ndim else np.empty(3, base.dtype)
    view = room[1:-1] if base.ndim else room[1:2].reshape(())
    room[...] = base.flat[0] if base.size else 0
    view[...] = base
    return view


def _unaligned(base: np.ndarray) -> np.ndarray:
    room = np.zeros(base.nbytes + 1, "u1")[1:]
    out = room.view(base.dtype).reshape(base.shape)
    out[...] = base
    return out


def _readonly(base: np.ndarray) -> np.ndarray:
    base.flags.writeable = False
    return base


def _broadcast(base: np.ndarray) -> np.ndarray:
    if base.ndim == 0:
        return base
    return np.broadcast_to(base[:1] if base.shape[0] else base, base.shape)


_LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "C": lambda base: base,
    "F": np.asfortranarray,
    "strided": _strided,
    "reversed": _reversed,
    "offset": _offset,
    "unaligned": _unaligned,
    "swapped": lambda base: base.astype(base.dtype.newbyteorder(">")),
    "readonly": _readonly,
    "broadcast": _broadcast,
    "tagged": lambda base: base.view(Tagged),
    "loud": lambda base: base.view(Loud),
    "matrix": lambda base: base.view(np.matrix) if base.ndim == 2 else base.view(Tagged),
    "masked": lambda base: np.ma.masked_equal(base, base.flat[0]) if base.size else np.ma.array(base),
}
LAYOUTS = tuple(_LAYOUTS)


def make(dtype: str, shape: tuple[int, ...], layout: str = "C", seed: int = 0, values: str = "plain") -> Any:
    """A new array. `layout` is one of LAYOUTS, `values` one of VALUE_SETS."""
    kind = np.dtype(dtype)
    base = _flat(kind, math.prod(shape), seed, values).reshape(shape)
    return _LAYOUTS[layout](base)


def alias(array: Any, how: str) -> Any:
    """A second argument that shares memory with the first: the same object, or another view of it."""
    if how == "view":
        return array[...]
    if how == "reversed" and array.ndim:
        return array[::-1]
    return array


def overlapping(dtype: str, length: int, seed: int, values: str = "plain") -> tuple[np.ndarray, np.ndarray]:
    """Two views of one buffer that overlap without being equal."""
    base = _flat(np.dtype(dtype), length + 1, seed, values)
    return base[1:], base[:-1]
