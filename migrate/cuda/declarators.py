"""Types and declared names from syntax nodes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from tree_sitter import Node

from migrate.cuda import traits
from migrate.cuda.ast import Literal
from migrate.cuda.classes import Class, literal_type
from migrate.cuda.definitions import children_of, template_of
from migrate.cuda.library import registry
from migrate.cuda.parse import Alias
from migrate.cuda.scope import Scope
from migrate.cuda.types import INT, Array, Pointer, Type, Unknown, named
from migrate.source import shortened

Extent = Callable[[Node, Scope], "int | None"]
_MAX_NESTING = 16

MAX_LEVELS = 16
"""Pointers and arrays around one type."""


class Declared(msgspec.Struct, frozen=True):
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
    kind = _type_of(node, scope, extent, depth)
    if isinstance(kind, Unknown) and node.type in _OF_LIBRARIES:
        return registry.type_of(node, scope) or kind
    return kind


_OF_LIBRARIES = frozenset(
    {"template_type", "template_function", "dependent_type", "qualified_identifier"}
)


def _type_of(node: Node, scope: Scope, extent: Extent, depth: int) -> Type:
    match node.type:
        case "type_descriptor":
            base = type_of(node.child_by_field_name("type"), scope, extent, depth + 1)
            around = node.child_by_field_name("declarator")
            if around is None:
                return base
            const = any(scope.text(child) == "const" for child in node.children)
            return declared(around, base, scope, extent, const=const).type
        case "primitive_type" | "sized_type_specifier":
            text = " ".join(scope.text(node).split())
            return named(text) or Unknown(shortened(text))
        case "type_identifier" | "identifier" | "namespace_identifier" | "field_identifier":
            return _by_name(scope.text(node), scope, extent, depth)
        case "dependent_type" | "dependent_name":
            inner = children_of(node)
            return type_of(inner[-1] if inner else None, scope, extent, depth + 1)
        case "template_type" | "template_function":
            return _template(node, scope, extent, depth)
        case "qualified_identifier":
            return _qualified(node, scope, extent, depth)
        case "decltype":
            return _decltype(node, scope, extent, depth)
        case "enum_specifier":
            return _enum(node, scope, extent, depth)
        case "struct_specifier" | "class_specifier" | "union_specifier":
            if node.child_by_field_name("body") is not None:
                return scope.classes.local(node, scope)
            return type_of(node.child_by_field_name("name"), scope, extent, depth + 1)
        case _:
            return Unknown(shortened(" ".join(scope.text(node).split())))


def _enum(node: Node, scope: Scope, extent: Extent, depth: int) -> Type:
    base = node.child_by_field_name("base")
    return INT if base is None else type_of(base, scope, extent, depth + 1)


def _decltype(node: Node, scope: Scope, extent: Extent, depth: int) -> Type:
    from migrate.cuda.expressions import expression

    inner = children_of(node)
    if len(inner) != 1:
        return Unknown(shortened(scope.text(node)))
    mark, waiting = len(scope.issues), len(scope.pending)
    kind = expression(inner[0], scope).type
    del scope.issues[mark:]
    del scope.pending[waiting:]
    return kind


def _template(node: Node, scope: Scope, extent: Extent, depth: int) -> Type:
    from migrate.cuda.templates import argument, complete

    name = scope.text(node.child_by_field_name("name") or node).strip()
    given = children_of(node.child_by_field_name("arguments"))
    plain = name.rsplit("::", 1)[-1]
    arguments = [argument(child, scope) for child in given]
    if scope.inside is not None and scope.classes.nested_template(scope.inside, plain):
        return Unknown(shortened(scope.text(node)))
    if scope.classes.known(plain):
        return scope.classes.named(plain, arguments, scope)
    alias = scope.program.aliases.get(plain)
    if alias is not None:
        around = alias.type.parent
        parameters = template_of(around, scope.text) if around is not None else ()
        bindings = complete(parameters, arguments, scope)
        if isinstance(bindings, str):
            return Unknown(shortened(f"{scope.text(node)} ({bindings})"))
        inner = Scope(scope.program, scope.meter, scope.resolver, scope.classes)
        inner.types = {k: v for k, v in bindings.items() if not isinstance(v, bool | int | float)}
        for parameter in parameters:
            value = bindings[parameter.name]
            if isinstance(value, bool | int | float):
                inner.frames[0][parameter.name] = Literal(
                    value, literal_type(value), scope.where(node)
                )
        return type_of(alias.type, inner, extent, depth + 1)
    found = traits.type_trait(plain, arguments)
    if found is not None:
        return found
    return Unknown(shortened(" ".join(scope.text(node).split())))


def _qualified(node: Node, scope: Scope, extent: Extent, depth: int) -> Type:
    around = node.child_by_field_name("scope")
    last = node.child_by_field_name("name")
    if last is None:
        return Unknown(shortened(scope.text(node)))
    if around is None:
        return type_of(last, scope, extent, depth + 1)
    owner = class_named(around, scope, extent, depth + 1)
    if owner is None:
        found = type_of(last, scope, extent, depth + 1)
        if isinstance(found, Unknown) and around.type != "namespace_identifier":
            return Unknown(shortened(" ".join(scope.text(node).split())))
        return found
    if isinstance(owner, Class):
        inner = scope.classes.scope(owner, scope)
        if last.type in ("type_identifier", "identifier"):
            member = scope.classes.member_type(owner, scope.text(last), scope)
            if member is not None:
                return member
            return Unknown(shortened(" ".join(scope.text(node).split())))
        return type_of(last, inner, extent, depth + 1)
    # The result of a trait: `std::conditional<c, A, B>::type`.
    if scope.text(last) == "type":
        return owner
    return Unknown(shortened(" ".join(scope.text(node).split())))


def class_named(node: Node, scope: Scope, extent: Extent, depth: int = 0) -> Class | Type | None:
    """What stands before `::`: a class, another type, or `None` for a namespace."""
    if node.type == "namespace_identifier":
        text = scope.text(node)
        if not (is_type_name(text, scope) or scope.classes.known(text)):
            return None
    kind = type_of(node, scope, extent, depth + 1)
    owner = scope.classes.of(kind)
    if owner is not None:
        return owner
    return kind if not isinstance(kind, Unknown) else None


def _by_name(name: str, scope: Scope, extent: Extent, depth: int) -> Type:
    bound = scope.type_named(name)
    if bound is not None:
        return bound
    plain = name.rsplit("::", 1)[-1]
    if scope.inside is not None:
        member = scope.classes.member_type(scope.inside, plain, scope)
        if member is not None:
            return member
    alias: Alias | None = scope.program.aliases.get(plain)
    if alias is not None and not alias.template:
        base = type_of(alias.type, _file_scope(scope), extent, depth + 1)
        if isinstance(base, Unknown) and named(plain) is not None:
            return named(plain) or base
        if alias.declarator is None or alias.declarator.type == "type_identifier":
            return base
        return declared(alias.declarator, base, scope, extent).type
    if scope.classes.known(plain):
        return scope.classes.named(plain, (), scope)
    return named(name) or registry.type_named(name, scope) or Unknown(shortened(name))


def _file_scope(scope: Scope) -> Scope:
    """Names as they are outside every function."""
    return Scope(scope.program, scope.meter, scope.resolver, scope.classes, depth=scope.depth)


def aliased(target: Node, declarator: Node | None, scope: Scope) -> Type:
    """The type of a `using` or `typedef` of a class."""
    from migrate.cuda.expressions import extent

    base = type_of(target, scope, extent)
    if declarator is None or declarator.type == "type_identifier":
        return base
    return declared(declarator, base, scope, extent).type


def declared(
    node: Node, base: Type, scope: Scope, extent: Extent, *, const: bool = False
) -> Declared:
    """The name and type of a declarator around `base`.

    Works from the outside in, which is the order C declares in: `float *a[4]` is an array.
    """
    if node.type == "identifier":
        return Declared(scope.text(node), base, node, reference=False, constructor=None)
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
    plain = name.rsplit("::", 1)[-1].strip()
    return (
        scope.type_named(name) is not None
        or (
            scope.inside is not None
            and scope.classes.member_type(scope.inside, plain, scope) is not None
        )
        or plain in scope.program.aliases
        or scope.classes.known(plain)
        or named(name) is not None
    )
