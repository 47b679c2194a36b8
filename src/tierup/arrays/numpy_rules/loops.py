"""Which inner loop a ufunc runs for given operands."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy._core import umath

from tierup.arrays.builder import NoRule
from tierup.arrays.numpy_rules.dtypes import DTYPE, code_of
from tierup.arrays.numpy_rules.operands import Promotes

_CODE_OF_CHAR: Final[dict[str, str]] = {dtype.char: code for code, dtype in DTYPE.items()}


def supported(ufunc: np.ufunc) -> bool:
    """Elementwise, one output, and found again under its name by the native side."""
    name = ufunc.__name__
    found = getattr(umath, name, None) is ufunc or getattr(np, name, None) is ufunc
    return found and ufunc.signature is None and ufunc.nout == 1 and ufunc.nin <= 3


@lru_cache(maxsize=4096)
def find_loop(ufunc: np.ufunc, promotes: tuple[Promotes, ...], result: np.dtype[Any] | None = None) -> str:
    """The signature of the inner loop that NumPy runs, as type characters. Raises NoRule if there is none, or one of unsupported types."""
    fixed: dict[str, Any] = {} if result is None else {"signature": (None,) * ufunc.nin + (result,)}
    try:
        # resolve_dtypes only looks at dtypes and types; it raises NumPy's own error where there is no loop.
        resolved = ufunc.resolve_dtypes((*promotes, None), **fixed)
    except (TypeError, ValueError, OverflowError) as error:
        raise NoRule(f"no loop of {ufunc.__name__} for these operands") from error
    if any(code_of(dtype) is None for dtype in resolved):
        raise NoRule(f"the loop of {ufunc.__name__} has a type that is not supported")
    loop = "".join(dtype.char for dtype in resolved[:-1]) + "->" + resolved[-1].char
    if loop not in ufunc.types:
        raise NoRule(f"{ufunc.__name__} has no plain loop {loop}")
    return loop


def loop_codes(loop: str) -> list[str]:
    """The dtype codes of a loop's inputs and its output, in order."""
    return [_CODE_OF_CHAR[char] for char in loop.replace("->", "")]
