"""A relocatable ELF object → one flat piece of position-independent code.

LLVM writes an object; we keep only what runs: its allocated sections behind each other with their PC-relative references resolved. Such
a piece needs no linker, no symbol and no address, so it can be stored as it is and mapped anywhere. That also proves what a kernel must
not do: a reference to anything outside (libm, memset) is an error here.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

_SHT_SYMTAB: Final = 2
_SHT_RELA: Final = 4
_SHT_NOBITS: Final = 8
_SHT_REL: Final = 9
_SHF_WRITE: Final = 1
_SHF_ALLOC: Final = 2
_EM_X86_64: Final = 62
_EM_AARCH64: Final = 183


class LinkError(Exception):
    """The object refers to something outside, or in a way that depends on its address."""


@dataclass(frozen=True, slots=True)
class _Section:
    name: int
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


@dataclass(frozen=True, slots=True)
class Code:
    """Machine code and the offsets of its entries."""

    data: bytes
    entries: tuple[int, ...]


def link(obj: bytes, names: tuple[str, ...]) -> Code:
    """Flatten `obj`; names are the symbols of the entries. Raises LinkError."""
    if obj[:6] != b"\x7fELF\x02\x01":
        raise LinkError("not a little-endian 64-bit ELF object")
    machine = struct.unpack_from("<H", obj, 18)[0]
    sections = _sections(obj)
    image = bytearray()
    base: dict[int, int] = {}
    for i, s in enumerate(sections):
        if not s.flags & _SHF_ALLOC or not s.size:
            continue
        if s.flags & _SHF_WRITE or s.type == _SHT_NOBITS:
            raise LinkError("writable data in a kernel")
        image += b"\0" * (-len(image) % max(s.align, 1))
        base[i] = len(image)
        image += obj[s.offset : s.offset + s.size]
    symtab = next(s for s in sections if s.type == _SHT_SYMTAB)
    symbols = _symbols(obj, symtab, sections[symtab.link])
    for s in sections:
        if s.type == _SHT_REL and s.info in base:
            raise LinkError("relocations without addends")
        if s.type == _SHT_RELA and s.info in base:
            _relocate(image, obj, s, base, symbols, machine)
    defined = {name: base[section] + value for name, section, value in symbols if section in base}
    if missing := [name for name in names if name not in defined]:
        raise LinkError(f"no symbols {missing}")
    return Code(bytes(image), tuple(defined[name] for name in names))


def _sections(obj: bytes) -> list[_Section]:
    offset = struct.unpack_from("<Q", obj, 40)[0]
    entsize, count = struct.unpack_from("<HH", obj, 58)
    out = []
    for i in range(count):
        name, type_, flags, _addr, off, size, link_, info, align, _ = struct.unpack_from("<IIQQQQIIQQ", obj, offset + i * entsize)
        out.append(_Section(name, type_, flags, off, size, link_, info, align))
    return out


def _symbols(obj: bytes, table: _Section, strings: _Section) -> list[tuple[str, int, int]]:
    """(name, section index, value) in table order."""
    out = []
    for at in range(table.offset, table.offset + table.size, 24):
        name, _info, _other, section, value, _size = struct.unpack_from("<IBBHQQ", obj, at)
        start = strings.offset + name
        out.append((obj[start : obj.index(b"\0", start)].decode(), section, value))
    return out


def _relocate(
    image: bytearray, obj: bytes, table: _Section, base: dict[int, int], symbols: list[tuple[str, int, int]], machine: int
) -> None:
    for at in range(table.offset, table.offset + table.size, 24):
        offset, info, addend = struct.unpack_from("<QQq", obj, at)
        name, section, value = symbols[info >> 32]
        if section not in base:
            raise LinkError(f"a kernel may refer to nothing outside itself: {name!r}")
        place = base[table.info] + offset
        target = base[section] + value + addend
        kind = info & 0xFFFFFFFF
        if machine == _EM_X86_64:
            _x86_64(image, kind, place, target)
        elif machine == _EM_AARCH64:
            _aarch64(image, kind, place, target)
        else:
            raise LinkError(f"machine {machine} is not supported")


def _x86_64(image: bytearray, kind: int, place: int, target: int) -> None:
    if kind not in (2, 4):  # R_X86_64_PC32, R_X86_64_PLT32
        raise LinkError(f"relocation type {kind} is not PC-relative")
    struct.pack_into("<i", image, place, target - place)


_LOW12_SHIFT: Final = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}
"""R_AARCH64_ADD_ABS_LO12_NC, LDST8, LDST16, LDST32, LDST64, LDST128: how far the immediate is scaled."""


def _aarch64(image: bytearray, kind: int, place: int, target: int) -> None:
    """Addresses by page and offset are fine because pieces are mapped at page boundaries (`jit.load`)."""
    word = struct.unpack_from("<I", image, place)[0]
    delta = target - place
    if kind in (275, 276):  # R_AARCH64_ADR_PREL_PG_HI21, …_NC
        pages = (target >> 12) - (place >> 12)
        word |= (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
    elif kind in _LOW12_SHIFT:
        word |= ((target & 0xFFF) >> _LOW12_SHIFT[kind]) << 10
    elif kind in (282, 283):  # R_AARCH64_JUMP26, R_AARCH64_CALL26
        word |= delta >> 2 & 0x3FFFFFF
    elif kind == 261:  # R_AARCH64_PREL32
        word = delta & 0xFFFFFFFF
    else:
        raise LinkError(f"relocation type {kind} is not PC-relative")
    struct.pack_into("<I", image, place, word)
