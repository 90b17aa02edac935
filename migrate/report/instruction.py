"""What a kernel is checked for at an instruction, in sentences.

What a check demands is the docstring of the check (`migrate.nki.checks`, `limits`), with the
operands that it was made for.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

from migrate.nki.checks import PARTITIONS, Check
from migrate.nki.instructions import INSTRUCTIONS, Parameter
from migrate.nki.registers import CALLS


def names() -> tuple[str, ...]:
    """The instructions that are known, as they are asked for."""
    return tuple(f"nisa.{opcode}" for opcode in sorted({*INSTRUCTIONS, *CALLS}))


def checks(opcode: str) -> tuple[str, ...] | None:
    """What is checked of an instruction; `None` where there is none of the name."""
    spec = INSTRUCTIONS.get(opcode)
    if spec is None:
        return None
    return (*_common(spec.parameters), *map(_limit, spec.checks))


def modelled(opcode: str) -> bool:
    """Whether it is known what an instruction computes."""
    spec = INSTRUCTIONS.get(opcode)
    return opcode in CALLS or (spec is not None and spec.semantics is not None)


def _common(parameters: tuple[Parameter, ...]) -> Iterator[str]:
    if any("hbm" not in p.memories for p in parameters if p.kind == "tile"):
        yield f"On-chip tensors: at most {PARTITIONS} partitions."


def _limit(check: Check) -> str:
    # A check is a function, or was made by one for the operands that it names.
    name, *made = check.__qualname__.split(".")
    maker = getattr(sys.modules[check.__module__], name)
    sentence = " ".join((inspect.getdoc(maker) or name).split())
    if not made:
        return sentence
    given = inspect.getclosurevars(check).nonlocals
    operands: list[object] = []
    for parameter in inspect.signature(maker).parameters:
        value = given.get(parameter, ())
        operands += value if isinstance(value, tuple) else (value,)
    return f"{', '.join(f'`{operand}`' for operand in operands)}: {sentence}"
