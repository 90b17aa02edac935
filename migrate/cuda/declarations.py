"""Declarations inside functions: variables, objects, references, types."""

from __future__ import annotations

from msgspec.structs import replace
from tree_sitter import Node

from migrate.cuda import closures, names, objects
from migrate.cuda.ast import (
    Declare,
    Evaluate,
    Expression,
    Literal,
    Name,
    OpaqueExpression,
    Statement,
    Storage,
)
from migrate.cuda.braces import braced
from migrate.cuda.conversions import decay, is_place
from migrate.cuda.declarators import Declared, declared
from migrate.cuda.definitions import children_of
from migrate.cuda.expressions import expression, extent, resolve
from migrate.cuda.folding import fold
from migrate.cuda.library import registry
from migrate.cuda.library.registers import retyped
from migrate.cuda.operators import cast_to
from migrate.cuda.scope import Scope
from migrate.cuda.types import (
    ADDRESS,
    INT,
    Array,
    Library,
    Pointer,
    Struct,
    Type,
    Unknown,
    Vector,
    understood,
)


def declaration(node: Node, scope: Scope) -> list[Statement]:
    words = {scope.text(child) for child in node.children if child.type in _QUALIFIERS}
    type_node = node.child_by_field_name("type")
    declarators = node.children_by_field_name("declarator")
    if type_node is not None and type_node.child_by_field_name("body") is not None:
        _local_definition(type_node, scope)
        if not declarators:
            return []
    auto = type_node is not None and type_node.type == "placeholder_type_specifier"
    base = Unknown("auto") if auto else resolve(type_node, scope)
    out: list[Statement] = []
    for declarator in declarators:
        out += _declare(declarator, base, auto, words, node, scope)
    if not declarators:
        out.append(scope.opaque_statement(node, "this declaration names nothing"))
    return out


def _local_definition(node: Node, scope: Scope) -> None:
    """A struct or an enumeration that a function defines."""
    name = node.child_by_field_name("name")
    if node.type == "enum_specifier":
        _enumerators(node, scope)
        if name is not None:
            scope.local_types[-1][scope.text(name)] = resolve(node, scope)
    elif name is not None:
        scope.local_types[-1][scope.text(name)] = scope.classes.local(node, scope)


def _enumerators(node: Node, scope: Scope) -> None:
    following = 0
    for child in children_of(node.child_by_field_name("body")):
        if child.type != "enumerator":
            continue
        name = child.child_by_field_name("name")
        value = child.child_by_field_name("value")
        found = extent(value, scope) if value is not None else following
        if name is not None and found is not None:
            scope.frames[-1][scope.text(name)] = Literal(found, INT, scope.where(child))
        following = (found or 0) + 1


def specified(node: Node, scope: Scope) -> list[Statement]:
    if node.child_by_field_name("body") is not None:
        _local_definition(node, scope)
    return []


_QUALIFIERS = frozenset({"type_qualifier", "storage_class_specifier"})


def _declare(
    declarator: Node, base: Type, auto: bool, words: set[str], node: Node, scope: Scope
) -> list[Statement]:
    const = bool(words & {"const", "constexpr"})
    if declarator.type in ("init_declarator", "structured_binding_declarator") and (
        (declarator.child_by_field_name("declarator") or declarator).type
        == "structured_binding_declarator"
    ):
        return [scope.opaque_statement(node, "a structured binding is not understood")]
    what = declared(declarator, base, scope, extent, const=const)
    if what.name in scope.held:
        what = replace(what, type=retyped(what.type, scope.held[what.name]))
    const = const and not isinstance(what.type, Pointer)
    where = scope.where(declarator)
    value_node = declarator.child_by_field_name("value")
    if value_node is None:
        # Of `if (T v = value)` it hangs beside the declarator.
        value_node = node.child_by_field_name("value")
    shared = "__shared__" in words
    storage: Storage = ("dynamic-shared" if "extern" in words else "shared") if shared else "local"
    if "static" in words and not shared and not const:
        return [scope.opaque_statement(node, "a static local variable is not understood")]
    if isinstance(what.type, Library):
        return registry.declare(what.name, what.type, value_node, node, scope)
    if registry.is_storage(what.type):
        scope.declare(what.name, what.type, storage, where)
        return []
    if value_node is not None and value_node.type == "lambda_expression" and auto:
        scope.frames[-1][what.name] = closures.closure(value_node, scope)
        return []
    if what.constructor is not None:
        return _constructed(what, const, node, scope)
    if isinstance(what.type, Struct) and not what.reference:
        made = _struct(what, value_node, storage, const, node, scope)
        if made is not None:
            return made
    initial = _initial(value_node, what, auto, node, scope)
    kind: Type = what.type
    if initial is not None and not isinstance(initial, tuple) and initial.type == ADDRESS:
        kind = ADDRESS
    if auto and isinstance(initial, tuple):
        return [scope.opaque_statement(node, "auto with braces is not understood")]
    if auto and initial is not None and not isinstance(initial, tuple):
        initial = decay(initial) if not what.reference else initial
        kind = initial.type if _open(what.type) else what.type
        if isinstance(kind, Library):
            return registry.declared(what.name, kind, node, scope)
    if isinstance(kind, Array) and kind.length is None and isinstance(initial, tuple):
        kind = Array(kind.element, len(initial) // max(parts_in(kind.element), 1))
    if what.reference:
        return _reference(what, kind, initial, const, node, scope)
    variable = scope.declare(what.name, kind, storage, where, const=const)
    if isinstance(kind, Unknown):
        reason = f"the type {kind} is not understood"
        if isinstance(initial, OpaqueExpression):
            reason = initial.reason
        return [scope.opaque_statement(node, reason)]
    if not understood(kind) and not isinstance(kind, Pointer):
        element = kind.element if isinstance(kind, Array) else kind
        return [scope.opaque_statement(node, f"a variable of {element} is not understood")]
    if const and initial is not None and not isinstance(initial, tuple):
        value = fold(initial, scope.known)
        if value is not None:
            scope.known[variable.id] = value
    out: list[Statement] = [Declare(variable, initial, scope.where(node))]
    if initial is None and isinstance(kind, Array) and storage == "local":
        name = Name(variable, kind, where)
        whole = scope.where(node)
        out += [Evaluate(e, whole) for e in objects.default_initialised(name, node, scope)]
    return out


def _open(kind: Type) -> bool:
    """Whether a type has `auto` in it: `auto`, `auto*`."""
    while isinstance(kind, Pointer | Array):
        kind = kind.element
    return isinstance(kind, Unknown)


def _reference(
    what: Declared,
    kind: Type,
    initial: Expression | tuple[Expression, ...] | None,
    const: bool,
    node: Node,
    scope: Scope,
) -> list[Statement]:
    """`T& name = place;`: the place gets another name, evaluated once."""
    where = scope.where(node)
    place = initial if initial is not None and not isinstance(initial, tuple) else None
    if place is not None and isinstance(place.type, Unknown):
        scope.declare(what.name, place.type, "local", where, const=const)
        return [scope.opaque_statement(node, f"what {what.name} refers to is not understood")]
    if place is not None and is_place(place):
        variable = scope.declare(what.name, place.type, "reference", where)
        return [Declare(variable, place, where)]
    if place is None or isinstance(kind, Unknown):
        scope.declare(what.name, kind, "local", where, const=const)
        return [scope.opaque_statement(node, "this reference names no place")]
    # A reference to a value keeps it alive: it is a variable.
    value = objects.fitted(place, kind, node, scope)
    variable = scope.declare(what.name, kind, "local", where, const=const)
    return [Declare(variable, value, where)]


def _struct(
    what: Declared,
    value: Node | None,
    storage: Storage,
    const: bool,
    node: Node,
    scope: Scope,
) -> list[Statement] | None:
    """An object of a struct type; `None` for one that is copied from a value."""
    kind = what.type
    where = scope.where(node)
    assert isinstance(kind, Struct)
    if not understood(kind):
        held = next((m for m in kind.members if not understood(m.type)), None)
        if held is not None and not isinstance(held.type, Pointer):
            reason = f"the type {held.type} of {kind}::{held.name} is not understood"
            scope.declare(what.name, kind, storage, where, const=const)
            return [scope.opaque_statement(node, reason)]
    owner = scope.classes.of(kind)
    arguments: list[Expression] | None = None
    if value is None:
        variable = scope.declare(what.name, kind, storage, where, const=const)
        place = Name(variable, kind, where)
        out: list[Statement] = [Declare(variable, None, where)]
        if storage == "local":
            out += [Evaluate(e, where) for e in objects.default_initialised(place, node, scope)]
        return out
    if value.type == "argument_list":
        arguments = [expression(child, scope) for child in children_of(value)]
    elif value.type == "initializer_list":
        if owner is not None and objects.constructors(owner, scope):
            arguments = [
                braced(child, Unknown("braces"), scope)
                if child.type == "initializer_list"
                else expression(child, scope)
                for child in children_of(value)
            ]
    if arguments is None:
        return None
    if owner is None or not objects.constructors(owner, scope):
        initial = objects.construct(kind, arguments, node, scope)
        variable = scope.declare(what.name, kind, storage, where, const=const)
        return [Declare(variable, initial, where)]
    if len(arguments) == 1 and arguments[0].type == kind:
        variable = scope.declare(what.name, kind, storage, where, const=const)
        return [Declare(variable, arguments[0], where)]
    variable = scope.declare(what.name, kind, storage, where, const=const)
    place = Name(variable, kind, where)
    made = objects.construct_at(place, arguments, node, scope)
    return [Declare(variable, None, where), Evaluate(made, where)]


def _initial(
    node: Node | None, what: Declared, auto: bool, whole: Node, scope: Scope
) -> Expression | tuple[Expression, ...] | None:
    if node is None:
        return None
    kind = what.type
    if node.type == "initializer_list":
        if isinstance(kind, Array):
            return array_values(node, kind, scope)
        return braced(node, kind, scope)
    if node.type == "argument_list":
        children = [child for child in node.named_children if child.type != "comment"]
        if isinstance(kind, Vector) and len(children) != 1:
            from migrate.cuda.calls import vector

            return vector(kind, [expression(child, scope) for child in children], whole, scope)
        if len(children) != 1:
            return scope.opaque(whole, f"the construction of {kind} is not understood", kind)
        node = children[0]
    value = expression(node, scope)
    if auto or what.reference or isinstance(kind, Unknown):
        return value
    return objects.fitted(value, kind, whole, scope)


def array_values(node: Node, kind: Array, scope: Scope) -> tuple[Expression, ...]:
    """The scalars of a braced initialiser in memory order, zeros filled in between."""
    element = kind.element
    out: list[Expression] = []
    children = [child for child in node.named_children if child.type != "comment"]
    if kind.length is not None and len(children) > kind.length:
        return (scope.opaque(node, "there are more values than elements"),)
    for child in children:
        if isinstance(element, Array):
            if child.type != "initializer_list":
                # Without inner braces the values fill the array's scalars in order.
                return array_values(node, _flattened(kind), scope)
            inner = list(array_values(child, element, scope))
            filler = objects.zero(_leaf(element), scope.where(child))
            if filler is not None:
                inner += [filler] * (parts_in(element) - len(inner))
            out += inner
        elif child.type == "initializer_list":
            out.append(braced(child, element, scope))
        else:
            out.append(objects.fitted(expression(child, scope), element, child, scope))
    return tuple(out)


def _leaf(kind: Type) -> Type:
    while isinstance(kind, Array):
        kind = kind.element
    return kind


def parts_in(kind: Type) -> int:
    """How many values a braced initialiser of this type takes, nested arrays taken apart."""
    return parts_in(kind.element) * (kind.length or 0) if isinstance(kind, Array) else 1


def _flattened(kind: Array) -> Array:
    inner: Type = kind
    count = 1
    while isinstance(inner, Array):
        count *= inner.length or 0
        inner = inner.element
    return Array(inner, count)


def _constructed(what: Declared, const: bool, node: Node, scope: Scope) -> list[Statement]:
    """`T v(a, b);` with plain names, which reads as a prototype."""
    arguments: list[Expression] = []
    for parameter in children_of(what.constructor):
        inner = parameter.child_by_field_name("type")
        found = scope.lookup(scope.text(inner)) if inner is not None else None
        value = names.meant(found, scope.where(inner)) if inner is not None and found else None
        if value is None and inner is not None and parameter.child_count == 1:
            mark = len(scope.issues)
            value = names.identifier(scope.text(inner), inner, scope)
            del scope.issues[mark:]
        whole = inner is not None and scope.text(inner) == scope.text(parameter)
        if value is None or not whole or isinstance(value.type, Unknown):
            return [scope.opaque_statement(node, "a function declared inside a function")]
        arguments.append(value)
    kind = what.type
    value = _built(kind, arguments, node, scope)
    if isinstance(kind, Struct) and arguments:
        owner = scope.classes.of(kind)
        if owner is not None and objects.constructors(owner, scope):
            variable = scope.declare(what.name, kind, "local", scope.where(node), const=const)
            place = Name(variable, kind, scope.where(node))
            if len(arguments) > 1 or arguments[0].type != kind:
                made = objects.construct_at(place, arguments, node, scope)
                where = scope.where(node)
                return [Declare(variable, None, where), Evaluate(made, where)]
            return [Declare(variable, arguments[0], scope.where(node))]
    variable = scope.declare(what.name, kind, "local", scope.where(node), const=const)
    return [Declare(variable, value, scope.where(node))]


def _built(kind: Type, arguments: list[Expression], node: Node, scope: Scope) -> Expression | None:
    if isinstance(kind, Struct):
        owner = scope.classes.of(kind)
        if owner is not None and objects.constructors(owner, scope):
            return None
        return objects.construct(kind, arguments, node, scope)
    if isinstance(kind, Vector) and len(arguments) > 1:
        from migrate.cuda.calls import vector

        return vector(kind, arguments, node, scope)
    if len(arguments) == 1:
        return cast_to(kind, arguments[0], node, scope)
    return scope.opaque(node, f"the construction of {kind} is not understood", kind)


def local_type(node: Node, scope: Scope) -> list[Statement]:
    """`using T = ...;` and `typedef ... T;` inside a body."""
    type_node = node.child_by_field_name("type")
    target = resolve(type_node, scope)
    if type_node is not None and type_node.child_by_field_name("body") is not None:
        _local_definition(type_node, scope)
    if node.type == "alias_declaration":
        name = node.child_by_field_name("name")
        if name is not None:
            scope.local_types[-1][scope.text(name)] = target
        return []
    for declarator in node.children_by_field_name("declarator"):
        if declarator.type == "type_identifier":
            scope.local_types[-1][scope.text(declarator)] = target
        else:
            what = declared(declarator, target, scope, extent)
            scope.local_types[-1][what.name] = what.type
    return []
