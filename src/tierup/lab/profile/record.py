"""Recording profiles: runs a benchmark under Linux `perf`.

A benchmark that is made with pyperf says when its timed region begins and ends (pyperf's hook `perf_record`), so only that is sampled; of
any other program the whole process is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from tierup.lab.errors import LabError
from tierup.lab.profile import perf, perf_map
from tierup.lab.profile.model import Profile, Region, merge
from tierup.lab.profile.readers import perf_data
from tierup.lab.profile.symbols import printable

Kind = Literal["script", "pyperf", "pyperformance"]

_IMPORTS_PYPERF: Final = re.compile(rb"^\s*(import|from)\s+pyperf\b", re.MULTILINE)
_MANIFEST_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_INHERITED: Final = ("PYTHON_", "TIERUP_", "PYPERF_PERF_RECORD_")
"""Variables of the environment that begin so reach a benchmark's processes, which pyperf else starts with almost none. PYTHON_JIT and
PYTHON_GIL are among them; PYTHONPATH is not, which would bring other modules into a benchmark's virtual environment."""
_PERF_MAP: Final = "TIERUP_PERF_MAP"
"""Makes tierup name its kernels in a perf map."""


@dataclass(frozen=True)
class Settings:
    """How to record."""

    python: str
    """The interpreter that runs the benchmarks."""
    rate: int = 999
    """Samples a second; no divisor of what programs do in round numbers of milliseconds."""
    processes: int = 3
    """Processes of a benchmark that is made with pyperf."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables to set for the benchmarks."""
    tierup: bool = False
    """Run plain scripts with `tierup run`."""


@dataclass(frozen=True)
class Target:
    """A benchmark to record."""

    kind: Kind
    what: str
    """Path of a script, or a name of pyperformance's manifest."""

    @property
    def name(self) -> str:
        """The benchmark's name; pyperformance calls each script run_benchmark.py, in a folder bm_NAME."""
        if self.kind == "pyperformance":
            return self.what
        path = Path(self.what)
        folder = path.absolute().parent.name
        return folder.removeprefix("bm_") if path.stem == "run_benchmark" and folder.startswith("bm_") else path.stem


def find_target(word: str) -> Target | None:
    """The benchmark that a word of the command line names: a Python script, or a name of pyperformance. None if it is neither."""
    path = Path(word)
    if path.is_file() and path.suffix == ".py":
        return Target("pyperf" if _IMPORTS_PYPERF.search(path.read_bytes()) else "script", word)
    if not path.exists() and _MANIFEST_NAME.fullmatch(word):
        return Target("pyperformance", word)
    return None


@dataclass(frozen=True)
class Recorder:
    """A perf that may sample here, and what it samples."""

    tool: perf.Perf
    event: str
    settings: Settings

    @classmethod
    def ready(cls, settings: Settings) -> Recorder:
        """Finds perf and what it may sample. Raises LabError, with what to do, where sampling is not possible."""
        if shutil.which(settings.python) is None:
            raise LabError(f"there is no interpreter {settings.python!r}")
        tool = perf.find()
        return cls(tool, perf.usable_event(tool), settings)

    def record(self, target: Target) -> Profile:
        """Runs a benchmark and returns where its time went. Raises LabError where it gives no samples."""
        start = time.time()
        with tempfile.TemporaryDirectory(prefix="tierup-profile-") as name:
            folder = Path(name)
            failure = self._run(target, folder)
            profile = _read(target, sorted(folder.glob("perf.data*")), start, failure)
        region: Region = "process" if target.kind == "script" else "timed"
        problems = () if failure is None else (failure,)
        return replace(profile, region=region, problems=(*problems, *profile.problems), notes=(*profile.notes, *self._notes(region)))

    def _notes(self, region: Region) -> list[str]:
        notes = [] if region == "timed" else ["the whole process was sampled, with the interpreter's start"]
        return notes if perf.sees_kernel() else [*notes, "the kernel was not sampled, which kernel.perf_event_paranoid forbids"]

    def _run(self, target: Target, folder: Path) -> str | None:
        """Runs the benchmark with its samples in a folder; what it said if it failed."""
        command = self._command(target, folder)
        with tempfile.TemporaryFile() as output:
            try:
                done = subprocess.run(
                    command, env=self._environment(folder), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False
                )
            except OSError as error:
                raise LabError(f"{target.name}: cannot start {command[0]!r}: {error.strerror}") from None
            output.seek(0)
            lines = [line for line in output.read().decode(errors="replace").splitlines() if line.strip()]
        if done.returncode == 0:
            return None
        said = f": {printable(lines[-1].strip())[:300]}" if lines else ""
        return f"the benchmark ended with code {done.returncode}{said}"

    def _environment(self, folder: Path) -> dict[str, str]:
        return {
            **os.environ,
            _PERF_MAP: "1",
            **self.settings.environment,
            "PYPERF_PERF_RECORD_DATA_DIR": str(folder),
            "PYPERF_PERF_RECORD_EXTRA_OPTS": f"-e {self.event} -F {self.settings.rate}",
        }

    def _command(self, target: Target, folder: Path) -> list[str]:
        python = self.settings.python
        if target.kind == "script":
            program = ["-m", "tierup", "run", target.what] if self.settings.tierup else [target.what]
            return [*self.tool.record(self.event, self.settings.rate, folder / "perf.data"), python, *program]
        hook = ["--hook", "perf_record", "--inherit-environ", ",".join(_inherited(self._environment(folder), self.settings.environment))]
        if target.kind == "pyperf":
            return [python, target.what, "--quiet", "--processes", str(self.settings.processes), *hook]
        return [python, "-m", "pyperformance", "run", "--fast", "-b", target.what, *hook]


def _inherited(environment: Iterable[str], chosen: Iterable[str]) -> list[str]:
    names = {name for name in environment if name.startswith(_INHERITED)}
    return sorted(names | set(chosen))


def _read(target: Target, files: Sequence[Path], start: float, failure: str | None) -> Profile:
    """All samples of one benchmark. A file that cannot be read is a problem, unless no other can."""
    maps = perf_map.read_all(perf_map.DIRECTORY, since=start)
    profiles, complaints = [], []
    for path in files:
        try:
            profiles.append(perf_data.read(target.name, path, maps))
        except LabError as error:
            complaints.append(str(error))
    if not profiles:
        why = failure or (complaints[0] if complaints else "it has no timed region that pyperf's hook perf_record sees")
        raise LabError(f"{printable(target.name)}: no samples: {why}")
    merged = merge(target.name, profiles)
    lost = [f"{len(complaints)} of {len(files)} recordings could not be read: {complaints[0]}"] if complaints else []
    return replace(merged, problems=(*merged.problems, *lost))
