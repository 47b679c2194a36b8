"""The verifier names what is wrong with a graph, and where."""

from __future__ import annotations

import pytest

from tierup.graph.ir import NOTHING, OBJECT, ArrayType, ExitSlot, Graph, Node
from tierup.graph.parser import parse_graph
from tierup.graph.verify import GraphError, verify

START = """graph 'g' landing=0
%0 = object expr='x' : object
%1 = array(%0) : f8[2]
%2 = literal value=1 : i8.index
%3 = literal value=2.0 : f8.python
%4 = object expr='y' : object
%5 = array(%4) : b1[1]
"""

FAULTS = [
    ("%6 = frobnicate : ()", "unknown operation"),
    ("%6 = size : i8.index", "0 arguments"),
    ("%6 = size(%0) : i8.index", "argument 0 is object, not an array"),
    ("%6 = iadd(%2, %3) : i8.index", "argument 1 is f8.python, not an int"),
    ("%6 = dim(%1) : i8.index", "attributes"),
    ("%6 = dim(%1) axis='0' : i8.index", "attribute axis is '0'"),
    ("%6 = dim(%1) axis=2 : i8.index", "axis 2 of an array of rank 2"),
    ("%6 = ufunc(%1, %3) name='add' loop='dd->d' : f8[1]", r"must be f8\[2\]"),
    ("%6 = ufunc(%1) name='add' loop='dd->d' : f8[2]", "has 2 operands"),
    ("%6 = ufunc(%3, %3) name='add' loop='dd->d' : f8[0]", "rank one"),
    ("%6 = ufunc(%1) name='exp' loop='g->g' : f8[2]", "not a loop"),
    ("%6 = where(%1, %1, %1) : f8[2]", "operands of f8"),
    ("%6 = astype(%1) dtype='i4' : i4[2]", "no defined result"),
    ("%6 = slice(%1, %2) axis=0 given=(True, True, False) : f8[2]", "2 slice parts"),
    ("%6 = transpose(%1) perm=(0, 0) : f8[2]", "does not permute"),
    ("%6 = real(%1) : f8[2]", "not complex"),
    ("%6 = load(%1) : f8.numpy", "rank 2"),
    ("%6 = check(%2, %3) cond='eq' : ()", "compares"),
    ("%6 = check(%2, %2) cond='nlt' : ()", "doubles"),
    ("%6 = literal value=1.5 : i8.python", "no value of"),
    ("%6 = unbox(%0) : i8.index", "nothing unboxes"),
    ("%6 = reduce(%1) ufunc='add' loop='ll->l' axis=None keepdims=False : i8.numpy", "loop ll->l on f8"),
    ("%6 = store(%1, %2) : ()", "stores i8 into f8"),
    ("%6 = store(%1, %3) : ()\n%7 = ufunc(%1, %3) name='add' loop='dd->d' : f8[2]", "behind a store"),
    ("%6 = store(%1, %3) : ()\n%7 = ufunc(%5) name='logical_not' loop='?->?' : b1[1]", "behind a store"),
    ("exit local 0 = %1", "not an object"),
    ("exit local 0 = %0\nexit local 0 = %0", "written twice"),
    ("exit name 3 = %0", "names belong"),
]


@pytest.mark.parametrize(("lines", "message"), FAULTS)
def test_fault(lines: str, message: str) -> None:
    verify(parse_graph(START))
    with pytest.raises(GraphError, match=message):
        verify(parse_graph(START + lines))


def test_reads_behind_a_store_of_memory_that_is_apart() -> None:
    read = "%7 = check_nooverlap(%5, %1) : ()\n%8 = ufunc(%5) name='logical_not' loop='?->?' : b1[1]"
    verify(parse_graph(START + "%6 = store(%1, %3) : ()\n" + read))


def test_order() -> None:
    graph = Graph("order")
    other = Node(0, "object", (), {"expr": "x"}, OBJECT)
    graph.add("array", (other,), ArrayType("f8", 1))
    graph.exit.append(ExitSlot("local", 0, other))
    with pytest.raises(GraphError, match=r"no earlier node[^$]*no node of this graph"):
        verify(graph)
    graph.nodes[0].id = 3
    with pytest.raises(GraphError, match="position 0"):
        verify(graph)
    assert NOTHING != OBJECT
