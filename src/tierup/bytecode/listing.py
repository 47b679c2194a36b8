"""A program as the symbolic executor reads it."""

from __future__ import annotations

from typing import NamedTuple

from tierup.bytecode.canonical import Canon, canonicalise
from tierup.bytecode.concrete import Program


class Listing(NamedTuple):
    """Canonical instructions with their positions."""

    program: Program
    canons: list[Canon]
    position: list[int]
    """Position in `canons` of the first canonical instruction of each concrete index."""


def make_listing(program: Program) -> Listing:
    """The listing of a program (super-instructions expanded)."""
    canonical = canonicalise(program)
    return Listing(program, canonical.canons, canonical.position)
