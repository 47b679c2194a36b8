"""`tierup doctor`, on this machine as it is and with things broken."""

from __future__ import annotations

import json

import pytest


def checks(done):
    return {entry["check"]: entry for entry in json.loads(done.stdout)["checks"]}


def test_all_is_well_here(runner):
    done = runner.tierup("doctor", TIERUP_CACHE_DIR=str(runner.folder / "cache"))
    assert done.returncode == 0, done.stdout.decode()
    assert done.stderr == b""
    lines = done.stdout.decode().splitlines()
    assert lines[-1] == "tierup works on this machine"
    assert {line.split()[0] for line in lines[:-1]} == {"ok"}


@pytest.mark.parametrize(
    ("variables", "check", "verdict", "text"),
    [
        ({"TIERUP_CACHE_DIR": "/proc/none"}, "cache", "warning", "/proc/none"),
        ({"TIERUP_CACHE_DIR": ""}, "cache", "warning", "off"),
        ({"TIERUP": "0"}, "environment", "warning", "TIERUP=0"),
        ({"TIERUP": "0"}, "trial", "warning", "off"),
        ({"TIERUP_THREADS": "3"}, "environment", "warning", "TIERUP_THREADS"),
    ],
)
def test_warnings(runner, variables, check, verdict, text):
    done = runner.tierup("doctor", "--json", **variables)
    found = checks(done)[check]
    assert done.returncode == 0
    assert found["verdict"] == verdict and text in found["finding"]


def test_wrong_variable_fails_its_check_and_no_other(runner):
    done = runner.tierup("doctor", "--json", TIERUP_NUM_THREADS="many")
    assert done.returncode == 1
    assert checks(done)["environment"]["verdict"] == "failed"
    assert "TIERUP_NUM_THREADS" in checks(done)["environment"]["finding"]
    assert checks(done)["llvm"]["verdict"] == "ok"


def test_missing_compiler_is_found(runner):
    (runner.folder / "llvmlite.py").write_text("raise ImportError('llvmlite is broken here')\n")
    done = runner.tierup("doctor", "--json")
    assert done.returncode == 1
    assert "llvmlite is broken here" in checks(done)["llvm"]["finding"]
    assert checks(done)["trial"]["verdict"] == "failed"


def test_unfit_cache_folder(runner):
    folder = runner.folder / "cache"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    found = checks(runner.tierup("doctor", "--json", TIERUP_CACHE_DIR=str(folder)))["cache"]
    assert found["verdict"] == "warning" and "others may write" in found["finding"]
