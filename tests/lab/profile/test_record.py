"""Recording with Linux perf, where it is there and may sample, and what is said where it may not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tierup.lab.commands.profile import prepare
from tierup.lab.errors import LabError
from tierup.lab.profile import perf
from tierup.lab.profile.categories import load
from tierup.lab.profile.readers.read import read
from tierup.lab.profile.record import Recorder, Settings, Target, find_target
from tierup.lab.profile.shares import compute
from tierup.runtime.args import UsageError

from ..errors import one_line

BUSY = """\
import time
{pre}
def work(loops):
    begin = time.perf_counter()
    for _ in range(loops):
        {body}
    return time.perf_counter() - begin
"""
INTEGERS = BUSY.format(pre="big = 3 ** 20000", body="big * big")


@pytest.fixture(scope="module")
def recorder() -> Recorder:
    """A recorder; skips where perf is absent or may not sample."""
    try:
        return Recorder.ready(Settings(sys.executable, processes=1))
    except LabError as error:
        pytest.skip(str(error))


@pytest.fixture
def script(tmp_path) -> Path:
    path = tmp_path / "powers.py"
    path.write_text(f"{INTEGERS}\nwork(150)\n")
    return path


def rows(profile):
    """What was sampled, without the names of files, which a recording that was cut off may lack."""
    return sorted((row.symbol, row.weight) for row in profile.rows)


def run_json(capsys, *words):
    code = prepare([*map(str, words), "--json"])()
    out, err = capsys.readouterr()
    return code, json.loads(out), err


def test_a_script(recorder, script):
    profile = recorder.record(Target("script", str(script)))
    found = compute(profile, load())
    assert (profile.name, profile.unit, profile.region, profile.problems) == ("powers", "period", "process", ())
    assert found.top == "int" and found.categories["int"] > 0.5
    assert any("start" in note for note in profile.notes)


def test_only_the_timed_region_of_a_pyperf_script(recorder, tmp_path):
    pytest.importorskip("pyperf")
    path = tmp_path / "bm_two" / "run_benchmark.py"
    path.parent.mkdir()
    path.write_text(
        f"import pyperf\ntext = 'a' * 30000\n{INTEGERS}\n"
        f"runner = pyperf.Runner(values=2, warmups=0, loops=300)\nif runner.parse_args().worker:\n    work(100)\n"
        "    for _ in range(2000): text.find('not in it')\n"
        "runner.bench_time_func('two', work)\n"
    )
    profile = recorder.record(find_target(str(path)))
    found = compute(profile, load())
    assert (profile.name, profile.region, profile.problems) == ("two", "timed", ())
    assert found.categories["int"] > 0.6
    assert found.categories.get("str", 0) + found.categories.get("import", 0) < 0.02


def test_a_benchmark_that_fails_gives_what_was_sampled(recorder, script):
    script.write_text(script.read_text() + "raise SystemExit('this\\x1b[31m went wrong')\n")
    profile = recorder.record(Target("script", str(script)))
    assert profile.problems == ("the benchmark ended with code 1: this\\x1b[31m went wrong",)
    assert compute(profile, load()).top == "int"


def test_a_benchmark_that_never_begins(recorder, tmp_path):
    pytest.importorskip("pyperf")
    path = tmp_path / "broken.py"
    path.write_text("import pyperf\nimport not_there_at_all\n")
    with pytest.raises(LabError, match=r"broken: no samples: the benchmark ended with code 1: ModuleNotFoundError: .*not_there_at_all"):
        recorder.record(find_target(str(path)))


def test_an_interpreter_that_is_not_there(script):
    with pytest.raises(LabError, match="there is no interpreter '/no/such/python'"):
        prepare([str(script), "--python", "/no/such/python"])()


def test_variables_for_the_benchmark(recorder, tmp_path):
    path = tmp_path / "which.py"
    path.write_text(f"import os\n{INTEGERS}\nwork(50 if os.environ.get('OF_MINE') == 'a=b' else 1 / 0)\n")
    settings = Settings(sys.executable, environment={"OF_MINE": "a=b"})
    assert Recorder(recorder.tool, recorder.event, settings).record(Target("script", str(path))).problems == ()


def test_recordings_are_read_in_every_form(recorder, script, tmp_path):
    """perf.data, and what perf script and perf report make of it as text, agree."""
    data = tmp_path / "powers.perf.data"
    command = recorder.tool.record(recorder.event, 999, data)
    subprocess.run([*command, sys.executable, str(script)], check=True, capture_output=True)
    forms = {
        "powers.script.txt": ["script", "--force", "-i", str(data)],
        "powers.report.txt": ["report", "--force", "--stdio", "-g", "none", "--show-total-period", "-s", "pid,symbol,dso", "-i", str(data)],
        "powers.txt": ["report", "--force", "--stdio", "-i", str(data)],
    }
    found = {"data": compute(read(data), load())}
    for name, words in forms.items():
        text = subprocess.run([recorder.tool.path, *words], check=True, capture_output=True, stdin=subprocess.DEVNULL).stdout
        (tmp_path / name).write_bytes(text)
        found[name] = compute(read(tmp_path / name), load())
    for shares in found.values():
        assert (shares.name, shares.top, shares.problems) == ("powers", "int", ())
        assert shares.categories["int"] == pytest.approx(found["data"].categories["int"], abs=0.01)


def test_a_recording_that_was_cut_off(recorder, script, tmp_path):
    """perf cannot read it at all, or reads a part; there is one line, and no traceback, for either."""
    data = tmp_path / "powers.perf.data"
    subprocess.run([*recorder.tool.record(recorder.event, 999, data), sys.executable, str(script)], check=True, capture_output=True)
    whole, samples = data.read_bytes(), rows(read(data))
    for size in (8, 100, len(whole) // 2, len(whole) - 200):
        data.write_bytes(whole[:size])
        try:
            profile = read(data)
        except LabError as error:
            assert str(data) in str(error) and "\n" not in str(error)
        else:
            assert profile.problems or rows(profile) == samples


def test_the_command_records_reads_and_keeps(recorder, script, tmp_path, capsys):
    old = tmp_path / "old.csv"
    old.write_text("self,children,object,symbol\n100,0,python,tuplehash\n")
    code, data, err = run_json(capsys, script, old, "--output", tmp_path / "kept", "--symbols", "3")
    assert (code, err, data["failed"]) == (0, "[1/2] powers\n", [])
    assert data["top"] == {"powers": "int", "old": "tuple"}
    entry = data["benchmarks"]["powers"]
    assert len(entry["symbols"]) == 3 and entry["region"] == "process" and data["shares"]["powers"]["int"] > 0.5
    kept = compute(read(tmp_path / "kept" / "powers.perf.csv"), load())
    assert kept.categories == pytest.approx(data["shares"]["powers"])
    assert read(tmp_path / "kept" / "old.perf.csv").rows == read(old).rows


def test_one_that_fails_does_not_stop_the_rest(tmp_path, capsys):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "good.csv").write_text("self,children,object,symbol\n100,0,python,tuplehash\n-1,0,python,f\n")
    code, data, err = run_json(capsys, tmp_path / "empty.csv", tmp_path / "good.csv")
    assert code == 1 and list(data["benchmarks"]) == ["good"] and data["benchmarks"]["good"]["partial"]
    assert "empty.csv is empty" in data["failed"][0]
    assert [line.rpartition(": ")[0] for line in err.splitlines()] == [
        "tierup lab profile: partial profile: good: left out line 3",
        f"tierup lab profile: {tmp_path / 'empty.csv'} is empty",
    ]


def test_as_text(tmp_path, capsys):
    old = tmp_path / "old.csv"
    old.write_text("self,children,object,symbol\n70,0,python,tuplehash\n20,0,[JIT] tid 4,tierup:add+mul\n10,0,python3.8,main\n")
    assert prepare([str(old)])() == 0
    text = capsys.readouterr().out
    for line in ("tuple     77.8%  tuplehash", "jit       22.2%  tierup:add+mul", "left out: python3.8, another program, with 10.0%"):
        assert line in text


def test_the_table_of_categories_is_printed(capsys):
    assert prepare(["--print-categories"])() == 0
    assert '[[category]]\nname = "interpreter"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "needs a script, a benchmark or a profile"),
        (["no/such.py"], "there is no file 'no/such.py', and no benchmark of pyperformance is called so"),
        (["nbody", "--rate", "0"], "--rate must be a whole number from 1 to 100000, not '0'"),
        (["nbody", "--processes", "many"], "--processes must be a whole number"),
        (["nbody", "--env", "X"], "--env must be NAME=VALUE"),
        (["nbody", "--fast"], "unknown option --fast"),
    ],
)
def test_wrong_command_lines(words, message):
    with pytest.raises(UsageError) as raised:
        prepare(words)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("word", "kind", "name"),
    [
        ("nbody", "pyperformance", "nbody"),
        ("2to3", "pyperformance", "2to3"),
        ("a/bm_go/run_benchmark.py", "pyperf", "go"),
        ("a/plain.py", "script", "plain"),
        ("a/old.csv", None, None),
        ("absent.csv", None, None),
    ],
)
def test_what_a_word_names(tmp_path, monkeypatch, word, kind, name):
    monkeypatch.chdir(tmp_path)
    Path("a/bm_go").mkdir(parents=True)
    Path("a/bm_go/run_benchmark.py").write_text("from pyperf import Runner\n")
    Path("a/plain.py").write_text("# import pyperf\nimport pyperformance_of_mine\n")
    Path("a/old.csv").write_text("self")
    target = find_target(word)
    assert (target and target.kind, target and target.name) == (kind, name)


def on_path(tmp_path, monkeypatch, text):
    """Puts a program called perf, and nothing else, on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    if text is not None:
        (folder / "perf").write_text(f"#!{shutil.which('sh')}\n{text}\n")
        (folder / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


REFUSED = """\
if [ "$1" = --version ]; then echo perf version 6.1; exit 0; fi
echo 'Error:
Access to performance monitoring and observability operations is limited.
Consider adjusting /proc/sys/kernel/perf_event_paranoid setting to open' >&2
exit 255"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="perf is Linux's")
@pytest.mark.parametrize(
    ("program", "message"),
    [
        (None, "Linux perf is not installed: install it (Debian: linux-perf"),
        (
            "echo 'WARNING: perf not found for kernel 6.18' >&2; exit 2",
            "does not start (WARNING: perf not found for kernel 6.18): install it",
        ),
        (REFUSED, "perf may not sample here (Access to performance monitoring and observability operations is limited): "),
    ],
    ids=["absent", "broken", "refused"],
)
def test_where_perf_is_absent_or_refused(tmp_path, monkeypatch, script, program, message):
    on_path(tmp_path, monkeypatch, program)
    with one_line(LabError, message) as raised:
        prepare([str(script)])()
    assert "container" in str(raised.value) or "install it" in str(raised.value)


def test_reading_needs_perf_for_its_own_files_only(tmp_path, monkeypatch, capsys):
    on_path(tmp_path, monkeypatch, None)
    (tmp_path / "a.perf.data").write_bytes(b"PERFILE2" + b"\0" * 100)
    (tmp_path / "b.csv").write_text("self,children,object,symbol\n100,0,python,tuplehash\n")
    code, data, err = run_json(capsys, tmp_path)
    assert code == 1 and list(data["benchmarks"]) == ["b"]
    assert "a.perf.data: Linux perf is not installed" in err and "perf script -F" in err


def test_what_can_be_sampled(recorder):
    assert recorder.event in perf.EVENTS and recorder.tool.version
