"""Lists of benchmarks by group."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from tierup.lab.errors import ReadError
from tierup.lab.results.json_files import read_json
from tierup.lab.results.model import clean_name
from tierup.lab.results.names import match


@dataclass(frozen=True)
class Group:
    """Benchmarks that are looked at together."""

    name: str
    members: tuple[str, ...]
    """Names of results, each once."""
    unmatched: tuple[str, ...]
    """Names in the list for which there is no result."""


def read_groups(path: Path) -> dict[str, list[str]]:
    """The groups file `{GROUP: [benchmark…]}`. Raises ReadError."""
    data = read_json(path)
    if not (isinstance(data, dict) and all(_are_names(names) for names in data.values())):
        raise ReadError(f"{path} is no groups file: it has to be {{GROUP: [benchmark, …]}}")
    return {clean_name(group): list(dict.fromkeys(map(clean_name, names))) for group, names in data.items()}


def _are_names(names: object) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


def resolve(groups: Mapping[str, Collection[str]], results: Collection[str], *, exact: bool = False) -> list[Group]:
    """The groups with names of results for members; see `names.match`. What one group lists by name belongs to no other group's entry."""
    everything = [name for names in groups.values() for name in names]
    resolved = []
    for group, names in groups.items():
        found = match(names, results, exact=exact, others=everything)
        resolved.append(Group(group, tuple(found.names), found.unmatched))
    return resolved
