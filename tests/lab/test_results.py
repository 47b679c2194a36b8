"""Result files in, values by process out; what cannot be used is named."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from lab.files import noisy, pyperf_data, write, write_pyperf
from tierup.lab.errors import ReadError
from tierup.lab.results.read import read

from .errors import one_line

pytest.importorskip("pyperf")

TWO = {"fib": [[1.0, 1.1], [1.2, 1.3]], "sort": [[2.0, 2.1], [2.2, 2.3]]}


def test_values_are_kept_by_process(tmp_path):
    results = read(write_pyperf(tmp_path / "base.json", TWO, memory=2**20))
    assert results.name == "base"
    assert results.python == "3.13.1"
    assert results.problems == ()
    fib = results.benchmarks["fib"]
    assert [values.tolist() for values in fib.processes] == TWO["fib"]
    assert fib.values.tolist() == [1.0, 1.1, 1.2, 1.3]
    assert (fib.mean, fib.unit, fib.memory) == (pytest.approx(1.15), "second", 2.0**20)


def test_a_gzipped_file_is_the_same(tmp_path):
    (tmp_path / "base.json.gz").write_bytes(gzip.compress(json.dumps(pyperf_data(TWO)).encode()))
    results = read(tmp_path / "base.json.gz")
    assert results.name == "base"
    assert set(results.benchmarks) == {"fib", "sort"}


def test_a_single_benchmark_has_its_name_in_the_file_as_a_whole(tmp_path):
    data = pyperf_data({"fib": TWO["fib"]})
    assert "name" not in data["benchmarks"][0].get("metadata", {})
    assert set(read(write(tmp_path / "one.json", data)).benchmarks) == {"fib"}


def spoilt(benchmark, values):
    data = pyperf_data(TWO)
    next(entry for entry in data["benchmarks"] if entry["metadata"]["name"] == benchmark)["runs"][-1]["values"] = values
    return data


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), 1e308, 1e-320, "1.0", None])
def test_a_bad_value_costs_its_benchmark_only(tmp_path, value):
    results = read(write(tmp_path / "bad.json", spoilt("fib", [1.0, value])))
    assert set(results.benchmarks) == {"sort"}
    assert len(results.problems) == 1
    assert "bad.json" in results.problems[0] and "'fib'" in results.problems[0]


def test_calibration_alone_is_no_benchmark(tmp_path):
    data = pyperf_data(TWO)
    data["benchmarks"][0]["runs"] = data["benchmarks"][0]["runs"][:1]
    results = read(write(tmp_path / "calibrated.json", data))
    assert set(results.benchmarks) == {"sort"}
    assert "only calibration runs" in results.problems[0]


def test_a_benchmark_twice_is_the_first_one(tmp_path):
    data = pyperf_data(TWO)
    again = json.loads(json.dumps(data["benchmarks"][0]))
    again["runs"] = again["runs"][:2]
    results = read(write(tmp_path / "twice.json", {**data, "benchmarks": [*data["benchmarks"], again]}))
    assert len(results.benchmarks["fib"].processes) == 2
    assert "more than once" in results.problems[0]


@pytest.mark.parametrize("odd", ["名前", "a b", "x" * 300, '<b>"&', "../../etc"])
def test_odd_names_are_names(tmp_path, odd):
    assert set(read(write_pyperf(tmp_path / "odd.json", {odd: TWO["fib"]})).benchmarks) == {odd}


@pytest.mark.parametrize("odd", ["a\tb", "a\x00b", "a\ud800b"])
def test_what_cannot_be_printed_of_a_name_is_replaced(tmp_path, odd):
    assert set(read(write_pyperf(tmp_path / "odd.json", {odd: TWO["fib"]})).benchmarks) == {"a\ufffdb"}
    data = {"results": [{"command": odd, "times": [1.0]}]}
    assert set(read(write(tmp_path / "other.json", data)).benchmarks) == {"a\ufffdb"}


def test_what_is_whole_of_a_file_that_was_cut_off_is_used(tmp_path):
    text = json.dumps(pyperf_data(noisy(["a", "b", "c"], seed=1)))
    whole = read(write(tmp_path / "whole.json", text))
    seen = set()
    for length in [*range(0, len(text), 37), len(text) - 1]:
        path = write(tmp_path / "cut.json", text[:length])
        try:
            results = read(path)
        except ReadError as error:
            assert str(path) in str(error)
            seen.add(0)
            continue
        assert "cut off" in results.problems[0]
        for name, bench in results.benchmarks.items():
            assert np.array_equal(bench.values, whole.benchmarks[name].values)
        seen.add(len(results.benchmarks))
    assert seen == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[1, 2]", "is no result file"),
        ('{"benchmarks": []}', "no benchmark that can be used"),
        ('{"benchmarks": 3}', "no benchmark that can be used"),
        ('{"benchmarks": [{"runs": 1}]}', "no benchmark that can be used"),
        ('{"benchmarks": [{"runs": [{"values": [1.0]}]}], "version": "7.0"}', "'7.0' not supported"),
        ('{"results": [{"command": "ls"}]}', "it has no 'times'"),
    ],
)
def test_a_file_without_results_is_refused_in_one_line(tmp_path, content, says):
    path = write(tmp_path / "foreign.json", content)
    with one_line(ReadError, says, str(path)):
        read(path)


def test_a_file_that_is_not_there_or_not_text_is_said(tmp_path):
    with pytest.raises(ReadError, match="No such file"):
        read(tmp_path / "absent.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReadError, match="not a text file"):
        read(tmp_path / "binary.json")
    (tmp_path / "half.json.gz").write_bytes(gzip.compress(b"{}" * 1000)[:-9])
    with pytest.raises(ReadError, match="cannot unpack"):
        read(tmp_path / "half.json.gz")


PYTEST_BENCHMARK = {
    "machine_info": {"python_version": "3.12.4"},
    "benchmarks": [
        {"name": "test_a", "fullname": "tests/test_x.py::test_a", "stats": {"mean": 0.5, "data": [0.4, 0.6]}},
        {"name": "test_b", "fullname": "tests/test_x.py::test_b", "stats": {"mean": 0.0, "data": [0.0]}},
    ],
    "version": "5.1.0",
}
HYPERFINE = {
    "results": [
        {"command": "sleep 0.1", "mean": 0.11, "times": [0.1, 0.12], "memory_usage_byte": [1000, 3000]},
        {"command": "false", "mean": 0.1, "times": []},
    ]
}
ASV = {
    "commit_hash": "abc",
    "python": "3.11",
    "version": 2,
    "result_columns": ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "samples"],
    "results": {
        "mod.time_plain": [[0.5], [], "v", 0, 0, [0.4], [0.6], [[0.4, 0.5, 0.6]]],
        "mod.time_sizes": [[1.0, None], [["10", "20"]], "v", 0, 0, [None, None], [None, None], [[0.9, 1.1], None]],
    },
}


@pytest.mark.parametrize(
    ("data", "expected", "left_out", "python"),
    [
        pytest.param(PYTEST_BENCHMARK, {"tests/test_x.py::test_a": [[0.4, 0.6]]}, "test_b", "3.12.4", id="pytest-benchmark"),
        pytest.param(HYPERFINE, {"sleep 0.1": [[0.1], [0.12]]}, "'false'", None, id="hyperfine"),
        pytest.param(
            ASV, {"mod.time_plain": [[0.4, 0.5, 0.6]], "mod.time_sizes(10)": [[0.9, 1.1]]}, "mod.time_sizes(20)", "3.11", id="asv"
        ),
    ],
)
def test_files_of_other_tools(tmp_path, data, expected, left_out, python):
    results = read(write(tmp_path / "other.json", data))
    assert {name: [values.tolist() for values in bench.processes] for name, bench in results.benchmarks.items()} == expected
    assert results.python == python
    assert len(results.problems) == 1 and left_out in results.problems[0]


def test_hyperfine_knows_the_memory(tmp_path):
    assert read(write(tmp_path / "h.json", HYPERFINE)).benchmarks["sleep 0.1"].memory == 2000.0


def test_pytest_benchmark_without_values_has_a_mean_and_says_so(tmp_path):
    data = {"benchmarks": [{"name": "t", "stats": {"mean": 0.5, "stddev": 0.1}}]}
    results = read(write(tmp_path / "p.json", data))
    assert results.benchmarks["t"].values.tolist() == [0.5]
    assert "--benchmark-save-data" in results.problems[0]
