"""Statements: syntax nodes to typed tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal as OneOf

from tree_sitter import Node

from migrate.cuda import objects
from migrate.cuda.ast import (
    Assert,
    Barrier,
    Binary,
    Block,
    Break,
    Case,
    Component,
    Continue,
    Declare,
    Element,
    Evaluate,
    Expression,
    If,
    Literal,
    Loop,
    Name,
    Return,
    Statement,
    Step,
    Switch,
)
from migrate.cuda.braces import braced
from migrate.cuda.conversions import address, condition, convert, decay, is_place, pure
from migrate.cuda.declarations import declaration, local_type, specified
from migrate.cuda.declarators import declared
from migrate.cuda.definitions import children_of
from migrate.cuda.expressions import expression, extent, resolve, truth
from migrate.cuda.folding import fold
from migrate.cuda.intrinsics import BARRIERS
from migrate.cuda.library import registry
from migrate.cuda.origins import Place, Where
from migrate.cuda.scope import MAX_DEPTH, Scope
from migrate.cuda.types import (
    ADDRESS,
    BOOL,
    INT,
    VOID,
    Array,
    Scalar,
    Struct,
    Unknown,
)
from migrate.source import shortened


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
    kind = node.type
    if node.is_missing or kind == "ERROR":
        return [scope.opaque_statement(node, "the parser could not read this")]
    if node.has_error:
        missing = next((child for child in node.children if child.is_missing), None)
        if missing is not None:
            return [scope.opaque_statement(node, f"a syntax error: `{missing.type}` is missing")]
    issue = scope.program.disagreement(node)
    if issue is not None:
        return [scope.opaque_statement(node, issue.message)]
    handler = _HANDLERS.get(kind)
    if handler is None:
        what = kind.replace("_", " ")
        return [scope.opaque_statement(node, f"{what} is not understood")]
    if scope.depth >= MAX_DEPTH:
        return [scope.opaque_statement(node, f"nested deeper than {MAX_DEPTH} levels")]
    scope.depth += 1
    waiting, scope.pending = scope.pending, []
    try:
        made = handler(node, scope)
        return [*scope.pending, *made]
    finally:
        scope.depth -= 1
        scope.pending = waiting


def block(node: Node | None, scope: Scope) -> Block:
    """A statement as a block with a scope of its own."""
    if node is None:
        raise ValueError("no statement node")
    scope.push()
    try:
        nodes = node.named_children if node.type == "compound_statement" else [node]
        return Block(statements(nodes, scope), scope.where(node))
    finally:
        scope.pop()


def _compound(node: Node, scope: Scope) -> list[Statement]:
    return [block(node, scope)]


def _nothing(_node: Node, _scope: Scope) -> list[Statement]:
    return []


def _attributed(node: Node, scope: Scope) -> list[Statement]:
    inner = [child for child in children_of(node) if child.type != "attribute_declaration"]
    return list(statements(inner, scope))


def _expression_statement(node: Node, scope: Scope) -> list[Statement]:
    inner = [child for child in node.named_children if child.type != "comment"]
    if not inner:
        return []
    child = inner[0]
    where = scope.where(node)
    if child.type == "call_expression":
        function = child.child_by_field_name("function")
        name = scope.text(function) if function is not None else ""
        if name in BARRIERS and name not in scope.program.functions:
            return [Barrier(BARRIERS[name], where)]
        if name == "assert" and name not in scope.program.functions:
            return _assertion(child, where, scope)
        if name == "__trap" and name not in scope.program.functions:
            return [Assert(Literal(False, BOOL, where), "__trap()", where)]
        if name in ("static_assert", "printf", "__builtin_assume"):
            return []
    made = registry.statements(child, scope)
    if made is not None:
        return made
    return [Evaluate(expression(child, scope), where)]


def _assertion(node: Node, where: Where, scope: Scope) -> list[Statement]:
    """`assert(condition)`; one that is not understood, or does something, is left out."""
    given = children_of(node.child_by_field_name("arguments"))
    # `assert(condition && "what it means")`
    while given and given[0].type == "binary_expression":
        right = given[0].child_by_field_name("right")
        left = given[0].child_by_field_name("left")
        if right is None or left is None or right.type != "string_literal":
            break
        given = [left]
    if len(given) != 1:
        return []
    mark, waiting = len(scope.issues), len(scope.pending)
    holds = truth(expression(given[0], scope), node, scope)
    if len(scope.issues) > mark or not pure(holds):
        del scope.issues[mark:]
        del scope.pending[waiting:]
        return []
    return [Assert(holds, shortened(scope.text(given[0])), where)]


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
        made = If(test, then, otherwise, scope.where(node))
        if before:
            return [Block((*before, made), scope.where(node))]
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
        return (), Literal(True, BOOL, scope.where(node))
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
                name = Name(last.variable, last.variable.type, last.where)
                return tuple(before), condition(name)
            return tuple(before), scope.opaque(value, "this condition declares no scalar", BOOL)
        clause = value if value is not None else clause
        return tuple(before), _truth(clause, scope)
    return (), _truth(clause, scope)


def _truth(node: Node, scope: Scope) -> Expression:
    return truth(expression(node, scope), node, scope)


def _loop(kind: OneOf["for", "while", "do"], node: Node, scope: Scope) -> list[Statement]:
    scope.push()
    try:
        initial: tuple[Statement, ...] = ()
        start = node.child_by_field_name("initializer")
        if start is not None:
            initial = (
                tuple(statement(start, scope))
                if start.type == "declaration"
                else (Evaluate(expression(start, scope), scope.where(start)),)
            )
        test: Expression | None = None
        clause = node.child_by_field_name("condition")
        if clause is not None:
            before, test = _condition(node, scope)
            if before:
                return [scope.opaque_statement(node, "a loop condition that declares")]
        body_node = node.child_by_field_name("body")
        with _leaving(scope, _OF_LOOPS):
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
        head = Place(scope.program.expanded, head_start, head_end)
        return [Loop(kind, initial, test, step, body, scope.where(node), head)]
    finally:
        scope.pop()


def _for(node: Node, scope: Scope) -> list[Statement]:
    return _loop("for", node, scope)


def _while(node: Node, scope: Scope) -> list[Statement]:
    return _loop("while", node, scope)


def _do(node: Node, scope: Scope) -> list[Statement]:
    return _loop("do", node, scope)


def _switch(node: Node, scope: Scope) -> list[Statement]:
    clause = node.child_by_field_name("condition")
    value = clause.child_by_field_name("value") if clause is not None else None
    if value is None:
        return [scope.opaque_statement(node, "a switch over this is not understood")]
    subject = objects.as_scalar(expression(value, scope), INT, node, scope)
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
            with _leaving(scope, scope.ways_out | {"break"}):
                cases.append(Case(made, statements(rest, scope), scope.where(child)))
    finally:
        scope.pop()
    return [Switch(subject, tuple(cases), scope.where(node))]


_OF_LOOPS = frozenset({"break", "continue"})


@contextmanager
def _leaving(scope: Scope, ways: frozenset[str]) -> Iterator[None]:
    """Inside, `ways` are what leaves a loop or switch of this function."""
    around, scope.ways_out = scope.ways_out, ways
    try:
        yield
    finally:
        scope.ways_out = around


def _break(node: Node, scope: Scope) -> list[Statement]:
    if "break" not in scope.ways_out:
        return [scope.opaque_statement(node, "a break outside every loop and switch")]
    return [Break(scope.where(node))]


def _continue(node: Node, scope: Scope) -> list[Statement]:
    if "continue" not in scope.ways_out:
        return [scope.opaque_statement(node, "a continue outside every loop")]
    return [Continue(scope.where(node))]


def _return(node: Node, scope: Scope) -> list[Statement]:
    inner = children_of(node)
    where = scope.where(node)
    if not inner:
        return [Return(None, where)]
    if inner[0].type == "initializer_list":
        return [Return(braced(inner[0], scope.result, scope), where)]
    value = expression(inner[0], scope)
    if scope.result == VOID:
        return [Evaluate(value, where), Return(None, where)]
    if scope.returns_place:
        found = address(value)
        if found is None:
            value = scope.opaque(node, "a reference to a value is returned", scope.result)
        return [Return(found if found is not None else value, where)]
    if isinstance(scope.result, Unknown) and scope.result.name == "auto":
        scope.result = decay(value).type
    if value.type == ADDRESS:
        scope.result = ADDRESS
    return [Return(objects.fitted(value, scope.result, node, scope), where)]


def _range_for(node: Node, scope: Scope) -> list[Statement]:
    """`for (T x : array)`: the elements of an array of known length in order."""
    where = scope.where(node)
    scope.push()
    try:
        right = node.child_by_field_name("right")
        declarator = node.child_by_field_name("declarator")
        type_node = node.child_by_field_name("type")
        if right is None or declarator is None:
            return [scope.opaque_statement(node, "this loop is not understood")]
        over = expression(right, scope)
        if isinstance(over.type, Struct) and over.type.template == "array":
            over = Component(over, 0, over.type.members[0].type, where)
        kind = over.type
        if not isinstance(kind, Array) or kind.length is None or not is_place(over):
            return [scope.opaque_statement(node, "a loop over this is not understood")]
        position = scope.declare("", INT, "local", where)
        name = Name(position, INT, where)
        start = Declare(position, Literal(0, INT, where), where)
        test = Binary("less", name, Literal(kind.length, INT, where), BOOL, where)
        step = Step(name, 1, True, INT, where)
        place = Element(over, name, kind.element, where)
        auto = type_node is not None and type_node.type == "placeholder_type_specifier"
        base = kind.element if auto else resolve(type_node, scope)
        what = declared(declarator, base, scope, extent)
        scope.push()
        if what.reference:
            variable = scope.declare(what.name, kind.element, "reference", where)
            taken = Declare(variable, place, where)
        else:
            variable = scope.declare(what.name, what.type, "local", where)
            taken = Declare(variable, objects.fitted(place, what.type, node, scope), where)
        with _leaving(scope, _OF_LOOPS):
            body = block(node.child_by_field_name("body"), scope)
        scope.pop()
        whole = Block((taken, *body.body), body.where)
        return [Loop("for", (start,), test, step, whole, where, where)]
    finally:
        scope.pop()


_HANDLERS: dict[str, Callable[[Node, Scope], list[Statement]]] = {
    "compound_statement": _compound,
    "declaration": declaration,
    "expression_statement": _expression_statement,
    "if_statement": _if,
    "for_statement": _for,
    "while_statement": _while,
    "do_statement": _do,
    "switch_statement": _switch,
    "break_statement": _break,
    "continue_statement": _continue,
    "return_statement": _return,
    "alias_declaration": local_type,
    "type_definition": local_type,
    "using_declaration": _nothing,
    "namespace_alias_definition": _nothing,
    "static_assert_declaration": _nothing,
    "empty_statement": _nothing,
    "for_range_loop": _range_for,
    "enum_specifier": specified,
    "struct_specifier": specified,
    "class_specifier": specified,
    "union_specifier": specified,
    "attributed_statement": _attributed,
    "preproc_call": _nothing,
}
