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

SEEDS: dict[str, int] = {
    "integers are compared without their signs": 1,
    "less or equal for less": 43,
    "NaN equals NaN": 13,
    "integers are divided without their signs": 5,
    "an integer becomes a float without its sign": 2,
    "True counts as minus one": 1,
    "unsigned integers get a sign": 24,
    "an overflow is not noticed": 7,
    "an index out of range is not noticed": 7,
    "a result that is not finite is not noticed": 15,
    "integers are made to fit": 24,
    "a zero divisor of floats is not noticed": 14,
    "the events of the interpreter are not looked at": 13,
    "the guard on identities is dropped": 5,
    "the remainder has the dividend's sign": 2,
    "a float stored among integers is rounded": 12,
    "a negative index counts from the last but one": 9,
    "the last turn of a range is left out": 1,
    "operands on arrays are exchanged": 20,
    "`not` is forgotten": 17,
    "`is None` is `is not None`": 1,
    "a local is lost at an exit": 0,
    "two locals are exchanged at an exit": 0,
    "an iterator stands one too far at an exit": 1,
    "a float leaves as a NumPy scalar": 0,
    "two values are exchanged where blocks meet": 1,
}
"""A program for each fault. The others of FAULTS are rarer: none of the first programs (25 or 60 of them) shows one."""


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
@pytest.mark.parametrize("fault", SEEDS)
def test_fault_is_seen(fault: str) -> None:
    assert fault in FAULTS
    if _shown_by(fault, [SEEDS[fault]]) is not None:
        return
    seed = _shown_by(fault, range(PROGRAMS))
    assert seed is not None, f"none of {PROGRAMS} programs shows it"
    print(f'seed of "{fault}": {seed}')
    assert _shown_by("", [seed]) is None, f"program {seed} differs without the fault"


def test_the_noted_programs_are_the_same_without_a_fault() -> None:
    assert _shown_by("", sorted(set(SEEDS.values()))) is None
