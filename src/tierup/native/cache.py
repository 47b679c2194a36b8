"""Machine code on disk, so that a second process starts warm.

One file per kernel, named by a hash of all that the code depends on: the LLVM text (so a change of the generator needs no version of
its own), the CPU with its features, LLVM's version. NumPy is not part of it: its loops' addresses are arguments. The folder belongs to
the user alone (mode 0700) and is refused otherwise: what lies there will be executed. A file is a header with a checksum and the code;
a damaged, foreign or older file counts as absent and is written anew. Files appear under their name only when complete, so processes
may race.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tierup import __version__
from tierup.native.elf import Code
from tierup.runtime import config, events

_MAGIC: Final = b"TUPK"
_HEADER: Final = struct.Struct("<4sI32sQ")
"""Magic, format, SHA-256 of what follows, number of entries; then the entries (8 bytes each) and the code."""
_FORMAT: Final = 1


class Unusable(Exception):
    """The cache folder cannot be used; the message says why."""


def key(text: str, cpu: str) -> str:
    """The name under which the code of an LLVM text is stored. cpu: CPU and compiler."""
    parts = (text, cpu, __version__, str(_FORMAT))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def folder() -> Path | None:
    """Where entries live; None if the user turned the cache off."""
    chosen = config.current().cache_dir
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "tierup"


@functools.cache
def _ready(path: Path) -> bool:
    """Make the folder; say once why it cannot be used."""
    try:
        _check(path)
    except (OSError, Unusable) as e:
        events.record("cache", "the object cache is not used", detail=f"{path}: {e}")
        return False
    return True


def _check(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    info = path.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise Unusable("not a folder")
    if info.st_uid != os.getuid():
        raise Unusable("belongs to another user")
    if info.st_mode & 0o022:
        raise Unusable("others may write to it")


def read(name: str) -> Code | None:
    """The code stored under a key, or None."""
    path = folder()
    if path is None or not _ready(path):
        return None
    try:
        raw = (path / name).read_bytes()
    except OSError:
        return None
    return _decode(raw)


def obtain(name: str, make: Callable[[], Code]) -> tuple[Code, bool]:
    """The code stored under a key, or what `make` makes, which is stored then; and whether it was stored already."""
    code = read(name)
    events.record("cache", "miss" if code is None else "hit")
    if code is not None:
        return code, True
    code = make()
    write(name, code)
    return code, False


def _decode(raw: bytes) -> Code | None:
    if len(raw) < _HEADER.size:
        return None
    magic, version, digest, count = _HEADER.unpack_from(raw)
    body = raw[_HEADER.size :]
    if magic != _MAGIC or version != _FORMAT or digest != hashlib.sha256(body).digest() or 8 * count > len(body):
        return None
    return Code(body[8 * count :], struct.unpack_from(f"<{count}Q", body))


def write(name: str, code: Code) -> None:
    """Store code under a key. A full disk or a read-only folder is no error."""
    path = folder()
    if path is None or not _ready(path):
        return
    body = struct.pack(f"<{len(code.entries)}Q", *code.entries) + code.data
    header = _HEADER.pack(_MAGIC, _FORMAT, hashlib.sha256(body).digest(), len(code.entries))
    temporary = ""
    try:
        fd, temporary = tempfile.mkstemp(prefix=".new-", dir=path)
        with os.fdopen(fd, "wb") as f:
            f.write(header + body)
        os.replace(temporary, path / name)
    except OSError as e:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        events.record("cache", "a kernel could not be stored", detail=str(e))
