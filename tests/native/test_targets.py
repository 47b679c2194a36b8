"""Other CPUs than this one: their code refers to nothing outside, and what this CPU can run as well gives the same bits."""

from __future__ import annotations

import platform
from collections.abc import Iterator

import numpy as np
import pytest

from native.graphs import Maker, run, same_bits
from native.test_operations import CASTS, generated_loops
from native.values import special
from tierup.graph.loops import loop_dtypes
from tierup.native import codegen, elf, host, llvm
from tierup.native.kernels import ITEMSIZE, KernelOp, KernelSpec, Ref, Target

MACHINES = {
    "x86-64": ("x86_64-unknown-linux-gnu", Target(16, False, True)),
    "nehalem": ("x86_64-unknown-linux-gnu", Target(16, True, True)),
    "haswell": ("x86_64-unknown-linux-gnu", Target(32, True, True)),
    "skylake-avx512": ("x86_64-unknown-linux-gnu", Target(32, True, True)),
    "generic": ("aarch64-unknown-linux-gnu", Target(16, True, False)),
}


def all_specs(target: Target) -> Iterator[KernelSpec]:
    """One kernel for every generated operation and dtype."""

    def single(op: str, ins: tuple[str, ...], out: str, loop: str = "") -> KernelSpec:
        return KernelSpec(ins, (), (KernelOp(op, ins, out, tuple(Ref("a", k) for k in range(len(ins))), loop),), (0,))

    for name, loop in generated_loops():
        if target.has_rounding or name not in ("floor", "ceil", "trunc", "rint"):
            yield single(name, *loop_dtypes(loop), loop)
    for source, result in CASTS:
        yield single("cast", (source,), result)
    for dtype in ITEMSIZE:
        yield single("where", ("b1", dtype, dtype), dtype)


@pytest.mark.parametrize("cpu", MACHINES)
def test_every_operation_links_on_its_own(cpu: str) -> None:
    """No call of libm or memset, no address: `elf.link` would refuse it."""
    from llvmlite import binding

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    triple, target = MACHINES[cpu]
    machine = binding.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2, reloc="pic", codemodel="small", jit=False)
    for spec in all_specs(target):
        module = binding.parse_assembly(codegen.generate(spec, target).text)
        module.triple = triple
        assert elf.link(bytes(machine.emit_object(module)), ("seg0",)).data


@pytest.fixture(params=["x86-64", "nehalem"])
def older_cpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if platform.machine() != "x86_64":
        pytest.skip("older x86 CPUs")
    target = MACHINES[request.param][1]
    monkeypatch.setattr(llvm, "host_cpu", lambda: request.param)
    monkeypatch.setattr(llvm, "host_features", lambda: "")
    monkeypatch.setattr(host, "fingerprint", lambda: request.param)
    monkeypatch.setattr(host, "target", lambda: target)
    llvm._machine.cache_clear()
    yield
    llvm._machine.cache_clear()


@pytest.mark.usefixtures("older_cpu")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_same_bits_on_an_older_cpu(dtype: str) -> None:
    char = np.dtype(dtype).char
    values = special(dtype)
    a, b = (np.ascontiguousarray(g.ravel()) for g in np.meshgrid(values, values))
    m = Maker()
    x, y = m.array(a), m.array(b)
    m.same_shape(x, y)
    binary, unary = f"{char}{char}->{char}", f"{char}->{char}"
    total = m.ufunc("add", binary, m.ufunc("sqrt", unary, x), m.ufunc("floor", unary, y))
    largest = m.ufunc("maximum", binary, x, y)
    less = m.ufunc("less", f"{char}{char}->?", x, y)
    m.result(total, largest, less, m.graph.add("where", (less, total, largest), total.type))
    compiled = m.compile()
    for data in ((a, b), (a[::-1], b[::-1]), (a[:3], b[:3])):
        with np.errstate(all="ignore"):
            want = [np.sqrt(data[0]) + np.floor(data[1]), np.maximum(*data), np.less(*data)]
            got = run(compiled, data)
        assert got is not None
        for have, expected in zip(got, [*want, np.where(want[2], want[0], want[1])], strict=True):
            assert same_bits(have, expected)


@pytest.mark.usefixtures("older_cpu")
def test_comparisons_are_quiet_on_an_older_cpu() -> None:
    m = Maker()
    x = m.array(np.ones(2))
    less = m.ufunc("less", "dd->?", x, m.literal(1.0))
    m.result(m.ufunc("logical_not", "?->?", less))
    assert run(m.compile(), [np.full(11, np.nan)]) is not None
