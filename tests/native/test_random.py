"""Random graphs of elementwise operations, views and broadcasting against NumPy, bit for bit, in any layout."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from native.graphs import CHAR_OF, Maker, dtype_name, run, same_bits
from native.values import special
from tierup import _core
from tierup.graph.ir import INDEX, NOTHING, ArrayType, Node
from tierup.graph.loops import follows_strides
from tierup.graph.printer import print_graph
from tierup.native.loops import find_ufunc

UNARY = [
    "negative",
    "absolute",
    "square",
    "sqrt",
    "exp",
    "sin",
    "floor",
    "rint",
    "isnan",
    "logical_not",
    "invert",
    "conjugate",
    "sign",
    "signbit",
]
BINARY = [
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "less", "equal", "logical_and", "bitwise_or", "left_shift", "arctan2",
    "copysign", "greater_equal", "hypot", "floor_divide", "power",
]  # fmt: skip
DTYPES = ["f8", "f8", "f4", "i8", "i4", "u1", "b1", "c16", "c8"]


class Pool:
    """Values of one random program: graph node and NumPy value side by side."""

    def __init__(self) -> None:
        self.maker = Maker()
        self.values: list[tuple[Node, Any]] = []
        self.one = self.maker.graph.add("literal", (), INDEX, value=1)

    def add(self, node: Node, value: Any) -> None:
        self.values.append((node, value))

    def dim(self, node: Node, axis: int) -> Node:
        return self.maker.graph.add("dim", (node,), INDEX, axis=axis)

    def secure_broadcast(self, operands: list[tuple[Node, Any]]) -> None:
        """The checks that capture makes for operands of different shapes."""
        arrays = [(n, v) for n, v in operands if isinstance(n.type, ArrayType)]
        for axis in range(-max(v.ndim for _, v in arrays), 0):
            best: tuple[Node, int] | None = None
            for n, v in arrays:
                if v.ndim < -axis:
                    continue
                d, length = self.dim(n, v.ndim + axis), v.shape[axis]
                if best is None or best[1] == 1 != length:
                    if best is not None:
                        self.maker.graph.add("check", (best[0], self.one), NOTHING, cond="eq")
                    best = (d, length)
                else:
                    self.maker.graph.add("check", (d, best[0] if length == best[1] else self.one), NOTHING, cond="eq")


def layouts(draw: st.DrawFn, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An array of that shape in some memory order, of corner values and ordinary ones."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    corner = special(dtype)
    size = int(np.prod(shape))
    data = rng.choice(corner, size) if draw(st.booleans()) else rng.integers(1, 9, size).astype(dtype)
    kind = draw(st.sampled_from(["C", "F", "strided", "reversed"]))
    a = np.empty(shape, dtype, order="F" if kind == "F" else "C")
    if kind == "strided":
        a = np.empty((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]
    elif kind == "reversed":
        a = a[::-1]
    a[...] = data.reshape(shape)
    return a


def resolve(ufunc: np.ufunc, values: list[Any]) -> str | None:
    """The loop NumPy takes, if a graph can hold it."""
    kinds = [type(v) if type(v) in (int, float, complex, bool) else v.dtype for v in values]
    kinds = [np.dtype(bool) if k is bool else k for k in kinds]
    try:
        found = ufunc.resolve_dtypes((*kinds, None))
    except (TypeError, np.exceptions.DTypePromotionError):
        return None
    names = [dtype_name(d) for d in found]
    if any(n not in CHAR_OF for n in names):
        return None
    return "".join(CHAR_OF[n] for n in names[:-1]) + "->" + CHAR_OF[names[-1]]


def lossless(value: Any, char: str) -> bool:
    """Scalars that a loop takes without an error (no ints out of range) and that plans convert (truth values only from bools)."""
    if isinstance(value, np.ndarray):
        return True
    if char == "?":
        return isinstance(value, bool | np.bool_)
    return type(value) is not int or char not in "bBhHiIlL" or np.iinfo(char).min <= value <= np.iinfo(char).max


@st.composite
def programs(draw: st.DrawFn) -> tuple[Pool, list[Any]]:
    pool = Pool()
    lengths = st.sampled_from([0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9])
    shape = tuple(draw(st.lists(lengths, min_size=1, max_size=3)))
    if draw(st.booleans()):
        shape = (*shape[:-1], shape[-1] * draw(st.sampled_from([1, 7, 40])))
    for _ in range(draw(st.integers(1, 4))):
        own = tuple(n if draw(st.integers(0, 3)) else 1 for n in shape)[draw(st.integers(0, len(shape) - 1)) :]
        a = layouts(draw, own, draw(st.sampled_from(DTYPES)))
        pool.add(pool.maker.array(a), a)
    for _ in range(draw(st.integers(0, 2))):
        value = draw(st.sampled_from([2, 0, -1, 3, 0.5, -0.0, 2.0, True, 1.5 - 2j, np.float32(3.5), np.int64(-7)]))
        make = pool.maker.scalar if isinstance(value, np.generic) or draw(st.booleans()) else pool.maker.literal
        pool.add(make(value), value)
    for _ in range(draw(st.integers(1, 12))):
        step(draw, pool)
    results = [(n, v) for n, v in pool.values if isinstance(n.type, ArrayType) and n.op != "array"]
    chosen = [r for r in results if draw(st.integers(0, 2))] or results[-1:]
    pool.maker.result(*(n for n, _ in chosen))
    return pool, [v for _, v in chosen]


def step(draw: st.DrawFn, pool: Pool) -> None:
    """One more operation on values of the pool, if it fits."""
    graph = pool.maker.graph
    what = draw(st.integers(0, 9))
    pick = st.sampled_from(pool.values)
    if what == 0:
        node, value = draw(st.sampled_from([p for p in pool.values if isinstance(p[0].type, ArrayType)]))
        perm = tuple(draw(st.permutations(range(value.ndim))))
        pool.add(graph.add("transpose", (node,), node.type, perm=perm), value.transpose(perm))
        return
    if what == 1:
        arrays = [p for p in pool.values if isinstance(p[0].type, ArrayType)]
        node, value = draw(st.sampled_from(arrays))
        target = draw(st.sampled_from(["f8", "f4", "c16", "b1", "i8"]))
        if (
            (value.dtype.kind == "f" and target == "i8")
            or (value.dtype.kind == "c" and target not in ("c16", "b1"))
            or target == dtype_name(value)
        ):
            return
        pool.add(graph.add("astype", (node,), ArrayType(target, value.ndim), dtype=target), value.astype(target))
        return
    ufunc = find_ufunc(draw(st.sampled_from(UNARY if what < 4 else BINARY)))
    operands = [draw(pick) for _ in range(ufunc.nin)]
    if not any(isinstance(n.type, ArrayType) for n, _ in operands):
        return
    loop = resolve(ufunc, [v for _, v in operands])
    if loop is None or not all(lossless(v, c) for (_, v), c in zip(operands, loop, strict=False)):
        return
    if ufunc.__name__ == "power" and loop[-1] not in "fdFD":
        return
    try:
        value = ufunc(*(v for _, v in operands))
    except ValueError:
        return  # shapes that do not broadcast
    pool.secure_broadcast(operands)
    pool.add(pool.maker.ufunc(ufunc.__name__, loop, *(n for n, _ in operands)), value)


@settings(max_examples=int(os.environ.get("TIERUP_EXAMPLES", "150")), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_program(data: st.DataObject) -> None:
    with np.errstate(all="ignore"):
        pool, wanted = data.draw(programs())
        if not pool.maker.graph.exit:
            return
        compiled = pool.maker.compile()
        got = run(compiled, pool.maker.inputs)
    if got is None:  # the layout of a result (csrc/layout.c) or the way through the operands (WALK_FLAT) may be in doubt, nothing else
        loops = [(str(n.attrs["name"]), str(n.attrs["loop"])) for n in pool.maker.graph.nodes if n.op == "ufunc"]
        doubtful = any(follows_strides(name, loop) for name, loop in loops)
        assert doubtful or any(v.ndim > 1 for v in wanted), print_graph(pool.maker.graph)
        return
    for have, want in zip(got, wanted, strict=True):
        assert same_bits(have, want), (have, want)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_threads_change_no_bit(data: st.DataObject) -> None:
    threads = _core.num_threads()
    with np.errstate(all="ignore"):
        pool, wanted = data.draw(programs())
        compiled = pool.maker.compile()
        try:
            _core.set_launch_limits(0.0, 0.0)
            _core.set_num_threads(3)
            got = run(compiled, pool.maker.inputs)
        finally:
            _core.set_launch_limits(100e3, 50e3)
            _core.set_num_threads(threads)
    if got is not None:
        assert all(same_bits(have, want) for have, want in zip(got, wanted, strict=True))


def test_a_large_kernel_on_any_number_of_threads() -> None:
    """With NumPy's loops in blocks and without, strided and not, broadcast and not."""
    m = Maker()
    x, y = m.array(np.ones((3, 3))), m.array(np.ones((3, 3)))
    m.same_shape(x, y)
    t = m.ufunc("add", "dd->d", x, y)
    m.result(m.ufunc("multiply", "dd->d", m.ufunc("sin", "d->d", t), t), m.ufunc("maximum", "dd->d", m.ufunc("square", "d->d", y), t))
    compiled = m.compile()
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300, 2100))
    threads = _core.num_threads()
    try:
        for count in (1, 2, 3):
            _core.set_num_threads(count)
            for p, q in ((a, b), (a[:, ::2], b[:, ::2]), (a.T, b.T), (a[::-1], b), (a.T, np.ascontiguousarray(b.T))):
                got = run(compiled, [p, q])
                assert got is not None
                s = p + q
                assert same_bits(got[0], np.sin(s) * s) and same_bits(got[1], np.maximum(np.square(q), s))
    finally:
        _core.set_num_threads(threads)
