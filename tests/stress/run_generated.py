"""Runs generated programs in the stress mode of this process. Usage: run_generated.py FIRST COUNT"""

from __future__ import annotations

import functools
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import tierup
from differential.observe import difference
from differential.programs import from_seed


def main(first: int, count: int) -> int:
    jit = functools.partial(tierup.jit, min_graph_size=0)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            program = from_seed(seed)
            found = difference(program.source, Path(folder) / f"program{seed}.py", jit, program.exact_nans)
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
