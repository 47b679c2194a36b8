"""KernelSpec → LLVM text of one function `k(args, strides, n, scratch, fns)`.

The operations are split into stages: a *segment* of generated code, then calls of NumPy's loops that need its results, then the next
segment. A segment is one vector loop over contiguous memory; the last iteration overlaps the one before, so there is no scalar tail
(outputs never alias inputs, doing an element twice changes nothing). Whatever is strided or shorter than a vector is first packed into
contiguous memory, padded by repeating its last element, so that a padding lane raises no flag that the real ones do not.

Without calls a kernel takes any n and packs pieces of `_CHUNK` elements on the stack; with calls it takes at most `block` elements and
keeps everything between the stages in the launcher's scratch.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from typing import Final

from tierup.native.kernels import ITEMSIZE, KernelOp, KernelSpec, Ref
from tierup.native.ops import Emitter, Vec, component, generated, is_complex, llvm_type

FLAG_MASK: Final = 0x1D if platform.machine() in ("x86_64", "AMD64", "i686") else 0x0F
"""The C library's FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW. Behind the loops, a kernel's function table holds
fetestexcept and feraiseexcept."""

_CHUNK: Final = 128
_CACHE_BYTES: Final = 32768
"""What a block's intermediates may fill: a first-level cache."""
_LONG_KERNEL: Final = 24
"""Above so many operations half as many lanes: two registers per value would spill."""


@dataclass(frozen=True, slots=True)
class Target:
    """What the generator must know of the CPU."""

    vector_bytes: int
    has_rounding: bool

    @classmethod
    def of_features(cls, features: str) -> Target:
        """features: LLVM's comma-separated list."""
        on = set(features.split(","))
        wide = "+avx2" in on
        return cls(32 if wide else 16, "+sse4.1" in on or "+neon" in on)


@dataclass(frozen=True, slots=True)
class Module:
    """LLVM text and what the launcher must know of the function in it."""

    text: str
    scratch_per_element: int
    block: int
    lanes: int


@dataclass(slots=True)
class _Stage:
    segment: list[int] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)


def stages_of(spec: KernelSpec) -> list[_Stage]:
    """Group operations: an operation lies behind every call that it needs, a call in the stage of its latest operand."""
    depth: list[int] = []
    stages: list[_Stage] = []
    for i, op in enumerate(spec.ops):
        d = 0
        for r in op.operands:
            if r.kind == "t":
                behind = spec.ops[r.index].call and not op.call
                d = max(d, depth[r.index] + behind)
        depth.append(d)
        while len(stages) <= d:
            stages.append(_Stage())
        (stages[d].calls if op.call else stages[d].segment).append(i)
    return stages


def generate(spec: KernelSpec, target: Target) -> Module:
    """The module for `spec`. Raises ValueError if an operation that is not a call has no emitter."""
    return _Generator(spec, target).module()


_SEGMENT: Final = """\
define internal void @seg{number}(ptr %p, i64 %n) #0 {{
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
_HELPERS: Final = """\
define internal ptr @prep_{size}(ptr %buf, ptr %src, i64 %stride, i64 %n, i64 %again) #1 {{
entry:
  %compact = icmp eq i64 %stride, {size}
  %long = icmp uge i64 %n, {lanes}
  %direct = and i1 %compact, %long
  br i1 %direct, label %asis, label %test
asis:
  ret ptr %src
test:
  %zero = icmp eq i64 %stride, 0
  %more = icmp ne i64 %again, 0
  %filled = and i1 %zero, %more
  br i1 %filled, label %done, label %loop
loop:
  %i = phi i64 [0, %test], [%i1, %loop]
  %off = mul i64 %i, %stride
  %p = getelementptr i8, ptr %src, i64 %off
  %v = load {type}, ptr %p, align {align}
  %q = getelementptr {type}, ptr %buf, i64 %i
  store {type} %v, ptr %q, align {align}
  %i1 = add i64 %i, 1
  %end = icmp eq i64 %i1, %n
  br i1 %end, label %padtest, label %loop
padtest:
  br i1 %long, label %done, label %pad
pad:
  %j = phi i64 [%n, %padtest], [%j1, %pad]
  %r = getelementptr {type}, ptr %buf, i64 %j
  store {type} %v, ptr %r, align {align}
  %j1 = add i64 %j, 1
  %last = icmp uge i64 %j1, {lanes}
  br i1 %last, label %done, label %pad
done:
  ret ptr %buf
}}
define internal void @fin_{size}(ptr %dst, ptr %src, i64 %stride, i64 %n) #1 {{
entry:
  %same = icmp eq ptr %dst, %src
  br i1 %same, label %done, label %loop
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]
  %p = getelementptr {type}, ptr %src, i64 %i
  %v = load {type}, ptr %p, align {align}
  %off = mul i64 %i, %stride
  %q = getelementptr i8, ptr %dst, i64 %off
  store {type} %v, ptr %q, align {align}
  %i1 = add i64 %i, 1
  %end = icmp eq i64 %i1, %n
  br i1 %end, label %done, label %loop
done:
  ret void
}}
"""
_ATTRIBUTES: Final = """\
attributes #0 = { nounwind strictfp "no-builtins" "prefer-vector-width"="256" }
attributes #1 = { nounwind strictfp noinline "no-builtins" }
"""
_MOVE_TYPE: Final = {1: ("i8", 1), 2: ("i16", 2), 4: ("i32", 4), 8: ("i64", 4), 16: ("<2 x i64>", 4)}
"""How an element is moved: type and alignment (complex64 is aligned to 4, complex128 to 8)."""


class _Generator:
    def __init__(self, spec: KernelSpec, target: Target) -> None:
        self.spec = spec
        self.target = target
        self.nin, self.nscalars, self.nout = len(spec.inputs), len(spec.scalars), len(spec.outputs)
        self.first_out = self.nin + self.nscalars
        self.stages = stages_of(spec)
        self.lanes = self._choose_lanes()
        self.declares: dict[str, str] = {}
        self.sizes: set[int] = set()
        self.functions: list[str] = []
        # Where a value that crosses a stage lives: ('out', k) or ('slot', s).
        self.home: dict[int, tuple[str, int]] = {}
        self.slots: list[int] = []

    def _choose_lanes(self) -> int:
        dtypes = [*self.spec.inputs, *self.spec.scalars, *(op.out for op in self.spec.ops)]
        widest = max(ITEMSIZE[d] for d in dtypes)
        nbytes = self.target.vector_bytes * (1 if len(self.spec.ops) > _LONG_KERNEL else 2)
        return max(nbytes // widest, 2)

    # -- segments -------------------------------------------------------------------------------------------

    def _crossing(self) -> None:
        """Give every value that leaves its segment, and every call's result, a home."""
        for k, i in enumerate(self.spec.outputs):
            self.home.setdefault(i, ("out", k))
        stage_of = {i: s for s, st in enumerate(self.stages) for i in (*st.segment, *st.calls)}
        last: dict[int, int] = {}
        for j, op in enumerate(self.spec.ops):
            for r in op.operands:
                if r.kind == "t":
                    crosses = self.spec.ops[r.index].call or op.call or stage_of[j] != stage_of[r.index]
                    if crosses and r.index not in self.home:
                        last[r.index] = max(last.get(r.index, 0), stage_of[j])
        free: dict[int, list[int]] = {}
        released = -1
        for i, op in enumerate(self.spec.ops):
            if op.call and i not in self.home:
                last.setdefault(i, stage_of[i])  # a dead result: the call still runs, for its flags
        for i in sorted(last, key=lambda i: (stage_of[i], i)):
            while released + 1 < stage_of[i]:
                released += 1
                for j, stage in last.items():
                    if stage == released and j in self.home:
                        free.setdefault(ITEMSIZE[self.spec.ops[j].out], []).append(self.home[j][1])
            size = ITEMSIZE[self.spec.ops[i].out]
            pool = free.get(size)
            self.home[i] = ("slot", pool.pop() if pool else self._new_slot(size))

    def _new_slot(self, size: int) -> int:
        self.slots.append(size)
        return len(self.slots) - 1

    def _segment(self, number: int, ops: list[int]) -> tuple[list[Ref], list[int]]:
        """Write function @seg<number>(ptr %p, i64 %n); returns what it reads from and writes to memory, in the order of %p."""
        inside = set(ops)
        reads: dict[Ref, None] = {}
        for i in ops:
            for r in self.spec.ops[i].operands:
                if r.kind != "t" or r.index not in inside:
                    reads.setdefault(r)
        writes = [i for i in ops if i in self.home]
        e = Emitter(self.lanes)
        setup, body = self._segment_text(e, list(reads), ops, writes)
        self.declares.update(e.declares)
        self.functions.append(_SEGMENT.format(number=number, lanes=self.lanes, setup="\n".join(setup), body="\n".join(body)))
        return list(reads), writes

    def _segment_text(self, e: Emitter, reads: list[Ref], ops: list[int], writes: list[int]) -> tuple[list[str], list[str]]:
        values: dict[Ref, Vec] = {}
        pointers: dict[Ref, str] = {}
        for k, r in enumerate(reads):
            pointers[r] = self._pointer(e, k)
            if r.kind == "s":
                values[r] = self._load_scalar(e, pointers[r], self.spec.dtype_of(r))
        outs = {i: self._pointer(e, len(reads) + k) for k, i in enumerate(writes)}
        for v in values.values():
            if v.dtype == "b1":
                e.mask_of(v)
        setup, e.lines = e.lines, []
        for i in ops:
            op = self.spec.ops[i]
            for r in op.operands:
                if r not in values:
                    values[r] = self._load(e, pointers[r], self.spec.dtype_of(r))
            emit = generated(op.name, op.ins, op.out, self.target.has_rounding)
            if emit is None:
                raise ValueError(f"{op}: no generated code for this operation")
            v = emit(e, [values[r] for r in op.operands], op.out)
            values[Ref("t", i)] = v
            if i in outs:
                self._store(e, outs[i], v)
        return setup, e.lines

    def _pointer(self, e: Emitter, k: int) -> str:
        return e.let(f"load ptr, ptr {e.let(f'getelementptr ptr, ptr %p, i64 {k}')}, align 8")

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
        return v

    def _load(self, e: Emitter, pointer: str, dtype: str) -> Vec:
        t = llvm_type(dtype)
        align = ITEMSIZE[component(dtype)]
        if not is_complex(dtype):
            at = e.let(f"getelementptr {t}, ptr {pointer}, i64 %i")
            return Vec(dtype, e.let(f"load {e.vec(t)}, ptr {at}, align {align}"))
        pair = e.let(f"getelementptr {{ {t}, {t} }}, ptr {pointer}, i64 %i")
        both = f"<{2 * self.lanes} x {t}>"
        v = e.let(f"load {both}, ptr {pair}, align {align}")
        every_second = [", ".join(f"i32 {2 * k + part}" for k in range(self.lanes)) for part in (0, 1)]
        re, im = (e.let(f"shufflevector {both} {v}, {both} poison, <{self.lanes} x i32> <{order}>") for order in every_second)
        return Vec(dtype, re, im)

    def _store(self, e: Emitter, pointer: str, v: Vec) -> None:
        t = llvm_type(v.dtype)
        align = ITEMSIZE[component(v.dtype)]
        name = e.bytes_of(v)
        if not is_complex(v.dtype):
            at = e.let(f"getelementptr {t}, ptr {pointer}, i64 %i")
            e.line(f"store {e.vec(t)} {name}, ptr {at}, align {align}")
            return
        order = ", ".join(f"i32 {k}, i32 {self.lanes + k}" for k in range(self.lanes))
        both = e.let(f"shufflevector {e.vec(t)} {name}, {e.vec(t)} {v.im}, <{2 * self.lanes} x i32> <{order}>")
        at = e.let(f"getelementptr {{ {t}, {t} }}, ptr {pointer}, i64 %i")
        e.line(f"store <{2 * self.lanes} x {t}> {both}, ptr {at}, align {align}")

    # -- the function around them --------------------------------------------------------------------------------

    def module(self) -> Module:
        self._crossing()
        has_calls = any(op.call for op in self.spec.ops)
        parts = {s: self._segment(s, st.segment) for s, st in enumerate(self.stages) if st.segment}
        w = _Writer()
        if has_calls:
            scratch, block = self._blocked(w, parts)
        else:
            scratch = block = 0
            self._chunked(w, *parts[0])
        helpers = "".join(
            _HELPERS.format(size=s, type=_MOVE_TYPE[s][0], align=_MOVE_TYPE[s][1], lanes=self.lanes) for s in sorted(self.sizes)
        )
        outer = ["define void @k(ptr %args, ptr %strides, i64 %n, ptr %scratch, ptr %fns) #1 {", "entry:", *w.entry, *w.lines, "}"]
        text = "\n".join([*sorted(self.declares.values()), helpers, *self.functions, *outer, _ATTRIBUTES])
        return Module(text, scratch, block, self.lanes)

    def _prep(self, w: _Writer, dtype: str, buf: str, src: str, stride: str, n: str, again: str = "0") -> str:
        size = ITEMSIZE[dtype]
        self.sizes.add(size)
        return w.let(f"call ptr @prep_{size}(ptr {buf}, ptr {src}, i64 {stride}, i64 {n}, i64 {again})")

    def _fin(self, w: _Writer, dtype: str, dst: str, src: str, stride: str, n: str) -> None:
        size = ITEMSIZE[dtype]
        self.sizes.add(size)
        w.line(f"call void @fin_{size}(ptr {dst}, ptr {src}, i64 {stride}, i64 {n})")

    def _direct_output(self, w: _Writer, dtype: str, dst: str, stride: str, n: str, buf: str) -> str:
        """The output itself if it is contiguous and long enough for a vector, else the buffer."""
        compact = w.let(f"icmp eq i64 {stride}, {ITEMSIZE[dtype]}")
        long = w.let(f"icmp uge i64 {n}, {self.lanes}")
        return w.let(f"select i1 {w.let(f'and i1 {compact}, {long}')}, ptr {dst}, ptr {buf}")

    def _at_least_lanes(self, w: _Writer, n: str) -> str:
        return w.let(f"select i1 {w.let(f'icmp ult i64 {n}, {self.lanes}')}, i64 {self.lanes}, i64 {n}")

    def _chunked(self, w: _Writer, reads: list[Ref], writes: list[int]) -> None:
        """A kernel without calls: straight on the arguments if all are contiguous, else piece by piece through the stack."""
        pointers = w.alloca(f"ptr, i64 {len(reads) + len(writes)}, align 8")
        arrays: list[tuple[int, str, int, bool]] = [
            (k, self.spec.inputs[r.index], r.index, False) for k, r in enumerate(reads) if r.kind == "a"
        ]
        out_arg = {i: self.first_out + k for i, (_, k) in self.home.items()}
        arrays += [(len(reads) + k, self.spec.ops[i].out, out_arg[i], True) for k, i in enumerate(writes)]
        for k, r in enumerate(reads):
            if r.kind == "s":
                w.put(pointers, k, w.arg("%args", self.nin + r.index))
        args = {arg: w.arg("%args", arg) for _, _, arg, _ in arrays}
        strides = {arg: w.stride(arg) for _, _, arg, _ in arrays}
        bufs = {arg: w.alloca(f"[{_CHUNK * ITEMSIZE[d]} x i8], align 64") for _, d, arg, _ in arrays}
        fast = w.let(f"icmp uge i64 %n, {self.lanes}")
        for _, d, arg, _ in arrays:
            fast = w.let(f"and i1 {fast}, {w.let(f'icmp eq i64 {strides[arg]}, {ITEMSIZE[d]}')}")
        w.line(f"br i1 {fast}, label %direct, label %chunks")
        w.label("direct")
        for k, _, arg, _ in arrays:
            w.put(pointers, k, args[arg])
        w.line(f"call void @seg0(ptr {pointers}, i64 %n)")
        w.line("ret void")
        w.label("chunks")
        w.line(f"br i1 {w.let('icmp eq i64 %n, 0')}, label %finished, label %chunk")
        w.label("chunk")
        w.line("%off = phi i64 [0, %chunks], [%offnext, %chunk]")
        left = w.let("sub i64 %n, %off")
        m = w.let(f"select i1 {w.let(f'icmp ult i64 {left}, {_CHUNK}')}, i64 {left}, i64 {_CHUNK}")
        finish = []
        for k, d, arg, is_out in arrays:
            here = w.let(f"getelementptr i8, ptr {args[arg]}, i64 {w.let(f'mul i64 %off, {strides[arg]}')}")
            if is_out:
                p = self._direct_output(w, d, here, strides[arg], m, bufs[arg])
                finish.append((d, here, p, strides[arg]))
            else:
                p = self._prep(w, d, bufs[arg], here, strides[arg], m, "%off")
            w.put(pointers, k, p)
        w.line(f"call void @seg0(ptr {pointers}, i64 {self._at_least_lanes(w, m)})")
        for d, here, p, stride in finish:
            self._fin(w, d, here, p, stride, m)
        w.line("%offnext = add i64 %off, " + m)
        w.line(f"br i1 {w.let('icmp ult i64 %offnext, %n')}, label %chunk, label %finished")
        w.label("finished")
        w.line("ret void")

    def _blocked(self, w: _Writer, parts: dict[int, tuple[list[Ref], list[int]]]) -> tuple[int, int]:
        """A kernel with calls: stage after stage on one block. Returns scratch bytes per element and the block's length."""
        packed = sorted({r.index for reads, _ in parts.values() for r in reads if r.kind == "a"})
        sizes = [*self.slots, *(ITEMSIZE[d] for d in self.spec.output_dtypes), *(ITEMSIZE[self.spec.inputs[a]] for a in packed)]
        live = sum(self.slots) + sum(ITEMSIZE[d] for d in (*self.spec.inputs, *self.spec.output_dtypes))
        block = _block_length(live)
        nslots = len(self.slots)
        w.line(f"br i1 {w.let('icmp eq i64 %n, 0')}, label %finished, label %work")
        w.label("work")
        # The launcher gives scratch for n elements rounded up to 64, which is at least a vector.
        capacity = w.let(f"and i64 {w.let('add i64 %n, 63')}, -64")
        starts = [sum(sizes[:k]) for k in range(len(sizes))]
        buffer = [w.let(f"getelementptr i8, ptr %scratch, i64 {w.let(f'mul i64 {capacity}, {s}')}") for s in starts]
        args = [w.arg("%args", k) for k in range(self.first_out + self.nout)]
        strides = {k: w.stride(k) for k in (*range(self.nin), *range(self.first_out, self.first_out + self.nout))}
        out_at = [
            self._direct_output(w, d, args[self.first_out + k], strides[self.first_out + k], "%n", buffer[nslots + k])
            for k, d in enumerate(self.spec.output_dtypes)
        ]
        contiguous = {
            a: self._prep(w, self.spec.inputs[a], buffer[nslots + self.nout + k], args[a], strides[a], "%n") for k, a in enumerate(packed)
        }
        state = _Block(args, strides, out_at, buffer, contiguous, self._at_least_lanes(w, "%n"))
        for s, stage in enumerate(self.stages):
            if s in parts:
                self._call_segment(w, s, parts[s], state)
            for i in stage.calls:
                self._call_loop(w, self.spec.ops[i], i, state)
        for k, d in enumerate(self.spec.output_dtypes):
            self._fin(w, d, args[self.first_out + k], out_at[k], strides[self.first_out + k], "%n")
        w.line("br label %finished")
        w.label("finished")
        w.line("ret void")
        return sum(sizes), block

    def _place(self, ref: Ref, state: _Block) -> str:
        """Contiguous memory of an operand, as a segment reads it."""
        if ref.kind == "a":
            return state.contiguous[ref.index]
        if ref.kind == "s":
            return state.args[self.nin + ref.index]
        kind, k = self.home[ref.index]
        return state.out_at[k] if kind == "out" else state.buffer[k]

    def _call_segment(self, w: _Writer, number: int, part: tuple[list[Ref], list[int]], state: _Block) -> None:
        reads, writes = part
        pointers = w.alloca(f"ptr, i64 {len(reads) + len(writes)}, align 8")
        for k, r in enumerate(reads):
            place = self._place(r, state)
            if r.kind == "t" and self.spec.ops[r.index].call:
                self._pad(w, self.spec.ops[r.index].out, place)
            w.put(pointers, k, place)
        for k, i in enumerate(writes):
            w.put(pointers, len(reads) + k, self._place(Ref("t", i), state))
        w.line(f"call void @seg{number}(ptr {pointers}, i64 {state.padded})")

    def _pad(self, w: _Writer, dtype: str, place: str) -> None:
        """A loop wrote n elements; fill up to a whole vector. (With n ≥ lanes @prep returns at once; source and buffer are the same.)"""
        self._prep(w, dtype, place, place, str(ITEMSIZE[dtype]), "%n")

    def _call_loop(self, w: _Writer, op: KernelOp, i: int, state: _Block) -> None:
        pair = self.spec.calls().index((op.name, op.loop))
        operands = [self._loop_operand(r, state) for r in op.operands]
        operands.append((self._place(Ref("t", i), state), str(ITEMSIZE[op.out])))
        argv = w.alloca(f"ptr, i64 {len(operands)}, align 8")
        steps = w.alloca(f"i64, i64 {len(operands)}, align 8")
        dims = w.alloca("i64, align 8")
        for k, (p, step) in enumerate(operands):
            w.put(argv, k, p)
            w.line(f"store i64 {step}, ptr {w.let(f'getelementptr i64, ptr {steps}, i64 {k}')}, align 8")
        w.line(f"store i64 %n, ptr {dims}, align 8")
        fn = w.arg("%fns", 2 * pair)
        data = w.arg("%fns", 2 * pair + 1)
        call = f"call void {fn}(ptr {argv}, ptr {dims}, ptr {steps}, ptr {data})"
        if any(other.raises for other in self.spec.ops[:i]):
            self._keeping_flags(w, call)
        else:
            w.line(call)

    def _keeping_flags(self, w: _Writer, call: str) -> None:
        """Some of NumPy's loops end with all flags cleared: raise those again that were up before."""
        pair = len(self.spec.calls())
        test, again = w.arg("%fns", 2 * pair), w.arg("%fns", 2 * pair + 1)
        before = w.let(f"call i32 {test}(i32 {FLAG_MASK})")
        w.line(call)
        w.line(f"call i32 {again}(i32 {before})")

    def _loop_operand(self, r: Ref, state: _Block) -> tuple[str, str]:
        if r.kind == "a":
            return state.args[r.index], state.strides[r.index]
        if r.kind == "s":
            return state.args[self.nin + r.index], "0"
        return self._place(r, state), str(ITEMSIZE[self.spec.ops[r.index].out])


@dataclass(slots=True)
class _Block:
    """Names of what a block's code works on."""

    args: list[str]
    strides: dict[int, str]
    out_at: list[str]
    buffer: list[str]
    contiguous: dict[int, str]
    padded: str


class _Writer:
    """Numbered lines of the outer function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.entry: list[str] = []
        self._n = 0

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def alloca(self, text: str) -> str:
        """Stack memory, taken in the entry block so that the frame has a fixed size."""
        self._n += 1
        self.entry.append(f"  %k{self._n} = alloca {text}")
        return f"%k{self._n}"

    def label(self, name: str) -> None:
        self.lines.append(name + ":")

    def let(self, text: str) -> str:
        self._n += 1
        self.line(f"%k{self._n} = {text}")
        return f"%k{self._n}"

    def arg(self, array: str, k: int) -> str:
        return self.let(f"load ptr, ptr {self.let(f'getelementptr ptr, ptr {array}, i64 {k}')}, align 8")

    def stride(self, k: int) -> str:
        return self.let(f"load i64, ptr {self.let(f'getelementptr i64, ptr %strides, i64 {k}')}, align 8")

    def put(self, array: str, k: int, pointer: str) -> None:
        self.line(f"store ptr {pointer}, ptr {self.let(f'getelementptr ptr, ptr {array}, i64 {k}')}, align 8")


def _block_length(live_bytes: int) -> int:
    """The largest power of two whose live bytes fit the first-level cache, within 256…4096 elements."""
    block = 4096
    while block > 256 and block * live_bytes > _CACHE_BYTES:
        block //= 2
    return block
