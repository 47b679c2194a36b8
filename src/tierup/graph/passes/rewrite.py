"""What passes share: copying a graph node by node while leaving nodes out or using others in their place."""

from __future__ import annotations

from tierup.graph.ir import ExitSlot, Graph, Node


class Copy:
    """A graph being copied. Nodes of the old graph that are neither copied nor replaced must not be needed later on."""

    def __init__(self, graph: Graph) -> None:
        self._old = graph
        self._new: dict[Node, Node] = {}
        self.graph = Graph(graph.name, landing=graph.landing)

    def args(self, node: Node) -> tuple[Node, ...]:
        """The new arguments of an old node."""
        return tuple([self._new[a] for a in node.args])

    def copy(self, node: Node) -> Node:
        self._new[node] = self.graph.add(node.op, self.args(node), node.type, node.line, **node.attrs)
        return self._new[node]

    def replace(self, node: Node, by: Node) -> None:
        """Use a new node wherever the old graph uses `node`."""
        self._new[node] = by

    def finish(self) -> Graph:
        """Copies the exit."""
        for s in self._old.exit:
            self.graph.exit.append(ExitSlot(s.kind, s.index, None if s.value is None else self._new[s.value]))
        return self.graph
