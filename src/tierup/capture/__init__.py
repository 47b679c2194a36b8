"""Capture: symbolic execution of bytecode from a site with the values live there.

In: a program's canonical instructions and a live frame. Out: a `Captured` region (graph, guards, landing), or the reason why there is none.
May import `bytecode`, `graph`, `arrays`, `guards`, `runtime`.
"""
