"""Statistics files and `tierup stats`."""

from __future__ import annotations

import json
import os
import stat

PROGRAM = """
from tierup.runtime import events
events.record("break", "an odd call", __file__, 3, "<module>")
events.record("rejected", "too small", __file__, 4, "<module>")
"""


def test_every_process_leaves_a_file_and_they_add_up(runner):
    runner.write("script.py", PROGRAM)
    folder = str(runner.folder / "stats")
    for _ in range(3):
        assert runner.tierup("run", "script.py", TIERUP_STATS_DIR=folder).returncode == 0
    assert len(os.listdir(folder)) == 3
    done = runner.tierup("stats", folder, "--json")
    total = json.loads(done.stdout)
    assert (done.returncode, total["processes"], total["rejections"]) == (0, 3, 3)
    breaks = [place for place in total["places"] if place["kind"] == "break"]
    assert [(place["reason"], place["line"], place["count"]) for place in breaks] == [("an odd call", 3, 3)]


def test_directory_from_the_environment_and_plain_text(runner):
    runner.write("script.py", PROGRAM)
    runner.tierup("run", "script.py", TIERUP_STATS_DIR="stats")
    done = runner.tierup("stats", TIERUP_STATS_DIR="stats")
    text = done.stdout.decode()
    assert done.returncode == 0
    assert "1 process" in text and "an odd call" in text and "script.py:3" in text
    assert "\x1b" not in text


def test_damaged_file_is_reported_and_skipped(runner):
    runner.write("script.py", PROGRAM)
    runner.tierup("run", "script.py", TIERUP_STATS_DIR="stats")
    for number, text in enumerate(["", "{", "[]", '{"version": 1}', '{"version": 99}']):
        runner.write(f"stats/tierup-{number}.json", text)
    runner.write("stats/unrelated.txt", "hello")
    done = runner.tierup("stats", "stats", "--json")
    assert done.returncode == 1
    assert done.stderr.count(b"skipped") == 5
    assert json.loads(done.stdout)["processes"] == 1


def test_unwritable_directory_leaves_the_program_alone(runner):
    runner.write("script.py", "print('out')\n")
    runner.write("file", "not a folder")
    done = runner.tierup("run", "script.py", TIERUP_STATS_DIR="file")
    assert (done.stdout, done.returncode) == (b"out\n", 0)
    assert done.stderr.count(b"\n") == 1 and b"cannot write statistics" in done.stderr


def test_children_of_multiprocessing_count_for_themselves(runner):
    runner.write(
        "script.py",
        "import multiprocessing as mp\nfrom tierup.runtime import events\n"
        "def work(x):\n    events.record('rejected', 'child')\n    return x\n"
        "if __name__ == '__main__':\n"
        "    events.record('rejected', 'parent')\n"
        "    p = mp.get_context('fork').Process(target=work, args=(1,))\n    p.start(); p.join()\n",
    )
    assert runner.tierup("run", "script.py", TIERUP_STATS_DIR="stats").returncode == 0
    total = json.loads(runner.tierup("stats", "stats", "--json").stdout)
    assert total["processes"] == 2
    assert sorted((place["reason"], place["count"]) for place in total["places"]) == [("child", 1), ("parent", 1)]


def test_files_are_whole(runner):
    runner.write("script.py", PROGRAM)
    runner.tierup("run", "script.py", TIERUP_STATS_DIR="stats")
    (path,) = (runner.folder / "stats").iterdir()
    assert path.suffix == ".json" and stat.S_ISREG(path.stat().st_mode)
    assert json.loads(path.read_text())["program"][-1] == "script.py"
