"""Element types: codes and NumPy's dtype objects, scalar types, which casts the graph can express."""

from __future__ import annotations

import ctypes
import math
from typing import Any, Final

import numpy as np

from tierup.arrays.builder import NoRule
from tierup.arrays.values import ConstValue, Value
from tierup.graph.ir import DTYPES

DTYPE: Final[dict[str, np.dtype[Any]]] = {code: np.dtype(code) for code in DTYPES}
_CODE_OF_NUM: Final[dict[int, str]] = {dtype.num: code for code, dtype in DTYPE.items()}
SCALAR_CODE: Final[dict[type, str]] = {dtype.type: code for code, dtype in DTYPE.items()}

INT_RANGE: Final[dict[str, tuple[int, int]]] = {
    code: (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) for code, dtype in DTYPE.items() if dtype.kind in "iu"
}
KIND: Final[dict[str, str]] = {code: dtype.kind for code, dtype in DTYPE.items()}
ITEMSIZE: Final[dict[str, int]] = {code: dtype.itemsize for code, dtype in DTYPE.items()}
REAL_PART: Final[dict[str, str]] = {"c8": "f4", "c16": "f8"}


def code_of(dtype: np.dtype[Any]) -> str | None:
    """The code of a built-in, native dtype. Compared by type number: 'long long' is not int64 where that is 'long'."""
    return _CODE_OF_NUM.get(dtype.num) if dtype.isnative and dtype.metadata is None else None


def require_code(dtype: np.dtype[Any]) -> str:
    """The code, or NoRule."""
    code = code_of(dtype)
    if code is None:
        raise NoRule(f"dtype {dtype} is not supported")
    return code


def dtype_argument(value: Value | None) -> str | None:
    """The code that a dtype argument names; None for None or an argument not given."""
    if value is None:
        return None
    if not isinstance(value, ConstValue):
        raise NoRule("a dtype that is not known at translation time")
    spec = value.value
    if spec is None:
        return None
    if spec is float or spec is int or spec is bool or spec is complex or (isinstance(spec, type) and spec in SCALAR_CODE):
        return require_code(np.dtype(spec))
    if type(spec) is str and spec in _NAMES:
        return _NAMES[spec]
    if isinstance(spec, np.dtype) and type(spec) in _DTYPE_CLASSES:
        return require_code(spec)
    raise NoRule("a dtype argument of an unknown kind")


def required_dtype(value: Value | None) -> str:
    """The code that a dtype argument other than None names."""
    code = dtype_argument(value)
    if code is None:
        raise NoRule("None as a dtype")
    return code


def _names() -> dict[str, str]:
    """Spellings of the supported dtypes as strings."""
    out: dict[str, str] = {}
    for code, dtype in DTYPE.items():
        for name in (code, dtype.str, "=" + code, dtype.name, dtype.char):
            if np.dtype(name).num == dtype.num and np.dtype(name).isnative:
                out[name] = code
    return out | {"float": "f8", "int": require_code(np.dtype(int)), "complex": "c16"}


_NAMES: Final = _names()
_DTYPE_CLASSES: Final = frozenset(type(dtype) for dtype in DTYPE.values())


def round_to_float32(value: float) -> float:
    """value rounded to float32 as C does. Raises NoRule where that overflows (NumPy warns)."""
    out = ctypes.c_float(value).value
    if math.isinf(out) and not math.isinf(value):
        raise NoRule("a float beyond the range of float32")
    return out


def can_astype(source: str, target: str) -> bool:
    """Whether the graph's `astype` covers the conversion with NumPy's bits: everything but float to int and complex to real."""
    s, t = KIND[source], KIND[target]
    if source == target or t == "b" or s in "biu":
        return True
    return (s == "f" and t in "fc") or (s == "c" and t == "c")


def same_kind(source: str, target: str) -> bool:
    """NumPy's same_kind casting."""
    return np.can_cast(DTYPE[source], DTYPE[target], "same_kind")


def safe(source: str, target: str) -> bool:
    """NumPy's safe casting."""
    return np.can_cast(DTYPE[source], DTYPE[target], "safe")
