"""Numbers that break careless code, for every element type."""

from __future__ import annotations

import numpy as np


def special(dtype: str) -> np.ndarray:
    """Corner values of a dtype."""
    kind = np.dtype(dtype)
    if dtype == "b1":
        return np.array([False, True])
    if kind.kind in "iu":
        info = np.iinfo(kind)
        small = [0, 1, 2, 3, 7, 8, 15, 31, 32, 63, 64, 65, 100]
        values = [v for v in (info.min, info.min + 1, -1, -2, -64, *small, info.max - 1, info.max) if info.min <= v <= info.max]
        return np.array(values, kind)
    if kind.kind == "c":
        parts = special(f"f{kind.itemsize // 2}")
        return np.array([complex(a, b) for a in parts[::2] for b in parts[1::3]], kind)
    info = np.finfo(kind)
    tiny, sub = float(info.tiny), float(info.smallest_subnormal)
    values = [
        0.0,
        1.0,
        0.5,
        1.5,
        2.5,
        1 / 3,
        1e-3,
        4503599627370497.5,
        float(info.max),
        tiny,
        sub,
        tiny / 2,
        1 + float(info.eps),
        np.inf,
        np.nan,
    ]
    both = np.array(values + [-v for v in values])
    with np.errstate(all="ignore"):
        return both.astype(kind)


def pairs(dtype: str, other: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of corner values as two arrays."""
    a, b = np.meshgrid(special(dtype), special(other or dtype))
    return np.ascontiguousarray(a.ravel()), np.ascontiguousarray(b.ravel())


def triples(dtype: str) -> tuple[np.ndarray, ...]:
    some = special(dtype)
    some = some[:: max(1, len(some) // 10)]
    return tuple(np.ascontiguousarray(g.ravel()) for g in np.meshgrid(some, some, some))
