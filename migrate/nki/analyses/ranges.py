"""What values tiles can have, as far as constants and functions bound them, and the activations
whose table does not reach there.

The Scalar engine computes functions by tables of polynomials that hold in a range of inputs;
outside of it they give garbage (nki/api/nki.api.shared.rst, "Valid Input Range").
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from migrate.nki.analyses import Base
from migrate.nki.instructions import INSTRUCTIONS
from migrate.nki.symbols import Number
from migrate.nki.values import OperatorName, Problem, View

if TYPE_CHECKING:
    from migrate.nki.frames import Instruction
    from migrate.nki.specialize import Specialization

_INF: Final = math.inf


class Interval(NamedTuple):
    """Numbers from `low` to `high`."""

    low: float
    high: float


ANY: Final = Interval(-_INF, _INF)

VALID: Final = {
    "log": Interval(2.0**-64, 2.0**64),
    "sin": Interval(-math.pi, math.pi),
    "arctan": Interval(-math.pi / 2, math.pi / 2),
    "sqrt": Interval(0.0, 2.0**118),
    "rsqrt": Interval(2.0**-87, 2.0**97),
}
"""The documented ranges; that of sqrt begins at 2^-116, but its result at 0 is not garbage."""

_RESULTS: Final = {
    "sigmoid": Interval(0.0, 1.0),
    "tanh": Interval(-1.0, 1.0),
    "erf": Interval(-1.0, 1.0),
    "sign": Interval(-1.0, 1.0),
    "square": Interval(0.0, _INF),
    "relu": Interval(0.0, _INF),
    "abs": Interval(0.0, _INF),
    "exp": Interval(0.0, _INF),
}
"""What functions give, whatever they are given."""

_SLACK: Final = 1e-3
"""Relative room for what rounding and tables do to bounds."""


class Ranges(Base):
    """Code `outside-range`, at the activation."""

    codes = frozenset({"outside-range"})

    def __init__(self, target: str, guessed: frozenset[str] = frozenset()) -> None:
        super().__init__(target, guessed)
        self._tiles: dict[int, Interval] = {}
        """What tiles hold; one that is not there was not written, or may hold anything."""
        self._open: set[int] = set()
        self._found: dict[int, Problem] = {}

    def execute(self, instruction: Instruction) -> None:
        value = self._value(instruction)
        spec = INSTRUCTIONS.get(instruction.opcode)
        for name, view in instruction.operands:
            if not isinstance(view, View):
                continue
            parameter = spec.parameter(name) if spec is not None else None
            if parameter is None or parameter.role != "in":
                self._write(view, value if name == "dst" else ANY)

    def _write(self, view: View, value: Interval) -> None:
        ordinal = view.buffer.ordinal
        if view.buffer.role == "parameter" or not view.buffer.memory.on_chip:
            return
        if value == ANY or view.dtype is not view.buffer.dtype or view.indirect:
            self._open.add(ordinal)
            self._tiles.pop(ordinal, None)
        elif ordinal not in self._open:
            before = self._tiles.get(ordinal, value)
            self._tiles[ordinal] = _union(before, value)
        if view.elements == view.buffer.elements and 0 not in view.strides and value != ANY:
            self._open.discard(ordinal)
            self._tiles[ordinal] = value

    def _holds(self, operand: object) -> Interval:
        match operand:
            case Number():
                return Interval(operand.value, operand.value)
            case View():
                if operand.dtype is not operand.buffer.dtype:
                    return ANY
                return self._tiles.get(operand.buffer.ordinal, ANY)
        return ANY

    def _value(self, instruction: Instruction) -> Interval:
        """What an instruction puts into `dst`."""
        if instruction.mask is not None and instruction.opcode != "memset":
            return ANY
        match instruction.opcode:
            case "memset":
                return self._holds(instruction.operand("value"))
            case "tensor_copy":
                return self._holds(instruction.operand("src"))
            case "tensor_scalar":
                return self._scalars(instruction)
            case "activation":
                return self._activation(instruction)
        return ANY

    def _scalars(self, instruction: Instruction) -> Interval:
        value = self._holds(instruction.operand("data"))
        for which in ("0", "1"):
            operator = instruction.attribute(f"op{which}")
            if operator is None:
                continue
            other = self._holds(instruction.operand(f"operand{which}"))
            turned = instruction.attribute(f"reverse{which}") is True
            name = operator.name if isinstance(operator, OperatorName) else ""
            value = _combined(name, other, value) if turned else _combined(name, value, other)
        return value

    def _activation(self, instruction: Instruction) -> Interval:
        operator = instruction.attribute("op")
        if not isinstance(operator, OperatorName):
            return ANY
        value = _combined(
            "multiply",
            self._holds(instruction.operand("data")),
            self._holds(instruction.operand("scale")),
        )
        bias = instruction.operand("bias")
        if bias is not None:
            value = _combined("add", value, self._holds(bias))
        valid = VALID.get(operator.name)
        if valid is not None and _apart(value, valid) and not _reduced(instruction, operator.name):
            self._tell(instruction, operator.name, value, valid)
        if operator.name == "copy":
            return value
        return _RESULTS.get(operator.name, ANY)

    def _tell(self, instruction: Instruction, name: str, value: Interval, valid: Interval) -> None:
        data = instruction.view("data")
        self._found.setdefault(
            instruction.site.key,
            Problem(
                "outside-range",
                f"{instruction.opcode}: nl.{name} of numbers {_shown(value)}; its table is for"
                f" {_shown(valid)}",
                instruction.span,
                "data",
                sources=(data.buffer.site.span,) if data is not None else (),
            ),
        )

    def problems(self, found: Specialization) -> Iterator[Problem]:
        if found.complete:
            yield from self._found.values()


def _reduced(instruction: Instruction, name: str) -> bool:
    """Whether the argument may be brought into range first, as `nl.sin` does: a function that
    makes its own result.
    """
    dst = instruction.view("dst")
    return name == "sin" and (dst is None or dst.buffer.site.key == instruction.site.key)


def _union(left: Interval, right: Interval) -> Interval:
    return Interval(min(left.low, right.low), max(left.high, right.high))


def _combined(name: str, left: Interval, right: Interval) -> Interval:
    if ANY in (left, right) and name not in ("maximum", "minimum"):
        return ANY
    match name:
        case "add":
            return _hull(left.low + right.low, left.high + right.high)
        case "subtract":
            return _hull(left.low - right.high, left.high - right.low)
        case "multiply":
            return _hull(*(_product(a, b) for a in left for b in right))
        case "maximum":
            return Interval(max(left.low, right.low), max(left.high, right.high))
        case "minimum":
            return Interval(min(left.low, right.low), min(left.high, right.high))
    return ANY


def _product(left: float, right: float) -> float:
    return 0.0 if 0.0 in (left, right) else left * right


def _hull(*ends: float) -> Interval:
    if any(math.isnan(end) for end in ends):
        return ANY
    return Interval(min(ends), max(ends))


def _apart(value: Interval, valid: Interval) -> bool:
    """Whether no number of `value` is valid, with room for rounding."""
    below = value.high < valid.low - abs(valid.low) * _SLACK
    above = value.low > valid.high + abs(valid.high) * _SLACK
    return below or above


def _shown(value: Interval) -> str:
    if value.low == value.high:
        return f"equal to {value.low:.6g}"
    return f"from {value.low:.6g} to {value.high:.6g}"
