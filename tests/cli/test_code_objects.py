"""Programs that handle their own code objects run as plain under `tierup run`: pickling by value, marshal, replace, new functions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = '''
import marshal
import pickle
import types

import cloudpickle
import joblib
import numpy as np


def smooth(x, n, k=0.5):
    """doc"""
    for _ in range(n):
        x = x * k + np.roll(x, 1) * (1 - k)
        x[1:] = x[:-1] * 2 + 1
    return x


def shifted(offset):
    def inner(x):
        total = np.zeros(3)
        for i in range(5):
            total = total + x * i + offset
        return total

    return inner


x = np.arange(6.0)


def show(name, fn, *args):
    for _ in range(8):
        out = fn(*args)
    print(name, out.tobytes().hex()[:48], fn.__name__, fn.__doc__, fn.__defaults__)


show("own", smooth, x.copy(), 3)
show("cloudpickle", pickle.loads(cloudpickle.dumps(smooth)), x.copy(), 3)
show("closure", pickle.loads(cloudpickle.dumps(shifted(2.0))), np.ones(3))
show("new function", types.FunctionType(smooth.__code__, globals(), "fresh", (0.25,)), x.copy(), 3)
show("replace", types.FunctionType(smooth.__code__.replace(co_name="renamed"), globals(), None, (0.5,)), x.copy(), 3)
show("marshal", types.FunctionType(marshal.loads(marshal.dumps(smooth.__code__)), globals(), None, (0.5,)), x.copy(), 3)
print(pickle.loads(pickle.dumps(smooth)) is smooth, hash(smooth.__code__) == hash(smooth.__code__))
print(joblib.hash(x), callable(joblib.delayed(smooth)), [float(v[0]) for v in joblib.Parallel(1)([joblib.delayed(smooth)(x.copy(), 2)])])
print(smooth.__code__.co_varnames, smooth.__code__.co_argcount, smooth.__code__.co_firstlineno, smooth.__code__.co_freevars)
'''


def test_same_as_plain(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    plain = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    tiered = subprocess.run([sys.executable, "-m", "tierup", "run", "--stats", str(script)], capture_output=True, text=True, check=True)
    assert tiered.stdout == plain.stdout
    assert "specialisations" in tiered.stderr
