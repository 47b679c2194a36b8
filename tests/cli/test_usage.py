"""The command line itself: help, version, and one clear line for each mistake."""

from __future__ import annotations

import pytest

import tierup

MISTAKES = {
    "no such command": ["frobnicate"],
    "no program": ["run"],
    "no program after options": ["run", "--fast"],
    "no such file": ["run", "missing.py"],
    "unknown option": ["run", "--frobnicate", "x.py"],
    "unknown short option": ["run", "-x", "x.py"],
    "value missing": ["run", "--threads"],
    "module missing": ["run", "-m"],
    "value not wanted": ["run", "--fast=1", "x.py"],
    "bad number": ["run", "--threads", "many", "-c", "pass"],
    "number too small": ["run", "--threads", "0", "-c", "pass"],
    "bad stage": ["run", "--log", "capture,nonsense", "-c", "pass"],
    "stats without directory": ["stats"],
    "stats of no directory": ["stats", "missing"],
    "stats of two": ["stats", "a", "b"],
    "stats with a bad limit": ["stats", ".", "--limit", "few"],
    "doctor with an operand": ["doctor", "x"],
    "explain nothing": ["explain"],
    "explain unknown option": ["explain", "--frobnicate"],
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_one_line_and_exit_code_2(runner, name):
    done = runner.tierup(*MISTAKES[name])
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.startswith(b"tierup") and done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TIERUP", "maybe"),
        ("TIERUP_NUM_THREADS", "-1"),
        ("TIERUP_NUM_THREADS", "1e3"),
        ("TIERUP_MIN_GRAPH_SIZE", "few"),
        ("TIERUP_LOG", "loud"),
        ("TIERUP_STRICT", "2"),
        ("TIERUP_COMPILE_BUDGET", "nan"),
    ],
)
def test_bad_variable_is_named(runner, name, value):
    done = runner.tierup("run", "-c", "print('never')", **{name: value})
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    assert name.encode() in done.stderr and value.encode() in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["explain", "-h"], ["stats", "--help"], ["doctor", "--help"]])
def test_help(runner, words):
    done = runner.tierup(*words)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"usage: tierup")


def test_version(runner):
    assert runner.tierup("--version").stdout.decode() == f"tierup {tierup.__version__}\n"


def test_nothing_said_is_usage(runner):
    done = runner.tierup()
    assert done.returncode == 2
    assert b"usage" in done.stdout
