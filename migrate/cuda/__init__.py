"""The CUDA side, in the order that data flows.

`parse` (after `preprocess`) finds the definitions of a file; `check.function` makes the typed
tree (`ast`) of one kernel with its template arguments; `execute` runs it for a whole grid in
lockstep, `lift` turns it into IR; `launch` reads the launches in host code.
"""
