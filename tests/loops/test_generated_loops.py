"""Generated loops behave under tierup as they do plain, and most of them run as native code.

`TIERUP_LOOPS` says how many programs, `TIERUP_LOOPS_SEED` with which one to begin.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import tierup
from differential.observe import difference
from differential.reduce import reduced

from .programs import LoopProgram, from_seed, strategy
from .ways import JITTED, Observed

PROGRAMS = int(os.environ.get("TIERUP_LOOPS", "40"))
FIRST_SEED = int(os.environ.get("TIERUP_LOOPS_SEED", "0"))
CHUNKS = 5
MANY = 0.8
"""The share of programs that must run at least one loop as native code."""

_native: dict[int, bool] = {}


def _failure(program: LoopProgram, found: str, folder: Path) -> str:
    """A report with the smallest program that still differs."""
    path = folder / "candidate.py"
    small = reduced(program, lambda candidate: difference(candidate, path, JITTED) is not None)
    again = difference(small, path, JITTED) or found
    return f"{found}\n\nreduced: {again}\n\n{small.own_source}"


@pytest.mark.timeout(max(300, 5 * PROGRAMS // CHUNKS))
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_difference(chunk: int, tmp_path: Path) -> None:
    tierup.reset()
    for seed in range(FIRST_SEED + chunk, FIRST_SEED + PROGRAMS, CHUNKS):
        program, observed = from_seed(seed), Observed(tmp_path / f"program{seed}.py")
        found = difference(program, observed.path, observed.watched())
        if found is not None:
            pytest.fail(f"seed {seed}: " + _failure(program, found, tmp_path), pytrace=False)
        _native[seed] = observed.runs > 0
    assert not (errors := tierup.stats().of_kind("error")), f"the translator failed: {errors}"


def test_most_programs_ran_native_loops() -> None:
    if len(_native) < PROGRAMS // 2:
        pytest.skip("not all programs were run")
    count = len(_native)
    chance = 0.0 if count >= 200 else 2 * (MANY * (1 - MANY) / count) ** 0.5  # two standard deviations of a small sample
    assert sum(_native.values()) >= (MANY - chance) * count


@pytest.mark.timeout(max(300, PROGRAMS))
@settings(
    max_examples=max(5, PROGRAMS // 20),
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
@given(program=strategy())
def test_no_difference_in_drawn_programs(tmp_path_factory: Any, program: LoopProgram) -> None:
    found = difference(program, tmp_path_factory.mktemp("drawn") / "program.py", JITTED)
    assert found is None, f"{found}\n\n{program.own_source}"
