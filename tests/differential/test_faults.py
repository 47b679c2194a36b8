"""Generated programs see every fault that `faults` can plant.

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
SECONDS = 900
RUNNER = Path(__file__).with_name("run_fault.py")

SEEDS: dict[str, int] = {
    "the guard on None, True and modules is dropped": 122,
    "the guard on an int's value is dropped": 208,
    "the guard on a string is dropped": 67,
    "the guard on a list's length is dropped": 90,
    "the guard on a dict's keys is dropped": 199,
    "the guard on a function's code is dropped": 203,
    "a branch on a number is not checked": 5,
    "a branch is checked with <= for <": 131,
    "an identity is not checked": 39,
    "two locals are exchanged at the exit": 1,
    "a local is not written at the exit": 1,
    "one object leaves as two": 198,
    "stores in the wrong order": 147,
    "a store is lost": 4,
    "a slice begins one too early": 27,
    "a negative step is ignored": 4,
    "operands of - and / exchanged": 1,
    "> for >=": 10,
    "fmax for maximum": 48,
    "where with its choices exchanged": 10,
    "a reduction over the other axis": 21,
    "a Python float becomes a NumPy scalar": 0,
    "integers are added for subtracted": 137,
    "transposed arrays are not": 8,
    "zeros are not set": 5,
    "operations whose results are unused are dropped with their warnings": 1,
    "floating-point flags are not tested": 1,
    "in-place changes are not seen through other names": 53,
    "views do not hinder in-place changes of temporaries": 32,
    "memory is read before the stores that come first": 4,
    "operations that differ in their attributes are merged": 1,
    "an attempt keeps the arguments alive": 0,
}
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
    assert _shown_by("", sorted(set(SEEDS.values()))) is None
