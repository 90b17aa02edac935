"""What an entry of the instruction tables says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from migrate.nki.checks import Check
from migrate.nki.operators import Engine
from migrate.nki.semantics import Semantics

Kind: TypeAlias = Literal["tile", "tiles", "column", "operator", "value"]


class _Required:
    __slots__ = ()

    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an instruction.

    `tile`: a tensor; `tiles`: a sequence of tensors, operands `name.0`, `name.1`, ...;
    `column`: a number or a (P, 1) tensor; `operator`: an operator of `nki.language`; `value`:
    anything else.  `memories` are where a tensor may live.
    """

    name: str
    kind: Kind
    default: object = REQUIRED
    memories: tuple[str, ...] = ()
    role: Literal["in", "out", "inout"] = "in"


@dataclass(frozen=True, slots=True)
class Enumerated:
    """A default that is a member of one of the library's enums."""

    enum: str
    name: str


@dataclass(frozen=True, slots=True)
class Spec:
    """One instruction.

    `semantics` is `None` for instructions that are known but not understood, and `gap` says what
    about them is not.  `accumulator` is the engine whose accumulation registers the instruction
    may use.
    """

    opcode: str
    parameters: tuple[Parameter, ...]
    engines: tuple[Engine, ...]
    semantics: Semantics | None = None
    checks: tuple[Check, ...] = ()
    targets: tuple[str, ...] = ("trn1", "trn2", "trn3")
    accumulator: Engine | None = None
    gap: str = ""

    by_name: Mapping[str, Parameter] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {p.name: p for p in self.parameters})

    @property
    def refusal(self) -> str:
        """Why the instruction has no meaning here."""
        return f"the instruction {self.opcode}" + (f": {self.gap}" if self.gap else "")

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of an operand; one of several tensors is `name.k`, and what says where
        an operand stands `name:k`.
        """
        found = self.by_name.get(name)
        if found is not None:
            return found
        if ":" in name:
            return POSITION
        return REGISTERS if name == REGISTERS.name else self.by_name.get(name.partition(".")[0])


ONCHIP = ("sbuf", "psum")
DMA = ("hbm", "sbuf")
SBUF = ("sbuf",)
PSUM = ("psum",)
LATER = ("trn2", "trn3")

REGISTERS = Parameter("registers", "tile", None, (), "inout")
"""An engine's accumulation registers, where an instruction uses them beside its operands."""

POSITION = Parameter("position", "tile", None, ("sbuf", "hbm", "register"))
"""A tile, or a register, that says where an operand stands."""


def out(name: str = "dst", memories: tuple[str, ...] = ONCHIP) -> Parameter:
    return Parameter(name, "tile", REQUIRED, memories, "out")


def tile(name: str, memories: tuple[str, ...] = ONCHIP) -> Parameter:
    return Parameter(name, "tile", REQUIRED, memories)


def column(name: str, default: object = REQUIRED) -> Parameter:
    return Parameter(name, "column", default, ONCHIP)


def op(name: str, default: object = REQUIRED) -> Parameter:
    return Parameter(name, "operator", default)


def value(name: str, default: object = REQUIRED) -> Parameter:
    return Parameter(name, "value", default)


ENGINE = value("engine", Enumerated("engine", "unknown"))
NAME = value("name", None)
REDUCE_CMD = value("reduce_cmd", Enumerated("reduce_cmd", "idle"))
RESET_REDUCE = value("reduce_cmd", Enumerated("reduce_cmd", "reset_reduce"))
RESULT = Parameter("reduce_res", "tile", None, ONCHIP, "out")
