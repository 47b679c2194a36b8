"""Result files of benchmark runs.

In: files of pyperf (which pyperformance writes), pytest-benchmark, asv and hyperfine; lists of benchmarks by group. Out: `Results`, one
`Benchmark` a name, with the values of each process; which names of two files, or of a group and a file, are the same benchmark.
"""
