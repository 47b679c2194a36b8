"""Loops over elements, lists and strings: plain Python, tierup and, where it is installed and compiles them, Numba.

    python benchmarks/loops.py [--programs crc16,sieve]

Each program runs on fresh copies of its arguments; results and changed arguments are compared bit by bit.
"""

from __future__ import annotations

import copy
import importlib
import importlib.util
import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from _timing import Comparison, arguments, once, paired, progress, same_bits, time_text, write_json

import tierup
from tierup.report.tables import print_table

Program = Callable[..., Any]


def crc16(data: Any, poly: int) -> int:
    crc = 0xFFFF
    for i in range(len(data)):
        byte = int(data[i])
        for _ in range(8):
            if (byte & 1) ^ (crc & 1):
                crc = (crc >> 1) ^ poly
            else:
                crc >>= 1
            byte >>= 1
    return crc


def nussinov(seq: Any, table: Any) -> Any:
    n = len(seq)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            table[i, j] = max(table[i, j], table[i, j - 1])
            table[i, j] = max(table[i, j], table[i + 1, j])
            if i < j - 1:
                pair = 1 if seq[i] + seq[j] == 3 else 0
                table[i, j] = max(table[i, j], table[i + 1, j - 1] + pair)
            else:
                table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


def floyd_warshall(path: Any) -> Any:
    n = path.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                path[i, j] = min(path[i, j], path[i, k] + path[k, j])
    return path


def seidel_2d(a: Any, steps: int) -> Any:
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                above = a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1]
                below = a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
                a[i, j] = (above + a[i, j - 1] + a[i, j] + a[i, j + 1] + below) / 9.0
    return a


def durbin(r: Any) -> Any:
    n = len(r)
    y, z = np.zeros(n), np.zeros(n)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, n):
        beta = (1.0 - alpha * alpha) * beta
        total = r[k]
        for i in range(k):
            total += r[k - i - 1] * y[i]
        alpha = -total / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha
    return y


def lu(a: Any) -> Any:
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[k, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            for k in range(i):
                a[i, j] -= a[i, k] * a[k, j]
    return a


def cholesky(a: Any) -> Any:
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for k in range(i):
            a[i, i] -= a[i, k] * a[i, k]
        a[i, i] = np.sqrt(a[i, i])
    return a


def mandelbrot(counts: Any, low: complex, high: complex, most: int) -> Any:
    rows, columns = counts.shape
    for i in range(rows):
        for j in range(columns):
            c = complex(low.real + (high.real - low.real) * j / columns, low.imag + (high.imag - low.imag) * i / rows)
            z = 0j
            for k in range(most):
                if abs(z) > 2.0:
                    counts[i, j] = k
                    break
                z = z * z + c
    return counts


def nbody(x: Any, y: Any, z: Any, vx: Any, vy: Any, vz: Any, mass: Any, dt: float, steps: int) -> Any:
    n = len(mass)
    for _ in range(steps):
        for i in range(n):
            for j in range(i + 1, n):
                dx, dy, dz = x[i] - x[j], y[i] - y[j], z[i] - z[j]
                square = dx * dx + dy * dy + dz * dz
                force = dt / (square * math.sqrt(square))
                vx[i] -= dx * mass[j] * force
                vy[i] -= dy * mass[j] * force
                vz[i] -= dz * mass[j] * force
                vx[j] += dx * mass[i] * force
                vy[j] += dy * mass[i] * force
                vz[j] += dz * mass[i] * force
        for i in range(n):
            x[i] += dt * vx[i]
            y[i] += dt * vy[i]
            z[i] += dt * vz[i]
    return x[0]


def sieve(prime: Any) -> int:
    prime[0] = prime[1] = False
    count = 0
    for i in range(len(prime)):
        if prime[i]:
            count += 1
            for k in range(i * i, len(prime), i):
                prime[k] = False
    return count


def edit_distance(a: str, b: str, before: Any, row: Any) -> int:
    for j in range(len(b) + 1):
        before[j] = j
    for i in range(1, len(a) + 1):
        row[0] = i
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + cost)
        for j in range(len(b) + 1):
            before[j] = row[j]
    return int(before[len(b)])


def _positive(n: int) -> Any:
    a = np.random.default_rng(n).random((n, n))
    return a @ a.T + n * np.eye(n)


def programs() -> dict[str, tuple[Program, tuple[Any, ...]]]:
    """Each program with its arguments."""
    rng = np.random.default_rng(0)
    bodies = [list(map(float, rng.random(8) * 10)) for _ in range(7)]
    text = "".join(map(str, rng.integers(0, 4, 300)))
    return {
        "crc16": (crc16, (rng.integers(0, 256, 4000).astype("u1"), 0x8408)),
        "nussinov": (nussinov, (rng.integers(0, 4, 45), np.zeros((46, 46), np.int32))),
        "floyd-warshall": (floyd_warshall, (rng.random((40, 40)),)),
        "seidel-2d": (seidel_2d, (rng.random((50, 50)), 5)),
        "durbin": (durbin, (rng.random(200) / 100,)),
        "lu": (lu, (_positive(40),)),
        "cholesky": (cholesky, (_positive(45),)),
        "Mandelbrot": (mandelbrot, (np.zeros((60, 80), np.int64), -2 - 1.5j, 1 + 1.5j, 50)),
        "N-body over lists": (nbody, (*bodies, 0.01, 60)),
        "sieve over a list": (sieve, ([True] * 60_000,)),
        "edit distance of strings": (edit_distance, (text, text[::-1], [0] * 301, [0] * 301)),
    }


def timed(function: Program, args: tuple[Any, ...]) -> float:
    return once(function, copy.deepcopy(args))


def outcome(function: Program, args: tuple[Any, ...]) -> Any:
    own = copy.deepcopy(args)
    return function(*own), list(own)


def measured(plain: Program, args: tuple[Any, ...], pairs: int, numba: Any) -> dict[str, Any]:
    """One program: times of plain Python and tierup in pairs, the first call, bits, and how Numba compares with tierup."""
    expected = outcome(plain, args)
    ours = tierup.jit(plain)
    result: dict[str, Any] = {"first_call": timed(ours, args)}
    result["bits"] = all(same_bits(list(outcome(ours, args)), list(expected)) for _ in range(3))
    result["comparison"] = _paired(plain, ours, args, pairs)
    if numba is not None:
        result["numba"] = _with_numba(numba.njit(plain), ours, args, pairs)
    return result


def _paired(one: Program, other: Program, args: tuple[Any, ...], pairs: int) -> dict[str, Any]:
    return asdict(paired(lambda which: timed((one, other)[which], args), pairs))


def _with_numba(peer: Program, ours: Program, args: tuple[Any, ...], pairs: int) -> dict[str, Any]:
    try:
        return {"first_call": timed(peer, args), "comparison": _paired(peer, ours, args, pairs)}
    except Exception as error:
        # The peer's failure is a result about the peer.
        return {"problem": type(error).__name__}


def row(name: str, found: dict[str, Any]) -> tuple[str, ...]:
    """The line of a program in the table."""
    peer = found.get("numba", {"problem": "not installed"})
    against = str(Comparison(**peer["comparison"])) if "comparison" in peer else peer["problem"]
    first = [time_text(found["first_call"]), *([time_text(peer["first_call"])] if "first_call" in peer else [])]
    times = Comparison(**found["comparison"])
    bits = "same" if found["bits"] else "DIFFERENT"
    return (name, time_text(times.plain), time_text(times.ours), str(times), bits, against, " / ".join(first))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--programs", metavar="NAME,…", help="only these (all)")
    options = parser.parse_args()
    known = programs()
    wanted = options.programs.split(",") if options.programs else [*known]
    if unknown := [name for name in wanted if name not in known]:
        parser.error(f"no program {unknown[0]!r}; there are: {', '.join(known)}")
    numba = importlib.import_module("numba") if importlib.util.find_spec("numba") is not None else None
    results = {}
    for name in wanted:
        progress(name)
        results[name] = measured(*known[name], options.pairs, numba)
    progress("")
    heads = ("program", "Python", "tierup", "times as fast", "bits", "as fast as Numba", "first call (Numba's)")
    print_table("loops over elements, lists and strings", heads, [row(name, found) for name, found in results.items()])
    write_json(options.json, results)


if __name__ == "__main__":
    main()
