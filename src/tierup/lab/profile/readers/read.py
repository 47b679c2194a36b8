"""Opening profiles, whichever way they were recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tierup.lab.errors import LabError, ReadError
from tierup.lab.profile.model import Profile
from tierup.lab.profile.readers import csv_reports, perf_data, perf_report, perf_script
from tierup.lab.profile.readers.text import PROFILES, read_text
from tierup.lab.profile.symbols import printable

_ENDING: Final = re.compile(r"(\.perf|\.script|\.report)*(\.csv|\.data|\.txt|\.perf|\.script|\.report)$", re.IGNORECASE)
"""How the names of profiles end; before it is the benchmark's name."""


@dataclass(frozen=True)
class Folder:
    """What a folder of profiles holds."""

    profiles: tuple[Profile, ...]
    failed: tuple[str, ...]
    """Profiles that could not be read, a line each."""


def benchmark_name(path: Path) -> str:
    """The benchmark that a profile is named after."""
    return _ENDING.sub("", path.name) or path.name


def read(path: Path, name: str | None = None) -> Profile:
    """The profile in a file: a CSV report, the text of perf report or perf script, or perf.data. Raises ReadError."""
    where = printable(str(path))
    name = name or benchmark_name(path)
    try:
        if perf_data.is_perf_data(path):
            return perf_data.read(name, path)
        text, problems = read_text(path)
        if csv_reports.is_report(text):
            return csv_reports.parse(name, text, problems)
        if perf_report.is_report(text):
            return perf_report.parse(name, text, problems)
        if perf_script.is_script(text):
            return perf_script.parse(name, text, problems)
    except LabError as error:
        message = str(error)
        raise ReadError(message if where in message else f"{where}: {message}") from None
    raise ReadError(f"{where} is none: {PROFILES}")


def read_folder(folder: Path) -> Folder:
    """All profiles in a folder. A file that is none fails alone. Raises ReadError where there is not one file with a profile's name."""
    try:
        paths = sorted(path for path in folder.iterdir() if _ENDING.search(path.name) and path.is_file())
    except OSError as error:
        raise ReadError(f"cannot read {str(folder)!r}: {error.strerror}") from None
    if not paths:
        raise ReadError(f"there is no profile in {printable(str(folder))}: names end in .csv, .txt, .perf or .data")
    return read_files(paths)


def read_files(paths: Iterable[Path]) -> Folder:
    """The profiles of several files, each on its own; a second file for one benchmark fails."""
    profiles: dict[str, Profile] = {}
    failed = []
    for path in paths:
        name = benchmark_name(path)
        if name in profiles:
            failed.append(f"{printable(str(path))}: there is another profile of {printable(name)}, which was taken")
            continue
        try:
            profiles[name] = read(path)
        except LabError as error:
            failed.append(str(error))
    return Folder(tuple(profiles.values()), tuple(failed))
