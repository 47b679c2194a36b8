"""Which operations share a kernel, seen from the finished program."""

from __future__ import annotations

import numpy as np
import pytest

from native.graphs import Maker, run, same_bits
from tierup.graph.ir import INDEX, NOTHING, OBJECT, ArrayType, ExitSlot, Node
from tierup.native.compile import Compiled


def f8(*shape: int) -> np.ndarray:
    return np.ones(shape)


def chain(m: Maker, x: Node, y: Node, length: int) -> Node:
    for k in range(length):
        x = m.ufunc("add" if k % 2 else "multiply", "dd->d", x, y)
    return x


def kernel_sizes(compiled: Compiled) -> list[int]:
    return [len(k.ops) for k in compiled.kernels]


def test_a_chain_is_one_kernel_with_one_output() -> None:
    m = Maker()
    x, y = m.array(f8(3)), m.array(f8(3))
    m.same_shape(x, y)
    m.result(chain(m, x, y, 7))
    compiled = m.compile()
    assert kernel_sizes(compiled) == [7]
    assert compiled.kernels[0].spec is not None and len(compiled.kernels[0].spec.outputs) == 1


def test_without_a_check_nothing_is_known_of_shapes() -> None:
    """x + y may broadcast, so its consumer with y alone has another shape; but with x and y both it has the same."""
    m = Maker()
    x, y = m.array(f8(3)), m.array(f8(3))
    t = m.ufunc("add", "dd->d", x, y)
    m.result(m.ufunc("multiply", "dd->d", m.ufunc("negative", "d->d", t), m.ufunc("negative", "d->d", y)))
    compiled = m.compile()
    assert len(compiled.kernels) > 1
    for shapes in ((5, 5), (5, 1), (1, 5)):
        a, b = (np.random.default_rng(k).normal(size=n) for k, n in enumerate(shapes))
        got = run(compiled, [a, b])
        assert got is not None and same_bits(got[0], -(a + b) * -b)


def test_a_row_is_not_computed_for_every_row_of_a_matrix() -> None:
    m = Maker()
    x, row = m.array(f8(3, 4)), m.array(f8(4))
    g = m.graph
    d = [g.add("dim", (x,), INDEX, axis=1), g.add("dim", (row,), INDEX, axis=0)]
    g.add("check", d, NOTHING, cond="eq")
    scaled = m.ufunc("multiply", "dd->d", m.ufunc("add", "dd->d", row, row), row)
    m.result(m.ufunc("subtract", "dd->d", m.ufunc("square", "d->d", x), scaled))
    compiled = m.compile()
    assert sorted(kernel_sizes(compiled)) == [2, 2]
    a, b = np.random.default_rng(0).normal(size=(6, 4)), np.arange(4.0)
    got = run(compiled, [a, b])
    assert got is not None and same_bits(got[0], np.square(a) - (b + b) * b)


def test_chains_that_share_an_input_share_the_pass_over_it() -> None:
    m = Maker()
    x = m.array(f8(3))
    m.result(m.ufunc("square", "d->d", x), m.ufunc("negative", "d->d", x))
    assert kernel_sizes(m.compile()) == [2]


def test_independent_chains_of_unrelated_arrays_stay_apart() -> None:
    m = Maker()
    x, y = m.array(f8(3)), m.array(f8(3))
    m.same_shape(x, y)
    m.result(m.ufunc("square", "d->d", x), m.ufunc("negative", "d->d", y))
    assert kernel_sizes(m.compile()) == [1, 1]


def test_a_reduction_in_between_splits_and_makes_no_circle() -> None:
    m = Maker()
    x = m.array(f8(3))
    e = m.ufunc("square", "d->d", x)
    g = m.graph
    total = g.add("reduce", (e,), ArrayType("f8", 1), ufunc="add", loop="dd->d", axis=None, keepdims=True)
    d = g.add("dim", (total,), INDEX, axis=0)
    g.add("check", (d, g.add("literal", (), INDEX, value=1)), NOTHING, cond="eq")
    m.result(m.ufunc("divide", "dd->d", e, total), m.ufunc("negative", "d->d", x))
    compiled = m.compile()
    a = np.random.default_rng(0).normal(size=1000)
    got = run(compiled, [a])
    assert got is not None
    assert same_bits(got[0], np.square(a) / np.add.reduce(np.square(a), keepdims=True)) and same_bits(got[1], -a)


def test_the_shape_of_an_intermediate_is_read_off_an_input() -> None:
    """dim(x + y) must not force x + y to exist."""
    m = Maker()
    x, y, z = m.array(f8(3)), m.array(f8(3)), m.array(f8(3))
    m.same_shape(x, y)
    t = m.ufunc("add", "dd->d", x, y)
    m.same_shape(t, z)
    m.result(m.ufunc("multiply", "dd->d", t, z))
    g = m.graph
    g.exit.append(ExitSlot("local", 5, g.add("shape", (t,), OBJECT)))
    compiled = m.compile()
    assert kernel_sizes(compiled) == [2]
    assert compiled.kernels[0].spec is not None and len(compiled.kernels[0].spec.outputs) == 1
    assert compiled.program.listing().count("I_DIM") == 3
    got = run(compiled, [np.arange(4.0)] * 3)
    assert got is not None and got[1] == (4,)
    assert run(compiled, [np.arange(4.0), np.arange(4.0), np.arange(5.0)]) is None


def test_views_of_results_are_outputs() -> None:
    m = Maker()
    x = m.array(f8(3))
    t = m.ufunc("square", "d->d", x)
    one = m.graph.add("literal", (), INDEX, value=1)
    tail = m.graph.add("slice", (t, one), ArrayType("f8", 1), axis=0, given=(True, False, False))
    m.result(m.ufunc("add", "dd->d", tail, tail), m.ufunc("negative", "d->d", t))
    compiled = m.compile()
    a = np.arange(5.0)
    got = run(compiled, [a])
    assert got is not None and same_bits(got[0], (a * a)[1:] * 2) and same_bits(got[1], -(a * a))


@pytest.mark.parametrize("outputs", [10, 70])
def test_kernels_have_no_more_operands_than_the_launcher_takes(outputs: int) -> None:
    m = Maker()
    arrays = [m.array(f8(3)) for _ in range(12)]
    m.same_shape(*arrays)
    t = arrays[0]
    values = []
    for k in range(outputs):
        t = m.ufunc("add", "dd->d", t, arrays[k % 12])
        values.append(t)
    m.result(*values)
    compiled = m.compile()
    data = [np.random.default_rng(k).normal(size=9) for k in range(12)]
    got = run(compiled, data)
    assert got is not None
    want = data[0]
    for k in range(outputs):
        want = want + data[k % 12]
        assert same_bits(got[k], want)


def test_many_operations_become_few_kernels() -> None:
    m = Maker()
    x, y = m.array(f8(3)), m.array(f8(3))
    m.same_shape(x, y)
    m.result(chain(m, x, y, 400))
    compiled = m.compile()
    assert len(compiled.kernels) <= 6
    a, b = np.full(10, 0.999), np.full(10, 0.01)
    want = a
    for k in range(400):
        want = want + b if k % 2 else want * b
    got = run(compiled, [a, b])
    assert got is not None and same_bits(got[0], want)


def test_what_is_computed_twice_is_computed_once() -> None:
    m = Maker()
    x, y = m.array(f8(3)), m.array(f8(3))
    m.same_shape(x, y)
    differences = [m.ufunc("subtract", "dd->d", x, y) for _ in range(3)]
    total = m.ufunc("add", "dd->d", m.ufunc("square", "d->d", differences[0]), m.ufunc("absolute", "d->d", differences[1]))
    m.result(total, differences[2], m.ufunc("subtract", "dd->d", x, y))
    compiled = m.compile()
    assert kernel_sizes(compiled) == [5], "two of the four differences are results of their own, the others are one"
    a, b = np.arange(9.0), np.ones(9)
    got = run(compiled, [a, b])
    assert got is not None and same_bits(got[0], np.square(a - b) + np.abs(a - b))
    assert same_bits(got[1], a - b) and same_bits(got[2], a - b) and not np.shares_memory(got[1], got[2])


def test_one_loop_needs_no_compilation() -> None:
    m = Maker()
    x = m.array(f8(3))
    m.result(m.ufunc("subtract", "dd->d", m.literal(2.0), x))
    compiled = m.compile()
    assert compiled.kernels[0].spec is None and compiled.kernels[0].llvm_ir == ""
    got = run(compiled, [np.arange(5.0)])
    assert got is not None and same_bits(got[0], 2.0 - np.arange(5.0))
