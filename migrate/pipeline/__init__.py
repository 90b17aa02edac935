"""From files to results: the stages in the order that data flows.

`kernels` reads the two files and chooses the kernels, `reading` lifts and relates them at
each position of the sizes, `compare` weighs all evidence into a `Comparison`; `single` is
what can be said and done with one side alone.
"""
