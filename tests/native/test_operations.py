"""Every generated operation against NumPy, bit for bit, over corner values; and NumPy's own loops inside fused kernels."""

from __future__ import annotations

import numpy as np
import pytest

from native.graphs import Maker, loop_for, run, same_bits
from native.values import pairs, special, triples
from tierup.graph.ir import ArrayType, Node
from tierup.graph.loops import loop_dtypes, loop_raises
from tierup.native import host
from tierup.native.loops import find_ufunc
from tierup.native.ops import _TABLE, is_generated

DTYPES = ("b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16")


def generated_loops() -> list[tuple[str, str]]:
    """(ufunc, loop) of all operations that are generated."""
    out = []
    for name in _TABLE:
        ufunc = find_ufunc(name)
        for dtype in DTYPES:
            try:
                loop = loop_for(ufunc, [dtype] * ufunc.nin)
            except LookupError:
                continue
            ins, result = loop_dtypes(loop)
            if is_generated(name, ins, result, (False,) * ufunc.nin, host.target()):
                out.append((name, loop))
    return out


def operands(ins: tuple[str, ...]) -> tuple[np.ndarray, ...]:
    if len(ins) == 3:
        return triples(ins[0])
    return pairs(*ins) if len(ins) == 2 else (special(ins[0]),)


def compiled_alone(m: Maker, name: str, loop: str, args: list[Node]) -> tuple[Node, Node]:
    """`name` and, in the same kernel, logical_not of it: two outputs, so the code is generated."""
    out = m.ufunc(name, loop, *args)
    dtype = loop_dtypes(loop)[1]
    return out, m.ufunc("logical_not", loop_for(np.logical_not, [dtype]), out)


@pytest.mark.parametrize(("name", "loop"), generated_loops(), ids=str)
def test_generated_operation(name: str, loop: str) -> None:
    ins, _ = loop_dtypes(loop)
    arrays = operands(ins)
    m = Maker()
    nodes = [m.array(a) for a in arrays]
    m.same_shape(*nodes)
    m.result(*compiled_alone(m, name, loop, nodes))
    compiled = m.compile()
    assert compiled.kernels[0].spec is not None
    ufunc = find_ufunc(name)
    with np.errstate(all="ignore"):
        for data in variants(arrays):
            want = ufunc(*data, signature=loop)
            got = run(compiled, data)
            assert got is not None
            assert same_bits(got[0], want), (name, loop, data, got[0], want)
            assert same_bits(got[1], np.logical_not(want))


def variants(arrays: tuple[np.ndarray, ...]) -> list[tuple[np.ndarray, ...]]:
    """Contiguous, reversed, strided, misfit strides, broadcast, and all short lengths."""
    out = [arrays, tuple(a[::-1] for a in arrays), tuple(np.repeat(a, 3)[::3] for a in arrays)]
    out.append((np.repeat(arrays[0], 2)[::2], *arrays[1:]))
    out += [tuple(a[k : k + n] for a in arrays) for n in range(min(70, len(arrays[0]))) for k in (0, 5)]
    if len(arrays) > 1:
        rest = arrays[1:]
        out += [(np.broadcast_to(arrays[0][k : k + 1], rest[0].shape), *rest) for k in range(0, len(arrays[0]), 7)]
    return out


@pytest.mark.parametrize(("name", "loop"), generated_loops(), ids=str)
def test_flags_of_generated_operation(name: str, loop: str) -> None:
    """A kernel raises a flag exactly where NumPy reports one, element by element."""
    ins, _ = loop_dtypes(loop)
    arrays = operands(ins)
    m = Maker()
    nodes = [m.array(a) for a in arrays]
    m.same_shape(*nodes)
    m.result(*compiled_alone(m, name, loop, nodes))
    compiled = m.compile()
    ufunc = find_ufunc(name)
    for k in range(len(arrays[0])):
        data = tuple(a[k : k + 1] for a in arrays)
        with np.errstate(all="raise", under="ignore"):
            try:
                ufunc(*data, signature=loop)
                quiet = True
            except FloatingPointError:
                quiet = False
            got = run(compiled, data)
        assert (got is not None) == quiet, (name, loop, data)
        assert quiet or loop_raises(name, loop)


CASTS = [(a, b) for a in DTYPES for b in DTYPES if not (a[0] == "c" and b[0] not in "cb") and not (a[0] == "f" and b[0] in "iu")]


@pytest.mark.parametrize(("source", "target"), CASTS)
def test_cast(source: str, target: str) -> None:
    m = Maker()
    data = special(source)
    if source in ("i8", "u8"):
        near = [2**53 + 1, 2**53 - 1, 2**24 + 1, 2**60 + 2**36, 2**62 + 2**38 + 1, 2**31 + 2**7]
        data = np.concatenate([data, np.array(near, data.dtype)])
    x = m.array(data)
    m.result(m.graph.add("astype", (x,), ArrayType(target, 1), dtype=target))
    compiled = m.compile()
    with np.errstate(all="ignore"):
        for a in (data, data[::-1], data[:3], np.repeat(data, 2)[::2]):
            got = run(compiled, [a])
            assert got is not None
            assert same_bits(got[0], a.astype(target), nans_alike=False), (got[0], a.astype(target))


@pytest.mark.parametrize("dtype", DTYPES)
def test_where(dtype: str) -> None:
    x, y = pairs(dtype)
    cond = np.arange(len(x)) % 3 == 0
    m = Maker()
    nodes = [m.array(a) for a in (cond, x, y)]
    m.same_shape(*nodes)
    m.result(m.graph.add("where", nodes, ArrayType(dtype, 1)))
    compiled = m.compile()
    for data in variants((cond, x, y)):
        got = run(compiled, data)
        assert got is not None
        assert same_bits(got[0], np.where(*data), nans_alike=False)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u8"])
@pytest.mark.parametrize("arrays", [(), (1,), (2,), (1, 2)])
def test_clip(dtype: str, arrays: tuple[int, ...]) -> None:
    """Bounds that are scalars or arrays: NumPy's choice between zeros differs."""
    ufunc = find_ufunc("clip")
    char = np.dtype(dtype).char
    x, low, high = triples(dtype)
    m = Maker()
    nodes = [m.array(x)]
    for k, values in enumerate((low, high), 1):
        nodes.append(m.array(values) if k in arrays else m.scalar(values[0]))
    m.same_shape(nodes[0], *(nodes[k] for k in arrays))
    m.result(*compiled_alone(m, "clip", f"{char * 3}->{char}", nodes))
    compiled = m.compile()
    for k in range(0, len(x), 7):
        data = [x, low if 1 in arrays else low[k], high if 2 in arrays else high[-k - 1]]
        got = run(compiled, data)
        assert got is not None and same_bits(got[0], ufunc(*data), nans_alike=False), (data, got[0], ufunc(*data))


CALLED = [
    "exp",
    "log",
    "sin",
    "tanh",
    "arctan2",
    "hypot",
    "power",
    "floor_divide",
    "remainder",
    "fmod",
    "fmax",
    "fmin",
    "cbrt",
    "sign",
    "logaddexp",
]


@pytest.mark.parametrize("name", CALLED)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_numpy_loop_inside_a_kernel(name: str, dtype: str) -> None:
    """(x + y), then NumPy's loop on it, then arithmetic: blocks, padding and scratch must not show."""
    ufunc = find_ufunc(name)
    char = "f" if dtype == "f4" else "d"
    binary = f"{char}{char}->{char}"
    rng = np.random.default_rng(1)
    m = Maker()
    x, y = (m.array(np.empty(3, dtype)) for _ in range(2))
    m.same_shape(x, y)
    t = m.ufunc("add", binary, x, y)
    u = m.ufunc(name, f"{char * ufunc.nin}->{char}", *([t, y][: ufunc.nin]))
    v = m.ufunc("multiply", binary, u, t)
    m.result(t, u, v)
    compiled = m.compile()
    for n in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 100, 1000, 4096, 5003):
        for step in (1, 2, -1):
            a, b = (rng.normal(size=2 * n).astype(dtype)[::step][:n] for _ in range(2))
            with np.errstate(all="ignore"):
                tt = a + b
                uu = ufunc(*([tt, b][: ufunc.nin]))
                got = run(compiled, [a, b])
                assert got is not None
                for have, want in zip(got, (tt, uu, uu * tt), strict=True):
                    assert same_bits(have, want), (name, n, step)
