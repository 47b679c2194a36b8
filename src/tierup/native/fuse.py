"""Which elementwise operations share a kernel.

A kernel runs over one iteration space, so its operations must have the same symbolic shape (`shapes.py`). Operations are added to a
group of their producers, or to a group that reads the same arrays, as long as no cycle between kernels arises. Results needed outside
the group become outputs; all others never reach memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from tierup.graph.ir import ArrayType, Graph, Node, ScalarType
from tierup.graph.loops import loop_dtypes
from tierup.native.kernels import KernelOp, KernelSpec, Ref, Target
from tierup.native.ops import is_generated
from tierup.native.shapes import ELEMENTWISE, Dim, Shapes

MAX_OPS: Final = 96
"""Operations in one kernel: compile time grows with them, and what they share shrinks."""
MAX_OPERANDS: Final = 60
"""Arrays and scalars of one kernel, in and out; the launcher takes 64, and casts of scalars may add some."""


Inputs = Callable[[Node], Sequence[Node]]


@dataclass(slots=True, eq=False)
class Group:
    """Elementwise nodes of one kernel, in program order."""

    nodes: list[Node]
    shape: tuple[Dim, ...]
    outputs: list[Node] = field(default_factory=list)
    operands: set[Node] = field(init=False)

    def __post_init__(self) -> None:
        inside = set(self.nodes)
        self.operands = {a for n in self.nodes for a in n.args if a not in inside}


class _Fuser:
    """Units are numbered: a group, or a single other node. deps are kept transitively closed as bit sets."""

    def __init__(self, graph: Graph, shapes: Shapes, needed: set[Node], inputs: Inputs) -> None:
        self.graph = graph
        self.shapes = shapes
        self.inputs = inputs
        self.unit_of: dict[Node, int] = {}
        self.deps: list[int] = []
        self.groups: dict[int, Group] = {}
        self.readers: dict[Node, list[int]] = {}
        self._swallowed: dict[int, int] = {}
        for node in graph.nodes:
            if node in needed:
                self._add(node)

    def _add(self, node: Node) -> None:
        unit = len(self.deps)
        self.unit_of[node] = unit
        deps = 0
        for a in self.inputs(node):
            if a in self.unit_of:
                other = self.unit_of[a]
                deps |= 1 << other | self.deps[other]
        self.deps.append(deps)
        if node.op not in ELEMENTWISE:
            return
        self.groups[unit] = Group([node], self.shapes.of(node))
        arrays = [a for a in node.args if isinstance(a.type, ArrayType)]
        candidates = [self.unit_of[a] for a in arrays if a.op in ELEMENTWISE and a in self.unit_of]
        candidates += [u for a in arrays for u in self._readers_of(a)]
        for candidate in candidates:
            other = self._current(candidate)
            if other != unit and self._may_merge(other, unit):
                unit = self._merge(other, unit)
        for a in arrays:
            self.readers.setdefault(a, []).append(unit)

    def _readers_of(self, array: Node) -> list[int]:
        """The groups that read an array, each once."""
        readers = list(dict.fromkeys(map(self._current, self.readers.get(array, ()))))
        self.readers[array] = readers
        return readers

    def _current(self, unit: int) -> int:
        """The group that swallowed a unit."""
        while unit not in self.groups:
            unit = self._swallowed[unit]
        return unit

    def _may_merge(self, first: int, second: int) -> bool:
        a, b = self.groups[first], self.groups[second]
        if a.shape != b.shape or len(a.nodes) + len(b.nodes) > MAX_OPS or len(a.operands | b.operands) > MAX_OPERANDS:
            return False
        return not self._path_outside(first, second) and not self._path_outside(second, first)

    def _path_outside(self, source: int, target: int) -> bool:
        """Whether target depends on source through a third unit."""
        if not self.deps[target] >> source & 1:
            return False
        inside = (1 << source) | (1 << target)
        third = self.deps[target] & ~inside
        while third:
            low = third & -third
            if self.deps[low.bit_length() - 1] >> source & 1:
                return True
            third ^= low
        return False

    def _merge(self, kept: int, gone: int) -> int:
        a, b = self.groups[kept], self.groups.pop(gone)
        a.nodes = sorted(a.nodes + b.nodes, key=lambda n: n.id)
        a.operands = (a.operands | b.operands).difference(a.nodes)
        self._swallowed[gone] = kept
        for n in b.nodes:
            self.unit_of[n] = kept
        both = 1 << kept | 1 << gone
        deps = (self.deps[kept] | self.deps[gone]) & ~both
        self.deps[kept] = deps
        self.deps[gone] = 0
        for u, d in enumerate(self.deps):
            if d & both:
                self.deps[u] = d & ~(1 << gone) | 1 << kept | deps
        return kept


def fuse(graph: Graph, shapes: Shapes, needed: set[Node], inputs: Inputs) -> list[Group]:
    """Groups of the needed elementwise nodes, each node in exactly one, in order of their first node. inputs: what a node really takes."""
    users: dict[Node, list[Node]] = {}
    for node in needed:
        for a in inputs(node):
            users.setdefault(a, []).append(node)
    work = list(_Fuser(graph, shapes, needed, inputs).groups.values())
    done: list[Group] = []
    while work:
        group = work.pop()
        inside = set(group.nodes)
        group.outputs = [n for n in group.nodes if any(u not in inside for u in users.get(n, ()))] or [group.nodes[-1]]
        if len(group.operands) + len(group.outputs) <= MAX_OPERANDS or len(group.nodes) == 1:
            done.append(group)
        else:  # program order has no cycles, so any cut along it is fine
            half = len(group.nodes) // 2
            work += [Group(group.nodes[:half], group.shape), Group(group.nodes[half:], group.shape)]
    return sorted(done, key=lambda g: g.nodes[0].id)


# -- a group as a kernel --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bound:
    """A kernel's description and the nodes behind its operands. Scalars carry the dtype they must be cast to."""

    spec: KernelSpec
    inputs: tuple[Node, ...]
    scalars: tuple[tuple[Node, str], ...]
    outputs: tuple[Node, ...]


class _Binder:
    """Turns the nodes of a group into operations. An operation that repeats an earlier one is that one, unless both results are outputs."""

    def __init__(self, target: Target, outputs: Collection[Node]) -> None:
        self.target = target
        self.outputs = outputs
        self.inputs: dict[Node, int] = {}
        self.scalars: dict[tuple[Node, str], int] = {}
        self.ops: list[KernelOp] = []
        self.made: dict[Node, int] = {}
        self._known: dict[KernelOp, int] = {}
        self._taken: set[int] = set()

    def operand(self, node: Node, dtype: str) -> Ref:
        """Where an operation finds `node` as `dtype`."""
        if isinstance(node.type, ScalarType):
            return Ref("s", self.scalars.setdefault((node, dtype), len(self.scalars)))
        ref = self.array(node)
        assert isinstance(node.type, ArrayType)
        if node.type.dtype == dtype:
            return ref
        return Ref("t", self.append(KernelOp("cast", (node.type.dtype,), dtype, (ref,), implicit=True)))

    def operands(self, node: Node, dtypes: tuple[str, ...]) -> tuple[Ref, ...]:
        return tuple(self.operand(a, d) for a, d in zip(node.args, dtypes, strict=True))

    def array(self, node: Node) -> Ref:
        if node in self.made:
            return Ref("t", self.made[node])
        return Ref("a", self.inputs.setdefault(node, len(self.inputs)))

    def append(self, op: KernelOp) -> int:
        """The index of the operation, which is new if none is like it."""
        if op not in self._known:
            self.ops.append(op)
            self._known[op] = len(self.ops) - 1
        return self._known[op]

    def add(self, node: Node) -> None:
        op = self.operation(node)
        if node in self.outputs and self._known.get(op) in self._taken:
            del self._known[op]  # memory of its own
        self.made[node] = self.append(op)
        if node in self.outputs:
            self._taken.add(self.made[node])

    def operation(self, node: Node) -> KernelOp:
        assert isinstance(node.type, ArrayType)
        out = node.type.dtype
        if node.op == "astype":
            source = node.args[0]
            assert isinstance(source.type, ArrayType)
            return KernelOp("cast", (source.type.dtype,), out, (self.array(source),))
        if node.op == "where":
            return KernelOp("where", ("b1", out, out), out, self.operands(node, ("b1", out, out)))
        name, loop = str(node.attrs["name"]), str(node.attrs["loop"])
        ins, result = loop_dtypes(loop)
        operands = self.operands(node, ins)
        scalars = tuple(r.kind == "s" for r in operands)
        return KernelOp(name, ins, result, operands, loop, not is_generated(name, ins, result, scalars, self.target))


def bind(group: Group, target: Target) -> Bound:
    """The kernel of a group whose outputs are known."""
    b = _Binder(target, set(group.outputs))
    for node in group.nodes:
        b.add(node)
    spec = KernelSpec(
        tuple(n.type.dtype for n in b.inputs if isinstance(n.type, ArrayType)),
        tuple(dtype for _, dtype in b.scalars),
        tuple(b.ops),
        tuple(b.made[n] for n in group.outputs),
    )
    return Bound(spec, tuple(b.inputs), tuple(b.scalars), tuple(group.outputs))
