"""Chains of elementwise operations on a million elements: NumPy, tierup, and Numba and numexpr where they are installed.

    python benchmarks/chains.py [--size N]

NumPy and tierup are compared bit by bit; Numba and numexpr use mathematics of their own and need only be close.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from _timing import arguments, compare, progress, same_bits, time_text, write_json

import tierup
from tierup.report.tables import print_table

Arrays = tuple[Any, ...]
WARM_UP = 30  # calls: by then the site has been compared with the interpreter


def arithmetic(x: Any, y: Any) -> Any:
    return (x * 2.0 + y) * (x - y) / 3.0


def arc_distance(theta_1: Any, phi_1: Any, theta_2: Any, phi_2: Any) -> Any:
    """Angle between pairs of points on a sphere."""
    a = np.sin((theta_2 - theta_1) / 2) ** 2 + np.cos(theta_1) * np.cos(theta_2) * np.sin((phi_2 - phi_1) / 2) ** 2
    return 2 * np.arctan2(np.sqrt(a), np.sqrt(1 - a))


def black_scholes(spot: Any, strike: Any, years: Any, rate: float, volatility: float) -> Any:
    """Price of a call, with a logistic approximation of the normal distribution."""
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    d2 = d1 - spread
    n1 = 1.0 / (1.0 + np.exp(-1.5976 * d1 - 0.07056 * d1 * d1 * d1))
    n2 = 1.0 / (1.0 + np.exp(-1.5976 * d2 - 0.07056 * d2 * d2 * d2))
    return spot * n1 - strike * np.exp(-rate * years) * n2


NUMEXPR: dict[Callable[..., Any], str] = {
    arithmetic: "(x * 2.0 + y) * (x - y) / 3.0",
    arc_distance: (
        "2 * arctan2(sqrt(sin((theta_2 - theta_1) / 2) ** 2 + cos(theta_1) * cos(theta_2) * sin((phi_2 - phi_1) / 2) ** 2),"
        " sqrt(1 - (sin((theta_2 - theta_1) / 2) ** 2 + cos(theta_1) * cos(theta_2) * sin((phi_2 - phi_1) / 2) ** 2)))"
    ),
}


def cases(size: int) -> dict[str, tuple[Callable[..., Any], Arrays]]:
    rng = np.random.default_rng(2)
    spot = rng.uniform(80, 120, size)
    return {
        "5 arithmetic operations": (arithmetic, (rng.standard_normal(size), rng.standard_normal(size))),
        "arc distance": (arc_distance, tuple(rng.uniform(0, 3, size) for _ in range(4))),
        "Black-Scholes": (black_scholes, (spot, spot * rng.uniform(0.8, 1.2, size), rng.uniform(0.1, 2, size), 0.03, 0.25)),
    }


def peers(function: Callable[..., Any], args: Arrays) -> dict[str, Callable[..., Any]]:
    """The other compilers that are installed, warmed up."""
    found: dict[str, Callable[..., Any]] = {}
    if importlib.util.find_spec("numba") is not None:
        numba = importlib.import_module("numba")
        found["Numba"] = numba.njit(function)
        found["Numba parallel"] = numba.njit(parallel=True)(function)
    if importlib.util.find_spec("numexpr") is not None and function in NUMEXPR:
        evaluate = importlib.import_module("numexpr").evaluate
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        found["numexpr"] = lambda *args: evaluate(NUMEXPR[function], dict(zip(names, args, strict=True)))
    for action in found.values():
        action(*args)
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--size", type=int, default=1_000_000)
    options = parser.parse_args()
    rows, results = [], {}
    for name, (function, args) in cases(options.size).items():
        progress(name)
        compiled = tierup.jit(function)
        for _ in range(WARM_UP):
            ours = compiled(*args)
        plain = function(*args)
        bits = "same bits" if same_bits(plain, ours) else "DIFFERENT"
        actions = {"tierup": compiled, **peers(function, args)}
        for who, action in actions.items():
            progress(f"{name}: {who}")
            found = compare(function, action, args, pairs=options.pairs, seconds=0.05)
            equal = bits if who == "tierup" else "close" if np.allclose(action(*args), plain, equal_nan=True) else "DIFFERENT"
            rows.append((name, who, time_text(found.plain), time_text(found.ours), str(found), equal))
            results[f"{name}, {who}"] = found
    progress("")
    heads = ("computation", "compiler", "NumPy", "compiled", "times as fast", "result")
    print_table(f"{options.size} elements, {tierup_threads()} threads", heads, rows)
    write_json(options.json, results)


def tierup_threads() -> int:
    from tierup import _core

    return _core.num_threads()


if __name__ == "__main__":
    main()
