"""Arithmetic: formats, conversions, operators, and the two domains they are carried out in.

`dtypes` names the number formats, `casts` the conversions each platform documents,
`operators` the elementwise operators (the one place where each is defined).  `domain`
is the interface through which both interpreters do every operation; `rounded` computes
what a platform computes, `bounded` the real value with a running error bound, and
`compare` judges the first against the second.
"""
