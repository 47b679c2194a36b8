"""Arrays that are not what dtype and shape suggest: dtypes with metadata, first writes that warn, elements that share memory."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.lib.stride_tricks import as_strided

import tierup
from tierup import _core


def test_metadata_is_kept():
    _core.init_numpy()
    odd = np.ones(5).astype(np.dtype("f8", metadata={"unit": "m"}))
    assert _core.array_key(odd) & 255 == 255
    assert _core.array_key(np.ones(5)) & 255 == np.dtype("f8").num

    @tierup.jit
    def first(x):
        return x[1:], x * 2 + 1

    for _ in range(3):
        first(np.ones(5))
    assert dict(first(odd)[0].dtype.metadata) == {"unit": "m"}


def test_first_write_into_a_broadcast_array_warns():
    @tierup.jit
    def fill(x, y):
        x[:] = y * 2 + 1

    for _ in range(3):
        fill(np.ones(4), np.ones(4))
    a, _ = np.broadcast_arrays(np.ones(4), np.ones((4, 4)))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fill(a[0], np.ones(4))
        plain, _ = np.broadcast_arrays(np.ones(4), np.ones((4, 4)))
        jitted = [w.category for w in seen]
        seen.clear()
        fill.__wrapped__(plain[0], np.ones(4))
        assert jitted == [w.category for w in seen]


def test_overlapping_elements_keep_the_order_of_writes():
    @tierup.jit
    def fill(x, y):
        x[:] = y * 2 + 1

    for _ in range(3):
        fill(np.ones((3, 4)), np.ones((3, 4)))
    for strides in ((8, 8), (0, 8), (16, 8), (8, 16), (-8, 8)):
        results = []
        for fn in (fill, fill.__wrapped__):
            memory = np.zeros(32)
            fn(as_strided(memory[8:], (3, 4), strides), np.arange(12.0).reshape(3, 4))
            results.append(memory)
        assert results[0].tobytes() == results[1].tobytes(), strides
