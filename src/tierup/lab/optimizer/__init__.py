"""What an optimizer did: CPython's and ours, in one form.

In: CPython's statistics (of a build with `--enable-pystats`; text, or JSON of its summarize_stats.py) and tierup's (a file or a folder
that `TIERUP_STATS_DIR` named). Out: `OptimizerStats`; tables of it, of two side by side; what stands out, in words. May import `runtime`
and `errors`.
"""
