"""The LLVM text of a loop's function: blocks, names, joins, and exits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

SLOT: Final = 16
"""Bytes of a plan's scalar slot."""


@dataclass(slots=True)
class Block:
    """A straight piece of text; label is the block that control is in at its end."""

    label: str
    head: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


Mark = tuple[Block, int, int]


class Function:
    """Writes `i64 loop(ptr slots, ptr breaker, i32 mask)`; the result is the number of the exit taken."""

    def __init__(self) -> None:
        self._names = 0
        self._labels = 0
        self._declares: set[str] = set()
        self._locals: set[str] = set()
        self._loops: list[str] = []
        self.entry = Block("entry")
        self.blocks: list[Block] = [self.entry]
        self.block = self.entry

    # -- names -------------------------------------------------------------------------------------------------------

    def name(self) -> str:
        self._names += 1
        return f"%v{self._names}"

    def label(self, stem: str) -> str:
        self._labels += 1
        return f"{stem}{self._labels}"

    # -- instructions ------------------------------------------------------------------------------------------------

    def let(self, expression: str) -> str:
        """An instruction with a result in the current block."""
        name = self.name()
        self.block.lines.append(f"  {name} = {expression}")
        return name

    def line(self, text: str) -> None:
        self.block.lines.append(f"  {text}")

    def begin(self, label: str) -> Block:
        """A new block, which becomes the current one."""
        self.block = Block(label)
        self.blocks.append(self.block)
        return self.block

    def mark(self) -> Mark:
        """Where writing stands."""
        return self.block, len(self.block.lines), len(self.blocks)

    def rewind(self, mark: Mark) -> None:
        """Forget what was written since, but for what the function begins with."""
        self.block, lines, blocks = mark
        del self.block.lines[lines:], self.blocks[blocks:]

    def call(self, result: str, name: str, *operands: tuple[str, str]) -> str:
        """A call of an LLVM intrinsic."""
        self._declares.add(f"declare {result} @{name}({', '.join(t for t, _ in operands)})")
        return self.let(f"call {result} @{name}({', '.join(f'{t} {v}' for t, v in operands)})")

    def require(self, condition: str, otherwise: str) -> None:
        """Goes on where the i1 holds, to the label `otherwise` where not (which is not expected)."""
        onward = self.label("on")
        self.line(f"br i1 {condition}, label %{onward}, label %{otherwise}, !prof !0")
        self.begin(onward)

    def leave_if(self, condition: str, label: str) -> None:
        """The reverse of require."""
        onward = self.label("on")
        self.line(f"br i1 {condition}, label %{label}, label %{onward}, !prof !1")
        self.begin(onward)

    # -- slots -------------------------------------------------------------------------------------------------------

    def slot(self, number: int, at: int = 0) -> str:
        """Address of a slot, or so many bytes into it."""
        return self.let(f"getelementptr inbounds i8, ptr %slots, i64 {number * SLOT + at}")

    def local(self, name: str, type_: str, align: int) -> str:
        """Memory of the function's own, the same wherever that name is used."""
        if name not in self._locals:
            self._locals.add(name)
            self.entry.lines.insert(0, f"  %m_{name} = alloca {type_}, align {align}")
        return f"%m_{name}"

    def counted(self, count: str, body: Callable[[str], None], vectors: bool = False) -> None:
        """A loop from 0 to an i64. vectors: LLVM may make vectors of it."""
        before, head, inside, after = self.block.label, self.label("head"), self.label("turn"), self.label("over")
        counter, following = self.name(), self.name()
        self.line(f"br label %{head}")
        self.begin(head).head.append(f"  {counter} = phi i64 [0, %{before}], [{following}, %{head}.back]")
        self.line(f"br i1 {self.let(f'icmp slt i64 {counter}, {count}')}, label %{inside}, label %{after}")
        self.begin(inside)
        body(counter)
        self.line(f"br label %{head}.back")
        self.begin(f"{head}.back")
        self.line(f"{following} = add i64 {counter}, 1")
        self.line(f"br label %{head}{'' if vectors else self._plain_loop()}")
        self.begin(after)

    def _plain_loop(self) -> str:
        """What the jump back of a loop carries that LLVM is not to make vectors of: gathering elements gains nothing and takes long to
        compile."""
        number = len(self._loops) + _FIRST_LOOP
        self._loops.append(f"!{number} = distinct !{{!{number}, !2, !3}}")
        return f", !llvm.loop !{number}"

    def lower(self, flag: str) -> None:
        """Clears an i64 flag in memory (see local)."""
        self.line(f"store i64 0, ptr {flag}, align 8")

    def raise_if(self, flag: str, condition: str) -> None:
        """Sets the flag where the i1 holds; without a branch, so that a loop around it can become vectors."""
        bit = self.let(f"zext i1 {condition} to i64")
        known = self.let(f"load i64, ptr {flag}, align 8")
        self.line(f"store i64 {self.let(f'or i64 {known}, {bit}')}, ptr {flag}, align 8")

    def is_lowered(self, flag: str) -> str:
        """i1: the flag was never set."""
        return self.let(f"icmp eq i64 {self.let(f'load i64, ptr {flag}, align 8')}, 0")

    def load_entry(self, type_: str, number: int, at: int = 0) -> str:
        """A slot's value when the function begins, or what is so many bytes into the slot."""
        address, value = self.name(), self.name()
        self.entry.lines.append(f"  {address} = getelementptr inbounds i8, ptr %slots, i64 {number * SLOT + at}")
        self.entry.lines.append(f"  {value} = load {type_}, ptr {address}, align 8")
        return value

    # -- text --------------------------------------------------------------------------------------------------------

    def text(self) -> str:
        self.entry.lines.append("  br label %start")
        body = "\n".join("\n".join([f"{b.label}:", *b.head, *b.lines]) for b in self.blocks)
        loops = "".join(f"{line}\n" for line in self._loops)
        declares = "\n".join(sorted(self._declares))
        return f"{declares}\n{_HEAD}{body}\n}}\n{_TAIL}{loops}"


_FIRST_LOOP: Final = 4
"""Metadata nodes below are in the tail."""
_HEAD: Final = "define i64 @loop(ptr noalias nocapture %slots, ptr nocapture readonly %breaker, i32 %mask) #0 {\n"
_TAIL: Final = """attributes #0 = { nounwind "no-builtins" "prefer-vector-width"="256" }
!0 = !{!"branch_weights", i32 2000, i32 1}
!1 = !{!"branch_weights", i32 1, i32 2000}
!2 = !{!"llvm.loop.vectorize.enable", i1 false}
!3 = !{!"llvm.loop.unroll.disable"}
"""
