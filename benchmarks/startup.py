"""Programs that tierup has no business with: start-up time of `tierup run`, and the speed of plain Python code under it.

    python benchmarks/startup.py [--programs fib,JSON] [--seconds 5] [--together CPU]

--seconds: how long the timed work of a plain program takes at least under plain Python; a fifth of that comes before as a warm-up.
--together: the two of a pair run at the same time and share that CPU, and their processor time is compared: the system interleaves them
every few milliseconds, so that what else happens on the machine falls on both.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from _timing import arguments, order, progress, summary, time_text, write_json

from tierup.report.tables import print_table

STARTS = {
    "an empty program": "pass\n",
    "an empty program that imports NumPy": "import numpy\n",
    "a NumPy program that calls one function once": "import numpy as np\ndef f(x):\n    return np.sin(x) * 2 + 1\nf(np.ones(3))\n",
}

TIMED = """
import time
{body}
for _ in range({warm_up}):
    work()
start = time.perf_counter(), time.process_time()
for _ in range({rounds}):
    work()
print(time.perf_counter() - start[0], time.process_time() - start[1])
"""

STEADY = {
    "fib": """
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def work():
    return fib(24)
""",
    "tasks in queues": """
class Task:
    def __init__(self, name, rank, link):
        self.name, self.rank, self.link, self.left, self.queue = name, rank, link, 40, []
    def run(self, packet):
        self.queue.append(packet)
        if self.left:
            self.left -= 1
            while self.queue:
                packet = self.queue.pop(0)
                packet["hops"] += 1
                packet["sum"] = (packet["sum"] * 31 + self.rank) % 65521
                self.link.run(packet) if self.link is not None else None
class Scheduler:
    def __init__(self):
        tail = None
        for rank in range(12):
            tail = Task("task%d" % rank, rank, tail)
        self.first = tail
    def schedule(self, count):
        return [self._send(i) for i in range(count)]
    def _send(self, i):
        packet = {"id": i, "hops": 0, "sum": i}
        self.first.run(packet)
        return packet["sum"]
def work():
    return [Scheduler().schedule(60) for _ in range(30)]
""",
    "JSON": """
import json
data = [{"id": i, "name": "item %d" % i, "tags": ["a", "b", str(i)], "value": i / 7, "nested": {"x": [i] * 5}} for i in range(1500)]
def work():
    for _ in range(5):
        text = json.dumps(data)
        back = json.loads(text)
        total = sum(entry["value"] for entry in back if "a" in entry["tags"])
    return total
""",
    "word count in a loop": """
text = "the quick brown fox jumps over the lazy dog and runs away " * 2000
def work():
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
        if len(word) > 4:
            counts["long"] = counts.get("long", 0) + 1
    return sorted(counts.items())
""",
    "fib beside NumPy": """
import numpy
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def work():
    total = 0
    for i in range(4):
        total += fib(20)
    return total
""",
}


def wall(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - start


def reported(command: list[str], processor: bool = False) -> float:
    """Wall time, or processor time, of the timed work."""
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[processor])


def together(commands: Sequence[list[str]], cpu: int) -> list[float]:
    """Processor time of the timed work of each, all at once on one CPU."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})  # they inherit it
    try:
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    finally:
        os.sched_setaffinity(0, own)
    texts = [process.communicate()[0] for process in running]
    for process, command in zip(running, commands, strict=True):
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
    return [float(text.split()[1]) for text in texts]


def timed(body: str, rounds: int) -> str:
    return TIMED.format(body=body, rounds=rounds, warm_up=max(1, rounds // 5))


def rounds_for(body: str, script: Path, command: list[str], seconds: float) -> int:
    """How often a program repeats its work to take that long."""
    rounds = 1
    while True:
        script.write_text(timed(body, rounds))
        needed = reported(command, processor=True)
        if needed >= seconds:
            return rounds
        rounds = max(rounds + 1, int(rounds * min(1.1 * seconds / needed, 100)))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--programs", metavar="NAME,…", help="only these (all)")
    parser.add_argument("--seconds", type=float, default=0.0, help="of the timed work of plain Python code (one round)")
    parser.add_argument("--together", metavar="CPU", type=int, help="run the two of a pair at once on that CPU")
    options = parser.parse_args()
    wanted = options.programs.split(",") if options.programs else [*STARTS, *STEADY]
    if unknown := [name for name in wanted if name not in STARTS and name not in STEADY]:
        parser.error(f"no program {unknown[0]!r}; there are: {', '.join([*STARTS, *STEADY])}")
    rows, steady, results = [], [], {}
    with tempfile.TemporaryDirectory() as folder:
        script = str(Path(folder) / "script.py")
        commands = [sys.executable, script], [sys.executable, "-m", "tierup", "run", script]
        for name in wanted:
            progress(name)
            is_start = name in STARTS
            if is_start:
                Path(script).write_text(STARTS[name])
            else:
                rounds_for(STEADY[name], Path(script), commands[0], options.seconds)
            measure = wall if is_start else reported
            times: tuple[list[float], list[float]] = ([], [])
            for command in commands:
                measure(command)
            for pair in range(options.pairs):
                both = order(pair)
                if is_start or options.together is None:
                    found_times = [measure(commands[which]) for which in both]
                else:
                    found_times = together([commands[which] for which in both], options.together)
                for which, seconds in zip(both, found_times, strict=True):
                    times[which].append(seconds)
            found = summary(*times)
            results[name] = found
            added = f"{(found.ours - found.plain) * 1e3:+.1f} ms"
            row = (name, time_text(found.plain), time_text(found.ours))
            rows.append((*row, added)) if is_start else steady.append((*row, str(found)))
    progress("")
    if rows:
        print_table("start-up (wall time of the process)", ("program", "python", "tierup run", "added"), rows)
        print()
    if steady:
        print_table("plain Python code after a warm-up", ("program", "python", "tierup run", "times as fast"), steady)
    write_json(options.json, results)


if __name__ == "__main__":
    main()
