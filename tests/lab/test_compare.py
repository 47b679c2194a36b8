"""`tierup lab compare`: files in, figures out."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from math import exp, log

import numpy as np
import pytest

from lab.files import noisy, pyperf_data, write, write_pyperf
from tierup.cli.main import main
from tierup.lab.compare import compare
from tierup.lab.results.read import read
from tierup.lab.statistics.bench_runner import hpt as bench_runner_hpt

pytest.importorskip("pyperf")

NAMES = [f"bench_{letter}" for letter in "abcdefghijkl"]


@pytest.fixture
def files(tmp_path):
    """A base, a head 5 % slower in two thirds and 3 % faster in the others, and groups."""
    base = write_pyperf(tmp_path / "base.json", noisy(NAMES, seed=1, spread=0.002), memory=1000)
    slower = noisy(NAMES[:8], seed=2, spread=0.002, ratio=1.05) | noisy(NAMES[8:], seed=3, spread=0.002, ratio=0.97)
    head = write_pyperf(tmp_path / "head.json", slower, memory=1100)
    groups = write(tmp_path / "groups.json", {"slow": NAMES[:8], "fast": NAMES[8:], "odd": ["absent", "bench"], "all": ["bench_a"]})
    return base, head, groups


def run_json(capsys, *words):
    code = main(["lab", "compare", *map(str, words), "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out), err


def test_the_shape_of_the_json(files, capsys):
    base, head, groups = files
    code, data, err = run_json(capsys, base, head, "--groups", groups)
    assert (code, err) == (0, "")
    assert [entry["name"] for entry in data["heads"]] == ["head"]
    entry = data["heads"][0]
    assert set(entry["groups"]) == {"slow", "fast", "odd", "all"}
    for summary in (entry["whole"], *entry["groups"].values()):
        assert {"n", "reliability", "direction", "speedup", "geometric_mean"} <= set(summary)
        assert set(summary["speedup"]) == {"0.90", "0.95", "0.99"}
    assert entry["whole"]["n"] == 12 and list(entry["benchmarks"]) == NAMES
    slow, fast, odd = (entry["groups"][name] for name in ("slow", "fast", "odd"))
    assert (slow["n"], slow["direction"]) == (8, "slower")
    assert slow["speedup"]["0.99"] == pytest.approx(1.05, abs=0.01)
    assert (fast["n"], fast["direction"], fast["speedup"]["0.99"]) == (4, "faster", None)
    assert fast["notes"] == ["too few benchmarks to reach 99 % (or 90 % or 95 %)"]
    assert (odd["unmatched"], odd["n"], odd["direction"]) == (["absent", "bench"], 0, None)
    assert entry["groups"]["all"]["n"] == 1
    assert entry["unmatched"] == {"base": [], "head": []} and entry["partial"] is False


def test_figures_are_those_of_the_values(files, capsys):
    base, head, groups = files
    _, data, _ = run_json(capsys, base, head, "--groups", groups)
    sides = [read(path).benchmarks for path in (base, head)]
    ratios = {name: sides[1][name].values.mean() / sides[0][name].values.mean() for name in NAMES}
    entry = data["heads"][0]
    for name, ratio in ratios.items():
        found = entry["benchmarks"][name]
        assert found["ratio"] == pytest.approx(ratio)
        low, high = found["interval"]
        assert low < ratio < high
        assert found["memory"] == pytest.approx(1.1)
    assert entry["whole"]["geometric_mean"] == pytest.approx(exp(sum(map(log, ratios.values())) / 12))
    assert entry["groups"]["fast"]["geometric_mean"] == pytest.approx(exp(sum(log(ratios[name]) for name in NAMES[8:]) / 4))
    assert entry["whole"]["memory"] == pytest.approx(1.1)
    inner, outer = entry["whole"]["interval"], entry["whole"]["interval_of_such_benchmarks"]
    assert outer[0] < inner[0] < entry["whole"]["geometric_mean"] < inner[1] < outer[1]


def test_bench_runner_mode_is_that_hpt(files, capsys):
    base, head, _ = files
    _, data, _ = run_json(capsys, base, head, "--hpt=bench-runner")
    sides = [{name: bench.values for name, bench in read(path).benchmarks.items()} for path in (base, head)]
    expected = bench_runner_hpt(*sides)
    whole = data["heads"][0]["whole"]
    assert (whole["n"], whole["direction"], whole["reliability"]) == (12, expected.direction, expected.reliability)
    assert [*whole["speedup"].values()] == [*expected.speedup.values()]


def test_bench_runner_mode_leaves_out_what_that_tool_refuses(tmp_path):
    base = noisy(["a", "b"], seed=1) | noisy(["few"], seed=1, processes=3)
    head = noisy(["a", "few"], seed=2) | noisy(["b"], seed=2, processes=12)
    results = [read(write_pyperf(tmp_path / f"{name}.json", side)) for name, side in (("base", base), ("head", head))]
    whole = compare(*results, method="bench-runner").whole
    assert whole.verdict.n == 3
    assert any("2 with different numbers of values" in note for note in whole.notes)
    tiny = [read(write_pyperf(tmp_path / f"{name}.json", noisy(["a"], seed=3, processes=2))) for name in ("one", "two")]
    none = compare(*tiny, method="bench-runner").whole
    assert none.verdict is None and "fewer than 12 values: a" in none.notes[0]


def test_names_are_matched_or_not(tmp_path, capsys):
    values = noisy(["logging_format", "logging_silent", "create_gc_cycles"], seed=1)
    base = write_pyperf(tmp_path / "base.json", values)
    groups = write(tmp_path / "groups.json", {"g": ["logging", "gc_collect", "nothing"]})
    _, mapped, _ = run_json(capsys, base, base, "--groups", groups)
    _, exact, _ = run_json(capsys, base, base, "--groups", groups, "--exact-names")
    assert mapped["heads"][0]["groups"]["g"]["benchmarks"] == ["logging_format", "logging_silent", "create_gc_cycles"]
    assert mapped["heads"][0]["groups"]["g"]["unmatched"] == ["nothing"]
    assert exact["heads"][0]["groups"]["g"]["unmatched"] == ["logging", "gc_collect", "nothing"]


def test_the_text_says_it_all(files, capsys):
    base, head, groups = files
    assert main(["lab", "compare", str(base), str(head), "--groups", str(groups), "--top", "3"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and "\x1b" not in out
    assert out.startswith("head against base\n")
    assert re.search(r"^slow +8 +8 .* slower .* 1\.0\d\dx", out, re.M)
    assert "fast: too few benchmarks to reach 99 % (or 90 % or 95 %)" in out
    assert "odd: not in both files: absent, bench" in out
    assert "slow-downs (the first 3 of 8)" in out and "speed-ups (the first 3 of 4)" in out
    assert "0 of 12 benchmarks do not differ significantly" in out


def test_on_a_terminal_there_are_rules(files):
    base, head, _ = files
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tierup", "lab", "compare", base, head], stdout=theirs, env={**os.environ, "COLUMNS": "200", "TERM": "xterm"}
    )
    os.close(theirs)
    seen = b""
    while chunk := _read(ours):
        seen += chunk
    os.close(ours)
    assert process.wait(60) == 0
    assert "┃" in seen.decode() and "bench_a" in seen.decode()


def _read(descriptor):
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""  # Linux says EIO when the other end of a terminal is closed


def test_several_heads_are_told_apart(files, tmp_path, capsys):
    base, head, _ = files
    (tmp_path / "other").mkdir()
    again = tmp_path / "other" / "head.json"
    again.write_bytes(head.read_bytes())
    _, data, _ = run_json(capsys, base, head, again, base)
    assert [entry["name"] for entry in data["heads"]] == [str(head), str(again), "base"]
    assert main(["lab", "compare", str(base), str(head), str(base)]) == 0
    out = capsys.readouterr().out
    assert "head against base" in out and "base against base" in out


def test_what_makes_files_less_comparable_is_said(tmp_path, capsys):
    base = write_pyperf(tmp_path / "base.json", noisy(["a", "b", "only_base"], seed=1) | {"single": [[1.0]], "few": [[1.0, 1.1]] * 2})
    longer = noisy(["a"], seed=2, processes=6) | noisy(["b", "only_head"], seed=2) | {"single": [[1.0]], "few": [[1.0, 1.1]] * 2}
    head = write_pyperf(tmp_path / "head.json", longer, python="3.14.0")
    code, data, _ = run_json(capsys, base, head)
    assert code == 0
    entry = data["heads"][0]
    assert entry["unmatched"] == {"base": ["only_base"], "head": ["only_head"]}
    assert entry["notes"] == [
        "different Python versions: 3.13.1 against 3.14.0",
        "different numbers of values in a",
        "one value only, which says nothing about noise, in single",
        "fewer than 4 processes on a side, so that values are taken for independent, in few",
    ]
    assert entry["benchmarks"]["single"]["interval"] is None and entry["benchmarks"]["single"]["significant"] is False


def test_different_units_are_not_compared(tmp_path, capsys):
    base = write_pyperf(tmp_path / "base.json", noisy(["a"], seed=1))
    head = write_pyperf(tmp_path / "head.json", noisy(["a"], seed=1), unit="byte")
    _, data, _ = run_json(capsys, base, head)
    entry = data["heads"][0]
    assert entry["notes"] == ["a left out: it is measured in different units, second against byte"]
    assert (entry["whole"]["n"], entry["whole"]["direction"], entry["whole"]["notes"]) == (0, None, ["no benchmarks"])
    assert main(["lab", "compare", str(base), str(head)]) == 0
    assert "all: no benchmarks" in capsys.readouterr().out


def test_partial_results_are_marked(tmp_path, capsys):
    base = write_pyperf(tmp_path / "base.json", noisy(["a", "b"], seed=1))
    text = json.dumps(pyperf_data(noisy(["a", "b"], seed=2)))
    cut = write(tmp_path / "cut.json", text[: text.index('"b"')])
    code, data, err = run_json(capsys, base, cut)
    assert code == 1
    assert data["partial"] is True and data["heads"][0]["partial"] is True
    assert data["heads"][0]["whole"]["n"] == 1
    assert err.startswith("tierup lab compare: partial results: ") and "cut off" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["lab", "nothing"], "no command 'nothing'"),
        (["lab", "compare"], "needs a base and at least one head"),
        (["lab", "compare", "BASE"], "needs a base and at least one head"),
        (["lab", "compare", "BASE", "absent.json"], "there is no file 'absent.json'"),
        (["lab", "compare", "BASE", "BASE", "--hpt=bayes"], "--hpt must be one of default, bench-runner, not 'bayes'"),
        (["lab", "compare", "BASE", "BASE", "--top", "x"], "--top must be a whole number"),
        (["lab", "compare", "BASE", "BASE", "--groups", "absent"], "there is no file 'absent'"),
        (["lab", "compare", "BASE", "BASE", "--frobnicate"], "unknown option --frobnicate"),
    ],
)
def test_wrong_command_lines_are_one_line_and_code_2(files, capsys, words, says):
    assert main([str(files[0]) if word == "BASE" else word for word in words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("tierup lab: ") and says in err and err.count("\n") == 1


@pytest.mark.parametrize("words", [["lab", "--help"], ["lab", "compare", "--help"], ["lab", "compare", "-h"]])
def test_help(capsys, words):
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("usage: tierup lab")


def test_an_unusable_file_is_one_line_and_code_1(files, tmp_path, capsys):
    foreign = write(tmp_path / "foreign.json", {"hello": 1})
    assert main(["lab", "compare", str(files[0]), str(foreign)]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"tierup lab compare: {foreign} is no result file of pyperf, pytest-benchmark, asv or hyperfine\n")


def test_without_pyperf_it_says_what_to_install(files):
    base, head, _ = files
    program = "import sys; sys.modules['pyperf'] = None; from tierup.cli.main import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", program, "lab", "compare", base, head], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "tierup lab compare: this needs pyperf, which is not installed: pip install 'tierup[lab]'\n"


def test_a_full_disk_and_a_closed_pipe_are_no_tracebacks(files):
    base, head, _ = files
    command = [sys.executable, "-m", "tierup", "lab", "compare", base, head, "--json"]
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "tierup lab compare: cannot write the output: No space left on device\n")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_hundred_benchmarks_of_sixty_values_are_compared_in_one_go(tmp_path):
    """How long that takes is measured by benchmarks/lab.py; here, that the figures do not depend on what else is compared."""
    names = [f"b{k}" for k in range(100)]
    base, head = (noisy(names, seed=seed, processes=20, ratio=ratio) for seed, ratio in ((1, 1.0), (2, 1.01)))
    results = [read(write_pyperf(tmp_path / f"{name}.json", side)) for name, side in (("base", base), ("head", head))]
    everything = compare(*results)
    part = compare(*results, {"five": names[:5]})
    assert part.pairs["b3"].to_dict() == everything.pairs["b3"].to_dict()
    assert everything.whole.verdict.direction == "slower" and everything.whole.verdict.reliability > 0.99
    assert np.isclose(everything.whole.geometric_mean, 1.01, atol=0.005)
