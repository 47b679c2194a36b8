"""What goes wrong in the lab, said to people."""

from __future__ import annotations

from typing import Final

INSTALL: Final = "pip install 'tierup[lab]'"


class LabError(Exception):
    """A command of the lab cannot do its work. The message is one line: what, where, what to do."""


class ReadError(LabError):
    """A file cannot be read, or holds nothing that can be used."""


class MissingLibraryError(LabError):
    """A library of the extra `lab` is not installed."""

    def __init__(self, library: str) -> None:
        super().__init__(f"this needs {library}, which is not installed: {INSTALL}")
