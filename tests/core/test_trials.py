"""Trials: sites time themselves against the interpreter, and what is slower does not run any more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hosts import E, host, plan, spec, splice

import tierup
from tierup import _core
from tierup.engine import units
from tierup.runtime import config, events

LONG = [("O_CONST", 0, 0)] * 200_000
"""A plan of a millisecond or so."""


@pytest.fixture(autouse=True)
def _trials() -> Iterator[None]:
    before = config.current()
    config.set_current(before.replace(trial_hits=3))
    _core.set_first_trial(3)
    yield
    config.set_current(before)
    _core.set_first_trial(before.trial_hits)


def local(i: int) -> tuple[int, int, object]:
    return (E["LOCAL"], -1, i)


QUICK_OR_HIT = """
def f(turns):
    hits = 0
    for turn in range(turns):
        if SITE:
            hits += 1
    return hits
"""


def test_what_is_slower_stops() -> None:
    f, site = host(QUICK_OR_HIT, depth=1)
    asked = []
    site.callback = lambda s, live: asked.append(s.slow)
    site.countdown = 1 << 40
    site.install([], [spec([], plan(LONG, constants=(None,), nobjects=1))])
    hits = f(200)
    assert site.slow
    assert 3 < hits < 60
    assert asked == [True]
    assert f(50) == 0


def test_what_is_faster_goes_on() -> None:
    f, site = host(
        "def f(turns):\n"
        "    hits = 0\n"
        "    for turn in range(turns):\n"
        "        if SITE:\n"
        "            hits += 1\n"
        "        else:\n"
        "            for _ in range(20000):\n"
        "                pass\n"
        "    return hits\n",
        depth=1,
    )
    site.install([], [spec([], plan())])
    hits = f(400)
    assert not site.slow
    assert 395 <= hits < 400, "some visits were left to the interpreter, and very few where it is that clear"


def test_a_new_installation_gets_a_trial_of_its_own() -> None:
    f, site = host(QUICK_OR_HIT, depth=1)
    slow = [spec([], plan(LONG, constants=(None,), nobjects=1))]
    site.install([], slow)
    f(100)
    assert site.slow
    site.install([], slow)
    assert not site.slow
    assert f(100) > 0
    assert site.slow


def test_no_trials() -> None:
    _core.set_first_trial(0)
    f, site = host(QUICK_OR_HIT, depth=1)
    site.install([], [spec([], plan(LONG[:50_000], constants=(None,), nobjects=1))])
    assert f(100) == 100


def test_sites_inside_stand_aside() -> None:
    source = """
def f(turns):
    inner = after = 0
    for turn in range(turns):
        if OUTER:
            pass
        else:
            for _ in range(2000):
                pass
            if INNER:
                inner += 1
        if AFTER:
            after += 1
    return inner, after
"""
    namespace: dict[str, Any] = {}
    exec(compile(source, "<host>", "exec"), namespace)
    f = namespace["f"]
    sites = {"OUTER": _core.Site(10, 1), "INNER": _core.Site(20, 1), "AFTER": _core.Site(30, 1)}
    f.__code__ = splice(f.__code__, **sites)
    outer, inner, _ = sites.values()
    for site in (inner, sites["AFTER"]):
        _core.set_first_trial(0)
        site.install([], [spec([], plan())])
    _core.set_first_trial(3)
    outer.reach = 30
    outer.install([], [spec([], plan())])
    found, after = f(100)
    assert not outer.slow
    assert outer.hits < 100, "there was a trial"
    assert found == inner.hits == 0
    assert after == 100


def test_a_site_whose_frames_change_comes_to_an_end_of_its_trial() -> None:
    f, site = host("def f(deep):\n    if SITE:\n        pass\n    return f(deep - 1) if deep else 0\n")
    f.__globals__["f"] = f
    site.install([], [spec([], plan())])
    for _ in range(50):
        f(100)
    assert not site.slow
    before = site.hits
    f(100)
    assert site.hits - before > 90


def test_results_do_not_depend_on_trials() -> None:
    """Regions of all lengths in a loop with side effects; forced misses come at any of them."""

    def program(x: np.ndarray, log: list[float]) -> Any:
        total = 0.0
        for i in range(len(x)):
            y = x * i + 1
            if y[0] > 5:
                y = y - x
            x[i] = y[-1] / 2
            log.append(float(y.sum()))
            total += x[i] * log[-1]
            y[:] = np.sqrt(np.abs(y)) + total
        return total, y

    jitted = tierup.jit(program)
    for turn in range(40):
        results = []
        for function in (jitted, program):
            x, log = np.linspace(-1, 2, 12 + turn % 3), []
            total, y = function(x, log)
            results.append((total, y.tobytes(), x.tobytes(), log))
        assert results[0] == results[1]
    assert tierup.stats().hits > 0


def test_the_engine_drops_the_site() -> None:
    """What a trial condemns is abandoned and counted, and the function runs on without it."""

    def f(x: np.ndarray) -> Any:
        return x * 2 + 1

    jitted = tierup.jit(f)
    x = np.linspace(0, 1, 10)
    for _ in range(3):
        jitted(x)
    unit = units.unit_of(jitted.__code__)
    assert unit is not None
    generation = unit.generation_of(jitted.__code__)
    assert generation is not None
    state = unit.sites[0]
    # The real plan is faster than the interpreter; a long one takes its place.
    spec_ = state.specs[0]
    generation.sites[0].install(
        state.exprs.exprs() if state.exprs is not None else (),
        [(spec_.lowered, plan(LONG, constants=(None,), nobjects=1, exit=[(_core.EXIT_STACK, 0, 0)]), 0, False)],
    )
    for _ in range(100):
        jitted(x)
    assert state.dead
    assert any(event.reason == "slower than the interpreter" for event in events.recent("abandoned"))
    assert jitted(x).tobytes() == f(x).tobytes()
