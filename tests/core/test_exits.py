"""Random exit snapshots: every slot gets its value, every reference is given back."""

from __future__ import annotations

import sys
from typing import Any

from hosts import C, E, host, plan, slot, spec
from hypothesis import given, settings
from hypothesis import strategies as st

from tierup import _core

SOURCE = """
def f(a, b, c):
    def g():
        return c
    return ("s0", "s1", [None, ~SITE] if SITE else "miss", a, b, g())
"""


class Value:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


POOL = [Value(f"v{i}") for i in range(4)]
UNSET = -1
"""Register number of NULL."""

F, SITE = host(SOURCE, depth=2)
A, B = slot(F, "a"), slot(F, "b")
CELL = slot(F, "c")
registers = st.integers(0, len(POOL) + 2)
"""The constants, then the arguments."""


@st.composite
def snapshots(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    out = []
    for kind, where in ((_core.EXIT_LOCAL, A), (_core.EXIT_LOCAL, B), (_core.EXIT_CELL, CELL)):
        if draw(st.booleans()):
            # From 3.12 on plain locals are loaded without asking whether they are bound.
            may_unset = kind == _core.EXIT_CELL or sys.version_info < (3, 12)
            out.append((kind, where, draw(st.one_of(registers, st.just(UNSET)) if may_unset else registers)))
    for position in (0, 1):
        if draw(st.booleans()):
            out.append((_core.EXIT_STACK, position, draw(registers)))
    # The hit block of the source fetches two deeper values.
    out += [(_core.EXIT_STACK, 2, draw(registers)), (_core.EXIT_STACK, 3, draw(registers))]
    return draw(st.permutations(out))


def expected(exit: list[tuple[int, int, int]], args: tuple[Any, ...]) -> Any:
    values = [*POOL, *args]
    new = {(kind, where): (values[reg] if reg != UNSET else None) for kind, where, reg in exit}
    unset = {(kind, where) for kind, where, reg in exit if reg == UNSET}
    if unset:
        return NameError
    return (
        new.get((_core.EXIT_STACK, 0), "s0"),
        new.get((_core.EXIT_STACK, 1), "s1"),
        [new[_core.EXIT_STACK, 2], new[_core.EXIT_STACK, 3]],
        new.get((_core.EXIT_LOCAL, A), args[0]),
        new.get((_core.EXIT_LOCAL, B), args[1]),
        new.get((_core.EXIT_CELL, CELL), args[2]),
    )


def run(args: tuple[Any, ...]) -> Any:
    try:
        return F(*args)
    except NameError:
        return NameError


@settings(max_examples=200, deadline=None)
@given(snapshots())
def test_random_snapshots(exit: list[tuple[int, int, int]]) -> None:
    args = tuple(Value(f"arg{i}") for i in range(3))
    n = len(POOL)
    ops = [("O_CONST", i, i) for i in range(n)] + [("O_EXPR", n + i, i) for i in range(3)]
    p = plan(ops, constants=tuple(POOL), nobjects=n + 3, exit=exit)
    exprs = [(E["LOCAL"], -1, A), (E["LOCAL"], -1, B), (E["CELL"], -1, CELL)]
    SITE.install(exprs, [spec([(C["TYPE_IS"], 0, Value)], p)])
    del p
    run(args)
    before = [sys.getrefcount(v) for v in (*POOL, *args)]
    hits = SITE.hits
    for _ in range(5):
        assert run(args) == expected(exit, args)
    assert SITE.hits == hits + 5
    assert run((1, 2, 3)) == ("s0", "s1", "miss", 1, 2, 3)
    assert [sys.getrefcount(v) for v in (*POOL, *args)] == before
