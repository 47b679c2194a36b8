"""Profiles that were recorded before.

In: a CSV report, the text of `perf report` or `perf script`, or perf's own file (`read.py` tells them apart). Out: `model.Profile`, which
is marked as partial by what it says in `problems`.
"""
