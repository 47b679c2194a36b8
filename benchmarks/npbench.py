"""The unmodified NumPy programs of an NPBench checkout, plain and under tierup.

    python benchmarks/npbench.py --npbench PATH [--size S] [--kernels gemm,adi] [--numba] [--json FILE]

Each program runs in a process of its own: loaded twice from its source, once as it is and once through tierup's module loader (so that
its helper functions are selected as under `tierup run`), on data from its own initialiser. Results and changed arguments are compared bit
by bit, then both are timed in interleaved pairs on fresh copies of the data. A program that fails or takes too long is reported; the
others go on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from _timing import Comparison, arguments, machine, order, progress, same_bits, summary, time_text

from tierup.report.tables import print_table

WARM_UP_CALLS = 12
WARM_UP_SHARE = 0.3
"""Of a program's time limit; warming up also ends when a call brought no new specialisation."""


class Kernel:
    """One program of the checkout."""

    def __init__(self, checkout: Path, name: str) -> None:
        info = json.loads((checkout / "bench_info" / f"{name}.json").read_text())["benchmark"]
        self.name = name
        self.info: dict[str, Any] = info
        self.stem = checkout / "npbench" / "benchmarks" / info["relative_path"] / info["module_name"]

    def data(self, size: str) -> dict[str, Any]:
        """The arguments' values by name, as the program's own initialiser makes them."""
        values = dict(self.info["parameters"][size])
        init = self.info.get("init")
        if init:
            namespace = _executed(_compiled(Path(f"{self.stem}.py")), "initialiser")
            made = namespace[init["func_name"]](*(values[name] for name in init["input_args"]))
            names = init["output_args"]
            values.update(zip(names, made if len(names) > 1 else (made,), strict=True))
        return values

    def arguments(self, data: dict[str, Any]) -> list[Any]:
        """Fresh arguments for one call; arrays are copied."""
        return [_copied(data[name]) for name in self.info["input_args"]]

    def plain(self) -> Callable[..., Any]:
        """The function as it is."""
        return self._function(_compiled(Path(f"{self.stem}_numpy.py")))

    def compiled(self) -> Callable[..., Any]:
        """The function as `tierup run` would load it."""
        from tierup.engine import loader

        return self._function(loader.instrument(_compiled(Path(f"{self.stem}_numpy.py"))))

    def numba(self) -> Callable[..., Any] | None:
        """The checkout's own Numba version without Python objects, if there is one."""
        path = Path(f"{self.stem}_numba_n.py")
        return self._function(_compiled(path)) if path.exists() else None

    def _function(self, code: Any) -> Callable[..., Any]:
        function: Callable[..., Any] = _executed(code, Path(self.stem).name)[self.info["func_name"]]
        return function


def _compiled(path: Path) -> Any:
    return compile(path.read_bytes(), str(path), "exec", dont_inherit=True)


def _executed(code: Any, name: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": name, "__file__": code.co_filename}
    exec(code, namespace)
    return namespace


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    # scipy's sparse matrices and random generators
    return value.copy() if hasattr(value, "copy") and not isinstance(value, dict | list) else value


# ---- in the process of one program ---------------------------------------------------------------------------


def work(checkout: Path, name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measures one program; the result is plain data."""
    import tierup

    end = time.monotonic() + options.timeout * 0.8
    kernel = Kernel(checkout, name)
    data = kernel.data(options.size)
    plain, ours = kernel.plain(), kernel.compiled()

    expected_arguments = kernel.arguments(data)
    expected = plain(*expected_arguments)
    first, bits = _warm_up(kernel, data, ours, (expected, expected_arguments), options.timeout * WARM_UP_SHARE)
    found = _compared(kernel, data, plain, ours, options.pairs, options.seconds, end)
    now = tierup.stats()
    result = {
        "comparison": asdict(found),
        "first_call": first,
        "bits": bits,
        "specialisations": now.specialisations,
        "hits": now.hits,
        "misses": now.misses,
        "side_exits": now.side_exits,
        "breaks": now.by_reason("break"),
        "rejected": now.rejected,
        "errors": now.by_reason("error"),
    }
    if options.numba:
        result["numba"] = _numba(kernel, data, plain, (expected, expected_arguments), options, end)
    return result


def _warm_up(kernel: Kernel, data: dict[str, Any], ours: Callable[..., Any], expected: Any, seconds: float) -> tuple[float, bool]:
    """Calls until nothing new is compiled. (Time of the first call, whether every call gave the same bits.)"""
    import tierup

    end = time.monotonic() + seconds
    bits, known, first = True, -1, 0.0
    for call in range(WARM_UP_CALLS):
        args = kernel.arguments(data)
        start = time.perf_counter()
        value = ours(*args)
        if call == 0:
            first = time.perf_counter() - start
        bits = bits and same_bits(value, expected[0]) and same_bits(args, expected[1])
        specialisations = tierup.stats().specialisations
        if time.monotonic() > end or (call >= 3 and specialisations == known):
            break
        known = specialisations
    return first, bits


def _compared(
    kernel: Kernel, data: dict[str, Any], plain: Callable[..., Any], ours: Callable[..., Any], pairs: int, seconds: float, end: float
) -> Comparison:
    """Pairs of calls on fresh copies, an even number: at least four, then until there are enough or the time is up."""
    times: tuple[list[float], list[float]] = ([], [])
    enough = min(end, time.monotonic() + seconds)
    pair = 0
    while pair < 4 or pair % 2 or (pair < pairs and time.monotonic() < enough):
        for which in order(pair):
            args = kernel.arguments(data)
            start = time.perf_counter()
            (plain, ours)[which](*args)
            times[which].append(time.perf_counter() - start)
        pair += 1
    return summary(*times)


def _numba(kernel: Kernel, data: dict[str, Any], plain: Callable[..., Any], expected: Any, options: argparse.Namespace, end: float) -> Any:
    try:
        function = kernel.numba()
        if function is None:
            return {"problem": "no version of it"}
        args = kernel.arguments(data)
        start = time.perf_counter()
        value = function(*args)
        first = time.perf_counter() - start
        bits = same_bits(value, expected[0]) and same_bits(args, expected[1])
        found = _compared(kernel, data, plain, function, options.pairs, options.seconds, end)
    except Exception as error:
        # The peer's failure is a result about the peer.
        return {"problem": f"{type(error).__name__}: {error}".splitlines()[0]}
    return {"comparison": asdict(found), "first_call": first, "bits": bits}


# ---- in the main process -------------------------------------------------------------------------------------


def run_kernel(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Runs one program in a process of its own; {"problem": …} if that does not end well."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, __file__, *sys.argv[1:], "--worker", name, "--result", file.name]
        env = {**os.environ, "TIERUP_NUM_THREADS": str(options.threads), "NUMBA_NUM_THREADS": str(options.threads)}
        env |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(options.threads))
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout, env=env, check=False)
        except subprocess.TimeoutExpired:
            return {"problem": f"more than {options.timeout:.0f} s"}
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()
            return {"problem": f"exit code {done.returncode}: {lines[-1] if lines else 'no message'}", "stderr": done.stderr[-4000:]}
        result: dict[str, Any] = json.loads(Path(file.name).read_text())
        return result


def row(name: str, result: dict[str, Any], with_numba: bool) -> tuple[object, ...]:
    """The line of a program in the table."""
    peer = _peer(result) if with_numba else ()
    if "problem" in result:
        return (name, "", "", "", "", *peer, result["problem"])
    found = Comparison(**result["comparison"])
    breaks = ", ".join(list(result["breaks"])[:2])
    note = ("error: " + next(iter(result["errors"]))) if result["errors"] else breaks
    bits = "same" if result["bits"] else "DIFFERENT"
    return (name, time_text(found.plain), time_text(found.ours), str(found), bits, *peer, note[:60])


def _peer(result: dict[str, Any]) -> tuple[str, ...]:
    numba = result.get("numba", {})
    if "comparison" not in numba:
        return (numba.get("problem", "")[:24],)
    return (f"{numba['comparison']['ratio']:.2f}",)


def show(results: dict[str, dict[str, Any]], options: argparse.Namespace) -> None:
    """The table and what it comes to."""
    heads = ["program", "NumPy", "tierup", "times as fast", "bits", *(["Numba"] if options.numba else []), "note"]
    rows = [row(name, result, options.numba) for name, result in results.items()]
    print_table(f"NPBench, size {options.size}, {options.threads} threads", heads, rows)
    ratios = [result["comparison"]["ratio"] for result in results.values() if "comparison" in result]
    if ratios:
        mean = float(np.exp(np.mean(np.log(ratios))))
        faster, slower = sum(ratio > 1.05 for ratio in ratios), sum(ratio < 0.95 for ratio in ratios)
        print(f"geometric mean {mean:.3f} over {len(ratios)} of {len(results)} programs; {faster} faster and {slower} slower by 5 %")


def parsed(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = arguments(__doc__)
    parser.add_argument("--npbench", required=True, type=Path, metavar="PATH", help="an NPBench checkout")
    parser.add_argument("--size", default="S", choices=("S", "M", "L", "paper"))
    parser.add_argument("--kernels", metavar="NAME,…", help="names of files in bench_info (all)")
    parser.add_argument("--seconds", type=float, default=5.0, help="to spend on the pairs of each program (5)")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for each program in all (120)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--numba", action="store_true", help="also run the checkout's Numba versions")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--result", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if not (options.npbench / "bench_info").is_dir():
        parser.error(f"{options.npbench} is no NPBench checkout: it has no bench_info")
    return options


def main() -> int:
    options = parsed()
    if options.worker:
        result = work(options.npbench, options.worker, options)
        Path(options.result).write_text(json.dumps(result))
        return 0
    known = sorted(path.stem for path in (options.npbench / "bench_info").glob("*.json"))
    chosen = options.kernels.split(",") if options.kernels else known
    unknown = [name for name in chosen if name not in known]
    if unknown:
        print(f"npbench.py: no program {unknown[0]!r}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    results: dict[str, dict[str, Any]] = {}
    for number, name in enumerate(chosen, 1):
        progress(f"{name}, {number} of {len(chosen)}")
        results[name] = run_kernel(name, options)
        if options.json:
            # After each program, so that a stopped run leaves what it has.
            text = json.dumps({"machine": machine(), "size": options.size, "threads": options.threads, "results": results}, indent=1)
            Path(options.json).write_text(text + "\n")
    progress("")
    show(results, options)
    wrong = [name for name, result in results.items() if result.get("bits") is False]
    if wrong:
        print(f"different results: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
