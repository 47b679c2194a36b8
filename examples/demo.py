"""Runs the example programs with plain Python and with `tierup run`, and compares their output and their time.

`make demo` calls it. Exit code 1 if an output differs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = (("gray_scott.py", "256", "600"), ("options.py", "200000", "40"))
EXPLAINED = (("gray_scott.py", "32", "60"), ("options.py", "1000", "12"))


def output(*command: str) -> tuple[list[str], float]:
    """Lines that a program printed, less the one with its time; its time."""
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    lines = done.stdout.splitlines()
    (seconds,) = [float(line.split()[1]) for line in lines if line.startswith("seconds:")]
    return [line for line in lines if not line.startswith("seconds:")], seconds


def captured(program: str, *args: str) -> str:
    """What tierup says of a short run of the program."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, "-m", "tierup", "explain", "--json", "--output", file.name, str(HERE / program), *args]
        subprocess.run(command, capture_output=True, check=True)
        report = json.loads(Path(file.name).read_text())
    lines = [f"  {report['graphs']} graphs, {report['kernels']} kernels, {report['guards']} guards"]
    for unit in report["units"]:
        for one in unit["specialisations"]:
            graph = one["graph"]
            lines.append(f"  {unit['function']}: line {graph['site_line']}, {graph['ops']} operations in {len(one['kernels'])} kernels")
    lines += [f"  left to Python: line {entry['line']}, {entry['reason']}" for entry in report["breaks"]]
    return "\n".join(lines)


def main() -> int:
    different = 0
    for program, *args in PROGRAMS:
        print(f"== {program} {' '.join(args)}", flush=True)
        path = str(HERE / program)
        expected, plain = output(path, *args)
        print(f"python      {plain:8.2f} s", flush=True)
        first, _ = output("-m", "tierup", "run", path, *args)
        found, ours = output("-m", "tierup", "run", path, *args)
        print(f"tierup run  {ours:8.2f} s   {plain / ours:.2f} times as fast (second run; the first compiles)")
        for line in expected:
            print(f"  {line}")
        same = expected == first == found
        different += not same
        print("the same output and the same bits" if same else f"DIFFERENT: tierup printed {found}", flush=True)
    for program, *args in EXPLAINED:
        print(f"== what was compiled of {program}", flush=True)
        print(captured(program, *args), flush=True)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
