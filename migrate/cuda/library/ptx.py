"""Inline PTX (PTX ISA): matrix instructions, asynchronous copies, and what is simple.

* `mma.sync` is a `WarpContract` over its registers.
* `ldmatrix`: lane l passes the address of a row; register j of lane l gets, of the 8 x 8 matrix
  whose rows lanes 8 j to 8 j + 7 point at, elements 2 (l % 4) and the next of row l / 4 (`.trans`:
  of column l / 4, in the rows 2 (l % 4) and the next).  It is a `Shuffle` of the pointer and loads;
  `stmatrix` is the reverse.
* `cp.async` is an `AsyncCopy`, its groups `AsyncGroup`.
* `scalar` has loads, stores, arithmetic, exchanges.

What an instruction does is taken from its text and its operands' types; an instruction that is not
known makes the statement opaque.
"""

from __future__ import annotations

from collections.abc import Callable

from tree_sitter import Node

from migrate.cuda.ast import (
    AsyncGroup,
    Block,
    Expression,
    If,
    Shuffle,
    Statement,
    Unary,
    WarpContract,
)
from migrate.cuda.conversions import condition, convert
from migrate.cuda.intrinsics import SHUFFLES
from migrate.cuda.library.assembly import Instruction
from migrate.cuda.library.build import arithmetic, integer, lane
from migrate.cuda.library.layout import layout, sound
from migrate.cuda.library.operands import Operands, Refused
from migrate.cuda.library.pipeline import copied
from migrate.cuda.library.registers import code_of
from migrate.cuda.library.scalar import SCALAR
from migrate.cuda.scope import Scope
from migrate.cuda.types import (
    BFLOAT16,
    BOOL,
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    SIGNED_CHAR,
    UNSIGNED,
    UNSIGNED_CHAR,
    Pointer,
    Vector,
)

_ELEMENTS = {
    "f16": HALF,
    "bf16": BFLOAT16,
    "tf32": FLOAT,
    "f32": FLOAT,
    "f64": DOUBLE,
    "s8": SIGNED_CHAR,
    "u8": UNSIGNED_CHAR,
    "s32": INT,
}

# PTX ISA, "Warp-level matrix instructions: mma": the shapes of each type that follow the scheme
# of `layout`.  m8n8k4 of f16 has one of its own.
_SHAPES = {
    "f16": ("m16n8k8", "m16n8k16"),
    "bf16": ("m16n8k8", "m16n8k16"),
    "tf32": ("m16n8k4", "m16n8k8"),
    "f64": ("m8n8k4",),
    "s8": ("m8n8k16", "m16n8k16", "m16n8k32"),
    "u8": ("m8n8k16", "m16n8k16", "m16n8k32"),
}


def statements(node: Node, scope: Scope) -> list[Statement]:
    """An `asm` statement."""
    read = code_of(node, scope)
    if isinstance(read, str):
        return [scope.opaque_statement(node, read)]
    mark = len(scope.issues)
    operands = Operands(read, node, scope)
    made: list[Statement] = []
    try:
        for instruction in read.instructions:
            made += _predicated(instruction, operands)
    except Refused as refused:
        del scope.issues[mark:]
        return [scope.opaque_statement(node, refused.reason)]
    return operands.declared + made


def _predicated(instruction: Instruction, operands: Operands) -> list[Statement]:
    handler = _HANDLERS.get(instruction.name) or SCALAR.get(instruction.name)
    if handler is None:
        raise Refused(f"the PTX instruction {instruction.opcode} is not understood")
    made = handler(instruction, operands)
    if not instruction.predicate:
        return made
    negated = instruction.predicate.startswith("!")
    test = condition(operands.value(instruction.predicate.lstrip("!")))
    if negated:
        test = Unary("logical_not", test, BOOL, operands.where)
    return [If(test, Block(tuple(made), operands.where), None, operands.where)]


def _mma(instruction: Instruction, operands: Operands) -> list[Statement]:
    words = instruction.modifiers
    kinds = [one for one in words if one in _ELEMENTS]
    shape_word = next((one for one in words if one[:1] == "m" and one[1:2].isdigit()), "")
    known = {"sync", "aligned", "row", "col", shape_word, *kinds}
    if len(kinds) != 4 or not set(words) <= known or len(instruction.operands) != 4:
        raise Refused(f"the PTX instruction {instruction.opcode} is not understood")
    result, left, right, addend = kinds
    if (
        left != right
        or shape_word not in _SHAPES.get(left, ())
        or tuple(one for one in words if one in ("row", "col")) != ("row", "col")
    ):
        raise Refused(f"the PTX instruction {instruction.opcode} is not understood")
    m, rest = shape_word[1:].split("n")
    n, k = rest.split("k")
    shape = (int(m), int(n), int(k))
    element_type = _ELEMENTS[left]
    if not sound(shape, element_type):
        raise Refused(f"the layout of {shape_word} of {left} is not understood")
    d, a, b, c = (
        operands.registers(operand, written=at == 0)
        for at, operand in enumerate(instruction.operands)
    )
    for registers, role, kind in ((a, "a", element_type), (b, "b", element_type)):
        size = layout(role, shape, element_type).elements * kind.size  # type: ignore[arg-type]
        if len(registers) != max(size // max(kind.size, 4), 1):
            raise Refused(f"{shape_word} of {left} does not take {len(registers)} registers here")
    return [
        WarpContract(
            d=d,
            a=a,
            b=b,
            c=c,
            shape=shape,
            element=element_type,
            accumulator=_ELEMENTS[addend],
            result=_ELEMENTS[result],
            precision="tf32" if left == "tf32" else "",
            where=operands.where,
        )
    ]


def _rows(instruction: Instruction, count: int) -> tuple[int, bool]:
    """How many matrices `ldmatrix` moves, and whether transposed."""
    words = instruction.modifiers
    number = next((int(one[1:]) for one in words if one in ("x1", "x2", "x4")), 0)
    known = {"sync", "aligned", "m8n8", "trans", "shared", "shared::cta", "b16", f"x{number}"}
    if number != count or not set(words) <= known or "b16" not in words or "m8n8" not in words:
        raise Refused(f"the PTX instruction {instruction.opcode} is not understood")
    return number, "trans" in words


def _row(pointer: Expression, first: int, place: Expression, operands: Operands) -> Expression:
    """The address that another lane passes: that of lane `first + place`."""
    where = operands.where
    source = arithmetic("add", place, integer(first, where)) if first else place
    full = integer(0xFFFFFFFF, where, UNSIGNED)
    assert isinstance(pointer.type, Pointer)
    return Shuffle(SHUFFLES["__shfl_sync"], full, pointer, source, None, pointer.type, where)


def _matrix(
    instruction: Instruction, operands: Operands, registers: str, memory: str, *, written: bool
) -> tuple[list[Expression], list[list[Expression]]]:
    """The registers, and for each the two cells of memory that its halves are."""
    held = list(operands.registers(registers, written=written))
    _, transposed = _rows(instruction, len(held))
    where = operands.where
    place = convert(lane(where), INT)
    four = integer(4, where)
    quarter, rest = arithmetic("divide", place, four), arithmetic("fmod", place, four)
    pair = arithmetic("multiply", rest, integer(2, where))
    cells: list[list[Expression]] = []
    for at, register in enumerate(held):
        kind = register.type
        if not isinstance(kind, Vector) or kind.lanes != 2 or kind.element.size != 2:
            raise Refused(f"what {instruction.name} moves is not known to be halves")
        pointer = operands.pointer(memory, kind.element)
        both: list[Expression] = []
        for half in (0, 1):
            along = arithmetic("add", pair, integer(half, where)) if half else pair
            row, column = (along, quarter) if transposed else (quarter, along)
            from_lane = _row(pointer, 8 * at, row, operands)
            both.append(operands.cell(from_lane, column, kind.element))
        cells.append(both)
    return held, cells


def _ldmatrix(instruction: Instruction, operands: Operands) -> list[Statement]:
    if len(instruction.operands) != 2:
        raise Refused(f"the PTX instruction {instruction.opcode} is not understood")
    registers, memory = instruction.operands
    held, cells = _matrix(instruction, operands, registers, memory, written=True)
    made: list[Statement] = []
    for register, parts in zip(held, cells, strict=True):
        assert isinstance(register.type, Vector)
        made.append(operands.assign(register, operands.pair(parts, register.type)))
    return made


def _stmatrix(instruction: Instruction, operands: Operands) -> list[Statement]:
    if len(instruction.operands) != 2:
        raise Refused(f"the PTX instruction {instruction.opcode} is not understood")
    memory, registers = instruction.operands
    held, cells = _matrix(instruction, operands, registers, memory, written=False)
    return [
        operands.assign(cell, operands.half(register, at))
        for register, parts in zip(held, cells, strict=True)
        for at, cell in enumerate(parts)
    ]


def _cp(instruction: Instruction, operands: Operands) -> list[Statement]:
    words = instruction.modifiers
    where = operands.where
    if words[:1] != ("async",) or "bulk" in words:
        raise Refused(f"the PTX instruction {instruction.opcode} is not understood")
    if words == ("async", "commit_group"):
        return [AsyncGroup("commit", 0, False, where)]
    if words == ("async", "wait_all"):
        return [AsyncGroup("wait", 0, True, where)]
    if words == ("async", "wait_group") and len(instruction.operands) == 1:
        return [AsyncGroup("wait", operands.constant(instruction.operands[0]), False, where)]
    places = [one for one in words[1:] if one.split("::")[0] in ("shared", "global")]
    if len(places) != 2 or places[0].split("::")[0] != "shared":
        raise Refused(f"the PTX instruction {instruction.opcode} is not understood")
    if not 3 <= len(instruction.operands) <= 4:
        raise Refused(f"{instruction.opcode} with a cache policy is not understood")
    size = operands.constant(instruction.operands[2])
    if size not in (4, 8, 16):
        raise Refused(f"cp.async does not copy {size} bytes")
    target = operands.address(instruction.operands[0])
    source = operands.address(instruction.operands[1])
    some = operands.value(instruction.operands[3]) if len(instruction.operands) == 4 else None
    return [copied(target, source, size, some, where)]


_HANDLERS: dict[str, Callable[[Instruction, Operands], list[Statement]]] = {
    "mma": _mma,
    "ldmatrix": _ldmatrix,
    "stmatrix": _stmatrix,
    "cp": _cp,
}
