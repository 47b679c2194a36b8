"""Hypothesis strategies: arrays of every supported dtype and layout, and scalars of every kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tierup.graph.ir import DTYPES

dtypes = st.sampled_from(DTYPES)
_SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e300, -1e-300, 0.5, 2.0, 3.7)


@dataclass(frozen=True)
class ArraySpec:
    """How to make an array; making it twice gives equal arrays in different memory."""

    dtype: str
    shape: tuple[int, ...]
    seed: int
    layout: str
    special: bool
    writeable: bool = True

    def make(self) -> np.ndarray:
        rng = np.random.default_rng(self.seed)
        padded = tuple(n + 2 for n in self.shape) if self.layout in ("strided", "reversed") else self.shape
        if self.layout == "strided":
            padded = tuple(2 * n + 1 for n in self.shape)
        if self.layout in ("transposed", "permuted"):
            padded = self._permute(self.shape)
        a = self._fill(rng, padded)
        if self.layout == "strided":
            a = a[tuple(slice(0, 2 * n, 2) for n in self.shape)]
        elif self.layout == "reversed":
            a = a[tuple(slice(n, 0, -1) for n in self.shape)]
        elif self.layout == "fortran":
            a = np.asfortranarray(a)
        elif self.layout in ("transposed", "permuted"):
            a = a.transpose(np.argsort(self._order()))
        elif self.layout == "broadcast":
            a = np.broadcast_to(a[tuple(slice(0, 1) if i % 2 == 0 and n else slice(None) for i, n in enumerate(self.shape))], self.shape)
        a.flags.writeable = self.writeable and self.layout != "broadcast"
        assert a.shape == self.shape
        return a

    def _order(self) -> list[int]:
        n = len(self.shape)
        return list(range(n))[::-1] if self.layout == "transposed" else [*range(1, n), 0]

    def _permute(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(shape[i] for i in self._order())

    def _fill(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        dtype = np.dtype(self.dtype)
        if dtype.kind == "b":
            return rng.integers(0, 2, shape).astype(bool)
        if dtype.kind in "iu":
            if self.special:
                info = np.iinfo(dtype)
                return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
            return rng.integers(0 if dtype.kind == "u" else -5, 10, shape).astype(dtype)
        with np.errstate(all="ignore"):
            parts = rng.standard_normal((*shape, 2)) * 3
            if self.special:
                chosen = rng.choice(_SPECIAL, (*shape, 2))
                parts = np.where(rng.random((*shape, 2)) < 0.3, chosen, parts)
            return (parts[..., 0] + (1j * parts[..., 1] if dtype.kind == "c" else 0)).astype(dtype)

    def resized(self, shape: tuple[int, ...], seed: int) -> ArraySpec:
        """The same kind of array with another shape and other elements."""
        return ArraySpec(self.dtype, shape, seed, self.layout, self.special, self.writeable)


LAYOUTS = ("c", "c", "c", "fortran", "strided", "reversed", "transposed", "permuted", "broadcast")


def specs(shape: tuple[int, ...], dtype: st.SearchStrategy[str] = dtypes, special: bool | None = None) -> st.SearchStrategy[ArraySpec]:
    return st.builds(
        ArraySpec,
        dtype,
        st.just(shape),
        st.integers(0, 2**20),
        st.sampled_from(LAYOUTS),
        st.booleans() if special is None else st.just(special),
    )


shapes = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)


@st.composite
def broadcastable(draw: Callable[..., Any], count: int = 2) -> list[tuple[int, ...]]:
    """Shapes that mostly broadcast against each other."""
    full = draw(shapes)
    out = [full]
    for _ in range(count - 1):
        shape = list(full[draw(st.integers(0, len(full) - 1)) :])
        for i in range(len(shape)):
            choice = draw(st.integers(0, 9))
            if choice < 2:
                shape[i] = 1
            elif choice == 9:
                shape[i] = draw(st.integers(0, 3))
        out.append(tuple(shape))
    return draw(st.permutations(out))


ints = st.one_of(st.integers(-3, 5), st.sampled_from((127, 128, 255, 256, -128, -129, 2**31, 2**53 + 1, 2**62, -(2**63) + 1)))
floats = st.one_of(st.sampled_from((*map(float, _SPECIAL), 1e-40)), st.floats(-10, 10))
complexes = st.builds(complex, floats, floats)


@st.composite
def numbers(draw: Callable[..., Any]) -> Any:
    """A Python number or NumPy scalar."""
    kind = draw(st.sampled_from(("int", "float", "bool", "complex", "numpy")))
    if kind == "numpy":
        dtype = np.dtype(draw(dtypes))
        small = draw(st.integers(0, 100))
        return dtype.type(small if dtype.kind in "biu" else small / 8 - 3)
    return draw({"int": ints, "float": floats, "bool": st.booleans(), "complex": complexes}[kind])
