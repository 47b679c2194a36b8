"""Generated programs behave under `tierup.jit` as they do plain, and most of them run native code.

`TIERUP_DIFFERENTIAL` says how many programs (20000 for a full run), `TIERUP_DIFFERENTIAL_SEED` with which one to begin.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import tierup
from tierup.engine import units

from .observe import difference
from .programs import Program, from_seed, strategy
from .reduce import reduced

PROGRAMS = int(os.environ.get("TIERUP_DIFFERENTIAL", "300"))
FIRST_SEED = int(os.environ.get("TIERUP_DIFFERENTIAL_SEED", "0"))
CHUNKS = 10
jit = functools.partial(tierup.jit, min_graph_size=0)  # also what would not pay
MANY = 0.8
"""The share of programs that must run at least one kernel."""


def _note_runs(path: Path, runs: list[int]) -> None:
    """Appends how often specialisations with array operations ran, of those compiled and alive for a program."""
    specialisations = [
        spec for unit in units.all_units() if unit.filename == str(path) for state in unit.sites.values() for spec in state.specs
    ]
    runs.append(sum(spec.compiled.plan.runs for spec in specialisations if spec.operations))


def _failure(program: Program, found: str, folder: Path) -> str:
    """A report with the smallest program that still differs."""

    def fails(candidate: Program) -> bool:
        return difference(candidate.source, folder / "candidate.py", jit, candidate.exact_nans) is not None

    small = reduced(program, fails)
    again = difference(small.source, folder / "candidate.py", jit, small.exact_nans) or found
    return f"{found}\n\nreduced: {again}\n\n{small.own_source}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_difference(chunk: int, tmp_path: Path) -> None:
    seeds = range(FIRST_SEED + chunk, FIRST_SEED + PROGRAMS, CHUNKS)
    native = 0
    tierup.reset()
    for seed in seeds:
        program, path = from_seed(seed), tmp_path / f"program{seed}.py"
        runs: list[int] = []
        found = difference(program.source, path, jit, program.exact_nans, functools.partial(_note_runs, path, runs))
        native += runs[0] > 0
        if found is not None:
            pytest.fail(f"seed {seed}: " + _failure(program, found, tmp_path), pytrace=False)
    assert not (errors := tierup.stats().of_kind("error")), f"the translator failed: {errors}"
    assert native >= MANY * len(seeds), f"only {native} of {len(seeds)} programs ran native code"


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
    found = difference(program.source, tmp_path_factory.mktemp("drawn") / "program.py", jit, program.exact_nans)
    assert found is None, f"{found}\n\n{program.own_source}"
