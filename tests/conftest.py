"""Options of the test process."""

from __future__ import annotations

import os

# Trials leave visits to the interpreter at times of their own choosing, and here hits are counted. `test_trials.py` turns them on.
os.environ.setdefault("TIERUP_TRIAL_HITS", "0")
