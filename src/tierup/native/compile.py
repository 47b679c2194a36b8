"""The entry of this room: a graph becomes a plan with its kernels."""

from __future__ import annotations

import array
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tierup import _core
from tierup.graph.ir import Graph
from tierup.graph.loops import follows_strides, loop_raises
from tierup.graph.passes import run_passes
from tierup.graph.verify import GraphError, verify
from tierup.native import cache, codegen, elf, host, jit
from tierup.native.kernels import KernelSpec
from tierup.native.loops import NoLoop, cost_of, loop_pointers
from tierup.native.lower import LowerError, lower, type_number
from tierup.native.program import FusedRequest, LoopRequest, Program
from tierup.runtime import config, events


class CompileError(Exception):
    """The graph cannot become native code; the message says why."""


@dataclass(slots=True)
class KernelInfo:
    """What `tierup inspect` can say of a kernel."""

    name: str
    ops: list[str]
    kernel: _core.Kernel
    from_cache: bool = False
    spec: KernelSpec | None = None
    """None: the kernel is one of NumPy's own loops, nothing was compiled."""

    @property
    def llvm_ir(self) -> str:
        """The generated LLVM text; empty for NumPy's own loops."""
        return "" if self.spec is None else codegen.generate(self.spec, host.target()).text

    @property
    def asm(self) -> str:
        """The kernel as assembler text (made on demand)."""
        if self.spec is None:
            return ""
        from tierup.native import llvm

        return llvm.assembly(self.llvm_ir)


@dataclass(slots=True)
class Compiled:
    """A finished specialisation body."""

    plan: _core.Plan
    kernels: list[KernelInfo]
    program: Program
    seconds: dict[str, float] = field(default_factory=dict)
    """Time by phase: lower, codegen, llvm, load, plan."""


def _verified(name: str, graph: Graph) -> None:
    """In strict mode every pass's result is checked."""
    verify(graph)


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._last
        self._last = now


def compile_graph(graph: Graph, exprs: Mapping[Any, int]) -> Compiled:
    """Compile a verified graph. exprs: the guard expression's index for each `expr` of its `object` nodes. Raises CompileError."""
    _core.init_numpy()
    clock = _Clock()
    try:
        graph = run_passes(graph, _verified if config.current().strict else None)
        program = lower(graph, exprs, host.target())
        clock.lap("lower")
        kernels = _make_kernels(program, clock)
    except (GraphError, LowerError, NoLoop, elf.LinkError, OSError, ValueError) as e:
        raise CompileError(f"{graph.name}: {e}") from e
    plan = _core.Plan(
        array.array("i", program.words).tobytes(),
        tuple(program.constants),
        tuple(k.kernel for k in kernels),
        program.nobjects,
        program.nslots,
        program.narrays,
        program.slot_image,
        program.exit,
    )
    clock.lap("plan")
    return Compiled(plan, kernels, program, clock.seconds)


def _make_kernels(program: Program, clock: _Clock) -> list[KernelInfo]:
    """All kernels of a program, in order; the code of those that are compiled is mapped together."""
    fused = [(k, r.bound) for k, r in enumerate(program.kernels) if isinstance(r, FusedRequest)]
    modules = [codegen.generate(b.spec, host.target()) for _, b in fused]
    clock.lap("codegen")
    _show(modules)
    codes = [_code(m) for m in modules]
    clock.lap("llvm")
    loaded = jit.load([code for code, _ in codes], [bound.spec.name for _, bound in fused]) if codes else None
    out: dict[int, KernelInfo] = {}
    for at, ((k, bound), module, (_, cached)) in enumerate(zip(fused, modules, codes, strict=True)):
        assert loaded is not None
        out[k] = _fused_kernel(bound.spec, module, loaded, at, cached)
    for k, request in enumerate(program.kernels):
        if isinstance(request, LoopRequest):
            out[k] = _loop_kernel(request)
    clock.lap("load")
    return [out[k] for k in range(len(program.kernels))]


def _show(modules: list[codegen.Module]) -> None:
    """For `TIERUP_LOG=llvm,asm`."""
    for module in modules:
        if events.wants("llvm"):
            events.log("llvm", module.text)
        if events.wants("asm"):
            from tierup.native import llvm

            events.log("asm", llvm.assembly(module.text))


def _code(module: codegen.Module) -> tuple[elf.Code, bool]:
    """Machine code of a module, and whether it came from the cache."""

    def make() -> elf.Code:
        from tierup.native import llvm

        return elf.link(llvm.compile_object(module.text), module.symbols)

    return cache.obtain(cache.key(module.text, host.fingerprint()), make)


def _fused_kernel(spec: KernelSpec, module: codegen.Module, loaded: jit.Loaded, at: int, cached: bool) -> KernelInfo:
    """at: the piece of the mapped code that is this kernel's."""
    layout, layout_out = spec.layout()
    description = jit.Pinned(module.schedule.words())
    segments = [(address, 0) for address in loaded.entries[at]]
    loops = [loop_pointers(name, loop) for name, loop in spec.calls()]
    kernel = _core.Kernel(
        _core.DRIVE,
        [type_number(d) for d in spec.inputs],
        [type_number(d) for d in spec.scalars],
        [type_number(d) for d in spec.output_dtypes],
        scratch_per_element=module.schedule.scratch_per_element,
        block=module.schedule.block,
        cost=sum(cost_of(op.name, not op.call) for op in spec.ops),
        functions=[(description.address, 0), *segments, *loops],
        raises_flags=any(op.raises for op in spec.ops),
        x87_flags=bool(loops),
        walk=_walk(spec),
        layout=layout,
        layout_out=layout_out,
        keepalive=(loaded, description),
        name=spec.name,
    )
    return KernelInfo(spec.name, [str(op) for op in spec.ops], kernel, cached, spec)


def _walk(spec: KernelSpec) -> int:
    calls = [op for op in spec.ops if op.call]
    if any(follows_strides(op.name, op.loop) for op in calls):
        return _core.WALK_FLAT
    return _core.WALK_NUMPY if calls else _core.WALK_ANY


def _loop_kernel(request: LoopRequest) -> KernelInfo:
    address, data = loop_pointers(request.ufunc, request.loop)
    kernel = _core.Kernel(
        address,
        [type_number(d) for d in request.ins],
        [type_number(d) for d in request.scalars],
        [type_number(request.out)],
        cost=cost_of(request.ufunc, False),
        functions=[(address, data)],
        raises_flags=loop_raises(request.ufunc, request.loop),
        x87_flags=True,
        identity=request.identity,
        numpy_loop=True,
        walk=_core.WALK_FLAT if follows_strides(request.ufunc, request.loop) else _core.WALK_NUMPY,
        name=request.ufunc,
    )
    return KernelInfo(request.ufunc, [f"{request.ufunc} {request.loop}"], kernel)
