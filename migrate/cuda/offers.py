"""What a definition takes with given template arguments: its parameters, and for whom it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from tree_sitter import Node

from migrate.cuda.ast import (
    Component,
    Element,
    Expression,
    Name,
    Storage,
)
from migrate.cuda.conversions import decay, is_place
from migrate.cuda.declarators import declared
from migrate.cuda.definitions import (
    children_of,
    parameter_nodes,
)
from migrate.cuda.expressions import extent, resolve
from migrate.cuda.parse import Definition
from migrate.cuda.scope import Binding, Scope
from migrate.cuda.templates import argument, bind, same, supply
from migrate.cuda.types import (
    Array,
    Pointer,
    Struct,
    Type,
    Unknown,
    in_memory,
)


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of an instantiated function; `reference` for one that takes a place."""

    name: str
    type: Type
    reference: bool
    const: bool
    node: Node
    default: Node | None

    @property
    def changes(self) -> bool:
        """Whether the function may write to what it is given."""
        return self.reference and not self.const

    @property
    def storage(self) -> Storage:
        return "reference" if self.reference else "parameter"


def bound_scope(
    definition: Definition, bindings: Mapping[str, Binding], scope: Scope
) -> Scope | str:
    for parameter in definition.template:
        value = supply(parameter, bindings.get(parameter.name), scope)
        if isinstance(value, str):
            return value
        if isinstance(value, Unknown) and parameter.name not in bindings:
            return f"template parameter {parameter.name} has no value"
        bind(parameter, value, scope, scope)
    return scope


def parameters_of(
    definition: Definition, scope: Scope, arguments: Sequence[Expression] = ()
) -> tuple[Parameter, ...]:
    made: list[Parameter] = []
    for position, child in enumerate(parameter_nodes(definition.node)):
        type_node = child.child_by_field_name("type")
        auto = type_node is not None and type_node.type == "placeholder_type_specifier"
        base = Unknown("auto") if auto else resolve(type_node, scope)
        const = any(scope.text(word) == "const" for word in child.children if word.is_named)
        default = child.child_by_field_name("default_value")
        declarator = child.child_by_field_name("declarator")
        if declarator is None:
            made.append(Parameter("", base, False, const, child, default))
            continue
        if auto and position < len(arguments):
            base = decay(arguments[position]).type
            if "pointer" in declarator.type and isinstance(base, Pointer):
                base = base.element
        what = declared(declarator, base, scope, extent, const=const)
        kind = what.type
        reference = what.reference
        if isinstance(kind, Array) and not reference:
            kind = Pointer(kind.element, const=const)
        elif reference and const and not in_memory(kind) and not isinstance(kind, Struct):
            # Nobody writes through it, and a value may be given.
            reference = False
        if what.constructor is not None:
            kind = Unknown(f"function {what.name}")
            if position < len(arguments):
                kind = arguments[position].type
        made.append(Parameter(what.name, kind, reference, const, child, default))
    return tuple(made)


def specialised_for(definition: Definition, given: Sequence[Binding], scope: Scope) -> bool | None:
    """Whether a full specialisation is for the template arguments that are written.

    False where that leaves it open: its parameters decide.  `None` for other arguments.
    """
    declarator = definition.node.child_by_field_name("declarator")
    while declarator is not None and declarator.type not in (
        "template_function",
        "qualified_identifier",
    ):
        following = declarator.child_by_field_name("declarator")
        declarator = following or next(
            (c for c in declarator.named_children if "declarator" in c.type), None
        )
    if declarator is not None and declarator.type == "qualified_identifier":
        declarator = declarator.child_by_field_name("name")
    if declarator is None or declarator.type != "template_function":
        return False
    listed = children_of(declarator.child_by_field_name("arguments"))
    wanted = [argument(child, scope) for child in listed]
    if not all(same(a, b) for a, b in zip(wanted, given, strict=False)):
        return None
    return bool(given) and len(given) >= len(wanted)


def exactly(definition: Definition, arguments: Sequence[Expression], scope: Scope) -> bool:
    """Whether the arguments have the very types of the parameters."""
    for child, value in zip(parameter_nodes(definition.node), arguments, strict=False):
        kind = resolve(child.child_by_field_name("type"), scope)
        declarator = child.child_by_field_name("declarator")
        if declarator is not None:
            kind = declared(declarator, kind, scope, extent).type
        if not same(kind, decay(value).type):
            actual = decay(value).type
            both = isinstance(kind, Pointer) and isinstance(actual, Pointer)
            if not (both and kind.element == actual.element):  # type: ignore[union-attr]
                return False
    return True


def specificity(definition: Definition) -> int:
    """How much a function template's parameters say, which decides between two that fit.

    `f(T*)` is more special than `f(T)`, and `f(Pair<T>)` than both (C++ [temp.func.order], as far
    as it can be told from the form of the parameters).
    """
    if not definition.template:
        return 0
    open_names = {parameter.name.encode() for parameter in definition.template}
    total = 0
    for child in parameter_nodes(definition.node):
        base = child.child_by_field_name("type")
        if base is not None and base.text not in open_names:
            total += 2
        declarator = child.child_by_field_name("declarator")
        for _ in range(16):
            if declarator is None:
                break
            total += declarator.type.startswith(("pointer", "array", "abstract_pointer"))
            following = declarator.child_by_field_name("declarator")
            declarator = following or next(
                (c for c in declarator.named_children if "declarator" in c.type), None
            )
    return total


def qualified_further(parameter: Parameter, value: Expression) -> int:
    """1 where a parameter adds `const` or `volatile` that the argument does not have."""
    words = {child.text for child in parameter.node.children if child.type == "type_qualifier"}
    declarator = parameter.node.child_by_field_name("declarator")
    if b"volatile" in words:
        return 1
    if b"const" not in words or declarator is None:
        return 0
    if isinstance(parameter.type, Pointer) and isinstance(value.type, Pointer | Array):
        return int(isinstance(value.type, Array) or not value.type.const)
    return int("reference" in declarator.type and is_place(value) and not is_const(value))


def is_const(value: Expression) -> bool:
    """Whether a place cannot be assigned to, as far as its root tells."""
    while isinstance(value, Component | Element):
        if isinstance(value.base.type, Pointer):
            return value.base.type.const
        value = value.base
    if not isinstance(value, Name) or isinstance(value.type, Pointer):
        return False
    return value.variable.const
