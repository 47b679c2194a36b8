"""Second half of the verifier: abstract interpretation of stack depth, tags of stack slots, bound locals and cells.

A state is (depth, nulls, bools, cells, bound, made): the masks `nulls` (may be NULL), `bools` (certainly True or False) and `cells`
(certainly a cell) have a bit for each stack slot, counted from the bottom; `bound` (certainly not NULL) and `made` (certainly a cell) have
one for each frame slot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from tierup.bytecode.effects import effects
from tierup.bytecode.fields import KIND_FREE
from tierup.bytecode.opcodes import CO_VARARGS, CO_VARKEYWORDS, null_below_callable, table
from tierup.bytecode.structure import Fault, Row, Scan

State = tuple[int, int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Landings:
    """What the splicer vouches for."""

    hits: frozenset[int] = frozenset()
    """First code unit of each hit block. There the site has written the whole frame: no stack slot is NULL, every local counts as bound."""
    jumps: frozenset[int] = frozenset()
    """Code units (of the opcode) of the jumps out of hit blocks: only the stack depth has to fit, the rest is as the landing wants it."""
    retired: Mapping[int, int] = field(default_factory=dict)
    """By first code unit of a hit block: where the frame may go on exactly as it was at the site."""


_Thrown = tuple[Row | None, int, int, int, int]
_NOTHING: Final[_Thrown] = (None, 0, 0, 0, 0)

NO_LANDINGS: Final = Landings()


class Masks:
    """The state's masks while an instruction is interpreted."""

    __slots__ = ("bools", "bound", "cells", "consts", "depth", "free", "made", "nulls")

    def __init__(self, state: State, consts: tuple[object, ...], free: int) -> None:
        self.depth, self.nulls, self.bools, self.cells, self.bound, self.made = state
        self.consts = consts
        self.free = free

    def snapshot(self) -> State:
        return self.depth, self.nulls, self.bools, self.cells, self.bound, self.made

    def push(self, *, null: bool = False, exact_bool: bool = False, cell: bool = False) -> None:
        bit = 1 << self.depth
        self.depth += 1
        self.nulls |= bit if null else 0
        self.bools |= bit if exact_bool else 0
        self.cells |= bit if cell else 0

    def pop(self, count: int) -> None:
        self.depth -= count
        low = (1 << self.depth) - 1
        self.nulls &= low
        self.bools &= low
        self.cells &= low

    def null_at(self, below_top: int) -> bool:
        return bool(self.nulls >> (self.depth - below_top) & 1)


# A special instruction: checks and changes the masks, returns what is wrong or None.
Special = Callable[[Masks, int], str | None]


class _Interpreter:
    def __init__(self, scan: Scan, landings: Landings) -> None:
        self.scan = scan
        self.landings = landings
        self.table = table()
        self.effects = effects()
        self.states: list[State | None] = [None] * len(scan.ops)
        self.index_of = {unit: k for k, unit in enumerate(scan.starts)} if landings.retired else {}
        self.leader = bytearray(len(scan.ops))
        self.handler: list[Row | None] = [None] * len(scan.ops)
        self.work: list[int] = []
        self.caught: _Thrown = _NOTHING
        """What the handler around the current run of instructions was last told."""
        self.fixed = self.effects.fixed
        self.special = _specials()
        self.pushes_bool = _bool_results()
        self.keeps_stack = _keeps_stack()
        self.deepest = 0
        self.deepest_at = 0
        self.free = sum(1 << slot for slot, kind in enumerate(scan.kinds) if kind & KIND_FREE)
        self.everything = (1 << len(scan.kinds)) - 1
        self.landing_depths: list[tuple[int, int, int]] = []

    def run(self) -> None:
        """Interprets all reachable code. Raises Fault."""
        scan = self.scan
        for target in scan.targets:
            if target >= 0:
                self.leader[target] = 1
        for row in scan.rows:
            self.leader[row.target] = 1
            self.handler[row.start : row.end] = [row] * (row.end - row.start)
        fields = scan.fields
        args = fields.argcount + fields.kwonlyargcount + bool(fields.flags & CO_VARARGS) + bool(fields.flags & CO_VARKEYWORDS)
        self.leader[0] = 1
        self.states[0] = (0, 0, 0, 0, (1 << args) - 1, 0)
        self.work.append(0)
        while self.work:
            self._straight(self.work.pop())
        for k, depth, target in self.landing_depths:
            state = self.states[target]
            if state is None or state[0] != depth:
                there = "is never reached" if state is None else f"expects depth {state[0]}"
                raise Fault(scan.starts[k], f"landing with stack depth {depth}, but the landing {there}")
        if self.deepest > fields.stacksize:
            # 7
            raise Fault(scan.starts[self.deepest_at], f"stack depth {self.deepest} exceeds the stack size {fields.stacksize}")

    def _enter(self, k: int, index: int, state: State) -> bool:
        """Merges a state into a leader; says whether it must be interpreted (again)."""
        known = self.states[index]
        if known is None:
            self.states[index] = state
            return True
        if known == state:
            return False
        if known[0] != state[0]:
            # 8
            name = self.table.names[self.scan.ops[index]]
            where = f"{name} at unit {self.scan.starts[index]}"
            raise Fault(self.scan.starts[k], f"reaches {where} with depth {state[0]}, elsewhere it is {known[0]}")
        met = (known[0], known[1] | state[1], known[2] & state[2], known[3] & state[3], known[4] & state[4], known[5] & state[5])
        if met == known:
            return False
        self.states[index] = met
        return True

    def _straight(self, k: int) -> None:
        """Interprets from a leader until control leaves or meets a leader with nothing new to say."""
        ops, targets, leader = self.scan.ops, self.scan.targets, self.leader
        terminal, jump_extra = self.table.terminal, self.effects.jump_extra
        m = self._start(k)
        self.caught = _NOTHING
        while True:
            op, before = ops[k], m.depth
            if self.handler[k] is None:
                self._apply(k, op, m)
            else:
                self._apply_covered(k, op, m)
            if m.depth > self.deepest:
                self.deepest, self.deepest_at = m.depth, k
            target = targets[k]
            if target >= 0 and self._jump(k, target, m, jump_extra[op]):
                return
            if op in terminal:
                self._check_end(k, op, before)
                return
            k += 1
            if k == len(ops):
                # 19
                raise Fault(self.scan.starts[k - 1], f"{self.table.names[op]} falls off the end of the code")
            if leader[k] and not self._join(k, m):
                return

    def _start(self, k: int) -> Masks:
        state = self.states[k]
        assert state is not None
        m = Masks(state, self.scan.fields.consts, self.free)
        if self.landings.hits and self.scan.starts[k] in self.landings.hits:
            m.nulls, m.bound, m.made = 0, self.everything, self.everything
        return m

    def _join(self, k: int, m: Masks) -> bool:
        """Falls through into a leader; False if that says nothing new."""
        if not self._enter(k - 1, k, m.snapshot()):
            return False
        state = self.states[k]
        assert state is not None
        m.depth, m.nulls, m.bools, m.cells, m.bound, m.made = state
        self.caught = _NOTHING
        return True

    def _apply(self, k: int, op: int, m: Masks) -> None:
        """Checks one instruction and changes the masks as it does."""
        before = m.depth
        rule, arg = self.fixed[op], self.scan.args[k]
        need, pops, pushes = rule if rule is not None else self.effects.of(op, arg)
        if before < need:
            # 8
            raise Fault(self.scan.starts[k], f"{self.table.names[op]} needs {need} stack slots, there are {before}")
        if k in self.scan.closure_tuples:
            self._check_closure(k, before, m.cells)
        special = self.special[op]
        if special is not None:
            wrong = special(m, arg)
            if wrong is not None:
                raise Fault(self.scan.starts[k], f"{self.table.names[op]} {arg}: {wrong}")
            if k in self.scan.length_tests:
                m.bools |= 1 << (m.depth - 1)
            return
        base = before - pops
        # An instruction with a fixed effect looks at all the slots it needs, one with an operand may reach far down to a single slot.
        if m.nulls and m.nulls >> (before - need if rule is not None else base):
            # 6
            raise Fault(self.scan.starts[k], f"{self.table.names[op]} takes a stack slot that may be NULL")
        m.depth = base + pushes
        if pops and (m.bools or m.cells):
            low = (1 << base) - 1
            m.bools &= low
            m.cells &= low
        if self.pushes_bool[op]:
            m.bools |= 1 << (m.depth - 1)

    def _apply_covered(self, k: int, op: int, m: Masks) -> None:
        """The same for an instruction under an exception row: what the handler gets is the meet of before and after."""
        row = self.handler[k]
        assert row is not None
        before, low = m.depth, (1 << row.depth) - 1
        nulls, cells, bound, made = m.nulls & low, m.cells & low, m.bound, m.made
        self._apply(k, op, m)
        left = before if self.keeps_stack[op] else before - self.effects.of(op, self.scan.args[k])[1]
        if left < row.depth:
            # 9
            raise Fault(self.scan.starts[k], f"exception row keeps {row.depth} stack slots, {self.table.names[op]} leaves {left}")
        thrown = (row, nulls, cells, bound & m.bound, made & m.made)
        if thrown != self.caught:
            self.caught = thrown
            self._throw(k, *thrown)

    def _jump(self, k: int, target: int, m: Masks, extra: int) -> bool:
        """Takes the jump edge. True if it is a landing: then nothing else follows."""
        if self.scan.own[k] in self.landings.jumps:
            self.landing_depths.append((k, m.depth, target))
            return True
        if extra:
            # Only 3.11 has jumps that leave another depth than falling through. A kept value keeps no tag.
            depth = m.depth + extra
            low = (1 << min(depth, m.depth)) - 1
            state = (depth, m.nulls & low, m.bools & low, m.cells & low, m.bound, m.made)
        else:
            state = m.snapshot()
        if self._enter(k, target, state):
            self.work.append(target)
        if self.landings.retired:
            copy = self.landings.retired.get(self.scan.starts[target], -1)
            if copy >= 0 and self._enter(k, self.index_of[copy], state):
                self.work.append(self.index_of[copy])
        return False

    def _throw(self, k: int, row: Row | None, nulls: int, cells: int, bound: int, made: int) -> None:
        """Takes the exception edge: kept slots, the offset if wanted, the exception."""
        assert row is not None
        depth = row.depth + row.lasti + 1
        if depth > self.deepest:
            self.deepest, self.deepest_at = depth, row.target
        if self._enter(k, row.target, (depth, nulls, 0, cells, bound, made)):
            self.work.append(row.target)

    def _check_closure(self, k: int, depth: int, cells: int) -> None:
        """12: the tuple that becomes a closure is made of cells."""
        count = self.scan.closure_tuples[k]
        wanted = (1 << count) - 1
        if cells >> (depth - count) & wanted != wanted:
            raise Fault(self.scan.starts[k], "a closure is made of something that is no cell")

    def _check_end(self, k: int, op: int, depth: int) -> None:
        """8: the stack holds the result and nothing else."""
        name = self.table.names[op]
        wanted = {"RETURN_VALUE": 1, "RETURN_CONST": 0}.get(name)
        if wanted is not None and depth != wanted:
            raise Fault(self.scan.starts[k], f"{name} with {depth} stack slots")


def interpret(scan: Scan, landings: Landings = NO_LANDINGS) -> None:
    """Follows all flow of control from the start of the code. Raises Fault."""
    _Interpreter(scan, landings).run()


# ---- instructions with tags of their own

_UNBOUND = "the local may be unbound"
_NO_CELL = "the slot holds no cell here"
_NULL_OPERAND = "an operand may be NULL"
_NOT_BOOL = "the operand is not certainly True or False"


def _load_fast(m: Masks, arg: int) -> str | None:
    # 10: no check at run time since 3.12.
    if not m.bound >> arg & 1:
        return _UNBOUND
    if m.made >> arg & 1:
        m.cells |= 1 << m.depth
    m.depth += 1
    return None


def _load_fast_checked(m: Masks, arg: int) -> str | None:
    m.bound |= 1 << arg
    m.push()
    return None


def _load_fast_and_clear(m: Masks, arg: int) -> str | None:
    bit = 1 << arg
    m.push(null=not m.bound & bit, cell=bool(m.made & bit))
    m.bound &= ~bit
    m.made &= ~bit
    return None


def _store_fast(m: Masks, arg: int) -> str | None:
    top, bit = 1 << m.depth - 1, 1 << arg
    m.bound = m.bound & ~bit if m.nulls & top else m.bound | bit
    m.made = m.made | bit if m.cells & top else m.made & ~bit
    m.pop(1)
    return None


def _delete_fast(m: Masks, arg: int) -> str | None:
    m.bound &= ~(1 << arg)
    return None


def _pair(first: Special, second: Special) -> Special:
    def both(m: Masks, arg: int) -> str | None:
        return first(m, arg >> 4) or second(m, arg & 15)

    return both


def _needs_cell(push: bool, pops: int) -> Special:
    """LOAD_DEREF and its kin."""

    def special(m: Masks, arg: int) -> str | None:
        if not m.made >> arg & 1:
            return _NO_CELL
        if m.nulls >> (m.depth - pops):
            return _NULL_OPERAND
        m.pop(pops)
        if push:
            m.push()
        return None

    return special


def _load_closure(m: Masks, arg: int) -> str | None:
    if not m.made >> arg & 1:
        return _NO_CELL
    m.push(cell=True)
    return None


def _make_cell(m: Masks, arg: int) -> str | None:
    m.made |= 1 << arg
    m.bound |= 1 << arg
    return None


def _copy_free_vars(m: Masks, arg: int) -> str | None:
    m.made |= m.free
    m.bound |= m.free
    return None


def _push_null(m: Masks, arg: int) -> str | None:
    m.push(null=True)
    return None


def _push_call_slots(m: Masks) -> None:
    below = _null_below()
    m.push(null=below)
    m.push(null=not below)


def _load_global(m: Masks, arg: int) -> str | None:
    if arg & 1:
        _push_call_slots(m)
    else:
        m.push()
    return None


def _load_attr(pops: int, always: bool) -> Special:
    """LOAD_ATTR, LOAD_METHOD, LOAD_SUPER_ATTR; with the low bit (or always) they leave a call's two lowest slots."""

    def special(m: Masks, arg: int) -> str | None:
        if m.nulls >> (m.depth - pops):
            return _NULL_OPERAND
        m.pop(pops)
        if always or arg & 1:
            _push_call_slots(m)
        else:
            m.push()
        return None

    return special


def _load_const(m: Masks, arg: int) -> str | None:
    m.push(exact_bool=type(m.consts[arg]) is bool)
    return None


def _swap(m: Masks, arg: int) -> str | None:
    top, other = m.depth - 1, m.depth - arg
    m.nulls, m.bools, m.cells = (_swapped(mask, top, other) for mask in (m.nulls, m.bools, m.cells))
    return None


def _swapped(mask: int, a: int, b: int) -> int:
    if mask >> a & 1 != mask >> b & 1:
        mask ^= 1 << a | 1 << b
    return mask


def _copy(m: Masks, arg: int) -> str | None:
    at = m.depth - arg
    m.push(null=bool(m.nulls >> at & 1), exact_bool=bool(m.bools >> at & 1), cell=bool(m.cells >> at & 1))
    return None


def _call_shape(m: Masks, base: int) -> str | None:
    """6: of the two lowest slots only the right one may be NULL, and no argument."""
    nulls = m.nulls >> base
    if not nulls:
        return None
    allowed = 1 if _null_below() else 2
    if nulls & ~allowed:
        callable_slot = 2 if allowed == 1 else 1
        return "the callable may be NULL (wrong order of NULL and callable?)" if nulls & callable_slot else _NULL_OPERAND
    return None


def _precall(m: Masks, arg: int) -> str | None:
    return _call_shape(m, m.depth - arg - 2)


def _call(extra: int) -> Special:
    def special(m: Masks, arg: int) -> str | None:
        wrong = _call_shape(m, m.depth - arg - 2 - extra)
        if wrong is None:
            m.pop(arg + 2 + extra)
            m.push()
        return wrong

    return special


def _call_function_ex(m: Masks, arg: int) -> str | None:
    base = m.depth - 3 - (arg & 1)
    wrong = _call_shape(m, base)
    if wrong is None and not m.nulls >> base & (1 if _null_below() else 2):
        wrong = "the slot beside the callable is not NULL"
    if wrong is None:
        m.pop(m.depth - base)
        m.push()
    return wrong


def _takes_bool(push: bool) -> Special:
    """16: since 3.13 these compare with True and False by identity."""

    def special(m: Masks, arg: int) -> str | None:
        if not m.bools >> (m.depth - 1) & 1:
            return _NOT_BOOL
        m.pop(1)
        if push:
            m.push(exact_bool=True)
        return None

    return special


def _compare(m: Masks, arg: int) -> str | None:
    if m.nulls >> (m.depth - 2):
        return _NULL_OPERAND
    m.pop(2)
    m.push(exact_bool=bool(arg & table().compare_bool))
    return None


@lru_cache(maxsize=1)
def _null_below() -> bool:
    return null_below_callable(table().version)


@lru_cache(maxsize=1)
def _specials() -> list[Special | None]:
    optable = table()
    rules: dict[str, Special] = {
        "LOAD_FAST_CHECK": _load_fast_checked,
        "LOAD_FAST_AND_CLEAR": _load_fast_and_clear,
        "STORE_FAST": _store_fast,
        "DELETE_FAST": _delete_fast,
        "LOAD_FAST_LOAD_FAST": _pair(_load_fast, _load_fast),
        "STORE_FAST_LOAD_FAST": _pair(_store_fast, _load_fast),
        "STORE_FAST_STORE_FAST": _pair(_store_fast, _store_fast),
        "LOAD_DEREF": _needs_cell(push=True, pops=0),
        "LOAD_CLASSDEREF": _needs_cell(push=True, pops=0),
        "LOAD_FROM_DICT_OR_DEREF": _needs_cell(push=True, pops=1),
        "STORE_DEREF": _needs_cell(push=False, pops=1),
        "DELETE_DEREF": _needs_cell(push=False, pops=0),
        "LOAD_CLOSURE": _load_closure,
        "MAKE_CELL": _make_cell,
        "COPY_FREE_VARS": _copy_free_vars,
        "PUSH_NULL": _push_null,
        "LOAD_GLOBAL": _load_global,
        "LOAD_METHOD": _load_attr(1, always=True),
        "LOAD_SUPER_ATTR": _load_attr(3, always=False),
        "SWAP": _swap,
        "COPY": _copy,
        "PRECALL": _precall,
        "CALL": _call(0),
        "CALL_KW": _call(1),
        "CALL_FUNCTION_EX": _call_function_ex,
    }
    if optable.version >= (3, 12):
        rules["LOAD_ATTR"] = _load_attr(1, always=False)
        rules["LOAD_FAST"] = _load_fast
    if optable.version >= (3, 13):
        rules["LOAD_CONST"] = _load_const
        rules["COMPARE_OP"] = _compare
        rules["UNARY_NOT"] = _takes_bool(push=True)
        rules["POP_JUMP_IF_TRUE"] = rules["POP_JUMP_IF_FALSE"] = _takes_bool(push=False)
    specials: list[Special | None] = [None] * 256
    for name, special in rules.items():
        if optable.has(name):
            specials[optable.op(name)] = special
    return specials


@lru_cache(maxsize=1)
def _bool_results() -> list[bool]:
    """Plain instructions whose result on top is an exact bool."""
    optable = table()
    out = [False] * 256
    for name in ("TO_BOOL", "CONTAINS_OP", "IS_OP", "CHECK_EXC_MATCH", "MATCH_SEQUENCE", "MATCH_MAPPING"):
        if optable.version >= (3, 13) and optable.has(name):
            out[optable.op(name)] = True
    return out


@lru_cache(maxsize=1)
def _keeps_stack() -> list[bool]:
    """Instructions that cannot raise with their operands popped: PUSH_EXC_INFO never raises, and before an exception is thrown
    into a suspended generator, a value is pushed (genobject.c, gen_send_ex2)."""
    optable = table()
    return [optable.names[op] in ("PUSH_EXC_INFO", "YIELD_VALUE") for op in range(256)]
