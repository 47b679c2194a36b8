"""Sites: when they hit, what they write, what they leave alone."""

from __future__ import annotations

import gc
import inspect
import marshal
import operator
import pickle
import signal
import sys
import threading
import time
import weakref
from types import FunctionType
from typing import Any

import pytest
from hosts import C, E, constant_plan, host, inner_code, plan, slot, spec, splice

from tierup import _core

CHOOSE = """
def f(a, b=None):
    if SITE:
        return ("hit", a, b)
    return ("miss", a, b)
"""


def local(i: int) -> tuple[int, int, object]:
    return (E["LOCAL"], -1, i)


def is_int(expr: int) -> tuple[int, int, object]:
    return (C["TYPE_IS"], expr, int)


def test_an_empty_site_is_false_and_counts_nothing() -> None:
    f, site = host(CHOOSE)
    for _ in range(10):
        assert f(1) == ("miss", 1, None)
    assert (site.hits, site.misses, site.errors, site.observed) == (0, 0, 0, 0)


def test_a_hit_writes_locals() -> None:
    f, site = host(CHOOSE)
    site.install([local(0)], [spec([is_int(0)], constant_plan([(_core.EXIT_LOCAL, 0, 0), (_core.EXIT_LOCAL, 1, 1)], "new a", "new b"))])
    assert f(1) == ("hit", "new a", "new b")
    assert f("1") == ("miss", "1", None)
    assert (site.hits, site.misses, site.spec_hits()) == (1, 1, [1])


def test_values_of_the_frame_reach_the_plan() -> None:
    f, site = host(CHOOSE)
    p = plan([("O_EXPR", 0, 0)], nobjects=1, exit=[(_core.EXIT_LOCAL, 1, 0)])
    site.install([local(0)], [spec([is_int(0)], p)])
    big = 10**30
    assert f(big) == ("hit", big, big)
    assert f(big)[2] is big


def test_an_exit_can_unbind_a_local() -> None:
    f, site = host("def f(a):\n    if SITE:\n        return 'a' in locals()\n    return a\n")
    site.install([], [spec([], plan(exit=[(_core.EXIT_LOCAL, 0, -1)]))])
    assert f(5) is False


def test_a_site_in_another_code_object_misses() -> None:
    f, site = host(CHOOSE)
    site.install([], [spec([])])
    assert f(1)[0] == "hit"
    copy = FunctionType(f.__code__.replace(co_name="copy"), {})
    assert copy(1, 2) == ("miss", 1, 2)
    assert bool(site) is False
    assert f(1)[0] == "hit"


def test_a_truth_test_elsewhere_in_the_same_code_misses() -> None:
    f, site = host("""
def f():
    if SITE:
        return 'first'
    if SITE:
        return 'second'
    return bool(SITE)
""")
    assert f() is False
    site.install([], [spec([])])
    assert f() == "first"
    site.install([(E["CONST"], -1, 1)], [spec([(C["INT_EQ"], 0, 2)])])
    assert f() is False
    assert site.misses == 1


def test_the_code_object_is_held_weakly() -> None:
    f, site = host(CHOOSE)
    ref = weakref.ref(f.__code__)
    del f
    gc.collect()
    assert ref() is None
    assert bool(site) is False


def test_disabled_and_unbound() -> None:
    f, site = host(CHOOSE)
    calls: list[object] = []
    site.install([], [spec([])])
    site.callback = lambda s, frame: calls.append(s)
    site.countdown = 1
    site.enabled = False
    assert f(1)[0] == "miss"
    assert (site.misses, site.countdown, calls) == (0, 1, [])
    site.enabled = True
    assert f(1)[0] == "hit"
    fresh = _core.Site(3, 0)
    fresh.countdown = 1
    assert not fresh and fresh.countdown == 1
    with pytest.raises(TypeError):
        site.enabled = 1  # type: ignore[assignment]


def test_disabling_all_sites() -> None:
    f, site = host(CHOOSE)
    site.install([], [spec([])])
    assert (_core.disable(1), _core.disable(1)) == (1, 2)
    try:
        assert f(1)[0] == "miss"
        _core.disable(-1)
        assert f(1)[0] == "miss"
    finally:
        assert _core.disable(-1) == 0
    assert f(1)[0] == "hit"
    assert (site.hits, site.misses) == (1, 0)
    with pytest.raises(ValueError):
        _core.disable(-1)
    assert _core.disable(0) == 0


def test_exit_numbers_and_specialisations_without_a_landing() -> None:
    f, site = host("def f(a):\n    if SITE:\n        return -SITE\n    return None\n")
    specs = [spec([(C["INT_EQ"], 0, n)], exit=e) for n, e in ((1, 7), (2, -1), (3, 0))]
    site.install([local(0)], [*specs, spec([(C["INT_EQ"], 0, 2)], exit=9)])
    assert [f(n) for n in (1, 2, 3, 4)] == [7, 9, 0, None]
    with pytest.raises(RuntimeError):
        operator.neg(site)
    with pytest.raises(RuntimeError):
        operator.invert(site)


def test_stack_values_at_the_site_are_replaced_in_place() -> None:
    f, site = host("def f(a):\n    return [a, a + 1, 10 if SITE else 20]\n", depth=2)
    site.install(
        [(E["STACK"], -1, 1)], [spec([(C["INT_EQ"], 0, 6)], constant_plan([(_core.EXIT_STACK, 0, 0), (_core.EXIT_STACK, 1, 1)], "x", "y"))]
    )
    assert f(5) == ["x", "y", 10]
    assert f(6) == [6, 7, 20]


def test_deeper_stack_values_wait_for_their_placeholders() -> None:
    f, site = host("def f(a):\n    return [a, [None, 0, ~SITE] if SITE else 20]\n", depth=1)
    entries = [(_core.EXIT_STACK, 0, 0), (_core.EXIT_STACK, 1, 1), (_core.EXIT_STACK, 2, 2), (_core.EXIT_STACK, 3, 3)]
    # The first use in the source is inside the list: bind to the truth test by hand.
    code = f.__code__
    names = [i for i in range(len(code.co_code) // 2)]
    bound = next(i for i in names if _binds_and_hits(f, site, i, entries))
    site.bind(code, bound)
    site.install([], [spec([], constant_plan(entries, "w", "x", "y", "z"))])
    assert f(5) == ["w", ["x", "y", "z"]]
    with pytest.raises(RuntimeError):
        operator.invert(site)


def _binds_and_hits(f: Any, site: _core.Site, instr: int, entries: Any) -> bool:
    site.bind(f.__code__, instr)
    site.install([], [spec([], constant_plan(entries, "w", "x", "y", "z"))])
    return bool(f(5)[1] != 20)


def test_a_null_on_top_of_the_deeper_values() -> None:
    _, site = host(CHOOSE)
    entries = [(_core.EXIT_STACK, 0, 0), (_core.EXIT_STACK, 1, -1)]
    with pytest.raises(ValueError, match="top_null"):
        site.install([], [spec([], constant_plan(entries, "x"))])
    with pytest.raises(ValueError, match="top_null"):
        site.install([], [spec([], constant_plan(entries[:1], "x"), 0, True)])
    site.install([], [spec([], constant_plan([]), 0, True)])  # nothing beyond the site's depth: no matter
    site.install([], [spec([], constant_plan(entries, "x"), 0, True)])
    assert site.spec_hits() == [0]


def test_cells_are_read_and_written() -> None:
    f, site = host("""
def f(a):
    def g():
        return a
    if SITE:
        return ('hit', g(), a)
    return ('miss', g(), a)
""")
    where = slot(f, "a")
    site.install([(E["CELL"], -1, where)], [spec([(C["INT_EQ"], 0, 3)], constant_plan([(_core.EXIT_CELL, where, 0)], "written"))])
    assert f(3) == ("hit", "written", "written")
    assert f(4) == ("miss", 4, 4)
    # A plain write would destroy the cell: such a specialisation misses.
    site.install([], [spec([], constant_plan([(_core.EXIT_LOCAL, where, 0)], "no"))])
    assert f(3) == ("miss", 3, 3)
    plain, site2 = host(CHOOSE)
    site2.install([], [spec([], constant_plan([(_core.EXIT_CELL, 0, 0)], "no"))])
    assert plain(3) == ("miss", 3, None)


def test_free_variables() -> None:
    source = """
def outer(n):
    def f():
        if SITE:
            return ('hit', n)
        return ('miss', n)
    return f
"""
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    f = namespace["outer"](1)
    site = _core.Site(0, 0)
    f.__code__ = splice(f.__code__, SITE=site)
    where = slot(f, "n")
    site.install([(E["CELL"], -1, where)], [spec([(C["INT_EQ"], 0, 1)], constant_plan([(_core.EXIT_CELL, where, 0)], 2))])
    assert f() == ("hit", 2)
    assert f() == ("miss", 2)
    site.install([], [spec([], plan(exit=[(_core.EXIT_CELL, where, -1)]))])
    with pytest.raises(NameError):
        f()


MODULE = """
before = 1
if SITE:
    found = ("hit", globals().get("before"), globals().get("made"))
else:
    found = ("miss", before)
"""


def test_names_of_a_module_body() -> None:
    site = _core.Site(0, 0)
    code = splice(compile(MODULE, "<module>", "exec"), SITE=site)
    p = constant_plan([(_core.EXIT_NAME, 0, 1), (_core.EXIT_NAME, 2, -1)], "made", [1, 2], "before")
    site.install([(E["NAME"], -1, "before")], [spec([(C["INT_EQ"], 0, 1)], p)])
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    assert namespace["found"] == ("hit", None, [1, 2])

    class Odd(dict):  # type: ignore[type-arg]
        def __setitem__(self, key: object, value: object) -> None:
            super().__setitem__(key, value)

    odd = Odd()
    exec(code, {}, odd)
    assert odd["found"] == ("miss", 1)


def test_class_bodies() -> None:
    source = """
def f():
    class K:
        x = 1
        if SITE:
            y = x
        else:
            y = 0
    return K
"""
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    f = namespace["f"]
    site = _core.Site(0, 0)
    body = inner_code(f.__code__, "K")
    _core.patch_constant(f.__code__, f.__code__.co_consts.index(body), splice(body, SITE=site))
    site.install([(E["NAME"], -1, "x")], [spec([(C["INT_EQ"], 0, 1)], constant_plan([(_core.EXIT_NAME, 0, 1)], "x", 5))])
    assert (f().x, f().y) == (5, 5)


# ---- the callback


def test_the_callback_sees_the_frame_and_can_fill_the_site() -> None:
    seen: list[Any] = []

    def translate(site: _core.Site, frame: _core.LiveFrame) -> bool:
        seen.append((frame.slots, frame.code is f.__code__, frame.globals is f.__globals__, frame.locals, frame.function is f))
        assert frame.builtins["len"] is len
        seen.append(frame)
        site.install([local(0)], [spec([is_int(0)], constant_plan([(_core.EXIT_LOCAL, 0, 0)], "translated"))])
        return True

    f, site = host("""
def f(a):
    if SITE:
        return ('hit', a)
    unbound = 1
    return ('miss', a)
""")
    site.callback = translate
    site.countdown = 3
    assert [f(1), f(2), f(3)] == [("miss", 1), ("miss", 2), ("hit", "translated")]
    assert seen[0] == ([3, _core.NULL], True, True, None, True)
    assert site.countdown == 2**63 - 1
    with pytest.raises(RuntimeError):
        assert seen[1].slots
    with pytest.raises(RuntimeError):
        assert seen[1].code


def test_misses_count_down_too() -> None:
    calls: list[int] = []
    f, site = host(CHOOSE)
    site.install([local(0)], [spec([is_int(0)])])
    site.callback = lambda s, frame: calls.append(s.misses)
    site.countdown = 2
    f(1)
    f("a")
    f(1)
    assert calls == []
    f("b")
    assert calls == [2]


def test_a_true_result_without_a_tree_is_a_miss() -> None:
    f, site = host(CHOOSE)
    site.callback = lambda s, frame: True
    site.countdown = 1
    assert f(1)[0] == "miss"


def test_errors_of_the_callback_are_kept() -> None:
    def fail(site: _core.Site, frame: _core.LiveFrame) -> bool:
        raise ValueError("what went wrong")

    f, site = host(CHOOSE)
    site.callback = fail
    site.countdown = 1
    assert f(1)[0] == "miss"
    assert site.errors == 1
    assert "ValueError: what went wrong" in site.last_error and "test_sites.py:" in site.last_error
    site.callback = lambda s, frame: Unconvertible()
    site.countdown = 1
    assert f(1)[0] == "miss"
    assert (site.errors, "no truth" in site.last_error) == (2, True)


class Unconvertible:
    def __bool__(self) -> bool:
        raise TypeError("no truth")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_interrupts_are_raised_at_the_users_line(kind: type[BaseException]) -> None:
    def interrupt(site: _core.Site, frame: _core.LiveFrame) -> bool:
        raise kind("now")

    f, site = host("""
def f(a):
    try:
        if SITE:
            return 1
    except BaseException as e:
        raise
    return 2
""")
    site.callback = interrupt
    site.countdown = 1
    with pytest.raises(kind, match="now") as info:
        f(1)
    entries = info.traceback
    assert [e.name for e in entries][-1] == "f"
    assert entries[-1].lineno + 1 == 4
    assert site.errors == 0
    assert f(1) == 2


@pytest.mark.parametrize("number,kind", [(signal.SIGALRM, TimeoutError), (signal.SIGINT, KeyboardInterrupt)])
def test_signals_wait_for_the_translator(number: int, kind: type[BaseException]) -> None:
    """Their handlers run at the user's line, once, and before the region that was just made has any effect."""

    def handler(signum: int, frame: Any) -> None:
        frames.append(frame.f_code.co_name)
        raise kind("from the handler")

    def translate(site: _core.Site, frame: _core.LiveFrame) -> bool:
        signal.raise_signal(number)
        for _ in range(1000):  # many places at which a handler could run
            pass
        site.install([], [spec([], constant_plan([(_core.EXIT_LOCAL, 0, 0)], "region"))])
        finished.append(1)
        return True

    frames: list[str] = []
    finished: list[int] = []
    f, site = host(CHOOSE)
    site.callback = translate
    site.countdown = 1
    old = signal.signal(number, handler)
    try:
        with pytest.raises(kind, match="from the handler") as info:
            f(1)
    finally:
        signal.signal(number, old)
    assert (frames, finished, site.errors) == (["f"], [1], 0)
    assert [e.name for e in info.traceback][-2:] == ["f", "handler"]
    assert f(1) == ("hit", "region", None)
    signal.raise_signal(signal.SIGCONT)
    assert threading.current_thread() is threading.main_thread()


def test_signals_in_other_threads_do_not_matter() -> None:
    f, site = host(CHOOSE)
    site.callback = lambda s, frame: time.sleep(0.01)
    site.countdown = 1
    thread = threading.Thread(target=f, args=(1,))
    thread.start()
    thread.join()
    assert site.errors == 0
    hit: list[int] = []
    old = signal.signal(signal.SIGALRM, lambda *args: hit.append(1))
    signal.raise_signal(signal.SIGALRM)
    signal.signal(signal.SIGALRM, old)
    assert hit == [1]


def test_exc_info_and_context_do_not_leak() -> None:
    import contextvars

    var = contextvars.ContextVar("var", default=0)
    seen: list[object] = []

    def translate(site: _core.Site, frame: _core.LiveFrame) -> bool:
        seen.append(sys.exc_info())
        var.set(1)
        try:
            raise ValueError
        except ValueError as e:
            seen.append(e.__context__)
        raise TypeError

    f, site = host("""
def f(a):
    try:
        1 / 0
    except ZeroDivisionError:
        if SITE:
            pass
        import sys
        return sys.exc_info()[0]
""")
    site.callback = translate
    site.countdown = 1
    assert f(1) is ZeroDivisionError
    assert seen == [(None, None, None), None]
    assert (var.get(), site.errors) == (0, 1)


def test_the_callback_is_not_entered_twice() -> None:
    depth: list[int] = []

    def translate(site: _core.Site, frame: _core.LiveFrame) -> bool:
        site.countdown = 1
        depth.append(1)
        assert f(0)[0] == "miss"
        assert f(0)[0] == "miss"
        return False

    f, site = host(CHOOSE)
    site.callback = translate
    site.countdown = 1
    f(1)
    assert (depth, site.errors, site.last_error) == ([1], 0, None)
    assert site.countdown == 1


def test_the_callback_has_room_at_the_recursion_limit() -> None:
    def deep(n: int) -> int:
        return 0 if n == 0 else deep(n - 1)

    def translate(site: _core.Site, frame: _core.LiveFrame) -> bool:
        deep(300)
        worked.append(1)
        site.countdown = 1
        return False

    worked: list[int] = []
    source = """
def f(n):
    if SITE:
        pass
    try:
        return f(n + 1)
    except RecursionError:
        return n
"""
    f, site = host(source)
    before = f(0)
    site.callback = translate
    site.countdown = 1
    assert abs(f(0) - before) < 5
    assert site.errors == 0, site.last_error
    assert len(worked) > 100
    assert f(0) > 100 and abs(f(0) - before) < 5


def test_the_callback_may_replace_itself_and_the_tree() -> None:
    def translate(site: _core.Site, frame: _core.LiveFrame) -> bool:
        site.callback = None
        site.install([], [])
        site.bind(g.__code__, 0)
        return True

    f, site = host(CHOOSE)
    g, _ = host(CHOOSE)
    site.install([local(0)], [spec([is_int(0)])])
    site.callback = translate
    del translate
    site.countdown = 1
    assert f("a")[0] == "miss"
    assert f(1)[0] == "miss"


# ---- observers


def test_tracing_stands_aside() -> None:
    f, site = host(CHOOSE)
    site.install([], [spec([])])
    assert f(1)[0] == "hit"
    lines: list[int] = []

    def trace(frame: Any, event: str, arg: object) -> Any:
        lines.append(frame.f_lineno)
        return trace

    sys.settrace(trace)
    try:
        traced = f(1)
    finally:
        sys.settrace(None)
    assert traced[0] == "miss" and 5 in lines
    assert site.observed == 1
    assert f(1)[0] == "hit"


def test_profiling_stands_aside() -> None:
    f, site = host(CHOOSE)
    site.install([], [spec([])])
    sys.setprofile(lambda *args: None)
    try:
        profiled = f(1)
    finally:
        sys.setprofile(None)
    assert profiled[0] == "miss"
    assert f(1)[0] == "hit"


def test_tracing_of_another_thread_does_not_matter() -> None:
    f, site = host(CHOOSE)
    site.install([], [spec([])])
    started, done = threading.Event(), threading.Event()

    def other() -> None:
        sys.settrace(lambda *args: None)
        started.set()
        done.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    started.wait(10)
    here = f(1)
    done.set()
    thread.join()
    assert here[0] == "hit"


needs_monitoring = pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in 3.12")


@needs_monitoring
@pytest.mark.parametrize("event", ["LINE", "INSTRUCTION", "CALL", "BRANCH", "JUMP"])
@pytest.mark.parametrize("where", ["global", "local"])
def test_monitoring_stands_aside(event: str, where: str) -> None:
    f, site = host(CHOOSE)
    site.install([], [spec([])])
    monitoring = sys.monitoring
    bit = getattr(monitoring.events, event)
    monitoring.use_tool_id(3, "test")
    try:
        if where == "global":
            monitoring.set_events(3, bit)
        else:
            monitoring.set_local_events(3, f.__code__, bit)
        watched = f(1)[0]
        monitoring.set_events(3, 0)
        monitoring.set_local_events(3, f.__code__, 0)
        assert watched == "miss"
        assert f(1)[0] == "hit"
        monitoring.set_events(3, monitoring.events.PY_START)
        assert f(1)[0] == "hit"
        monitoring.set_events(3, 0)
    finally:
        monitoring.free_tool_id(3)
    assert site.observed == 1


@needs_monitoring
def test_the_translator_is_not_traced() -> None:
    names: list[str] = []

    def translate(site: _core.Site, frame: _core.LiveFrame) -> bool:
        return helper()

    def helper() -> bool:
        return False

    f, site = host(CHOOSE)
    site.callback = translate
    site.countdown = 1
    monitoring = sys.monitoring
    monitoring.use_tool_id(3, "test")
    monitoring.register_callback(3, monitoring.events.PY_START, lambda code, offset: names.append(code.co_name))
    monitoring.set_events(3, monitoring.events.PY_START)
    try:
        f(1)
    finally:
        monitoring.set_events(3, 0)
        monitoring.free_tool_id(3)
    assert "f" in names and "helper" not in names and "translate" not in names
    assert (site.errors, site.countdown) == (0, 2**63 - 1)


# ---- destructors: `assert` keeps the parts of its expression alive, so each call stands before it


def test_a_destructor_sees_the_written_frame() -> None:
    seen: list[Any] = []

    class Tattler:
        def __del__(self) -> None:
            frame = inspect.currentframe()
            assert frame is not None and frame.f_back is not None
            seen.append(dict(frame.f_back.f_locals))

    f, site = host(CHOOSE)
    site.install([], [spec([], constant_plan([(_core.EXIT_LOCAL, 0, 0), (_core.EXIT_LOCAL, 1, 1)], "new a", "new b"))])
    result = f(Tattler(), Tattler())
    assert result == ("hit", "new a", "new b")
    assert seen == [{"a": "new a", "b": "new b"}] * 2


def test_a_destructor_may_meet_the_site_again() -> None:
    source = """
def f(a):
    if SITE:
        return [-SITE, a, [0, ~SITE] if a == 'outer' or a == 'inner' else None]
    return a
"""
    f, site = host(source)
    inner: list[Any] = []

    class Again:
        def __del__(self) -> None:
            inner.append(f(7))
            inner.append(f("plain"))

    deep = [(_core.EXIT_LOCAL, 0, 0)]
    first = code_units(f, site)
    site.bind(f.__code__, first)
    site.install(
        [local(0)],
        [
            spec([(C["INT_EQ"], 0, 7)], constant_plan(deep, "seven"), 2),
            spec([(C["TYPE_IS"], 0, Again)], constant_plan(deep, "object"), 1),
        ],
    )
    result = f(Again())
    assert result == [1, "object", None]
    assert inner == [[2, "seven", None], "plain"]


def code_units(f: Any, site: _core.Site) -> int:
    """The code unit at which the function's first truth test of the site is: found by trying."""
    for instr in range(len(f.__code__.co_code) // 2):
        site.bind(f.__code__, instr)
        site.install([], [spec([])])
        try:
            hit = f("probe") != "probe"
        except RuntimeError:
            hit = True
        if hit:
            return instr
    raise AssertionError("the site is nowhere tested")


def test_deep_values_survive_reentry_through_destructors() -> None:
    f, site = host("def f(a):\n    if SITE:\n        return [None, ~SITE]\n    return a\n")
    results: list[Any] = []

    class Again:
        def __init__(self, n: int) -> None:
            self.n = n

        def __del__(self) -> None:
            if self.n:
                results.append(f(Again(self.n - 1)))

    p = plan(
        [("O_CONST", 0, 0), ("O_EXPR", 1, 1)],
        constants=(None,),
        nobjects=2,
        exit=[(_core.EXIT_LOCAL, 0, 0), (_core.EXIT_STACK, 0, 1), (_core.EXIT_STACK, 1, 1)],
    )
    site.install([local(0), (E["ATTR"], 0, "n")], [spec([(C["TYPE_IS"], 0, Again), (C["NOT_NULL"], 1, None)], p)])
    result = f(Again(4))
    assert result == [4, 4]
    assert results == [[0, 0], [1, 1], [2, 2], [3, 3]]


def test_a_destructor_may_replace_the_tree() -> None:
    f, site = host(CHOOSE)

    class Replace:
        def __del__(self) -> None:
            site.install([], [])
            gc.collect()

    site.install([local(0)], [spec([(C["TYPE_IS"], 0, Replace)], constant_plan([(_core.EXIT_LOCAL, 0, 0)], "new"))])
    result = f(Replace())
    assert result == ("hit", "new", None)
    result = f(Replace())
    assert result[0] == "miss"


def test_a_destructor_may_start_a_tracer_that_meets_the_site() -> None:
    f, site = host("def f(a):\n    if SITE:\n        return -SITE\n    return None\n")
    inner: list[Any] = []

    def trace(frame: Any, event: str, arg: object) -> Any:
        sys.settrace(None)
        inner.append(f(7))
        return None

    class Start:
        def __del__(self) -> None:
            sys.settrace(trace)
            frame = inspect.currentframe()
            assert frame is not None and frame.f_back is not None
            frame.f_back.f_trace = trace

    write = [(_core.EXIT_LOCAL, 0, 0)]
    site.install(
        [local(0)],
        [spec([(C["INT_EQ"], 0, 7)], constant_plan(write, 0), 2), spec([(C["TYPE_IS"], 0, Start)], constant_plan(write, 0), 1)],
    )
    try:
        result = f(Start())
    finally:
        sys.settrace(None)
    assert result == 1
    assert inner == [2]


# ---- frames of all kinds


def test_recursion_through_a_site() -> None:
    f, site = host("""
def f(n, out):
    if n == 0:
        return out
    f(n - 1, out)
    if SITE:
        out.append((n, -SITE))
    return out
""")
    site.install([local(0)], [spec([(C["INT_EQ"], 0, n)], exit=n) for n in range(1, 50)])
    assert f(49, []) == [(n, n) for n in range(1, 50)]


def test_generators_and_coroutines() -> None:
    f, site = host(
        """
def f(n):
    for i in range(n):
        if SITE:
            yield ('hit', i)
        else:
            yield ('miss', i)
""",
        depth=1,
    )
    where = slot(f, "i")
    site.install(
        [local(where), (E["STACK"], -1, 0)],
        [spec([(C["INT_EQ"], 0, 1), (C["TYPE_IS"], 1, type(iter(range(1))))], constant_plan([(_core.EXIT_LOCAL, where, 0)], "one"))],
    )
    a, b = f(3), f(3)
    assert [next(a), next(b), next(b), next(a), next(a), next(b)] == [
        ("miss", 0),
        ("miss", 0),
        ("hit", "one"),
        ("hit", "one"),
        ("miss", 2),
        ("miss", 2),
    ]


def test_threads() -> None:
    source = """
def f(n):
    total = 0
    for i in range(n):
        k = i & 7
        if SITE:
            total += -SITE == k
        else:
            total += 1000000
    return total
"""
    f, site = host(source, depth=1)
    where = slot(f, "k")
    site.install([local(where)], [spec([(C["INT_EQ"], 0, k)], exit=k) for k in range(8)])
    results: list[int] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=lambda: results.append(f(20000))) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert results == [20000] * 4


COLLECT = """
def f(n):
    out = []
    for i in range(n):
        if SITE:
            out.append(i)
    return out
"""


def test_trees_are_replaced_while_threads_run() -> None:
    """Each tree has its own constants and destructors; whatever tree a visit sees, the answer is one of its answers."""
    f, site = host(
        "def f(n):\n    out = []\n    for i in range(n):\n        if SITE:\n            out.append(i)\n    return out\n", depth=1
    )
    where = slot(f, "i")
    deaths: list[int] = []

    class Mortal:
        def __init__(self, n: int) -> None:
            self.n = n

        def __del__(self) -> None:
            deaths.append(self.n)

    def installer() -> None:
        for n in range(300):
            p = constant_plan([(_core.EXIT_LOCAL, where, 0)], Mortal(n))
            site.install(
                [local(where), (E["CONST"], -1, Mortal(-n))], [spec([is_int(0), (C["TYPE_IS"], 1, Mortal)], p) for _ in range(n % 5)]
            )
            if n % 50 == 0:
                gc.collect()
        site.install([], [])

    results: list[list[Any]] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=lambda: results.append(f(10000))) for _ in range(3)]
        threads.append(threading.Thread(target=installer))
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert all(isinstance(v, Mortal) for values in results for v in values)
    results.clear()
    gc.collect()
    assert sorted(deaths) == sorted([*range(300), *(-n for n in range(300))])


# ---- leaving the process, leaks


def test_marshal_pickle_and_copy_write_empty_bytes() -> None:
    import copy

    f, site = host(CHOOSE)
    site.install([], [spec([])])
    loaded = marshal.loads(marshal.dumps(f.__code__))
    assert FunctionType(loaded, {})(1, 2) == ("miss", 1, 2)
    assert pickle.loads(pickle.dumps(site)) == b"" == copy.deepcopy(site)
    assert bytes(memoryview(site)) == b""
    with pytest.raises((BufferError, TypeError)):
        memoryview(site)[0] = 1
    assert hash(f.__code__) == hash(f.__code__)
    assert f.__code__ == f.__code__.replace()


def test_cloudpickle_by_value() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    f, site = host(CHOOSE)
    site.install([], [spec([])])
    assert f(1)[0] == "hit"
    assert pickle.loads(cloudpickle.dumps(f))(1) == ("miss", 1, None)


class Payload:
    pass


def test_reference_counts_are_kept() -> None:
    f, site = host("def f(a, b):\n    if SITE:\n        return a\n    return b\n")
    value, argument = Payload(), Payload()
    p = plan(
        [("O_CONST", 0, 0), ("O_EXPR", 1, 0)],
        constants=(value,),
        nobjects=2,
        exit=[(_core.EXIT_LOCAL, 0, 0), (_core.EXIT_LOCAL, 1, 1)],
    )
    site.install([local(0)], [spec([(C["TYPE_IS"], 0, Payload)], p)])
    f(argument, None)
    before = sys.getrefcount(value), sys.getrefcount(argument)
    for _ in range(100):
        assert f(argument, None) is value
        assert f(1, argument) is argument
    assert (sys.getrefcount(value), sys.getrefcount(argument)) == before
    refs = weakref.ref(value), weakref.ref(argument)
    site.install([], [])
    del value, argument, p
    assert [r() for r in refs] == [None, None]


def test_deep_values_do_not_leak() -> None:
    f, site = host("def f(a):\n    if SITE:\n        return [None, None, ~SITE]\n    return a\n")
    value = Payload()
    entries = [(_core.EXIT_STACK, i, 0) for i in range(3)]
    site.install([], [spec([], constant_plan(entries, value))])
    f(1)
    before = sys.getrefcount(value)
    for _ in range(100):
        assert f(1) == [value] * 3
    assert sys.getrefcount(value) == before


def test_a_hit_whose_deep_values_nobody_fetches_is_released() -> None:
    f, site = host("def f(a):\n    if SITE:\n        return 'not fetched'\n    return a\n")
    value = Payload()
    ref = weakref.ref(value)
    site.install([], [spec([], constant_plan([(_core.EXIT_STACK, 0, 0)], value))])
    for _ in range(100):
        f(1)
    assert sys.getrefcount(value) < 120
    del value, f
    del site
    gc.collect()
    assert ref() is None


def test_cycles_through_callback_and_constants_are_collected() -> None:
    f, site = host(CHOOSE)
    marker = Payload()
    marker.site = site  # type: ignore[attr-defined]
    site.callback = lambda s, frame, keep=marker: None
    site.install([(E["CONST"], -1, marker)], [spec([(C["IS"], 0, marker)], constant_plan([(_core.EXIT_LOCAL, 0, 0)], "x"))])
    assert f(1)[0] == "hit"
    refs = weakref.ref(marker), weakref.ref(site)
    del f, site, marker
    gc.collect()  # the function and its globals, with them the code, which the collector cannot look into
    gc.collect()
    assert [r() for r in refs] == [None, None]


# ---- malformed input


def test_malformed_specialisations_are_refused() -> None:
    f, site = host(CHOOSE)
    good = plan()
    for bad in (
        [([], good, 0)],
        [([], object(), 0, False)],
        [([], good, "0", False)],
        [([], good, 0, 0)],
        [[[], good, 0, False]],
        [None],
        None,
        [(None, good, 0, False)],
    ):
        with pytest.raises(TypeError):
            site.install([], bad)  # type: ignore[arg-type]
    for exit in ([(_core.EXIT_LOCAL, 99, -1)], [(_core.EXIT_CELL, 99, -1)], [(_core.EXIT_STACK, 1, -1)]):
        with pytest.raises(ValueError):
            site.install([], [spec([], plan(exit=exit))])
    with pytest.raises(ValueError):
        site.install([], [spec([], good, -2)])
    with pytest.raises((ValueError, OverflowError)):
        site.install([], [spec([], good, 2**40)])
    with pytest.raises(ValueError):
        site.install([local(50)], [spec([])])
    with pytest.raises(ValueError):
        site.install([(E["STACK"], -1, 0)], [spec([])])
    site.install([], [])
    assert f(1)[0] == "miss"


def test_malformed_bindings_are_refused() -> None:
    f, site = host(CHOOSE)
    with pytest.raises(TypeError):
        site.bind(f, 0)
    for instr in (-1, 10**6):
        with pytest.raises(ValueError):
            site.bind(f.__code__, instr)
    with pytest.raises(ValueError):
        _core.Site(0, 1000).bind(f.__code__, 0)
    with pytest.raises(ValueError):
        _core.Site(0, -1)
    unbound = _core.Site(0, 0)
    unbound.install([local(50)], [spec([])])
    with pytest.raises(ValueError):
        unbound.bind(f.__code__, 0)
    with pytest.raises(TypeError):
        site.callback = 5  # type: ignore[assignment]
    with pytest.raises(TypeError):
        _core.LiveFrame()


# ---- code extra and constants


def test_code_extra() -> None:
    f, _ = host(CHOOSE)
    code = f.__code__.replace(co_name="extra")
    assert _core.code_extra_get(code) is None
    value = Payload()
    ref = weakref.ref(value)
    _core.code_extra_set(code, value)
    assert _core.code_extra_get(code) is value
    _core.code_extra_set(code, None)
    assert _core.code_extra_get(code) is None
    _core.code_extra_set(code, value)
    del value
    assert ref() is not None
    del code
    assert ref() is None
    with pytest.raises(TypeError):
        _core.code_extra_get(f)


def test_patch_constant() -> None:
    def outer(n: int) -> Any:
        def inner() -> int:
            return n

        return inner

    def other(n: int) -> Any:
        def inner() -> int:
            return n + 1

        return inner

    ours, theirs = inner_code(outer.__code__, "inner"), inner_code(other.__code__, "inner")
    at = outer.__code__.co_consts.index(ours)
    _core.patch_constant(outer.__code__, at, theirs)
    assert outer(1)() == 2
    _core.patch_constant(outer.__code__, at, ours)
    assert outer(1)() == 1
    with pytest.raises(IndexError):
        _core.patch_constant(outer.__code__, 99, ours)
    with pytest.raises(TypeError):
        _core.patch_constant(outer.__code__, at, 5)
    with pytest.raises(ValueError):
        _core.patch_constant(outer.__code__, at, CHOOSE_CODE)


CHOOSE_CODE = compile("1", "<s>", "eval")
