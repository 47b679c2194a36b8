"""Time by category, and what belongs to the benchmark at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierup.lab.profile.categories import load
from tierup.lab.profile.model import Profile, Row
from tierup.lab.profile.shares import compute

LIB = "libpython3.13.so.1.0"


def shares(*rows, unit="period", **more):
    return compute(Profile("b", tuple(Row(*row) for row in rows), unit, **more), load())


def test_time_by_category_and_function():
    found = shares(
        ("python", "_PyEval_EvalFrameDefault", 50.0),
        ("python", "k_mul", 20.0),
        ("python", "k_mul", 10.0),
        ("libc.so.6", "memcpy", 15.0),
        ("python", "no_such_function", 5.0),
        ("python", "x_add", 0.0),
    )
    assert found.categories == pytest.approx({"interpreter": 0.5, "int": 0.3, "libc": 0.15, "unknown": 0.05})
    assert list(found.categories) == ["interpreter", "int", "libc", "unknown"]
    assert found.top == "interpreter"
    assert [(symbol.name, symbol.share) for symbol in found.symbols[:2]] == [("_PyEval_EvalFrameDefault", 0.5), ("k_mul", 0.3)]
    assert [symbol.name for symbol in found.largest("int", 5)] == ["k_mul"]


def test_unknown_is_never_on_top():
    assert shares(("python", "no_such_function", 90.0), ("python", "k_mul", 10.0)).top == "int"
    assert shares(("python", "no_such_function", 90.0)).top is None


def test_of_equal_shares_the_first_category_of_the_table_is_on_top():
    rows = [("python", "k_mul", 1.0), ("libc.so.6", "memcpy", 1.0)]
    assert shares(*rows).top == shares(*reversed(rows)).top == "libc"


def test_kernels_show_with_their_names():
    found = shares(
        ("/memfd:tierup (deleted)", "tierup:add+mul", 60.0, 8, "python"),
        (LIB, "_PyEval_EvalFrameDefault", 30.0, 8, "python"),
        ("[JIT] tid 8", "[unknown]", 10.0, 8, "python"),
    )
    assert found.categories == pytest.approx({"jit": 0.7, "interpreter": 0.3})
    assert [symbol.name for symbol in found.largest("jit", 2)] == ["tierup:add+mul", "[unknown]"]
    assert found.stripped == {}


def test_another_python_is_left_out_by_its_functions_where_there_are_no_pids():
    found = shares(("python", "k_mul", 80.0), ("libpython3.11.so.1.0", "k_mul", 20.0), ("libc.so.6", "memcpy", 20.0), unit="percent")
    assert found.categories == pytest.approx({"int": 0.8, "libc": 0.2})
    assert found.excluded == pytest.approx({"libpython3.11.so.1.0": 20 / 120})


def test_another_python_is_left_out_with_all_of_its_process():
    found = shares(
        ("python", "k_mul", 80.0, 1, "python"),
        ("libc.so.6", "memcpy", 20.0, 1, "python"),
        ("python3.8", "k_mul", 10.0, 2, "pyperformance"),
        ("libc.so.6", "memcpy", 10.0, 2, "pyperformance"),
        ("git", "main", 30.0, 3, "git"),
        ("[kernel.kallsyms]", "idle", 50.0, 0, "swapper"),
    )
    assert found.categories == pytest.approx({"int": 0.8, "libc": 0.2})
    assert found.excluded == pytest.approx({"swapper": 0.25, "git": 0.15, "pyperformance": 0.1})
    assert list(found.excluded) == ["swapper", "git", "pyperformance"]


def test_an_executable_and_its_shared_library_are_one_interpreter():
    found = shares((LIB, "k_mul", 90.0), ("python3.13", "_start", 10.0))
    assert found.excluded == {}
    with_pids = shares((LIB, "k_mul", 90.0, 5, "python"), ("python", "_start", 10.0, 5, "python"), ("python", "main", 5.0, 6, "python"))
    assert with_pids.excluded == {}


def test_threads_that_run_no_interpreter_belong_to_their_process():
    found = shares(
        (LIB, "k_mul", 60.0, 5, "python"),
        ("/memfd:tierup (deleted)", "tierup:add", 40.0, 9, "python"),
        ("libblas.so", "dgemm", 20.0, 10, "blas_worker"),
    )
    assert found.categories == pytest.approx({"int": 0.6, "jit": 0.4})
    assert found.excluded == pytest.approx({"blas_worker": 1 / 6})


def test_a_profile_without_any_python_is_taken_as_it_is():
    assert shares(("libc.so.6", "memcpy", 1.0, 3, "a"), ("x.so", "f", 1.0, 4, "b")).excluded == {}


@pytest.mark.parametrize("symbol", ["0x00000000000fb660", "[unknown]"])
def test_a_stripped_interpreter_is_said_and_nothing_is_guessed(symbol):
    found = shares(("python3.14", symbol, 70.0), ("python3.14", "PyDict_SetItem", 30.0))
    assert found.categories == pytest.approx({"unknown": 0.7, "dict": 0.3})
    assert found.stripped == pytest.approx({"python3.14": 0.7})
    assert found.notes == ("python3.14 has no names for 70% of its own time (it is stripped): install its debug symbols, and record again",)
    assert shares(("python3.14", symbol, 5.0), ("python3.14", "PyDict_SetItem", 95.0)).stripped == {}


ROWS = st.builds(
    Row,
    st.sampled_from(["python", LIB, "python3.8", "libc.so.6", "[kernel.kallsyms]", "[JIT] tid 3", "odd name (deleted)"]),
    st.sampled_from(["k_mul", "list_append", "_PyEval_EvalFrameDefault", "0x00fb660", "whatever", "[unknown]"]),
    st.just(0.0) | st.floats(1, 1e9),
    st.none() | st.integers(1, 4),
    st.sampled_from(["python", "git", ""]),
)


@given(st.lists(ROWS, min_size=1))
def test_no_time_is_lost(rows):
    profile = Profile("b", tuple(rows), "period")
    if profile.total > 0:
        found = compute(profile, load())
        kept = 1 - sum(found.excluded.values())
        assert sum(found.categories.values()) == pytest.approx(1)
        assert sum(symbol.share for symbol in found.symbols) == pytest.approx(1)
        assert 0 < kept <= 1 + 1e-9
