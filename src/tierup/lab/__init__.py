"""The benchmark lab: does a JIT help, for what kind of program, and why not.

In: result files of benchmark runs (pyperf and others), profiles of perf, optimizer statistics. Out: comparisons and
tables, as data, text and JSON. The rooms: `results/` reads files, `statistics/` computes, `compare.py` joins both, `optimizer/` reads
what optimizers counted, `profile/` samples benchmarks and sorts their time into categories, `report/` makes pages, `commands/` are the
commands of `tierup lab`. May import `runtime`, and `commands/` the tables of `report`.
"""
