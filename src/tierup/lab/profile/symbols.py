"""Names of functions as compilers, linkers and perf write them."""

from __future__ import annotations

import re
from typing import Final

_ADDRESS: Final = re.compile(r"(0x)?[0-9a-f]{6,}$|\[unknown\]$|\[\.\] 0x")
_APPENDED: Final = re.compile(
    r"(?<=.)(\.(cold|part|isra|constprop|lto_priv|localalias|llvm|warm|hot|bolt|org|specialized|coldpart)\b.*|\.\d.*|/\d+(\(\*\d+\))?)$"
)
"""GCC's and LLVM's clones, and BOLT's local copies (`name/1(*2)`)."""
_STUB: Final = re.compile(r"(@GLIBC\S*|@@\S+)?@plt(\.sec)?$|@plt$")
_CLONE: Final = re.compile(r"\*ABS\*\+")


def has_name(symbol: str) -> bool:
    """Whether a symbol is a name, and not a bare address, which is all a stripped object has."""
    return bool(symbol) and _ADDRESS.match(symbol) is None and not _CLONE.match(symbol)


def is_stub(symbol: str) -> bool:
    """Whether a symbol is a stub of the procedure linkage table, through which another object's function is called."""
    return _STUB.search(symbol) is not None


def source_name(symbol: str) -> str:
    """The name that a function has in its source: `list_slice.isra.0 (inlined)` is `list_slice`, `PyList_New@plt` is `PyList_New`."""
    name = symbol.strip().removesuffix("(inlined)").rstrip()
    name = _STUB.sub("", name)
    return _APPENDED.sub("", name)


def printable(text: str) -> str:
    """A name for people: what a terminal would act on is written as an escape."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
