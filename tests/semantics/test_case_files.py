"""Runs case files kept outside the repository, where `TIERUP_SEMANTICS_CASES` names their folder.

Such a file, run with `COMPILER=tierup:jit`, prints SAME or DIFFERENT as its last line.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_FOLDER = os.environ.get("TIERUP_SEMANTICS_CASES", "")
FILES = sorted(Path(_FOLDER).glob("*.py")) if _FOLDER else []


@pytest.mark.skipif(not FILES, reason="TIERUP_SEMANTICS_CASES names no folder with cases")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    environment = {**os.environ, "COMPILER": "tierup:jit"}
    done = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines()[-1:] == ["SAME"], done.stdout + done.stderr
