"""A second proof of equality, for what canonical terms cannot show.

Both kernels are evaluated in finite fields at pseudo-random inputs (`ir.residues`).  That
proves what follows from the laws of a field together with exp(a + b) = exp(a) exp(b): a
softmax shifted by whatever it is shifted by, online softmax, Welford's and the one-pass
variance, factors moved into and out of sums.

What is proved.  Take the elements of the inputs, and every function but the field's own
and exp, as variables: equal arguments make one variable.  Both outputs are then rational
functions of variables and exponentials.  If they are equal as such, they are equal here.
If they are not, they agree here by chance only, or because different arguments of one
function were taken for equal.  Where exponents are sums of variables with rational factors,
each of these has in one evaluation a probability below d/q (Schwartz and Zippel), d being
the degree of the difference and q > 2^30.99; in three evaluations modulo different primes
below 10^-18 for d up to 1000.  For exponents that are products of variables (attention) no
such bound is known; it is taken for granted that different powers of a root of unity of
order q are as good as random.  d may reach q only in kernels that square an input some
thirty times over.

What is not represented: division by zero (equal wherever both are defined), overflow and
any rounding; a number is the simplest fraction that float32 rounds to it, and operators
on numbers alone are computed in float64.  Laws of maxima besides order and grouping, and of
functions besides exp, are not known here: what needs them is not proved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.budget import Meter
from migrate.ir.hashing import Ids
from migrate.ir.literals import Literals
from migrate.ir.nodes import Kernel
from migrate.ir.normal import Tensor, logical_terms
from migrate.ir.residues import PRIMES, Residues, agree
from migrate.ir.terms import Terms

TRIALS: Final = 3
"""Evaluations that must agree."""

Side: TypeAlias = tuple[Kernel, Mapping[str, int], Mapping[str, Tensor]]
"""A kernel, its sizes, and the logical tensors of its buffers."""


def proved_equal(
    cuda: Side, nki: Side, differing: Mapping[str, NDArray[np.int64]], meter: Meter
) -> dict[str, bool]:
    """Which outputs are proved equal at the given elements (flat), those with other terms.

    False says nothing.  Raises `ir.evaluate.Unevaluable` and `budget.Exhausted`.
    """
    left = {name: elements for name, elements in differing.items() if elements.size}
    found = dict.fromkeys(left, False)
    passed = 0
    # An evaluation that divided by what is 0 by chance does not count.
    for seed, prime in enumerate(PRIMES):
        with meter.scratch():
            results = [
                _evaluated(side, prime, seed, name, meter)
                for side, name in ((cuda, "cuda"), (nki, "nki"))
            ]
        if any(unlucky for _, unlucky in results):
            continue
        (mine, _), (theirs, _) = results
        left = {
            name: elements
            for name, elements in left.items()
            if name in mine
            and name in theirs
            and mine[name].size == theirs[name].size
            and agree(mine[name].reshape(-1)[elements], theirs[name].reshape(-1)[elements]).all()
        }
        passed += 1
        if not left or passed == TRIALS:
            break
    return found | dict.fromkeys(left if passed == TRIALS else (), True)


def _evaluated(
    side: Side, prime: int, seed: int, name: str, meter: Meter
) -> tuple[dict[str, Ids], bool]:
    """The residues of every output, and whether they must not count."""
    kernel, sizes, tensors = side
    made: list[Residues] = []

    def ring(literals: Literals) -> Residues:
        made.append(Residues(literals, prime, seed, name))
        return made[0]

    terms = logical_terms(
        kernel, sizes, tensors, meter, lambda leaves: Terms(leaves, meter, keep=False, ring=ring)
    )
    return terms, made[0].unlucky
