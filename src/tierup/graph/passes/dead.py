"""Dead code: drops nodes that nobody needs, but keeps what may raise flags, leave the region or write."""

from __future__ import annotations

from tierup.graph.ir import Graph, Node
from tierup.graph.passes.rewrite import Copy
from tierup.graph.spec import keep_alive


def drop_dead(graph: Graph) -> Graph:
    """The graph without dead nodes."""
    alive = _alive(graph)
    if len(alive) == len(graph.nodes):
        return graph
    copy = Copy(graph)
    for node in graph.nodes:
        if node in alive:
            copy.copy(node)
    return copy.finish()


def _alive(graph: Graph) -> set[Node]:
    work = [*graph.exit_values(), *filter(keep_alive, graph.nodes)]
    alive: set[Node] = set()
    while work:
        node = work.pop()
        if node not in alive:
            alive.add(node)
            work += node.args
    return alive
