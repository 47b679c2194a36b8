"""The graph: typed SSA of array, scalar and object operations with one exit.

A `Graph` is a list of `Node`s in program order. Every node has an operation from the table in `spec.py`, arguments that are earlier
nodes, attributes (plain hashable data) and a type. Array values describe memory: views alias their argument's buffer, `ufunc`, `copy` and
the creation operations make fresh buffers, `store` writes. The exit maps frame slots to object nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

DTYPES: Final = ("b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16")
"""Element types, native byte order; b1 is bool."""

Box = Literal["python", "numpy", "index"]


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An ndarray (or view) of `dtype` with `ndim` axes; its shape and strides are run-time values."""

    dtype: str
    ndim: int

    def __str__(self) -> str:
        return f"{self.dtype}[{self.ndim}]"


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A single value. box says what it is to Python: a python int/float/bool/complex, a NumPy scalar, or an index (int64, overflow
    checked).

    A Python int that a graph computes with is (`i8`, python): arithmetic on it is checked for overflow, like an index.
    """

    dtype: str
    box: Box

    def __str__(self) -> str:
        return f"{self.dtype}.{self.box}"


@dataclass(frozen=True, slots=True)
class ObjectType:
    """A Python object the graph only moves around."""

    def __str__(self) -> str:
        return "object"


@dataclass(frozen=True, slots=True)
class NoneType_:
    """The type of nodes without a value (checks, stores)."""

    def __str__(self) -> str:
        return "()"


OBJECT: Final = ObjectType()
NOTHING: Final = NoneType_()
INDEX: Final = ScalarType("i8", "index")

Type = ArrayType | ScalarType | ObjectType | NoneType_


@dataclass(eq=False, slots=True)
class Node:
    """One operation. Identity is equality."""

    id: int
    op: str
    args: tuple[Node, ...]
    attrs: dict[str, object]
    type: Type
    line: int = 0
    """The user's line, for explanations; 0 if unknown."""
    elements: int = 0
    """How many elements an array had at translation, for estimates. A store into the output operand of an operation, which plain NumPy
    does not make apart from the operation, has none."""

    def __repr__(self) -> str:
        return f"%{self.id}"


@dataclass(frozen=True, slots=True)
class ExitSlot:
    """One slot written at the exit. kind: 'local', 'stack', 'cell' (index: int) or 'name' (index: str). value None: NULL/unbound."""

    kind: Literal["local", "stack", "cell", "name"]
    index: int | str
    value: Node | None


@dataclass(slots=True)
class Graph:
    """Nodes in program order, then the exit."""

    name: str
    nodes: list[Node] = field(default_factory=list)
    exit: list[ExitSlot] = field(default_factory=list)
    landing: int = -1
    """Instruction index (in the decoded program) at which the interpreter carries on."""

    def add(self, op: str, args: Sequence[Node] = (), type: Type = NOTHING, line: int = 0, **attrs: object) -> Node:
        """Append a node. Attributes and argument types are checked by `verify`, not here."""
        node = Node(len(self.nodes), op, tuple(args), attrs, type, line)
        self.nodes.append(node)
        return node

    def users(self) -> dict[Node, list[Node]]:
        """For each node the nodes that take it as an argument, in order."""
        out: dict[Node, list[Node]] = {n: [] for n in self.nodes}
        for n in self.nodes:
            for a in n.args:
                out[a].append(n)
        return out

    def exit_values(self) -> Iterator[Node]:
        """The nodes that the exit needs, without repetition."""
        seen: set[int] = set()
        for slot in self.exit:
            if slot.value is not None and slot.value.id not in seen:
                seen.add(slot.value.id)
                yield slot.value
