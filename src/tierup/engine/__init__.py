"""The engine: code units with their sites, specialisations, heat and back-off; swapping of `__code__`; loading of instrumented programs.

In: functions and module code. Out: generated code whose sites fill themselves. May import every room but `report`, `lab` and `cli`.
"""
