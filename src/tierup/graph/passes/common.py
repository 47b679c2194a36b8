"""Common subexpressions: scalar operations, views and checks that say the same as an earlier one.

What is new memory or a new object each time is left alone: `a + b` twice is two arrays, and `is` can tell two tuples apart. Scalars and
views may be shared because nothing is written before the region's end.
"""

from __future__ import annotations

from tierup.graph.ir import Graph, Node
from tierup.graph.passes.rewrite import Copy
from tierup.graph.printer import format_value
from tierup.graph.spec import makes_new


def merge_common(graph: Graph) -> Graph:
    """The graph with each repeated node replaced by its first occurrence."""
    copy = Copy(graph)
    seen: dict[tuple[object, ...], Node] = {}
    for node in graph.nodes:
        if makes_new(node):
            copy.copy(node)
            continue
        key = _key(node, copy.args(node))
        known = seen.get(key)
        if known is None:
            seen[key] = copy.copy(node)
        else:
            copy.replace(node, known)
    return graph if len(copy.graph.nodes) == len(graph.nodes) else copy.finish()


def _key(node: Node, args: tuple[Node, ...]) -> tuple[object, ...]:
    """Equal for nodes that compute the same. Attributes count by their text (floats by their bits), others by identity."""
    attrs = tuple((name, format_value(value) or id(value)) for name, value in sorted(node.attrs.items()))
    return (node.op, args, node.type, attrs)
