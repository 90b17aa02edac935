"""The instruction tables as a whole."""

from __future__ import annotations

import numpy as np

from migrate.facts import nki
from migrate.nki import masks, registers
from migrate.nki.instructions import INSTRUCTIONS
from migrate.nki.simulate import simulate
from migrate.numerics.rounded import Rounded
from tests.nki.kernels import module
from tests.nki.running import lifted, on_tiles, opaque

GAPS = {
    "topk": "which of equal elements it takes is not documented",
}
"""Instructions that are known by name, operands and limits, and compute nothing here."""

OUTSIDE = {
    "attention_kernel": "removed in 0.2.0",
    "attention_kernel_cache": "removed in 0.2.0",
    "builtin_custom_op": "removed in 0.2.0",
    "tensor_copy_dynamic_dst": "removed in 0.4.0",
    "tensor_copy_dynamic_src": "removed in 0.4.0",
    "scalar_load": "since 0.7.0",
    "scalar_store": "since 0.7.0",
}
"""Instructions of the facts that the tables do not have, and why."""


def test_what_computes_nothing_says_why() -> None:
    without = {opcode: spec.gap for opcode, spec in INSTRUCTIONS.items() if spec.semantics is None}
    assert without == GAPS
    assert all(not spec.gap for spec in INSTRUCTIONS.values() if spec.semantics is not None)


def test_every_instruction_of_the_facts_is_accounted_for() -> None:
    named = {
        key.removeprefix("nki.isa."): entry
        for key, entry in nki.names().items()
        if entry.kind == "instruction"
    }
    missing = named.keys() - INSTRUCTIONS.keys() - registers.CALLS.keys()
    told = {
        name: f"removed in {named[name].removed}"
        if named[name].removed is not None
        else f"since {named[name].since}"
        for name in missing
    }
    assert told == OUTSIDE


def test_masks_are_for_known_instructions() -> None:
    assert INSTRUCTIONS.keys() >= masks.MASKED


def test_a_gap_is_told_by_runs_and_in_the_ir() -> None:
    text = on_tiles(
        "nisa.topk(val_dst=r, idx_dst=at, src=x_t, n=64)",
        "x",
        r="(16, 4), dtype=nl.bfloat16",
        at="(16, 4), dtype=nl.uint32",
    )
    x = np.ones((16, 4), np.float32)
    found = simulate(module(text), "k", (x,), domain=Rounded(), target="trn3")
    assert not found.complete
    assert any("equal elements" in h.message for h in found.happenings)
    assert any("equal elements" in reason for reason in opaque(lifted(text, target="trn3", x=x)))
