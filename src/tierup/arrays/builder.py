"""Builds graph nodes for rules: symbolic integers with folding, checks, array results.

A rule gets a `Builder` and symbolic values and returns a value, or raises `NoRule`; then the original instruction makes the call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tierup.arrays.values import ArrayValue, Buffer, ConstValue, ScalarValue, Value
from tierup.graph.ir import INDEX, NOTHING, ArrayType, Graph, Node, ScalarType, Type

_INT64_MAX = 2**63 - 1


class NoRule(Exception):
    """This call is not captured; the message is the break's reason."""


class Builder:
    """Appends nodes to one graph, folding integer arithmetic on constants and repeated `dim`s."""

    def __init__(self, graph: Graph, guard_constant: Callable[[ScalarValue], None]) -> None:
        """guard_constant makes the region's guards demand that an unboxed scalar equals its hint."""
        self.graph = graph
        self.line = 0
        self._guard_constant = guard_constant
        self._dims: dict[tuple[Node, int], ScalarValue] = {}
        self._literals: dict[tuple[ScalarType, type, Any], Node] = {}

    def node(self, op: str, args: Sequence[Node], type: Type, **attrs: object) -> Node:
        return self.graph.add(op, args, type, self.line, **attrs)

    def rollback(self, length: int) -> None:
        """Forget all nodes after the first `length` (an instruction that could not be captured after all)."""
        del self.graph.nodes[length:]
        self._dims = {k: v for k, v in self._dims.items() if v.node.id < length and k[0].id < length}
        self._literals = {k: n for k, n in self._literals.items() if n.id < length}

    # -- scalars -------------------------------------------------------------------------------------------

    def literal(self, value: Any, type: ScalarType) -> Node:
        """The node of a number known now; floats are kept apart by their bits."""
        key = (type, value.__class__, repr(value))
        if key not in self._literals:
            self._literals[key] = self.node("literal", (), type, value=value)
        return self._literals[key]

    def index(self, value: Value | int) -> ScalarValue:
        """value as a symbolic Python int. Raises NoRule for anything that is not an exact int or an index."""
        if isinstance(value, int) and not isinstance(value, bool):
            value = ConstValue(value)
        if isinstance(value, ScalarValue) and value.is_int:
            return value
        if isinstance(value, ConstValue) and type(value.value) is int and abs(value.value) <= _INT64_MAX:
            return ScalarValue(self.literal(value.value, INDEX), value.value)
        raise NoRule("an integer that is not a plain Python int")

    def known(self, value: ScalarValue) -> int | None:
        """The integer if it is a literal, else None."""
        return value.node.attrs["value"] if value.node.op == "literal" else None  # type: ignore[return-value]

    def concrete(self, value: Value) -> int:
        """The int itself; if it is symbolic, the region is specialised on it. Raises NoRule where that is impossible."""
        i = self.index(value)
        if self.known(i) is None:
            if i.node.op == "unbox":
                self._guard_constant(i)
            else:
                self.check("eq", i, self.index(i.hint))
        return int(i.hint)

    def dim(self, array: ArrayValue, axis: int) -> ScalarValue:
        """shape[axis] as a symbolic int."""
        key = (array.node, axis)
        if key not in self._dims:
            self._dims[key] = ScalarValue(self.node("dim", (array.node,), INDEX, axis=axis), array.shape[axis])
        return self._dims[key]

    def arith(self, op: str, a: ScalarValue, b: ScalarValue) -> ScalarValue:
        """op: iadd isub imul ifloordiv imod imin imax. Hints are computed with Python ints. Raises NoRule on overflow or zero divisor."""
        if op in ("ifloordiv", "imod") and b.hint == 0:
            raise NoRule("integer division by zero")
        if op == "ipow" and not 0 <= b.hint <= 64:
            raise NoRule("a power that is no 64-bit integer")
        hint = _PY_ARITH[op](a.hint, b.hint)
        if abs(hint) > _INT64_MAX:
            raise NoRule("an integer beyond 64 bits")
        if self.known(a) is not None and self.known(b) is not None:
            return self.index(hint)
        return ScalarValue(self.node(op, (a.node, b.node), ScalarType("i8", "python")), hint)

    def compare(self, cond: str, a: ScalarValue, b: ScalarValue) -> bool:
        """Decide cond (lt le eq ne gt ge) by the hints and secure the decision with a check."""
        holds = _COND[cond](a.hint, b.hint)
        if self.known(a) is None or self.known(b) is None:
            if cond in ("gt", "ge"):
                cond, a, b = {"gt": "lt", "ge": "le"}[cond], b, a
            if not holds:
                cond, a, b = {"lt": ("le", b, a), "le": ("lt", b, a), "eq": ("ne", a, b), "ne": ("eq", a, b)}[cond]
            self.check(cond, a, b)
        return holds

    def check(self, cond: str, a: ScalarValue, b: ScalarValue) -> None:
        if a.node is not b.node:
            self.node("check", (a.node, b.node), NOTHING, cond=cond)

    # -- arrays -------------------------------------------------------------------------------------------------

    def array(
        self,
        op: str,
        args: Sequence[Node],
        dtype: str,
        shape: Sequence[int],
        /,
        *,
        buffer: Buffer | None = None,
        ccontig: bool = False,
        writeable: bool = True,
        corder: bool = False,
        **attrs: object,
    ) -> ArrayValue:
        """A node whose value is an array; buffer None means fresh memory."""
        node = self.node(op, args, ArrayType(dtype, len(shape)), **attrs)
        node.elements = math.prod(shape)
        return ArrayValue(node, tuple(shape), buffer or Buffer(True), None, ccontig, writeable, corder)

    def view(
        self,
        op: str,
        of: ArrayValue,
        args: Sequence[Node],
        shape: Sequence[int],
        /,
        *,
        dtype: str | None = None,
        ccontig: bool = False,
        corder: bool = False,
        **attrs: object,
    ) -> ArrayValue:
        """A node whose value is a view on `of`'s memory."""
        return self.array(
            op,
            (of.node, *args),
            dtype or of.dtype,
            shape,
            buffer=of.buffer,
            ccontig=ccontig,
            writeable=of.writeable,
            corder=corder,
            **attrs,
        )

    def size(self, array: ArrayValue) -> ScalarValue:
        """The number of elements as a symbolic int."""
        if array.ndim == 1:
            return self.dim(array, 0)
        key = (array.node, -1)
        if key not in self._dims:
            self._dims[key] = ScalarValue(self.node("size", (array.node,), INDEX), array.size)
        return self._dims[key]

    def bounded(self, value: ScalarValue, low: int, high: int) -> bool:
        """Is low <= value <= high, by the hint; secured with checks."""
        if value.hint < low:
            return not self.compare("lt", value, self.index(low))
        if value.hint > high:
            return not self.compare("gt", value, self.index(high))
        return (low <= -_INT64_MAX or self.compare("ge", value, self.index(low))) and (
            high >= _INT64_MAX or self.compare("le", value, self.index(high))
        )

    def to_double(self, value: ScalarValue) -> Node:
        """The `f8.python` node of an int's value; the region is left where the conversion is not exact."""
        if value.hint is not None and abs(value.hint) > 2**53:
            raise NoRule("an integer beyond 2**53 as a float")
        if self.known(value) is not None:
            return self.literal(float(value.hint), ScalarType("f8", "python"))
        return self.node("itodouble", (value.node,), ScalarType("f8", "python"))

    def broadcast_shape(self, arrays: Sequence[ArrayValue]) -> tuple[int, ...]:
        """Hint of the broadcast shape, secured with checks on which axes have length one and which are equal.
        Raises NoRule if the arrays do not broadcast (the original instruction raises NumPy's error)."""
        ndim = max(a.ndim for a in arrays)
        shape = []
        for axis in range(-ndim, 0):
            best: ScalarValue | None = None
            for a in arrays:
                if a.ndim < -axis:
                    continue
                d = self.dim(a, a.ndim + axis)
                if best is None:
                    best = d
                elif d.hint == best.hint:
                    self.check("eq", d, best)
                elif d.hint == 1:
                    self.check("eq", d, self.index(1))
                elif best.hint == 1:
                    self.check("eq", best, self.index(1))
                    best = d
                else:
                    raise NoRule("operands could not be broadcast together")
            assert best is not None
            shape.append(best.hint)
        return tuple(shape)


_PY_ARITH: dict[str, Callable[[int, int], int]] = {
    "iadd": lambda a, b: a + b,
    "isub": lambda a, b: a - b,
    "imul": lambda a, b: a * b,
    "ifloordiv": lambda a, b: a // b,
    "imod": lambda a, b: a % b,
    "ipow": pow,
    "imin": min,
    "imax": max,
}
_COND: dict[str, Callable[[Any, Any], bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
