"""What tierup did, for people: reports, views and tables.

In: the plain records of `records.py`, filled by the engine, and snapshots of `runtime.stats`. Out: text and plain dicts.
May import every room but `lab` and `cli`; needs only `runtime`.
"""
