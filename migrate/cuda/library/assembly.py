"""Inline assembly as written: instructions with their operands, nothing typed yet.

The grammar of the operands is GCC's, which nvcc takes over (Inline PTX Assembly in CUDA):
`asm(text : outputs : inputs : clobbers)`, `%0` for the first of outputs and inputs together, `%%`
for a percent sign.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

MAX_INSTRUCTIONS = 256


@dataclass(frozen=True, slots=True)
class Instruction:
    """`@p name.modifier.modifier a, {b, c}, [d];`: the operands as text, outer commas split."""

    name: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    predicate: str = ""

    @property
    def opcode(self) -> str:
        return ".".join((self.name, *self.modifiers))


@dataclass(frozen=True, slots=True)
class Assembly:
    """Instructions in order; `operands` are constraint and expression, outputs first.

    `registers` are the names that the text declares, with the type of each.
    """

    instructions: tuple[Instruction, ...]
    operands: tuple[tuple[str, Node], ...]
    registers: tuple[tuple[str, str], ...]


_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+([\w\s,$%]+)\Z")
_INSTRUCTION = re.compile(r"(?:@(!?[\w%$]+)\s+)?([a-z][\w.:]*)\s*(.*)\Z", re.DOTALL)


def assembly(node: Node, text: str) -> Assembly | str:
    """An `asm` statement taken apart; why not, as text.

    `text` is that of the statement's string literals, in order.
    """
    code = "".join(_unescaped(found) for found in _STRING.findall(text))
    code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", code, flags=re.DOTALL)
    instructions: list[Instruction] = []
    registers: list[tuple[str, str]] = []
    for piece in _pieces(code):
        declared = _REGISTERS.match(piece)
        if declared is not None:
            names = [name.strip() for name in declared.group(2).split(",")]
            registers += [(name, declared.group(1)) for name in names if name]
            continue
        found = _INSTRUCTION.match(piece)
        if found is None:
            return "this assembly is not understood"
        name, *modifiers = found.group(2).replace("::", "#").split(".")
        made = Instruction(
            name,
            tuple(one.replace("#", "::") for one in modifiers),
            _operands(found.group(3)),
            found.group(1) or "",
        )
        instructions.append(made)
        if len(instructions) > MAX_INSTRUCTIONS:
            return f"assembly of more than {MAX_INSTRUCTIONS} instructions"
    operands: list[tuple[str, Node]] = []
    for field in ("output_operands", "input_operands"):
        listed = node.child_by_field_name(field)
        for child in listed.named_children if listed is not None else []:
            constraint = child.child_by_field_name("constraint")
            value = child.child_by_field_name("value")
            if constraint is None or value is None or constraint.text is None:
                return "an operand of this assembly is not understood"
            operands.append((constraint.text.decode("utf-8", "replace").strip('"'), value))
    return Assembly(tuple(instructions), tuple(operands), tuple(registers))


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found.group(1), " "), text)


def _pieces(code: str) -> list[str]:
    """Statements between semicolons, without the braces of a scope around them."""
    pieces: list[str] = []
    for piece in code.split(";"):
        plain = piece.strip()
        # A scope's brace stands before a statement; those of operands follow an opcode.
        while plain[:1] in ("{", "}"):
            plain = plain[1:].strip()
        if plain:
            pieces.append(plain)
    return pieces


def _operands(text: str) -> tuple[str, ...]:
    parts: list[str] = []
    depth, start = 0, 0
    for at, character in enumerate(text):
        if character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return tuple(part for part in parts if part)


def listed(operand: str) -> list[str]:
    """The registers of `{a, b}`, or of a single one."""
    inner = operand.strip()
    if inner.startswith("{"):
        inner = inner.strip("{}")
    return [part.strip() for part in inner.split(",") if part.strip()]


def number_of(register: str) -> int | None:
    """Which operand `%3` is; `None` for a register by name."""
    return int(register[1:]) if re.fullmatch(r"%\d{1,3}", register) else None
