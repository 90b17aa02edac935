"""What the instructions between the two cores of a logical core compute.

One program after the other is read, so that what one core gets from another is known only where
both are run in step (`in_step`).
"""

from __future__ import annotations

from typing import TypeVar

from migrate.nki.errors import Unsupported
from migrate.nki.frames import Instruction
from migrate.nki.semantics import Machine, required_view
from migrate.nki.symbols import Number
from migrate.nki.values import View

V = TypeVar("V")


def core_barrier(m: Machine[V], i: Instruction) -> None:
    """Nothing for one core alone: a barrier orders what is in program order already."""
    for loop in i.loops:
        if loop.loop.iterator == "grid" and loop.trips is not None and loop.trips.value > 1:
            raise Unsupported("a barrier between programs, which are read one after the other")


def sendrecv(m: Machine[V], i: Instruction) -> None:
    """An exchange with the other core."""
    raise Unsupported("an exchange with another core")


def exchanged(
    first: Instruction, second: Instruction
) -> tuple[tuple[Instruction, View, View], ...]:
    """What each of two cores that have met sends, and where it puts what it gets.

    Nothing at a barrier.  Raises `Unsupported` where the instructions do not belong together.
    """
    same = first.opcode == second.opcode
    if not same or _number(first, "pipe_id") != _number(second, "pipe_id"):
        raise Unsupported("cores that wait for each other at different instructions")
    if first.opcode != "sendrecv":
        return ()
    found: list[tuple[Instruction, View, View]] = []
    for core, instruction in enumerate((first, second)):
        ranks = {_number(instruction, name) for name in ("send_to_rank", "recv_from_rank")}
        if ranks != {1 - core}:
            raise Unsupported("an exchange that is not between the two cores")
        found.append(
            (instruction, required_view(instruction, "src"), required_view(instruction, "dst"))
        )
    if len({view.sizes for _, *views in found for view in views}) != 1:
        raise Unsupported("an exchange of tiles of different shapes")
    return tuple(found)


def _number(instruction: Instruction, name: str) -> float | None:
    value = instruction.attribute(name)
    return value.value if isinstance(value, Number) else None
