"""Symbolic shapes: what a graph's checks say about axis lengths, worked out once, in program order.

Every axis of every array has a *dimension*: a known number, a scalar node, or the axis of an array that only the run knows. Dimensions
that a `check eq` declares equal are merged. Two uses: elementwise operations of one symbolic shape may share a kernel, and a `dim` of
an intermediate result is read off an input instead, so the intermediate need not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tierup.graph.ir import ArrayType, Graph, Node

Dim = tuple[str, object, int]
"""('number', value, 0), ('scalar', node, 0) or ('axis', node, axis)."""
ELEMENTWISE = frozenset(("ufunc", "where", "astype"))


def number(value: int) -> Dim:
    return ("number", value, 0)


class Shapes:
    """Dimensions of every array of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._parent: dict[Dim, Dim] = {}
        self._rank: dict[Dim, int] = {}
        self._shape: dict[Node, tuple[Dim, ...]] = {}
        self.value: dict[Node, Dim] = {}
        """For every `dim` and `size` node: where its value comes from, by what was known at that point."""
        self.trivial: set[Node] = set()
        """Checks that earlier ones imply."""
        for node in graph.nodes:
            self._visit(node)

    def of(self, node: Node) -> tuple[Dim, ...]:
        """The shape of an array by everything the graph checks."""
        return tuple(self._find(d) for d in self._shape[node])

    def inputs(self, node: Node) -> tuple[Node, ...]:
        """The nodes whose values computing `node` really takes: of a `dim`, those of where its number comes from."""
        d = self.value.get(node)
        if d is None:
            return node.args
        if d == ("scalar", node, 0):
            return node.args
        return (d[1],) if isinstance(d[1], Node) else ()

    # -- equality ----------------------------------------------------------------------------------------------

    def _find(self, d: Dim) -> Dim:
        while (up := self._parent.get(d, d)) != d:
            d = up
        return d

    def _merge(self, a: Dim, b: Dim) -> None:
        a, b = self._find(a), self._find(b)
        if a == b:
            return
        if (b[0] == "number", -self._age(b)) > (a[0] == "number", -self._age(a)):
            a, b = b, a
        self._parent[b] = a

    def _age(self, d: Dim) -> int:
        return self._rank.setdefault(d, len(self._rank))

    # -- one node ----------------------------------------------------------------------------------------------

    def _visit(self, node: Node) -> None:
        if node.op == "check":
            self._check(node)
        elif isinstance(node.type, ArrayType):
            shape = self._array(node)
            for d in shape:
                self._age(d)
            self._shape[node] = shape
        elif node.op in ("dim", "size"):
            self._age(self.dim_of(node))

    def dim_of(self, node: Node) -> Dim:
        """The dimension that a scalar node's value is."""
        if node in self.value:
            return self.value[node]
        d: Dim = ("scalar", node, 0)
        if node.op == "literal" and type(node.attrs["value"]) is int:
            d = number(node.attrs["value"])
        elif node.op == "dim":
            d = self._find(self._shape[node.args[0]][_int(node, "axis")])
        elif node.op == "size":
            shape = self._shape[node.args[0]]
            if len(shape) == 1:
                d = self._find(shape[0])
            elif not shape:
                d = number(1)
        if node.op in ("dim", "size"):
            self.value[node] = d
        return d

    def _check(self, node: Node) -> None:
        a, b = (self.dim_of(x) for x in node.args)
        if node.attrs["cond"] != "eq" or not _is_int(node.args[0]):
            return
        if self._find(a) == self._find(b):
            self.trivial.add(node)
        self._merge(a, b)

    def _array(self, node: Node) -> tuple[Dim, ...]:
        assert isinstance(node.type, ArrayType)
        if node.op in ELEMENTWISE:
            return self._broadcast_of(node)
        rule = _RULES.get(node.op)
        if rule is None:
            return tuple(("axis", node, k) for k in range(node.type.ndim))
        return rule(self, node, self._shape.get(node.args[0], ()) if node.args else ())

    def _broadcast_of(self, node: Node) -> tuple[Dim, ...]:
        assert isinstance(node.type, ArrayType)
        operands = [self._shape[a] for a in node.args if isinstance(a.type, ArrayType)]
        out: list[Dim] = []
        for axis in range(-node.type.ndim, 0):
            dims = {self._find(s[axis]) for s in operands if len(s) >= -axis}
            if len(dims) > 1:
                dims.discard(number(1))
            out.append(dims.pop() if len(dims) == 1 else ("axis", node, node.type.ndim + axis))
        return tuple(out)


_Rule = Callable[["Shapes", Node, tuple[Dim, ...]], tuple[Dim, ...]]
"""(shapes, node, shape of its first argument if that is an array) → shape."""


def _slice(s: Shapes, node: Node, base: tuple[Dim, ...]) -> tuple[Dim, ...]:
    axis = _int(node, "axis")
    return (*base[:axis], ("axis", node, axis), *base[axis + 1 :])


def _index(s: Shapes, node: Node, base: tuple[Dim, ...]) -> tuple[Dim, ...]:
    axis = _int(node, "axis")
    return (*base[:axis], *base[axis + 1 :])


def _newaxis(s: Shapes, node: Node, base: tuple[Dim, ...]) -> tuple[Dim, ...]:
    axis = _int(node, "axis")
    return (*base[:axis], number(1), *base[axis:])


def _transpose(s: Shapes, node: Node, base: tuple[Dim, ...]) -> tuple[Dim, ...]:
    perm = node.attrs["perm"]
    assert isinstance(perm, tuple)
    return tuple(base[p] for p in perm)


def _given(s: Shapes, node: Node, base: tuple[Dim, ...]) -> tuple[Dim, ...]:
    assert isinstance(node.type, ArrayType)
    return tuple(s.dim_of(a) for a in node.args[len(node.args) - node.type.ndim :])


def _like(s: Shapes, node: Node, base: tuple[Dim, ...]) -> tuple[Dim, ...]:
    return base


def _reduce(s: Shapes, node: Node, base: tuple[Dim, ...]) -> tuple[Dim, ...]:
    axis, keep = node.attrs["axis"], (number(1),) if node.attrs["keepdims"] else ()
    if axis is None:
        return keep * len(base)
    assert isinstance(axis, int)
    return (*base[:axis], *keep, *base[axis + 1 :])


_RULES: Final[dict[str, _Rule]] = {
    "slice": _slice, "index": _index, "newaxis": _newaxis, "transpose": _transpose, "reshape": _given, "broadcast": _given,
    "empty": _given, "zeros": _given, "full": _given, "empty_like": _like, "zeros_like": _like, "copy": _like, "real": _like, "imag": _like,
    "reduce": _reduce,
}  # fmt: skip


def _int(node: Node, attr: str) -> int:
    value = node.attrs[attr]
    assert isinstance(value, int)
    return value


def _is_int(node: Node) -> bool:
    return getattr(node.type, "dtype", "") == "i8"
