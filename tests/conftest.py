"""Options of the test process."""

from __future__ import annotations

import os
import signal

# Trials leave visits to the interpreter at times of their own choosing, and here hits are counted. `test_trials.py` turns them on.
os.environ.setdefault("TIERUP_TRIAL_HITS", "0")

# Started in the background of a script, we would hand an ignored SIGINT on to programs that are interrupted, such as CPython's own tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
