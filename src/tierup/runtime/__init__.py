"""Configuration, events and statistics of the running process.

In: the environment, command lines, and what the other rooms report. Out: `config.current()`, `events.record()` and `stats.snapshot()`.
May import `tierup._core` only, and nothing slow: these modules load before the user's program does.
"""
