"""Plans of whole loops: what the validator refuses, iterators and lists as slots and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hosts import OPS, words

from tierup import _core

_core.init_numpy()


def plan(*ops: Any, exits: Any = None, nobjects: int = 4, nslots: int = 8, narrays: int = 2, constants: Any = ()) -> _core.Plan:
    extra = {} if exits is None else {"exits": tuple(exits)}
    return _core.Plan(words(ops), constants, (), nobjects, nslots, narrays, b"", [], **extra)


SWITCH = [("LOOP", 1, 0), ("SWITCH", 1, 1, 7), ("EXIT", 0)]


def test_a_sound_program() -> None:
    plan(*SWITCH, exits=[[]])


@pytest.mark.parametrize(
    ("ops", "exits", "what"),
    [
        ([("SWITCH", 1, 1, 3), ("EXIT", 0)], [[]], "must follow a loop"),
        ([("LOOP", 1, 0)], [[]], "need a loop and a SWITCH"),
        ([("EXIT", 0)], [[]], "stands before SWITCH"),
        ([("LOOP", 1, 0), ("SWITCH", 1, 1, 8), ("EXIT", 0)], [[]], "no branch begins there"),
        ([("LOOP", 1, 0), ("SWITCH", 1, 1, 3), ("EXIT", 0)], [[]], "no branch begins there"),
        ([("LOOP", 1, 0), ("SWITCH", 1, 1, 7), ("BOX_INT", 0, 2)], [[]], "does not end with EXIT"),
        ([("LOOP", 1, 0), ("SWITCH", 1, 1, 7), ("EXIT", 1)], [[]], "no such exit"),
        ([("LOOP", 1, 0), ("SWITCH", 1, 1, 7), ("I_ADD", 1, 1, 1), ("EXIT", 0)], [[]], "follows a loop"),
        ([("LOOP", 1, 0), ("LOOP", 1, 0)], [[]], "follows a loop"),
        ([("LOOP", 1, 0), ("SWITCH", 1, 1, 7), ("EXIT", 0)], [[(0, 0, 0)]], "not set"),
        (
            [("LOOP", 1, 0), ("SWITCH", 1, 2, 8, 13), ("BOX_INT", 0, 2), ("EXIT", 0), ("EXIT", 1)],
            [[(0, 0, 0)], [(0, 0, 0)]],
            "not set",
        ),
        ([("O_CONST", 0, 0), ("S_RANGE", 6, 0)], None, "slots out of range"),
        ([("O_CONST", 0, 0), ("A_OBJ", 0, 0), ("S_ARRAY", 4, 0, 2)], None, "slots out of range"),
        ([("O_CONST", 0, 0), ("S_TEXT", 7, 0)], None, "slots out of range"),
    ],
)
def test_what_is_refused(ops: Any, exits: Any, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        plan(*ops, exits=exits, constants=(None,))


def run(ops: Any, *values: Any) -> Any:
    status, registers = _core.run_plan(plan(*ops), list(values))
    return registers if status == 0 else None


def test_ranges() -> None:
    read = [("O_EXPR", 0, 0), ("S_RANGE", 0, 0), ("BOX_INT", 1, 0), ("BOX_INT", 2, 1), ("BOX_INT", 3, 2)]
    values: list[Any] = [iter(range(3, 30, 4))]
    assert run(read, *values) is None, "others hold it"
    for made in (range(5), range(3, 30, 4), range(9, -9, -5), range(0)):
        status, registers = _core.run_plan(plan(*read), [iter(made)])
        if status == 0:
            start, step, left = registers[1:4]
            assert [start + k * step for k in range(left)] == list(made)


def test_a_range_is_made_again() -> None:
    box = [("O_EXPR", 0, 0), ("S_INT", 0, 0), ("O_EXPR", 1, 1), ("S_INT", 1, 1), ("O_EXPR", 2, 2), ("S_INT", 2, 2), ("BOX_RANGE", 3, 0)]
    assert list(run(box, 7, 3, 4)[3]) == [7, 10, 13, 16]
    assert list(run(box, 7, -3, 3)[3]) == [7, 4, 1]
    assert list(run(box, 2**62, 2**61, 0)[3]) == []


def test_texts_and_characters() -> None:
    read = [("O_EXPR", 0, 0), ("S_TEXT", 0, 0), ("BOX_INT", 1, 1)]
    assert run(read, "abc")[1] == 3
    assert run(read, "gr\u00fcn")[1] == 4
    assert run(read, "") is not None
    assert run(read, "\u0395\u03bb") is None
    assert run(read, b"abc") is None
    char = [("O_EXPR", 0, 0), ("S_INT", 0, 0), ("BOX_CHAR", 1, 0)]
    assert run(char, 97)[1] is chr(97), "CPython keeps one object for each"
    assert run(char, 0xFC)[1] == "\u00fc"


def test_views() -> None:
    a = np.arange(24.0).reshape(4, 6)
    view = a[1:3, ::2]
    ops = [("O_EXPR", 0, 0), ("A_OBJ", 0, 0), ("O_EXPR", 1, 1), ("A_OBJ", 1, 1), ("S_ARRAY", 0, 1, 2), ("BOX_VIEW", 2, 0, 0, 2, 1)]
    made = run(ops, a, view)[2]
    assert made.shape == view.shape
    assert made.strides == view.strides
    assert made.ctypes.data == view.ctypes.data
    assert made.base is a.base
    assert made.flags.writeable


def test_the_table_names_every_operation() -> None:
    assert {"LOOP", "SWITCH", "EXIT", "BOX_RANGE", "O_SELECT"} <= set(OPS)
