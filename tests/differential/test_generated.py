"""Generated programs behave under tierup as they do plain, and most of them run native code.

`TIERUP_DIFFERENTIAL` says how many programs (20000 for a full run), `TIERUP_DIFFERENTIAL_SEED` with which one to begin.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import tierup

from .observe import difference
from .programs import SCRIPT_MARK, Program, from_seed, strategy
from .reduce import reduced
from .ways import JITTED, WAYS, Observed, way_of

PROGRAMS = int(os.environ.get("TIERUP_DIFFERENTIAL", "300"))
FIRST_SEED = int(os.environ.get("TIERUP_DIFFERENTIAL_SEED", "0"))
CHUNKS = 10
MANY = 0.8
"""The share of programs that must run at least one kernel."""

_native: dict[int, bool] = {}


def _failure(program: Program, way: str, found: str, folder: Path) -> str:
    """A report with the smallest program that still differs."""
    path = folder / "candidate.py"
    small = reduced(program, lambda candidate: difference(candidate, path, WAYS[way]) is not None)
    again = difference(small, path, WAYS[way]) or found
    return f"{way}: {found}\n\nreduced: {again}\n\n{small.own_source}"


@pytest.mark.timeout(max(300, 5 * PROGRAMS // CHUNKS))
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_difference(chunk: int, tmp_path: Path) -> None:
    tierup.reset()
    for seed in range(FIRST_SEED + chunk, FIRST_SEED + PROGRAMS, CHUNKS):
        program, path = from_seed(seed), tmp_path / f"program{seed}.py"
        way, observed = way_of(seed, program), Observed(path)
        found = difference(program, path, observed.watched(WAYS[way]))
        if found is not None:
            pytest.fail(f"seed {seed}, " + _failure(program, way, found, tmp_path), pytrace=False)
        if SCRIPT_MARK not in program.source:  # straight lines of a script run once and are not compiled
            _native[seed] = observed.runs > 0
    assert not (errors := tierup.stats().of_kind("error")), f"the translator failed: {errors}"


def test_most_programs_ran_native_code() -> None:
    if len(_native) < PROGRAMS // 2:
        pytest.skip("not all programs were run")
    assert sum(_native.values()) >= MANY * len(_native)


@pytest.mark.timeout(max(300, PROGRAMS))
@settings(
    max_examples=max(20, PROGRAMS // 20),
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
@given(program=strategy())
def test_no_difference_in_drawn_programs(tmp_path_factory: Any, program: Program) -> None:
    found = difference(program, tmp_path_factory.mktemp("drawn") / "program.py", JITTED)
    assert found is None, f"{found}\n\n{program.own_source}"
