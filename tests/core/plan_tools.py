"""A tiny assembler for plans, and kernels made of NumPy's own inner loops, so that the C core is tested without a compiler."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from tierup import _core

_core.init_numpy()

OPS = _core.PLAN_OPS

DTYPES = [np.dtype(c) for c in "?bBhHiIlLfdFD"]


def loop_kernel(ufunc: np.ufunc, signature: str, **options: Any) -> _core.Kernel:
    """A kernel that is one of NumPy's loops, all operands arrays."""
    loop = _core.ufunc_loop(ufunc, signature)
    assert loop is not None, (ufunc, signature)
    ins, outs = signature.split("->")
    options = {"x87_flags": True, **options}
    nums = [np.dtype(c).num for c in ins], [], [np.dtype(c).num for c in outs]
    return _core.Kernel(loop[0], *nums, functions=[loop], numpy_loop=True, name=ufunc.__name__, **options)


def assemble(code: Sequence[tuple[Any, ...]]) -> bytes:
    """('A_OBJ', 0, 1) … to words. A list operand is its length and its items."""
    words: list[int] = []
    for op, *operands in code:
        words.append(OPS[op])
        for operand in operands:
            if isinstance(operand, (list, tuple)):
                words += [len(operand), *operand]
            else:
                words.append(int(operand))
    return struct.pack(f"<{len(words)}i", *words)


def image(*slots: bytes) -> bytes:
    return b"".join(s.ljust(16, b"\0") for s in slots)


def i8(value: int) -> bytes:
    return struct.pack("<q", value)


def f8(value: float) -> bytes:
    return struct.pack("<d", value)


def make_plan(
    code: Sequence[tuple[Any, ...]],
    *,
    constants: tuple[object, ...] = (),
    kernels: tuple[_core.Kernel, ...] = (),
    nobjects: int = 16,
    nslots: int = 16,
    narrays: int = 16,
    slots: bytes = b"",
    exit: Sequence[tuple[int, int, int]] = (),
) -> _core.Plan:
    return _core.Plan(assemble(code), constants, kernels, nobjects, nslots, narrays, slots, exit)


def elementwise(kernel: _core.Kernel, nin: int, nout: int = 1, *, flags: bool = True) -> _core.Plan:
    """Plan: arrays values[0..nin) through one kernel; results in object registers nin…"""
    code: list[tuple[Any, ...]] = []
    for i in range(nin):
        code += [("O_EXPR", i, i), ("A_OBJ", i, i)]
    code.append(("KERNEL", 0, list(range(nin + nout))))
    if flags:
        code.append(("FLAGS",))
    code += [("BOX_ARRAY", nin + i, nin + i) for i in range(nout)]
    return make_plan(code, kernels=(kernel,), nobjects=nin + nout, narrays=nin + nout)


def run(plan: _core.Plan, *values: object) -> list[Any] | None:
    """The object registers, or None for a miss."""
    status, regs = _core.run_plan(plan, list(values))
    assert status in (0, 1)
    if status == 1:
        assert all(r is None for r in regs)
        return None
    return regs


def assert_same(got: Any, expected: Any) -> None:
    """Equal in type, dtype, shape, strides, flags and bits."""
    assert type(got) is type(expected)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    assert got.strides == expected.strides, (got.shape, got.strides, expected.strides)
    assert got.tobytes() == expected.tobytes()
    if isinstance(expected, np.ndarray):
        assert str(got.flags) == str(expected.flags)
