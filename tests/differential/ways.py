"""The ways in which tierup runs a program: decorated functions, or a whole module instrumented as by `tierup run`."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType

import tierup
from tierup.engine import loader, units
from tierup.runtime import config

from .observe import How
from .programs import SCRIPT_MARK, Program


def _instrumented(code: CodeType) -> CodeType:
    chosen = config.current()
    config.set_current(chosen.replace(min_graph_size=0))
    try:
        return loader.instrument(code)
    finally:
        config.set_current(chosen)


# Also what would not pay: regions of one operation.
JITTED = How(jit=functools.partial(tierup.jit, min_graph_size=0))
WAYS = {"decorated": JITTED, "instrumented": How(load=_instrumented)}


def way_of(seed: int, program: Program) -> str:
    """Scripts have nothing to decorate; of the others every fifth is instrumented."""
    return "instrumented" if seed % 5 == 4 or SCRIPT_MARK in program.source else "decorated"


@dataclass
class Observed:
    """How often native code ran for a program."""

    path: Path
    runs: int = 0

    def watched(self, how: How) -> How:
        """The same way, counting at its end."""
        return replace(how, at_end=self._count)

    def _count(self) -> None:
        own = [unit for unit in units.all_units() if unit.filename == str(self.path)]
        specialisations = [spec for unit in own for state in unit.sites.values() for spec in state.specs]
        self.runs += sum(spec.compiled.plan.runs for spec in specialisations if spec.operations)
        loader._kept.clear()  # a process of ours runs thousands of modules, not one program
