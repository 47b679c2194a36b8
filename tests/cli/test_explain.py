"""`tierup explain` of programs."""

from __future__ import annotations

import json

PROGRAM = """
import numpy as np

def smooth(a, rate):
    b = a * rate + (1.0 - rate) * (a + 3.0)
    print("step", end=" ")
    return np.sqrt(b * 2.0 + a * a) - b

x = np.linspace(0.0, 1.0, 200)
for _ in range(60):
    y = smooth(x, 0.5)
print(y.sum())
"""


def test_report_follows_the_output_of_the_program(runner):
    runner.write("script.py", PROGRAM)
    plain = runner.python("script.py").stdout.decode()
    done = runner.tierup("explain", "script.py")
    text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert text.startswith(plain)
    report = text[len(plain) :]
    assert "smooth" in report and "script.py" in report and "break at" in report and "time by phase" in report
    assert "\x1b" not in report


def test_json_to_a_file(runner):
    runner.write("script.py", PROGRAM + "raise SystemExit(4)\n")
    plain = runner.python("script.py")
    done = runner.tierup("explain", "--json", "--output", "report.json", "script.py")
    assert (done.stdout, done.stderr, done.returncode) == (plain.stdout, plain.stderr, 4)
    report = json.loads((runner.folder / "report.json").read_text())
    (unit,) = [unit for unit in report["units"] if unit["function"] == "smooth"]
    assert unit["file"].endswith("script.py")
    assert sum(one["hits"] for one in unit["specialisations"]) > 50
    assert report["graphs"] >= 1 and report["kernels"] >= 1
    assert {entry["line"] for entry in unit["breaks"]} >= {6}
    assert all(entry["reason"] for entry in report["breaks"])


def test_program_that_fails(runner):
    runner.write("script.py", PROGRAM + "1 / 0\n")
    done = runner.tierup("explain", "script.py")
    assert done.returncode == 1
    assert done.stderr == runner.python("script.py").stderr
    assert b"smooth" in done.stdout


def test_program_that_closes_its_output(runner):
    runner.write("script.py", "import numpy, sys\nsys.stdout.close()\n")
    done = runner.tierup("explain", "script.py")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"0 graphs" in done.stdout


def test_unwritable_report(runner):
    runner.write("script.py", "print('out')\n")
    done = runner.tierup("explain", "--output", "missing/report.txt", "script.py")
    assert (done.stdout, done.returncode) == (b"out\n", 0)
    assert done.stderr.count(b"\n") == 1 and b"cannot write the report" in done.stderr


def test_off(runner):
    runner.write("script.py", "print('out')\n")
    done = runner.tierup("explain", "script.py", TIERUP="0")
    assert done.stdout == b"out\n" and done.returncode == 0
