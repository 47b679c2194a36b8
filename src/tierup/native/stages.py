"""How a kernel runs: generated segments and calls of NumPy's loops in turn, and where values lie in between.

The result is a description for `csrc/drive.c` in int32 words. A kernel without calls is one segment over exactly the kernel's operands.
With calls, a value that crosses from one step to the next lies in an output or in a slot of the launcher's scratch.
"""

from __future__ import annotations

import array
from dataclasses import dataclass, field
from typing import Final

from tierup.native.kernels import ITEMSIZE, KernelSpec, Ref

MAX_SLOTS: Final = 128
MAX_REFS: Final = 256
"""Limits of csrc/drive.c."""
_CACHE_BYTES: Final = 32768
"""What a block's operands and intermediates may fill: a first-level cache."""
_SEGMENT, _CALL, _CALL_KEEPING_FLAGS = 0, 1, 2
_KIND: Final = {"a": 0, "s": 1, "out": 2, "slot": 3}


@dataclass(slots=True)
class Stage:
    """Operations of one segment, then the calls that need them (or earlier ones)."""

    segment: list[int] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Segment:
    """A generated function: its operations, what it reads, and the operations whose results it writes, in the order of its pointers."""

    ops: list[int]
    reads: list[Ref]
    writes: list[int]


def stages_of(spec: KernelSpec) -> list[Stage]:
    """Group operations: an operation lies behind every call that it needs, a call in the stage of its latest operand."""
    depth: list[int] = []
    stages: list[Stage] = []
    for i, op in enumerate(spec.ops):
        d = 0
        for r in op.operands:
            if r.kind == "t":
                behind = spec.ops[r.index].call and not op.call
                d = max(d, depth[r.index] + behind)
        depth.append(d)
        while len(stages) <= d:
            stages.append(Stage())
        (stages[d].calls if op.call else stages[d].segment).append(i)
    return stages


class Schedule:
    """Stages, segments and places of one kernel."""

    def __init__(self, spec: KernelSpec, lanes: int) -> None:
        self.spec = spec
        self.lanes = lanes
        self.chunked = not any(op.call for op in spec.ops)
        self._stages = stages_of(spec)
        self._home: dict[int, tuple[str, int]] = {}
        self._slots: list[int] = []
        self._find_homes()
        if len(self._slots) > MAX_SLOTS:
            raise ValueError("too many intermediate results in one kernel")
        self.segments = [self._segment(stage.segment) for stage in self._stages if stage.segment]

    # -- places --------------------------------------------------------------------------------------------------

    def _find_homes(self) -> None:
        """Give every value that leaves its segment, and every call's result, an output or a slot; slots are used again."""
        for k, i in enumerate(self.spec.outputs):
            self._home.setdefault(i, ("out", k))
        stage_of = {i: s for s, stage in enumerate(self._stages) for i in (*stage.segment, *stage.calls)}
        last = self._last_stages(stage_of)
        free: dict[int, list[int]] = {}
        leaving: dict[int, list[int]] = {}
        done = 0
        for i in sorted(last, key=lambda i: (stage_of[i], i)):
            while done < stage_of[i]:
                for j in leaving.pop(done, ()):
                    free.setdefault(ITEMSIZE[self.spec.ops[j].out], []).append(self._home[j][1])
                done += 1
            size = ITEMSIZE[self.spec.ops[i].out]
            pool = free.get(size)
            self._home[i] = ("slot", pool.pop() if pool else self._new_slot(size))
            leaving.setdefault(last[i], []).append(i)

    def _last_stages(self, stage_of: dict[int, int]) -> dict[int, int]:
        """For each value that needs a slot the last stage that reads it."""
        last: dict[int, int] = {}
        for j, op in enumerate(self.spec.ops):
            if op.call and j not in self._home:
                last.setdefault(j, stage_of[j])  # even a dead result: the call still runs, for its flags
            for r in op.operands:
                if r.kind != "t" or r.index in self._home:
                    continue
                if self.spec.ops[r.index].call or op.call or stage_of[j] != stage_of[r.index]:
                    last[r.index] = max(last.get(r.index, 0), stage_of[j])
        return last

    def _new_slot(self, size: int) -> int:
        self._slots.append(size)
        return len(self._slots) - 1

    def _segment(self, ops: list[int]) -> Segment:
        if self.chunked:
            spec = self.spec
            reads = [Ref("a", k) for k in range(len(spec.inputs))] + [Ref("s", k) for k in range(len(spec.scalars))]
            return Segment(ops, reads, list(spec.outputs))
        inside = set(ops)
        outside = (r for i in ops for r in self.spec.ops[i].operands if r.kind != "t" or r.index not in inside)
        return Segment(ops, list(dict.fromkeys(outside)), [i for i in ops if i in self._home])

    # -- the description -------------------------------------------------------------------------------------------

    def words(self) -> bytes:
        """The description that csrc/drive.c reads."""
        spec = self.spec
        sizes = [*(ITEMSIZE[d] for d in spec.inputs), *(ITEMSIZE[d] for d in spec.output_dtypes)]
        packed = self._packed()
        steps = [] if self.chunked else self._steps()
        head = [
            len(spec.inputs),
            len(spec.scalars),
            len(spec.outputs),
            len(self._slots),
            self.lanes,
            len(steps),
            int(self.chunked),
            sum(sizes),
        ]
        body = [*sizes, *self._slots, *(int(k in packed) for k in range(len(spec.inputs)))]
        return array.array("i", [*head, *body, *(w for step in steps for w in step)]).tobytes()

    def _packed(self) -> set[int]:
        """The array inputs that segments read."""
        return {r.index for s in self.segments for r in s.reads if r.kind == "a"}

    @property
    def scratch_per_element(self) -> int:
        """Bytes of scratch that the launcher must give per element."""
        if self.chunked:
            return 0
        sizes = [ITEMSIZE[self.spec.inputs[k]] for k in self._packed()] + [ITEMSIZE[d] for d in self.spec.output_dtypes]
        return sum(sizes) + sum(self._slots)

    @property
    def block(self) -> int:
        """Most elements of one call: what keeps a block's memory in the first-level cache, within 256…4096; 0 without calls."""
        if self.chunked:
            return 0
        live = sum(self._slots) + sum(ITEMSIZE[d] for d in (*self.spec.inputs, *self.spec.output_dtypes))
        block = 4096
        while block > 256 and block * live > _CACHE_BYTES:
            block //= 2
        return block

    def _steps(self) -> list[list[int]]:
        """Function numbers: 0 is the description, then segments, then loops (see `compile`)."""
        calls = self.spec.calls()
        # Some of NumPy's loops end with all flags cleared: those of this block's other operations, and of the blocks before.
        kind = _CALL_KEEPING_FLAGS if any(op.raises for op in self.spec.ops) else _CALL
        steps: list[list[int]] = []
        number = 0
        for stage in self._stages:
            if stage.segment:
                s = self.segments[number]
                number += 1
                refs = [self._ref(r) for r in s.reads] + [self._ref(Ref("t", i)) for i in s.writes]
                if len(refs) > MAX_REFS:
                    raise ValueError("too many operands in one segment")
                steps.append([_SEGMENT, number, len(s.reads), len(refs), *refs])
            for i in stage.calls:
                op = self.spec.ops[i]
                refs = [self._ref(r) for r in op.operands] + [self._ref(Ref("t", i))]
                function = 1 + len(self.segments) + calls.index((op.name, op.loop))
                steps.append([kind, function, len(op.operands), len(refs), *refs])
        return steps

    def _ref(self, ref: Ref) -> int:
        kind, index = self._home[ref.index] if ref.kind == "t" else (ref.kind, ref.index)
        return _KIND[kind] << 16 | index
