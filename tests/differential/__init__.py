"""Generated programs, run plain and through the JIT: everything a program can observe must be the same.

`inputs` makes arguments, `programs` makes source text, `snapshot` turns an object graph into comparable lines,
`observe` runs a program and records its calls, `reduce` makes a failing program small.
"""
