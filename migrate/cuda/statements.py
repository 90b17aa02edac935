"""Statements: syntax nodes to typed tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal as OneOf

from tree_sitter import Node

from migrate.cuda.ast import (
    Barrier,
    Block,
    Break,
    Case,
    Continue,
    Declare,
    Evaluate,
    Expression,
    If,
    Literal,
    Loop,
    OpaqueExpression,
    Return,
    Statement,
    Storage,
    Switch,
)
from migrate.cuda.conversions import condition, convert, decay, is_place
from migrate.cuda.declarators import Declared, declared
from migrate.cuda.expressions import braced, expression, extent, resolve
from migrate.cuda.folding import fold
from migrate.cuda.intrinsics import BARRIERS
from migrate.cuda.operators import cast_to
from migrate.cuda.scope import MAX_DEPTH, Scope
from migrate.cuda.types import (
    BOOL,
    VOID,
    Array,
    Pointer,
    Scalar,
    Type,
    Unknown,
    Vector,
    scalar_of,
    scalars_in,
)


def statements(nodes: list[Node], scope: Scope) -> tuple[Statement, ...]:
    """Statements in order; a declaration of several variables gives several."""
    out: list[Statement] = []
    for node in nodes:
        if node.type != "comment" and (node.is_named or node.is_missing):
            out += statement(node, scope)
    return tuple(out)


def statement(node: Node, scope: Scope) -> list[Statement]:
    """The typed statements of a node; what is not understood comes back opaque."""
    scope.meter.step()
    if node.is_missing or node.type == "ERROR":
        return [scope.opaque_statement(node, "the parser could not read this")]
    missing = next((child for child in node.children if child.is_missing), None)
    if missing is not None:
        return [scope.opaque_statement(node, f"a syntax error: `{missing.type}` is missing")]
    handler = _HANDLERS.get(node.type)
    if handler is None:
        what = node.type.replace("_", " ")
        return [scope.opaque_statement(node, f"{what} is not understood")]
    if scope.depth >= MAX_DEPTH:
        return [scope.opaque_statement(node, f"nested deeper than {MAX_DEPTH} levels")]
    scope.depth += 1
    try:
        return handler(node, scope)
    finally:
        scope.depth -= 1


def block(node: Node | None, scope: Scope) -> Block:
    """A statement as a block with a scope of its own."""
    if node is None:
        raise ValueError("no statement node")
    scope.push()
    try:
        nodes = node.named_children if node.type == "compound_statement" else [node]
        return Block(statements(nodes, scope), scope.span(node))
    finally:
        scope.pop()


def _compound(node: Node, scope: Scope) -> list[Statement]:
    return [block(node, scope)]


def _nothing(_node: Node, _scope: Scope) -> list[Statement]:
    return []


def _declaration(node: Node, scope: Scope) -> list[Statement]:
    words = {scope.text(child) for child in node.children if child.type in _QUALIFIERS}
    type_node = node.child_by_field_name("type")
    declarators = node.children_by_field_name("declarator")
    if type_node is not None and type_node.type == "struct_specifier" and not declarators:
        return [scope.opaque_statement(node, "a local struct is not understood")]
    auto = type_node is not None and type_node.type == "placeholder_type_specifier"
    base = Unknown("auto") if auto else resolve(type_node, scope)
    out: list[Statement] = []
    for declarator in declarators:
        out.append(_declare(declarator, base, auto, words, node, scope))
    if not declarators:
        out.append(scope.opaque_statement(node, "this declaration names nothing"))
    return out


_QUALIFIERS = frozenset({"type_qualifier", "storage_class_specifier"})


def _declare(
    declarator: Node, base: Type, auto: bool, words: set[str], node: Node, scope: Scope
) -> Statement:
    const = bool(words & {"const", "constexpr"})
    what = declared(declarator, base, scope, extent, const=const)
    const = const and not isinstance(what.type, Pointer)
    span = scope.span(declarator)
    value_node = declarator.child_by_field_name("value")
    if value_node is None and declarator.parent is not None:
        value_node = _condition_value(declarator)
    shared = "__shared__" in words
    storage: Storage = ("dynamic-shared" if "extern" in words else "shared") if shared else "local"
    if "static" in words and not shared and not const:
        return scope.opaque_statement(node, "a static local variable is not understood")
    if what.constructor is not None:
        return _constructed(what, const, node, scope)
    initial = _initial(value_node, what, auto, node, scope)
    kind = what.type
    if auto and isinstance(initial, tuple):
        return scope.opaque_statement(node, "auto with braces is not understood")
    if auto and initial is not None and not isinstance(initial, tuple):
        initial = decay(initial) if not what.reference else initial
        kind = initial.type if isinstance(what.type, Unknown) else what.type
    if isinstance(kind, Array) and kind.length is None and isinstance(initial, tuple):
        kind = Array(kind.element, len(initial) // max(scalars_in(kind.element), 1))
    if what.reference:
        place = initial if initial is not None and not isinstance(initial, tuple) else None
        if place is not None and is_place(place):
            variable = scope.declare(what.name, place.type, "reference", span)
            return Declare(variable, place, scope.span(node))
        if not const and not isinstance(kind, Unknown):
            return scope.opaque_statement(node, "this reference names no place")
    variable = scope.declare(what.name, kind, storage, span, const=const)
    if isinstance(kind, Unknown):
        reason = f"the type {kind} is not understood"
        if isinstance(initial, OpaqueExpression):
            reason = initial.reason
        return scope.opaque_statement(node, reason)
    if scalar_of(kind) is None and not isinstance(kind, Pointer):
        element = kind.element if isinstance(kind, Array) else kind
        return scope.opaque_statement(node, f"a variable of {element} is not understood")
    if const and initial is not None and not isinstance(initial, tuple):
        value = fold(initial, scope.known)
        if value is not None:
            scope.known[variable.id] = value
    return Declare(variable, initial, scope.span(node))


def _condition_value(declarator: Node) -> Node | None:
    """The initial value of `if (T v = value)`, which hangs beside its declarator."""
    parent = declarator.parent
    if parent is None or parent.child_by_field_name("value") is None:
        return None
    return parent.child_by_field_name("value")


def _initial(
    node: Node | None, what: Declared, auto: bool, whole: Node, scope: Scope
) -> Expression | tuple[Expression, ...] | None:
    if node is None:
        return None
    kind = what.type
    if node.type == "initializer_list":
        if isinstance(kind, Array):
            return _array_values(node, kind, scope)
        return braced(node, kind, scope)
    if node.type == "argument_list":
        children = [child for child in node.named_children if child.type != "comment"]
        if isinstance(kind, Vector):
            from migrate.cuda.calls import vector

            return vector(kind, [expression(child, scope) for child in children], whole, scope)
        if len(children) != 1:
            return scope.opaque(whole, f"the construction of {kind} is not understood", kind)
        node = children[0]
    value = expression(node, scope)
    if auto or what.reference or isinstance(kind, Unknown):
        return value
    converted = convert(value, kind)
    if isinstance(converted, OpaqueExpression) and converted not in scope.issues:
        return scope.opaque(whole, converted.reason, kind)
    return converted


def _array_values(node: Node, kind: Array, scope: Scope) -> tuple[Expression, ...]:
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
                return _array_values(node, _flattened(kind), scope)
            inner = list(_array_values(child, element, scope))
            filler = scalar_of(element)
            if filler is not None:
                missing = scalars_in(element) - len(inner)
                inner += [Literal(0, filler, scope.span(child))] * missing
            out += inner
        elif child.type == "initializer_list":
            out.append(braced(child, element, scope))
        else:
            value = convert(expression(child, scope), element)
            if isinstance(value, OpaqueExpression) and value not in scope.issues:
                value = scope.opaque(child, value.reason, element)
            out.append(value)
    return tuple(out)


def _flattened(kind: Array) -> Array:
    inner: Type = kind
    count = 1
    while isinstance(inner, Array):
        count *= inner.length or 0
        inner = inner.element
    return Array(inner, count)


def _constructed(what: Declared, const: bool, node: Node, scope: Scope) -> Statement:
    """`T v(a, b);` with plain names, which reads as a prototype."""
    names: list[Expression] = []
    for parameter in what.constructor.named_children if what.constructor is not None else []:
        inner = parameter.child_by_field_name("type")
        found = scope.lookup(scope.text(inner)) if inner is not None else None
        if found is None or inner is None or scope.text(inner) != scope.text(parameter):
            return scope.opaque_statement(node, "a function declared inside a function")
        if isinstance(found, Literal):
            names.append(found)
        else:
            from migrate.cuda.ast import Name

            names.append(Name(found, found.type, scope.span(inner)))
    kind = what.type
    value: Expression
    if isinstance(kind, Vector):
        from migrate.cuda.calls import vector

        value = vector(kind, names, node, scope)
    elif len(names) == 1:
        value = cast_to(kind, names[0], node, scope)
    else:
        return scope.opaque_statement(node, f"the construction of {kind} is not understood")
    variable = scope.declare(what.name, kind, "local", scope.span(node), const=const)
    return Declare(variable, value, scope.span(node))


def _expression_statement(node: Node, scope: Scope) -> list[Statement]:
    inner = [child for child in node.named_children if child.type != "comment"]
    if not inner:
        return []
    child = inner[0]
    span = scope.span(node)
    if child.type == "call_expression":
        function = child.child_by_field_name("function")
        name = scope.text(function) if function is not None else ""
        if name in BARRIERS and name not in scope.program.functions:
            return [Barrier(BARRIERS[name], span)]
        if name in ("static_assert", "assert", "printf", "__builtin_assume"):
            return []
    return [Evaluate(expression(child, scope), span)]


def _if(node: Node, scope: Scope) -> list[Statement]:
    scope.push()
    try:
        before, test = _condition(node, scope)
        alternative = node.child_by_field_name("alternative")
        otherwise_node = None
        if alternative is not None:
            bodies = [c for c in alternative.named_children if c.type != "comment"]
            otherwise_node = bodies[0] if bodies else None
        consequence = node.child_by_field_name("consequence")
        if any(child.type == "constexpr" for child in node.children):
            return _static_if(test, consequence, otherwise_node, node, scope)
        then = block(consequence, scope)
        otherwise = block(otherwise_node, scope) if otherwise_node is not None else None
        made = If(test, then, otherwise, scope.span(node))
        if before:
            return [Block((*before, made), scope.span(node))]
        return [made]
    finally:
        scope.pop()


def _static_if(
    test: Expression, consequence: Node | None, alternative: Node | None, node: Node, scope: Scope
) -> list[Statement]:
    value = fold(test, scope.known)
    if value is None:
        return [scope.opaque_statement(node, "the condition of if constexpr is not constant")]
    chosen = consequence if value else alternative
    return [block(chosen, scope)] if chosen is not None else []


def _condition(node: Node, scope: Scope) -> tuple[tuple[Statement, ...], Expression]:
    """The condition of an `if` or a loop, and what it declares before."""
    clause = node.child_by_field_name("condition")
    if clause is None:
        return (), Literal(True, BOOL, scope.span(node))
    if clause.type == "condition_clause":
        before: list[Statement] = []
        initializer = clause.child_by_field_name("initializer")
        if initializer is not None:
            inner = [c for c in initializer.named_children if c.type != "comment"]
            before += statements(
                inner if initializer.type == "init_statement" else [initializer], scope
            )
        value = clause.child_by_field_name("value")
        if value is not None and value.type == "declaration":
            before += statement(value, scope)
            last = before[-1]
            if isinstance(last, Declare):
                from migrate.cuda.ast import Name

                name = Name(last.variable, last.variable.type, last.span)
                return tuple(before), condition(name)
            return tuple(before), scope.opaque(value, "this condition declares no scalar", BOOL)
        clause = value if value is not None else clause
        return tuple(before), _truth(clause, scope)
    return (), _truth(clause, scope)


def _truth(node: Node, scope: Scope) -> Expression:
    value = condition(expression(node, scope))
    if isinstance(value, OpaqueExpression) and value not in scope.issues:
        return scope.opaque(node, value.reason, BOOL)
    return value


def _loop(kind: OneOf["for", "while", "do"], node: Node, scope: Scope) -> list[Statement]:
    scope.push()
    try:
        initial: tuple[Statement, ...] = ()
        start = node.child_by_field_name("initializer")
        if start is not None:
            initial = (
                tuple(statement(start, scope))
                if start.type == "declaration"
                else (Evaluate(expression(start, scope), scope.span(start)),)
            )
        test: Expression | None = None
        clause = node.child_by_field_name("condition")
        if clause is not None:
            before, test = _condition(node, scope)
            if before:
                return [scope.opaque_statement(node, "a loop condition that declares")]
        body_node = node.child_by_field_name("body")
        body = block(body_node, scope)
        update = node.child_by_field_name("update")
        step = expression(update, scope) if update is not None else None
        text = scope.program.expanded.text
        if kind == "do":
            head_start = clause.start_byte if clause is not None else node.start_byte
            head_end = node.end_byte
        else:
            head_start = node.start_byte
            end = body_node.start_byte if body_node is not None else node.end_byte
            head_end = head_start + len(text[head_start:end].rstrip())
        head = scope.program.expanded.span(head_start, head_end)
        return [Loop(kind, initial, test, step, body, scope.span(node), head)]
    finally:
        scope.pop()


def _for(node: Node, scope: Scope) -> list[Statement]:
    return _loop("for", node, scope)


def _while(node: Node, scope: Scope) -> list[Statement]:
    return _loop("while", node, scope)


def _do(node: Node, scope: Scope) -> list[Statement]:
    return _loop("do", node, scope)


def _switch(node: Node, scope: Scope) -> list[Statement]:
    _, subject = _condition(node, scope)
    clause = node.child_by_field_name("condition")
    value = clause.child_by_field_name("value") if clause is not None else None
    if value is not None:
        subject = expression(value, scope)
    if not isinstance(subject.type, Scalar) or not subject.type.is_integer:
        return [scope.opaque_statement(node, "a switch over this is not understood")]
    body = node.child_by_field_name("body")
    cases: list[Case] = []
    scope.push()
    try:
        for child in body.named_children if body is not None else []:
            if child.type == "comment":
                continue
            if child.type != "case_statement":
                return [scope.opaque_statement(node, "a switch with code outside its cases")]
            label = child.child_by_field_name("value")
            rest = [c for c in child.named_children if label is None or c.id != label.id]
            made = expression(label, scope) if label is not None else None
            if made is not None:
                made = convert(made, subject.type)
            cases.append(Case(made, statements(rest, scope), scope.span(child)))
    finally:
        scope.pop()
    return [Switch(subject, tuple(cases), scope.span(node))]


def _break(node: Node, scope: Scope) -> list[Statement]:
    return [Break(scope.span(node))]


def _continue(node: Node, scope: Scope) -> list[Statement]:
    return [Continue(scope.span(node))]


def _return(node: Node, scope: Scope) -> list[Statement]:
    inner = [child for child in node.named_children if child.type != "comment"]
    span = scope.span(node)
    if not inner:
        return [Return(None, span)]
    if inner[0].type == "initializer_list":
        return [Return(braced(inner[0], scope.result, scope), span)]
    value = expression(inner[0], scope)
    if scope.result == VOID:
        return [Evaluate(value, span), Return(None, span)]
    if isinstance(scope.result, Unknown) and scope.result.name == "auto":
        scope.result = decay(value).type
    converted = convert(value, scope.result)
    if isinstance(converted, OpaqueExpression) and converted not in scope.issues:
        converted = scope.opaque(node, converted.reason, scope.result)
    return [Return(converted, span)]


def _local_type(node: Node, scope: Scope) -> list[Statement]:
    """`using T = ...;` and `typedef ... T;` inside a body."""
    target = resolve(node.child_by_field_name("type"), scope)
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


_HANDLERS: dict[str, Callable[[Node, Scope], list[Statement]]] = {
    "compound_statement": _compound,
    "declaration": _declaration,
    "expression_statement": _expression_statement,
    "if_statement": _if,
    "for_statement": _for,
    "while_statement": _while,
    "do_statement": _do,
    "switch_statement": _switch,
    "break_statement": _break,
    "continue_statement": _continue,
    "return_statement": _return,
    "alias_declaration": _local_type,
    "type_definition": _local_type,
    "using_declaration": _nothing,
    "namespace_alias_definition": _nothing,
    "static_assert_declaration": _nothing,
    "empty_statement": _nothing,
    "preproc_call": _nothing,
}
