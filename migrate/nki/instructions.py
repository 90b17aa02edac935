"""The instructions of `nki.isa`: parameters, operand memories, checks and semantics.

One entry an instruction, in the tables of `migrate.nki.opcodes`.  Parameters and limits are
those of the NKI API reference (nki/api/nki/isa) for NKI 0.2 to 0.6, destination first.
"""

from __future__ import annotations

from migrate.nki.opcodes import choices, elementwise, matrix, moves, reductions, registers
from migrate.nki.opcodes.spec import REQUIRED, Enumerated, Kind, Parameter, Spec

__all__ = ["INSTRUCTIONS", "REQUIRED", "Enumerated", "Kind", "Parameter", "Spec"]

INSTRUCTIONS: dict[str, Spec] = {
    entry.opcode: entry
    for family in (moves, elementwise, reductions, choices, matrix, registers)
    for entry in family.SPECS
}
