"""Profiles that several tests read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierup.lab.profile.readers.read import Folder, read_folder


@pytest.fixture(scope="session")
def public_profiles(public_data: Path) -> Folder:
    """The public profiles of CPython, read."""
    return read_folder(public_data / "profiles")
