"""What the untyped 32-bit registers of inline assembly hold.

A matrix instruction reads two halves from an `unsigned`.  A variable whose name is an operand of
one is therefore declared as what the instruction says it holds: `uint32_t a[4]` with halves in it
is an array of `__half2`.  A name that is used for several kinds keeps its type.  A variable that
is used as an address in shared memory holds a pointer in bytes, whatever integer it is declared as.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace
from tree_sitter import Node

from migrate.cuda.ast import Expression, OpaqueExpression, Shuffle
from migrate.cuda.library.build import by_component
from migrate.cuda.scope import Scope
from migrate.cuda.types import (
    ADDRESS,
    FLOAT_REGISTER,
    NAMED,
    Array,
    Pointer,
    Scalar,
    Type,
    Vector,
)

if TYPE_CHECKING:
    from migrate.cuda.library.assembly import Assembly, Instruction

_PACKED: dict[str, Type] = {
    "f16": NAMED["__half2"],
    "bf16": NAMED["__nv_bfloat162"],
    "tf32": FLOAT_REGISTER,
    "f32": FLOAT_REGISTER,
}

# Integers are exact whatever type holds them.
_WORDS = frozenset({*_PACKED, "f64", "s32", "s8", "u8"})


def code_of(node: Node, scope: Scope) -> Assembly | str:
    from migrate.cuda.library.assembly import assembly

    code = node.child_by_field_name("assembly_code")
    return assembly(node, scope.text(code) if code is not None else "")


def held_types(body: Node, scope: Scope) -> dict[str, Type]:
    """For names in a function's body, the type that inline assembly says their registers have."""
    text = scope.program.expanded.text
    if text.find(b"asm", body.start_byte, body.end_byte) < 0:
        return {}
    found: dict[str, Type | None] = {}
    loaded: list[str] = []
    pending = [body]
    while pending:
        scope.meter.step()
        node = pending.pop()
        if node.type != "gnu_asm_expression":
            pending += [
                child
                for child in node.named_children
                if text.find(b"asm", child.start_byte, child.end_byte) >= 0
            ]
            continue
        read = code_of(node, scope)
        if isinstance(read, str):
            continue
        for instruction in read.instructions:
            _note(instruction, read, found, loaded, scope)
    for name in loaded:
        # What ldmatrix loads has 16 bits; of which format, a product says.
        found.setdefault(name, NAMED["__half2"])
    if found:
        _copied(body, found, scope)
    return {name: kind for name, kind in found.items() if kind is not None}


def _note(
    instruction: Instruction,
    read: Assembly,
    found: dict[str, Type | None],
    loaded: list[str],
    scope: Scope,
) -> None:
    from migrate.cuda.library.assembly import listed, number_of

    def names(operand: str) -> list[str]:
        numbers = [number_of(register) for register in listed(operand.strip("[]"))]
        values = [read.operands[n][1] for n in numbers if n is not None and n < len(read.operands)]
        bases = [_base(value, scope) for value in values]
        return [base for base in bases if base is not None]

    def hold(operand: str, kind: Type | None) -> None:
        for name in names(operand):
            known = found.get(name, kind)
            found[name] = kind if known == kind else None

    match instruction.name:
        case "mma" if len(instruction.operands) == 4:
            kinds = [one for one in instruction.modifiers if one in _WORDS]
            if len(kinds) == 4:
                for operand, kind in zip(instruction.operands, kinds, strict=True):
                    if kind in _PACKED:
                        hold(operand, _PACKED[kind])
        case "ldmatrix" | "stmatrix" if len(instruction.operands) == 2:
            memory = instruction.operands[instruction.name == "ldmatrix"]
            registers = instruction.operands[instruction.name == "stmatrix"]
            loaded += names(registers)
            hold(memory, ADDRESS)
        case "cp" if "shared" in "".join(instruction.modifiers) and len(instruction.operands) >= 3:
            hold(instruction.operands[0], ADDRESS)


MAX_ROUNDS = 8


def _copied(body: Node, found: dict[str, Type | None], scope: Scope) -> None:
    """Packed registers that are copied or exchanged hold there what they held here."""
    moves: list[tuple[str, str]] = []
    pending = [body]
    while pending:
        scope.meter.step()
        node = pending.pop()
        pending += node.named_children
        match node.type:
            case "assignment_expression":
                target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
            case "init_declarator":
                target = node.child_by_field_name("declarator")
                value = node.child_by_field_name("value")
            case _:
                continue
        if value is not None and value.type == "call_expression":
            called = value.child_by_field_name("function")
            listed_ = value.child_by_field_name("arguments")
            given = listed_.named_children if listed_ is not None else []
            exchanged = called is not None and scope.text(called).startswith("__shfl")
            value = given[1] if exchanged and len(given) > 2 else None
        if target is None or value is None:
            continue
        to, source = _base(target, scope), _base(value, scope)
        if to is not None and source is not None:
            moves.append((to, source))
    for _ in range(MAX_ROUNDS):
        changed = False
        for to, source in moves:
            kind = found.get(source)
            if isinstance(kind, Vector) and to not in found:
                found[to] = kind
                changed = True
        if not changed:
            return


def _base(node: Node, scope: Scope) -> str | None:
    """The variable that an operand is, or is an element of."""
    for _ in range(16):
        match node.type:
            case "identifier":
                return scope.text(node)
            case "subscript_expression":
                inner = node.child_by_field_name("argument")
            case "parenthesized_expression":
                inner = node.named_children[0] if node.named_child_count == 1 else None
            case _:
                return None
        if inner is None:
            return None
        node = inner
    return None


def retyped(kind: Type, held: Type | None) -> Type:
    """A declared type with its 32-bit integers taken for what they hold."""
    if held is None:
        return kind
    match kind:
        case Scalar(is_integer=True) if kind.size == 4 or (held == ADDRESS and kind.size == 8):
            return held
        case Array() if held != ADDRESS and type(kind) is Array:
            return Array(retyped(kind.element, held), kind.length)
        case Pointer() if held != ADDRESS:
            inner = retyped(kind.element, held)
            return Pointer(inner, kind.const, kind.restrict, kind.volatile)
        case _:
            return kind


def are_registers(kind: Type, to: Type) -> bool:
    """Whether one type is a 32-bit integer and the other what such a register holds.

    C++ converts between no such types: the program wrote the integer for both, so it is the bits
    that are meant.
    """
    if isinstance(kind, Array) and isinstance(to, Array):
        same = kind.length == to.length or to.length is None
        return same and are_registers(kind.element, to.element)
    held = [one for one in (kind, to) if one in _PACKED.values()]
    words = [one for one in (kind, to) if isinstance(one, Scalar) and one.is_integer]
    return len(held) == 1 and len(words) == 1 and words[0].size == held[0].size


def register_as(value: Expression, to: Type, node: Node, scope: Scope) -> Expression:
    """The bits of a register as the other type; an exchange of it exchanges what it holds."""
    from migrate.cuda.calls import bits_as
    from migrate.cuda.conversions import convert

    if isinstance(value, Shuffle) and isinstance(to, Vector) and value.lane is not None:
        inner = convert(value.value, to)
        if not isinstance(inner, OpaqueExpression):
            return _exchanged(value, inner, value.lane, to)
    return bits_as(value, to, node, scope)


def _exchanged(exchange: Shuffle, value: Expression, lane: Expression, kind: Vector) -> Expression:
    """The same exchange of each component of what a register holds."""
    given = [value, exchange.participants, lane]
    if exchange.width is not None:
        given.append(exchange.width)

    def part(values: Sequence[Expression]) -> Expression:
        one = values[0]
        assert isinstance(one.type, Scalar)
        return replace(
            exchange,
            value=one,
            participants=values[1],
            lane=values[2],
            width=values[3] if len(values) > 3 else None,
            type=one.type,
        )

    return by_component(exchange.entry.name, given, part, kind, exchange.where)
