"""Checks a graph against the operation table: run after capture and, in strict mode, after every pass."""

from __future__ import annotations

from tierup.graph.ir import ArrayType, Graph, Node, ObjectType, ScalarType, Type
from tierup.graph.spec import OPS, VIEWS


class GraphError(Exception):
    """A malformed graph; one line per fault, each naming its node."""


def verify(graph: Graph) -> None:
    """Raises GraphError if anything is wrong."""
    faults = [f"{node!r} {node.op}: {fault}" for node in graph.nodes for fault in [_fault(node)] if fault]
    faults += _order_faults(graph) + _exit_faults(graph) + _store_faults(graph)
    if faults:
        raise GraphError(f"graph {graph.name}:\n" + "\n".join(f"  {f}" for f in faults))


def _fault(node: Node) -> str | None:
    """What is wrong with one node by itself."""
    spec = OPS.get(node.op)
    if spec is None:
        return "unknown operation"
    if fault := _argument_fault(spec.args, node.args):
        return fault
    if set(node.attrs) != set(spec.attrs):
        return f"attributes {sorted(node.attrs)} instead of {sorted(spec.attrs)}"
    for name, allowed in spec.attrs.items():
        if not allowed(node.attrs[name]):
            return f"attribute {name} is {node.attrs[name]!r}"
    return spec.rule(node)


def _argument_fault(pattern: str, args: tuple[Node, ...]) -> str | None:
    if pattern.endswith("*"):
        letter = pattern[-2]
        pattern = pattern[:-2].ljust(len(args), letter) if len(args) >= len(pattern) - 2 else pattern[:-2]
    if len(args) != len(pattern):
        return f"{len(args)} arguments for {pattern!r}"
    for k, (letter, a) in enumerate(zip(pattern, args, strict=True)):
        if not _matches(letter, a.type):
            return f"argument {k} is {a.type}, not {_KINDS[letter]}"
    return None


_KINDS = {"i": "an int", "d": "a double", "b": "a bool", "s": "a scalar", "a": "an array", "x": "an array or scalar", "o": "an object"}


def _matches(letter: str, t: Type) -> bool:
    if letter == "o":
        return isinstance(t, ObjectType)
    if letter == "a":
        return isinstance(t, ArrayType)
    if letter == "x":
        return isinstance(t, ArrayType | ScalarType)
    if not isinstance(t, ScalarType):
        return False
    if letter == "i":
        return t.dtype == "i8" and t.box != "numpy"
    return {"d": t.dtype == "f8", "b": t.dtype == "b1", "s": True}[letter]


def _order_faults(graph: Graph) -> list[str]:
    """Every argument is an earlier node of this graph, and numbers are positions."""
    faults = []
    for position, node in enumerate(graph.nodes):
        if node.id != position:
            faults.append(f"{node!r} {node.op}: stands at position {position}")
        for a in node.args:
            if not (0 <= a.id < position and graph.nodes[a.id] is a):
                faults.append(f"{node!r} {node.op}: argument {a!r} is no earlier node of this graph")
    return faults


def _exit_faults(graph: Graph) -> list[str]:
    faults = []
    seen: set[tuple[str, int | str]] = set()
    for slot in graph.exit:
        where = f"exit {slot.kind} {slot.index!r}"
        if slot.value is not None:
            known = slot.value.id < len(graph.nodes) and graph.nodes[slot.value.id] is slot.value
            if not known:
                faults.append(f"{where}: {slot.value!r} is no node of this graph")
            elif not isinstance(slot.value.type, ObjectType):
                faults.append(f"{where}: {slot.value!r} is {slot.value.type}, not an object")
        if isinstance(slot.index, str) != (slot.kind == "name"):
            faults.append(f"{where}: names belong to kind 'name', numbers to the others")
        if (slot.kind, slot.index) in seen:
            faults.append(f"{where}: written twice")
        seen.add((slot.kind, slot.index))
    return faults


def _store_faults(graph: Graph) -> list[str]:
    """Stores are applied at the region's end. So what is computed behind one in program order must not read the same memory, and where both
    arrays come from outside, a check must say that they are apart."""
    faults = []
    targets: list[Node] = []
    apart = {frozenset(n.args) for n in graph.nodes if n.op == "check_nooverlap"}
    for node in graph.nodes:
        if node.op == "store":
            targets.append(_root(node.args[0]))
        elif node.op in _READS:
            for a in node.args:
                root = _root(a)
                for target in targets:
                    outside = root.op == target.op == "array"
                    if isinstance(a.type, ArrayType) and (root is target or (outside and frozenset((root, target)) not in apart)):
                        faults.append(f"{node!r} {node.op}: reads memory of {a!r} behind a store into {target!r}")
    return faults


def _root(node: Node) -> Node:
    """The node whose memory an array node shows."""
    while node.op in VIEWS:
        node = node.args[0]
    return node


_READS = frozenset(("ufunc", "where", "astype", "copy", "reduce", "load"))
