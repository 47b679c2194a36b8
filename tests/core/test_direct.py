"""The short way for functions that are one kernel: the same results as plain Python for every kind of argument, and hits."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tierup


def arrays() -> dict[str, Callable[[], np.ndarray]]:
    base = np.linspace(-3, 9, 60)
    return {
        "one dimension": base[:10].copy,
        "one element": base[:1].copy,
        "no elements": base[:0].copy,
        "no dimensions": lambda: np.array(2.5),
        "every other": lambda: base[:20:2],
        "backwards": lambda: base[9::-1],
        "repeated": lambda: np.broadcast_to(2.5, 7),
        "C order": lambda: base.reshape(6, 10).copy(),
        "Fortran order": lambda: base.reshape(6, 10).copy(order="F"),
        "axis of length one": lambda: base[:10].reshape(1, 10, 1).copy(),
        "empty axis": lambda: base[:0].reshape(3, 0, 2).copy(),
        "just few": lambda: np.linspace(0, 1, 1024),
        "just too many": lambda: np.linspace(0, 1, 1025),
        "many": lambda: np.linspace(0, 1, 300_000),
        "long in two axes": lambda: np.linspace(0, 1, 1200).reshape(2, 600).copy(),
        "unaligned": lambda: np.frombuffer(b"x" + base[:8].tobytes(), dtype="f8", offset=1),
        "other byte order": lambda: base[:8].astype(">f8"),
        "read-only": lambda: np.frombuffer(base[:8].tobytes(), dtype="f8"),
        "single precision": lambda: base[:8].astype("f4"),
        "long long": lambda: np.arange(8, dtype="q"),
        "bytes": lambda: np.arange(8, dtype="u1") + 120,
        "complex": lambda: base[:8] * (1 - 2j),
        "matrix": lambda: np.matrix(base[:4].reshape(2, 2)),
        "masked": lambda: np.ma.masked_array(base[:4], [0, 1, 0, 1]),
        "objects": lambda: np.array([1, 2.5, 3], dtype=object),
    }


def one_operand(x: Any) -> Any:
    return x * 2 + 1


def squares(x: Any) -> Any:
    return (x - 1) * (x + 1)


def parts(x: Any) -> Any:
    return x * 2, x - 1


def keeps(x: Any) -> Any:
    y = x * x
    return y, x


def described(value: Any) -> Any:
    if isinstance(value, tuple):
        return [described(item) for item in value]
    if isinstance(value, np.ndarray):
        data = value.tolist() if value.dtype == object else value.tobytes("A")
        return type(value).__name__, value.dtype.str, value.shape, value.strides, value.flags.owndata, value.flags.writeable, data
    return type(value).__name__, repr(value)


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            value = described(function(*args))
        except Exception as error:
            value = type(error).__name__, str(error)
    return value, [(w.category.__name__, str(w.message), w.lineno) for w in seen]


@pytest.mark.parametrize("function", [one_operand, squares, parts, keeps])
def test_arguments_of_all_kinds(function: Callable[..., Any]) -> None:
    jitted = tierup.jit(function)
    kinds = arrays()
    for _ in range(3):
        for make in kinds.values():
            outcome(jitted, make())
    for name, make in kinds.items():
        before = tierup.stats().hits
        assert outcome(jitted, make()) == outcome(function, make()), name
        if name in ("one dimension", "C order", "Fortran order", "every other", "many", "just few", "just too many"):
            assert tierup.stats().hits == before + 1, name


def test_pairs_of_arguments() -> None:
    def combined(x: Any, y: Any) -> Any:
        return x * 2 + y

    jitted = tierup.jit(combined)
    kinds = list(arrays().items())
    for _ in range(2):
        for i, (name, make) in enumerate(kinds):
            for other, make_other in kinds[i % 3 :: 3]:
                assert outcome(jitted, make(), make_other()) == outcome(combined, make(), make_other()), (name, other)
    x = np.ones(10)
    for pair in ((x, x), (x, x[::-1]), (x[:5], x[5:]), (x, np.ones((4, 10))), (x, np.ones((10, 1)))):
        assert outcome(jitted, *pair) == outcome(combined, *pair)


def leave_flags_behind() -> float:
    """Arithmetic of the interpreter's own, which says nothing of the flags it raises."""
    tiny = 1e-300
    return tiny * tiny + (1e300 * 1e300)


def divides(x: Any) -> Any:
    return 1 / x + 2


@pytest.mark.parametrize("length", [10, 5000])
@pytest.mark.parametrize("state", ["warn", "ignore", "raise", "print"])
def test_stray_flags_are_nobody_s_alarm(state: str, length: int) -> None:
    jitted = tierup.jit(one_operand)
    x = np.linspace(1, 2, length)
    for _ in range(3):
        jitted(x)
    before = tierup.stats().hits
    with np.errstate(all=state):
        for _ in range(20):
            leave_flags_behind()
            assert outcome(jitted, x) == (described(one_operand(x)), [])
    assert tierup.stats().hits == before + 20


@pytest.mark.parametrize("length", [10, 5000])
@pytest.mark.parametrize("state", ["warn", "ignore", "raise", "print"])
def test_alarms_are_raised_once_at_their_line(state: str, length: int, capsys: pytest.CaptureFixture[str]) -> None:
    jitted = tierup.jit(divides)
    x = np.linspace(1, 2, length)
    for _ in range(3):
        jitted(x)
    x[3] = 0
    with np.errstate(all=state):
        for _ in range(3):
            for before in (lambda: None, leave_flags_behind):
                before()
                got, printed = outcome(jitted, x), capsys.readouterr().out
                before()
                assert got == outcome(divides, x)
                assert printed == capsys.readouterr().out


def test_flags_do_not_reach_the_next_numpy_call() -> None:
    jitted = tierup.jit(divides)
    x = np.array([1.0, 2.0])
    with np.errstate(all="ignore"):
        for _ in range(4):
            jitted(x)
        x[0] = 0
        jitted(x)
    assert outcome(lambda: np.float64(1) + np.float64(2))[1] == []


def test_references_do_not_pile_up() -> None:
    import sys

    jitted = tierup.jit(squares)
    x = np.ones(10)
    for _ in range(5):
        jitted(x)
    before = sys.getrefcount(x)
    results = [jitted(x) for _ in range(100)]
    assert sys.getrefcount(x) == before
    assert {sys.getrefcount(result) for result in results} == {3 if sys.version_info < (3, 14) else sys.getrefcount(results[0])}
