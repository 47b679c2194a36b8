"""What a site costs: empty, missing, and hitting behind few or many guards; in nanoseconds and as a ratio to a plain Python call.

    python benchmarks/guards.py [--repeat N]

Each figure is a loop with the site minus the same loop without, best of N, on one thread.
"""

from __future__ import annotations

import argparse
import struct
import time
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from tierup import _core
from tierup.bytecode.concrete import decode, expand_superinstructions
from tierup.bytecode.splice import Exit, SiteSpec, splice

ROUNDS = 1_000
E, C = _core.EXPR_KINDS, _core.CHECK_KINDS
ARRAY_MASK = 0x1FFFF

Specs = list[tuple[list[tuple[int, int, object]], _core.Plan, int, bool]]


def subject(a: Any, b: Any, k: int, rounds: range) -> None:
    for _ in rounds:
        k = k  # noqa: PLW0127


def called(a: Any, b: Any, k: int) -> None:
    pass


def calling(a: Any, b: Any, k: int, rounds: range) -> None:
    for _ in rounds:
        called(a, b, k)


def with_site() -> tuple[FunctionType, _core.Site]:
    """`subject` with a site in front of its body whose hit goes on behind the body."""
    program = expand_superinstructions(decode(subject.__code__))
    names = [i.name for i in program.instrs]
    body = names.index("STORE_FAST") + 1
    behind = next(i for i in range(body, len(names)) if names[i].startswith("JUMP_BACKWARD"))
    site = _core.Site(body, 1)
    spliced = splice(program, [SiteSpec(body, site, (Exit(behind),))])
    site.bind(spliced.code, spliced.site_instr[body])
    return FunctionType(spliced.code, globals()), site


def plan() -> _core.Plan:
    """Loads k and stores it again: the least a region can do."""
    code = [_core.PLAN_OPS["O_EXPR"], 0, 0]
    return _core.Plan(struct.pack("=3i", *code), (), (), 1, 0, 0, b"", [(_core.EXIT_LOCAL, 2, 0)])


def key(a: np.ndarray[Any, Any]) -> tuple[int, int]:
    return ARRAY_MASK, _core.array_key(a) & ARRAY_MASK


def best(function: Callable[..., None], args: tuple[Any, ...], repeat: int) -> float:
    """Nanoseconds per round."""
    rounds = range(ROUNDS)
    times = []
    for _ in range(repeat):
        start = time.perf_counter_ns()
        function(*args, rounds)
        times.append(time.perf_counter_ns() - start)
    return min(times) / ROUNDS


def cases(a: Any, b: Any) -> Iterator[tuple[str, list[tuple[int, int, object]], Specs]]:
    local = [(E["LOCAL"], -1, i) for i in (2, 0, 1)]
    array = (C["ARRAY"], 1, key(a))
    yield "empty site", [], []
    yield "hit without guards", local, [([], plan(), 0, False)]
    yield "miss: one int", local, [([(C["INT_EQ"], 0, -1)], plan(), 0, False)]
    yield "hit: 1 int", local, [([(C["INT_EQ"], 0, 5)], plan(), 0, False)]
    yield "hit: 1 array, 1 int", local, [([array, (C["INT_EQ"], 0, 5)], plan(), 0, False)]
    yield "hit: 2 arrays, 1 type", local, [([array, (C["ARRAY"], 2, key(b)), (C["TYPE_IS"], 0, int)], plan(), 0, False)]
    named = [*local, (E["GLOBAL"], -1, "np"), (E["MODATTR"], 3, "sin")]
    yield "hit: 1 array, np.sin", named, [([array, (C["IS"], 4, np.sin)], plan(), 0, False)]
    for n in (1, 8, 32):
        shared = [array, (C["IS"], 4, np.sin), (C["TYPE_IS"], 0, int)]
        specs: Specs = [([*shared, (C["INT_EQ"], 0, 6 - n + i)], plan(), 0, False) for i in range(n)]
        yield f"hit the last of {n}, 4 guards each", named, specs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=500)
    repeat = parser.parse_args().repeat
    _core.init_numpy()
    a, b = np.ones(10), np.ones(10)
    args = (a, b, 5)
    function, site = with_site()
    empty_loop = best(subject, args, repeat)
    call = best(calling, args, repeat) - empty_loop
    print(f"{'a plain Python call':36} {call:7.1f} ns")
    for title, exprs, specs in cases(a, b):
        site.install(exprs, specs)
        # Where the site misses, the body runs as in the plain loop; where it hits, the body is left out.
        cost = best(function, args, repeat) - empty_loop
        print(f"{title:36} {cost:7.1f} ns {cost / call:7.2f}")


if __name__ == "__main__":
    main()
