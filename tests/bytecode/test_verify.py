"""The verifier refuses each fault of code that CPython would not notice, and nothing else."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import CodeType

import pytest

from tierup.bytecode.fields import CodeFields, fields_of
from tierup.bytecode.opcodes import CO_GENERATOR, table
from tierup.bytecode.verify import VerificationError, verify_fields

from .corpus import library
from .rawcode import Instr, encode, fields, function, unit_of

PY311 = sys.version_info < (3, 12)
PY312 = sys.version_info >= (3, 12)
PY313 = sys.version_info >= (3, 13)
only_311 = pytest.mark.skipif(not PY311, reason="3.11 only")
before_313 = pytest.mark.skipif(PY313, reason="before 3.13")
since_312 = pytest.mark.skipif(not PY312, reason="since 3.12")
since_313 = pytest.mark.skipif(not PY313, reason="since 3.13")

TRUE_JUMP = "POP_JUMP_FORWARD_IF_TRUE" if PY311 else "POP_JUMP_IF_TRUE"
BOOL: list[Instr] = ["TO_BOOL"] if PY313 else []


def call(argc: int) -> list[Instr]:
    return [("PRECALL", argc), ("CALL", argc)] if PY311 else [("CALL", argc)]


def callee(name: int = 0) -> list[Instr]:
    """A global as a callee, with its NULL."""
    return [("LOAD_GLOBAL", name << 1 | 1)]


def refused(code: CodeFields, message: str) -> VerificationError:
    with pytest.raises(VerificationError, match=message) as caught:
        verify_fields(code)
    return caught.value


def skip(*instrs: Instr) -> tuple[str, int]:
    """A forward jump over instructions."""
    return "JUMP_FORWARD", unit_of(instrs)


# ---- what must pass


@pytest.mark.timeout(3000)
def test_library_passes_quickly() -> None:
    units = 0
    spent = 0.0
    for code in library():
        raw = fields_of(code)
        before = time.process_time()
        verify_fields(raw)
        spent += time.process_time() - before
        units += len(raw.code) // 2
    # Measured: 2 to 4 microseconds a unit; the bound leaves room for a busy machine.
    assert spent / units < 30e-6


def test_sound_code_passes() -> None:
    verify_fields(function())
    verify_fields(function(*callee(), ("LOAD_CONST", 1), *call(1), "POP_TOP"))
    verify_fields(function(("LOAD_CONST", 1), *BOOL, (TRUE_JUMP, 1), "NOP"))
    assert function().build()  # and it is accepted by the constructor


# ---- 1, 2: opcodes and caches


@pytest.mark.parametrize("op", sorted(set(range(256)) - table().base))
def test_internal_opcodes(op: int) -> None:
    refused(function(bytes((op, 0))), "no base opcode")


def test_every_instruction_needs_its_caches() -> None:
    optable = table()
    for op, count in enumerate(optable.caches):
        if count:
            bare = bytes((op, 0)) + bytes(2 * (count - 1)) + bytes((optable.op("NOP"), 0))
            refused(function(bare), "zero cache units")
            dirty = bytearray(bytes((op, 0)) + bytes(2 * count))
            dirty[-1] = 1
            refused(function(bytes(dirty)), "zero cache units")


def test_cache_cut_off_by_the_end() -> None:
    refused(fields([("RESUME", 0), bytes((table().op("BINARY_OP"), 0))]), "zero cache units")


def test_extended_arg() -> None:
    extended = bytes((table().extended_arg, 0))
    refused(function(extended * 4), "more than three")
    refused(fields([("RESUME", 0), extended]), "ends in EXTENDED_ARG")
    refused(fields([("RESUME", 0), extended * 2]), "ends in EXTENDED_ARG")
    verify_fields(function(extended * 3 + encode(["NOP"])))


@pytest.mark.parametrize("code", [b"", b"\x09"])
def test_code_of_odd_size(code: bytes) -> None:
    refused(fields([("RESUME", 0)], code=code, linetable=b""), "code of")


# ---- 3: jumps


def test_jump_into_a_cache() -> None:
    load: Instr = ("LOAD_GLOBAL", 0)
    refused(function(("JUMP_FORWARD", 1), load, "POP_TOP"), "inside an instruction or its cache")


def test_jump_behind_extended_arg() -> None:
    refused(function(("JUMP_FORWARD", 1), ("LOAD_CONST", 300), "POP_TOP", consts=(None,) * 301), "inside an instruction")


@pytest.mark.parametrize("distance", [2, 3, 4, 200])
def test_jump_past_the_end(distance: int) -> None:
    refused(function(("JUMP_FORWARD", distance)), "outside the code")


def test_jump_before_the_start() -> None:
    refused(function(("JUMP_BACKWARD", 9)), "outside the code")


def test_jump_into_the_prologue() -> None:
    back = 2 + table().caches[table().op("JUMP_BACKWARD")]
    refused(function(("JUMP_BACKWARD", back)), "jumps into the start")


# ---- 4, 5: the parts of a call


@only_311
@pytest.mark.parametrize("between", [["NOP"], ["POP_TOP", ("LOAD_CONST", 1)], [("LOAD_FAST", 0)]])
def test_precall_parted_from_call(between: list[Instr]) -> None:
    error = refused(
        function(*callee(), ("LOAD_CONST", 1), ("PRECALL", 1), *between, ("CALL", 1), "POP_TOP"), "PRECALL is not followed by CALL"
    )
    assert "-->" in str(error) and "PRECALL 1" in str(error) and "raw" in str(error)


@only_311
def test_precall_and_call_disagree() -> None:
    refused(function(*callee(), ("LOAD_CONST", 1), ("PRECALL", 1), ("CALL", 0), "POP_TOP"), "PRECALL 1 is followed by CALL 0")


@only_311
def test_lone_precall_and_lone_call() -> None:
    refused(function(*callee(), ("PRECALL", 0), "POP_TOP", "POP_TOP"), "not followed by CALL")
    refused(function(*callee(), ("CALL", 0), "POP_TOP"), "CALL without its PRECALL")


@only_311
def test_jump_between_precall_and_call() -> None:
    jump = skip(*callee(), ("PRECALL", 0))
    refused(function(*callee(), jump, *callee(), ("PRECALL", 0), ("CALL", 0), "POP_TOP"), "jump between PRECALL and CALL")


@only_311
def test_handler_between_precall_and_call() -> None:
    code: list[Instr] = [("RESUME", 0), *callee(), ("PRECALL", 0)]
    row = (0, 1, unit_of(code), 0, False)
    refused(fields([*code, ("CALL", 0), "RETURN_VALUE"], [row]), "handler starts between")


@before_313
def test_keyword_names_without_a_call() -> None:
    refused(function(*callee(), ("LOAD_CONST", 1), ("KW_NAMES", 3), "NOP", *call(1), "POP_TOP"), "KW_NAMES is not followed")
    refused(function(("KW_NAMES", 3)), "KW_NAMES is not followed")


@before_313
@pytest.mark.parametrize("constant", [0, 1, 4, 5])
def test_keyword_names_that_are_none(constant: int) -> None:
    consts = (None, 1, True, ("k",), ("k", 2), ["k"])
    with pytest.raises(VerificationError, match=r"no tuple of names|unhashable"):
        verify_fields(function(*callee(), ("LOAD_CONST", 1), ("KW_NAMES", constant), *call(1), "POP_TOP", consts=consts))


@before_313
def test_more_keyword_names_than_arguments() -> None:
    refused(function(*callee(), ("KW_NAMES", 3), *call(0), "POP_TOP"), "1 keyword names for a call with 0")


@before_313
def test_jump_between_keyword_names_and_call() -> None:
    first = [*callee(), ("LOAD_CONST", 1)]
    jump = skip(*first, ("KW_NAMES", 3))
    refused(function(*first, jump, *first, ("KW_NAMES", 3), *call(1), "POP_TOP"), "jump between KW_NAMES")


# ---- 6: NULL and callable


def test_null_in_the_callable_slot() -> None:
    wrong: list[Instr] = ["PUSH_NULL", ("LOAD_GLOBAL", 0)]
    if not PY313:
        wrong.reverse()
    refused(function(*wrong, ("LOAD_CONST", 1), *call(1), "POP_TOP"), "callable may be NULL")
    verify_fields(function(*reversed(wrong), ("LOAD_CONST", 1), *call(1), "POP_TOP"))


def test_null_as_an_argument() -> None:
    refused(function(*callee(), "PUSH_NULL", *call(1), "POP_TOP"), "may be NULL")


@pytest.mark.parametrize(
    "taker",
    ["POP_TOP", "UNARY_INVERT", ("LOAD_ATTR", 0), ("BUILD_LIST", 1), "GET_ITER", "RETURN_VALUE", ("STORE_GLOBAL", 0), ("RAISE_VARARGS", 1)],
)
def test_null_as_an_operand(taker: Instr) -> None:
    refused(function("PUSH_NULL", taker), "NULL")


def test_method_pair_used_as_a_value() -> None:
    method: Instr = ("LOAD_METHOD", 0) if PY311 else ("LOAD_ATTR", 1)
    refused(function(("LOAD_CONST", 1), method, "POP_TOP", "POP_TOP"), "may be NULL")
    verify_fields(function(("LOAD_CONST", 1), method, *call(0), "POP_TOP"))


def test_swapped_null() -> None:
    refused(function(*callee(), ("SWAP", 2), *call(0), "POP_TOP"), "callable may be NULL")
    verify_fields(function(*callee(), ("SWAP", 2), ("SWAP", 2), *call(0), "POP_TOP"))


def test_call_function_ex_needs_its_null() -> None:
    load: list[Instr] = [("LOAD_GLOBAL", 0), ("LOAD_CONST", 1), ("BUILD_TUPLE", 0), ("CALL_FUNCTION_EX", 0), "POP_TOP"]
    refused(function(*load), "is not NULL")
    verify_fields(function(*callee(), ("BUILD_TUPLE", 0), ("CALL_FUNCTION_EX", 0), "POP_TOP"))


# ---- 7, 8: depth


def test_stack_size() -> None:
    body: list[Instr] = [("LOAD_CONST", 1)] * 5 + [("BUILD_TUPLE", 5), "POP_TOP"]
    verify_fields(function(*body, stacksize=5))
    error = refused(function(*body, stacksize=4), "depth 5 exceeds the stack size 4")
    assert error.unit == 5


def test_handler_counts_for_the_stack_size() -> None:
    code: list[Instr] = [("RESUME", 0), "NOP", ("LOAD_CONST", 0), "RETURN_VALUE", "PUSH_EXC_INFO", "POP_TOP", "POP_EXCEPT"]
    code += [("LOAD_CONST", 0), "RETURN_VALUE"]
    verify_fields(fields(code, [(1, 2, 4, 0, False)], stacksize=2))
    refused(fields(code, [(1, 2, 4, 0, False)], stacksize=1), "exceeds the stack size")


@pytest.mark.parametrize("taker", ["POP_TOP", ("COPY", 1), ("SWAP", 2), ("BUILD_TUPLE", 1), ("STORE_FAST", 0), "POP_EXCEPT", "UNARY_NOT"])
def test_underflow(taker: Instr) -> None:
    refused(function(taker), "stack slots, there are 0")


def test_values_left_at_return() -> None:
    refused(function(("LOAD_CONST", 1)), "RETURN_VALUE with 2")


@since_312
def test_values_left_at_return_const() -> None:
    refused(fields([("RESUME", 0), ("LOAD_CONST", 1), ("RETURN_CONST", 0)]), "RETURN_CONST with 1")


def test_depths_that_disagree() -> None:
    refused(function(("LOAD_CONST", 1), *BOOL, (TRUE_JUMP, 1), ("LOAD_CONST", 1)), "with depth 1, elsewhere it is 0")


# ---- 9: exception rows


def _handled(row: tuple[int, int, int, int, bool], *body: Instr, handler: Sequence[Instr] = ("RERAISE",)) -> CodeFields:
    code: list[Instr] = [("RESUME", 0), *body, ("LOAD_CONST", 0), "RETURN_VALUE", *handler]
    start, end, _, depth, lasti = row
    return fields(code, [(start, end, unit_of(code[: -len(handler)]), depth, lasti)])


def test_row_keeps_more_than_there_is() -> None:
    # With a depth of one too many the handler would find the offset where the value is.
    verify_fields(_handled((2, 3, 0, 0, False), ("LOAD_CONST", 1), ("STORE_GLOBAL", 0)))
    refused(_handled((2, 3, 0, 1, False), ("LOAD_CONST", 1), ("STORE_GLOBAL", 0)), "keeps 1 stack slots")
    refused(_handled((1, 2, 0, 5, False), "NOP"), "keeps 5 stack slots")


def test_row_keeps_too_little_for_its_handler() -> None:
    handler: list[Instr] = ["POP_TOP", "POP_TOP", ("LOAD_CONST", 0), "RETURN_VALUE"]
    body: list[Instr] = [("LOAD_CONST", 1), "NOP", "POP_TOP"]
    verify_fields(_handled((2, 3, 0, 1, False), *body, handler=handler))
    refused(_handled((2, 3, 0, 0, False), *body, handler=handler), "needs 1 stack slots")


def test_rows_must_lie_on_instructions() -> None:
    body: list[Instr] = [("LOAD_GLOBAL", 0), "POP_TOP", ("LOAD_CONST", 0), "RETURN_VALUE", "RERAISE"]
    target = 1 + unit_of(body) - 1
    for row in [(2, target, target, 0, False), (1, 3, target, 0, False), (1, target, 3, 0, False)]:
        refused(fields([("RESUME", 0), *body], [row]), "inside an instruction or its cache")
    for row in [
        (1, 400, target, 0, False),
        (1, 2 + target, target, 0, False),
        (1, target, target + 1, 0, False),
        (1, target, 900, 0, False),
    ]:
        refused(fields([("RESUME", 0), *body], [row]), "outside the code")


def test_rows_must_be_sorted() -> None:
    body: list[Instr] = ["NOP", "NOP", ("LOAD_CONST", 0), "RETURN_VALUE", "RERAISE"]
    good = [(1, 2, 5, 0, False), (2, 3, 5, 0, False)]
    verify_fields(fields([("RESUME", 0), *body], good))
    refused(fields([("RESUME", 0), *body], good[::-1]), "out of order")
    refused(fields([("RESUME", 0), *body], [(1, 3, 5, 0, False), (2, 4, 5, 0, False)]), "out of order")
    refused(fields([("RESUME", 0), *body], [(2, 2, 5, 0, False)]), "empty")


def test_damaged_exception_table() -> None:
    refused(function("NOP", exceptiontable=b"\x81\x01\x02"), "cut short")
    refused(function("NOP", exceptiontable=b"\x01\x01\x02\x00"), "misplaced")


# ---- 10: unbound locals


@since_312
def test_load_of_an_unbound_local() -> None:
    refused(function(("LOAD_FAST", 0), "POP_TOP"), "may be unbound")
    verify_fields(function(("LOAD_FAST", 0), "POP_TOP", argcount=1))
    verify_fields(function(("LOAD_CONST", 1), ("STORE_FAST", 0), ("LOAD_FAST", 0), "POP_TOP"))
    verify_fields(function(("LOAD_FAST_CHECK", 0), "POP_TOP", ("LOAD_FAST", 0), "POP_TOP"))


@only_311
def test_load_of_an_unbound_local_is_checked_by_311() -> None:
    verify_fields(function(("LOAD_FAST", 0), "POP_TOP"))


@since_312
def test_local_bound_on_one_path_only() -> None:
    bind: list[Instr] = [("LOAD_CONST", 1), ("STORE_FAST", 0)]
    refused(function(("LOAD_CONST", 1), *BOOL, (TRUE_JUMP, 2), *bind, ("LOAD_FAST", 0), "POP_TOP"), "may be unbound")


@since_312
@pytest.mark.parametrize("kill", [[("DELETE_FAST", 0)], [("LOAD_FAST_AND_CLEAR", 0), "POP_TOP"]])
def test_local_deleted(kill: list[Instr]) -> None:
    refused(function(*kill, ("LOAD_FAST", 0), "POP_TOP", argcount=1), "may be unbound")


@since_312
def test_local_unbound_in_a_handler() -> None:
    body: list[Instr] = ["NOP", ("LOAD_CONST", 1), ("STORE_FAST", 0)]
    handler: list[Instr] = ["POP_TOP", ("LOAD_FAST", 0), "RETURN_VALUE"]
    refused(_handled((1, 4, 0, 0, False), *body, handler=handler), "may be unbound")
    refused(_handled((3, 4, 0, 0, False), *body, handler=handler), "may be unbound")
    verify_fields(_handled((4, 5, 0, 0, False), *body, handler=handler))


@since_312
def test_cleared_local_comes_back_unbound() -> None:
    body: list[Instr] = [("LOAD_FAST_AND_CLEAR", 0), ("STORE_FAST", 0), ("LOAD_FAST", 0), "POP_TOP"]
    refused(function(*body), "may be unbound")
    verify_fields(function(*body, argcount=1))


@since_313
def test_packed_loads() -> None:
    refused(function(("LOAD_FAST_LOAD_FAST", 0x01), "POP_TOP", "POP_TOP", argcount=1), "may be unbound")
    verify_fields(function(("LOAD_FAST_LOAD_FAST", 0x01), "POP_TOP", "POP_TOP", argcount=2))
    refused(function(("LOAD_FAST_LOAD_FAST", 0x02), "POP_TOP", "POP_TOP", argcount=2), "no two locals")
    refused(function(("LOAD_FAST_LOAD_FAST", 0x101), "POP_TOP", "POP_TOP", argcount=2), "no two locals")
    verify_fields(function(("LOAD_CONST", 0), ("STORE_FAST_LOAD_FAST", 0x00), "POP_TOP"))
    refused(function(("LOAD_CONST", 0), ("STORE_FAST_LOAD_FAST", 0x01), "POP_TOP"), "may be unbound")


# ---- 11: operands


@pytest.mark.parametrize(
    ("instr", "message"),
    [
        (("LOAD_FAST", 2), "slots|no local"),
        (("STORE_FAST", 2), "slots|no local"),
        (("DELETE_FAST", 9), "no local"),
        (("LOAD_CONST", 4), "4 constants"),
        (("LOAD_NAME", 2), "2 names"),
        (("LOAD_GLOBAL", 4), "2 names"),
        (("STORE_ATTR", 2), "2 names"),
        (("LOAD_DEREF", 0), "no cell"),
        (("STORE_DEREF", 7), "no cell"),
        (("MAKE_CELL", 0), "no cell"),
        (("BINARY_OP", 26), "not in 0..25"),
        (("COMPARE_OP", 200 if not PY313 else 255), "no comparison"),
        (("IS_OP", 2), "not in"),
        (("CONTAINS_OP", 3), "not in"),
        (("BUILD_SLICE", 1), "not in 2..3"),
        (("COPY", 0), "not in"),
        (("SWAP", 0), "not in"),
        (("RAISE_VARARGS", 3), "not in"),
        (("RERAISE", 3), "not in"),
        (("CALL_FUNCTION_EX", 2), "not in"),
        (("GET_AWAITABLE", 3), "not in"),
        (("LIST_APPEND", 0), "not in"),
        (("MAKE_FUNCTION", 16), "not in"),
    ],
)
def test_operand_out_of_range(instr: tuple[str, int], message: str) -> None:
    error = refused(function(*[("LOAD_CONST", 1)] * 5, instr), message)
    assert error.reason.startswith(instr[0])


@since_312
@pytest.mark.parametrize(
    ("name", "arg"), [("CALL_INTRINSIC_1", 0), ("CALL_INTRINSIC_1", 12), ("CALL_INTRINSIC_2", 0), ("CALL_INTRINSIC_2", 9)]
)
def test_intrinsics(name: str, arg: int) -> None:
    refused(function(*[("LOAD_CONST", 1)] * 2, (name, arg)), "not in 1")


def test_arguments_do_not_fit_the_locals() -> None:
    refused(function(argcount=3), "do not fit")
    refused(function(argcount=1, posonlyargcount=2), "do not fit")
    refused(function(argcount=2, flags=3 | 4), "do not fit")


# ---- 12: cells


def _inner(*freevars: str) -> CodeType:
    start: list[Instr] = [("COPY_FREE_VARS", len(freevars))] if freevars else []
    return fields([*start, ("RESUME", 0), ("LOAD_CONST", 0), "RETURN_VALUE"], freevars=freevars).build()


def test_free_variables() -> None:
    end: list[Instr] = [("RESUME", 0), ("LOAD_DEREF", 2), "RETURN_VALUE"]
    verify_fields(fields([("COPY_FREE_VARS", 1), *end], freevars=("f",)))
    refused(fields(end, freevars=("f",)), "does not start with COPY_FREE_VARS")
    refused(fields([("COPY_FREE_VARS", 2), *end], freevars=("f",)), "1 free variables")
    refused(fields([("COPY_FREE_VARS", 1), *end]), "0 free variables|no cell")
    refused(function(("COPY_FREE_VARS", 0)), "behind the start")


def test_own_cells() -> None:
    end: list[Instr] = [("RESUME", 0), ("LOAD_DEREF", 2), "RETURN_VALUE"]
    verify_fields(fields([("MAKE_CELL", 2), *end], cellvars=("c",)))
    refused(fields(end, cellvars=("c",)), "no MAKE_CELL for c")


def _closure(*loads: Instr, count: int = 1, code: CodeType | None = None, flagged: bool = True) -> CodeFields:
    code = _inner("c") if code is None else code
    make: list[Instr] = [("LOAD_CONST", 1), ("MAKE_FUNCTION", 8 if flagged and not PY313 else 0)]
    if PY313 and flagged:
        make.append(("SET_FUNCTION_ATTRIBUTE", 8))
    body: list[Instr] = [("MAKE_CELL", 2), ("RESUME", 0), *loads, ("BUILD_TUPLE", count), *make, "RETURN_VALUE"]
    return fields(body, cellvars=("c",), consts=(None, code))


def test_closures() -> None:
    cell: Instr = ("LOAD_FAST", 2) if PY313 else ("LOAD_CLOSURE", 2)
    verify_fields(_closure(cell))
    refused(_closure(cell, cell, count=2), "no tuple of 1 cells")
    refused(_closure(("LOAD_CONST", 0)), "no cell")
    refused(_closure(cell, code=_inner("c", "d")), "no tuple of 2 cells")
    refused(_closure(cell, code=_inner()), "0 free variables, but a closure")
    refused(_closure(cell, flagged=False), "1 free variables, but no closure")
    refused(_closure(cell, code=1), "does not follow a code constant")  # type: ignore[arg-type]


@before_313
def test_closure_of_a_local() -> None:
    refused(_closure(("LOAD_CLOSURE", 0)), "no cell")


# ---- 13, 14: the start


GENERATOR = CO_GENERATOR | 3
STOP: list[Instr] = [("CALL_INTRINSIC_1", 3), ("RERAISE", 1)] if PY312 else []


def _generator(*start: Instr, body: Sequence[Instr] = (), flags: int = GENERATOR, covered: bool = True) -> CodeFields:
    code: list[Instr] = [*start, *body, ("LOAD_CONST", 0), "RETURN_VALUE"]
    end = unit_of(code)
    rows = [(2, end, end, 0, True)] if STOP and covered else []
    return fields([*code, *STOP], rows, flags=flags)


START: list[Instr] = ["RETURN_GENERATOR", "POP_TOP", ("RESUME", 0)]
YIELD: list[Instr] = [("LOAD_CONST", 0), ("YIELD_VALUE", 0), ("RESUME", 1), "POP_TOP"]


def test_generators() -> None:
    verify_fields(_generator(*START, body=YIELD))
    refused(_generator(("RESUME", 0), covered=False), "must create itself")
    refused(_generator("NOP", *START[1:], covered=False), "must create itself")
    refused(_generator(*START, body=YIELD, flags=3), "YIELD_VALUE in code that is no generator|first instruction")
    refused(_generator(*START, body=[("LOAD_CONST", 0), "YIELD_VALUE", "POP_TOP"]), "YIELD_VALUE is not followed by RESUME")
    refused(_generator(*START, body=[("LOAD_CONST", 0), "YIELD_VALUE", ("RESUME", 0), "POP_TOP"]), "RESUME")
    refused(_generator(*START, body=["NOP", ("RESUME", 1)]), "does not follow YIELD_VALUE")
    refused(function(("LOAD_CONST", 0), "YIELD_VALUE", ("RESUME", 1), "POP_TOP"), "no generator")
    refused(function("RETURN_GENERATOR", "POP_TOP"), "behind the start")


@since_312
def test_generator_without_stop_iteration_handler() -> None:
    refused(_generator(*START, body=YIELD, covered=False), "StopIteration handler")


def test_resume() -> None:
    end: list[Instr] = [("LOAD_CONST", 0), "RETURN_VALUE"]
    refused(fields(end), "not RESUME 0")
    refused(fields(["NOP", ("RESUME", 0), *end]), "not RESUME 0")
    refused(fields([("RESUME", 1), *end]), "not RESUME 0|does not follow")
    refused(function(("RESUME", 0)), "behind the start")


# ---- 15: ends of loops


@since_312
def test_for_iter_target() -> None:
    loop: list[Instr] = [("LOAD_CONST", 1), "GET_ITER", ("FOR_ITER", 3 if PY313 else 2), "POP_TOP"]
    back = 2 + 1 + table().caches[table().op("FOR_ITER")] + table().caches[table().op("JUMP_BACKWARD")]
    loop.append(("JUMP_BACKWARD", back))
    end: list[Instr] = ["END_FOR", "POP_TOP"] if PY313 else ["END_FOR"]
    verify_fields(function(*loop, *end))
    refused(function(*loop, "POP_TOP", "POP_TOP"), "FOR_ITER jumps to")
    if PY313:
        refused(function(*loop, "END_FOR", "NOP"), "FOR_ITER jumps to")


@since_312
def test_send_target() -> None:
    loop: list[Instr] = [("LOAD_CONST", 1), ("LOAD_CONST", 0), ("SEND", 3), ("YIELD_VALUE", 0), ("RESUME", 2)]
    loop.append(("JUMP_BACKWARD_NO_INTERRUPT", 5))
    verify_fields(_generator(*START, body=[*loop, "END_SEND", "POP_TOP"]))
    refused(_generator(*START, body=[*loop, "POP_TOP", "POP_TOP"]), "SEND jumps to")


# ---- 16: exact bools


@since_313
@pytest.mark.parametrize(
    ("operand", "fine"),
    [
        ([("LOAD_CONST", 1)], False),
        ([("LOAD_CONST", 2)], True),
        ([("LOAD_CONST", 1), "TO_BOOL"], True),
        ([("LOAD_CONST", 1), "TO_BOOL", ("COPY", 1), ("SWAP", 2), "POP_TOP"], True),
        ([("LOAD_CONST", 1), "TO_BOOL", ("LOAD_CONST", 1), ("SWAP", 2), "POP_TOP"], False),
        ([("LOAD_CONST", 1), ("LOAD_CONST", 1), ("COMPARE_OP", 88)], True),
        ([("LOAD_CONST", 1), ("LOAD_CONST", 1), ("COMPARE_OP", 72)], False),
        ([("LOAD_CONST", 1), ("LOAD_CONST", 1), ("CONTAINS_OP", 0)], True),
        ([("LOAD_CONST", 1), ("LOAD_CONST", 1), ("IS_OP", 1)], True),
        ([("LOAD_CONST", 1), "UNARY_NEGATIVE"], False),
    ],
)
def test_branches_need_exact_bools(operand: list[Instr], fine: bool) -> None:
    for taker in (("POP_JUMP_IF_TRUE", 0), ("POP_JUMP_IF_FALSE", 0), "UNARY_NOT"):
        code = function(*operand, taker, *(["POP_TOP"] if taker == "UNARY_NOT" else []))
        if fine:
            verify_fields(code)
        else:
            refused(code, "not certainly True or False")


@since_313
def test_bool_on_one_path_only() -> None:
    test: list[Instr] = [("LOAD_CONST", 2), ("LOAD_CONST", 2), ("POP_JUMP_IF_TRUE", 2), "POP_TOP", ("LOAD_CONST", 1)]
    refused(function(*test, ("POP_JUMP_IF_TRUE", 0)), "not certainly True or False")


# ---- 19, 20, 21


@pytest.mark.parametrize("last", [[], ["NOP"], [("LOAD_CONST", 0)], [("LOAD_GLOBAL", 0)]])
def test_falls_off_the_end(last: list[Instr]) -> None:
    refused(fields([("RESUME", 0), *last]), "falls off the end")


def test_line_table() -> None:
    refused(function(linetable=b""), "covers 0 of 3")
    refused(function(linetable=b"\xf8"), "covers 1 of 3")
    refused(function(linetable=b"\xfc"), "covers 5 of 3")
    refused(function(linetable=b"\xf2\xe8\x40"), "malformed at byte 0")
    refused(function(linetable=b"\x00"), "malformed at byte 0")


@pytest.mark.parametrize("value", [[], {}, set(), bytearray()])
def test_unhashable_constant(value: object) -> None:
    refused(function(consts=(None, value)), "unhashable")


def test_error_shows_the_place() -> None:
    body = ["NOP"] * 30
    error = refused(function(*body, "POP_TOP", *body), "needs 1")
    lines = str(error).splitlines()
    assert lines[0].startswith("raw (<raw>:1): POP_TOP needs 1")
    marked = [line for line in lines if line.startswith(" -->")]
    assert marked == [" -->    31 POP_TOP 0"] and error.unit == 31
    assert 8 < len(lines) < 16
