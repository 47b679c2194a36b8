"""Guards: what a specialisation assumes about the values live at its site.

In: sources (how to reach a value) and checks (what must hold of it), collected by capture. Out: expression and check tuples for the native
guard tree. May import `runtime` and `_core` only.
"""
