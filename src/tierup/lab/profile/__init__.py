"""Where a benchmark's time goes, by category of function.

In: reports of Linux `perf`, recorded here (`record.py`) or before (`readers/`). Out: shares by category (`shares.py`), and the groups of
benchmarks that one category dominates (`characterize.py`). What belongs to which category is data: `categories.toml`.
"""
