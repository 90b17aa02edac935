"""Moves between registers, and between a register and memory."""

from __future__ import annotations

from migrate.nki import semantics
from migrate.nki.opcodes.spec import DMA, REQUIRED, Parameter, Spec, out, tile

_REGISTER = ("register",)

SPECS = (
    Spec(
        "register_move",
        (out(memories=_REGISTER), Parameter("src", "column", REQUIRED, _REGISTER)),
        ("sequencer",),
        semantics.register_move,
    ),
    Spec(
        "register_load",
        (out(memories=_REGISTER), tile("src", DMA)),
        ("sequencer",),
        semantics.register_move,
    ),
    Spec(
        "register_store",
        (out(memories=DMA), Parameter("src", "column", REQUIRED, _REGISTER)),
        ("sequencer",),
        semantics.register_move,
    ),
)  # fmt: skip
