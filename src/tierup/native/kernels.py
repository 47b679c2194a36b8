"""A kernel as data: elementwise operations over one iteration space, before any code exists.

The text form (`KernelSpec.text`) is canonical: it is the key of the object cache and what `tierup inspect` shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from tierup.graph.loops import cast_raises, loop_raises

ITEMSIZE: Final[dict[str, int]] = {
    "b1": 1, "i1": 1, "u1": 1, "i2": 2, "u2": 2, "i4": 4, "u4": 4, "i8": 8, "u8": 8, "f4": 4, "f8": 8, "c8": 8, "c16": 16,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """What code generation must know of the CPU and of this NumPy."""

    vector_bytes: int
    has_rounding: bool
    """Rounding to integers is one instruction (else LLVM would call libm)."""
    second_zero: bool
    """NumPy's maximum, minimum and clip give the second of two zeros of different sign, and a NaN's bits as x86 does."""


LAYOUT_CAST: Final = 1 << 16
LAYOUT_ITER: Final = 1 << 17
LAYOUT_COPY: Final = 1 << 18
_LAYOUT_FLAG: Final = {"where": LAYOUT_ITER, "cast": LAYOUT_COPY}
"""Flags on a layout operand (csrc/plan.h): cast for the loop; NumPy iterates; laid out like a copy."""


RefKind = Literal["a", "s", "t"]


@dataclass(frozen=True, slots=True)
class Ref:
    """An operand: array input (a), scalar input (s) or the result of an earlier operation (t) of the kernel."""

    kind: RefKind
    index: int

    def __str__(self) -> str:
        return f"{self.kind}{self.index}"


@dataclass(frozen=True, slots=True)
class KernelOp:
    """One elementwise operation. name is a ufunc's, or `where`, or `cast`. call: made by NumPy's inner loop, not by generated code."""

    name: str
    ins: tuple[str, ...]
    out: str
    operands: tuple[Ref, ...]
    loop: str = ""
    """NumPy's signature of the loop; empty for `where` and `cast`."""
    call: bool = False
    implicit: bool = False
    """A cast that NumPy makes inside a ufunc call: it has no memory layout of its own."""

    @property
    def raises(self) -> bool:
        """Whether it may raise a floating-point flag."""
        if self.loop:
            return loop_raises(self.name, self.loop)
        return self.name == "cast" and cast_raises(self.ins[0], self.out)

    def __str__(self) -> str:
        how = " call" if self.call else ""
        return f"{self.name}{how} {','.join(self.ins)}->{self.out} {' '.join(map(str, self.operands))}"


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """inputs and scalars are dtypes; outputs are indices of ops."""

    inputs: tuple[str, ...]
    scalars: tuple[str, ...]
    ops: tuple[KernelOp, ...]
    outputs: tuple[int, ...]

    @property
    def text(self) -> str:
        lines = [f"in {' '.join(self.inputs)} scalars {' '.join(self.scalars)}"]
        lines += [f"t{i} = {op}" for i, op in enumerate(self.ops)]
        lines.append("out " + " ".join(f"t{i}" for i in self.outputs))
        return "\n".join(lines)

    @property
    def output_dtypes(self) -> tuple[str, ...]:
        return tuple(self.ops[i].out for i in self.outputs)

    @property
    def name(self) -> str:
        """A short name for tables: its operations, shortened."""
        names = [op.name for op in self.ops if not op.implicit]
        return "+".join(names) if len(names) <= 4 else f"{names[0]}+…{len(names) - 2}…+{names[-1]}"

    def dtype_of(self, ref: Ref) -> str:
        if ref.kind == "a":
            return self.inputs[ref.index]
        return self.scalars[ref.index] if ref.kind == "s" else self.ops[ref.index].out

    def calls(self) -> list[tuple[str, str]]:
        """The NumPy loops it calls, as (ufunc, loop), each once, in order of first use: their order in the kernel's function table."""
        return list(dict.fromkeys((op.name, op.loop) for op in self.ops if op.call))

    def layout(self) -> tuple[list[list[int]], list[int]]:
        """Operand numbers per laid-out operation and the operation of each output, as the launcher wants them (`_core.Kernel`)."""
        number: dict[int, int] = {}
        rows: list[list[int]] = []
        for i, op in enumerate(self.ops):
            operands = [r.index if r.kind == "a" else number[r.index] for r in op.operands if r.kind != "s"]
            if op.implicit:
                number[i] = operands[0] | LAYOUT_CAST
                continue
            flag = _LAYOUT_FLAG.get(op.name, 0)
            # Only ufunc calls care whether an operand was cast on its way in.
            rows.append([(n & ~LAYOUT_CAST) | flag if flag else n for n in operands])
            number[i] = len(self.inputs) + len(rows) - 1
        return rows, [number[i] - len(self.inputs) for i in self.outputs]
