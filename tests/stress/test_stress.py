"""CPython's own tests and generated programs in the stress modes (`TIERUP_STRESS`), each in a process of its own.

`TIERUP_STRESS_FULL=1` runs all combinations, `TIERUP_STRESS_QUICK=1` those that take seconds; they are part of `.ci/full`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FULL = os.environ.get("TIERUP_STRESS_FULL", "") not in ("", "0")
QUICK = ("test_grammar", "test_with", "test_scope")
SLOW = ("test_generators", "test_exceptions", "test_functools", "test_dataclasses")
HITS = ("hit", "exit:1", "exit:5")


pytestmark = pytest.mark.skipif(
    not FULL and not os.environ.get("TIERUP_STRESS_QUICK"), reason="TIERUP_STRESS_FULL=1 or TIERUP_STRESS_QUICK=1 runs the stress modes"
)


def _run(mode: str, *command: str) -> None:
    environment = {**os.environ, "TIERUP_STRESS": mode}
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, f"{command} under {mode}: exit code {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"


def _stdlib() -> list[tuple[str, str]]:
    everything = [(mode, name) for mode in ("miss", *HITS) for name in (*QUICK, *SLOW)]
    return (
        everything
        if FULL
        else [("miss", name) for name in (*QUICK, "test_generators")] + [(mode, name) for mode in HITS for name in QUICK[1:]]
    )


@pytest.mark.timeout(1600)
@pytest.mark.parametrize(("mode", "name"), _stdlib())
def test_cpython(mode: str, name: str) -> None:
    pytest.importorskip("test.support", reason="this Python comes without its test suite")
    _run(mode, str(HERE / "run_stdlib.py"), name)


@pytest.mark.timeout(1600)
@pytest.mark.parametrize("mode", ["miss", *HITS])
def test_generated_programs(mode: str) -> None:
    _run(mode, str(HERE / "run_generated.py"), "5000", "200" if FULL else "10")
