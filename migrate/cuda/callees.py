"""Call syntax: what stands before the parentheses, and what that makes of the call."""

from __future__ import annotations

from tree_sitter import Node

from migrate.cuda import calls, closures, names, objects, traits
from migrate.cuda.ast import Address, Cast, Element, Expression, Literal, MakeVector
from migrate.cuda.classes import Class
from migrate.cuda.conversions import is_place
from migrate.cuda.declarators import class_named, is_type_name
from migrate.cuda.definitions import children_of, innermost
from migrate.cuda.library import registry
from migrate.cuda.operators import cast_to
from migrate.cuda.scope import BRACES, MAX_DEPTH, Binding, Callee, Closure, Scope
from migrate.cuda.templates import argument
from migrate.cuda.types import BOOL, INT, Pointer, Routine, Scalar, Struct, Type, Unknown, Vector

_CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast", "dynamic_cast", "bit_cast"})


def call_expression(node: Node, scope: Scope) -> Expression:
    """The typed expression of a call, a functional cast or a construction."""
    function = node.child_by_field_name("function")
    if function is None:
        return scope.opaque(node, "a call of nothing")
    made = registry.value(node, scope)
    if made is not None:
        return made
    children = children_of(node.child_by_field_name("arguments"))
    if node.named_child_count > 2 and any(
        child.type == "kernel_call_syntax" for child in node.children
    ):
        return scope.opaque(node, "a kernel launched from a kernel is not understood")
    core = innermost(function)
    match core.type:
        case "primitive_type" | "sized_type_specifier":
            from migrate.cuda.expressions import resolve

            return functional_cast(resolve(core, scope), children, node, scope)
        case "identifier" | "type_identifier":
            return _named(core, children, node, scope)
        case "template_function":
            return _templated(core, children, node, scope)
        case "qualified_identifier":
            return _qualified(core, children, node, scope)
        case "field_expression":
            return _method(core, children, node, scope)
        case "dependent_name" | "dependent_type":
            inner = children_of(core)
            if inner and inner[-1].type in ("qualified_identifier", "template_type"):
                return _qualified(inner[-1], children, node, scope)
            return scope.opaque(node, "this call is not understood")
        case "lambda_expression":
            closure = closures.closure(core, scope)
            return _closure(closure, _arguments(children, scope), node, scope)
        case _:
            from migrate.cuda.expressions import expression

            return _object(expression(core, scope), children, node, scope)


def _arguments(children: list[Node], scope: Scope) -> list[Expression]:
    from migrate.cuda.expressions import expression

    return [
        MakeVector(tuple(_arguments(children_of(child), scope)), BRACES, scope.where(child))
        if child.type == "initializer_list"
        else expression(child, scope)
        for child in children
    ]


def _named(core: Node, children: list[Node], node: Node, scope: Scope) -> Expression:
    name = scope.text(core)
    found = scope.lookup(name)
    if isinstance(found, Closure):
        return _closure(found, _arguments(children, scope), node, scope)
    if found is not None:
        made = names.meant(found, scope.where(core))
        assert made is not None
        return _object(made, children, node, scope)
    if isinstance(scope.type_named(name), Routine):
        return _routine(scope.type_named(name), children, node, scope)
    if scope.inside is not None:
        if scope.classes.method(scope.inside, name) and name != scope.inside.constructor:
            callee = Callee(name, (), scope.inside, scope.this)
            return scope.resolver.invoke(callee, _arguments(children, scope), node, scope)
        inside = names.member(name, node, scope)
        if inside is not None and isinstance(inside.type, Struct | Routine):
            return _object(inside, children, node, scope)
    if name not in scope.program.functions and is_type_name(name, scope):
        from migrate.cuda.expressions import resolve

        return functional_cast(resolve(core, scope), children, node, scope)
    return calls.call(name, (), _arguments(children, scope), node, scope)


def _routine(kind: Type | None, children: list[Node], node: Node, scope: Scope) -> Expression:
    assert isinstance(kind, Routine)
    return calls.call(kind.name, (), _arguments(children, scope), node, scope)


def _templated(core: Node, children: list[Node], node: Node, scope: Scope) -> Expression:
    """`f<T>(x)`: a cast, a construction, or a call with template arguments."""
    from migrate.cuda.expressions import expression, resolve

    name = scope.text(core.child_by_field_name("name") or core)
    plain = name.rsplit("::", 1)[-1]
    listed = children_of(core.child_by_field_name("arguments"))
    if name.endswith("_cast") and len(listed) == 1 and len(children) == 1:
        if plain not in scope.program.functions and plain in _CASTS:
            value = expression(children[0], scope)
            to = resolve(listed[0], scope)
            if plain == "reinterpret_cast" and _is_reference(listed[0]):
                return _as_reference(value, to, node, scope)
            if plain == "bit_cast":
                return calls.bits_as(value, to, node, scope)
            return cast_to(to, value, node, scope)
    if scope.inside is not None and scope.classes.method(scope.inside, plain):
        given = [argument(child, scope) for child in listed]
        callee = Callee(plain, given, scope.inside, scope.this)
        return scope.resolver.invoke(callee, _arguments(children, scope), node, scope)
    if plain not in scope.program.functions and (
        scope.classes.known(plain) or plain in scope.program.aliases
    ):
        return functional_cast(resolve(core, scope), children, node, scope)
    given = [argument(child, scope) for child in listed]
    fact = traits.value_trait(plain, given)
    if fact is not None and not children:
        return Literal(fact, BOOL if isinstance(fact, bool) else INT, scope.where(node))
    return calls.call(plain, given, _arguments(children, scope), node, scope)


def _is_reference(node: Node) -> bool:
    """Whether a type is written `T&` (or `T (&)[n]`)."""
    current = node.child_by_field_name("declarator")
    for _ in range(16):
        if current is None:
            return False
        if "reference" in current.type:
            return True
        following = current.child_by_field_name("declarator")
        current = following or next(iter(children_of(current)), None)
    return False


def _as_reference(value: Expression, to: Type, node: Node, scope: Scope) -> Expression:
    """`reinterpret_cast<T&>(place)`: the place seen as another type."""
    if isinstance(value.type, Unknown):
        return value
    if isinstance(to, Unknown) or not is_place(value):
        return scope.opaque(node, f"this as a reference to {to} is not understood", to)
    where = scope.where(node)
    pointer = Cast(Address(value, Pointer(value.type), where), Pointer(to), where)
    return Element(pointer, Literal(0, INT, where), to, where)


def _qualified(core: Node, children: list[Node], node: Node, scope: Scope) -> Expression:
    """`A::f(x)`: a static function of a class, a type of one, or a function of a namespace."""
    from migrate.cuda.expressions import extent, resolve

    around = core.child_by_field_name("scope")
    last = core.child_by_field_name("name")
    if last is None:
        return scope.opaque(node, "this call is not understood")
    if parts_of(last) > MAX_DEPTH:
        return scope.opaque(node, f"a name of more than {MAX_DEPTH} parts")
    if around is not None and around.type == "template_type":
        limit = _limit(around, last, scope)
        if limit is not None:
            return Literal(limit[0], limit[1], scope.where(node))
    owner = class_named(around, scope, extent) if around is not None else None
    if isinstance(owner, Class):
        return _of_class(owner, last, children, core, node, scope)
    if last.type == "qualified_identifier":
        return _qualified(last, children, node, scope)
    if last.type == "template_function":
        return _templated(last, children, node, scope)
    if last.type == "dependent_name":
        inner = children_of(last)
        if inner and inner[-1].type == "template_function":
            return _templated(inner[-1], children, node, scope)
    name = scope.text(last)
    if around is not None and around.type == "template_type":
        return scope.opaque(node, f"{scope.text(around)} is not understood")
    if name not in scope.program.functions and is_type_name(name, scope):
        return functional_cast(resolve(core, scope), children, node, scope)
    return calls.call(name, (), _arguments(children, scope), node, scope)


def _limit(around: Node, last: Node, scope: Scope) -> tuple[int | float | bool, Scalar] | None:
    name = scope.text(around.child_by_field_name("name") or around)
    if name != "numeric_limits":
        return None
    given = [argument(c, scope) for c in children_of(around.child_by_field_name("arguments"))]
    return traits.limit(given[0], scope.text(last)) if len(given) == 1 else None


def _of_class(
    owner: Class, last: Node, children: list[Node], core: Node, node: Node, scope: Scope
) -> Expression:
    from migrate.cuda.expressions import resolve

    given: list[Binding] = []
    named_node = last
    if last.type == "dependent_name":
        inner = children_of(last)
        named_node = inner[-1] if inner else last
    if named_node.type in ("template_function", "template_method"):
        listed = children_of(named_node.child_by_field_name("arguments"))
        given = [argument(child, scope) for child in listed]
        named_node = named_node.child_by_field_name("name") or named_node
    name = scope.text(named_node)
    if last.type == "qualified_identifier":
        return _qualified(last, children, node, scope.classes.within(owner, scope))
    if scope.classes.method(owner, name) and name != owner.constructor:
        # In a method of a derived class this names a function of the base, on the same object.
        this = scope.this if scope.inside is not None else None
        callee = Callee(name, given, owner, this)
        return scope.resolver.invoke(callee, _arguments(children, scope), node, scope)
    kind = resolve(core, scope)
    if not isinstance(kind, Unknown):
        return functional_cast(kind, children, node, scope)
    return scope.opaque(node, f"{owner.type} has no function {name}")


def _method(core: Node, children: list[Node], node: Node, scope: Scope) -> Expression:
    """`object.f(x)`."""
    from migrate.cuda.expressions import object_of

    field = core.child_by_field_name("field")
    if field is None:
        return scope.opaque(node, "this call is incomplete")
    given: list[Binding] = []
    if field.type == "dependent_name":
        inner = children_of(field)
        field = inner[-1] if inner else field
    if field.type in ("template_method", "template_function"):
        listed = children_of(field.child_by_field_name("arguments"))
        given = [argument(child, scope) for child in listed]
        field = field.child_by_field_name("name") or field
    base = object_of(core, scope)
    name = scope.text(field)
    if isinstance(base.type, Unknown):
        return base
    if isinstance(base.type, Struct):
        if objects.has_method(base.type, name, scope):
            return objects.method(base, name, given, _arguments(children, scope), node, scope)
        if base.type.index(name) is not None:
            return _object(objects.member(base, name, core, scope), children, node, scope)
    return scope.opaque(node, f"{base.type} has no function {name}")


def _object(value: Expression, children: list[Node], node: Node, scope: Scope) -> Expression:
    """A call of what is a value: a function, or an object with a call operator."""
    match value.type:
        case Unknown():
            return value
        case Routine(name=name):
            return calls.call(name, (), _arguments(children, scope), node, scope)
        case Struct() if objects.has_method(value.type, closures.CALL, scope):
            arguments = _arguments(children, scope)
            return objects.method(value, closures.CALL, (), arguments, node, scope)
        case _:
            return scope.opaque(node, f"a call of {value.type} is not understood")


def _closure(found: Closure, arguments: list[Expression], node: Node, scope: Scope) -> Expression:
    owner = scope.classes.of(found.kind)
    callee = Callee(closures.CALL, (), owner, None, found.captures)
    return scope.resolver.invoke(callee, arguments, node, scope)


def functional_cast(kind: Type, children: list[Node], node: Node, scope: Scope) -> Expression:
    """`T(x)`."""
    from migrate.cuda.expressions import expression

    if isinstance(kind, Struct):
        return objects.construct(kind, _arguments(children, scope), node, scope)
    if len(children) == 1 and not isinstance(kind, Vector):
        return cast_to(kind, expression(children[0], scope), node, scope)
    if not children:
        made = objects.zero(kind, scope.where(node))
        if made is not None:
            return made
    values = _arguments(children, scope)
    if isinstance(kind, Vector):
        if len(values) == 1 and values[0].type == kind:
            return values[0]
        return calls.vector(kind, values, node, scope)
    return scope.opaque(node, f"the construction of {kind} is not understood", kind)


def parts_of(name: Node) -> int:
    """The parts of a qualified name, as far as more than `MAX_DEPTH` are not told apart."""
    count = 1
    following: Node | None = name
    while following is not None and following.type == "qualified_identifier":
        following = following.child_by_field_name("name")
        count += 1
        if count > MAX_DEPTH:
            break
    return count
