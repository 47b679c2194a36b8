"""The graph: typed SSA of array, scalar and object operations, with its text form, parser, verifier and passes.

In: what capture builds (`ir.Graph`). Out: the same, checked (`verify`), printed (`printer`), read back (`parser`) or made smaller
(`passes`). Imports nothing but the standard library.
"""
