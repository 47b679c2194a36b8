"""Random damage to sound code: the verifier answers with nothing but VerificationError, and what it lets through does not crash.

It does not know the types of operands, so the functions and the damage keep to instructions that check those themselves.
"""

from __future__ import annotations

import os
import random
import resource
import signal
from dataclasses import replace
from types import CodeType, FunctionType
from typing import Any, NoReturn

import pytest

from tierup.bytecode.fields import CodeFields, fields_of
from tierup.bytecode.opcodes import table
from tierup.bytecode.structure import scan
from tierup.bytecode.verify import VerificationError, verify_fields

from .corpus import FULL, walk

SOURCE = """
def a(x, y=1):
    z = 0
    while x:
        if len(str(x)) > 2 and y or z < 3:
            z = z + 1
        elif not x is None:
            y = max(z, 1)
        else:
            del y
        x = x.__class__(0) if z > 2 else min(x, z, key=abs) if z == 7 else None
    return z, y, [x, y], x == y

def b(x):
    y = x
    def f(): return y
    y = 1
    z = y
    if x:
        q = x
    w = len(z) if x is None else q
    del q
    return w, z, x.real, y

def c(x, *r, k=3, **kw):
    i = 0
    while True:
        i += 1
        if i in (3, 4):
            continue
        if i > 5:
            break
        x = i if x else -i
        a, b = i, x
        a, b = b, a
    return x < i < 10, a, not b, r, kw, r[:1], str(k).upper()
"""
# They trust the type of a stack value, or leave the interpreter's exception state behind.
_TRUSTING = (
    "LIST_APPEND LIST_EXTEND SET_ADD SET_UPDATE MAP_ADD DICT_UPDATE DICT_MERGE FOR_ITER SEND BUILD_CONST_KEY_MAP BUILD_MAP BUILD_STRING "
    "POP_EXCEPT PUSH_EXC_INFO RERAISE CHECK_EXC_MATCH CHECK_EG_MATCH WITH_EXCEPT_START MATCH_KEYS MATCH_CLASS LIST_TO_TUPLE END_FOR "
    "CALL_FUNCTION_EX SET_FUNCTION_ATTRIBUTE MAKE_FUNCTION CALL_KW PREP_RERAISE_STAR END_ASYNC_FOR CLEANUP_THROW CALL_INTRINSIC_1 "
    "CALL_INTRINSIC_2 LOAD_BUILD_CLASS LOAD_CLASSDEREF LOAD_FROM_DICT_OR_GLOBALS LOAD_FROM_DICT_OR_DEREF IMPORT_NAME IMPORT_FROM "
    "IMPORT_STAR GET_AWAITABLE GET_ANEXT GET_AITER GET_YIELD_FROM_ITER YIELD_VALUE PRINT_EXPR SETUP_ANNOTATIONS LOAD_LOCALS LOAD_NAME "
    "STORE_NAME DELETE_NAME END_SEND BEFORE_WITH BEFORE_ASYNC_WITH ASYNC_GEN_WRAP FORMAT_VALUE FORMAT_WITH_SPEC FORMAT_SIMPLE "
    "MATCH_MAPPING MATCH_SEQUENCE GET_LEN LOAD_SUPER_ATTR RETURN_GENERATOR DELETE_DEREF"
)
TRUSTING = frozenset(table().opmap[name] for name in _TRUSTING.split() if table().has(name))
HARMLESS = sorted(table().base - TRUSTING)
CODES = [c for c in walk(compile(SOURCE, "mutants", "exec")) if c.co_flags & 1]
TRIES = 20_000 if FULL else 800


def mutant(code: CodeType, rng: random.Random) -> CodeFields:
    fields = fields_of(code)
    spans = scan(fields).starts
    data = bytearray(fields.code)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        unit = 2 * rng.randrange(len(data) // 2)
        kind = rng.randrange(4)
        if kind == 0:
            data[unit] = rng.choice(HARMLESS)
        elif kind == 1:
            data[unit + 1] = rng.choice((0, 1, 2, 3, rng.randrange(256)))
        else:
            swap_instructions(data, spans, rng, copy=kind == 2)
    table_ = bytearray(fields.exceptiontable)
    if table_ and rng.random() < 0.2:
        table_[rng.randrange(len(table_))] ^= 1 << rng.randrange(7)
    size = fields.stacksize - (rng.random() < 0.05)
    return replace(fields, code=bytes(data), exceptiontable=bytes(table_), stacksize=size)


def swap_instructions(data: bytearray, spans: list[int], rng: random.Random, copy: bool) -> None:
    """Two instructions of equal size change places, or one takes the other's."""
    i, j = rng.randrange(len(spans) - 1), rng.randrange(len(spans) - 1)
    a, b = slice(2 * spans[i], 2 * spans[i + 1]), slice(2 * spans[j], 2 * spans[j + 1])
    if a.stop - a.start == b.stop - b.start:
        one, other = bytes(data[a]), bytes(data[b])
        data[a] = other
        if not copy:
            data[b] = one


def runs_safely(fields: CodeFields) -> bool:
    """Runs the code in a forked child; False if a signal killed it."""
    child = os.fork()
    if child == 0:
        _run_in_child(fields)
    _, status = os.waitpid(child, 0)
    return not os.WIFSIGNALED(status) or os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)


def _run_in_child(fields: CodeFields) -> NoReturn:
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (2, 3))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGALRM, _interrupt)
        for _ in range(20):
            for value in (1, "ab", [1, 2], None):
                function = FunctionType(fields.build(), {"__builtins__": __builtins__})
                function.__kwdefaults__ = {"k": 3}
                call(function, (value,) * fields.argcount)
    finally:
        os._exit(0)


def call(function: FunctionType, args: tuple[Any, ...]) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        function(*args)
    except Exception:  # anything but a crash is fine
        return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _interrupt(number: int, frame: object) -> NoReturn:
    """An endless loop is fine, too."""
    os._exit(0)


@pytest.mark.timeout(3000)
def test_accepted_mutants_do_not_crash() -> None:
    rng = random.Random(7)
    accepted = refused = 0
    for _ in range(TRIES):
        code = rng.choice(CODES)
        fields = mutant(code, rng)
        if fields.code == code.co_code:
            continue
        try:
            verify_fields(fields)
        except VerificationError:
            refused += 1
            continue
        accepted += 1
        assert runs_safely(fields), (code.co_name, fields.code.hex(), fields.exceptiontable.hex(), fields.stacksize)
    assert refused > accepted > 10


def test_any_bytes_are_answered() -> None:
    rng = random.Random(8)
    plain = fields_of(CODES[0])
    for size in (2, 4, 10, 40):
        for _ in range(400):
            data = bytes(rng.choice(HARMLESS) if k % 2 == 0 else rng.randrange(256) for k in range(size))
            rows = bytes(rng.randrange(256) for _ in range(rng.randrange(9)))
            try:
                verify_fields(replace(plain, code=data, exceptiontable=rows, linetable=bytes([0xF8 | size // 2 - 1 & 7])))
            except VerificationError:
                continue
