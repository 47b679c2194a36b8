"""The table of categories: which one a sampled function belongs to. `categories.toml` says how it is read."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from tierup.lab.errors import ReadError
from tierup.lab.profile.symbols import has_name, is_stub, source_name

DEFAULT: Final = Path(__file__).with_name("categories.toml")
UNKNOWN: Final = "unknown"
JIT: Final = "jit"
_KEYS: Final = {"name", "objects", "symbols", "symbols-anywhere"}


@dataclass(frozen=True)
class _Patterns:
    """Names and patterns with their categories; a name beats any pattern, an earlier pattern a later one."""

    exact: Mapping[str, str]
    wild: re.Pattern[str]
    """All patterns as one, which is far faster than each in turn; the group that matched says which it was."""
    categories: tuple[str, ...]
    """Per group of `wild`."""

    def find(self, text: str) -> str | None:
        found = self.exact.get(text)
        if found is not None:
            return found
        match = self.wild.match(text)
        return None if match is None else self.categories[(match.lastindex or 1) - 1]


@dataclass(frozen=True)
class Table:
    """The categories and what belongs to them."""

    names: tuple[str, ...]
    """All categories in the file's order, "unknown" last."""
    python: _Patterns
    objects: _Patterns
    paths: _Patterns
    """As `objects`, for patterns with a slash."""
    symbols: _Patterns
    anywhere: _Patterns
    _categories: dict[tuple[str, str], str] = field(default_factory=dict, repr=False, compare=False)
    _is_python: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)

    def category(self, obj: str, symbol: str) -> str:
        """The category of a function in an object."""
        key = (obj, symbol)
        found = self._categories.get(key)
        if found is None:
            found = self._categories[key] = self._find(obj, symbol)
        return found

    def is_python(self, obj: str) -> bool:
        """Whether an object is CPython itself."""
        found = self._is_python.get(obj)
        if found is None:
            found = self._is_python[obj] = self.python.find(file_name(obj)) is not None and self.of_object(obj) is None
        return found

    def of_object(self, obj: str) -> str | None:
        """The category that all functions of an object have, or None where the symbol decides. CPython is no library."""
        path, name = _path(obj), file_name(obj)
        found = self.paths.find(path) or self.objects.exact.get(name)
        if found is not None or self.python.find(name) is not None:
            return found
        return self.objects.find(name) or (_KERNEL if _is_kernel_module(name) and _KERNEL in self.names else None)

    def _find(self, obj: str, symbol: str) -> str:
        found = self.anywhere.find(symbol) or self.of_object(obj)
        if found is not None:
            return found
        if not self.is_python(obj) or not has_name(symbol):
            return UNKNOWN
        found = self.symbols.find(source_name(symbol))
        if found is None and is_stub(symbol):
            found = self.symbols.find(symbol)
        return found or UNKNOWN


_KERNEL: Final = "kernel"
_NO_MODULES: Final = frozenset({"[unknown]", "[heap]", "[stack]", "[JIT]", "[anon]", "[uprobes]"})


def _is_kernel_module(name: str) -> bool:
    """perf writes a kernel module as its name in brackets."""
    return re.fullmatch(r"\[[A-Za-z0-9_-]+\]", name) is not None and name not in _NO_MODULES


def file_name(obj: str) -> str:
    """The last part of an object's path; perf's own words in brackets stay as they are."""
    path = _path(obj)
    return path if path.startswith(("[", "//")) else path.rpartition("/")[2]


def _path(obj: str) -> str:
    return obj.strip().removesuffix(" (deleted)")


@cache
def load(path: Path = DEFAULT) -> Table:
    """Reads a table. Raises ReadError where the file cannot be read or is no table of categories."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ReadError(f"cannot read the categories {str(path)!r}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ReadError(f"the categories {str(path)!r} are not TOML: {error}") from None
    return _table(data, path)


def _table(data: Mapping[str, Any], path: Path) -> Table:
    def wrong(what: str) -> ReadError:
        return ReadError(f"the categories {str(path)!r}: {what}")

    python, entries = data.get("python"), data.get("category")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise wrong("there has to be a [[category]] section for each category")
    if not isinstance(python, dict) or not _is_texts(python.get("objects")):
        raise wrong("[python] has to list the file names of CPython as `objects`")
    for number, entry in enumerate(entries, 1):
        where = f"category {entry.get('name', number)!r}"
        if not isinstance(entry.get("name"), str) or not entry["name"]:
            raise wrong(f"category number {number} has no name")
        if unknown := sorted(entry.keys() - _KEYS):
            raise wrong(f"{where} has the unknown key {unknown[0]!r}; there are {', '.join(sorted(_KEYS))}")
        if bad := [key for key in sorted(_KEYS - {"name"}) if not _is_texts(entry.get(key, []))]:
            raise wrong(f"{where}: {bad[0]!r} has to be a list of texts")
    names = [entry["name"] for entry in entries]
    if twice := [name for name in names if names.count(name) > 1 or name == UNKNOWN]:
        raise wrong(f"the category {twice[0]!r} is there twice" if twice[0] != UNKNOWN else f"{UNKNOWN!r} is what has no category")

    def collect(key: str, keep: str = "") -> _Patterns:
        pairs = [(text, entry["name"]) for entry in entries for text in entry.get(key, [])]
        if key == "objects":
            pairs = [pair for pair in pairs if ("/" in pair[0].lstrip("/")) == (keep == "/")]
        try:
            return _patterns(pairs)
        except ValueError as error:
            raise wrong(f"{key}: {error}") from None

    return Table(
        (*names, UNKNOWN),
        _patterns((text, "python") for text in python["objects"]),
        collect("objects"),
        collect("objects", "/"),
        collect("symbols"),
        collect("symbols-anywhere"),
    )


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _patterns(pairs: Iterable[tuple[str, str]]) -> _Patterns:
    """Raises ValueError where one name has two categories, which the order in the file could not settle."""
    exact: dict[str, str] = {}
    wild = []
    for text, category in pairs:
        if "*" in text:
            wild.append((".*".join(map(re.escape, text.split("*"))), category))
        elif exact.setdefault(text, category) != category:
            raise ValueError(f"{text!r} is in two categories, {exact[text]} and {category}")
    # One group for patterns of one category that follow each other; what matches nothing stands for no patterns at all.
    groups = [(category, "|".join(text for text, _ in run)) for category, run in groupby(wild, key=itemgetter(1))]
    whole = "|".join(f"({texts})" for _, texts in groups) or r"(?!)"
    return _Patterns(exact, re.compile(rf"(?:{whole})\Z", re.DOTALL), tuple(category for category, _ in groups))
