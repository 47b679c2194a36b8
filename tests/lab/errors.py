"""What the lab says of what it cannot use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def one_line(kind: type[Exception], *parts: str) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """Expects an error whose message is one line that has all the parts."""
    with pytest.raises(kind) as caught:
        yield caught
    text = str(caught.value)
    assert "\n" not in text
    for part in parts:
        assert part in text
