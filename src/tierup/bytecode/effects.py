"""Stack effect of every instruction, by name and operand: how deep it looks, how much it pops, how much it pushes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from tierup.bytecode.opcodes import OpTable, table

Effect = tuple[int, int, int]
"""(slots that must exist, popped, pushed) when the instruction falls through."""
Rule = Effect | Callable[[int], Effect]


def _pop_push(pops: int, pushes: int) -> Effect:
    return pops, pops, pushes


def _names(text: str, rule: Rule) -> dict[str, Rule]:
    return dict.fromkeys(text.split(), rule)


def _slice_parts(arg: int) -> int:
    return 3 if arg == 3 else 2


def _flag_count(arg: int) -> int:
    return (arg & 15).bit_count()


_COMMON: Final[dict[str, Rule]] = {
    **_names("NOP RESUME KW_NAMES MAKE_CELL COPY_FREE_VARS SETUP_ANNOTATIONS", (0, 0, 0)),
    **_names("DELETE_NAME DELETE_GLOBAL DELETE_FAST DELETE_DEREF JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT", (0, 0, 0)),
    **_names("PUSH_NULL LOAD_CONST LOAD_NAME LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR LOAD_CLOSURE LOAD_DEREF", (0, 0, 1)),
    **_names("LOAD_CLASSDEREF LOAD_LOCALS LOAD_BUILD_CLASS LOAD_ASSERTION_ERROR RETURN_GENERATOR", (0, 0, 1)),
    **_names("LOAD_FAST_LOAD_FAST", (0, 0, 2)),
    **_names("POP_TOP STORE_NAME STORE_GLOBAL STORE_FAST STORE_DEREF RETURN_VALUE PRINT_EXPR IMPORT_STAR POP_EXCEPT", (1, 1, 0)),
    **_names("POP_JUMP_IF_FALSE POP_JUMP_IF_TRUE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE", (1, 1, 0)),
    **_names("POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_TRUE POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE", (1, 1, 0)),
    **_names("POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE", (1, 1, 0)),
    **_names("JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP DELETE_ATTR", (1, 1, 0)),
    "RETURN_CONST": (0, 0, 0),
    **_names("UNARY_POSITIVE UNARY_NEGATIVE UNARY_NOT UNARY_INVERT TO_BOOL GET_ITER GET_YIELD_FROM_ITER GET_AITER", (1, 1, 1)),
    **_names(
        "GET_AWAITABLE LIST_TO_TUPLE ASYNC_GEN_WRAP YIELD_VALUE FORMAT_SIMPLE CONVERT_VALUE CALL_INTRINSIC_1 STORE_FAST_LOAD_FAST",
        (1, 1, 1),
    ),
    **_names("GET_AWAITABLE LOAD_FROM_DICT_OR_GLOBALS LOAD_FROM_DICT_OR_DEREF", (1, 1, 1)),
    **_names("BINARY_OP BINARY_SUBSCR COMPARE_OP IS_OP CONTAINS_OP FORMAT_WITH_SPEC CALL_INTRINSIC_2", (2, 2, 1)),
    **_names("PREP_RERAISE_STAR END_SEND IMPORT_NAME SET_FUNCTION_ATTRIBUTE", (2, 2, 1)),
    "CHECK_EXC_MATCH": (2, 1, 1),
    "CHECK_EG_MATCH": (2, 2, 2),
    **_names("DELETE_SUBSCR STORE_ATTR STORE_FAST_STORE_FAST END_ASYNC_FOR", (2, 2, 0)),
    "STORE_SUBSCR": (3, 3, 0),
    "BINARY_SLICE": (3, 3, 1),
    "STORE_SLICE": (4, 4, 0),
    **_names("PUSH_EXC_INFO BEFORE_WITH BEFORE_ASYNC_WITH", (1, 1, 2)),
    **_names("GET_LEN MATCH_MAPPING MATCH_SEQUENCE IMPORT_FROM GET_ANEXT", (1, 0, 1)),
    "MATCH_KEYS": (2, 0, 1),
    "MATCH_CLASS": (3, 3, 1),
    "CLEANUP_THROW": (3, 3, 2),
    "WITH_EXCEPT_START": (4, 0, 1),
    "LOAD_METHOD": (1, 1, 2),
    "LOAD_GLOBAL": lambda a: (0, 0, 1 + (a & 1)),
    "LOAD_SUPER_ATTR": lambda a: (3, 3, 1 + (a & 1)),
    "FOR_ITER": (1, 1, 2),
    "SEND": (2, 2, 2),
    "RERAISE": lambda a: (1 + a, 1, 0),
    "RAISE_VARARGS": lambda a: (a, a, 0),
    "COPY": lambda a: (a, 0, 1),
    "SWAP": lambda a: (a, 0, 0),
    **_names("BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_STRING", lambda a: (a, a, 1)),
    "BUILD_MAP": lambda a: (2 * a, 2 * a, 1),
    "BUILD_CONST_KEY_MAP": lambda a: (a + 1, a + 1, 1),
    "BUILD_SLICE": lambda a: (_slice_parts(a), _slice_parts(a), 1),
    "FORMAT_VALUE": lambda a: (2, 2, 1) if a & 4 else (1, 1, 1),
    "UNPACK_SEQUENCE": lambda a: (1, 1, a),
    "UNPACK_EX": lambda a: (1, 1, (a & 255) + 1 + (a >> 8)),
    **_names("LIST_APPEND SET_ADD LIST_EXTEND SET_UPDATE DICT_UPDATE", lambda a: (a + 1, 1, 0)),
    # DICT_MERGE also looks at the callable for its error message: below the dict stand NULL, callable, args (3 slots).
    "DICT_MERGE": lambda a: (a + 4, 1, 0),
    "MAP_ADD": lambda a: (a + 2, 2, 0),
    "PRECALL": lambda a: (a + 2, 0, 0),
    "CALL": lambda a: (a + 2, a + 2, 1),
    "CALL_KW": lambda a: (a + 3, a + 3, 1),
    "CALL_FUNCTION_EX": lambda a: (3 + (a & 1), 3 + (a & 1), 1),
}

_BEFORE_312: Final[dict[str, Rule]] = {"LOAD_ATTR": (1, 1, 1)}
_SINCE_312: Final[dict[str, Rule]] = {"LOAD_ATTR": lambda a: (1, 1, 1 + (a & 1))}
_BEFORE_313: Final[dict[str, Rule]] = {"END_FOR": (2, 2, 0), "MAKE_FUNCTION": lambda a: (1 + _flag_count(a), 1 + _flag_count(a), 1)}
_SINCE_313: Final[dict[str, Rule]] = {"END_FOR": (1, 1, 0), "MAKE_FUNCTION": (1, 1, 1)}

# 3.11: the jump of FOR_ITER drops the iterator, that of SEND the receiver, that of JUMP_IF_..._OR_POP keeps the value.
_JUMP_EXTRA_ALL: Final = {"JUMP_IF_FALSE_OR_POP": 1, "JUMP_IF_TRUE_OR_POP": 1}
_JUMP_EXTRA_311: Final = {"FOR_ITER": -2, "SEND": -1}


class Effects:
    """The running version's effects by opcode number."""

    def __init__(self, optable: OpTable) -> None:
        rules = dict(_COMMON)
        rules.update(_SINCE_312 if optable.version >= (3, 12) else _BEFORE_312)
        rules.update(_SINCE_313 if optable.version >= (3, 13) else _BEFORE_313)
        self.fixed: list[Effect | None] = [None] * 256
        self.variable: list[Callable[[int], Effect] | None] = [None] * 256
        self.jump_extra: list[int] = [0] * 256
        """What the jump edge adds to the depth after falling through."""
        for name, op in optable.opmap.items():
            if op == optable.extended_arg:
                continue
            rule = rules[name]
            if callable(rule):
                self.variable[op] = rule
            else:
                self.fixed[op] = rule
        extra = dict(_JUMP_EXTRA_ALL)
        if optable.version < (3, 12):
            extra.update(_JUMP_EXTRA_311)
        for name, delta in extra.items():
            if name in optable.opmap:
                self.jump_extra[optable.opmap[name]] = delta

    def of(self, op: int, arg: int) -> Effect:
        """Effect of falling through the instruction."""
        fixed = self.fixed[op]
        if fixed is not None:
            return fixed
        rule = self.variable[op]
        assert rule is not None, op
        return rule(arg)


@lru_cache(maxsize=1)
def effects() -> Effects:
    """The running interpreter's stack effects."""
    return Effects(table())
