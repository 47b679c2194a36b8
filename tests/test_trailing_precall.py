"""A function of nothing but one print, compiled with a minimum graph size, crashed another translator on its fourth call.

Its generated code held a PRECALL without the CALL that CPython 3.11's specialised instructions skip to. Ours keeps the original
instructions; 10,000 rounds see every stage of CPython's own specialisation.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

import tierup

ROUNDS = 10_000


def test_print_in_a_function_compiled_anew_every_round() -> None:
    def foo() -> None:
        print(1)

    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        for _ in range(ROUNDS):
            tierup.jit(foo, min_graph_size=10)()
    assert output.getvalue() == "1\n" * ROUNDS


def test_calls_of_every_kind_behind_small_graphs() -> None:
    """Builtins, methods and keyword calls with array operations around them that are too few for a graph."""

    def calls(v: Any, log: list[Any]) -> Any:
        w = v + 1
        log.append(len(w))
        print(w[0], end=";")
        n = max(len(log), 2, key=abs)
        log.sort(reverse=True)
        return ord(chr(65 + n % 20)), isinstance(w, np.ndarray), int(w[0]) * n

    f, output = tierup.jit(calls, min_graph_size=10), io.StringIO()
    v, log, plain_log = np.arange(3.0), [], []
    with contextlib.redirect_stdout(output):
        for _ in range(300):
            got = f(v, log)
            assert got == calls(v, plain_log) and log == plain_log
    assert output.getvalue() == "1.0;" * 600
