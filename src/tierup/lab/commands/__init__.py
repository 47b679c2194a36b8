"""The commands of `tierup lab`, a module each.

In: the words behind the command's name. `prepare(words)` reads them, raises UsageError if they are wrong, and returns the work, which
returns the exit code. Out: text or, with `--json`, plain data. May import the whole lab, `runtime`, and the tables of `report`.
"""
