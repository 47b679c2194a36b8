"""Stress modes of the mechanism, for tests: `TIERUP_STRESS=miss`, `hit` or `exit:K`.

All put a site at every legal boundary. `miss`: sites never look up. `hit`: every site is hot at once and even regions without array
operations are compiled. `exit:K`: as hit, but a region ends after a pseudo-random number of instructions, K on average.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from tierup.runtime.config import ConfigError

MAX_STRESSED_INSTRUCTIONS = 1200
"""Larger code objects keep their ordinary sites: landings grow with the square of the boundaries."""


@dataclass(frozen=True, slots=True)
class Stress:
    """The mode in force. kind: 'miss', 'hit' or 'exit'."""

    kind: str
    every: int = 0

    @property
    def exits(self) -> int:
        """Landings that each site gets from the start. Where every site misses they are only code to be skipped."""
        return 1 if self.kind == "miss" else 12

    def limit(self, seed: int) -> int:
        """Instructions after which a region ends, 0 for no limit; the same for the same seed (a multiplicative hash, Knuth's)."""
        if self.kind != "exit":
            return 0
        return 1 + ((seed * 2654435761 >> 7) % (2 * self.every - 1))


def _parse(text: str) -> Stress | None:
    if not text:
        return None
    kind, _, number = text.partition(":")
    if kind in ("miss", "hit") and not number:
        return Stress(kind)
    if kind == "exit" and number.isascii() and number.isdigit() and int(number) > 0:
        return Stress(kind, int(number))
    raise ConfigError(f"TIERUP_STRESS must be miss, hit or exit:K, not {text!r}")


_mode = _parse(os.environ.get("TIERUP_STRESS", ""))


def mode() -> Stress | None:
    """The stress mode of this process, None in ordinary life."""
    return _mode
