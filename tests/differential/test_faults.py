"""Generated programs see every fault that `faults` can plant.

For each fault the seed of a program that shows it is noted; should the generator have changed, others are tried.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from .faults import FAULTS
from .observe import difference
from .programs import from_seed
from .ways import WAYS, way_of

PROGRAMS = 300
SECONDS = 10

SEEDS: dict[str, int] = {}
"""A program for each fault."""

# A planted fault may crash the process it is planted in, so these are no part of the ordinary run (`.ci/full` has them).
pytestmark = pytest.mark.skipif(not os.environ.get("TIERUP_FAULTS"), reason="TIERUP_FAULTS=1 plants faults")


@contextmanager
def _deadline() -> Iterator[None]:
    """A program that a fault keeps from ending shows it, too."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("the program does not end")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _shows(seed: int, path: Path) -> bool:
    program = from_seed(seed)
    try:
        with _deadline():
            return difference(program, path, WAYS[way_of(seed, program)]) is not None
    except TimeoutError:
        return True


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs an alarm to stop programs that do not end")
@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_seen(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = SEEDS.get(fault)
    seeds = [*([] if known is None else [known]), *range(PROGRAMS)]
    if known is not None:
        assert not _shows(known, tmp_path / "sound.py"), "the program differs without the fault"
    FAULTS[fault](monkeypatch)
    assert any(_shows(seed, tmp_path / f"program{seed}.py") for seed in seeds)
