"""Types and declared names from syntax nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tree_sitter import Node

from migrate.cuda.parse import Alias
from migrate.cuda.scope import Scope
from migrate.cuda.types import INT, Array, Pointer, Type, Unknown, named
from migrate.source import shortened

Extent = Callable[[Node, Scope], "int | None"]
_MAX_NESTING = 16

MAX_LEVELS = 16
"""Pointers and arrays around one type."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A name with its type; `reference` for `&` and `&&`."""

    name: str
    type: Type
    node: Node
    reference: bool = False
    constructor: Node | None = None


def type_of(node: Node | None, scope: Scope, extent: Extent, depth: int = 0) -> Type:
    """The type that a type specifier or a type descriptor names."""
    if node is None or depth > _MAX_NESTING:
        return Unknown("")
    match node.type:
        case "type_descriptor":
            base = type_of(node.child_by_field_name("type"), scope, extent, depth + 1)
            around = node.child_by_field_name("declarator")
            const = any(scope.text(child) == "const" for child in node.children)
            if around is None:
                return base
            return declared(around, base, scope, extent, const=const).type
        case "primitive_type" | "sized_type_specifier":
            text = " ".join(scope.text(node).split())
            return named(text) or Unknown(shortened(text))
        case "type_identifier" | "qualified_identifier" | "identifier":
            return _by_name(scope.text(node), scope, extent, depth)
        case "enum_specifier":
            return INT
        case _:
            return Unknown(" ".join(scope.text(node).split())[:80])


def _by_name(name: str, scope: Scope, extent: Extent, depth: int) -> Type:
    bound = scope.type_named(name)
    if bound is not None:
        return bound
    alias: Alias | None = scope.program.aliases.get(name.rsplit("::", 1)[-1])
    if alias is not None and not alias.template:
        base = type_of(alias.type, scope, extent, depth + 1)
        if alias.declarator is None or alias.declarator.type == "type_identifier":
            return base
        return declared(alias.declarator, base, scope, extent).type
    return named(name) or Unknown(shortened(name))


def declared(
    node: Node, base: Type, scope: Scope, extent: Extent, *, const: bool = False
) -> Declared:
    """The name and type of a declarator around `base`.

    Works from the outside in, which is the order C declares in: `float *a[4]` is an array.
    """
    kind = base
    reference = False
    current: Node | None = node
    constructor: Node | None = None
    levels = 0
    while current is not None:
        match current.type:
            case "pointer_declarator" | "abstract_pointer_declarator":
                words = {scope.text(child) for child in current.children if child.is_named}
                levels += 1
                if levels <= MAX_LEVELS:
                    kind = Pointer(
                        kind,
                        const=const,
                        restrict=bool(words & {"__restrict__", "restrict"}),
                    )
                const = False
                following = current.child_by_field_name("declarator")
                if following is None:
                    qualifiers = ("type_qualifier", "ms_pointer_modifier")
                    rest = [c for c in current.named_children if c.type not in qualifiers]
                    following = rest[0] if rest else None
                current = following
            case "reference_declarator" | "abstract_reference_declarator":
                reference = True
                current = current.named_children[0] if current.named_children else None
            case "array_declarator" | "abstract_array_declarator":
                lengths: list[int | None] = []
                while current is not None and current.type in (
                    "array_declarator",
                    "abstract_array_declarator",
                ):
                    size = current.child_by_field_name("size")
                    length = extent(size, scope) if size is not None else None
                    if size is not None and length is None:
                        kind = Unknown(f"array of unknown length {shortened(scope.text(size))}")
                    elif length is not None and length < 0:
                        kind = Unknown("array of negative length")
                    lengths.append(length)
                    current = current.child_by_field_name("declarator")
                levels += len(lengths)
                for length in lengths if levels <= MAX_LEVELS else ():
                    kind = Array(kind, length)
            case "init_declarator":
                current = current.child_by_field_name("declarator")
            case "parenthesized_declarator" | "abstract_parenthesized_declarator":
                current = current.named_children[0] if current.named_children else None
            case "function_declarator":
                # `T v(a, b);` with plain names reads as a prototype but declares an object.
                constructor = current.child_by_field_name("parameters")
                current = current.child_by_field_name("declarator")
            case _:
                if levels > MAX_LEVELS:
                    kind = Unknown(f"type of more than {MAX_LEVELS} levels")
                return Declared(scope.text(current), kind, current, reference, constructor)
    return Declared("", kind, node, reference, constructor)


def is_type_name(name: str, scope: Scope) -> bool:
    """Whether a name is a type here (needed where the grammar cannot know)."""
    plain = name.rsplit("::", 1)[-1]
    return (
        scope.type_named(name) is not None
        or plain in scope.program.aliases
        or named(name) is not None
    )
