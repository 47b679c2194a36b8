"""Code in executable memory. Pages are never writable and executable at once where the system offers a way round it (memfd)."""

from __future__ import annotations

import mmap
import os
import platform
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tierup.native.elf import Code
from tierup.native.perf_map import announce

_ALIGN: Final = 64 if platform.machine() in ("x86_64", "AMD64") else 4096
"""On ARM code refers to its constants by page (see `elf`)."""


class Loaded:
    """Mapped code. Keeps the mapping; drop it only when nothing can call the code any more."""

    __slots__ = ("_map", "entries")

    def __init__(self, mapping: Any, entries: list[list[int]]) -> None:
        self._map = mapping
        self.entries = entries
        """Addresses, per piece."""


class Pinned:
    """Bytes at a fixed address, for native code to read while this object lives."""

    __slots__ = ("_array", "address")

    def __init__(self, data: bytes) -> None:
        self._array = np.frombuffer(data, np.uint8)
        self.address = int(self._array.ctypes.data)


def load(codes: Sequence[Code], names: Sequence[str]) -> Loaded:
    """Map all pieces into one region. names: of the pieces, for profilers. Raises OSError."""
    image = bytearray()
    entries = []
    starts = []
    for code in codes:
        image += b"\xcc" * (-len(image) % _ALIGN)
        starts.append(len(image))
        entries.append([len(image) + entry for entry in code.entries])
        image += code.data
    mapping = _map_executable(bytes(image) or b"\xcc")  # kernels of nothing but library loops have no code, and no map is empty
    base = int(np.frombuffer(mapping, dtype=np.uint8).ctypes.data)
    announce((base + start, len(code.data), name) for start, code, name in zip(starts, codes, names, strict=True))
    return Loaded(mapping, [[base + e for e in piece] for piece in entries])


def _map_executable(image: bytes) -> mmap.mmap:
    try:
        return _map_file(image)
    except (AttributeError, OSError):  # no memfd on this system, or not allowed
        memory = mmap.mmap(-1, len(image), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        memory.write(image)
        return memory


def _map_file(image: bytes) -> mmap.mmap:
    """Through a file without a name: written by one way, executed by another."""
    fd = os.memfd_create("tierup", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(fd), "wb") as f:
            f.write(image)
        return mmap.mmap(fd, len(image), flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
    finally:
        os.close(fd)
