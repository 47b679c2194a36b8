"""The version-neutral instruction set: one operation a meaning, whatever instructions a CPython version spells it with.

`index` of a canonical instruction is the concrete index at which its unit starts; several may share one (a super-instruction, or
the NULL that LOAD_GLOBAL pushes along with the global). Then a frame may be left before the first of them only.

Stack layout of a call: with NULL_BELOW_CALLABLE the two lowest slots are (NULL or method, callable or self), else (callable or
method, NULL or self); the arguments follow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import lru_cache
from typing import Any, Final

from tierup.bytecode.concrete import ConcreteInstr, Program, unpack_superinstruction
from tierup.bytecode.opcodes import OpTable, null_below_callable, table
from tierup.bytecode.units import loop_end

NULL_BELOW_CALLABLE: Final = null_below_callable(sys.version_info[:2])


class Op(StrEnum):
    """Canonical operations; the comment says what `Canon.arg` is. Slots are positions in localsplus."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[str]) -> str:
        return name

    LOAD_LOCAL = auto()  # slot; may be unbound (UnboundLocalError)
    STORE_LOCAL = auto()  # slot
    DELETE_LOCAL = auto()  # slot
    LOAD_AND_CLEAR_LOCAL = auto()  # slot; pushes NULL where unbound
    LOAD_CONST = auto()  # the value
    LOAD_GLOBAL = auto()  # name
    PUSH_NULL = auto()
    LOAD_NAME = auto()  # name
    STORE_NAME = auto()  # name
    DELETE_NAME = auto()  # name
    STORE_GLOBAL = auto()  # name
    DELETE_GLOBAL = auto()  # name
    LOAD_DEREF = auto()  # slot: contents of the cell
    STORE_DEREF = auto()  # slot
    DELETE_DEREF = auto()  # slot
    LOAD_CLOSURE = auto()  # slot: the cell itself
    LOAD_CLASSDEREF = auto()  # slot
    LOAD_ATTR = auto()  # name
    LOAD_METHOD = auto()  # name; replaces the object by the two lowest slots of a call
    STORE_ATTR = auto()  # name; value, object → nothing
    DELETE_ATTR = auto()  # name
    LOAD_SUPER_ATTR = auto()  # (name, is_method, two_arguments); super, class, self → attribute or two call slots
    BINARY_OP = auto()  # symbol, '+' or '+=' …
    BINARY_SUBSCR = auto()
    STORE_SUBSCR = auto()  # value, container, key → nothing
    DELETE_SUBSCR = auto()
    BINARY_SLICE = auto()  # container, start, stop → item
    STORE_SLICE = auto()  # value, container, start, stop → nothing
    UNARY_POSITIVE = auto()
    UNARY_NEGATIVE = auto()
    UNARY_NOT = auto()
    UNARY_INVERT = auto()
    TO_BOOL = auto()
    COMPARE = auto()  # (symbol, result is made an exact bool)
    IS_OP = auto()  # inverted
    CONTAINS_OP = auto()  # inverted
    CALL = auto()  # (argument count, names of the keyword arguments, which are last)
    CALL_KW_DYNAMIC = auto()  # argument count; the tuple of names is on the stack and no constant
    CALL_FUNCTION_EX = auto()  # has a keyword mapping
    BUILD_TUPLE = auto()  # count
    BUILD_LIST = auto()  # count
    BUILD_SET = auto()  # count
    BUILD_MAP = auto()  # pairs
    BUILD_CONST_KEY_MAP = auto()  # count; the tuple of keys is on top
    BUILD_SLICE = auto()  # 2 or 3
    BUILD_STRING = auto()  # count
    FORMAT_VALUE = auto()  # (conversion: 0 none, 1 str, 2 repr, 3 ascii; has a format spec on top)
    CONVERT_VALUE = auto()  # conversion 1..3
    LIST_APPEND = auto()  # depth of the list once the item is popped, 1 is the top
    SET_ADD = auto()  # depth
    MAP_ADD = auto()  # depth; key, value on top
    LIST_EXTEND = auto()  # depth
    SET_UPDATE = auto()  # depth
    DICT_UPDATE = auto()  # depth
    DICT_MERGE = auto()  # depth
    LIST_TO_TUPLE = auto()
    UNPACK_SEQUENCE = auto()  # count; the first item ends on top
    UNPACK_EX = auto()  # (before, after the star)
    GET_ITER = auto()
    GET_LEN = auto()  # keeps the object
    FOR_ITER = auto()  # where it goes on when exhausted, the iterator popped; falls through with the item pushed
    END_FOR = auto()  # never executed: FOR_ITER's target is behind it
    JUMP = auto()  # (target, is backward)
    POP_JUMP_IF = auto()  # (TRUE | FALSE | NONE | NOT_NONE, target)
    JUMP_IF_OR_POP = auto()  # (TRUE | FALSE, target); the value stays when it jumps
    COPY = auto()  # depth, 1 is the top
    SWAP = auto()  # depth
    POP_TOP = auto()
    RETURN_VALUE = auto()
    RETURN_CONST = auto()  # the value
    MAKE_FUNCTION = auto()  # code → function without attributes
    SET_FUNCTION_ATTRIBUTE = auto()  # 1 defaults, 2 keyword defaults, 4 annotations, 8 closure; attribute, function → function
    LOAD_ASSERTION_ERROR = auto()
    RAISE = auto()  # operand count
    YIELD_VALUE = auto()
    RESUME = auto()  # operand
    NOP = auto()
    OTHER = auto()  # name of the concrete instruction; a region ends before it


TRUE: Final = "true"
FALSE: Final = "false"
NONE: Final = "none"
NOT_NONE: Final = "not_none"


@dataclass(frozen=True, slots=True)
class Canon:
    """One canonical instruction."""

    op: Op
    arg: Any
    index: int
    """Concrete index of the unit it starts at."""
    next_index: int
    """Concrete index behind the unit."""
    line: int | None


@dataclass(frozen=True, slots=True)
class Canonical:
    """A program's canonical instructions and where each concrete one went."""

    canons: list[Canon]
    position: list[int]
    """By concrete index (and one for the end): the first canonical instruction at or behind it. Inside a unit, the unit's first."""

    def at(self, index: int) -> Canon:
        """The canonical instruction that starts at (or covers) a concrete index."""
        return self.canons[self.position[index]]


Pair = tuple[Op, object]
Handler = Callable[["_Context", ConcreteInstr], list[Pair]]


class _Context:
    """What a handler may look at besides its instruction."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.table: OpTable = table()

    def name(self, arg: int) -> str:
        return self.program.names[arg]

    def loop_end(self, target: int) -> int:
        return loop_end(self.program.instrs, target)


def canonicalise(program: Program) -> Canonical:
    """Translates a whole program."""
    context = _Context(program)
    handlers = _handlers()
    canons: list[Canon] = []
    position: list[int] = []
    index, instrs = 0, program.instrs
    while index < len(instrs):
        instr = instrs[index]
        call = _call_unit(program, index)
        if call is not None:
            pairs: list[Pair] = [(Op.CALL, call[0])]
            after = call[1]
        else:
            handler = handlers.get(instr.name)
            pairs = handler(context, instr) if handler is not None else [(Op.OTHER, instr.name)]
            after = index + 1
        position += [len(canons)] * (after - index)
        line = instr.positions[0]
        canons += [Canon(op, arg, index, after, line) for op, arg in pairs]
        index = after
    position.append(len(canons))
    return Canonical(canons, position)


def _call_unit(program: Program, index: int) -> tuple[tuple[int, tuple[str, ...]], int] | None:
    """((argument count, keyword names), index behind) of the call that starts here: KW_NAMES?, PRECALL?, CALL or constant, CALL_KW."""
    instrs = program.instrs
    names: object = ()
    if instrs[index].name == "KW_NAMES":
        names = program.consts[instrs[index].arg]
        index += 1
    elif instrs[index].name == "LOAD_CONST":
        follows = index + 1 < len(instrs) and instrs[index + 1].name == "CALL_KW" and index + 1 not in program.jump_targets
        if not follows:
            return None
        names = program.consts[instrs[index].arg]
        assert isinstance(names, tuple)
        return (instrs[index + 1].arg, names), index + 2
    if instrs[index].name == "PRECALL":
        index += 1
    if instrs[index].name != "CALL":
        return None
    assert isinstance(names, tuple)
    return (instrs[index].arg, names), index + 1


# ---- handlers -------------------------------------------------------------------------------------------------


def _plain(op: Op) -> Handler:
    return lambda context, instr: [(op, None)]


def _argument(op: Op) -> Handler:
    return lambda context, instr: [(op, instr.arg)]


def _named(op: Op) -> Handler:
    return lambda context, instr: [(op, context.name(instr.arg))]


def _flag(op: Op) -> Handler:
    return lambda context, instr: [(op, bool(instr.arg & 1))]


def _local(op: Op, raw: str) -> Handler:
    """Locals; a slot that holds a cell is the cell itself when loaded (3.13 has no LOAD_CLOSURE) and nothing we follow otherwise."""

    def handler(context: _Context, instr: ConcreteInstr) -> list[Pair]:
        if context.program.is_cell_slot(instr.arg):
            return [(Op.LOAD_CLOSURE, instr.arg) if raw == "LOAD_FAST" else (Op.OTHER, raw)]
        return [(op, instr.arg)]

    return handler


def _packed(context: _Context, instr: ConcreteInstr) -> list[Pair]:
    pairs: list[Pair] = []
    for name, local in unpack_superinstruction(instr):
        single = instr._replace(name=name, arg=local)
        pairs += _handlers()[name](context, single)
    return pairs


def _load_const(context: _Context, instr: ConcreteInstr) -> list[Pair]:
    return [(Op.LOAD_CONST, context.program.consts[instr.arg])]


def _return_const(context: _Context, instr: ConcreteInstr) -> list[Pair]:
    return [(Op.RETURN_CONST, context.program.consts[instr.arg])]


def _load_global(context: _Context, instr: ConcreteInstr) -> list[Pair]:
    load: Pair = (Op.LOAD_GLOBAL, context.name(instr.arg >> 1))
    if not instr.arg & 1:
        return [load]
    null: Pair = (Op.PUSH_NULL, None)
    return [null, load] if NULL_BELOW_CALLABLE else [load, null]


def _load_attr(context: _Context, instr: ConcreteInstr) -> list[Pair]:
    shift = context.table.name_shift[instr.opcode]
    op = Op.LOAD_METHOD if shift and instr.arg & 1 else Op.LOAD_ATTR
    return [(op, context.name(instr.arg >> shift))]


def _load_super_attr(context: _Context, instr: ConcreteInstr) -> list[Pair]:
    return [(Op.LOAD_SUPER_ATTR, (context.name(instr.arg >> 2), bool(instr.arg & 1), bool(instr.arg & 2)))]


def _binary_op(context: _Context, instr: ConcreteInstr) -> list[Pair]:
    return [(Op.BINARY_OP, context.table.binary_symbols[instr.arg])]


def _compare(context: _Context, instr: ConcreteInstr) -> list[Pair]:
    t = context.table
    return [(Op.COMPARE, (t.compare_symbols[instr.arg >> t.compare_shift], bool(instr.arg & t.compare_bool)))]


def _format_value(context: _Context, instr: ConcreteInstr) -> list[Pair]:
    return [(Op.FORMAT_VALUE, (instr.arg & 3, bool(instr.arg & 4)))]


def _make_function(context: _Context, instr: ConcreteInstr) -> list[Pair]:
    """Before 3.13 one instruction takes all attributes; the topmost (the closure) is set first."""
    pairs: list[Pair] = [(Op.MAKE_FUNCTION, None)]
    if NULL_BELOW_CALLABLE:
        pairs += [(Op.SET_FUNCTION_ATTRIBUTE, flag) for flag in (8, 4, 2, 1) if instr.arg & flag]
    return pairs


def _intrinsic(context: _Context, instr: ConcreteInstr) -> list[Pair]:
    """3.12 turned two instructions into intrinsics (5: unary plus, 6: list to tuple)."""
    op = {5: Op.UNARY_POSITIVE, 6: Op.LIST_TO_TUPLE}.get(instr.arg)
    return [(op, None) if op is not None else (Op.OTHER, f"{instr.name} {instr.arg}")]


def _for_iter(context: _Context, instr: ConcreteInstr) -> list[Pair]:
    assert instr.target is not None
    return [(Op.FOR_ITER, context.loop_end(instr.target))]


def _jump(context: _Context, instr: ConcreteInstr) -> list[Pair]:
    return [(Op.JUMP, (instr.target, "BACKWARD" in instr.name))]


def _pop_jump(kind: str) -> Handler:
    return lambda context, instr: [(Op.POP_JUMP_IF, (kind, instr.target))]


def _jump_or_pop(kind: str) -> Handler:
    return lambda context, instr: [(Op.JUMP_IF_OR_POP, (kind, instr.target))]


def _unpack_ex(context: _Context, instr: ConcreteInstr) -> list[Pair]:
    return [(Op.UNPACK_EX, (instr.arg & 255, instr.arg >> 8))]


@lru_cache(maxsize=1)
def _handlers() -> dict[str, Handler]:
    """Handler by concrete name. Instructions that some version lacks do no harm here."""
    same_plain = (
        "PUSH_NULL BINARY_SUBSCR STORE_SUBSCR DELETE_SUBSCR BINARY_SLICE STORE_SLICE UNARY_POSITIVE UNARY_NEGATIVE UNARY_NOT "
        "UNARY_INVERT TO_BOOL LIST_TO_TUPLE GET_ITER GET_LEN END_FOR POP_TOP RETURN_VALUE LOAD_ASSERTION_ERROR NOP YIELD_VALUE"
    )
    same_argument = (
        "LOAD_DEREF STORE_DEREF DELETE_DEREF LOAD_CLOSURE LOAD_CLASSDEREF BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_MAP "
        "BUILD_CONST_KEY_MAP BUILD_SLICE BUILD_STRING CONVERT_VALUE LIST_APPEND SET_ADD MAP_ADD LIST_EXTEND SET_UPDATE DICT_UPDATE "
        "DICT_MERGE UNPACK_SEQUENCE COPY SWAP SET_FUNCTION_ATTRIBUTE RESUME"
    )
    same_name = "LOAD_NAME STORE_NAME DELETE_NAME STORE_GLOBAL DELETE_GLOBAL LOAD_METHOD STORE_ATTR DELETE_ATTR"
    handlers: dict[str, Handler] = {name: _plain(Op[name]) for name in same_plain.split()}
    handlers.update((name, _argument(Op[name])) for name in same_argument.split())
    handlers.update((name, _named(Op[name])) for name in same_name.split())
    handlers.update(
        {
            "LOAD_FAST": _local(Op.LOAD_LOCAL, "LOAD_FAST"),
            "LOAD_FAST_CHECK": _local(Op.LOAD_LOCAL, "LOAD_FAST_CHECK"),
            "STORE_FAST": _local(Op.STORE_LOCAL, "STORE_FAST"),
            "DELETE_FAST": _local(Op.DELETE_LOCAL, "DELETE_FAST"),
            "LOAD_FAST_AND_CLEAR": _local(Op.LOAD_AND_CLEAR_LOCAL, "LOAD_FAST_AND_CLEAR"),
            "LOAD_FAST_LOAD_FAST": _packed,
            "STORE_FAST_LOAD_FAST": _packed,
            "STORE_FAST_STORE_FAST": _packed,
            "LOAD_CONST": _load_const,
            "RETURN_CONST": _return_const,
            "LOAD_GLOBAL": _load_global,
            "LOAD_ATTR": _load_attr,
            "LOAD_SUPER_ATTR": _load_super_attr,
            "BINARY_OP": _binary_op,
            "COMPARE_OP": _compare,
            "IS_OP": _flag(Op.IS_OP),
            "CONTAINS_OP": _flag(Op.CONTAINS_OP),
            "CALL_FUNCTION_EX": _flag(Op.CALL_FUNCTION_EX),
            "CALL_KW": _argument(Op.CALL_KW_DYNAMIC),
            "RAISE_VARARGS": _argument(Op.RAISE),
            "FORMAT_VALUE": _format_value,
            "FORMAT_SIMPLE": lambda context, instr: [(Op.FORMAT_VALUE, (0, False))],
            "FORMAT_WITH_SPEC": lambda context, instr: [(Op.FORMAT_VALUE, (0, True))],
            "MAKE_FUNCTION": _make_function,
            "CALL_INTRINSIC_1": _intrinsic,
            "FOR_ITER": _for_iter,
            "JUMP_FORWARD": _jump,
            "JUMP_BACKWARD": _jump,
            "JUMP_BACKWARD_NO_INTERRUPT": _jump,
            "JUMP_IF_TRUE_OR_POP": _jump_or_pop(TRUE),
            "JUMP_IF_FALSE_OR_POP": _jump_or_pop(FALSE),
            "UNPACK_EX": _unpack_ex,
        }
    )
    for kind in (TRUE, FALSE, NONE, NOT_NONE):
        for direction in ("", "FORWARD_", "BACKWARD_"):
            handlers[f"POP_JUMP_{direction}IF_{kind.upper()}"] = _pop_jump(kind)
    return handlers
