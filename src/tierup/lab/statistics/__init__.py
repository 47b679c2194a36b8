"""What the values of two results say about each other.

In: arrays of values by benchmark and process, of a base and a head. Out: reliability, speed-ups, intervals. `hpt.py` is the lab's own
hierarchical performance testing, `bench_runner.py` the one whose numbers bench_runner prints; both are built on
`two_samples.py` or `ranks.py`, and `bootstrap.py` stands beside them. May import nothing of the lab but `results.model`.
"""
