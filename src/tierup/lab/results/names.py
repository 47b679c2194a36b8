"""Which names mean the same benchmark.

A profile is named after the benchmark's entry in pyperformance's manifest (`logging`), a result after what the program calls itself
(`logging_format`, `logging_silent`): one entry may report several results, under quite other names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

RESULTS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "argparse_many_optionals": ("many_optionals",),
    "argparse_subparsers": ("subparsers",),
    "async_tree": ("async_tree_none",),
    "async_tree_tg": ("async_tree_none_tg",),
    "barnes_hut": ("quadtree_nbody",),
    "base64": (
        *(f"{code}_{size}" for code in ("base64", "base32", "base16", "ascii85", "base85") for size in ("small", "large")),
        "urlsafe_base64_small",
    ),
    "concurrent_imap": ("bench_mp_pool", "bench_thread_pool"),
    "gc_collect": ("create_gc_cycles",),
    "networkx_connected_components": ("connected_components",),
    "networkx_k_core": ("k_core",),
    "networkx_shortest_path": ("shortest_path",),
}
"""Manifest entry → names of its results, where they are not the entry's name, alone or with more behind it (as pyperformance's
programs call themselves in their run_benchmark.py)."""

ENTRIES: Final = frozenset(
    [
        *("argparse_many_optionals", "argparse_subparsers", "asyncio_tcp_ssl", "btree_gc", "json_dumps", "json_loads", "pickle_dict"),
        *("pickle_list", "pickle_pure_python", "python_startup_no_site", "richards_super", "unpickle_list", "unpickle_pure_python"),
        *(f"{name}_{part}" for name in ("sqlglot", "sqlglot_v2") for part in ("optimize", "parse", "transpile")),
        *(f"async_tree{kind}{tg}" for kind in ("_cpu_io_mixed", "_io", "_memoization") for tg in ("", "_tg")),
        *(f"async_tree_eager{kind}{tg}" for kind in ("", "_cpu_io_mixed", "_io", "_memoization") for tg in ("", "_tg")),
        "async_tree_tg",
    ]
)
"""Manifest entries whose names begin like another's, to which they do not belong."""


@dataclass(frozen=True)
class Match:
    """What was found of some names among others."""

    found: Mapping[str, tuple[str, ...]]
    """Name → the names that it means, at least one."""
    unmatched: tuple[str, ...]
    """Names that mean none."""

    @property
    def names(self) -> list[str]:
        """All names found, each once, in order."""
        return list(dict.fromkeys(name for names in self.found.values() for name in names))


def match(entries: Collection[str], results: Collection[str], *, exact: bool = False, others: Iterable[str] = ()) -> Match:
    """Finds, for names of profiles, the names of results.

    exact: only equal names. others: further names of profiles, whose results belong to them. An entry means the result of its own name;
    those that RESULTS_OF gives it; and those that begin with it and an underscore, unless a longer entry fits as well.
    """
    named = {*entries, *others}
    found = {}
    for entry in entries:
        means = [name for name in results if name == entry or (not exact and _belongs(name, entry, named))]
        if means:
            found[entry] = tuple(means)
    return Match(found, tuple(entry for entry in entries if entry not in found))


def _belongs(result: str, entry: str, named: set[str]) -> bool:
    if result in named:
        return False
    if entry in RESULTS_OF:
        return result in RESULTS_OF[entry]
    if not result.startswith(f"{entry}_"):
        return False
    longer = [name for name in named | ENTRIES if len(name) > len(entry) and (result == name or result.startswith(f"{name}_"))]
    return not longer and all(result not in names for name, names in RESULTS_OF.items())
