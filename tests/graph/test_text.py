"""Printer and parser are inverse to each other."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given

from graph.strategies import any_graph, same
from tierup.graph.ir import Graph
from tierup.graph.parser import ParseError, parse_graph
from tierup.graph.printer import opaque_values, print_graph


def identical(a: object, b: object) -> bool:
    """Equal including types, the sign of zeros and the bits of NaNs; opaque values by identity."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, complex):
        assert isinstance(b, complex)
        return identical(a.real, b.real) and identical(a.imag, b.imag)
    if isinstance(a, tuple):
        assert isinstance(b, tuple)
        return len(a) == len(b) and all(identical(x, y) for x, y in zip(a, b, strict=True))
    return a is b or (isinstance(a, int | str) and a == b)


@given(any_graph())
def test_round_trip(graph: Graph) -> None:
    text = print_graph(graph)
    back = parse_graph(text, opaque_values(graph))
    assert print_graph(back) == text
    assert (back.name, back.landing, len(back.nodes), len(back.exit)) == (graph.name, graph.landing, len(graph.nodes), len(graph.exit))
    for a, b in zip(graph.nodes, back.nodes, strict=True):
        assert same(a, b)
        assert list(a.attrs) == list(b.attrs)
        assert all(identical(a.attrs[k], b.attrs[k]) for k in a.attrs)
    for s, t in zip(graph.exit, back.exit, strict=True):
        assert (s.kind, s.index) == (t.kind, t.index)
        assert (s.value is None) == (t.value is None)
        assert s.value is None or (t.value is not None and s.value.id == t.value.id)


BAD = [
    ("", "no graph"),
    ("graph 'x'", "malformed"),
    ("graph 'x' landing=0\n%1 = size(%0) : i8.index", "position"),
    ("graph 'x' landing=0\n%0 = size(%3) : i8.index", "range"),
    ("graph 'x' landing=0\n%0 = literal value=2.0 : f9.python", "no type"),
    ("graph 'x' landing=0\n%0 = literal value=$4 : f8.python", r"\$4"),
    ("graph 'x' landing=0\n%0 = literal value='abc : f8.python", "unterminated"),
    ("graph 'x' landing=0\nexit global 0 = null", "malformed"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_graph(text)
