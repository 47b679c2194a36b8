"""Whether a region is worth its overhead: a static estimate of what the interpreter and NumPy would spend on it, and what the site will.

Costs per operation decide for small arrays. For large ones it is how often elements go through memory: NumPy makes a pass for each
operation, a kernel one for what it makes. But what is stored goes through memory once more, because all warnings must be known before
anything is stored, whereas NumPy's `a += b` writes into `a` at once. The figures are nanoseconds on an ordinary x86-64 machine of 2021
(`benchmarks/dispatch.py` measures the most important ones as ratios); what decides is their proportion.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tierup import _core
from tierup.graph.ir import ArrayType, Graph, Node, ScalarType
from tierup.guards.checks import GuardSet
from tierup.native.loops import slowness

_PLAIN: Final = {
    "ufunc": 420.0, "where": 900.0, "astype": 450.0, "copy": 300.0, "reduce": 1500.0, "store": 220.0,
    "empty": 120.0, "zeros": 150.0, "full": 900.0, "empty_like": 300.0, "zeros_like": 900.0,
    "slice": 130.0, "newaxis": 100.0, "transpose": 90.0, "reshape": 200.0, "broadcast": 900.0, "real": 90.0, "imag": 90.0,
    "iadd": 20.0, "isub": 20.0, "imul": 20.0, "ifloordiv": 25.0, "imod": 25.0, "ipow": 60.0, "ineg": 15.0, "iabs": 40.0, "imin": 60.0,
    "imax": 60.0, "fadd": 20.0, "fsub": 20.0, "fmul": 20.0, "fdiv": 25.0, "fpow": 60.0, "fneg": 15.0, "fabs": 40.0, "fsqrt": 60.0,
    "fcmp": 25.0, "icmp": 20.0, "check": 20.0, "dim": 45.0, "size": 45.0, "load": 70.0, "tuple": 15.0, "list": 20.0, "dict": 40.0,
}  # fmt: skip
_NUMPY_SCALAR: Final = 60.0
"""An operation on NumPy scalars."""

_SITE: Final = 60.0
_PER_GUARD: Final = 10.0
_OURS: Final = {
    "ufunc": 25.0, "where": 25.0, "astype": 25.0, "copy": 90.0, "reduce": 70.0, "store": 45.0, "empty": 80.0, "zeros": 90.0, "full": 100.0,
    "empty_like": 90.0, "zeros_like": 100.0, "slice": 25.0, "index": 15.0, "newaxis": 20.0, "transpose": 20.0, "reshape": 25.0,
    "broadcast": 25.0, "real": 20.0, "imag": 20.0, "object": 5.0, "array": 12.0, "unbox": 6.0, "box": 30.0, "tuple": 25.0, "list": 30.0,
    "dict": 60.0, "load": 8.0,
}  # fmt: skip
_OTHER: Final = 4.0
_KERNEL: Final = 110.0
"""Starting one kernel and allocating its result."""

_MARGIN: Final = 1.15
_PASS: Final = 0.035
"""Per byte of a result: an operation that memory bounds."""
_STORED: Final = 1.2
"""Passes that a store costs."""
_THREADS_FROM: Final = 100e3
"""Nanoseconds of work from which on the launcher uses threads (csrc/launch.c)."""
_ELEMENTWISE: Final = ("ufunc", "where", "astype", "copy")
_NEED_NO_MEMORY: Final = (*_ELEMENTWISE, "dim", "size", "shape")
"""What can use a result that a kernel only has in registers."""


def per_call(graph: Graph, guards: GuardSet) -> tuple[float, float]:
    """(nanoseconds the interpreter would spend, nanoseconds the site will), without work per element."""
    plain = sum(_plain(node) for node in graph.nodes)
    ours = _SITE + _PER_GUARD * len(guards) + sum(_OURS.get(node.op, _OTHER) for node in graph.nodes)
    # A fused chain is one kernel; shapes and reductions cut it, which is not known here: one for every four operations at most.
    fused = sum(node.op in ("ufunc", "where", "astype") for node in graph.nodes)
    if fused:
        ours += _KERNEL * (1 + fused // 4)
    return plain, ours


def _plain(node: Node) -> float:
    if isinstance(node.type, ScalarType) and node.type.box == "numpy" and node.op[0] == "f":
        return _NUMPY_SCALAR
    if node.op == "store" and isinstance(node.args[0].type, ArrayType) and node.args[0].type.ndim == 0:
        return 60.0
    return _PLAIN.get(node.op, 0.0)


def per_element(graph: Graph) -> tuple[float, float]:
    """(nanoseconds the interpreter would spend, nanoseconds the site will) on the elements, of as many as there were at translation."""
    users, plain, ours = graph.users(), 0.0, 0.0
    shown = set(graph.exit_values())
    for node in graph.nodes:
        if node.op == "store":
            plain += _pass(node.elements, node.args[0])
            if isinstance(node.args[1].type, ArrayType):
                ours += _STORED * _pass(node.args[0].elements, node.args[0])
        elif node.op in _ELEMENTWISE and isinstance(node.type, ArrayType):
            work = node.elements * slowness(str(node.attrs["name"])) if node.op == "ufunc" else 0.0
            plain += _pass(node.elements, node) + work
            ours += work / (_core.num_threads() if work > _THREADS_FROM else 1)
            if node in shown or any(user.op not in _NEED_NO_MEMORY for user in users[node]):
                ours += _pass(node.elements, node)
    return plain, ours


def _pass(elements: int, array: Node) -> float:
    assert isinstance(array.type, ArrayType)
    return _PASS * elements * np.dtype(array.type.dtype).itemsize


def pays(graph: Graph, guards: GuardSet) -> bool:
    """Whether the region is expected to be faster than what it replaces."""
    plain, ours = per_call(graph, guards)
    plain_work, our_work = per_element(graph)
    return plain + plain_work >= _MARGIN * ours + our_work
