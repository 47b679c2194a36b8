"""KernelSpec → LLVM text: one function per segment, nothing but the arithmetic (the rest is csrc/drive.c).

`void segN(ptr p, ptr mask, i64 n)` is one vector loop over contiguous memory, n at least the number of lanes. The last iteration
overlaps the one before, so there is no scalar tail: outputs never alias inputs, doing an element twice changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tierup.native.kernels import ITEMSIZE, KernelSpec, Ref, Target
from tierup.native.ops import Emitter, Vec, component, emitter, is_complex, llvm_type
from tierup.native.stages import Schedule, Segment

_LONG_KERNEL: Final = 24
"""Above so many operations half as many lanes: two registers per value would spill."""


@dataclass(frozen=True, slots=True)
class Module:
    """LLVM text of a kernel's segments, and the schedule that runs them."""

    text: str
    symbols: tuple[str, ...]
    schedule: Schedule


def generate(spec: KernelSpec, target: Target) -> Module:
    """The module for `spec`. Raises ValueError for what is too big."""
    schedule = Schedule(spec, _lanes(spec, target))
    writer = _Segments(spec, schedule.lanes)
    for number, segment in enumerate(schedule.segments):
        writer.add(number, segment)
    return Module(writer.text(), tuple(f"seg{k}" for k in range(len(schedule.segments))), schedule)


def _lanes(spec: KernelSpec, target: Target) -> int:
    dtypes = [*spec.inputs, *spec.scalars, *(op.out for op in spec.ops)]
    widest = max(ITEMSIZE[d] for d in dtypes)
    nbytes = target.vector_bytes * (1 if len(spec.ops) > _LONG_KERNEL else 2)
    return max(nbytes // widest, 2)


_FUNCTION: Final = """\
define void @seg{number}(ptr %p, ptr %masks, i64 %n) #0 {{
entry:
{setup}
  %last = sub i64 %n, {lanes}
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%inext, %loop]
{body}
  %iplus = add i64 %i, {lanes}
  %before = icmp ult i64 %iplus, %last
  %inext = select i1 %before, i64 %iplus, i64 %last
  %done = icmp eq i64 %i, %last
  br i1 %done, label %exit, label %loop
exit:
  ret void
}}
"""
_ATTRIBUTES: Final = 'attributes #0 = { nounwind strictfp "no-builtins" "prefer-vector-width"="256" }\n'


class _Segments:
    """Writes the functions of one kernel."""

    def __init__(self, spec: KernelSpec, lanes: int) -> None:
        self.spec = spec
        self.lanes = lanes
        self._declares: dict[str, str] = {}
        self._functions: list[str] = []

    def text(self) -> str:
        return "\n".join([*sorted(self._declares.values()), *self._functions, _ATTRIBUTES])

    def add(self, number: int, segment: Segment) -> None:
        e = Emitter(self.lanes)
        values: dict[Ref, Vec] = {}
        at: dict[Ref, tuple[str, str]] = {}
        for k, r in enumerate(segment.reads):
            pointer = self._word(e, "ptr", "%p", k)
            if r.kind == "s":
                values[r] = self._load_scalar(e, pointer, self.spec.dtype_of(r))
            else:
                at[r] = (pointer, self._word(e, "i64", "%masks", k) if r.kind == "a" else "")
        outs = {i: self._word(e, "ptr", "%p", len(segment.reads) + k) for k, i in enumerate(segment.writes)}
        for v in values.values():
            if v.dtype == "b1":
                e.mask_of(v)
        setup, e.lines = e.lines, []
        self._body(e, segment, values, at, outs)
        self._declares.update(e.declares)
        self._functions.append(_FUNCTION.format(number=number, lanes=self.lanes, setup="\n".join(setup), body="\n".join(e.lines)))

    def _body(self, e: Emitter, segment: Segment, values: dict[Ref, Vec], at: dict[Ref, tuple[str, str]], outs: dict[int, str]) -> None:
        for i in segment.ops:
            op = self.spec.ops[i]
            for r in op.operands:
                if r not in values:
                    pointer, mask = at[r]
                    index = e.let(f"and i64 %i, {mask}") if mask else "%i"
                    values[r] = self._load(e, pointer, index, self.spec.dtype_of(r))
            v = values[Ref("t", i)] = emitter(op.name)(e, [values[r] for r in op.operands], op.out)
            if i in outs:
                self._store(e, outs[i], v)

    # -- memory --------------------------------------------------------------------------------------------------

    @staticmethod
    def _word(e: Emitter, type_: str, array: str, k: int) -> str:
        return e.let(f"load {type_}, ptr {e.let(f'getelementptr i64, ptr {array}, i64 {k}')}, align 8")

    def _splat(self, e: Emitter, scalar: str, value: str) -> str:
        one = e.let(f"insertelement {e.vec(scalar)} poison, {scalar} {value}, i32 0")
        return e.let(f"shufflevector {e.vec(scalar)} {one}, {e.vec(scalar)} poison, <{self.lanes} x i32> zeroinitializer")

    def _load_scalar(self, e: Emitter, pointer: str, dtype: str) -> Vec:
        t = llvm_type(dtype)
        align = ITEMSIZE[component(dtype)]
        v = Vec(dtype, self._splat(e, t, e.let(f"load {t}, ptr {pointer}, align {align}")))
        if is_complex(dtype):
            second = e.let(f"getelementptr {t}, ptr {pointer}, i64 1")
            v.im = self._splat(e, t, e.let(f"load {t}, ptr {second}, align {align}"))
            e.pairs_of(v)
        return v

    def _load(self, e: Emitter, pointer: str, index: str, dtype: str) -> Vec:
        t = llvm_type(dtype)
        align = ITEMSIZE[component(dtype)]
        if not is_complex(dtype):
            at = e.let(f"getelementptr {t}, ptr {pointer}, i64 {index}")
            return Vec(dtype, e.let(f"load {e.vec(t)}, ptr {at}, align {align}"))
        at = e.let(f"getelementptr {{ {t}, {t} }}, ptr {pointer}, i64 {index}")
        return Vec(dtype, pairs=e.let(f"load {e.vec(t, 2)}, ptr {at}, align {align}"))

    def _store(self, e: Emitter, pointer: str, v: Vec) -> None:
        t = llvm_type(v.dtype)
        align = ITEMSIZE[component(v.dtype)]
        if is_complex(v.dtype):
            at = e.let(f"getelementptr {{ {t}, {t} }}, ptr {pointer}, i64 %i")
            e.line(f"store {e.vec(t, 2)} {e.pairs_of(v)}, ptr {at}, align {align}")
            return
        name = e.bytes_of(v)
        at = e.let(f"getelementptr {t}, ptr {pointer}, i64 %i")
        e.line(f"store {e.vec(t)} {name}, ptr {at}, align {align}")
