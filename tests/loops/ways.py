"""How loop programs are run and watched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

import tierup
from differential.observe import How
from differential.snapshot import Snapshot
from tierup.engine import units

from .harness import hits_of


class ByValue(Snapshot):
    """Numbers are what they are worth: a loop makes new objects of those that it leaves behind."""

    def walk(self, path: str, obj: Any) -> None:
        if isinstance(obj, FunctionType) and obj.__closure__ is None:
            self.add(path, obj.__name__)  # the prelude's
        elif type(obj) is int:
            self.add(path, f"int {obj:#x}")
        elif type(obj) is float or isinstance(obj, np.generic):
            self._describer(obj)(path, type(obj).__qualname__, obj)
        else:
            super().walk(path, obj)


JITTED = How(jit=tierup.jit, snapshot=ByValue)


@dataclass
class Observed:
    """How often whole loops ran for a program."""

    path: Path
    runs: int = 0

    def watched(self, how: How = JITTED) -> How:
        """The same way, counting at its end."""
        return replace(how, at_end=self._count)

    def _count(self) -> None:
        own = [unit for unit in units.all_units() if unit.filename == str(self.path)]
        self.runs += sum(hits_of(unit) for unit in own)
