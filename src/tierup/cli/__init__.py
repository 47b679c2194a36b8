"""The commands. In: the command line. Out: text and an exit code. May import every room; `run` imports as little as it can."""
