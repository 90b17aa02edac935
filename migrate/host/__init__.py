"""Python host code around a kernel: its wrapper and its callers, read from their text, never run.

`reader` follows arrays through functions, `values` says what became of them, `calls` which
launches of a kernel there are, `shapes` what a step does to a shape.
"""
