"""Data of the lab's tests that are kept outside the repository, where environment variables name their folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def folder(variable: str) -> Path:
    """The folder that a variable names; skips the test if none is."""
    if not os.environ.get(variable):
        pytest.skip(f"{variable} names no folder with cases")
    return Path(os.environ[variable])


@pytest.fixture(scope="session")
def hpt_cases() -> Path:
    """Inputs and intermediates of bench_runner's HPT, a JSON file each."""
    return folder("LAB_HPT_CASES")


@pytest.fixture(scope="session")
def public_data() -> Path:
    """Public results of CPython (`results/`), profiles (`profiles/`), and what bench_runner's HPT says of them (`expected.json`)."""
    return folder("LAB_DATA")
