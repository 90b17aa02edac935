"""How much two kernels compute the same thing at all, from 0 to 1.

For search and ranking, where a number is always needed: never null, uncapped, and no
judgement.  A kernel with one wrong constant corresponds closely and is not faithful.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, isfinite
from typing import Final

from migrate import facts
from migrate.results import Construct, ConstructVerdict

_CREDIT: Final[Mapping[ConstructVerdict, float]] = {
    "matched": 1.0,
    "transformed": 1.0,
    "mismapped": 0.5,
    "unknown": 0.5,
    "missing": 0.0,
    "extra": 0.0,
}
"""What a pairing says for the two being the same.  A right absence says nothing."""

_DIGITS: Final = 4


def correspondence(*, alike: Sequence[float], constructs: Sequence[Construct]) -> float:
    """The mean likeness of the output expressions; without any, that of the constructs.

    `alike` has one share from 0 to 1 for each output at each position of the sizes.  The
    constructs stand in by kind: the weight of those with a partner, of all on both sides
    that tell one computation from another.  0.0 where there is neither.
    """
    shares = [share for share in alike if isfinite(share)]
    if shares:
        return _bounded(fsum(shares) / len(shares))
    table = facts.scoring("fidelity-1")
    paired: list[float] = []
    whole: list[float] = []
    for construct in constructs:
        kind = table.kind[construct.kind]
        if not kind.computes or construct.verdict not in _CREDIT:
            continue
        both = bool(construct.cuda) and bool(construct.nki)
        sides = 2 if both else 1
        whole.append(kind.weight * sides)
        paired.append(kind.weight * sides * _CREDIT[construct.verdict] if both else 0.0)
    return _bounded(fsum(paired) / fsum(whole)) if whole else 0.0


def _bounded(share: float) -> float:
    return round(min(max(share, 0.0), 1.0), _DIGITS)
