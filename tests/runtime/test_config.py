"""Options and their environment variables."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tierup.runtime import config
from tierup.runtime.config import ConfigError, Options


def test_defaults_do_not_depend_on_the_environment():
    assert Options.from_env({}) == Options()
    assert Options().enabled and not Options().fast


@pytest.mark.parametrize(
    ("variable", "text", "option", "value"),
    [
        ("TIERUP", "0", "enabled", False),
        ("TIERUP", "off", "enabled", False),
        ("TIERUP", "1", "enabled", True),
        ("TIERUP", "", "enabled", True),
        ("TIERUP_MIN_GRAPH_SIZE", "7", "min_graph_size", 7),
        ("TIERUP_NUM_THREADS", "3", "threads", 3),
        ("TIERUP_LOG", "graph, asm", "log", frozenset({"graph", "asm"})),
        ("TIERUP_LOG", "all", "log", frozenset(config.STAGES)),
        ("TIERUP_LOG", "", "log", frozenset()),
        ("TIERUP_STRICT", "yes", "strict", True),
        ("TIERUP_STRICT", "", "strict", False),
        ("TIERUP_PERF_MAP", "1", "perf_map", True),
        ("TIERUP_CACHE_DIR", "/tmp/x", "cache_dir", "/tmp/x"),
        ("TIERUP_CACHE_DIR", "", "cache_dir", ""),
        ("TIERUP_STATS_DIR", "here", "stats_dir", os.path.abspath("here")),
        ("TIERUP_STATS_DIR", "", "stats_dir", None),
        ("TIERUP_COMPILE_BUDGET", "2.5", "compile_budget", 2.5),
    ],
)
def test_variable(variable, text, option, value):
    assert getattr(Options.from_env({variable: text}), option) == value


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("TIERUP", "2"),
        ("TIERUP_MIN_GRAPH_SIZE", "-1"),
        ("TIERUP_MIN_GRAPH_SIZE", ""),
        ("TIERUP_NUM_THREADS", "0"),
        ("TIERUP_NUM_THREADS", "1_0"),
        ("TIERUP_NUM_THREADS", "٣"),
        ("TIERUP_NUM_THREADS", "1.0"),
        ("TIERUP_NUM_THREADS", "99999"),
        ("TIERUP_LOG", "graphs"),
        ("TIERUP_STRICT", "hard"),
        ("TIERUP_COMPILE_BUDGET", "-1"),
        ("TIERUP_COMPILE_BUDGET", "inf"),
        ("TIERUP_COMPILE_BUDGET", "nan"),
        ("TIERUP_COMPILE_BUDGET", "soon"),
    ],
)
def test_bad_value_names_the_variable_and_what_is_allowed(variable, text):
    with pytest.raises(ConfigError) as caught:
        Options.from_env({variable: text})
    message = str(caught.value)
    assert message.startswith(f"{variable} must be ") and message.endswith(f"not {text!r}") and "\n" not in message


@pytest.mark.parametrize(
    "changes",
    [{"fast": 1}, {"threads": 0}, {"threads": True}, {"threads": "2"}, {"min_graph_size": -1}, {"min_graph_size": 1.0}, {"speed": 3}],
)
def test_bad_option(changes):
    with pytest.raises(ConfigError):
        Options().replace(**changes)


def test_replace_keeps_the_rest():
    options = Options(threads=4).replace(fast=True)
    assert (options.threads, options.fast) == (4, True)


def test_options_are_values():
    one, other = Options(threads=2), Options(threads=2)
    assert one == other and hash(one) == hash(other) and one != Options()
    assert repr(one) == "Options(threads=2)"
    with pytest.raises(AttributeError):
        one.threads = 3
    with pytest.raises(AttributeError):
        del one.threads


def test_current_is_read_once_and_can_be_set(monkeypatch):
    before = config.current()
    try:
        config.set_current(None)
        monkeypatch.setenv("TIERUP_MIN_GRAPH_SIZE", "9")
        assert config.current().min_graph_size == 9
        monkeypatch.setenv("TIERUP_MIN_GRAPH_SIZE", "10")
        assert config.current().min_graph_size == 9
    finally:
        config.set_current(before)


def test_importing_tierup_imports_nothing_slow():
    code = (
        "import sys; before = set(sys.modules); import tierup; import tierup.runtime.stats, tierup.runtime.events, tierup.cli.main\n"
        "print(sorted(m for m in set(sys.modules) - before if not m.startswith('tierup')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['__future__', 'atexit']\n"
