"""Generated loop programs see every fault that `faults` can plant.

Each fault gets a process of its own, which it may crash or keep from ending: that shows it, too. For each the seed of a program that
shows it is noted; should the generator have changed, others are tried.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from .faults import FAULTS

PROGRAMS = 300
SECONDS = 600
RUNNER = Path(__file__).with_name("run_fault.py")

SEEDS: dict[str, int] = {}
"""A program for each fault."""


def _shown_by(fault: str, seeds: Iterable[int]) -> int | None:
    """The first of the seeds whose program shows the fault; no fault is planted if its name is empty."""
    command = [sys.executable, str(RUNNER), fault, *map(str, seeds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    said = done.stdout.split("\n")[:-1]
    if said and said[-1] == "not shown":
        return None
    run = [line for line in said if line.isdigit()]
    assert run and (done.returncode < 0 or said[-1] == "shown"), f"exit code {done.returncode}\n{done.stderr[-4000:]}"
    return int(run[-1])


@pytest.mark.timeout(2 * SECONDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_seen(fault: str) -> None:
    known = SEEDS.get(fault)
    if known is not None and _shown_by(fault, [known]) is not None:
        return
    seed = _shown_by(fault, range(PROGRAMS))
    assert seed is not None, f"none of {PROGRAMS} programs shows it"
    print(f'seed of "{fault}": {seed}')
    assert _shown_by("", [seed]) is None, f"program {seed} differs without the fault"


def test_the_noted_programs_are_the_same_without_a_fault() -> None:
    assert not SEEDS or _shown_by("", sorted(set(SEEDS.values()))) is None
