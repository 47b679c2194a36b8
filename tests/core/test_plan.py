"""Plans as a whole: flags and np.errstate, validation, references, kernels with blocks and scratch."""

from __future__ import annotations

import concurrent.futures
import contextvars
import ctypes
import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest
from plan_tools import DTYPES, assert_same, elementwise, f8, i8, image, loop_kernel, make_plan, run

from tierup import _core

D = np.dtype("d").num
ADD, DIVIDE, EXP, LESS = (loop_kernel(u, s) for u, s in ((np.add, "dd->d"), (np.divide, "dd->d"), (np.exp, "d->d"), (np.less, "dd->?")))
LOAD = [("O_EXPR", 0, 0), ("A_OBJ", 0, 0)]


# --- flags ----------------------------------------------------------------------------------------------------------

ALARMS: list[tuple[np.ufunc, str, tuple[float, ...]]] = [
    (np.divide, "divide", (1.0, 0.0)),
    (np.divide, "invalid", (0.0, 0.0)),
    (np.multiply, "over", (1e308, 1e308)),
    (np.multiply, "under", (1e-308, 1e-308)),
    (np.exp, "over", (1e4,)),
    (np.exp, "under", (-745.0,)),
    (np.log, "divide", (0.0,)),
    (np.log, "invalid", (-1.0,)),
    (np.sqrt, "invalid", (-1.0,)),
]


@pytest.mark.parametrize(("ufunc", "kind", "args"), ALARMS, ids=lambda p: getattr(p, "__name__", str(p)))
@pytest.mark.parametrize("state", ["ignore", "warn", "raise", "print", "call", "log"])
def test_alarms(ufunc: np.ufunc, kind: str, args: tuple[float, ...], state: str) -> None:
    plan = elementwise(loop_kernel(ufunc, "d" * len(args) + "->d"), len(args))
    arrays = [np.full(10, x) for x in args]
    with np.errstate(all="ignore"):
        expected = ufunc(*arrays)
    with np.errstate(all="ignore", **{kind: state}):
        for _ in range(2):  # flags do not leak into the next run
            got = run(plan, *arrays)
            assert (got is not None) == (state == "ignore")
            if got is not None:
                assert_same(got[-1], expected)
            clean = run(elementwise(ADD, 2), arrays[0], arrays[0] * 0 + 1)
            assert clean is not None
    assert plan.alarms == (0 if state == "ignore" else 2)


def test_default_state_ignores_underflow_only() -> None:
    plan = elementwise(EXP, 1)
    assert run(plan, np.full(3, -745.0)) is not None
    assert run(plan, np.full(3, 1e4)) is None


def test_state_is_read_anew() -> None:
    """Nested and alternating states, in other contexts and threads; a handler of the user is not kept alive."""

    class Handler:
        def __call__(self, kind: str, flag: int) -> None: ...

    plan = elementwise(DIVIDE, 2)
    one, zero = np.ones(3), np.zeros(3)

    def passes() -> bool:
        return run(plan, one, zero) is not None

    assert not passes()
    for _ in range(3):
        with np.errstate(divide="ignore"):
            assert passes()
            with np.errstate(divide="raise"):
                assert not passes()
                assert not contextvars.Context().run(passes)
            assert passes()
            assert not contextvars.Context().run(passes)
            assert contextvars.copy_context().run(passes)
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                assert not pool.submit(passes).result()
        assert not passes()
    handler: Any = Handler()
    with np.errstate(divide="ignore", call=handler):
        assert passes()
    ref = weakref.ref(handler)
    del handler
    gc.collect()
    assert ref() is None


def test_stray_flags_do_not_matter() -> None:
    """Flags raised before the region are not its alarms."""
    with np.errstate(all="ignore"):
        libm = ctypes.CDLL("libm.so.6")
        libm.feraiseexcept(4)  # FE_DIVBYZERO on x86
        assert run(elementwise(ADD, 2), np.ones(3), np.ones(3)) is not None


def test_kernel_that_clears_flags_hides_no_alarm() -> None:
    """NumPy's comparisons clear the flags; an earlier division by zero must not be lost."""
    code = [*LOAD, ("A_SCALAR", 1, 0, D), ("KERNEL", 0, [0, 1, 2]), ("KERNEL", 1, [2, 0, 3]), ("FLAGS",), ("BOX_ARRAY", 1, 3)]
    assert run(make_plan(code, kernels=(DIVIDE, LESS)), np.ones(4)) is None


def test_kernel_without_flags() -> None:
    silent = loop_kernel(np.divide, "dd->d", raises_flags=False)
    got = run(elementwise(silent, 2, flags=False), np.ones(3), np.zeros(3))
    assert got is not None
    assert np.isinf(got[2]).all()
    assert run(elementwise(ADD, 2), np.ones(3), np.ones(3)) is not None


# --- validation -------------------------------------------------------------------------------------------------------

BAD: list[tuple[list[tuple[Any, ...]], str]] = [
    ([("S_INT", 0, 0)], "not set"),
    ([("O_EXPR", 16, 0)], "out of range"),
    ([("O_EXPR", -1, 0)], "out of range"),
    ([("O_EXPR", 0, -1)], "negative expression"),
    ([("O_CONST", 0, 0)], "no such constant"),
    ([("KERNEL", 2, [0, 0, 0])], "no such kernel"),
    ([*LOAD, ("KERNEL", 0, [0, 0])], "number of operands"),
    ([*LOAD, ("KERNEL", 0, [0, 1, 2]), ("FLAGS",)], "not set"),
    ([*LOAD, ("KERNEL", 0, [0, 0, 1])], "not tested"),
    ([*LOAD, ("A_FREE", 0), ("BOX_ARRAY", 1, 0)], "not set"),
    ([*LOAD, ("STORE", 0, 0), ("BOX_ARRAY", 1, 0)], "follows a store"),
    ([*LOAD, ("KERNEL", 0, [0, 0, 1]), ("STORE", 0, 1), ("FLAGS",)], "not tested"),
    ([*LOAD, ("A_TRANSPOSE", 1, 0, [0, 0])], "permutation"),
    ([*LOAD, ("A_TRANSPOSE", 1, 0, [0, 2])], "permutation"),
    ([*LOAD, ("A_RESHAPE", 1, 0, list(range(17)))], "out of range|too many axes"),
    ([*LOAD, ("A_SLICE", 1, 0, -1, 0, 0, 0, 0)], "axis"),
    ([("A_EMPTY", 0, np.dtype("O").num, [])], "type number"),
    ([("A_EMPTY", 0, np.dtype("e").num, [])], "type number"),
    ([("D_CMP", 0, 0, 0, 6)], "comparison"),
    ([("O_EXPR", 0, 0), ("BOX_DICT", 1, [0])], "no value"),
    ([*LOAD, ("REDUCE", 0, 0, 1, 0, D), ("FLAGS",)], "binary loop"),
    ([*LOAD, ("REDUCE", 0, 0, 0, 1, D), ("FLAGS",)], "identity"),
    ([*LOAD, ("REDUCE", 0, 0, 0, 0, 1), ("FLAGS",)], "result type"),
]


@pytest.mark.parametrize(("code", "message"), BAD, ids=range(len(BAD)))
def test_bad_programs(code: list[tuple[Any, ...]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_plan(code, kernels=(ADD, EXP))


def test_bad_words() -> None:
    def plan(code: bytes, **options: Any) -> None:
        defaults = {"nobjects": 1, "nslots": 1, "narrays": 1, "slot_image": b"", "exit": ()}
        _core.Plan(code, (), (), **{**defaults, **options})

    for words in ([-1], [10**6], [_core.PLAN_OPS["O_EXPR"]], [_core.PLAN_OPS["BOX_TUPLE"], 0, 5], [_core.PLAN_OPS["BOX_TUPLE"], 0, -1]):
        with pytest.raises(ValueError, match="plan:"):
            plan(b"".join(w.to_bytes(4, "little", signed=True) for w in words))
    with pytest.raises(ValueError, match="whole"):
        plan(b"abc")
    with pytest.raises(ValueError, match="slot_image"):
        plan(b"", slot_image=b"x" * 17)
    with pytest.raises(ValueError, match="counts"):
        plan(b"", nobjects=-1)
    for entry in ((4, 0, -1), (0, -1, -1), (0, 0, 1), (0, 0, 0), (3, 0, -1)):
        with pytest.raises(ValueError, match="exit entry"):
            plan(b"", exit=[entry])
    plan(b"", exit=[(0, 3, -1), (1, 0, -1)])


def test_bad_kernels() -> None:
    def kernel(address: int = 1, ins: Any = (D,), scalars: Any = (), outs: Any = (D,), **options: Any) -> None:
        _core.Kernel(address, ins, scalars, outs, **options)

    kernel()
    for options in (
        {"address": 0},
        {"ins": ()},
        {"outs": ()},
        {"ins": (99,)},
        {"ins": [D] * 65},
        {"layout": [[1]], "layout_out": [0]},
        {"layout": [[0]], "layout_out": [1]},
        {"layout": [[0]], "layout_out": []},
        {"layout": [[0]]},
        {"layout": [[0 | _core.LAYOUT_COPY, 0]], "layout_out": [0]},
        {"block": -1},
    ):
        with pytest.raises(ValueError):
            kernel(**options)  # type: ignore[arg-type]
    for options in ({"identity": "x"}, {"functions": [1]}, {"ins": 3}):
        with pytest.raises(TypeError):
            kernel(**options)  # type: ignore[arg-type]


# --- kernels of our own shape ---------------------------------------------------------------------------------------

SIGNATURE = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_ssize_t),
    ctypes.c_ssize_t,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
)
Call = tuple[int, list[int], int | None]


def recording_kernel(calls: list[Call], **options: Any) -> _core.Kernel:
    """out = in + scalar, one element at a time; records (n, strides, scratch) of each call."""

    @SIGNATURE
    def function(args: Any, strides: Any, n: int, scratch: int | None, fns: Any) -> None:
        calls.append((n, strides[:3], scratch))
        scalar = ctypes.c_double.from_address(args[1]).value
        for i in range(n):
            value = ctypes.c_double.from_address(args[0] + i * strides[0]).value
            ctypes.c_double.from_address(args[2] + i * strides[2]).value = value + scalar

    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return _core.Kernel(address, [D], [D], [D], keepalive=function, raises_flags=False, **options)


def scalar_plan(kernel: _core.Kernel) -> _core.Plan:
    return make_plan([*LOAD, ("KERNEL", 0, [0, 0, 1]), ("BOX_ARRAY", 1, 1)], kernels=(kernel,), slots=image(f8(0.5)))


def test_blocks_and_scratch() -> None:
    for scratch in (0, 24):
        calls: list[Call] = []
        plan = scalar_plan(recording_kernel(calls, block=64, scratch_per_element=scratch))
        for a in (np.arange(200.0), np.arange(600.0)[::3], np.arange(400.0).reshape(200, 2)[:, 0], np.arange(64.0)):
            calls.clear()
            assert_same(run(plan, a)[1], a + 0.5)
            assert [c[0] for c in calls] == ([64, 64, 64, 8] if a.size == 200 else [64])
            assert all(c[2] is not None and c[2] % 64 == 0 for c in calls) or not scratch


def test_large_scratch() -> None:
    calls: list[Call] = []
    plan = scalar_plan(recording_kernel(calls, scratch_per_element=1024))
    a = np.arange(3000.0)
    assert_same(run(plan, a)[1], a + 0.5)
    assert {c[0] for c in calls} <= {256, 3000 % 256}


def test_axes_are_merged_and_short_ones_are_not_inner() -> None:
    calls: list[Call] = []
    plan = scalar_plan(recording_kernel(calls))
    a = np.arange(24.0).reshape(2, 3, 4)
    for view, lengths in ((a, [24]), (a.T, [24]), (a[:, :, ::2], [12]), (a[:, 1:], [8, 8]), (a[:, :1, :1], [2]), (a[:0], [])):
        calls.clear()
        assert_same(run(plan, view)[1], view + 0.5)
        assert [c[0] for c in calls] == lengths
    tall = np.arange(400.0).reshape(100, 4)[:, :3]
    calls.clear()
    assert_same(run(plan, tall)[1], tall + 0.5)
    assert [c[0] for c in calls] == [100] * 3


def test_scalar_stride_is_zero_for_numpy_loops() -> None:
    """power takes another way for a constant exponent."""
    loop = _core.ufunc_loop(np.power, "dd->d")
    kernel = _core.Kernel(loop[0], [D], [D], [D], functions=[loop], numpy_loop=True, x87_flags=True)
    a = np.random.default_rng(1).random(1003)
    for exponent in (2.0, 0.5, -1.0, 3.7):
        code = [*LOAD, ("KERNEL", 0, [0, 0, 1]), ("FLAGS",), ("BOX_ARRAY", 1, 1)]
        assert_same(run(make_plan(code, kernels=(kernel,), slots=image(f8(exponent))), a)[1], a**exponent)


def test_loops_that_follow_strides() -> None:
    """A launch that NumPy might not walk in one stretch is left to it; others have its bits."""
    rng = np.random.default_rng(1)
    multiply = elementwise(loop_kernel(np.multiply, "FF->F", walk=_core.WALK_FLAT), 2)
    a = (rng.standard_normal((40, 34)) + 1j * rng.standard_normal((40, 34))).astype("F")
    for x, y in ((a, a), (a, a[::-1]), (a[:, 0], a[:, 1]), (a.T, a.T), (a, a[:1, :1]), (a[0], a[0, ::-1]), (a, np.array(1j, "F"))):
        got = run(multiply, x, y)
        assert (got is None) == (y.strides[:1] == (-272,))
        if got is not None:
            assert_same(got[2], x * y)
    for x, y in ((a, a[:, :1]), (a, a[0]), (a[:, :-1], a[:, :-1])):
        assert run(multiply, x, y) is None
    chain = elementwise(loop_kernel(np.power, "dd->d", walk=_core.WALK_FLAT, layout=[[1], [0, 2]], layout_out=[1]), 2)
    x = rng.random(10)
    for y in (x[:1], np.array(0.5)):
        assert run(chain, x, y) is None
    assert run(chain, x[:1].reshape(1, 1), x[:1]) is None
    assert run(chain, x, x) is not None
    cast = elementwise(loop_kernel(np.power, "dd->d", walk=_core.WALK_FLAT, layout=[[0, 1 | _core.LAYOUT_CAST]], layout_out=[0]), 2)
    assert run(cast, x, np.array(0.5)) is None
    assert run(cast, x, x) is not None
    d = rng.standard_normal(5) + 1j
    one = elementwise(loop_kernel(np.multiply, "DD->D", walk=_core.WALK_FLAT), 2)
    for x, y in ((np.array(d[0]), d[1:2]), (d[:1], d[1:2]), (d[:1].reshape(1, 1), d[1:2]), (np.array(d[0]), np.array(d[1]))):
        got = run(one, x, y)
        assert got is not None
        assert_same(got[2], np.asarray(x * y))


def test_output_register_may_be_an_input_register() -> None:
    code = [*LOAD, ("KERNEL", 0, [0, 0, 0]), ("KERNEL", 0, [0, 0, 0]), ("FLAGS",), ("BOX_ARRAY", 1, 0)]
    a = np.arange(5.0)
    assert_same(run(make_plan(code, kernels=(ADD,)), a)[1], a * 4)
    assert (a == np.arange(5.0)).all()


def test_other_types_miss() -> None:
    assert run(elementwise(ADD, 2), np.ones(3), np.ones(3, "f4")) is None
    assert run(elementwise(ADD, 2), np.ones(3), np.ones(4)) is None
    longs = elementwise(loop_kernel(np.add, "ll->l"), 2)
    got = run(longs, np.arange(3, dtype="q"), np.arange(3, dtype="l"))
    assert got is not None
    assert got[2].tolist() == [0, 2, 4]


def test_smaller_second_output() -> None:
    """An output that does not depend on every input keeps its own shape."""
    kernel = loop_kernel(np.divmod, "dd->dd", layout=[[0], [2, 1]], layout_out=[1, 0], raises_flags=False)
    got = run(elementwise(kernel, 2, 2, flags=False), np.full((3, 1), 7.0), np.full(4, 2.0))
    assert got is not None
    assert [g.shape for g in got[2:]] == [(3, 4), (3, 1)]
    assert (got[3] == 1).all()
    # an empty result whose first operation had elements is left to NumPy
    assert run(elementwise(kernel, 2, 2, flags=False), np.full((3, 1), 7.0), np.empty(0)) is None


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.char)
def test_every_type(dtype: np.dtype) -> None:
    ufunc, signature = (np.logical_or, "??->?") if dtype == "?" else (np.add, f"{dtype.char * 2}->{dtype.char}")
    a = np.arange(30).astype(dtype).reshape(5, 6)
    plan = elementwise(loop_kernel(ufunc, signature), 2)
    for x, y in ((a, a), (a.T, a.T[:, :1]), (a[::-1, ::2], a[0, :3])):
        got = run(plan, x, y)
        assert got is not None
        assert_same(got[2], ufunc(x, y))


# --- references -------------------------------------------------------------------------------------------------------


def test_no_references_leak() -> None:
    a, obj = np.arange(10.0), object()
    code = [*LOAD, ("O_EXPR", 1, 1), ("KERNEL", 0, [0, 0, 1]), ("A_SLICE", 2, 1, 0, 0, 0, 0, 0), ("KERNEL", 0, [2, 2, 3]), ("FLAGS",)]
    code += [("BOX_ARRAY", 2, 2), ("BOX_TUPLE", 3, [1, 2]), ("BOX_ARRAY", 4, 0)]
    hit = make_plan(code, kernels=(ADD,))
    miss = make_plan([*code, ("C_TRUE", 15)], kernels=(ADD,))
    alarm = make_plan([*LOAD, ("A_SCALAR", 1, 0, D), ("KERNEL", 0, [0, 1, 2]), ("FLAGS",)], kernels=(DIVIDE,))
    run(hit, a, obj)
    gc.collect()
    before = sys.getrefcount(a), sys.getrefcount(obj), sys.getallocatedblocks()
    for _ in range(1000):
        run(hit, a, obj)
        run(miss, a, obj)
        run(alarm, a)
    gc.collect()
    assert (sys.getrefcount(a), sys.getrefcount(obj)) == before[:2]
    assert sys.getallocatedblocks() < before[2] + 50


def test_result_owns_its_memory() -> None:
    got = run(elementwise(ADD, 2), np.ones(4), np.ones(4))
    count = sys.getrefcount(got[2])
    assert count == 2
    assert got[2].flags.owndata
    got[2].resize(8)


def test_free_releases_at_once() -> None:
    """A_FREE of the only reference frees the memory before the next allocation."""
    code = [("A_EMPTY", 0, D, [0]), ("A_FREE", 0), ("A_EMPTY", 1, D, [0]), ("BOX_ARRAY", 0, 1)]
    assert run(make_plan(code, slots=image(i8(100)))) is not None


def test_cycles_through_plans_are_visited() -> None:
    class Thing:
        pass

    thing: Any = Thing()
    thing.plan = make_plan([], constants=(thing,))
    ref = weakref.ref(thing)
    del thing
    gc.collect()
    assert ref() is None


def test_many_registers_do_not_fit_the_stack() -> None:
    a = np.arange(4.0)
    code = [("O_EXPR", 0, 0), *(("A_OBJ", i, 0) for i in range(300)), ("BOX_ARRAY", 1, 299)]
    assert run(make_plan(code, narrays=300), a)[1] is a


def test_counters() -> None:
    kernel = loop_kernel(np.add, "dd->d")
    plan = elementwise(kernel, 2)
    for _ in range(3):
        run(plan, np.ones(2), np.ones(2))
    assert (plan.runs, plan.alarms, kernel.calls, kernel.name) == (3, 0, 3, "add")
