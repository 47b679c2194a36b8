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
    "integers are compared without their signs": 0,
    "less or equal for less": 5,
    "NaN equals NaN": 32,
    "integers are divided without their signs": 14,
    "an integer becomes a float without its sign": 4,
    "True counts as minus one": 4,
    "unsigned integers get a sign": 17,
    "an overflow is not noticed": 17,
    "an index out of range is not noticed": 1,
    "a result that is not finite is not noticed": 4,
    "integers are made to fit": 17,
    "a zero divisor of floats is not noticed": 17,
    "the events of the interpreter are not looked at": 17,
    "the guard on identities is dropped": 0,
    "the remainder has the dividend's sign": 0,
    "a float stored among integers is rounded": 25,
    "a negative index counts from the last but one": 1,
    "the last turn of a range is left out": 4,
    "operands on arrays are exchanged": 17,
    "`not` is forgotten": 2,
    "`is None` is `is not None`": 0,
    "a local is lost at an exit": 0,
    "two locals are exchanged at an exit": 0,
    "an iterator stands one too far at an exit": 4,
    "a float leaves as a NumPy scalar": 0,
    "two values are exchanged where blocks meet": 2,
    "small integers lose their sign": 25,
    "a slice ends one too early": 5,
    "a place to leave to is kept behind a store": 115,
    "zip asks only the first that it goes through": 79,
    "a float's remainder has the dividend's sign": 108,
    "a float of half the size may become infinite": 117,
}
"""A program for each fault. The others of FAULTS are rarer: none of the first 120 programs shows one."""


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
