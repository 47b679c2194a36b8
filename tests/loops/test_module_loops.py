"""Loops of module bodies: their variables are names, and nobody calls them twice."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

from tierup.engine import loader, units


def run(text: str, *, loops: int = 1) -> dict[str, Any]:
    """Executes a module plain and instrumented; the namespaces must be the same."""
    source = textwrap.dedent(text)
    plain: dict[str, Any] = {"np": np}
    exec(compile(source, "<plain>", "exec"), plain)
    code = loader.instrument(compile("import numpy\n" + source, "<module>", "exec"))
    unit = units.unit_of(code)
    assert unit is not None
    compiled: dict[str, Any] = {"np": np}
    exec(code, compiled)
    for name, value in plain.items():
        if name not in ("__builtins__", "np") and not callable(value):
            assert _same(value, compiled[name]), (name, value, compiled[name])
    assert set(plain) | {"numpy"} == set(compiled) | {"numpy"}
    found = sum(spec.graph is None for site in unit.sites.values() for spec in site.specs)
    assert found >= loops
    return compiled


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return repr(a) == repr(b)


def test_numbers() -> None:
    run(
        """
        total, x = 0, 0.5
        a = np.zeros(50)
        for i in range(50):
            for k in range(20):
                x = x * 3.7 * (1.0 - x)
                total += k
            a[i] = x
        """
    )


def test_while() -> None:
    run(
        """
        n, steps = 27, 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        """
    )


def test_names_that_are_bound_inside() -> None:
    run(
        """
        values = np.arange(10.0)
        for i in range(10):
            if i > 4:
                last = values[i]
                kind = i * 2
        """
    )


def test_names_that_stay_unbound() -> None:
    namespace = run(
        """
        values = np.arange(10.0)
        s = 0.0
        for i in range(10):
            s += values[i]
            if i > 100:
                never = 1
        """
    )
    assert "never" not in namespace


def test_ints_that_grow_beyond_64_bits() -> None:
    run(
        """
        product = 1
        for i in range(1, 40):
            product *= i
        """
    )


def test_functions_that_read_what_the_loop_changes() -> None:
    run(
        """
        scale = 1.0
        def scaled(v):
            return v * scale
        a = np.arange(10.0)
        s = 0.0
        for i in range(10):
            scale = i * 0.5
            s += scaled(a[i])
        """,
        loops=0,
    )


def test_functions_that_are_called() -> None:
    run(
        """
        def scaled(v, by):
            return v * by + OFFSET
        OFFSET = 2.0
        a = np.arange(10.0)
        s = 0.0
        for i in range(10):
            s += scaled(a[i], i)
        """
    )


def test_errors_leave_the_names_as_they_are() -> None:
    source = "import numpy as np\na = np.arange(5.0)\ns = 0.0\nfor i in range(9):\n    s += a[i]\n"
    results = []
    for prepare in (lambda code: code, loader.instrument):
        namespace: dict[str, Any] = {}
        with pytest.raises(IndexError) as caught:
            exec(prepare(compile(source, "<module>", "exec")), namespace)
        results.append((namespace["i"], namespace["s"], caught.traceback[-1].lineno, str(caught.value)))
    assert results[0] == results[1]


def test_break_else_and_nested_loops() -> None:
    run(
        """
        primes = np.zeros(60, dtype=np.int64)
        count = 0
        for n in range(2, 60):
            for d in range(2, n):
                if n % d == 0:
                    break
            else:
                primes[count] = n
                count += 1
        """
    )
