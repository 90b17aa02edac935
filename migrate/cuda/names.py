"""What an identifier means: a variable, a member, a constant, a function."""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

from migrate.cuda import traits
from migrate.cuda.ast import Cast, Declare, Expression, Literal, Name, Storage, Variable
from migrate.cuda.classes import Class
from migrate.cuda.declarators import class_named, declared
from migrate.cuda.definitions import children_of, template_of
from migrate.cuda.folding import fold
from migrate.cuda.intrinsics import CONSTANTS
from migrate.cuda.library import registry
from migrate.cuda.origins import Where
from migrate.cuda.parse import FileVariable
from migrate.cuda.scope import MAX_DEPTH, Binding, Bound, Closure, Meaning, Scope
from migrate.cuda.types import (
    BOOL,
    INT,
    VOID,
    Array,
    Pointer,
    Routine,
    Scalar,
    Struct,
    Type,
    Unknown,
    scalar_of,
    scalars_in,
)


def meant(found: Meaning, where: Where) -> Expression | None:
    """The expression for what a name of the function means; `None` for a closure."""
    match found:
        case Variable():
            return Name(found, found.type, where)
        case Literal():
            return Literal(found.value, found.type, where)
        case Bound(expression=expression):
            return expression
        case Closure():
            return None


def identifier(text: str, node: Node, scope: Scope) -> Expression:
    """A plain name used as a value."""
    found = scope.lookup(text)
    where = scope.where(node)
    if isinstance(found, Closure):
        from migrate.cuda import closures

        return closures.value(found, node, scope)
    if found is not None:
        made = meant(found, where)
        assert made is not None
        if isinstance(made.type, Unknown):
            reason = f"{text} is of type {made.type}, which is not understood"
            return scope.opaque(node, reason, made.type)
        return made
    plain = text.rsplit("::", 1)[-1]
    inside = member(plain, node, scope)
    if inside is not None:
        return inside
    if plain == "warpSize":
        return Literal(32, INT, where)
    if plain in ("NULL", "nullptr"):
        return null(where)
    made = constant_named(plain, node, scope)
    if made is not None:
        return made
    if plain in scope.program.functions:
        return routine(plain, where)
    return scope.opaque(node, f"{plain} is not defined in this file")


def null(where: Where) -> Expression:
    return Cast(Literal(0, INT, where), Pointer(VOID), where, written=False)


def routine(name: str, where: Where) -> Expression:
    """A function as a value: there is nothing to it but its type."""
    return Cast(Literal(0, INT, where), Routine(name), where, written=False)


def member(name: str, node: Node, scope: Scope) -> Expression | None:
    """A name inside a method that means a member of its class."""
    from migrate.cuda import objects

    if scope.inside is None:
        return None
    if scope.this is not None:
        kind = scope.this.type
        if isinstance(kind, Struct) and kind.index(name) is not None:
            return objects.member(scope.this, name, node, scope)
    return scope.classes.member_constant(scope.inside, name, scope)


def constant_named(name: str, node: Node, scope: Scope) -> Expression | None:
    """An enumerator, a file-scope variable or a named constant; `None` for none of them."""
    if name in scope.program.enumerators:
        return _enumerator(node, name, scope)
    if name in scope.program.variables:
        return file_variable(node, name, scope)
    if name in CONSTANTS:
        value, kind = CONSTANTS[name]
        return Literal(value, kind, scope.where(node))
    number = registry.constant(name, scope)
    return None if number is None else Literal(number, INT, scope.where(node))


def _enumerator(node: Node, name: str, scope: Scope) -> Expression:
    from migrate.cuda.expressions import extent

    base, offset = scope.program.enumerators[name]
    value = 0 if base is None else extent(base, scope)
    if value is None:
        return scope.opaque(node, f"the value of enumerator {name} is not understood", INT)
    return Literal(value + offset, INT, scope.where(node))


MAX_INITIAL = 1 << 16
"""Numbers of an initialiser at file scope that are read."""


def file_variable(node: Node, name: str, scope: Scope, given: Sequence[Binding] = ()) -> Expression:
    """A variable at file scope; `given` are the template arguments of one that is a template."""
    from migrate.cuda.expressions import extent, resolve
    from migrate.cuda.templates import bind, complete

    found = scope.program.variables[name]
    outside = Scope(scope.program, scope.meter, scope.resolver, scope.classes)
    parameters = template_of(found.declaration, scope.text)
    if parameters:
        bindings = complete(parameters, given, scope)
        if isinstance(bindings, str):
            return scope.opaque(node, f"{name}: {bindings}")
        for parameter in parameters:
            bind(parameter, bindings[parameter.name], outside, scope)
        earlier = scope.globals_used.get(name)
        if earlier is not None and outside_type(found, outside) != earlier.type:
            return scope.opaque(node, f"{name} is used with several template arguments")
    if name in scope.globals_used:
        variable = scope.globals_used[name]
        return Name(variable, variable.type, scope.where(node))
    outside.depth = scope.depth
    type_node = found.declaration.child_by_field_name("type")
    base = resolve(type_node, outside)
    what = declared(found.declarator, base, outside, extent)
    initial = found.declarator.child_by_field_name("value")
    if found.memory in ("shared", "dynamic-shared"):
        if isinstance(what.type, Unknown):
            return scope.opaque(node, f"the type {what.type} is not understood", what.type)
        return _shared(node, name, what.type, found.memory == "dynamic-shared", scope)
    kind = what.type
    if found.memory == "host" and not isinstance(kind, Array):
        auto = type_node is not None and type_node.type == "placeholder_type_specifier"
        if initial is None or not (isinstance(kind, Scalar) or auto):
            return scope.opaque(node, f"the constant {name} has no scalar value", kind)
        value = _folded(initial, kind if isinstance(kind, Scalar) else None, outside)
        if value is None:
            return scope.opaque(node, f"the value of {name} is not constant", kind)
        return Literal(value[0], value[1], scope.where(node))
    if isinstance(kind, Array) and kind.length is None and initial is not None:
        if initial.type == "initializer_list":
            kind = Array(kind.element, len(children_of(initial)))
    if isinstance(kind, Unknown):
        return scope.opaque(node, f"the type {kind} is not understood", kind)
    values = _values(initial, kind, outside) if initial is not None else None
    if found.memory == "host" and values is None:
        return scope.opaque(node, f"the values of {name} are not constant", kind)
    if values is not None:
        scope.initials[name] = values
    variable = Variable(
        -1 - len(scope.globals_used),
        name,
        kind,
        "constant" if found.memory in ("constant", "host") else "global",
        scope.where(found.declarator),
        const=found.memory in ("constant", "host"),
    )
    scope.globals_used[name] = variable
    return Name(variable, variable.type, scope.where(node))


def outside_type(found: FileVariable, scope: Scope) -> Type:
    """The type of a variable at file scope."""
    from migrate.cuda.expressions import extent, resolve

    base = resolve(found.declaration.child_by_field_name("type"), scope)
    return declared(found.declarator, base, scope, extent).type


def _values(node: Node, kind: Type, scope: Scope) -> tuple[int | float | bool, ...] | None:
    """The numbers that an initialiser fills memory with, zeros behind them; `None` for others."""
    from migrate.cuda.declarations import array_values
    from migrate.cuda.expressions import expression
    from migrate.cuda.objects import fitted

    scalar = scalar_of(kind)
    count = scalars_in(kind)
    if scalar is None or count > MAX_INITIAL or not isinstance(kind, Scalar | Array):
        return None
    if isinstance(kind, Array):
        if node.type != "initializer_list":
            return None
        parts = array_values(node, kind, scope)
    else:
        inner = children_of(node) if node.type == "initializer_list" else [node]
        if len(inner) != 1:
            return None
        parts = (fitted(expression(inner[0], scope), kind, node, scope),)
    values: list[int | float | bool] = []
    for part in parts:
        value = fold(part, scope.known) if isinstance(part.type, Scalar) else None
        if value is None or scope.issues:
            return None
        values.append(value)
    return (*values, *([0] * (count - len(values))))


def _shared(node: Node, name: str, kind: Type, dynamic: bool, scope: Scope) -> Expression:
    """Shared memory declared at file scope: declared where the function begins."""
    root = scope
    while root.outer is not None:
        root = root.outer
    held = root.frames[0].get(name)
    if not isinstance(held, Variable):
        where = scope.where(scope.program.variables[name].declarator)
        storage: Storage = "dynamic-shared" if dynamic else "shared"
        held = Variable(root.next_id, name, kind, storage, where)
        root.next_id += 1
        root.frames[0][name] = held
        root.prologue.append(Declare(held, None, where))
    return Name(held, held.type, scope.where(node))


def _folded(
    node: Node, kind: Scalar | None, scope: Scope
) -> tuple[int | float | bool, Scalar] | None:
    from migrate.cuda.braces import braced
    from migrate.cuda.conversions import convert
    from migrate.cuda.expressions import expression

    if node.type == "initializer_list":
        if kind is None:
            return None
        made = braced(node, kind, scope)
    else:
        made = expression(node, scope)
    scope.issues.clear()
    if not isinstance(made.type, Scalar):
        return None
    kind = kind or made.type
    value = fold(convert(made, kind), scope.known)
    return None if value is None else (value, kind)


def static_constant(
    declaration: Node, declarator: Node, value: Node | None, scope: Scope
) -> Literal | None:
    """The value of a `static constexpr` member; `None` where it is not a scalar constant."""
    from migrate.cuda.expressions import extent, resolve

    if value is None:
        value = declarator.child_by_field_name("value")
    if value is None:
        return None
    type_node = declaration.child_by_field_name("type")
    auto = type_node is not None and type_node.type == "placeholder_type_specifier"
    kind = declared(declarator, resolve(type_node, scope), scope, extent).type
    if not auto and not isinstance(kind, Scalar):
        return None
    found = _folded(value, kind if isinstance(kind, Scalar) else None, scope)
    return None if found is None else Literal(found[0], found[1], scope.where(declaration))


def qualified(node: Node, scope: Scope, levels: int = 0) -> Expression:
    """`A::b` as a value, inside `levels` other names."""
    from migrate.cuda.expressions import extent

    if levels >= MAX_DEPTH:
        return scope.opaque(node, f"a name of more than {MAX_DEPTH} parts")
    around = node.child_by_field_name("scope")
    last = node.child_by_field_name("name")
    if last is None:
        return scope.opaque(node, "this name is not understood")
    text = scope.text(last)
    trait = _trait(node, scope)
    if trait is not None:
        return trait
    owner = class_named(around, scope, extent) if around is not None else None
    if isinstance(owner, Class):
        if last.type == "qualified_identifier":
            inner = scope.classes.scope(owner, scope)
            return qualified(last, inner, levels + 1)
        if scope.this is not None and scope.inside is not None:
            inside = member(text, node, scope)
            if inside is not None:
                return inside
        found = scope.classes.member_constant(owner, text, scope)
        if found is not None:
            return Literal(found.value, found.type, scope.where(node))
        if scope.classes.method(owner, text):
            return scope.opaque(node, f"the function {text} of {owner.type} is used as a value")
        return scope.opaque(node, f"{owner.type} has no constant {text}")
    if last.type == "qualified_identifier":
        return qualified(last, scope, levels + 1)
    if last.type in ("template_function", "template_type"):
        return template_name(last, scope)
    if around is not None and around.type == "template_type":
        return scope.opaque(node, f"{scope.text(around)} is not understood")
    return identifier(text, node, scope)


def _trait(node: Node, scope: Scope) -> Expression | None:
    """`std::is_same<A, B>::value` and members of `std::numeric_limits<T>`."""
    from migrate.cuda.templates import argument

    around = node.child_by_field_name("scope")
    last = node.child_by_field_name("name")
    if around is None or last is None or around.type != "template_type":
        return None
    name = scope.text(around.child_by_field_name("name") or around)
    if scope.classes.known(name):
        return None
    given = [argument(c, scope) for c in children_of(around.child_by_field_name("arguments"))]
    member_name = scope.text(last)
    if name == "numeric_limits" and len(given) == 1:
        found = traits.limit(given[0], member_name)
        return None if found is None else Literal(found[0], found[1], scope.where(node))
    if member_name == "value":
        value = traits.value_trait(name, given)
        if value is not None:
            kind = BOOL if isinstance(value, bool) else INT
            return Literal(value, kind, scope.where(node))
    return None


def template_name(node: Node, scope: Scope) -> Expression:
    """`name<arguments>` as a value: a trait, or a function."""
    from migrate.cuda.templates import argument

    name = scope.text(node.child_by_field_name("name") or node)
    plain = name.rsplit("::", 1)[-1]
    given = [argument(c, scope) for c in children_of(node.child_by_field_name("arguments"))]
    value = traits.value_trait(plain, given)
    if value is not None:
        return Literal(value, BOOL if isinstance(value, bool) else INT, scope.where(node))
    if plain in scope.program.variables:
        return file_variable(node, plain, scope, given)
    return scope.opaque(node, f"{scope.text(node)} is used as a value")
