"""Plans of whole graphs: order of instructions, exits, scalars, stores, reductions, memory."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from native.graphs import Maker, run, same_bits
from tierup import _core
from tierup.graph.ir import INDEX, NOTHING, OBJECT, ArrayType, ExitSlot, Graph, Node, ScalarType
from tierup.native.compile import Compiled, CompileError, compile_graph

INT = ScalarType("i8", "python")
FLOAT = ScalarType("f8", "python")


def opcodes(compiled: Compiled) -> list[str]:
    return [line.split()[1] for line in compiled.program.listing().splitlines()]


def test_checks_come_before_kernels_and_effects_last() -> None:
    m = Maker()
    x, y, out = (m.array(np.ones(3)) for _ in range(3))
    g = m.graph
    m.same_shape(x, y)
    t = m.ufunc("divide", "dd->d", m.ufunc("add", "dd->d", x, y), y)
    m.same_shape(t, out)
    g.add("store", (out, t), NOTHING)
    n = m.scalar(5)
    g.add("check", (n, m.graph.add("literal", (), INDEX, value=7)), NOTHING, cond="lt")
    m.result(t)
    ops = opcodes(m.compile())
    first_kernel = ops.index("KERNEL")
    assert all(ops.index(op) < first_kernel for op in ("C_EQ", "C_LT"))
    assert ops.index("C_STORABLE") < ops.index("FLAGS") < ops.index("BOX_ARRAY") < ops.index("STORE") == len(ops) - 1


def test_flags_are_tested_only_where_something_may_raise_them() -> None:
    m = Maker()
    x = m.array(np.ones(3))
    m.result(m.ufunc("negative", "d->d", m.ufunc("absolute", "d->d", x)))
    assert "FLAGS" not in opcodes(m.compile())


def test_a_miss_has_no_effect() -> None:
    m = Maker()
    x, out = m.array(np.ones(3)), m.array(np.ones(3))
    m.same_shape(x, out)
    t = m.ufunc("log", "d->d", x)
    m.graph.add("store", (out, t), NOTHING)
    compiled = m.compile()
    out_data = np.full(3, 7.0)
    assert run(compiled, [np.array([1.0, 0.0, 2.0]), out_data]) is None
    assert (out_data == 7).all()
    assert run(compiled, [np.array([1.0, 3.0, 2.0]), out_data]) == []
    assert same_bits(out_data, np.log([1.0, 3.0, 2.0]))


def test_stores_run_in_program_order() -> None:
    """a[:] = b; b[:] = a leaves both equal to the old b."""
    m = Maker()
    a, b = m.array(np.ones(3)), m.array(np.ones(3))
    m.same_shape(a, b)
    m.graph.add("store", (a, b), NOTHING)
    m.graph.add("store", (b, a), NOTHING)
    compiled = m.compile()
    x, y = np.arange(3.0), np.arange(3.0) + 10
    assert run(compiled, [x, y]) == []
    assert x.tolist() == y.tolist() == [10, 11, 12]


def test_store_of_a_scalar_and_read_only_target() -> None:
    m = Maker()
    a = m.array(np.ones(3))
    m.graph.add("store", (a, m.literal(2.5)), NOTHING)
    compiled = m.compile()
    x = np.zeros(4)
    assert run(compiled, [x]) == [] and x.tolist() == [2.5] * 4
    x.flags.writeable = False
    assert run(compiled, [x]) is None


def scalar_graph(op: str, values: list[Any], result: ScalarType, **attrs: object) -> Compiled:
    m = Maker()
    args = [m.scalar(v) for v in values]
    m.result(m.graph.add(op, args, result, **attrs))
    return m.compile()


SCALARS: list[tuple[str, list[Any], Any]] = [
    ("iadd", [3, 4], 7),
    ("isub", [3, 4], -1),
    ("imul", [2**40, 2**30], None),
    ("ifloordiv", [-7, 2], -4),
    ("ifloordiv", [7, 0], None),
    ("imod", [-7, 3], 2),
    ("imin", [3, -1], -1),
    ("imax", [3, -1], 3),
    ("ineg", [-(2**63)], None),
    ("iabs", [-5], 5),
    ("iadd", [2**63 - 1, 1], None),
    ("iadd", [2**63, 1], None),
]


@pytest.mark.parametrize(("op", "values", "want"), SCALARS)
def test_integers(op: str, values: list[Any], want: Any) -> None:
    got = run(scalar_graph(op, values, INT), values)
    assert got == (None if want is None else [want])


def test_doubles() -> None:
    assert run(scalar_graph("fdiv", [1.0, 4.0], FLOAT), [1.0, 4.0]) == [0.25]
    compiled = scalar_graph("fdiv", [1.0, 4.0], FLOAT)
    with np.errstate(all="ignore"):
        assert run(compiled, [1.0, 0.0]) is None, "Python raises ZeroDivisionError whatever errstate says"
    got = run(scalar_graph("fdiv", [np.float64(1), np.float64(4)], ScalarType("f8", "numpy")), [np.float64(1), np.float64(4)])
    assert got == [0.25] and type(got[0]) is np.float64
    assert run(scalar_graph("fcmp", [1.0, 2.0], ScalarType("b1", "python"), cond="lt"), [1.0, 2.0]) == [True]
    assert run(scalar_graph("icmp", [1, 2], ScalarType("b1", "python"), cond="ge"), [1, 2]) == [False]
    assert run(scalar_graph("itodouble", [3], FLOAT), [3]) == [3.0]


@pytest.mark.parametrize(
    "value", [5, -1.5, True, 2 + 3j, np.float32(0.1), np.int16(-3), np.uint64(2**63), np.bool_(True), np.complex64(1j)]
)
def test_unbox_and_box(value: Any) -> None:
    m = Maker()
    m.result(m.scalar(value))
    got = run(m.compile(), [value])
    assert got is not None and type(got[0]) is type(value) and got[0] == value


def test_objects_pass_through_and_are_built() -> None:
    g = Graph("objects")
    a, b = (g.add("object", (), OBJECT, expr=k) for k in "ab")
    marker = object()
    c = g.add("constant", (), OBJECT, value=marker)
    one, true = g.add("constant", (), OBJECT, value=1), g.add("constant", (), OBJECT, value=True)
    pair = g.add("tuple", (a, b), OBJECT)
    items = g.add("list", (pair, c), OBJECT)
    table = g.add("dict", (a, one, b, true), OBJECT)
    part = g.add("slice_object", (a, b, c), OBJECT)
    for k, v in enumerate((a, pair, items, table, part, c)):
        g.exit.append(ExitSlot("local", k, v))
    g.exit += [ExitSlot("stack", 0, None), ExitSlot("cell", 3, a), ExitSlot("name", "answer", b)]
    compiled = compile_graph(g, {"a": 1, "b": 0})
    status, regs = _core.run_plan(compiled.plan, ["B", "A"])
    assert status == 0
    kinds = [(kind, regs[reg] if reg >= 0 else None) for kind, _, reg in compiled.program.exit]
    assert kinds[:6] == [(0, v) for v in ("A", ("A", "B"), [("A", "B"), marker], {"A": 1, "B": True}, slice("A", "B", marker), marker)]
    assert kinds[3][1]["B"] is True
    assert kinds[6:] == [(1, None), (2, "A"), (3, "B")]
    names = [compiled.program.constants[index] for kind, index, _ in compiled.program.exit if kind == _core.EXIT_NAME]
    assert names == ["answer"]


def test_views_and_creation() -> None:
    m = Maker()
    x = m.array(np.ones((3, 4)))
    g = m.graph

    def lit(v: int) -> Node:
        return g.add("literal", (), INDEX, value=v)

    two = lit(2)
    rows = g.add("slice", (x, lit(1), lit(-1)), ArrayType("f8", 2), axis=0, given=(True, False, True))
    column = g.add("index", (x, lit(-1)), ArrayType("f8", 1), axis=1)
    stood = g.add("newaxis", (column,), ArrayType("f8", 2), axis=1)
    flat = g.add("reshape", (x, g.add("size", (x,), INDEX)), ArrayType("f8", 1))
    wide = g.add("broadcast", (column, two, g.add("dim", (column,), INDEX, axis=0)), ArrayType("f8", 2))
    zeros = g.add("zeros", (two, lit(3)), ArrayType("i4", 2), dtype="i4")
    full = g.add("full", (m.literal(1.5), two), ArrayType("f8", 1), dtype="f8")
    like = g.add("zeros_like", (x,), ArrayType("f4", 2), dtype="f4")
    copied = g.add("copy", (g.add("transpose", (x,), ArrayType("f8", 2), perm=(1, 0)),), ArrayType("f8", 2), order="C")
    m.result(rows, column, stood, flat, wide, zeros, full, like, copied)
    a = np.arange(12.0).reshape(3, 4).copy()
    want = [a[1::-1], a[:, -1], a[:, -1][:, None], a.reshape(12), np.broadcast_to(a[:, -1], (2, 3)), np.zeros((2, 3), "i4"),
            np.full(2, 1.5), np.zeros_like(a, "f4"), a.T.copy()]  # fmt: skip
    got = run(m.compile(), [a])
    assert got is not None
    for have, expected in zip(got, want, strict=True):
        assert same_bits(have, expected)
    assert all(v.base is a for v in got[:3])


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 100, 128, 129, 1000, 10001])
@pytest.mark.parametrize(
    ("ufunc", "loop"), [("add", "dd->d"), ("multiply", "dd->d"), ("maximum", "dd->d"), ("add", "ff->f"), ("add", "DD->D"), ("add", "ll->l")]
)
def test_reduction_of_everything(ufunc: str, loop: str, n: int) -> None:
    dtype = {"d": "f8", "f": "f4", "D": "c16", "l": "i8"}[loop[0]]
    x = (np.random.default_rng(n).normal(size=n) * 10).astype(dtype)
    m = Maker()
    a = m.array(x)
    m.result(m.graph.add("reduce", (a,), ScalarType(dtype, "numpy"), ufunc=ufunc, loop=loop, axis=None, keepdims=False))
    compiled = m.compile()
    for data in (x, x[::-1], np.repeat(x, 2)[::2], x * 0 * -1):
        with np.errstate(all="ignore"):
            got = run(compiled, [data])
            want = getattr(np, ufunc).reduce(data)
        assert got is not None and same_bits(got[0], want)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reduction_along_an_axis(axis: int | None, keepdims: bool) -> None:
    m = Maker()
    a = m.array(np.ones((3, 4)))
    if axis is None and not keepdims:
        result: Any = ScalarType("f8", "numpy")
    else:
        result = ArrayType("f8", 2 if keepdims else 1)
    m.result(m.graph.add("reduce", (a,), result, ufunc="add", loop="dd->d", axis=axis, keepdims=keepdims))
    compiled = m.compile()
    for shape in ((3, 4), (1, 5), (5, 1), (30, 70)):
        x = np.random.default_rng(1).normal(size=shape)
        got = run(compiled, [x])
        assert got is not None and same_bits(got[0], np.add.reduce(x, axis=axis, keepdims=keepdims))


def test_scalar_operands_are_converted_as_numpy_does() -> None:
    m = Maker()
    x = m.array(np.ones(3, "f4"))
    s, i = m.scalar(0.1), m.scalar(3)
    t = m.ufunc("add", "ff->f", m.ufunc("multiply", "ff->f", x, s), i)
    m.result(t, m.ufunc("multiply", "ff->f", t, m.literal(0.3)))
    compiled = m.compile()
    a = np.linspace(0, 1, 9, dtype="f4")
    got = run(compiled, [a, 0.1, 3])
    assert got is not None and same_bits(got[0], a * 0.1 + 3) and same_bits(got[1], (a * 0.1 + 3) * 0.3)
    assert run(compiled, [a, 1e300, 3]) is None, "NumPy warns of the overflow"


def test_a_literal_that_overflows_its_loop_is_left_to_numpy() -> None:
    m = Maker()
    x = m.array(np.ones(3, "f4"))
    m.result(m.ufunc("multiply", "ff->f", m.ufunc("square", "f->f", x), m.literal(1e300)))
    assert run(m.compile(), [np.ones(3, "f4")]) is None


def test_temporaries_die_early() -> None:
    """Of a long chain of kernels at most a few results are alive at a time."""
    m = Maker()
    x = m.array(np.ones(3))
    g = m.graph
    t = x
    for _ in range(6):
        total = g.add("reduce", (t,), ArrayType("f8", 1), ufunc="add", loop="dd->d", axis=None, keepdims=True)
        t = m.ufunc("subtract", "dd->d", m.ufunc("square", "d->d", t), total)
    m.result(t)
    compiled = m.compile()
    assert compiled.program.narrays <= 5
    assert opcodes(compiled).count("A_FREE") >= 8


def test_results_do_not_keep_inputs_alive() -> None:
    class Array(np.ndarray):
        pass

    m = Maker()
    x = m.array(np.ones(3))
    m.result(m.ufunc("negative", "d->d", m.ufunc("square", "d->d", x)))
    compiled = m.compile()
    data = np.ones(5)
    ref = weakref.ref(data)
    got = run(compiled, [data])
    del data
    gc.collect()
    assert got is not None and ref() is None


def test_what_cannot_be_compiled_is_said() -> None:
    g = Graph("strange")
    o = g.add("object", (), OBJECT, expr="x")
    g.exit.append(ExitSlot("local", 0, o))
    with pytest.raises(CompileError, match="strange: no guard expression for source x"):
        compile_graph(g, {})
    m = Maker()
    m.result(m.ufunc("no_such_ufunc", "d->d", m.array(np.ones(2))))
    with pytest.raises(CompileError, match="no_such_ufunc"):
        m.compile()
    m = Maker()
    m.result(m.ufunc("bitwise_and", "dd->d", *[m.array(np.ones(2))] * 2))
    with pytest.raises(CompileError, match="no loop dd->d"):
        m.compile()


def copied_store(second: bool = False) -> Compiled:
    """a[:] = b.copy(), and before it b[:] = 0 if second."""
    m = Maker()
    a, b = m.array(np.ones(3)), m.array(np.ones(3))
    m.same_shape(a, b)
    copy = m.graph.add("copy", (b,), b.type, order="K")
    if second:
        m.graph.add("store", (b, m.literal(0.0)), NOTHING)
    m.graph.add("store", (a, copy), NOTHING)
    return m.compile()


def test_what_is_only_stored_is_not_copied_before() -> None:
    compiled = copied_store()
    assert "A_APART" in opcodes(compiled) and "A_COPY" not in opcodes(compiled)
    x, y = np.zeros(5), np.arange(5.0)
    assert run(compiled, [x, y]) == [] and x.tolist() == y.tolist()
    z = np.arange(6.0)
    assert run(compiled, [z[1:], z[:-1]]) == [] and z.tolist() == [0, 0, 1, 2, 3, 4]


def test_what_an_earlier_store_changes_is_copied_before() -> None:
    compiled = copied_store(second=True)
    assert "A_COPY" in opcodes(compiled)
    x, y = np.zeros(5), np.arange(5.0)
    assert run(compiled, [x, y]) == [] and x.tolist() == [0, 1, 2, 3, 4] and not y.any()
