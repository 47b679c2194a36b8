"""What every generated program begins with: helpers that capture can inline, and some that it must break at."""

PRELUDE = """\
import contextlib, functools, math, sys
import numpy as np

SCALE = 1.5
COUNT = 0
TABLE = np.linspace(0.25, 2.0, 4)
LOG = []
MODES = {"half": 0.5, "twice": 2}

class Box:
    limit = 3
    def __init__(self, gain, data=None):
        self.gain = gain
        self.data = data
    def scaled(self, v, by=1):
        return v * self.gain * by
    @property
    def double(self):
        return self.gain * 2

class Twin:
    limit = 5
    def __init__(self, gain, data=None):
        self.gain = gain
        self.data = data
    def scaled(self, v, by=1):
        return v + self.gain * by

class Heir(Box):
    def scaled(self, v, by=1):
        return super().scaled(v, by) - 1

class Slim:
    __slots__ = ("gain", "data")

class Scope:
    def __init__(self, name):
        self.name = name
    def __enter__(self):
        LOG.append("+" + self.name)
        return self
    def __exit__(self, kind, value, trace):
        LOG.append("-" + self.name)
        return self.name == "quiet" and kind is ValueError

class Opaque:
    def __call__(self, v):
        return v if len(LOG) % 2 else v

def here():
    frame = sys._getframe(1)
    return frame.f_code.co_name, frame.f_lineno, sorted(frame.f_locals)

def affine(v, a=2, b=0.5, *rest, bias=0):
    return v * a + b + bias + len(rest)

def smooth(v):
    w = v.copy()
    w[1:-1] = (v[:-2] + v[2:]) / 2
    return w

def branchy(v, k):
    if k > 2:
        return v - k
    return v * k

def rows(v, stop=3):
    for i in range(min(len(v), stop)):
        yield v[i] * (i + 1)

def counter(start):
    total = start
    def bump(by=1):
        nonlocal total
        total += by
        return total
    return bump

def remember(v, seen=[]):
    seen.append(len(seen))
    return v + len(seen)

TOOLS = [lambda v: v + 1, lambda v: v * 2, affine]
BUMP = counter(3)
OPAQUE = Opaque()
HALF = functools.partial(np.multiply, 0.5)
BOX = Box(1.25)
"""
