"""`tierup lab stats`: statistics of optimizers, as tables and in words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.files import write
from tierup.cli.main import main
from tierup.lab.errors import ReadError
from tierup.lab.optimizer.observations import differences, observations
from tierup.lab.optimizer.pystats import parse_lines
from tierup.lab.optimizer.read import read_stats
from tierup.lab.optimizer.tables import side_by_side, tables
from tierup.runtime.stats import Place, Stats

from .errors import one_line


def pystats(attempts=1000, created=400, too_short=600, **more):
    """Counts as CPython 3.13 writes them."""
    counts = {
        "opcode[LOAD_FAST].execution_count ": 10**6,
        "Optimization attempts": attempts,
        "Optimization traces created": created,
        "Optimization traces executed": 2000,
        "Optimization uops executed": 60_000,
        "Optimization trace stack overflow": 3,
        "Optimization trace stack underflow": 20,
        "Optimization trace too long": 0,
        "Optimization trace too short": too_short,
        "Optimization inner loop": 7,
        "Optimization recursive call": 1,
        "Optimization low confidence": 9,
        "Executors invalidated": 10,
        **{f"Trace length[{2**k}]": 0 for k in range(32)},
        **{f"Trace run length[{2**k}]": 0 for k in range(32)},
        **{f"Optimized trace length[{2**k}]": 0 for k in range(32)},
        "Optimization optimizer attempts": created,
        "Optimization optimizer successes": created,
        "Optimization optimizer failure no memory": 0,
        "uops[_LOAD_FAST].execution_count ": 45_000,
        "uops[_GUARD_TYPE].execution_count ": 15_000,
        "uops[_GUARD_TYPE].specialization.miss ": 30,
        "uops[_EXIT_TRACE].execution_count ": 500,
    }
    return {**counts, "Optimized trace length[16]": created // 4, "Optimized trace length[32]": created - created // 4, **more}


def as_text(counts):
    return "".join(f"{key}: {value}\n" for key, value in counts.items())


def written(tmp_path, name="stats.txt", **counts):
    return write(tmp_path / name, as_text(pystats(**counts)))


def figures(stats):
    return {table.title: {row.name: (row.value, row.share) for row in table.rows} for table in tables(stats)}


def test_attempts_by_what_came_of_them(tmp_path):
    found = figures(read_stats(written(tmp_path)))
    assert found["attempts"] == {"attempts": (1000, None), "created": (400, 0.4), "rejected: too short": (600, 0.6)}
    assert found["where captures end"]["returned from where it began"] == (20, 0.02)
    assert found["what became of them"]["executors made"] == (400, 1.0)
    assert found["what became of them"]["optimizer successes"] == (400, 1.0)
    assert found["executions"]["micro-operations per trace"] == (30.0, None)
    assert found["executions"]["left by _EXIT_TRACE"] == (500, 0.25)
    assert found["executions"]["left where a condition failed"] == (30, 0.015)
    assert found["optimized trace length"] == {"9 to 16": (100, 0.25), "17 to 32": (300, 0.75)}
    assert found["operations whose condition failed most"] == {"_GUARD_TYPE": (30, 0.002)}


def test_what_a_verdict_is_missing_for_is_shown(tmp_path):
    assert figures(read_stats(written(tmp_path, too_short=500)))["attempts"]["neither created nor rejected"] == (100, 0.1)


@pytest.mark.parametrize("form", ["text", "json", "folder"])
def test_forms_of_the_same_statistics(tmp_path, form):
    counts = pystats(**{"unsupported_opcode[YIELD_VALUE].count ": 7, "error_in_opcode[_INIT_CALL_PY_EXACT_ARGS].count ": 2})
    if form == "json":
        path = write(tmp_path / "raw.json", {**{key.strip(): value for key, value in counts.items()}, "_defines": {}, "_stats_defines": {}})
    elif form == "text":
        path = write(tmp_path / "stderr.txt", "a line that the program wrote\n" + as_text(counts))
    else:
        path = tmp_path / "py_stats"
        path.mkdir()
        halves = {key: value // 2 for key, value in counts.items()}
        write(path / "1.txt", as_text(halves))
        write(path / "2.txt", as_text({key: value - halves[key] for key, value in counts.items()}))
    stats = read_stats(path)
    assert stats.problems == ()
    assert stats.attempts == 1000
    assert stats.unsupported == {"YIELD_VALUE": 7}
    assert stats.failed == {"_INIT_CALL_PY_EXACT_ARGS": 2}


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        # The weeklies of 2024-03-29 and 2024-03-11 of CPython, and the figures that its developers quoted.
        (
            {"attempts": 52_163_175, "created": 115_759, "too_short": 52_047_416},
            "99.8 % of the 52,163,175 attempts were rejected: too short",
        ),
        (
            {"attempts": 282_339, "created": 2_317_877, "too_short": 54_731_003},
            "56,766,541 traces were created or rejected that were not counted as attempts: "
            "attempts from side exits outnumber the rest by 201 to 1",
        ),
        (
            {"Optimization optimizer attempts": 2_674_828, "Optimization optimizer successes": 92_441},
            "3.5 % of the 2,674,828 runs of the optimizer succeeded",
        ),
        ({"Trace length[16]": 998, "Trace length[32]": 2}, "99.8 % of the traces have 9 to 16 instructions"),
        (
            {"Optimized trace length[16]": 33, "Optimized trace length[32]": 967},
            "96.7 % of the optimized traces have 17 to 32 instructions",
        ),
        ({"Optimized trace length[16]": 10, "Optimized trace length[32]": 10}, "5.0 % of the 400 traces created became executors"),
        (
            {"Optimization uops executed": 9_000},
            "a trace runs for 4.5 micro-operations before it is left, which hardly pays for entering it",
        ),
        ({"Optimization traces executed": 0}, "traces were created, but none was executed"),
        ({"Executors invalidated": 100}, "25.0 % of the traces created were invalidated again"),
        (
            {"unsupported_opcode[YIELD_VALUE].count": 30, "unsupported_opcode[SEND].count": 10},
            "YIELD_VALUE ends most captures: 75.0 % of the operations met that are not supported",
        ),
    ],
)
def test_what_stands_out_is_said(tmp_path, counts, sentence):
    assert sentence in observations(read_stats(written(tmp_path, **counts)))


def test_nothing_stands_out_where_all_is_well(tmp_path):
    assert observations(read_stats(written(tmp_path, created=600, too_short=400))) == []


PLACES = [
    Place("rejected", "slower than the interpreter", "a.py", 3, "f", 6),
    Place("rejected", "too few operations", "a.py", 9, "g", 2),
    Place("break", "call of a builtin", "a.py", 4, "f", 5),
]
OURS = Stats(
    {"attempts": 10, "specialisations": 2, "hits": 30, "misses": 70, "side_exits": 5, "kernels": 3, "cache_hits": 1, "cache_misses": 2},
    PLACES,
    {"capture": 0.75, "llvm": 0.25},
)


@pytest.fixture(params=["file", "folder"])
def ours(request, tmp_path):
    folder = tmp_path / "stats"
    folder.mkdir()
    path = write(folder / "tierup-1-1.json", OURS.to_dict())
    return path if request.param == "file" else folder


def test_our_own_statistics_have_the_same_tables(ours):
    stats = read_stats(ours)
    found = figures(stats)
    assert found["attempts"] == {
        "attempts": (10, None),
        "created": (2, 0.2),
        "rejected: slower than the interpreter": (6, 0.6),
        "rejected: too few operations": (2, 0.2),
    }
    assert found["where captures end"] == {"call of a builtin": (5, 0.5)}
    assert found["executions"]["hits"] == (30, 0.3)
    assert found["what became of them"]["found in the object cache"] == (1, pytest.approx(1 / 3))
    assert found["time in the optimizer, seconds"] == {"capture": (0.75, 0.75), "llvm": (0.25, 0.25)}
    said = observations(stats)
    assert "60.0 % of the 10 attempts were rejected: slower than the interpreter" in said
    assert "70.0 % of the 100 visits of sites found no specialisation that fits" in said
    assert "1 s were spent in the optimizer, 75.0 % of that in capture" in said


def test_two_files_stand_side_by_side(tmp_path):
    base = read_stats(written(tmp_path, "base.txt"))
    head = read_stats(written(tmp_path, "head.txt", attempts=100, created=90, too_short=10, **{"Optimized trace length[8]": 5}))
    joined = {title: {row.name: row for row in rows} for title, rows in side_by_side(tables(base), tables(head))}
    assert joined["attempts"]["attempts"].change == pytest.approx(-0.9)
    assert list(joined["optimized trace length"]) == ["5 to 8", "9 to 16", "17 to 32"]
    assert joined["optimized trace length"]["5 to 8"].base is None
    assert differences(base, head) == [
        "10.0 times fewer attempts: 1,000 against 100",
        "90.0 % of attempts gave code, against 40.0 % in the base",
    ]


def test_different_optimizers_are_compared_with_a_warning(tmp_path, capsys):
    base, head = written(tmp_path), write(tmp_path / "ours.json", OURS.to_dict())
    assert main(["lab", "stats", str(base), str(head)]) == 0
    assert "CPython's optimizer against tierup's" in capsys.readouterr().out


def test_the_command_prints_tables_and_sentences(tmp_path, capsys):
    path = written(tmp_path)
    assert main(["lab", "stats", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "rejected: too short  600    60.0 %" in out
    assert f"what stands out in {path} (CPython)\n  60.0 % of the 1,000 attempts were rejected: too short\n" in out


def test_the_json_has_all_of_it(tmp_path, capsys):
    base, head = written(tmp_path), written(tmp_path, "head.txt", attempts=500)
    assert main(["lab", "stats", str(base), str(head), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [entry["optimizer"] for entry in data["files"]] == ["CPython", "CPython"]
    assert data["files"][0]["tables"]["attempts"]["created"] == {"value": 400, "share": 0.4}
    assert data["files"][1]["attempts_not_counted"] == 500
    assert data["changes"]["attempts"]["attempts"] == -0.5
    assert data["partial"] is False


@given(st.dictionaries(st.text("abc []._", min_size=1).filter(str.strip), st.integers(0, 10**12)))
def test_lines_are_counts(counts):
    stripped: dict[str, int] = {}
    for key, value in counts.items():
        stripped[key.strip()] = stripped.get(key.strip(), 0) + value
    assert parse_lines(as_text(counts)) == (stripped, [])


def test_a_text_that_is_damaged_is_partial(tmp_path, capsys):
    path = write(tmp_path / "cut.txt", as_text(pystats())[:-20])
    assert main(["lab", "stats", str(path)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("tierup lab stats: partial results: ") and "is no `key: number`" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "has no statistics of an optimizer"),
        ("hello\n", "has no statistics of an optimizer"),
        ("opcode[LOAD_FAST].execution_count : 3\n", "that build has no optimizer (--enable-experimental-jit)"),
        ("{", "is not JSON"),
        ('{"translate_seconds": 3}', "not a statistics file of this version"),
        ('{"a": 1}', "has no statistics of an optimizer"),
        ("[]", "has no statistics of an optimizer"),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path, content, says):
    with one_line(ReadError, says):
        read_stats(write(tmp_path / "other", content))


def test_an_empty_folder_is_said(tmp_path):
    with pytest.raises(ReadError, match="empty folder"):
        read_stats(tmp_path)


@pytest.mark.parametrize(
    ("words", "says"), [([], "needs one file"), (["a", "b", "c"], "needs one file"), (["absent"], "there is no file 'absent'")]
)
def test_wrong_command_lines(capsys, words, says):
    assert main(["lab", "stats", *words]) == 2
    assert says in capsys.readouterr().err
