"""From a graph to machine code and a plan.

In: a verified `graph.ir.Graph`. Out: a `_core.Plan` whose kernels are NumPy's own inner loops or fused native functions, with what it
took to make them. Imports `graph`, `runtime` and `_core`; llvmlite only when a kernel has to be compiled that no cache holds.
"""
