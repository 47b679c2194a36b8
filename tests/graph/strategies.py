"""Random well-formed graphs: every operation of the table with arguments and attributes that fit."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tierup.graph.ir import DTYPES, NOTHING, OBJECT, ArrayType, ExitSlot, Graph, Node, ScalarType, Type

INT = ScalarType("i8", "python")
FLOATS = st.floats(allow_nan=True, width=64)


class Opaque:
    """Something without a literal form."""

    __slots__ = ()


def values() -> st.SearchStrategy[object]:
    """Attribute values, nested."""
    plain = st.one_of(
        st.none(), st.booleans(), st.integers(-(2**63), 2**63), FLOATS, st.complex_numbers(), st.text(max_size=6), st.builds(Opaque)
    )
    return st.recursive(plain, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)


def types() -> st.SearchStrategy[Type]:
    arrays = st.builds(ArrayType, st.sampled_from(DTYPES), st.integers(0, 4))
    scalars = st.builds(ScalarType, st.sampled_from(DTYPES), st.sampled_from(("python", "numpy", "index")))
    return st.one_of(arrays, scalars, st.just(OBJECT), st.just(NOTHING))


@st.composite
def any_graph(draw: st.DrawFn) -> Graph:
    """A graph that need not make sense; enough for the text form."""
    graph = Graph(draw(st.text(max_size=8)), landing=draw(st.integers(-1, 99)))
    for _ in range(draw(st.integers(0, 8))):
        args = draw(st.lists(st.sampled_from(graph.nodes), max_size=3)) if graph.nodes else []
        attrs = draw(st.dictionaries(st.sampled_from(("value", "expr", "axis", "name", "loop", "perm")), values(), max_size=2))
        op = draw(st.sampled_from(("ufunc", "literal", "check_true", "x")))
        graph.add(op, args, draw(types()), draw(st.integers(0, 500)), **attrs)
    targets = st.one_of(st.none(), st.sampled_from(graph.nodes)) if graph.nodes else st.none()
    kinds: Any = st.sampled_from(("local", "stack", "cell"))
    for _ in range(draw(st.integers(0, 3))):
        graph.exit.append(ExitSlot(draw(kinds), draw(st.integers(0, 9)), draw(targets)))
    if draw(st.booleans()):
        graph.exit.append(ExitSlot("name", draw(st.text(max_size=5)), draw(targets)))
    return graph


def same(a: Node, b: Node) -> bool:
    return (a.id, a.op, [x.id for x in a.args], a.type, a.line) == (b.id, b.op, [x.id for x in b.args], b.type, b.line)
