"""Passes: functions graph → graph, one file each. Each leaves its input as it is and returns a new graph (or the same, unchanged)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tierup.graph.ir import Graph
from tierup.graph.passes.common import merge_common
from tierup.graph.passes.dead import drop_dead

Pass = Callable[[Graph], Graph]

PASSES: Final[dict[str, Pass]] = {"dead": drop_dead, "common": merge_common}
"""In the order in which they run. Merging leaves nothing dead behind, and has less to look at without what is."""


def run_passes(graph: Graph, after: Callable[[str, Graph], object] | None = None) -> Graph:
    """All passes in order. after(name, graph) is called behind each (to verify or to show it)."""
    for name, function in PASSES.items():
        graph = function(graph)
        if after is not None:
            after(name, graph)
    return graph
