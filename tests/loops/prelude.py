"""What every generated loop program begins with: functions that loops are followed into, and some that they are not."""

PRELUDE = """\
import contextlib, math, signal, sys
import numpy as np

LIMIT = 7
GAIN = 1.25
INF = float("inf")
NAN = float("nan")
HALF = np.float32(0.5)
COUNT = 0
LOG = []
TABLE = np.linspace(-1.0, 2.0, 5)
WAIT = np.zeros(1)
WEIGHTS = (2, 0.5, -3)

class Box:
    def __init__(self, gain):
        self.gain = gain

BOX = Box(1.5)

class Scope:
    def __init__(self, name):
        self.name = name
    def __enter__(self):
        LOG.append("+" + self.name)
        return self
    def __exit__(self, kind, value, trace):
        LOG.append("-" + self.name)
        return self.name == "quiet" and kind is IndexError

def here():
    frame = sys._getframe(1)
    return frame.f_code.co_name, frame.f_lineno, dict(frame.f_locals)

def clamp(v, low, high):
    if v < low:
        return low
    if v > high:
        return high
    return v

def sign(v):
    return -1 if v < 0 else 1 if v > 0 else 0

def mix(v, w):
    return v * 2 - w

def gcd(v, w):
    while w:
        v, w = w, v % w
    return v

def power(v, count):
    out = 1
    for _ in range(count):
        out = out * v
    return out

def factorial(v):
    return 1 if v <= 1 else v * factorial(v - 1)

def first_above(v, limit):
    for place in range(len(v)):
        if v[place] > limit:
            return place
    return -1

def row_sum(v, i):
    total = 0.0
    for place in range(v.shape[1]):
        total += v[i, place]
    return total

def set_at(v, i, value):
    v[i] = value

def bump(v, i):
    v[i] += 1
    return v[i + 1]

def noisy(v):
    LOG.append(len(LOG))
    return v

def ring(number, frame):
    WAIT[0] = 1

def alarm_soon():
    WAIT[0] = not hasattr(signal, "setitimer")
    if not WAIT[0]:
        signal.signal(signal.SIGVTALRM, ring)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.002)

def counter(start):
    def step(by=1):
        nonlocal start
        start += by
        return start
    return step

STEP = counter(3)
"""
