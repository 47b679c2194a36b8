"""Builds graphs from a few words and runs their plans, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tierup import _core
from tierup.graph.ir import INDEX, NOTHING, OBJECT, ArrayType, ExitSlot, Graph, Node, ScalarType
from tierup.graph.loops import CHARS, loop_dtypes
from tierup.graph.verify import verify
from tierup.native.compile import Compiled, compile_graph

CHAR_OF = {dtype: char for char, dtype in reversed(CHARS.items())}


def dtype_name(a: Any) -> str:
    """'f8' for a float64 array or dtype."""
    dtype = np.dtype(getattr(a, "dtype", a))
    return "b1" if dtype.kind == "b" else f"{dtype.kind}{dtype.itemsize}"


def loop_for(ufunc: np.ufunc, dtypes: Sequence[str]) -> str:
    """The first loop whose inputs are exactly these dtypes."""
    for loop in ufunc.types:
        try:
            ins, _ = loop_dtypes(loop)
        except ValueError:
            continue
        if list(ins) == list(dtypes):
            return str(loop)
    raise LookupError(f"{ufunc.__name__} has no loop for {dtypes}")


class Maker:
    """A graph whose inputs are arrays given by example."""

    def __init__(self) -> None:
        self.graph = Graph("test")
        self.inputs: list[Any] = []

    def array(self, example: np.ndarray) -> Node:
        self.inputs.append(example)
        o = self.graph.add("object", (), OBJECT, expr=len(self.inputs) - 1)
        return self.graph.add("array", (o,), ArrayType(dtype_name(example), example.ndim))

    def scalar(self, value: Any) -> Node:
        """A scalar known only at run time."""
        self.inputs.append(value)
        o = self.graph.add("object", (), OBJECT, expr=len(self.inputs) - 1)
        if isinstance(value, np.generic):
            kind = ScalarType(dtype_name(value), "numpy")
        else:
            kind = ScalarType({int: "i8", float: "f8", bool: "b1", complex: "c16"}[type(value)], "python")
        return self.graph.add("unbox", (o,), kind)

    def literal(self, value: Any) -> Node:
        return self.graph.add(
            "literal", (), ScalarType({int: "i8", float: "f8", bool: "b1", complex: "c16"}[type(value)], "python"), value=value
        )

    def same_shape(self, *arrays: Node) -> None:
        """Checks as capture makes them."""
        first = arrays[0]
        assert isinstance(first.type, ArrayType)
        for a in arrays[1:]:
            for axis in range(first.type.ndim):
                dims = [self.graph.add("dim", (x,), INDEX, axis=axis) for x in (a, first)]
                self.graph.add("check", dims, NOTHING, cond="eq")

    def ufunc(self, name: str, loop: str, *args: Node) -> Node:
        ndim = max(a.type.ndim for a in args if isinstance(a.type, ArrayType))
        return self.graph.add("ufunc", args, ArrayType(loop_dtypes(loop)[1], ndim), name=name, loop=loop)

    def result(self, *values: Node) -> None:
        for k, v in enumerate(values):
            self.graph.exit.append(ExitSlot("local", k, self.graph.add("box", (v,), OBJECT)))

    def compile(self) -> Compiled:
        verify(self.graph)
        return compile_graph(self.graph, {k: k for k in range(len(self.inputs))})


def run(compiled: Compiled, inputs: Sequence[Any]) -> list[Any] | None:
    """The exit's values in order, or None for a miss."""
    status, registers = _core.run_plan(compiled.plan, list(inputs))
    assert status in (0, 1)
    return [registers[reg] for _, _, reg in compiled.program.exit] if status == 0 else None


def same_bits(a: Any, b: Any, nans_alike: bool = True) -> bool:
    """Equal type, shape, strides and bits; NaNs may differ in sign and payload."""
    if type(a) is not type(b):
        return False
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype != y.dtype or x.shape != y.shape or x.strides != y.strides:
        return False
    part = {"c": f"f{x.itemsize // 2}"}.get(x.dtype.kind, x.dtype)
    x, y = (np.ascontiguousarray(v).reshape(-1).view(part) for v in (x, y))
    differ = x.view(f"u{x.itemsize}") != y.view(f"u{y.itemsize}")
    if nans_alike and x.dtype.kind == "f":
        differ &= ~(np.isnan(x) & np.isnan(y))
    return not differ.any()
