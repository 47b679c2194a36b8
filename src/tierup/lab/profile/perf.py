"""Linux `perf` as a program: whether it is there and may sample, recording, and its file as text."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tierup.lab.errors import LabError
from tierup.lab.profile.symbols import printable

INSTALL: Final = "install it (Debian: linux-perf; Ubuntu: linux-tools-generic; Fedora: perf), or give profiles that were recorded elsewhere"
EVENTS: Final = ("cycles", "cpu-clock")
"""What can be sampled, the best first: the processor's counter, and the kernel's clock where a machine gives no counters."""
_PARANOID: Final = Path("/proc/sys/kernel/perf_event_paranoid")
_PROBE_SECONDS: Final = 20


@dataclass(frozen=True)
class Perf:
    """A perf that works."""

    path: str
    version: str

    def record(self, event: str, rate: int, output: Path) -> list[str]:
        """The command line that samples what follows it. rate: samples a second."""
        return [self.path, "record", "-q", "-e", event, "-F", str(rate), "-o", str(output), "--"]


def find() -> Perf:
    """The perf on the path. Raises LabError where there is none or it does not start."""
    if not sys.platform.startswith("linux"):
        raise LabError("sampling needs Linux perf, and this is no Linux: give profiles that were recorded elsewhere")
    path = shutil.which("perf")
    if path is None:
        raise LabError(f"Linux perf is not installed: {INSTALL}")
    done = _run([path, "--version"])
    if done.returncode != 0 or not done.stdout.startswith("perf version"):
        raise LabError(f"{path} does not start ({_last_line(done)}): {INSTALL}")
    return Perf(path, done.stdout.removeprefix("perf version").strip())


def usable_event(perf: Perf) -> str:
    """The first of EVENTS that can be sampled here. Raises LabError, with what to do, where none can."""
    refused = []
    with tempfile.TemporaryDirectory() as folder:
        for event in EVENTS:
            done = _run([*perf.record(event, 99, Path(folder, event)), sys.executable, "-S", "-c", ""])
            if done.returncode == 0:
                return event
            refused.append(done)
    raise LabError(f"perf may not sample here ({_last_line(refused[-1])}): {_permission_advice()}")


def sees_kernel() -> bool:
    """Whether samples of the kernel are taken, too."""
    return os.geteuid() == 0 or _paranoid() < 2


def script(perf: Perf, data: Path, fields: str) -> tuple[str, str | None]:
    """The samples of a perf.data file as text, and perf's complaint where it could not read all. Raises LabError."""
    # --force: the file may belong to another user, such as the one who recorded it.
    done = _run([perf.path, "script", "--force", "--no-inline", "-F", fields, "-i", str(data)], seconds=None)
    complaint = None if done.returncode == 0 else _last_line(done)
    if not done.stdout.strip():
        raise LabError(f"perf finds no samples in it ({_last_line(done)})" if done.stderr.strip() else "there are no samples in it")
    return done.stdout, complaint


def _run(command: Sequence[str], seconds: float | None = _PROBE_SECONDS) -> subprocess.CompletedProcess[str]:
    environment: Mapping[str, str] = {**os.environ, "LC_ALL": "C", "PAGER": "cat", "DEBUGINFOD_URLS": ""}
    how: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "errors": "replace", "env": environment}
    try:
        return subprocess.run(command, timeout=seconds, check=False, **how)
    except OSError as error:
        raise LabError(f"{command[0]} does not start: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise LabError(f"{command[0]} {command[1]} has not ended after {seconds:.0f} s") from None


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    """What a program said at its end, for a message."""
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines()]
    told = [line for line in lines if line and line.lower() not in ("error:", "failure:")]
    # perf's advice follows behind what is wrong, other programs' end is what is wrong.
    first = bool(lines) and lines[0].lower() == "error:"
    text = (told[0] if first else told[-1]) if told else f"exit code {done.returncode}"
    return printable(text)[:200].rstrip(":.")


def _paranoid() -> int:
    try:
        return int(_PARANOID.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 4


def _permission_advice() -> str:
    level = _paranoid()
    advice = "in a container, allow the system call perf_event_open and the capability PERFMON"
    if level > 1:
        advice = f"kernel.perf_event_paranoid is {level}; as root: sysctl kernel.perf_event_paranoid=1; {advice}"
    return advice
