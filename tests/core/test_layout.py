"""Memory order: outputs laid out as NumPy would, for single loops and fused chains, over random operands."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from plan_tools import assert_same, elementwise, loop_kernel, run

from tierup import _core

ADD = loop_kernel(np.add, "dd->d")


def random_operand(rng: random.Random, shape: tuple[int, ...], dtype: str = "f8") -> np.ndarray:
    """An array of that shape (or one that broadcasts to it) with a random memory order, steps, reversed and zero-stride axes."""
    shape = tuple(1 if rng.random() < 0.15 else n for n in shape)
    if rng.random() < 0.2:
        drop = rng.randrange(len(shape) + 1)
        shape = shape[drop:]
    perm = list(range(len(shape)))
    if rng.random() < 0.6:
        rng.shuffle(perm)
    steps = [rng.choice([1, 1, 1, 2, -1]) for _ in shape]
    base_shape = [shape[p] * abs(steps[p]) for p in perm]
    base = np.arange(max(1, int(np.prod(base_shape)))).astype(dtype)[: int(np.prod(base_shape))].reshape(base_shape)
    a = base.transpose(np.argsort(perm)) if perm else base
    a = a[tuple(slice(None, None, s) for s in steps)]
    if rng.random() < 0.1 and a.ndim:
        axis = rng.randrange(a.ndim)
        a = np.broadcast_to(a.take([0], axis) if a.shape[axis] else a, a.shape)
    return np.asarray(a)


def random_shape(rng: random.Random) -> tuple[int, ...]:
    return tuple(rng.choice([1, 2, 3, 3, 5, 0] if rng.random() < 0.1 else [1, 2, 3, 4, 5]) for _ in range(rng.randrange(0, 6)))


@pytest.mark.parametrize("seed", range(20))
def test_two_operands(seed: int) -> None:
    rng = random.Random(seed)
    plan = elementwise(ADD, 2)
    for _ in range(300):
        shape = random_shape(rng)
        a, b = random_operand(rng, shape), random_operand(rng, shape)
        got = run(plan, a, b)
        assert got is not None
        assert_same(got[2], np.asarray(np.add(a, b)))


@pytest.mark.parametrize("seed", range(10))
def test_three_operands(seed: int) -> None:
    rng = random.Random(seed)
    clip = elementwise(loop_kernel(np._core.umath.clip, "ddd->d"), 3)
    for _ in range(300):
        shape = random_shape(rng)
        ops = [random_operand(rng, shape) for _ in range(3)]
        got = run(clip, *ops)
        assert got is not None
        assert_same(got[3], np.asarray(np._core.umath.clip(*ops)))


@pytest.mark.parametrize("seed", range(5))
def test_two_outputs(seed: int) -> None:
    rng = random.Random(seed)
    plan = elementwise(loop_kernel(np.modf, "d->dd"), 1, 2)
    for _ in range(200):
        a = random_operand(rng, random_shape(rng))
        got = run(plan, a)
        assert got is not None
        for g, e in zip(got[1:], np.modf(a), strict=True):
            assert_same(g, np.asarray(e))


def chain_kernel(nin: int, layout: list[list[int]], out: list[int]) -> _core.Kernel:
    """A kernel whose loop does not matter: only the layout of its outputs is looked at. It adds its operands as far as they go."""
    ufunc, signature = (np.add, "dd->d") if nin == 2 else (np._core.umath.clip, "ddd->d")
    return loop_kernel(ufunc, signature, layout=layout, layout_out=out)


Step = tuple[Callable[..., Any], list[int]]


def random_chain(rng: random.Random, nin: int) -> tuple[list[list[int]], list[Step]]:
    """Layout entries and the NumPy calls they stand for."""
    layout: list[list[int]] = []
    steps: list[Step] = []

    def emit(function: Callable[..., Any], operands: list[int], flags: Sequence[int] = (0, 0, 0)) -> int:
        layout.append([o | f for o, f in zip(operands, flags, strict=False)])
        steps.append((function, operands))
        return nin + len(layout) - 1

    usable = list(range(nin))  # not the conditions
    for _ in range(rng.randrange(1, 5)):
        x, y = rng.choice(usable), rng.choice(usable)
        kind = rng.choice(["unary", "binary", "binary", "cast", "copy", "where"])
        if kind == "unary":
            emit(np.negative, [x])
        elif kind == "binary":
            emit(np.add, [x, y])
        elif kind == "copy":
            emit(lambda v: v.copy("K"), [x], [_core.LAYOUT_COPY])
        elif kind == "cast":
            single = emit(lambda v: v.astype("f4"), [y], [_core.LAYOUT_COPY])
            emit(np.add, [x, single], [0, _core.LAYOUT_CAST])
        else:
            condition = emit(lambda v: v > 0, [x])
            emit(np.where, [condition, x, y], [_core.LAYOUT_ITER, 0, 0])
        usable.append(nin + len(layout) - 1)
    return layout, steps


@pytest.mark.parametrize("seed", range(20))
def test_chains(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        nin = rng.choice([2, 3])
        layout, steps = random_chain(rng, nin)
        shape = random_shape(rng)
        ops: list[Any] = [random_operand(rng, shape) for _ in range(nin)]
        values = list(ops)
        for function, operands in steps:
            values.append(np.asarray(function(*(values[o] for o in operands))))
        got = run(elementwise(chain_kernel(nin, layout, [len(layout) - 1]), nin), *ops)
        if got is None:  # only where an operation before an empty result had elements
            assert np.broadcast(*ops).size == 0
            continue
        assert got[nin].shape == values[-1].shape
        expected = tuple(n * 8 // values[-1].itemsize for n in values[-1].strides)
        assert got[nin].strides == expected, (layout, [(o.shape, o.strides) for o in ops])


def test_cast_flag_takes_iterator() -> None:
    a = np.asfortranarray(np.ones((3, 1, 4)))
    kernel = loop_kernel(np.add, "dd->d", layout=[[0, 1 | _core.LAYOUT_CAST]], layout_out=[0])
    got = run(elementwise(kernel, 2), a, a)
    assert got is not None
    assert got[2].strides == (a + a.astype("i8")).strides == (8, 96, 24)


def test_elision_in_doubt_is_a_miss() -> None:
    """NumPy may compute in place of a large temporary, whose order then wins."""
    c = np.ones((300, 300))
    f = np.asfortranarray(c)
    assert run(elementwise(ADD, 2), f, c) is None
    small = run(elementwise(ADD, 2), f[:50, :50].copy("F"), c[:50, :50].copy())
    assert small is not None
    assert small[2].flags.c_contiguous
    same = run(elementwise(ADD, 2), f, f)
    assert same is not None
    assert same[2].flags.f_contiguous


def test_absurd_broadcasts_miss() -> None:
    huge = np.broadcast_to(1.0, (2**40, 1))
    assert run(elementwise(ADD, 2), huge, huge.T) is None
    assert run(elementwise(ADD, 2), huge, huge) is None
