"""NumPy's rules. In come symbolic values, out go graph nodes with exactly NumPy's meaning.

`library.py` has the object capture talks to and the tables; the other modules are grouped by what the operations do. Imported only when
NumPy is in the process.
"""

from tierup.arrays.numpy_rules.library import LIBRARY as LIBRARY
