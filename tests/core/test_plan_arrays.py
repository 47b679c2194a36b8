"""Views, new arrays and stores against NumPy: bits, strides, flags, bases, data pointers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from plan_tools import DTYPES, assert_same, i8, image, make_plan, run
from test_layout import random_operand, random_shape

from tierup import _core

LOAD = [("O_EXPR", 0, 0), ("A_OBJ", 0, 0)]
D = np.dtype("d").num


def address(a: np.ndarray) -> int:
    return int(a.__array_interface__["data"][0])


def assert_same_view(got: Any, expected: np.ndarray) -> None:
    assert_same(got, expected)
    assert address(got) == address(expected)
    assert got.base is expected.base


def random_slice(rng: random.Random, n: int) -> slice:
    def pick() -> int | None:
        return rng.choice([None, None, 0, 1, -1, n, n - 1, -n, n + 3, -n - 3, rng.randrange(-9, 9), 2**63 - 1, -(2**63)])

    return slice(pick(), pick(), rng.choice([None, None, 1, 2, 3, -1, -2, -7, 2**63 - 1, -(2**63)]))


def slice_code(axis: int, s: slice) -> tuple[tuple[Any, ...], bytes]:
    given = sum(1 << i for i, v in enumerate((s.start, s.stop, s.step)) if v is not None)
    return ("A_SLICE", 1, 0, axis, given, 0, 1, 2), image(*(i8(v or 0) for v in (s.start, s.stop, s.step)))


@pytest.mark.parametrize("seed", range(10))
def test_slices(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        a = random_operand(rng, random_shape(rng))
        if a.ndim == 0:
            continue
        axis = rng.randrange(a.ndim)
        s = random_slice(rng, a.shape[axis])
        op, slots = slice_code(axis, s)
        got = run(make_plan([*LOAD, op, ("BOX_ARRAY", 1, 1)], slots=slots), a)
        assert got is not None
        assert_same_view(got[1], a[(slice(None),) * axis + (s,)])


def test_slice_in_place_of_its_register() -> None:
    a = np.arange(10.0)
    code = [*LOAD, ("A_SLICE", 0, 0, 0, 1, 0, 0, 0), ("A_SLICE", 0, 0, 0, 5, 0, 0, 1), ("BOX_ARRAY", 1, 0)]
    got = run(make_plan(code, slots=image(i8(2), i8(3))), a)
    assert_same_view(got[1], a[2:][2::3])


def test_zero_step_and_bad_index_miss() -> None:
    a = np.arange(10.0)
    assert run(make_plan([*LOAD, ("A_SLICE", 1, 0, 0, 4, 0, 0, 0)]), a) is None
    assert run(make_plan([*LOAD, ("A_SLICE", 1, 0, 1, 0, 0, 0, 0)]), a) is None
    assert run(make_plan([*LOAD, ("A_INDEX", 1, 0, 1, 0)]), a) is None
    assert run(make_plan([*LOAD, ("A_NEWAXIS", 1, 0, 2)]), a) is None
    for index in (10, -11, 2**63 - 1, -(2**63)):
        assert run(make_plan([*LOAD, ("A_INDEX", 1, 0, 0, 0)], slots=image(i8(index))), a) is None


@pytest.mark.parametrize("seed", range(5))
def test_index_newaxis_transpose(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        a = random_operand(rng, random_shape(rng))
        axis = rng.randrange(a.ndim + 1)
        got = run(make_plan([*LOAD, ("A_NEWAXIS", 1, 0, axis), ("BOX_ARRAY", 1, 1)]), a)
        assert_same_view(got[1], a[(slice(None),) * axis + (None,)])
        perm = rng.sample(range(a.ndim), a.ndim)
        got = run(make_plan([*LOAD, ("A_TRANSPOSE", 1, 0, perm), ("BOX_ARRAY", 1, 1)]), a)
        assert_same_view(got[1], a.transpose(perm))
        if axis < a.ndim and a.shape[axis]:
            index = rng.randrange(-a.shape[axis], a.shape[axis])
            got = run(make_plan([*LOAD, ("A_INDEX", 1, 0, axis, 0), ("BOX_ARRAY", 1, 1)], slots=image(i8(index))), a)
            assert_same_view(got[1], a[(slice(None),) * axis + (index, ...)])


@pytest.mark.parametrize("seed", range(5))
def test_broadcast_and_reshape(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        a = random_operand(rng, random_shape(rng))
        shape = tuple(rng.choice([1, 2, 3]) for _ in range(rng.randrange(3))) + tuple(rng.choice([2, 3]) if n == 1 else n for n in a.shape)
        slots = image(*(i8(n) for n in shape))
        got = run(make_plan([*LOAD, ("A_BROADCAST", 1, 0, range_list(shape)), ("BOX_ARRAY", 1, 1)], slots=slots), a)
        assert_same_view(got[1], np.broadcast_to(a, shape))
        shape = random_factors(rng, a.size)
        slots = image(*(i8(n) for n in shape))
        got = run(make_plan([*LOAD, ("A_RESHAPE", 1, 0, range_list(shape)), ("BOX_ARRAY", 1, 1)], slots=slots), a)
        odd = shape == a.shape and a.strides != np.empty(shape).strides
        if not a.flags.c_contiguous or a.size == 0 or odd:
            assert got is None
        else:
            assert_same_view(got[1], a.reshape(shape))
        got = run(make_plan([*LOAD, ("A_RAVEL_KEEP", 1, 0), ("BOX_ARRAY", 1, 1)]), a)
        if not a.flags.c_contiguous or a.size == 0 or (a.ndim == 1 and a.strides != (8,)):
            assert got is None
        else:
            assert_same_view(got[1], a.ravel())


def range_list(shape: tuple[int, ...]) -> list[int]:
    return list(range(len(shape)))


def random_factors(rng: random.Random, n: int) -> tuple[int, ...]:
    shape = []
    for _ in range(rng.randrange(4)):
        divisors = [d for d in range(1, n + 1) if n % d == 0] or [0]
        shape.append(rng.choice(divisors))
        n = n // shape[-1] if shape[-1] else 0
    shape.append(n)
    return tuple(shape)


def test_reshape_of_other_size_misses() -> None:
    a = np.arange(10.0)
    for n in (9, 11, -10):
        assert run(make_plan([*LOAD, ("A_RESHAPE", 1, 0, [0])], slots=image(i8(n))), a) is None
    assert run(make_plan([*LOAD, ("A_BROADCAST", 1, 0, [0])], slots=image(i8(9))), a) is None
    assert run(make_plan([*LOAD, ("A_BROADCAST", 1, 0, [0, 0, 1])], slots=image(i8(2**40), i8(10))), a) is None


@pytest.mark.parametrize("char", "FD")
def test_complex_parts(char: str) -> None:
    a = (np.arange(12) * (1 + 2j)).astype(char).reshape(3, 4)[:, ::2]
    for op, name in (("A_REAL", "real"), ("A_IMAG", "imag")):
        got = run(make_plan([*LOAD, (op, 1, 0), ("BOX_ARRAY", 1, 1)]), a)
        assert_same_view(got[1], getattr(a, name))
        assert run(make_plan([*LOAD, (op, 1, 0)]), a.real) is None


def test_bases_collapse_and_writeable_is_inherited() -> None:
    base = np.arange(20.0)
    a = base[2:18]
    frozen = a[:]
    frozen.flags.writeable = False
    for source in (a, frozen):
        got = run(make_plan([*LOAD, ("A_SLICE", 1, 0, 0, 1, 0, 0, 0), ("BOX_ARRAY", 1, 1)], slots=image(i8(3))), source)
        assert_same_view(got[1], source[3:])
        assert got[1].base is base
    buffer = np.frombuffer(bytearray(80))
    got = run(make_plan([*LOAD, ("A_SLICE", 1, 0, 0, 1, 0, 0, 0), ("BOX_ARRAY", 1, 1)], slots=image(i8(3))), buffer)
    assert_same_view(got[1], buffer[3:])


def test_dtype_object_is_kept() -> None:
    dtype = np.dtype("f8", metadata={"unit": "m"})
    a = np.zeros(4, dtype)
    got = run(make_plan([*LOAD, ("A_NEWAXIS", 1, 0, 0), ("BOX_ARRAY", 1, 1)]), a)
    assert got[1].dtype is dtype


def test_whole_array_is_itself() -> None:
    a = np.arange(3)
    assert run(make_plan([*LOAD, ("BOX_ARRAY", 1, 0)]), a)[1] is a


def test_foreign_arrays_miss() -> None:
    class Sub(np.ndarray):
        pass

    odd = np.zeros(9, "u1")[1:].view("f8")
    for other in (np.zeros(3).view(Sub), np.zeros(3, ">f8"), np.zeros(3, "f2"), np.zeros(3, "O"), np.zeros(3, "M8[s]"), odd, [1.0], None):
        assert run(make_plan([*LOAD, ("BOX_ARRAY", 1, 0)]), other) is None
    assert run(make_plan([*LOAD]), np.zeros((1,) * 17)) is None


def test_shape_dim_size() -> None:
    a = np.zeros((3, 1, 5))
    code = [*LOAD, ("BOX_SHAPE", 1, 0), ("I_DIM", 0, 0, 2), ("I_SIZE", 1, 0), ("BOX_INT", 2, 0), ("BOX_INT", 3, 1)]
    assert run(make_plan(code), a)[1:4] == [(3, 1, 5), 5, 15]
    assert run(make_plan([*LOAD, ("I_DIM", 0, 0, 3)]), a) is None


def test_overlap_and_contiguity() -> None:
    a = np.zeros((6, 6))
    two = [*LOAD, ("O_EXPR", 1, 1), ("A_OBJ", 1, 1), ("C_NOOVERLAP", 0, 1)]
    assert run(make_plan(two), a[:3], a[3:])
    assert run(make_plan(two), a[:3][::-1], a[3:][::-1])
    assert run(make_plan(two), a[:4], a[3:]) is None
    assert run(make_plan(two), a[::-1], a[5:]) is None
    assert run(make_plan(two), a[:0], a)
    contiguous = make_plan([*LOAD, ("C_CCONTIG", 0)])
    for view in (a, a[:, :1], a.T, a[:1], a[:0], a[::2], a[:1, ::2]):
        assert (run(contiguous, view) is not None) == view.flags.c_contiguous


# --- new arrays ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.char)
def test_creation(dtype: np.dtype) -> None:
    for shape in ((), (0,), (5,), (2, 3), (3, 0, 2), (1, 4, 1)):
        slots = image(*(i8(n) for n in shape), b"\x01" if dtype == "?" else np.array(3, dtype).tobytes())
        dims = range_list(shape)
        got = run(make_plan([("A_ZEROS", 0, dtype.num, dims), ("BOX_ARRAY", 0, 0)], slots=slots))
        assert_same(got[0], np.zeros(shape, dtype))
        got = run(make_plan([("A_FULL", 0, len(shape), dtype.num, dims), ("BOX_ARRAY", 0, 0)], slots=slots))
        assert_same(got[0], np.full(shape, 3, dtype))
        got = run(make_plan([("A_EMPTY", 0, dtype.num, dims), ("BOX_ARRAY", 0, 0)], slots=slots))
        assert str(got[0].flags) == str(np.empty(shape, dtype).flags)
        assert got[0].strides == np.empty(shape, dtype).strides


def test_impossible_creation_misses() -> None:
    for shape in ((-1,), (2**62,), (2**40, 2**40), (2**62, 0, 2**62)):
        for op in ("A_EMPTY", "A_ZEROS"):
            assert run(make_plan([(op, 0, D, range_list(shape))], slots=image(*(i8(n) for n in shape)))) is None


@pytest.mark.parametrize("seed", range(5))
def test_like_and_copy(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        a = random_operand(rng, random_shape(rng))
        single = np.dtype("f").num
        got = run(make_plan([*LOAD, ("A_EMPTY_LIKE", 1, 0, single), ("BOX_ARRAY", 1, 1)]), a)
        assert got[1].strides == np.empty_like(a, "f").strides
        got = run(make_plan([*LOAD, ("A_ZEROS_LIKE", 1, 0, single), ("BOX_ARRAY", 1, 1)]), a)
        assert_same(got[1], np.zeros_like(a, "f"))
        for order in (0, 1):
            got = run(make_plan([*LOAD, ("A_COPY", 1, 0, order), ("BOX_ARRAY", 1, 1)]), a)
            assert_same(got[1], a.copy("CK"[order]))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.char)
def test_copy_of_every_type(dtype: np.dtype) -> None:
    a = np.frombuffer(random.Random(1).randbytes(16 * 60), np.uint8)[: dtype.itemsize * 60]
    a = (a & 1 if dtype == "?" else a).view(dtype).reshape(3, 4, 5)
    for view in (a, a.T, a[:, ::-2], a[..., 0], np.broadcast_to(a[0], (2, 4, 5))):
        got = run(make_plan([*LOAD, ("A_COPY", 1, 0, 1), ("BOX_ARRAY", 1, 1)]), view)
        assert_same(got[1], view.copy("K"))


def test_elements_apart_from_others() -> None:
    memory = np.arange(24.0)
    load = [("O_EXPR", 0, 0), ("A_OBJ", 0, 0), ("O_EXPR", 2, 1), ("A_OBJ", 2, 2)]
    plan = [*load, ("A_APART", 1, 0, 2), ("BOX_ARRAY", 1, 1)]
    apart, other = memory[:12].reshape(3, 4).T, memory[12:].reshape(4, 3)
    got = run(make_plan(plan), apart, other)
    assert got is not None
    assert_same(got[1], apart)
    assert np.shares_memory(got[1], apart)
    for other in (memory[11:], apart, memory[::-1]):
        got = run(make_plan(plan), apart, other)
        assert got is not None
        assert_same(got[1], apart.copy("K"))
        assert not np.shares_memory(got[1], memory)


def test_scalar_descriptors() -> None:
    code = [("A_SCALAR", 0, 0, D), ("S_LOAD", 1, 0), ("BOX_NUMPY", 0, 1, D)]
    assert run(make_plan(code, slots=np.array([2.5, 0.0]).tobytes()))[0] == np.float64(2.5)
    assert run(make_plan([("A_SCALAR", 0, 0, D), ("BOX_ARRAY", 0, 0)])) is None
    a = np.arange(5.0)
    code = [*LOAD, ("A_INDEX", 1, 0, 0, 0), ("S_LOAD", 1, 1), ("BOX_NUMPY", 1, 1, D)]
    assert run(make_plan(code, slots=image(i8(-2))), a)[1] == 3.0
    assert run(make_plan([*LOAD, ("S_LOAD", 1, 0)]), a) is None


# --- stores ---------------------------------------------------------------------------------------------------------

STORE = make_plan([*LOAD, ("O_EXPR", 1, 1), ("A_OBJ", 1, 1), ("C_STORABLE", 0, 1), ("STORE", 0, 1)])


@pytest.mark.parametrize("seed", range(5))
def test_store(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        shape = random_shape(rng)
        target, value = random_operand(rng, shape), random_operand(rng, shape)
        expected = target.copy()
        try:
            expected[...] = value
        except ValueError:
            expected = None
        storable = expected is not None and target.flags.writeable and value.ndim <= target.ndim
        got = run(STORE, target, value)
        assert (got is not None) == storable, (target.shape, value.shape)
        if storable:
            assert target.tobytes() == expected.tobytes()


def test_not_storable() -> None:
    a = np.arange(10.0)
    frozen = a.copy()
    frozen.flags.writeable = False
    for target, value in (
        (frozen, a),
        (a, a[::-1]),
        (a, a),
        (a[:5], a[3:8]),
        (a, a.astype("f4")),
        (a[:5], np.zeros(6)),
        (a[:1], np.zeros(3)),
    ):
        assert run(STORE, target, value) is None
    assert (a == np.arange(10.0)).all()


def test_scalar_store_into_view() -> None:
    a = np.zeros((4, 5))
    code = [*LOAD, ("A_INDEX", 1, 0, 1, 0), ("A_SCALAR", 2, 1, D), ("C_STORABLE", 1, 2), ("STORE", 1, 2), ("A_FREE", 1)]
    assert run(make_plan(code, slots=image(i8(2), np.float64(7).tobytes())), a)
    expected = np.zeros((4, 5))
    expected[:, 2] = 7
    assert_same(a, expected)


def test_large_store_on_threads() -> None:
    a, b = np.zeros((2000, 1500)), np.random.default_rng(1).random((1500, 2000)).T
    before = _core.num_threads()
    _core.set_num_threads(3)
    assert run(STORE, a, b)
    _core.set_num_threads(before)
    assert (a == b).all()
