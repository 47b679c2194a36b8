"""JSON from disk, as much of it as there is."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from tierup.lab.errors import ReadError


def read_json(path: Path) -> Any:
    """The data of a JSON file, which may be gzipped. Raises ReadError."""
    return parse_json(path, read_text(path))


def parse_json(path: Path, text: str) -> Any:
    """The data of a file's text. Raises ReadError."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise ReadError(f"{path} is not JSON: {error}") from None


def read_json_or_front(path: Path, array: str) -> tuple[Any, str | None]:
    """The data of a JSON file and None; or of a file that was cut off, the whole members of its `array` and a line that says so.

    Raises ReadError where the file cannot be read or holds no whole member.
    """
    text = read_text(path)
    try:
        return json.loads(text), None
    except ValueError as error:
        members = _whole_members(text, array)
        if not members:
            raise ReadError(f"{path} is not JSON: {error}") from None
        return {array: members}, f"{path} is cut off or damaged ({error}); only the {len(members)} {array} before that are used"


def read_text(path: Path) -> str:
    """The text of a file, which may be gzipped. Raises ReadError."""
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return data.decode("utf-8")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ReadError(f"cannot unpack {path}: {error}") from None
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ReadError(f"{path} is not a text file") from None


def _whole_members(text: str, array: str) -> list[Any]:
    """The members of the first array of that name that are complete."""
    _, key, rest = text.partition(f'"{array}"')
    front = rest.lstrip().removeprefix(":").lstrip()
    if not key or not front.startswith("["):
        return []
    decoder = json.JSONDecoder()
    members: list[Any] = []
    position = 1
    while True:
        position = _skip(front, position)
        try:
            member, position = decoder.raw_decode(front, position)
        except ValueError:
            return members
        members.append(member)


def _skip(text: str, position: int) -> int:
    """The position of the next character that is neither blank nor a comma."""
    while position < len(text) and text[position] in " \t\r\n,":
        position += 1
    return position
