"""The operands of inline assembly as typed expressions."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

from tree_sitter import Node

from migrate.cuda.ast import (
    Assign,
    Binary,
    Cast,
    Declare,
    Element,
    Evaluate,
    Expression,
    Literal,
    MakeVector,
    Name,
    OpaqueExpression,
    Statement,
    Variable,
)
from migrate.cuda.conversions import convert, decay, is_place, packed
from migrate.cuda.folding import fold
from migrate.cuda.library.assembly import Assembly, listed, number_of
from migrate.cuda.library.build import builtin, component, integer, lane
from migrate.cuda.scope import Scope
from migrate.cuda.types import (
    ADDRESS,
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    UNSIGNED,
    UNSIGNED_CHAR,
    UNSIGNED_LONG_LONG,
    UNSIGNED_SHORT,
    Pointer,
    Scalar,
    Type,
    Unknown,
    Vector,
)

_LOCAL: dict[str, Scalar] = {
    "pred": BOOL,
    "b16": UNSIGNED_SHORT,
    "u16": UNSIGNED_SHORT,
    "b32": UNSIGNED,
    "u32": UNSIGNED,
    "s32": INT,
    "f32": FLOAT,
    "f64": DOUBLE,
    "b64": UNSIGNED_LONG_LONG,
    "u64": UNSIGNED_LONG_LONG,
}

_SPECIAL = re.compile(r"%%?(tid|ntid|ctaid|nctaid)\.([xyz])\Z")
_BUILTINS = {"tid": "threadIdx", "ntid": "blockDim", "ctaid": "blockIdx", "nctaid": "gridDim"}


class Refused(Exception):
    """Assembly that is not understood, and why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Operands:
    """What the operands of one `asm` statement are.

    `declared` are the declarations of the registers that its text names.
    """

    def __init__(self, read: Assembly, node: Node, scope: Scope) -> None:
        self.where = scope.where(node)
        self.scope = scope
        self._read = read
        self._values: dict[int, Expression] = {}
        self._locals: dict[str, Variable] = {}
        self.declared: list[Statement] = []
        for name, word in read.registers:
            kind = _LOCAL.get(word)
            if kind is None:
                continue
            variable = scope.declare(f"({name})", kind, "local", self.where)
            self._locals[name] = variable
            self.declared.append(Declare(variable, None, self.where))

    def value(self, text: str) -> Expression:
        """A register, a special register or an immediate; `Refused` for anything else."""
        number = number_of(text)
        if number is not None:
            return self._numbered(number)
        plain = text.replace("%%", "%")
        variable = self._locals.get(text)
        if variable is not None:
            return Name(variable, variable.type, self.where)
        special = _SPECIAL.match(text)
        if special is not None:
            which, axis = special.groups()
            return builtin(_BUILTINS[which], "xyz".index(axis), self.where)
        if plain == "%laneid":
            return lane(self.where)
        immediate = _immediate(text)
        if immediate is None:
            raise Refused(f"the operand {plain} of this assembly is not understood")
        value, kind = immediate
        return Literal(value, kind, self.where)

    def _numbered(self, number: int) -> Expression:
        from migrate.cuda.expressions import expression

        if number >= len(self._read.operands):
            raise Refused(f"this assembly has no operand %{number}")
        if number not in self._values:
            made = decay(expression(self._read.operands[number][1], self.scope))
            if isinstance(made, OpaqueExpression):
                raise Refused(made.reason)
            if isinstance(made.type, Unknown):
                raise Refused(f"the type {made.type} is not understood")
            self._values[number] = made
        return self._values[number]

    def registers(self, text: str, *, written: bool) -> tuple[Expression, ...]:
        """The registers of `{%0, %1}`; places where they are written."""
        found = tuple(self.value(register) for register in listed(text))
        if written and not all(is_place(register) for register in found):
            raise Refused("this assembly writes to what is no variable")
        return found

    def constant(self, text: str) -> int:
        value = fold(self.value(text), self.scope.known)
        if value is None or isinstance(value, float):
            raise Refused(f"the operand {text} of this assembly is not constant")
        return int(value)

    def address(self, text: str) -> Expression:
        """The pointer in `[%0 + 16]`."""
        inner = text.strip()
        if not (inner.startswith("[") and inner.endswith("]")):
            raise Refused(f"the address {text} of this assembly is not understood")
        register, _, rest = inner[1:-1].partition("+")
        made = self.value(register.strip())
        if not isinstance(made.type, Pointer):
            raise Refused("an address that no pointer is known for")
        if rest.strip():
            bytes_ = Cast(made, ADDRESS, self.where, written=False)
            offset = integer(self.constant(rest.strip()), self.where)
            made = Binary("add", bytes_, offset, ADDRESS, self.where)
        return made

    def pointer(self, text: str, kind: Type) -> Expression:
        """An address as a pointer to a type."""
        made = self.address(text)
        wanted = Pointer(kind)
        assert isinstance(made.type, Pointer)
        return made if made.type.element == kind else Cast(made, wanted, self.where, written=False)

    def cell(self, pointer: Expression, index: Expression, kind: Type) -> Element:
        return Element(pointer, index, kind, self.where)

    def pair(self, parts: Sequence[Expression], kind: Vector) -> Expression:
        return MakeVector(tuple(parts), kind, self.where)

    def half(self, register: Expression, at: int) -> Expression:
        return component(register, at)

    def assign(self, place: Expression, value: Expression) -> Statement:
        """`place = value`, with the bits of one integer type as another's."""
        if not is_place(place):
            raise Refused("this assembly writes to what is no variable")
        place = packed(place, value.type)
        return Evaluate(
            Assign(
                place, None, self.as_type(value, place.type), place.type, place.type, self.where
            ),
            self.where,
        )

    def as_type(self, value: Expression, kind: Type) -> Expression:
        """A register read as a type of the same width; `Refused` where bits would change kind."""
        value = packed(value, kind)
        have = value.type
        if have == kind:
            return value
        if isinstance(have, Scalar) and isinstance(kind, Scalar):
            alike = have.is_integer and kind.is_integer
            same = have.is_float and kind.is_float and have.dtype is kind.dtype
            if alike or same or (isinstance(value, Literal) and kind.is_float):
                return convert(value, kind)
        raise Refused(f"a register of {have} is read as {kind}")


def _immediate(text: str) -> tuple[int | float, Scalar] | None:
    """An immediate of PTX (PTX ISA, "Constants"): `0f3F800000` is a float's bits."""
    bits = re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text)
    if bits is not None:
        return struct.unpack(">f", bytes.fromhex(bits.group(1)))[0], FLOAT
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]{1,8}|\d{1,10})U?", text):
        value = int(text.rstrip("U"), 0 if "x" in text.lower() else 10)
        return value, INT if -(2**31) <= value < 2**31 else UNSIGNED
    if re.fullmatch(r"-?\d{1,20}\.\d{1,20}", text):
        return float(text), FLOAT
    return None


def pointed(pointer: Expression) -> Type | None:
    """What memory is known to hold: the pointer's element type before it was cast."""
    best: Type | None = None
    here: Expression = pointer
    for _ in range(32):
        if isinstance(here.type, Pointer):
            inner = here.type.element
            if isinstance(inner, Scalar | Vector) and inner not in (ADDRESS.element, UNSIGNED_CHAR):
                best = inner
        match here:
            case Cast(operand=operand):
                here = decay(operand) if not isinstance(operand, Cast) else operand
            case Binary(left=left) if isinstance(left.type, Pointer):
                here = left
            case _:
                return best
    return best
