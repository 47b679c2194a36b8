"""What an array library must tell us: metadata, promotion, loops and a rule for each operation.

In come symbolic values (`values.py`) and a `Builder`; out go graph nodes, or `NoRule` and its reason. `protocol.py` says what a library
implements; `numpy_rules/` is NumPy's implementation. May import `graph` and the rooms below it.
"""
