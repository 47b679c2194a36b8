"""Runs generated programs in the stress mode of this process. Usage: run_generated.py FIRST COUNT"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import tierup
from differential.observe import difference
from differential.programs import from_seed
from differential.ways import WAYS, way_of


def main(first: int, count: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            program = from_seed(seed)
            found = difference(program, Path(folder) / f"program{seed}.py", WAYS[way_of(seed, program)])
            if found is not None:
                print(f"seed {seed}: {found}\n{program.own_source}")
                return 1
    stats = tierup.stats()
    for error in stats.of_kind("error"):
        print("translator error:", error)
    print(f"{stats.specialisations} specialisations")
    return int(bool(stats.of_kind("error")))


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), int(sys.argv[2])))
