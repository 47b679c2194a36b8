"""A tracer sees the same lines in spliced code as in the original, wherever sites and landings stand."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

PROGRAM = '''
import sys
import numpy
from tierup.engine import loader

SOURCE = """
def g(v):
    return v + 1
g(2)
z = 3
y = (g(1) if z else g(2)) + 1
w = g(1) + g(2) * g(3)
class A:
    def __add__(self, other):
        return 1
    def __getitem__(self, key):
        return key
a = A()
b = a + 1 + (a + 2) + a[1] + a[2]
for i in range(2):
    z = g(i) + g(i); w = g(w)
def h(v):
    for j in range(2):
        yield v * j
    k = (yield) or (yield 3)
u = list(h(3))
"""


def lines(code):
    seen = []

    def tracer(frame, event, arg):
        if frame.f_code.co_filename == "x":
            seen.append((event, frame.f_lineno, frame.f_code.co_name))
        return tracer

    sys.settrace(tracer)
    try:
        exec(code, {})
    finally:
        sys.settrace(None)
    return seen


plain = lines(compile(SOURCE, "x", "exec"))
spliced = lines(loader.instrument(compile(SOURCE, "x", "exec")))
assert plain == spliced, [(i, a, b) for i, (a, b) in enumerate(zip(plain, spliced)) if a != b][:3]
print(len(plain))
'''


@pytest.mark.parametrize("mode", ["miss", "hit", "exit:2"])
def test_lines_are_seen_once(mode: str) -> None:
    env = {**os.environ, "TIERUP_STRESS": mode}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM)], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 30
