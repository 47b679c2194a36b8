"""Gray-Scott reaction-diffusion on a periodic grid: two chemicals diffuse and react, and patterns grow out of a small disturbance.

Written as one writes it with NumPy; nothing in here knows of tierup.

    python examples/gray_scott.py [size] [steps]
"""

import hashlib
import sys
import time
from dataclasses import dataclass

import numpy as np


@dataclass
class Parameters:
    """Rates of the model; these give growing spots."""

    feed: float = 0.0367
    kill: float = 0.0649
    spread_u: float = 0.16
    spread_v: float = 0.08


def initial(size, seed=7):
    """The rest state with a disturbed square in the middle."""
    rng = np.random.default_rng(seed)
    u = np.ones((size + 2, size + 2))
    v = np.zeros((size + 2, size + 2))
    low, high = size // 2 - size // 10, size // 2 + size // 10
    u[low:high, low:high] = 0.5 + 0.05 * rng.standard_normal((high - low, high - low))
    v[low:high, low:high] = 0.25 + 0.05 * rng.standard_normal((high - low, high - low))
    return u, v


def wrap(a):
    """Copies the rim, so that the grid is a torus."""
    a[0, :] = a[-2, :]
    a[-1, :] = a[1, :]
    a[:, 0] = a[:, -2]
    a[:, -1] = a[:, 1]


def laplacian(a):
    """The five-point stencil inside the rim."""
    return a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4.0 * a[1:-1, 1:-1]


def step(u, v, p):
    """One explicit step in place."""
    inner_u, inner_v = u[1:-1, 1:-1], v[1:-1, 1:-1]
    reaction = inner_u * inner_v * inner_v
    change_u = p.spread_u * laplacian(u) - reaction + p.feed * (1.0 - inner_u)
    change_v = p.spread_v * laplacian(v) + reaction - (p.feed + p.kill) * inner_v
    inner_u += change_u
    inner_v += change_v
    wrap(u)
    wrap(v)


def simulate(size, steps, p):
    """The state after some steps, and the total of v at ten moments."""
    u, v = initial(size)
    history = []
    for i in range(steps):
        step(u, v, p)
        if i % max(1, steps // 10) == 0:
            history.append(float(v[1:-1, 1:-1].sum()))
    return u, v, history


def main():
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 600
    start = time.perf_counter()
    u, v, history = simulate(size, steps, Parameters())
    seconds = time.perf_counter() - start
    print("total of v:", " ".join(f"{total:.4f}" for total in history))
    print("digest:", hashlib.sha256(u.tobytes() + v.tobytes()).hexdigest()[:32])
    print(f"seconds: {seconds:.3f}")


if __name__ == "__main__":
    main()
