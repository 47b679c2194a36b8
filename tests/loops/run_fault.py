"""Plants a fault in this process and runs loop programs until one shows it. Usage: run_fault.py FAULT SEED …

Says each seed before its program runs, and `shown` after a program that differs: should the fault end the process, the last seed did it.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import pytest

from differential.observe import difference
from loops.faults import FAULTS
from loops.programs import from_seed
from loops.ways import JITTED

SECONDS = 10
"""For one program; it takes less than one."""


def main(fault: str, seeds: list[int]) -> int:
    if fault:
        FAULTS[fault](pytest.MonkeyPatch())
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            print(seed, flush=True)
            if hasattr(signal, "alarm"):
                signal.alarm(SECONDS)  # not handled: it also ends native code
            if difference(from_seed(seed), Path(folder) / f"program{seed}.py", JITTED) is not None:
                print("shown", flush=True)
                return 0
    print("not shown", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], [int(seed) for seed in sys.argv[2:]]))
