"""Puts sites and their hit blocks into a program.

A site is a truth test of a constant in front of an instruction (one without exits is only tested, nothing follows from it). Where the
constant is false, the original instructions follow, untouched; where it is true it has already written locals and stack into the frame,
and control goes to a hit block behind the end of the code, which brings the stack to the landing's depth and jumps there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Final, NamedTuple

from tierup.bytecode.assemble import assemble_fields
from tierup.bytecode.concrete import ConcreteInstr, ExceptionEntry, Program, fuse_superinstructions
from tierup.bytecode.flow import Flow
from tierup.bytecode.opcodes import OpTable, table
from tierup.bytecode.plain_loops import append_loop
from tierup.bytecode.tables import NO_POSITION
from tierup.bytecode.verify import Landings, verify_fields

_LINEAR_EXITS: Final = 8


class Exit(NamedTuple):
    """One place where a hit may go on."""

    target_index: int
    """Landing: index of the original instruction to go on at (a RESUME: directly behind it)."""
    top_null: bool = False
    """The landing's topmost stack slot is NULL."""


RETIRE: Final = Exit(-1)
"""Instead of a landing: on into a copy of the site's innermost loop that has no sites. The site writes nothing for it."""


@dataclass(frozen=True, slots=True)
class SiteSpec:
    """A site to insert. The exit's position in `exits` is the number that `-constant` must return."""

    index: int
    """The original instruction it stands in front of (a RESUME: directly behind it)."""
    constant: object
    exits: tuple[Exit, ...] = ()


@dataclass(frozen=True, slots=True)
class Spliced:
    """Generated code."""

    code: CodeType
    site_instr: dict[int, int]
    """By site index: code unit of the instruction that tests the constant's truth."""


def splice(program: Program, sites: Iterable[SiteSpec], *, verify: bool = True) -> Spliced:
    """The program's code with sites inserted. ValueError for a site or landing that is no boundary or cannot be reached."""
    ordered = sorted(sites, key=lambda s: s.index)
    edit = _Splicer(program, ordered)
    spliced, moved = fuse_superinstructions(edit.run())
    assembled = assemble_fields(spliced)
    if verify:
        units = assembled.units
        landings = Landings(
            hits=frozenset(units[moved[i]] for i in edit.hit_entries),
            jumps=frozenset(assembled.own_units[moved[i]] for i in edit.landing_jumps),
            retired={units[moved[edit.hit_labels[site].index]]: units[moved[copy]] for site, copy in edit.retired.items()},
        )
        verify_fields(assembled.fields, landings)
    tests = {site: assembled.own_units[moved[index]] for site, index in edit.tests.items()}
    return Spliced(assembled.fields.build(), tests)


_RUNS_NOTHING: Final = frozenset(
    ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR", "LOAD_CONST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLOSURE", "PUSH_NULL", "COPY",
     "SWAP", "NOP", "KW_NAMES", "BUILD_TUPLE", "BUILD_LIST", "BUILD_SLICE", "MAKE_FUNCTION")
)  # fmt: skip
"""Instructions that run no Python code."""


class _Label:
    """A place in the hit blocks that is not known yet."""

    __slots__ = ("index",)

    def __init__(self) -> None:
        self.index = -1


class _Constants:
    """The constants, with room for more; existing ones keep their index."""

    def __init__(self, consts: tuple[object, ...]) -> None:
        self.values = list(consts)
        self._ints = {v: k for k, v in reversed(list(enumerate(consts))) if type(v) is int}
        self._none = next((k for k, v in enumerate(consts) if v is None), -1)

    def add(self, value: object) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def integer(self, value: int) -> int:
        if value not in self._ints:
            self._ints[value] = self.add(value)
        return self._ints[value]

    def none(self) -> int:
        if self._none < 0:
            self._none = self.add(None)
        return self._none


class _Splicer:
    def __init__(self, program: Program, sites: Sequence[SiteSpec]) -> None:
        self.program = program
        self.table: OpTable = table()
        self.flow = Flow(program)
        self.depth = self.flow.depth
        self.sites = {s.index: s for s in sites}
        if len(self.sites) != len(sites):
            raise ValueError("two sites at one instruction")
        self._landings = frozenset(end.target_index for s in sites for end in s.exits if end is not RETIRE)
        self.consts = _Constants(program.consts)
        self.out: list[ConcreteInstr] = []
        self.labels: list[tuple[int, _Label]] = []
        """Instructions whose target is a label."""
        self.own: list[int] = []
        """New index of each original instruction."""
        self.entry: list[int] = []
        """New index that jumps to an original instruction go to: its site's first instruction where it has one."""
        self.rows: list[ExceptionEntry] = []
        self.constant_index: dict[int, int] = {}
        self.tests: dict[int, int] = {}
        self.hit_labels: dict[int, _Label] = {}
        self.hit_entries: list[int] = []
        self.landing_jumps: list[int] = []
        self.retired: dict[int, int] = {}
        """By index of a site that can retire: new index of its instruction in the copy."""
        self.copies: dict[int, dict[int, int]] = {}
        """By loop header: new index of each original instruction of the loop in its copy without sites."""
        self._check()

    def _check(self) -> None:
        for spec in self.sites.values():
            self._check_place(spec.index, "site", self.program.is_boundary)
            for end in spec.exits:
                if end is RETIRE:
                    if self.flow.loop_of(spec.index) is None:
                        raise ValueError(f"site at index {spec.index} cannot retire: it is in no loop")
                    continue
                self._check_place(end.target_index, "landing", self.program.can_land)

    def _check_place(self, index: int, what: str, allowed: Callable[[int], bool]) -> None:
        if not 0 <= index < len(self.program):
            raise ValueError(f"{what} at index {index}: the program has {len(self.program)} instructions")
        name = self.program.instrs[index].name
        if not allowed(index):
            raise ValueError(f"{what} at index {index}: not allowed at {name} (its unit starts at {self.program.boundary(index)})")
        if self.depth[index] is None:
            raise ValueError(f"{what} at index {index}: {name} cannot be reached")

    # ---- the edit

    def run(self) -> Program:
        original = self.program.instrs
        for index, instr in enumerate(original):
            spec = self.sites.get(index)
            behind = instr.name == "RESUME"
            self._keep_line(index)
            self.entry.append(len(self.out))
            if spec is not None and not behind:
                self._site(spec)
            self.own.append(len(self.out))
            self.out.append(instr)
            if spec is not None and behind:
                self._site(spec)
        body_end = len(self.out)
        self.entry.append(body_end)
        for index, new in enumerate(self.own):
            target = original[index].target
            if target is not None:
                self.out[new] = original[index]._replace(target=self.entry[target])
        for entry in self.program.table:
            self.rows.append(entry._replace(start=self.entry[entry.start], end=self.entry[entry.end], target=self.entry[entry.target]))
        for spec in self.sites.values():
            if RETIRE in spec.exits:
                self._plain_loop(spec)
        for spec in self.sites.values():
            if spec.exits:
                self._hit_block(spec)
        for at, label in self.labels:
            self.out[at] = self.out[at]._replace(target=label.index)
        return self.program.edited(self.out, self.rows, tuple(self.consts.values))

    def _keep_line(self, index: int) -> None:
        """CPython takes a jump's target for the start of a line, and forgets across a yield (3.12 also across a call of Python) that it
        is on that line already: a tracer would see the line twice where a landing stands in mid-line behind one. A NOP remembers."""
        if self.table.version < (3, 12) or index not in self._landings or index == 0:
            return
        before, at = self.program.instrs[index - 1], self.program.instrs[index]
        if self.table.version >= (3, 13) and before.name != "RESUME":
            return
        # Where the original jumps to itself, a tracer sees the line twice there, too.
        falls = before.opcode not in self.table.terminal and index not in self.program.jump_targets
        if falls and before.positions[0] == at.positions[0] and before.name not in _RUNS_NOTHING:
            self._emit("NOP", 0, before)

    def _emit(self, name: str, arg: int, like: ConcreteInstr, target: int | _Label | None = None) -> int:
        at = len(self.out)
        if isinstance(target, _Label):
            self.labels.append((at, target))
            target = -1
        self.out.append(ConcreteInstr(self.table.op(name), name, arg, like.offset, like.positions, target))
        return at

    def _emit_hidden(self, name: str, arg: int, like: ConcreteInstr, target: int) -> int:
        return self._emit(name, arg, like._replace(positions=NO_POSITION), target)

    def _like(self, index: int) -> ConcreteInstr:
        """The instruction whose position a site takes. Behind RESUME that is the next one: a tracer would see RESUME's line, the `def`."""
        instrs = self.program.instrs
        if instrs[index].name == "RESUME" and index + 1 < len(instrs) and instrs[index + 1].positions[0] is not None:
            return instrs[index + 1]
        return instrs[index]

    def _hidden(self, index: int) -> ConcreteInstr:
        """The same without a line: a debugger that is told to go to a line may take any instruction that begins one."""
        return self._like(index)._replace(positions=NO_POSITION)

    def _jump_if_true(self, like: ConcreteInstr, label: _Label) -> int:
        name = "POP_JUMP_IF_TRUE" if self.table.has("POP_JUMP_IF_TRUE") else "POP_JUMP_FORWARD_IF_TRUE"
        return self._emit(name, 0, like, label)

    def _site(self, spec: SiteSpec) -> None:
        like = self._like(spec.index)
        constant = self.constant_index[spec.index] = self.consts.add(spec.constant)
        if not spec.exits:
            # Nothing to jump to: a jump's target would count as the start of a line for tracers (3.12 and later).
            self._emit("LOAD_CONST", constant, like)
            self.tests[spec.index] = self._emit("TO_BOOL" if self.table.has("TO_BOOL") else "UNARY_NOT", 0, like)
            self._emit("POP_TOP", 0, like)
            return
        label = self.hit_labels[spec.index] = _Label()
        self._emit("LOAD_CONST", constant, like)
        if self.table.has("TO_BOOL"):
            self.tests[spec.index] = self._emit("TO_BOOL", 0, like)
            self._jump_if_true(like, label)
        else:
            self.tests[spec.index] = self._jump_if_true(like, label)

    # ---- hit blocks

    def _hit_block(self, spec: SiteSpec) -> None:
        like = self._hidden(spec.index)
        self.hit_labels[spec.index].index = len(self.out)
        self.hit_entries.append(len(self.out))
        if len(spec.exits) == 1:
            self._exit(spec, like, spec.exits[0])
        else:
            self._emit("LOAD_CONST", self.constant_index[spec.index], like)
            self._emit("UNARY_NEGATIVE", 0, like)
            self._dispatch(spec, like, 0, len(spec.exits))

    def _compare(self, like: ConcreteInstr, number: int, symbol: str, label: _Label) -> None:
        t = self.table
        # Masks of the 3.12+ operand: see COMPARISON_* in CPython's pycore_code.h; 8 is "equal", 2 is "less than".
        mask = {"==": 8, "<": 2}[symbol] if t.compare_shift else 0
        self._emit("COPY", 1, like)
        self._emit("LOAD_CONST", self.consts.integer(number), like)
        self._emit("COMPARE_OP", t.compare_symbols.index(symbol) << t.compare_shift | mask | t.compare_bool, like)
        self._jump_if_true(like, label)

    def _dispatch(self, spec: SiteSpec, like: ConcreteInstr, low: int, high: int) -> None:
        """Branches on the exit number on top of the stack, low <= number < high, and pops it."""
        if high - low > _LINEAR_EXITS:
            middle = (low + high) // 2
            below = _Label()
            self._compare(like, middle, "<", below)
            self._dispatch(spec, like, middle, high)
            below.index = len(self.out)
            self._dispatch(spec, like, low, middle)
            return
        labels = {number: _Label() for number in range(low, high - 1)}
        for number, label in labels.items():
            self._compare(like, number, "==", label)
        self._emit("POP_TOP", 0, like)
        self._exit(spec, like, spec.exits[high - 1])
        for number, label in labels.items():
            label.index = len(self.out)
            self._emit("POP_TOP", 0, like)
            self._exit(spec, like, spec.exits[number])

    def _plain_loop(self, spec: SiteSpec) -> None:
        loop = self.flow.loop_of(spec.index)
        assert loop is not None
        if loop.header not in self.copies:
            self.copies[loop.header] = append_loop(self, loop.body, self._emit_hidden)

    def _exit(self, spec: SiteSpec, like: ConcreteInstr, end: Exit) -> None:
        if end is RETIRE:
            loop = self.flow.loop_of(spec.index)
            assert loop is not None
            self.retired[spec.index] = self.copies[loop.header][spec.index]
            self.landing_jumps.append(self._emit("JUMP_BACKWARD_NO_INTERRUPT", 0, like, self.retired[spec.index]))
            return
        here, there = self.depth[spec.index], self.depth[end.target_index]
        assert here is not None and there is not None
        for _ in range(here - there):
            self._emit("POP_TOP", 0, like)
        if there > here:
            self._deepen(spec, like, end, here, there)
        landing = self.program.instrs[end.target_index]
        if landing.name in ("RETURN_VALUE", "RETURN_CONST") and end.target_index not in self.sites:
            self._emit(landing.name, landing.arg, like)
            return
        self._jump_to(spec, like, self._landing(spec, end.target_index), landing, end.target_index)

    def _deepen(self, spec: SiteSpec, like: ConcreteInstr, end: Exit, here: int, there: int) -> None:
        """Placeholders for the landing's stack slots beyond the site's depth, which the site fills; the top one is what it returns.

        Where the landing's slot may be NULL, so is the placeholder: a debugger that sets `f_lineno` works out from the code which
        slots are NULL (frameobject.c, mark_stacks), and hit blocks come last there.
        """
        nulls = self.flow.nulls[end.target_index]
        for slot in range(here, there if end.top_null else there - 1):
            if nulls >> slot & 1:
                self._emit("PUSH_NULL", 0, like)
            else:
                self._emit("LOAD_CONST", self.consts.none(), like)
        self._emit("LOAD_CONST", self.constant_index[spec.index], like)
        self._emit("UNARY_INVERT", 0, like)
        if end.top_null:
            self._emit("POP_TOP", 0, like)

    def _landing(self, spec: SiteSpec, index: int) -> int:
        """New index that a landing at an original instruction goes to; the site there first, if it has one that is not the one left:
        that would run the same region again."""
        if self.program.instrs[index].name == "RESUME":
            return self.own[index] + 1
        return self.own[index] if index == spec.index else self.entry[index]

    def _jump_to(self, spec: SiteSpec, like: ConcreteInstr, target: int, landing: ConcreteInstr, landing_index: int) -> None:
        """Hit blocks stand at the end, so every jump is a backward one. Where it also goes backward in the original order it can close
        a loop: then it must check for signals and thread switches as the loop's own jump would, under the landing's handler."""
        if landing_index <= spec.index:
            at = self._emit("JUMP_BACKWARD", 0, landing, target)
            self._cover(at, landing_index)
        else:
            at = self._emit("JUMP_BACKWARD_NO_INTERRUPT", 0, like, target)
        self.landing_jumps.append(at)

    def _cover(self, at: int, landing_index: int) -> None:
        for entry in self.program.table:
            if entry.start <= landing_index < entry.end:
                self.rows.append(ExceptionEntry(at, at + 1, self.entry[entry.target], entry.depth, entry.lasti))
                return
