"""Which modules `tierup run` takes for the user's own."""

from __future__ import annotations

import json
import os
import sys

import pytest

import tierup.cli.main
from tierup.runtime.selection import Selection, may_meet_arrays


@pytest.mark.parametrize(
    ("name", "file", "selected"),
    [
        ("app", "/home/me/app.py", True),
        ("__main__", "/home/me/script.py", True),
        ("json", json.__file__, False),
        ("os", os.__file__, False),
        ("numpy.linalg", "/venv/lib/python3.11/site-packages/numpy/linalg/__init__.py", False),
        ("apt", "/usr/lib/python3/dist-packages/apt/__init__.py", False),
        ("tierup.cli.main", tierup.cli.main.__file__, False),
        ("builtin", None, False),
        ("frozen", "<frozen zipimport>", False),
        ("generated", "<string>", False),
    ],
)
def test_without_patterns(name, file, selected):
    assert Selection().selects(name, file) is selected


@pytest.mark.parametrize(
    ("pattern", "name", "selected"),
    [
        ("scipy", "scipy", True),
        ("scipy", "scipy.optimize._zeros", True),
        ("scipy", "scipyx", False),
        ("scipy.opt*", "scipy.optimize", True),
        ("*", "anything", True),
        ("*", "tierup.cli.main", False),
        ("numpy", "scipy", False),
    ],
)
def test_module_pattern(pattern, name, selected):
    assert Selection([pattern]).selects(name, f"/venv/lib/site-packages/{name}.py") is selected


def test_path_pattern():
    file = "/venv/lib/site-packages/pkg/mod.py"
    assert Selection(["/venv/*/pkg/*"]).selects("pkg.mod", file)
    assert not Selection(["/other/*"]).selects("pkg.mod", file)


def test_linked_site_packages(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    (store / "lib.py").touch()
    (tmp_path / "site-packages").symlink_to(store)
    assert not Selection().selects("lib", str(tmp_path / "site-packages" / "lib.py"))


def test_interpreter_prefix_is_not_the_users():
    assert not Selection().selects("x", os.path.join(sys.base_prefix, "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "x.py"))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import json, os.path\nfrom collections import abc", False),
        ("numpy = 3\nprint(numpy.real)", False),
        ("import numpy", True),
        ("import scipy.linalg as l", True),
        ("from pandas import DataFrame", True),
        ("import helper", True),
        ("from . import helper", True),
        ("def f():\n    class C:\n        def g(self):\n            import numpy.linalg", True),
        ("x = [" + ", ".join(f"name{i}" for i in range(300)) + "]\nimport json", False),
        ("x = [" + ", ".join(f"name{i}" for i in range(300)) + "]\nimport numpy", True),
    ],
)
def test_programs_without_array_libraries_need_no_engine(source, expected, monkeypatch):
    monkeypatch.delitem(sys.modules, "numpy", raising=False)
    assert may_meet_arrays(compile(source, "x.py", "exec")) is expected


def test_a_loaded_library_may_pass_arrays_to_any_module(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", sys)
    assert may_meet_arrays(compile("def f(a): return a + a", "x.py", "exec"))
