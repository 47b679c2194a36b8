"""The region under construction: its graph and guards, what is known of each source, and how values become objects again."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any

from tierup import _core
from tierup.arrays.builder import Builder, NoRule
from tierup.arrays.values import (
    ArrayValue,
    Buffer,
    ConstValue,
    DictValue,
    ListValue,
    ObjectValue,
    ScalarValue,
    SliceValue,
    TupleValue,
    Value,
)
from tierup.capture.outcome import Break, Split
from tierup.capture.variables import MethodValue, NullValue
from tierup.graph.ir import NOTHING, OBJECT, ArrayType, Graph, Node, ScalarType
from tierup.guards.checks import GuardSet
from tierup.guards.sources import Pinned, Source, constant

_MAX_CONTAINER = 64
_READS_MEMORY = frozenset({"ufunc", "where", "astype", "copy", "reduce", "load"})
VIEW_OPS = frozenset({"slice", "index", "newaxis", "transpose", "reshape", "broadcast", "real", "imag"})
_COMPUTES = frozenset({"ufunc", "where", "astype", "copy", "reduce", "store", "empty", "zeros", "full", "empty_like", "zeros_like"})
Memo = dict[int, tuple[Value, Node]]
"""Values that have a node already, by identity; it keeps them alive, lest another value gets the same id."""
_IDENTITY_TYPES = (types.ModuleType, types.BuiltinFunctionType, type)


@dataclass(frozen=True, slots=True)
class Mark:
    """A point to which a region can be taken back."""

    nodes: int
    guards: int
    versions: dict[Node, ArrayValue]
    known: dict[Source, Value]
    changes: int


class Region:
    """Collects one region. All knowledge about live values enters through `force`, which adds the guard that makes it true."""

    def __init__(self, name: str, library: Any) -> None:
        self.graph = Graph(name)
        self.guards = GuardSet()
        self.builder = Builder(self.graph, self._guard_constant)
        self.library = library
        self._known: dict[Source, Value] = {}
        self._versions: dict[Node, ArrayValue] = {}
        self._journal: list[tuple[Any, str, Any]] = []
        self._live_of: dict[Node, Any] = {}
        self.line = 0

    def release(self) -> None:
        """Take the region apart. It and its builder are a cycle, which must not keep the user's arrays until the collector runs."""
        vars(self).clear()

    # -- going back ----------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        return Mark(len(self.graph.nodes), len(self.guards), dict(self._versions), dict(self._known), len(self._journal))

    def rollback(self, mark: Mark) -> None:
        self.builder.rollback(mark.nodes)
        self.guards.truncate(mark.guards)
        self._versions = dict(mark.versions)
        self._known = dict(mark.known)
        while len(self._journal) > mark.changes:
            target, attribute, old = self._journal.pop()
            setattr(target, attribute, old)

    def change(self, target: Value, attribute: str, new: Any) -> None:
        """Change a value that lives in the region only (a list's items, an iterator's position), so that `rollback` can undo it."""
        self._journal.append((target, attribute, getattr(target, attribute)))
        setattr(target, attribute, new)

    def operations(self) -> int:
        """Array operations so far: what a kernel or a store will do."""
        return sum(n.op in _COMPUTES for n in self.graph.nodes)

    def check_order(self, first_new: int) -> None:
        """Stores are applied at the region's end: an operation that reads memory after one may only do so where the two do not overlap,
        which is made a check; else the region ends. Raises Split."""
        stores = [n for n in self.graph.nodes[:first_new] if n.op == "store"]
        if not stores:
            return
        written = {self._root(n.args[0]) for n in stores}
        for node in self.graph.nodes[first_new:]:
            if node.op in _READS_MEMORY:
                for argument in node.args:
                    if isinstance(argument.type, ArrayType):
                        self._require_apart(self._root(argument), written)

    @staticmethod
    def _root(node: Node) -> Node:
        """The node whose memory an array node shows."""
        while node.op in VIEW_OPS:
            node = node.args[0]
        return node

    def _require_apart(self, read: Node, written: set[Node]) -> None:
        for target in written:
            if read is target:
                raise Split("array memory is read after a store")
            if read.op != "array" or target.op != "array":
                continue  # memory made in this region is nobody else's
            pair = (read, target)
            if any(n.op == "check_nooverlap" and n.args == pair for n in self.graph.nodes):
                continue
            live = [self._live_of[n] for n in pair]
            if self.library.may_overlap(*live):
                raise Split("array memory is read after a store")
            self.builder.node("check_nooverlap", pair, NOTHING)

    # -- knowledge -------------------------------------------------------------------------------------------------

    def guard(self, kind: str, source: Source, payload: Any = None) -> None:
        self.guards.add(kind, source, payload, self.line)

    def force(self, value: Value) -> Value:
        """The most specific value for an object: unboxed number, array, constant, container … adding the guards it rests on."""
        if isinstance(value, ArrayValue):
            return self._versions.get(value.node, value)
        if not isinstance(value, ObjectValue):
            return value
        known = self._known.get(value.source)
        if known is None:
            known = self._refine(value)
            self._known[value.source] = known
        if isinstance(known, ArrayValue):
            return self._versions.get(known.node, known)
        return known

    def known(self, value: Value) -> Value:
        """What is known of a value so far, without any new guard."""
        return self._known.get(value.source, value) if isinstance(value, ObjectValue) else value

    def _refine(self, value: ObjectValue) -> Value:
        live, source = value.live, value.source
        kind = type(live)
        if live is None or live is True or live is False or live is Ellipsis or live is NotImplemented:
            self.guard("IS", source, Pinned(live))
            return ConstValue(live, source)
        scalar = _SCALARS.get(kind)
        if scalar is not None:
            return self._unbox(value, scalar)
        if kind in (str, bytes):
            self.guard("STR_EQ" if kind is str else "BYTES_EQ", source, live)
            return ConstValue(live, source)
        if kind in _CONTAINERS:
            refined: Value = _CONTAINERS[kind](self, value)
            return refined
        if kind is types.FunctionType:
            self.guard("FUNC_CODE", source, Pinned(live.__code__))
            return ConstValue(live, source)
        if kind is types.MethodType:
            return MethodValue(
                ObjectValue(source.then("METHOD_FUNC"), live.__func__), ObjectValue(source.then("METHOD_SELF"), live.__self__)
            )
        return self._refine_library(value)

    def _refine_library(self, value: ObjectValue) -> Value:
        live, source = value.live, value.source
        kind = type(live)  # not isinstance(), which asks the object for its __class__
        if self.library.recognise(live):
            return self._array(value)
        dtype = self.library.is_numpy_scalar(live)
        if dtype is not None:
            return self._unbox(value, ScalarType(dtype, "numpy"))
        if issubclass(kind, _IDENTITY_TYPES) or self.library.rule_for(live) is not None:
            self.guard("IS", source, Pinned(live))
            return ConstValue(live, source)
        return value

    def _array(self, value: ObjectValue) -> ArrayValue:
        live, source = value.live, value.source
        facts = self.library.array_facts(live)
        mask = 0x1FFFFF & ~(1 << 17)
        self.guard("ARRAY", source, (mask, _core.array_key(live) & mask))
        node = self.builder.node("array", (self.object_node(value),), ArrayType(facts.dtype, facts.ndim))
        node.elements = live.size
        self._live_of[node] = live
        return ArrayValue(node, tuple(live.shape), Buffer(False, source), value, facts.ccontig, facts.writeable)

    def _unbox(self, value: ObjectValue, type_: ScalarType) -> ScalarValue:
        live = value.live
        if type(live) is int and not -(2**63) < live < 2**63:
            raise Break("an integer beyond 64 bits")
        self.guard("TYPE_IS", value.source, Pinned(type(live)))
        node = self.builder.node("unbox", (self.object_node(value),), type_)
        return ScalarValue(node, live if type_.box == "python" else live.item(), value)

    def _tuple(self, value: ObjectValue) -> Value:
        return TupleValue(tuple(self._items(value, "TUPLE_LEN")), value)

    def _list(self, value: ObjectValue) -> Value:
        return ListValue(self._items(value, "LIST_LEN"), value)

    def _items(self, value: ObjectValue, check: str) -> list[Value]:
        if len(value.live) > _MAX_CONTAINER:
            raise Break("a container of more than 64 items")
        self.guard(check, value.source, len(value.live))
        return [ObjectValue(value.source.then("ITEM", i), item) for i, item in enumerate(value.live)]

    def _dict(self, value: ObjectValue) -> Value:
        live = value.live
        if len(live) > _MAX_CONTAINER or any(type(k) is not str for k in live):
            raise Break("a dict with more than 64 items or keys that are not str")
        self.guard("DICT_KEYS", value.source, tuple(live))
        return DictValue({k: ObjectValue(value.source.then("DICTITEM", k), v) for k, v in live.items()}, value)

    def _guard_constant(self, value: ScalarValue) -> None:
        origin = value.origin
        if not isinstance(origin, ObjectValue) or type(origin.live) is not int:
            raise NoRule("a number that cannot be fixed by a guard")
        self.guard("INT_EQ", origin.source, origin.live)

    def has_views(self, array: ArrayValue) -> bool:
        """Whether a view of the array's memory was made in this region (or the array is a view itself)."""
        return array.node.op in VIEW_OPS or any(array.node in n.args and n.op in VIEW_OPS for n in self.graph.nodes)

    def set_version(self, old: ArrayValue, new: ArrayValue) -> None:
        """From now on every alias of `old` means `new` (an in-place operation on memory that only this region knows)."""
        self._versions[old.node] = new
        for node, current in list(self._versions.items()):
            if current.node is old.node:
                self._versions[node] = new

    # -- back to objects -----------------------------------------------------------------------------------------------

    def object_node(self, value: ObjectValue) -> Node:
        """The `object` node of a source, one each."""
        for node in self.graph.nodes:
            if node.op == "object" and node.attrs["expr"] == value.source:
                return node
        return self.builder.node("object", (), OBJECT, expr=value.source)

    def materialise(self, value: Value, memo: Memo) -> Node | None:
        """The object node for a value at the exit; None for a NULL slot. Raises Break for what cannot leave the region."""
        if isinstance(value, NullValue):
            return None
        if isinstance(value, ArrayValue):
            value = self._versions.get(value.node, value)
        origin = getattr(value, "origin", None)
        if origin is not None:
            value = origin
        key = id(value)
        if key not in memo:
            memo[key] = (value, self._object(value, memo))
        return memo[key][1]

    def _object(self, value: Value, memo: Memo) -> Node:
        match value:
            case ObjectValue():
                return self.object_node(value)
            case ConstValue(source=None):
                return self.builder.node("constant", (), OBJECT, value=value.value)
            case ConstValue():
                return self.object_node(ObjectValue(value.source, value.value))
            case ScalarValue():
                return self.builder.node("box", (value.node,), OBJECT)
            case ArrayValue():
                return self.builder.node("box", (value.node,), OBJECT)
            case TupleValue(items=()):
                return self.builder.node("constant", (), OBJECT, value=())
            case TupleValue():
                return self.builder.node("tuple", self._objects(value.items, memo), OBJECT)
            case ListValue():
                return self.builder.node("list", self._objects(value.items, memo), OBJECT)
            case DictValue():
                flat = [x for k, v in value.items.items() for x in (ConstValue(k), v)]
                return self.builder.node("dict", self._objects(flat, memo), OBJECT)
            case SliceValue():
                return self.builder.node("slice_object", self._objects((value.start, value.stop, value.step), memo), OBJECT)
            case MethodValue():
                return self.builder.node("method", self._objects((value.function, value.self), memo), OBJECT)
        raise Break(f"a {type(value).__name__} cannot leave the region")

    def _objects(self, values: Any, memo: Memo) -> list[Node]:
        out = []
        for value in values:
            node = self.materialise(value, memo)
            if node is None:
                raise Break("a NULL inside a container")
            out.append(node)
        return out

    def const_source(self, value: ConstValue) -> Source:
        """A source for a known object: its own, or the object as a constant."""
        return value.source if value.source is not None else constant(value.value)


_SCALARS: dict[type, ScalarType] = {
    int: ScalarType("i8", "python"),
    float: ScalarType("f8", "python"),
    complex: ScalarType("c16", "python"),
}
_CONTAINERS: dict[Any, Any] = {tuple: Region._tuple, list: Region._list, dict: Region._dict}
