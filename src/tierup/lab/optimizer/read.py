"""Opening the statistics of an optimizer."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from tierup.lab.errors import ReadError
from tierup.lab.optimizer.model import OptimizerStats
from tierup.lab.optimizer.pystats import from_counts, parse_lines
from tierup.lab.optimizer.tierup_stats import from_stats
from tierup.lab.results.json_files import parse_json, read_text
from tierup.runtime.stats import Stats, read_directory


def read_stats(path: str | PathLike[str]) -> OptimizerStats:
    """Reads a file, or a folder of files, of CPython's statistics or of tierup's. Raises ReadError where there are none."""
    path = Path(path)
    if path.is_dir():
        return _read_folder(path)
    text = read_text(path)
    return _from_json(path, text) if text.lstrip().startswith("{") else _from_texts(path, {path: text})


def _from_json(path: Path, text: str) -> OptimizerStats:
    data = parse_json(path, text)
    if "translate_seconds" in data or "places" in data:
        try:
            return from_stats(path, Stats.from_dict(data))
        except ValueError as error:
            raise ReadError(f"{path} is {error}") from None
    return from_counts(path, {key: value for key, value in data.items() if type(value) is int})


def _read_folder(path: Path) -> OptimizerStats:
    files = sorted(entry for entry in path.iterdir() if entry.is_file())
    if any(entry.name.startswith("tierup-") and entry.suffix == ".json" for entry in files):
        stats, problems = read_directory(str(path))
        if not stats.processes:
            raise ReadError(f"{path} has no statistics that can be used: {problems[0]}")
        return from_stats(path, stats, problems)
    if not files:
        raise ReadError(f"{path} is an empty folder")
    return _from_texts(path, {entry: read_text(entry) for entry in files})


def _from_texts(path: Path, texts: dict[Path, str]) -> OptimizerStats:
    problems = []
    total: dict[str, int] = {}
    for name, text in texts.items():
        counts, foreign = parse_lines(text)
        if foreign and any(key.startswith("Optimization ") for key in counts):
            more = f", nor are {len(foreign) - 1} more lines" if len(foreign) > 1 else ""
            problems.append(f"{name}: {foreign[0][:60]!r} is no `key: number`{more}")
        for key, count in counts.items():
            total[key] = total.get(key, 0) + count
    return from_counts(path, total, problems)
