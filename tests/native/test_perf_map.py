"""The names that profilers see of kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tierup
from tierup.lab.profile import perf_map

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="perf maps are Linux's")

PROGRAM = """\
import os, numpy, tierup

@tierup.jit
def chain(a, b):
    return a * b + a * 2.0 - b

@tierup.jit
def total(n):
    s = 0.0
    for i in range(n):
        s += i * 0.5 - s * 1e-9
    return s

def work():
    a = numpy.arange(1000.0)
    for _ in range(40):
        chain(a, a)
        total(100)

work()
{more}
print(os.getpid(), open("/proc/self/maps").read())
"""

FORK = """\
pid = os.fork()
if pid:
    os.waitpid(pid, 0)
else:
    @tierup.jit
    def other(a):
        return a * 3.0 - a / 2.0 + 1.0
    for _ in range(40):
        other(numpy.arange(1000.0))
    print(os.getpid(), flush=True)
    os._exit(0)
"""


def run(tmp_path, more="", **environment):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(more=more))
    variables = {**os.environ, "PYTHONPATH": str(Path(tierup.__file__).parents[1]), "TIERUP_CACHE_DIR": "", **environment}
    done = subprocess.run([sys.executable, str(path)], env=variables, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def map_of(pid):
    path = perf_map.DIRECTORY / f"perf-{pid}.map"
    try:
        assert path.stat().st_mode & 0o777 == 0o600
        return perf_map.parse(path.read_text())
    finally:
        path.unlink(missing_ok=True)


def test_kernels_and_loops_are_named_where_their_code_lies(tmp_path):
    pid, _, maps = run(tmp_path, TIERUP_PERF_MAP="1").partition(" ")
    found = map_of(pid)
    assert "tierup:total program.py:10-11" in found.names
    assert "tierup:multiply+multiply+add+subtract" in found.names
    spans = [tuple(int(end, 16) for end in line.split()[0].split("-")) for line in maps.splitlines() if "memfd:tierup" in line]
    for start, end in zip(found.starts, found.ends, strict=True):
        assert any(low <= start < end <= high for low, high in spans)


def test_a_fork_has_a_map_of_its_own_with_what_it_took_over(tmp_path):
    child, rest = run(tmp_path, FORK, TIERUP_PERF_MAP="1").split("\n", 1)
    parent = rest.partition(" ")[0]
    parents, childs = map_of(parent), map_of(child)
    assert set(parents.names) < set(childs.names)


def test_there_is_no_map_unless_it_is_asked_for(tmp_path):
    pid = run(tmp_path, TIERUP_PERF_MAP="0").partition(" ")[0]
    assert not (perf_map.DIRECTORY / f"perf-{pid}.map").exists()


def test_perf_shows_the_kernels_by_name(tmp_path):
    from tierup.lab.errors import LabError
    from tierup.lab.profile.categories import load
    from tierup.lab.profile.record import Recorder, Settings, Target
    from tierup.lab.profile.shares import compute

    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(more="total(30_000_000)\n"))
    settings = Settings(sys.executable, environment={"PYTHONPATH": str(Path(tierup.__file__).parents[1])})
    try:
        recorder = Recorder.ready(settings)
    except LabError as error:
        pytest.skip(str(error))
    found = compute(recorder.record(Target("script", str(path))), load())
    assert found.largest("jit", 1)[0].name.startswith("tierup:total program.py:")
