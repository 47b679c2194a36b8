"""How long the first call of a function of thirty operations takes: plain, with nothing compiled yet, and with the machine code on disk.

    python benchmarks/latency.py

Every measurement is a process of its own, which has compiled four small functions before: the translator and LLVM are loaded with the
first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from statistics import median

from _timing import arguments, progress, time_text, write_json

from tierup.report.tables import print_table

CHILD = """
import json, sys, time
import numpy as np

def thirty(x, y):
    a = x * 2.0 + y
    b = a * a - x
    c = np.sqrt(b * b + 1.0) - y * 0.25
    d = c * a + b * x - y
    e = np.where(d > 0.0, d, -d) + c
    f = (e - a) * (e + a) / (c * c + 2.0)
    g = np.maximum(f, e) - np.minimum(a, b)
    h = g * 0.5 + f * 0.25 + e * 0.125
    return h * h - g * f + e

x, y = np.linspace(0.0, 1.0, 1000), np.linspace(2.0, 3.0, 1000)
if sys.argv[1] == "plain":
    function = thirty
else:
    import tierup

    others = [
        lambda x, y: np.where(x > y, x - y, np.sqrt(x + y)),
        lambda x, y: np.maximum(x * y, 0.5) / (x + 1.0) - np.exp(-y),
        lambda x, y: (x * x + y * y, x * y - 2.0),
        lambda x, y: np.abs(x - y) ** 2 + np.minimum(x, y) * 0.25,
    ]
    for other in others:
        tierup.jit(other)(x, y)
    assert tierup.stats().kernels == len(others)
    before = dict(tierup.stats().translate_seconds)
    function = tierup.jit(thirty)
times = []
for _ in range(3):
    start = time.perf_counter()
    function(x, y)
    times.append(time.perf_counter() - start)
phases = {}
if sys.argv[1] != "plain":
    phases = {name: total - before.get(name, 0.0) for name, total in tierup.stats().translate_seconds.items()}
print(json.dumps({"times": times, "phases": phases}))
"""


def measure(how: str, cache: str) -> dict[str, object]:
    """Times of the first calls in a fresh process."""
    env = {**os.environ, "TIERUP_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", CHILD, how], capture_output=True, text=True, env=env, check=True)
    result: dict[str, object] = json.loads(done.stdout)
    return result


def main() -> None:
    options = arguments(__doc__).parse_args()
    kinds: dict[str, list[dict[str, object]]] = {"plain": [], "cold": [], "warm": []}
    for repeat in range(options.pairs):
        progress(f"{repeat + 1} of {options.pairs}")
        with tempfile.TemporaryDirectory() as folder:
            cache = os.path.join(folder, "cache")
            for kind, found in kinds.items():
                found.append(measure(kind, cache))
    progress("")
    rows, results = [], {}
    for kind, found in kinds.items():
        first, third = (median(one["times"][k] for one in found) for k in (0, 2))  # type: ignore[index]
        fastest = min(one["times"][0] for one in found)  # type: ignore[index]
        names = dict.fromkeys(name for one in found for name in one["phases"])  # type: ignore[attr-defined]
        phases = {name: median(one["phases"].get(name, 0.0) for one in found) for name in names}  # type: ignore[attr-defined]
        shown = ", ".join(f"{name} {time_text(value)}" for name, value in phases.items())
        rows.append((kind, time_text(first), time_text(fastest), time_text(third), shown))
        results[kind] = {"first": first, "fastest": fastest, "third": third, "phases": phases}
    print_table(
        "calls of a function of 30 operations, 1000 elements", ("cache", "first call", "fastest", "third call", "translation"), rows
    )
    write_json(options.json, results)


if __name__ == "__main__":
    main()
