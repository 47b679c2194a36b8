"""Canonical instructions: their stack effect is that of what they stand for, on all of the library; and their arguments."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType

import pytest

from tierup.bytecode.canonical import NULL_BELOW_CALLABLE, Canon, Canonical, Op, canonicalise
from tierup.bytecode.concrete import decode, expand_superinstructions
from tierup.bytecode.flow import Flow

from .corpus import library

# (popped, pushed) when the instruction falls through, by canonical operation alone.
_FIXED = {
    "LOAD_LOCAL LOAD_CONST LOAD_GLOBAL PUSH_NULL LOAD_NAME LOAD_DEREF LOAD_CLOSURE LOAD_CLASSDEREF": (0, 1),
    "LOAD_AND_CLEAR_LOCAL LOAD_ASSERTION_ERROR": (0, 1),
    "STORE_LOCAL STORE_NAME STORE_GLOBAL STORE_DEREF DELETE_ATTR POP_TOP RETURN_VALUE POP_JUMP_IF JUMP_IF_OR_POP": (1, 0),
    "DELETE_LOCAL DELETE_NAME DELETE_GLOBAL DELETE_DEREF RESUME NOP JUMP RETURN_CONST": (0, 0),
    "LOAD_ATTR UNARY_POSITIVE UNARY_NEGATIVE UNARY_NOT UNARY_INVERT TO_BOOL CONVERT_VALUE LIST_TO_TUPLE GET_ITER": (1, 1),
    "MAKE_FUNCTION YIELD_VALUE": (1, 1),
    "LOAD_METHOD FOR_ITER GET_LEN": (1, 2),
    "BINARY_OP BINARY_SUBSCR COMPARE IS_OP CONTAINS_OP SET_FUNCTION_ATTRIBUTE": (2, 1),
    "STORE_ATTR DELETE_SUBSCR": (2, 0),
    "STORE_SUBSCR": (3, 0),
    "BINARY_SLICE": (3, 1),
    "STORE_SLICE": (4, 0),
    "LIST_APPEND SET_ADD LIST_EXTEND SET_UPDATE DICT_UPDATE DICT_MERGE": (1, 0),
    "MAP_ADD": (2, 0),
}
FIXED = {Op[name]: effect for names, effect in _FIXED.items() for name in names.split()}
VARIABLE: dict[Op, Callable[[object], tuple[int, int]]] = {
    Op.LOAD_SUPER_ATTR: lambda a: (3, 2 if a[1] else 1),  # type: ignore[index]
    Op.CALL: lambda a: (a[0] + 2, 1),  # type: ignore[index]
    Op.CALL_KW_DYNAMIC: lambda a: (a + 3, 1),  # type: ignore[operator]
    Op.CALL_FUNCTION_EX: lambda a: (4 if a else 3, 1),
    Op.BUILD_TUPLE: lambda a: (a, 1),
    Op.BUILD_LIST: lambda a: (a, 1),
    Op.BUILD_SET: lambda a: (a, 1),
    Op.BUILD_STRING: lambda a: (a, 1),
    Op.BUILD_SLICE: lambda a: (a, 1),
    Op.BUILD_MAP: lambda a: (2 * a, 1),  # type: ignore[operator]
    Op.BUILD_CONST_KEY_MAP: lambda a: (a + 1, 1),  # type: ignore[operator]
    Op.FORMAT_VALUE: lambda a: (2 if a[1] else 1, 1),  # type: ignore[index]
    Op.UNPACK_SEQUENCE: lambda a: (1, a),
    Op.UNPACK_EX: lambda a: (1, sum(a) + 1),  # type: ignore[call-overload]
    Op.COPY: lambda a: (a, a + 1),  # type: ignore[operator]
    Op.SWAP: lambda a: (a, a),
    Op.RAISE: lambda a: (a, 0),
}
NO_FALL_THROUGH = {Op.JUMP, Op.RETURN_VALUE, Op.RETURN_CONST, Op.RAISE}


def effect(canon: Canon) -> tuple[int, int]:
    return FIXED[canon.op] if canon.op in FIXED else VARIABLE[canon.op](canon.arg)


def listing(code: CodeType) -> tuple[Canonical, Flow]:
    program = expand_superinstructions(decode(code))
    return canonicalise(program), Flow(program)


@pytest.mark.timeout(3000)
def test_effects_on_the_library() -> None:
    seen = set()
    for code in library():
        for program in {decode(code): None, expand_superinstructions(decode(code)): None}:
            canonical, flow = canonicalise(program), Flow(program)
            check_effects(canonical, flow)
            seen |= {c.op for c in canonical.canons}
    assert len(seen) > 60


def check_effects(canonical: Canonical, flow: Flow) -> None:
    canons, program = canonical.canons, flow.program
    assert len(canonical.position) == len(program) + 1
    depth, unknown = 0, -1
    for at, canon in enumerate(canons):
        first = at == 0 or canons[at - 1].index != canon.index
        start = flow.depth[canon.index]
        if first:
            assert canonical.position[canon.index] == at
            depth = start or 0
        if canon.op in (Op.OTHER, Op.END_FOR):
            unknown = canon.index
        if start is None or canon.index == unknown:
            continue
        where = (program.qualname, canon)
        pops, pushes = effect(canon)
        assert depth >= pops, where
        depth += pushes - pops
        last = at + 1 == len(canons) or canons[at + 1].index != canon.index
        if last and canon.op not in NO_FALL_THROUGH:
            assert flow.depth[canon.next_index] == depth, where
        check_target(canon, depth, flow, where)


def check_target(canon: Canon, depth: int, flow: Flow, where: object) -> None:
    if canon.op is Op.FOR_ITER:
        target, depth = canon.arg, depth - 2
    elif canon.op is Op.JUMP:
        target = canon.arg[0]  # type: ignore[index]
    elif canon.op in (Op.POP_JUMP_IF, Op.JUMP_IF_OR_POP):
        target = canon.arg[1]  # type: ignore[index]
        depth += canon.op is Op.JUMP_IF_OR_POP
    else:
        return
    assert isinstance(target, int)
    assert flow.depth[target] == depth, where
    # The one exception is the way back from a generator's clean-up into its glued SEND loop.
    assert flow.program.can_land(target) or flow.program.instrs[target].name == "END_SEND", where


def ops(function: Callable[..., object]) -> list[tuple[str, object]]:
    canonical, _ = listing(function.__code__)
    return [(c.op.value, c.arg) for c in canonical.canons if c.op not in (Op.RESUME, Op.NOP)]


def null_and(*callee: tuple[str, object]) -> list[tuple[str, object]]:
    null: tuple[str, object] = ("PUSH_NULL", None)
    return [null, *callee] if NULL_BELOW_CALLABLE else [*callee, null]


def test_calls() -> None:
    def f(a):  # type: ignore[no-untyped-def]
        return len(a), a.m(1, k=2), a(*a)

    assert ops(f) == [
        *null_and(("LOAD_GLOBAL", "len")),
        ("LOAD_LOCAL", 0),
        ("CALL", (1, ())),
        ("LOAD_LOCAL", 0),
        ("LOAD_METHOD", "m"),
        ("LOAD_CONST", 1),
        ("LOAD_CONST", 2),
        ("CALL", (2, ("k",))),
        *null_and(("LOAD_LOCAL", 0)),
        ("LOAD_LOCAL", 0),
        ("CALL_FUNCTION_EX", False),
        ("BUILD_TUPLE", 3),
        ("RETURN_VALUE", None),
    ]


def test_operators() -> None:
    def f(a, b):  # type: ignore[no-untyped-def]
        a += b
        b = a < b
        return a is not b, a in b, -a, a[b], a @ b, a.x

    found = ops(f)
    for wanted in [
        ("BINARY_OP", "+="),
        ("COMPARE", ("<", False)),
        ("IS_OP", True),
        ("CONTAINS_OP", False),
        ("UNARY_NEGATIVE", None),
        ("BINARY_SUBSCR", None),
        ("BINARY_OP", "@"),
        ("LOAD_ATTR", "x"),
    ]:
        assert wanted in found


def test_functions_are_made_in_steps() -> None:
    def f(x):  # type: ignore[no-untyped-def]
        def g(a=x, *, b=x) -> int:  # type: ignore[no-untyped-def]
            return x

        return g

    found = [pair for pair in ops(f) if "FUNCTION" in pair[0]]
    assert found[0] == ("MAKE_FUNCTION", None)
    assert found[1] == ("SET_FUNCTION_ATTRIBUTE", 8)
    assert sorted(found[2:]) == [("SET_FUNCTION_ATTRIBUTE", n) for n in (1, 2, 4)]
    assert ("LOAD_CLOSURE", 0 if f.__code__.co_varnames[0] in f.__code__.co_cellvars else 1) in ops(f)


def test_cells_are_not_locals() -> None:
    def f(x):  # type: ignore[no-untyped-def]
        y = x
        return lambda: (x, y)

    found = dict(ops(f))
    assert "STORE_DEREF" in found and "LOAD_DEREF" in found and "LOAD_CLOSURE" in found
    assert "LOAD_LOCAL" not in found


def test_loops_and_branches() -> None:
    def f(a):  # type: ignore[no-untyped-def]
        for i in a:
            if i is None:
                continue
            while i:
                i -= 1  # noqa: PLW2901
        return a and i

    canonical, flow = listing(f.__code__)
    loop = next(c for c in canonical.canons if c.op is Op.FOR_ITER)
    after = canonical.at(loop.arg)  # type: ignore[arg-type]
    assert after.op is Op.LOAD_LOCAL and after.index == loop.arg
    kinds = {c.arg[0] for c in canonical.canons if c.op is Op.POP_JUMP_IF}  # type: ignore[index]
    assert kinds & {"none", "not_none"} and kinds & {"true", "false"}
    assert any(c.op is Op.JUMP and c.arg[1] for c in canonical.canons)  # type: ignore[index]
    assert flow.depth[loop.index] == 1


def test_formatting() -> None:
    def f(a):  # type: ignore[no-untyped-def]
        return f"{a}{a!r:>3}"

    canonical, _ = listing(f.__code__)
    arguments = [c.arg for c in canonical.canons if c.op is Op.FORMAT_VALUE]
    converted = [c.arg for c in canonical.canons if c.op is Op.CONVERT_VALUE]
    assert arguments[0] == (0, False)
    assert arguments[1] == (0 if converted else 2, True)
    assert converted in ([], [2])


def test_units() -> None:
    def f(g):  # type: ignore[no-untyped-def]
        for i in g(a=1):
            try:  # noqa: SIM105
                yield i
            except KeyError:
                pass
            x = i + i
            x += 1
        return g(a=i)

    program = expand_superinstructions(decode(f.__code__))
    resume = next(k for k, i in enumerate(program.instrs) if i.name == "RESUME")
    assert all(program.boundary(k) == resume for k in range(resume + 1)) and program.is_boundary(resume)
    for k, instr in enumerate(program.instrs):
        if instr.name in ("CALL", "CALL_KW"):
            start = program.boundary(k)
            assert program.instrs[start].name in ("KW_NAMES", "PRECALL", "LOAD_CONST", "CALL")
            assert not program.is_boundary(k) or start == k
            assert program.boundary_after(start) == k + 1
        if instr.name == "END_FOR":
            assert program.boundary(k) > k and not program.can_land(k)
        if instr.name == "POP_EXCEPT":
            assert program.can_land(k) and not program.is_boundary(k)
        if instr.name == "RESUME" and k > resume:
            assert program.instrs[program.boundary(k)].name == "YIELD_VALUE"
        if k and program.instrs[k - 1].name == "BINARY_OP":
            assert program.is_costly_site(k)
    assert program.boundary_after(len(program) - 1) == len(program)
