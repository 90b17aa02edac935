"""Template arguments: read, completed by defaults, deduced from what is passed."""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

from migrate.cuda.ast import Expression, Literal, Variable
from migrate.cuda.conversions import decay
from migrate.cuda.definitions import children_of, parameter_nodes
from migrate.cuda.folding import fold
from migrate.cuda.parse import Definition, TemplateParameter
from migrate.cuda.scope import Binding, Scope
from migrate.cuda.types import (
    Array,
    Pointer,
    Routine,
    Scalar,
    Struct,
    Unknown,
)
from migrate.source import shortened

_TYPES = frozenset(
    {"primitive_type", "sized_type_specifier", "template_type", "dependent_type", "decltype"}
)

UNDECIDED = "?"
"""Where `unify` notes that a part of the pattern is not understood."""


def argument(node: Node, scope: Scope) -> Binding:
    """One template argument as written: a type, a number, or the function it names."""
    if scope.angles >= MAX_ANGLES:
        return Unknown(shortened(scope.text(node)))
    scope.angles += 1
    try:
        return _argument(node, scope)
    finally:
        scope.angles -= 1


MAX_ANGLES = 8
"""Template arguments within template arguments: what is no type is tried as a value, at each."""


def _argument(node: Node, scope: Scope) -> Binding:
    from migrate.cuda.declarators import is_type_name
    from migrate.cuda.expressions import expression, resolve

    if node.type in ("type_descriptor", "type_identifier", "identifier"):
        text = scope.text(node)
        found = scope.lookup(text)
        if isinstance(found, Literal):
            return found.value
        if isinstance(found, Variable):
            return scope.known.get(found.id, Unknown(text))
        plain = text.rsplit("::", 1)[-1].strip()
        if not is_type_name(text, scope):
            if plain in scope.program.functions:
                return Routine(plain)
            value = _value(text, node, scope)
            if value is not None:
                return value
        kind = resolve(node, scope)
        if isinstance(kind, Unknown):
            written = _constant(node, scope)
            return kind if written is None else written
        return kind
    if node.type in _TYPES:
        return resolve(node, scope)
    mark = len(scope.issues)
    made = expression(node, scope)
    value = fold(made, scope.known)
    del scope.issues[mark:]
    if value is not None:
        return value
    if isinstance(made.type, Routine):
        return made.type
    return Unknown(scope.text(node))


def _constant(node: Node, scope: Scope) -> Binding | None:
    """The value of `A<T>::value` or `is_same_v<A, B>`, which read as types."""
    from migrate.cuda.names import qualified, template_name

    inner = node.child_by_field_name("type") if node.type == "type_descriptor" else node
    if inner is None or node.child_by_field_name("declarator") is not None:
        return None
    mark, waiting = len(scope.issues), len(scope.pending)
    made: Expression | None = None
    if inner.type == "qualified_identifier":
        made = qualified(inner, scope)
    elif inner.type in ("template_type", "template_function"):
        made = template_name(inner, scope)
    del scope.issues[mark:]
    del scope.pending[waiting:]
    return fold(made, scope.known) if made is not None else None


def _value(text: str, node: Node, scope: Scope) -> Binding | None:
    from migrate.cuda.names import constant_named

    found = constant_named(text, node, scope)
    if found is None and scope.inside is not None:
        found = scope.classes.member_constant(scope.inside, text, scope)
    return None if found is None else fold(found, scope.known)


def complete(
    parameters: Sequence[TemplateParameter], arguments: Sequence[Binding], scope: Scope
) -> dict[str, Binding] | str:
    """All the parameters' values, defaults filled in; the reason where one is missing."""
    if len(arguments) > len(parameters):
        return "there are more template arguments than parameters"
    bindings: dict[str, Binding] = {}
    inner = Scope(scope.program, scope.meter, scope.resolver, scope.classes)
    inner.depth = scope.depth
    for position, parameter in enumerate(parameters):
        given = arguments[position] if position < len(arguments) else None
        value = supply(parameter, given, inner)
        if isinstance(value, str):
            return value
        bindings[parameter.name] = value
        bind(parameter, value, inner, scope)
    return bindings


def supply(parameter: TemplateParameter, given: Binding | None, scope: Scope) -> Binding | str:
    """A parameter's value: what is given, else its default; the reason where there is none."""
    if parameter.kind == "pack":
        return f"template parameter {parameter.name} is not understood"
    if given is not None:
        return given
    if parameter.default is None:
        return f"template parameter {parameter.name} has no value"
    from migrate.cuda.expressions import expression, resolve

    if parameter.kind == "type":
        return resolve(parameter.default, scope)
    made = expression(parameter.default, scope)
    folded = fold(made, scope.known)
    if folded is None and isinstance(made.type, Routine):
        return made.type
    return f"template parameter {parameter.name} has no value" if folded is None else folded


def bind(parameter: TemplateParameter, value: Binding, inner: Scope, outer: Scope) -> None:
    """Let a template parameter's name mean its value."""
    if isinstance(value, bool | int | float):
        from migrate.cuda.classes import literal_type
        from migrate.cuda.expressions import resolve
        from migrate.cuda.folding import converted

        kind = resolve(parameter.type, inner) if parameter.type is not None else None
        scalar = kind if isinstance(kind, Scalar) else literal_type(value)
        fitted = converted(value, scalar)
        where = outer.where(parameter.type) if parameter.type is not None else None
        inner.frames[0][parameter.name] = Literal(
            value if fitted is None else fitted,
            scalar,
            where if where is not None else inner.program.source.whole(),
        )
    else:
        inner.types[parameter.name] = value


def deduce(
    definition: Definition,
    given: Sequence[Binding],
    arguments: Sequence[Expression],
    scope: Scope,
) -> dict[str, Binding] | str:
    """A function template's arguments: the explicit ones, and those that a call implies."""
    bindings: dict[str, Binding] = {}
    parameters = [p for p in definition.template if p.name]
    for position, value in enumerate(given):
        if position >= len(definition.template):
            return f"{definition.name} takes {len(definition.template)} template arguments"
        bindings[definition.template[position].name] = value
    open_names = {parameter.name for parameter in parameters} - set(bindings)
    if not open_names:
        return bindings
    for child, passed in zip(parameter_nodes(definition.node), arguments, strict=False):
        declarator = child.child_by_field_name("declarator")
        actual = passed.type
        if isinstance(actual, Array) and not _by_reference(declarator):
            actual = decay(passed).type
        base = child.child_by_field_name("type")
        if base is not None:
            match_declared(base, declarator, actual, open_names, bindings, scope)
    return bindings


def _by_reference(declarator: Node | None) -> bool:
    current = declarator
    for _ in range(16):
        if current is None:
            return False
        if "reference" in current.type:
            return True
        following = current.child_by_field_name("declarator")
        current = following or next(iter(children_of(current)), None)
    return False


def match_declared(
    base: Node,
    declarator: Node | None,
    actual: Binding,
    open_names: set[str],
    found: dict[str, Binding],
    scope: Scope,
) -> bool:
    """Match `base declarator` against a type, `T* a` against `float*` for one."""
    current = declarator
    for _ in range(16):
        if current is None:
            break
        match current.type:
            case "pointer_declarator" | "abstract_pointer_declarator":
                if not isinstance(actual, Pointer | Array):
                    return False
                actual = actual.element
            case "array_declarator" | "abstract_array_declarator":
                if not isinstance(actual, Pointer | Array):
                    return False
                size = current.child_by_field_name("size")
                if size is not None and isinstance(actual, Array) and actual.length is not None:
                    unify(size, actual.length, open_names, found, scope)
                actual = actual.element
            case _:
                pass
        following = current.child_by_field_name("declarator")
        if following is None:
            rest = [c for c in children_of(current) if "declarator" in c.type]
            following = rest[0] if rest else None
        current = following
    return unify(base, actual, open_names, found, scope)


def unify(
    pattern: Node,
    actual: Binding,
    open_names: set[str],
    found: dict[str, Binding],
    scope: Scope,
) -> bool:
    """Match a type (or a value) as written against an actual one, binding open names."""
    text = scope.text(pattern).strip()
    if text in open_names:
        if isinstance(actual, Unknown):
            return False
        if text in found:
            return same(found[text], actual)
        found[text] = actual
        return True
    match pattern.type:
        case "type_descriptor":
            base = pattern.child_by_field_name("type")
            if base is None:
                return False
            around = pattern.child_by_field_name("declarator")
            return match_declared(base, around, actual, open_names, found, scope)
        case "template_type":
            name = scope.text(pattern.child_by_field_name("name") or pattern)
            listed = children_of(pattern.child_by_field_name("arguments"))
            if isinstance(actual, Struct) and actual.template == name.rsplit("::", 1)[-1]:
                return all(
                    unify(part, value, open_names, found, scope)
                    for part, value in zip(listed, actual.arguments, strict=False)
                )
            return _equal(pattern, actual, found, scope)
        case "dependent_type" | "parenthesized_expression" if pattern.named_child_count == 1:
            return unify(pattern.named_children[0], actual, open_names, found, scope)
        case "qualified_identifier":
            inner = pattern.child_by_field_name("name")
            if inner is not None and inner.type == "template_type":
                return unify(inner, actual, open_names, found, scope)
            return _equal(pattern, actual, found, scope)
        case _:
            return _equal(pattern, actual, found, scope)


def _equal(pattern: Node, actual: Binding, found: dict[str, Binding], scope: Scope) -> bool:
    wanted = argument(pattern, scope)
    if isinstance(wanted, Unknown) and "enable_if" not in wanted.name:
        found[UNDECIDED] = wanted
    return same(wanted, actual)


def same(left: Binding, right: Binding) -> bool:
    """Whether two template arguments are the same; `const` of a pointer's target is part."""
    if isinstance(left, bool | int | float) and isinstance(right, bool | int | float):
        return left == right
    if isinstance(left, Pointer) and isinstance(right, Pointer):
        return left.const == right.const and same(left.element, right.element)
    return left == right


def implied_arguments(
    definition: Definition, primary: Definition, scope: Scope
) -> list[Binding] | None:
    """The template arguments that an explicit specialisation of a template is for.

    `None` where its parameters and its result do not say them all.
    """
    from migrate.cuda.declarators import declared
    from migrate.cuda.expressions import extent, resolve

    mine, theirs = parameter_nodes(definition.node), parameter_nodes(primary.node)
    if len(mine) != len(theirs):
        return None
    open_names = {parameter.name for parameter in primary.template}
    found: dict[str, Binding] = {}
    for node, pattern in zip([*mine, definition.node], [*theirs, primary.node], strict=True):
        kind = resolve(node.child_by_field_name("type"), scope)
        base = pattern.child_by_field_name("type")
        whole = node.type != "function_definition"
        declarator = node.child_by_field_name("declarator") if whole else None
        around = pattern.child_by_field_name("declarator") if whole else None
        if declarator is not None:
            kind = declared(declarator, kind, scope, extent).type
        if base is None or not match_declared(base, around, kind, open_names, found, scope):
            return None
    if not open_names <= set(found):
        return None
    return [found[parameter.name] for parameter in primary.template]
