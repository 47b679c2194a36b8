"""Loops as native code: a loop's bytecode and the values at its entry become one function with exits back into the interpreter.

Lazy basic block versioning (Chevalier-Boisvert and Feeley, ECOOP 2015): every basic block is translated once for each combination of
value kinds with which it is reached, so a variable that is a float before the first turn and a NumPy scalar after it gets two versions
of the loop instead of a union. Kinds are known from the entry, from constants and from the operations themselves; nothing is tagged at
run time.
"""
