"""A scenario is a function of a decorator; what it returns must not depend on the decorator."""

from __future__ import annotations

import contextlib
import functools
import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tierup

Wrap = Callable[[Any], Any]
Scenario = Callable[[Wrap], Any]

WARM = 4
"""Calls after which a function has surely been compiled."""


def shown(value: Any) -> Any:
    """A value as plain data that tells types, dtypes, layouts and bits apart."""
    if isinstance(value, np.ndarray):
        plain = np.asarray(value)
        flags = (value.flags.writeable, value.flags.owndata, value.flags.c_contiguous)
        return ("array", type(value).__name__, plain.dtype.str, plain.shape, plain.strides, flags, _bits(plain))
    if isinstance(value, np.generic):
        return ("scalar", type(value).__name__, _bits(np.asarray(value)))
    if isinstance(value, float | complex):
        return (type(value).__name__, _bits(np.asarray(value)))
    if isinstance(value, list | tuple):
        return (type(value).__name__, *(shown(item) for item in value))
    if isinstance(value, dict):
        return ("dict", *((shown(key), shown(item)) for key, item in value.items()))
    if isinstance(value, set | frozenset):
        return (type(value).__name__, sorted(map(repr, value)))
    if isinstance(value, BaseException):
        return ("exception", type(value).__name__, str(value))
    return (type(value).__name__, repr(value))


def _bits(array: np.ndarray) -> Any:
    if array.dtype.hasobject:
        return repr(array.tolist())
    data = np.array(array, order="C")
    if data.dtype.kind in "fc":
        parts = data.reshape(-1).view(data.real.dtype)
        parts[np.isnan(parts)] = np.nan
    return data.tobytes().hex()


def caught(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a call, or its exception."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return error.with_traceback(None)


def _observed(scenario: Scenario, wrap: Wrap) -> Any:
    output = io.StringIO()
    with warnings.catch_warnings(record=True) as log, contextlib.redirect_stdout(output):
        warnings.simplefilter("always")
        result = shown(caught(scenario, wrap))
    return result, output.getvalue(), [(item.category.__name__, str(item.message), item.lineno) for item in log]


def plain(function: Any) -> Any:
    """The decorator that does nothing."""
    return function


def _first_difference(want: Any, got: Any, path: str = "observed") -> str | None:
    if isinstance(want, tuple | list) and isinstance(got, tuple | list) and len(want) == len(got):
        found = (_first_difference(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(want, got, strict=True)))
        return next((text for text in found if text), None)
    return None if want == got else f"{path}:\n  plain {want}\n  jit   {got}"


def check(scenario: Scenario) -> None:
    """Fails unless the scenario behaves the same plain and under `tierup.jit`, also where regions are made that would not pay."""
    want = _observed(scenario, plain)
    tierup.reset()
    for jit in (tierup.jit, functools.partial(tierup.jit, min_graph_size=0)):
        difference = _first_difference(want, _observed(scenario, jit))
        if difference is not None:
            pytest.fail(difference, pytrace=False)
    errors = tierup.stats().of_kind("error")
    assert not errors, f"the translator failed: {errors}"
