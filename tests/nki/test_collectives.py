"""`nki.collectives` in a run of one rank."""

from __future__ import annotations

import numpy as np
import pytest

from migrate.nki.simulate import simulate
from migrate.numerics.rounded import Rounded
from tests.nki.kernels import kernel, module
from tests.nki.running import agreeing, lifted, opaque, run

IMPORTS = "import nki.collectives as ncc\nfrom nki.collectives import ReplicaGroup\n"

BODY = """\
out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
more = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
group = ReplicaGroup({ranks})
{call}
return out, more
"""

X = np.arange(32, dtype=np.float32).reshape(4, 8)


def text(call: str, ranks: str = "[[0]]") -> str:
    return IMPORTS + kernel(BODY.format(call=call, ranks=ranks), "x")


@pytest.mark.parametrize(
    "call",
    [
        "ncc.all_reduce([x, x], [out, more], group, nl.add)",
        "ncc.all_reduce(srcs=[x, x], dsts=[out, more], replica_group=group, op=nl.maximum)",
        "ncc.all_gather([x, x], [out, more], group, 0)",
        "ncc.reduce_scatter([x, x], [out, more], group, 0, nl.minimum, name='r')",
        "ncc.all_to_all([x, x], dsts=[out, more], replica_group=group, collective_dim=0)",
    ],
)
def test_a_rank_alone_gets_what_it_sends(call: str) -> None:
    found = run(text(call), X)
    assert all(np.array_equal(output, X) for output in found.outputs)
    agreeing(text(call), x=X)


@pytest.mark.parametrize(
    ("call", "ranks", "words"),
    [
        ("ncc.all_reduce([x], [out], group, nl.add)", "[[0, 1], [2, 3]]", "between 2 ranks"),
        ("ncc.all_reduce([x], [out], group, nl.multiply)", "[[0]]", "operator multiply as op"),
        ("ncc.all_reduce([x], [out, more], group, nl.add)", "[[0]]", "from 1 tensors to 2"),
        ("ncc.all_reduce(x, out, group, nl.add)", "[[0]]", "takes lists of tensors"),
        ("ncc.all_reduce([x], [out], [[0]], nl.add)", "[[0]]", "a list of 1 as replica_group"),
        ("ncc.all_gather([x], [out], group)", "[[0]]", "is not given collective_dim"),
        ("ncc.collective_permute([x], [out], [(0, 0)])", "[[0]]", "collective_permute"),
    ],
)
def test_what_one_rank_does_not_know_is_refused(call: str, ranks: str, words: str) -> None:
    found = simulate(module(text(call, ranks)), "k", [X], domain=Rounded())
    assert not found.complete
    assert any(words in event.message for event in found.specialization.events)


def test_the_rank_of_a_run() -> None:
    call = "ncc.all_reduce([x[ncc.rank_id() :]], [out], group, nl.add)"
    found = simulate(module(text(call)), "k", [X], domain=Rounded())
    np.testing.assert_array_equal(found.outputs[0], X)
    assert any("which rank" in reason for reason in opaque(lifted(text(call), x=X)))
