"""Expressions with large temporaries, in whose place NumPy computes: memory order and the bits of complex products must not differ."""

from __future__ import annotations

import operator
from ast import literal_eval
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arrays.harness import Session, _rebuild, run_plain
from arrays.reference import Left, bits, evaluate
from tierup.arrays.builder import NoRule
from tierup.arrays.numpy_rules import LIBRARY
from tierup.arrays.values import ConstValue, Value

NAMES = ("a", "b", "c")
leaf = st.one_of(st.sampled_from(NAMES), st.sampled_from(("2.0", "3", "1j")))
trees = st.recursive(
    st.sampled_from(NAMES),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(("+", "-", "*", "/")), inner, inner),
        st.tuples(st.sampled_from(("+", "*")), leaf, inner),
        st.tuples(st.just("-"), inner),
    ),
    max_leaves=5,
)
LARGE = (256, 130)
"""256 KiB and more as float64; NumPy reuses temporaries from that size."""


def source(tree: Any) -> str:
    if isinstance(tree, str):
        return tree
    return f"(-{source(tree[1])})" if len(tree) == 2 else f"({source(tree[1])} {tree[0]} {source(tree[2])})"


def symbolic(session: Session, tree: Any, variables: dict[str, Value]) -> Value:
    if isinstance(tree, str):
        return variables[tree] if tree in variables else ConstValue(literal_eval(tree))
    if len(tree) == 2:
        return LIBRARY.unary_op(session.builder, "-", symbolic(session, tree[1], variables))
    return LIBRARY.binary_op(session.builder, tree[0], *(symbolic(session, t, variables) for t in tree[1:]))


def arrays(dtype: str, orders: tuple[str, ...], shape: tuple[int, ...]) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    out = {}
    for name, order in zip(NAMES, orders, strict=True):
        values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype == "c16" else 0)
        out[name] = np.array(values, dtype=dtype, order=order)
    return out


def check(tree: Any, objects: dict[str, Any]) -> bool:
    """Whether the expression was captured; asserts that it then gives what Python gives."""
    session = Session()
    variables = {name: session.value(obj, name) for name, obj in objects.items()}
    try:
        value = symbolic(session, tree, variables)
    except NoRule:
        return False
    code = compile(source(tree), "<expression>", "eval")
    expected, error = run_plain(lambda: eval(code, dict(objects)), ())  # eval: only then are temporaries the interpreter's
    try:
        (found,) = evaluate(session.graph, objects, [value.node])  # type: ignore[attr-defined]
    except Left:
        return False
    assert error is None
    assert bits(_rebuild(value, {value.node: found})) == bits(expected), source(tree)  # type: ignore[attr-defined]
    return True


@settings(max_examples=150, deadline=None)
@given(trees, st.sampled_from(("f8", "c16", "f4")), st.tuples(*[st.sampled_from("CF")] * 3), st.booleans())
def test_expressions(tree: Any, dtype: str, orders: tuple[str, ...], large: bool) -> None:
    check(tree, arrays(dtype, orders, LARGE if large else (5, 4)))


@pytest.mark.parametrize("text", ["a * (b + c)", "2j * (b + c)", "(a + b) * (b + c)", "(a * b) * c"])
def test_small_complex_products_are_captured(text: str) -> None:
    import ast

    def tree(node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Constant):
            return str(node.value)
        assert isinstance(node, ast.BinOp)
        return ({ast.Add: "+", ast.Mult: "*"}[type(node.op)], tree(node.left), tree(node.right))

    parsed = tree(ast.parse(text, mode="eval").body)
    assert check(parsed, arrays("c16", ("C", "C", "C"), (20, 20)))
    captured = check(parsed, arrays("c16", ("C", "C", "C"), (300, 200)))
    assert captured == (text == "(a * b) * c")


def test_numpy_swaps_the_operands_of_a_large_complex_product() -> None:
    """The reason for the rule; if this fails, NumPy's loop no longer depends on the order of its operands."""
    o = arrays("c16", ("C", "C", "C"), (300, 200))
    a, b, c = o["a"], o["b"], o["c"]
    whole, temporary = a * (b + c), b + c
    assert not np.array_equal(whole, operator.mul(a, temporary)) or np.array_equal(np.multiply(a, temporary), np.multiply(temporary, a))
