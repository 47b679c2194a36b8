"""What a call of compiled code costs beside NumPy: small arrays, where the work is nothing and the way to it is everything.

python benchmarks/dispatch.py
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from _timing import arguments, compare, progress, same_bits, time_text, write_json

import tierup
from tierup.report.tables import print_table


def twice_and_one(x: Any) -> Any:
    return x * 2 + 1


def polynomial(x: Any, y: Any) -> Any:
    return (x * x - y) * 0.5 + x * y - y * y


def warm(function: Any, *args: Any) -> Any:
    """The function compiled for these arguments."""
    compiled = tierup.jit(function)
    for _ in range(100):
        compiled(*args)
    return compiled


def many_specialisations(number: int) -> tuple[Any, Any]:
    """A compiled function that has met so many kinds of argument, and the last one of them: ten float64."""
    compiled = tierup.jit(twice_and_one)
    kinds = list(itertools.product(("c16", "f4", "i8", "i4", "i2", "u4", "u2", "u8"), (1, 2, 3, 4)))[: number - 1]
    for x in (*(np.ones((2,) * rank, dtype) for dtype, rank in kinds), np.linspace(0, 1, 10)):
        for _ in range(100):
            compiled(x)
    return compiled, x


def main() -> None:
    options = arguments(__doc__).parse_args()
    rng = np.random.default_rng(1)
    ten = rng.standard_normal(10)
    backwards = rng.standard_normal((8, 12))[::-1, ::-2]
    two = rng.standard_normal(100), rng.standard_normal(100)
    last, x33 = many_specialisations(33)
    cases: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
        "x * 2 + 1, 10 elements": (twice_and_one, warm(twice_and_one, ten), (ten,)),
        "x * 2 + 1, 1 element": (twice_and_one, warm(twice_and_one, ten[:1]), (ten[:1],)),
        "x * 2 + 1, negative strides in two dimensions": (twice_and_one, warm(twice_and_one, backwards), (backwards,)),
        "x * 2 + 1, the 33rd specialisation": (twice_and_one, last, (x33,)),
        "7 operations on 100 elements": (polynomial, warm(polynomial, *two), two),
    }
    rows, results = [], {}
    for name, (plain, compiled, args) in cases.items():
        progress(name)
        assert same_bits(plain(*args), compiled(*args)), f"different results: {name}"
        found = compare(plain, compiled, args, pairs=options.pairs)
        rows.append((name, time_text(found.plain), time_text(found.ours), str(found)))
        results[name] = found
    progress("")
    print_table("time of a call", ("call", "NumPy", "tierup", "times as fast"), rows)
    write_json(options.json, results)


if __name__ == "__main__":
    main()
