"""The example programs print the same, bits included, plain and under tierup, and something of them is compiled."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(("program", "args"), [("gray_scott.py", ["24", "60"]), ("options.py", ["500", "15"])])
def test_same_output(runner, program, args):
    shutil.copy(EXAMPLES / program, runner.folder)
    plain = runner.python(program, *args).stdout.splitlines()
    done = runner.tierup("explain", "--json", "--output", "report.json", program, *args)
    assert (done.stderr, done.returncode) == (b"", 0)
    ours = done.stdout.splitlines()
    assert plain[-1].startswith(b"seconds:") and ours[-1].startswith(b"seconds:")
    assert ours[:-1] == plain[:-1]
    report = json.loads((runner.folder / "report.json").read_text())
    hits = sum(one["hits"] for unit in report["units"] for one in unit["specialisations"])
    assert hits > 20
    assert report["stats"]["errors"] == 0
