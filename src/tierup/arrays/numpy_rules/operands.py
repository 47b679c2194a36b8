"""What an operand of an elementwise operation is to NumPy: an array, a strong scalar, or a Python number that promotes weakly (NEP 50)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tierup.arrays.builder import Builder, NoRule
from tierup.arrays.numpy_rules.dtypes import DTYPE, INT_RANGE, KIND, SCALAR_CODE, code_of, round_to_float32
from tierup.arrays.values import ArrayValue, ConstValue, ScalarValue, Value
from tierup.graph.ir import Node, ScalarType

Promotes = np.dtype[Any] | type[int] | type[float] | type[complex]
_WEAK: Final[dict[str, type[int] | type[float] | type[complex]]] = {"i8": int, "f8": float, "c16": complex}
_WEAK_CODE: Final = {int: "i8", float: "f8", complex: "c16"}


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """An operand and how it takes part in promotion: with a dtype, or weakly as int, float or complex."""

    value: ArrayValue | ScalarValue | ConstValue
    promotes: Promotes

    @property
    def array(self) -> ArrayValue | None:
        return self.value if isinstance(self.value, ArrayValue) else None

    @property
    def weak(self) -> type | None:
        return self.promotes if isinstance(self.promotes, type) else None

    @property
    def code(self) -> str:
        """The dtype that NumPy gives the operand when it stands alone."""
        return _WEAK_CODE[self.promotes] if isinstance(self.promotes, type) else _known(self.promotes)


def _known(dtype: np.dtype[Any]) -> str:
    code = code_of(dtype)
    assert code is not None
    return code


def operand(value: Value) -> Operand:
    """Classify. Raises NoRule for what is neither an array nor a number of an exact known type."""
    if isinstance(value, ArrayValue):
        return Operand(value, DTYPE[value.dtype])
    if isinstance(value, ScalarValue):
        code = value.type.dtype
        weak = _WEAK.get(code) if value.is_python else None
        if value.is_python and weak is None and code != "b1":
            raise NoRule("a Python number of an unknown kind")
        return Operand(value, weak or DTYPE[code])
    if isinstance(value, ConstValue):
        kind = type(value.value)
        if kind is int or kind is float or kind is complex:
            return Operand(value, kind)
        if kind is bool:
            return Operand(value, DTYPE["b1"])
        if kind in SCALAR_CODE:
            return Operand(value, DTYPE[SCALAR_CODE[kind]])
    raise NoRule("an operand that is neither an array nor a number")


def scalar_node(b: Builder, op: Operand, code: str) -> Node:
    """The node of a scalar operand, ready for a loop whose type is `code`: of that type, or of one whose cast to it has NumPy's bits on the
    native side. Python ints are checked to fit, as NumPy demands."""
    value = op.value
    if isinstance(value, ConstValue):
        return _constant_node(b, value.value, code)
    assert isinstance(value, ScalarValue)
    if op.weak is not int:
        if (op.weak is float and KIND[code] not in "fc") or (op.weak is complex and KIND[code] != "c"):
            raise NoRule(f"a Python {op.weak.__name__} where {code} is wanted")
        return value.node
    if KIND[code] in "fc":
        return b.to_double(value)
    if code not in INT_RANGE:
        raise NoRule("an int as a truth value")
    if not b.bounded(value, *INT_RANGE[code]):
        raise NoRule("a Python int out of bounds for the array's dtype")
    return value.node


def _constant_node(b: Builder, value: Any, code: str) -> Node:
    if isinstance(value, np.generic):
        value = value.item()
    if KIND[code] in "iu":
        if not isinstance(value, int):
            raise NoRule("a float where a loop takes integers")
        low, high = INT_RANGE[code]
        if not low <= value <= high:
            raise NoRule("a Python int out of bounds for the array's dtype")
    return b.literal(_convert(value, code), ScalarType(code, "numpy"))


def _convert(value: Any, code: str) -> Any:
    """A Python number as the Python number that an element of `code` holds."""
    if KIND[code] == "b":
        return bool(value)
    if KIND[code] in "iu":
        return int(value)
    if isinstance(value, complex) and KIND[code] != "c":
        raise NoRule("a complex number where a loop takes reals")
    if isinstance(value, int) and abs(value) > 2**63:
        raise NoRule("an integer beyond 64 bits")
    if KIND[code] == "f":
        return round_to_float32(float(value)) if code == "f4" else float(value)
    number = complex(value)
    if code == "c8":
        return complex(round_to_float32(number.real), round_to_float32(number.imag))
    return number


def integer(b: Builder, value: Value) -> ScalarValue:
    """An int, an index or an int64 as a symbolic Python int. The hint may be None."""
    if isinstance(value, ConstValue) and type(value.value) is DTYPE["i8"].type:
        return b.index(int(value.value))
    if isinstance(value, ScalarValue) and value.type == ScalarType("i8", "numpy"):
        return ScalarValue(b.node("cast", (value.node,), ScalarType("i8", "python")), value.hint)
    return b.index(value)


def element_node(b: Builder, op: Operand, code: str) -> Node:
    """The node of a scalar operand as a scalar of exactly dtype `code`."""
    node = scalar_node(b, op, code)
    assert isinstance(node.type, ScalarType)
    return node if node.type.dtype == code else b.node("cast", (node,), ScalarType(code, "numpy"))
