"""Running programs with plain Python and with `tierup run`, side by side."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@dataclass
class Runner:
    """Runs command lines in a folder of their own."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return name

    def command(self, argv: Sequence[str], stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
        full = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **self.env, **env}
        full.pop("TIERUP_STATS_DIR", None) if "TIERUP_STATS_DIR" not in env else None
        return subprocess.run(argv, input=stdin, capture_output=True, cwd=self.folder, env=full, timeout=120, check=False)

    def python(self, *argv: str, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
        return self.command([sys.executable, *argv], stdin, **env)

    def tierup(self, *argv: str, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
        return self.command([sys.executable, "-m", "tierup", *argv], stdin, **env)

    def same(self, *argv: str, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
        """Runs a program both ways, asserts that nothing tells them apart, and returns what plain Python did."""
        plain = self.python(*argv, stdin=stdin, **env)
        ours = self.tierup("run", *argv, stdin=stdin, **env)
        assert (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout, plain.stderr, plain.returncode)
        return plain


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)
