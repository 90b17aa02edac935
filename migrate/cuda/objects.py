"""Objects of struct types: members, construction, methods, operators, conversions."""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

from migrate.cuda.ast import (
    Assign,
    Cast,
    Comma,
    Component,
    Element,
    Expression,
    Literal,
    MakeVector,
    Name,
    OpaqueExpression,
)
from migrate.cuda.classes import Class
from migrate.cuda.conversions import convert, is_place, pure
from migrate.cuda.definitions import arity, children_of
from migrate.cuda.library.registers import are_registers, register_as
from migrate.cuda.origins import Where
from migrate.cuda.scope import BRACES, Binding, Callee, Scope, not_understood
from migrate.cuda.types import (
    COMPONENTS,
    INT,
    Array,
    Pointer,
    Scalar,
    Struct,
    Type,
    Unknown,
    Vector,
)

MAX_ELEMENTS = 256
"""Elements of an array that are constructed one by one."""


def member(base: Expression, name: str, node: Node, scope: Scope) -> Expression:
    """`base.name`."""
    where = scope.where(node)
    match base.type:
        case Vector(element=element, lanes=lanes) if len(name) == 1:
            index = COMPONENTS.find(name)
            if 0 <= index < lanes:
                return part(base, index, element, where)
        case Struct() as kind:
            position = kind.index(name)
            if position is not None:
                held = kind.members[position].type
                if isinstance(held, Unknown):
                    return scope.opaque(node, f"the type {held} of {name} is not understood", held)
                found = part(base, position, held, where)
                if isinstance(held, Pointer) and scope.classes.is_reference(kind, name):
                    return Element(found, Literal(0, INT, where), held.element, where)
                return found
            owner = scope.classes.of(kind)
            constant = (
                scope.classes.member_constant(owner, name, scope) if owner is not None else None
            )
            if constant is not None:
                return constant
        case Unknown():
            return scope.opaque(
                node,
                f"{_excerpt(base, node, scope)} is of type {base.type}, which is not understood",
            )
        case _:
            pass
    return scope.opaque(node, f"{base.type} has no member {name}")


def _excerpt(base: Expression, node: Node, scope: Scope) -> str:
    argument = node.child_by_field_name("argument")
    return scope.text(argument) if argument is not None else base.span.file


def part(base: Expression, index: int, kind: Type, where: Where) -> Expression:
    """A component or member; of a value that is written out, the part itself."""
    if isinstance(base, MakeVector) and index < len(base.parts) and pure(base):
        return base.parts[index]
    return Component(base, index, kind, where)


def zero(kind: Type, where: Where) -> Expression | None:
    """The value of a type with all bits zero; `None` where there is none as an expression."""
    match kind:
        case Scalar():
            value: int | float | bool = False if kind.is_bool else 0.0 if kind.is_float else 0
            return Literal(value, kind, where)
        case Vector(element=element, lanes=lanes):
            return MakeVector((Literal(0, element, where),) * lanes, kind, where)
        case Pointer():
            return Cast(Literal(0, INT, where), kind, where, written=False)
        case Array(element=element, length=int() as length) if length <= MAX_ELEMENTS:
            one = zero(element, where)
            return MakeVector((one,) * length, kind, where) if one is not None else None
        case Struct(layout=layout) if not layout.overlaid:
            parts = [zero(item.type, where) for item in layout.members]
            known = [value for value in parts if value is not None]
            return MakeVector(tuple(known), kind, where) if len(known) == len(parts) else None
        case _:
            return None


def default_part(kind: Struct, index: int, node: Node, scope: Scope) -> Expression:
    """What a member is without an initialiser in braces: its default, else zero."""
    held = kind.members[index]
    owner = scope.classes.of(kind)
    found = default_of(owner, held.name) if owner is not None else None
    if found is not None and owner is not None:
        return initialised(found, held.type, scope.classes.scope(owner, scope), scope)
    made = construct(held.type, [], node, scope) if isinstance(held.type, Struct) else None
    if made is None:
        made = zero(held.type, scope.where(node))
    if made is None:
        return scope.opaque(node, f"{held.type} without a value is not understood", held.type)
    return made


def default_of(owner: Class, name: str, depth: int = 0) -> Node | None:
    """The default initialiser of a member, where it has one."""
    if name in owner.defaults or depth > 16:
        return owner.defaults.get(name)
    for base in owner.bases:
        found = default_of(base, name, depth + 1)
        if found is not None:
            return found
    return None


def initialised(node: Node, kind: Type, inner: Scope, scope: Scope) -> Expression:
    """The value of an initialiser that stands in a class."""
    from migrate.cuda.braces import braced
    from migrate.cuda.expressions import expression

    inner.outer = scope
    inner.issues = scope.issues
    inner.pending = scope.pending
    if node.type == "initializer_list":
        return braced(node, kind, inner)
    return fitted(expression(node, inner), kind, node, inner)


def constructors(owner: Class, scope: Scope) -> bool:
    """Whether the class has a constructor of its own that does something."""
    return any(
        definition.node.child_by_field_name("body") is not None
        for definition, _ in scope.classes.constructors(owner)
    )


def construct(kind: Type, arguments: Sequence[Expression], node: Node, scope: Scope) -> Expression:
    """`T(a, b)` of a struct type."""
    where = scope.where(node)
    if len(arguments) == 1 and arguments[0].type == kind:
        return arguments[0]
    owner = scope.classes.of(kind)
    if not isinstance(kind, Struct):
        return scope.opaque(node, f"the construction of {kind} is not understood", kind)
    if owner is not None and constructors(owner, scope):
        callee = Callee(owner.constructor, owner=owner)
        if arguments or scope.resolver.accepts(callee, arguments, scope):
            target = scope.temporary(kind, where)
            made = construct_at(target, arguments, node, scope)
            if isinstance(made, OpaqueExpression):
                return made
            return Comma(made, target, kind, where)
    unclear = next((value for value in arguments if not_understood(value)), None)
    if unclear is not None:
        return unclear
    return aggregate(kind, arguments, node, scope)


def construct_at(
    place: Expression, arguments: Sequence[Expression], node: Node, scope: Scope
) -> Expression:
    """The call of a constructor on an object that is there already."""
    owner = scope.classes.of(place.type)
    assert owner is not None
    callee = Callee(owner.constructor, owner=owner, this=place)
    return scope.resolver.invoke(callee, arguments, node, scope)


def aggregate(
    kind: Struct, arguments: Sequence[Expression], node: Node, scope: Scope
) -> Expression:
    """A struct of its members' values in order."""
    where = scope.where(node)
    if len(arguments) > len(kind.members):
        return scope.opaque(node, f"{kind} has {len(kind.members)} members", kind)
    if kind.layout.overlaid:
        if len(arguments) > 1:
            return scope.opaque(node, f"braces for {kind} are not understood", kind)
        target = scope.temporary(kind, where)
        if not arguments:
            return target
        held = kind.members[0].type
        first = Component(target, 0, held, where)
        value = fitted(arguments[0], held, node, scope)
        return Comma(Assign(first, None, value, held, held, where), target, kind, where)
    parts = [
        fitted(value, held.type, node, scope)
        for value, held in zip(arguments, kind.members, strict=False)
    ]
    for index in range(len(parts), len(kind.members)):
        parts.append(default_part(kind, index, node, scope))
    unclear = next((value for value in parts if isinstance(value, OpaqueExpression)), None)
    return unclear if unclear is not None else MakeVector(tuple(parts), kind, where)


def method(
    place: Expression,
    name: str,
    template: Sequence[Binding],
    arguments: Sequence[Expression],
    node: Node,
    scope: Scope,
) -> Expression:
    """`place.name(arguments)`; a value gets a place first."""
    owner = scope.classes.of(place.type)
    if owner is None:
        return scope.opaque(node, f"{place.type} has no function {name}")
    if is_place(place):
        callee = Callee(name, template, owner, place)
        return scope.resolver.invoke(callee, arguments, node, scope)
    held, setting = stored(place, scope)
    callee = Callee(name, template, owner, held)
    made = scope.resolver.invoke(callee, arguments, node, scope)
    if setting is None or isinstance(made, OpaqueExpression):
        return made
    return Comma(setting, made, made.type, made.where)


def stored(value: Expression, scope: Scope) -> tuple[Expression, Expression | None]:
    """A place that holds a value, and what puts it there."""
    if is_place(value):
        return value, None
    if isinstance(value, Comma) and isinstance(value.second, Name):
        return value.second, value.first
    place = scope.temporary(value.type, value.where)
    return place, Assign(place, None, value, value.type, value.type, value.where)


def has_method(kind: Type, name: str, scope: Scope) -> bool:
    owner = scope.classes.of(kind)
    return owner is not None and bool(scope.classes.method(owner, name))


def overloaded(
    operator: str, operands: Sequence[Expression], node: Node, scope: Scope
) -> Expression | None:
    """An operator that the program defines for these operands; `None` where it does not."""
    kinds = [operand.type for operand in operands]
    for kind in kinds:
        if isinstance(kind, Struct | Vector):
            break
    else:
        return None
    name = f"operator{operator}"
    if isinstance(kinds[0], Struct) and has_method(kinds[0], name, scope):
        owner = scope.classes.of(kinds[0])
        if scope.resolver.accepts(Callee(name, (), owner, operands[0]), operands[1:], scope):
            return method(operands[0], name, (), operands[1:], node, scope)
    if name in scope.program.functions:
        callee = Callee(name)
        if scope.resolver.accepts(callee, operands, scope):
            return scope.resolver.invoke(callee, operands, node, scope)
    return None


def fitted(value: Expression, to: Type, node: Node, scope: Scope) -> Expression:
    """An implicit conversion, constructors and conversion functions of the program included."""
    if isinstance(value, MakeVector) and value.type == BRACES:
        from migrate.cuda.braces import from_braces

        return from_braces(value, to, node, scope)
    if value.type == to or isinstance(value.type, Unknown) or isinstance(to, Unknown):
        return value
    if isinstance(to, Struct):
        return construct(to, [value], node, scope)
    if isinstance(value.type, Struct):
        value = as_scalar(value, to, node, scope)
        if isinstance(value.type, Struct):
            return scope.opaque(
                node, f"a conversion from {value.type} to {to} is not understood", to
            )
    made = convert(value, to)
    if isinstance(made, OpaqueExpression) and are_registers(value.type, to):
        return register_as(value, to, node, scope)
    if isinstance(made, OpaqueExpression) and made not in scope.issues:
        return scope.opaque(node, made.reason, made.type)
    return made


def as_scalar(value: Expression, to: Type | None, node: Node, scope: Scope) -> Expression:
    """The value that a conversion function gives: to the type wanted, else to a scalar."""
    if isinstance(value.type, Scalar | Pointer):
        return value
    from migrate.cuda.expressions import resolve

    owner = scope.classes.of(value.type)
    if owner is None:
        return value
    other: str | None = None
    for name in scope.classes.conversions(owner):
        definition, at = scope.classes.method(owner, name)[0]
        declarator = definition.node.child_by_field_name("declarator")
        named_type = declarator.child_by_field_name("type") if declarator is not None else None
        kind = resolve(named_type, scope.classes.scope(at, scope))
        if isinstance(to, Pointer):
            fits = _pointer_conversion(declarator)
        else:
            fits = to is not None and kind == to and not _pointer_conversion(declarator)
        if fits:
            return method(value, name, (), (), node, scope)
        if isinstance(kind, Scalar) and not _pointer_conversion(declarator):
            other = other or name
    return value if other is None else method(value, other, (), (), node, scope)


def _pointer_conversion(declarator: Node | None) -> bool:
    inner = declarator.child_by_field_name("declarator") if declarator is not None else None
    return inner is not None and inner.type == "abstract_pointer_declarator"


def indexed(base: Expression, index: Expression, node: Node, scope: Scope) -> Expression | None:
    """`base[index]` where `base` is a struct; `None` where it defines none."""
    kind = base.type
    if not isinstance(kind, Struct):
        return None
    if kind.template == "array" and scope.classes.of(kind) is None:
        elements = kind.members[0].type
        assert isinstance(elements, Array)
        whole = Component(base, 0, elements, scope.where(node))
        return Element(whole, index, elements.element, scope.where(node))
    return overloaded("[]", (base, index), node, scope)


def default_initialised(
    place: Expression, node: Node, scope: Scope, depth: int = 0
) -> list[Expression]:
    """What `T v;` does to the object beside making it."""
    kind = place.type
    where = scope.where(node)
    if isinstance(kind, Array):
        if not does_something(kind.element, scope):
            return []
        if kind.length is None or kind.length > MAX_ELEMENTS or depth > 8:
            return [scope.opaque(node, f"the construction of {kind} is not understood")]
        out: list[Expression] = []
        for position in range(kind.length):
            element = Element(place, Literal(position, INT, where), kind.element, where)
            out += default_initialised(element, node, scope, depth + 1)
        return out
    if not isinstance(kind, Struct) or not does_something(kind, scope):
        return []
    owner = scope.classes.of(kind)
    if owner is not None and constructors(owner, scope) and not _by_default(owner, scope):
        return [construct_at(place, [], node, scope)]
    return member_defaults(place, kind, node, scope, frozenset())


def member_defaults(
    place: Expression, kind: Struct, node: Node, scope: Scope, given: frozenset[str]
) -> list[Expression]:
    """The default initialisers of members, but of those that are given."""
    out: list[Expression] = []
    owner = scope.classes.of(kind)
    where = scope.where(node)
    for index, held in enumerate(kind.members):
        if held.name in given or isinstance(held.type, Unknown):
            continue
        found = default_of(owner, held.name) if owner is not None else None
        target = Component(place, index, held.type, where)
        if found is not None and owner is not None:
            value = initialised(found, held.type, scope.classes.scope(owner, scope), scope)
            if isinstance(value.type, Unknown):
                out.append(value)
            else:
                out.append(Assign(target, None, value, held.type, held.type, where))
        elif isinstance(held.type, Struct | Array):
            out += default_initialised(target, node, scope, 1)
    return out


def does_something(kind: Type, scope: Scope, depth: int = 0) -> bool:
    """Whether making an object of this type without an initialiser runs any code."""
    while isinstance(kind, Array):
        kind = kind.element
    owner = scope.classes.of(kind)
    if owner is None or not isinstance(kind, Struct) or depth > 16:
        return False
    found = [d for d, _ in scope.classes.constructors(owner)]
    bodies = [d for d in found if d.node.child_by_field_name("body") is not None]
    if bodies:
        if _by_default(owner, scope):
            return _has_defaults(owner)
        callee = Callee(owner.constructor, owner=owner)
        if not scope.resolver.accepts(callee, [], scope):
            return True
        return any(_runs(d.node) for d in bodies) or _has_defaults(owner)
    if _has_defaults(owner):
        return True
    return any(does_something(held.type, scope, depth + 1) for held in kind.members)


def _by_default(owner: Class, scope: Scope) -> bool:
    """Whether the class says `T() = default;`."""
    return any(
        any(child.type == "default_method_clause" for child in definition.node.children)
        and arity(definition.node)[1] == 0
        for definition, _ in scope.classes.constructors(owner)
    )


def _has_defaults(owner: Class) -> bool:
    return bool(owner.defaults) or any(_has_defaults(base) for base in owner.bases)


def _runs(node: Node) -> bool:
    body = node.child_by_field_name("body")
    listed = any(child.type == "field_initializer_list" for child in node.children)
    return listed or bool(children_of(body))
