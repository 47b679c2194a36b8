"""What capture hands over: a region, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from tierup.graph.ir import Graph
from tierup.guards.checks import GuardSet


class Break(Exception):
    """The current instruction is not captured; the region ends before it. The message is the reason."""


class Split(Break):
    """The region must end here although the instruction itself can be captured; a new region may begin at it."""


@dataclass(frozen=True, slots=True)
class BreakPoint:
    """Where and why symbolic execution stopped."""

    reason: str
    index: int
    """Concrete instruction index in the site's program."""
    line: int
    resume_at_break: bool
    """True: the next region may begin at this very instruction (a split), False: behind it."""
    inlined: str = ""
    """Name and line of the called function in which it happened, if any."""
    promising: bool = False
    """Whether what comes behind may deserve a region of its own: a call was not captured, or an operation on an array."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A region: guards to check, graph to run, and where the interpreter carries on."""

    graph: Graph
    guards: GuardSet
    landing: int
    top_null: bool
    stop: BreakPoint
    operations: int
    """Array operations in the graph, the measure that `min_graph_size` is about."""
    wanted: int
    """The landing that would have been used had the code one there."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """No region: nothing was captured, or too little, or no landing could be reached."""

    reason: str
    stop: BreakPoint
    wanted: int = -1
    """A landing that would have made a region, -1 if none."""
