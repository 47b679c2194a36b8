"""How often the lab's verdicts are wrong, how small a change they find, and how long `tierup lab compare` takes.

python benchmarks/lab.py reliability RESULTS.json [--splits 1000] [--planted 300] python benchmarks/lab.py speed [--repeat 5]

`reliability` splits the processes of each benchmark of a real result file at random into halves, of which one is called the base and the
other the head: what the verdict then says of a difference is wrong. In a second series, the head's values of 40 benchmarks, chosen anew
each time, are made longer by 1 %. Both methods of `--hpt` judge the same splits.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tierup.lab.results.model import Benchmark, FloatArray
from tierup.lab.results.read import read
from tierup.lab.statistics import bench_runner
from tierup.lab.statistics.hpt import hpt
from tierup.lab.statistics.two_samples import two_samples
from tierup.lab.statistics.verdict import Verdict

METHODS = ("default", "bench-runner")
PLANTED_IN = 40
PLANTED = 1.01

Sides = tuple[list[FloatArray], list[FloatArray]]


@dataclass
class Tally:
    """What was said in a series of splits."""

    trials: int = 0
    reliable: int = 0
    slower: int = 0

    def add(self, verdict: Verdict) -> None:
        """Counts a verdict; `slower` only where it is 99 % reliable."""
        sure = verdict.reliability >= 0.99
        self.trials += 1
        self.reliable += sure
        self.slower += sure and verdict.direction == "slower"

    def share(self, count: int) -> str:
        """A count as a share, with its standard error."""
        share = count / self.trials
        return f"{100 * share:.1f} % ± {100 * (share * (1 - share) / self.trials) ** 0.5:.1f}"


def split(benchmarks: Mapping[str, Benchmark], random: np.random.Generator, planted: Collection[str] = ()) -> dict[str, Sides]:
    """Halves of the processes of each benchmark; values of the second are longer where something is planted."""
    sides = {}
    for name, benchmark in benchmarks.items():
        order = random.permutation(len(benchmark.processes))
        chosen = [benchmark.processes[k] for k in order]
        half = len(chosen) // 2
        factor = PLANTED if name in planted else 1.0
        sides[name] = chosen[:half], [values * factor for values in chosen[half : 2 * half]]
    return sides


def judge(sides: Mapping[str, Sides]) -> dict[str, Verdict]:
    """What each method says of a split."""
    base = {name: np.concatenate(pair[0]) for name, pair in sides.items()}
    head = {name: np.concatenate(pair[1]) for name, pair in sides.items()}
    return {"default": hpt([two_samples(*pair) for pair in sides.values()]), "bench-runner": bench_runner.hpt(base, head)}


def reliability(options: argparse.Namespace) -> None:
    """Prints the shares of verdicts that are 99 % reliable."""
    benchmarks = {name: bench for name, bench in read(options.results).benchmarks.items() if len(bench.processes) >= 8}
    random = np.random.default_rng(options.seed)
    like, among, alone = ({method: Tally() for method in METHODS} for _ in range(3))
    significant = []
    for _ in range(options.splits):
        sides = split(benchmarks, random)
        significant.append(sum(two_samples(*pair).significant for pair in sides.values()))
        for method, verdict in judge(sides).items():
            like[method].add(verdict)
    for _ in range(options.planted):
        planted = set(random.choice(list(benchmarks), PLANTED_IN, replace=False))
        sides = split(benchmarks, random, planted)
        for method, verdict in judge(sides).items():
            among[method].add(verdict)
        for method, verdict in judge({name: sides[name] for name in planted}).items():
            alone[method].add(verdict)
    print(f"{options.results.name}: {len(benchmarks)} benchmarks; of which differ significantly, in like halves: ", end="")
    print(f"{100 * statistics.fmean(significant) / len(benchmarks):.1f} %\n")
    print("| 99 % reliable | splits | " + " | ".join(METHODS) + " |\n| --- | --- | --- | --- |")
    wrong = [like[method].share(like[method].reliable) for method in METHODS]
    print(f"| like halves of {len(benchmarks)}: wrongly so | {options.splits} | {' | '.join(wrong)} |")
    for title, tallies in ((f"1 % planted in {PLANTED_IN} of {len(benchmarks)}", among), (f"1 % planted in all of {PLANTED_IN}", alone)):
        found = [tallies[method].share(tallies[method].slower) for method in METHODS]
        print(f"| {title}: found | {options.planted} | {' | '.join(found)} |")


def write_results(path: Path, seed: int, benchmarks: int = 100, processes: int = 20, values: int = 3) -> None:
    """A pyperf file with metadata as pyperf collects it."""
    import pyperf

    random = np.random.default_rng(seed)
    made = []
    for number in range(benchmarks):
        metadata = {"name": f"benchmark_{number}", "unit": "second", "loops": 8}
        times = 1e-3 * (1 + number) * np.exp(random.normal(0, 0.01, (processes, values)))
        made.append(pyperf.Benchmark([pyperf.Run(row.tolist(), metadata=metadata) for row in times]))
    pyperf.BenchmarkSuite(made).dump(str(path))


def speed(options: argparse.Namespace) -> None:
    """Prints the wall time of the command, from its start to its end, for 100 benchmarks of 60 values."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{name}.json") for name in ("base", "head")]
        for seed, path in enumerate(paths):
            write_results(path, seed)
        command = [sys.executable, "-m", "tierup", "lab", "compare", *map(str, paths), "--json"]
        seconds = []
        for _ in range(options.repeat):
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - start)
    print(f"tierup lab compare, 100 benchmarks of 60 values: median {statistics.median(seconds):.2f} s, most {max(seconds):.2f} s")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    first = commands.add_parser("reliability")
    first.add_argument("results", type=Path)
    first.add_argument("--splits", type=int, default=1000)
    first.add_argument("--planted", type=int, default=300)
    first.add_argument("--seed", type=int, default=1)
    first.set_defaults(work=reliability)
    second = commands.add_parser("speed")
    second.add_argument("--repeat", type=int, default=5)
    second.set_defaults(work=speed)
    options = parser.parse_args()
    options.work(options)


if __name__ == "__main__":
    main()
