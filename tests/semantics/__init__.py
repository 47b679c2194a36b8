"""Situations in which compilers of Python functions have been wrong, each as a small scenario run plain and through the JIT."""
