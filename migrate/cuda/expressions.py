"""Expressions: syntax nodes to typed tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal as OneOf
from typing import cast as typed

from tree_sitter import Node

from migrate.cuda import callees, closures, componentwise, names, objects, templates
from migrate.cuda.ast import (
    Assign,
    Binary,
    Builtin,
    Cast,
    Comma,
    Conditional,
    Expression,
    Literal,
    Name,
    OpaqueExpression,
    Step,
    Unary,
    Variable,
)
from migrate.cuda.braces import braced
from migrate.cuda.conversions import (
    address,
    balance,
    condition,
    convert,
    decay,
    is_place,
    number,
    packed,
    pure,
)
from migrate.cuda.declarators import is_type_name, type_of
from migrate.cuda.definitions import innermost
from migrate.cuda.folding import fold
from migrate.cuda.library import registry
from migrate.cuda.operators import ARITHMETIC, binary, cast_to, dereference, element
from migrate.cuda.origins import Place
from migrate.cuda.scope import MAX_DEPTH, Binding, Scope
from migrate.cuda.types import (
    BOOL,
    CHAR,
    INT,
    UNSIGNED,
    UNSIGNED_LONG,
    VOID,
    Pointer,
    Routine,
    Scalar,
    Struct,
    Type,
    Unknown,
    Vector,
    promote,
)

_WORDS = {"and": "&&", "or": "||", "not": "!", "not_eq": "!=", "xor": "^"}


_BUILTINS = ("threadIdx", "blockIdx", "blockDim", "gridDim")


def expression(node: Node | None, scope: Scope) -> Expression:
    """The typed expression of a node; what is not understood comes back opaque."""
    if node is None:
        raise ValueError("no expression node")
    kind = node.type
    leaf = _LEAVES.get(kind)
    if leaf is not None:
        # Two nodes of three, and as many as the others allow: no steps of their own.
        return leaf(node, scope)
    scope.meter.step()
    handler = _HANDLERS.get(kind)
    if node.is_missing or kind == "ERROR":
        return _missing(node, scope)
    if handler is None:
        return scope.opaque(node, f"{kind.replace('_', ' ')} is not understood")
    if scope.depth >= MAX_DEPTH:
        return scope.opaque(node, f"nested deeper than {MAX_DEPTH} levels")
    scope.depth += 1
    try:
        return handler(node, scope)
    finally:
        scope.depth -= 1


def extent(node: Node, scope: Scope) -> int | None:
    """The value of a constant integer expression, such as an array's length."""
    mark, waiting = len(scope.issues), len(scope.pending)
    value = fold(expression(node, scope), scope.known)
    del scope.issues[mark:]
    del scope.pending[waiting:]
    return int(value) if value is not None and not isinstance(value, float) else None


def resolve(node: Node | None, scope: Scope) -> Type:
    """The type that a node names."""
    return type_of(node, scope, extent)


def _field(node: Node, name: str, scope: Scope) -> Expression:
    child = node.child_by_field_name(name)
    if child is None:
        return scope.opaque(node, f"its {name} is missing")
    return expression(child, scope)


def _operator(node: Node, scope: Scope) -> str:
    child = node.child_by_field_name("operator")
    if child is None:
        return ""
    # The syntax of a token that has no name is its text.
    text = scope.text(child) if child.is_named else child.type
    return _WORDS.get(text, text)


def _parenthesized(node: Node, scope: Scope) -> Expression:
    inner = [child for child in node.named_children if child.type != "comment"]
    if len(inner) != 1:
        return scope.opaque(node, "these parentheses hold no single expression")
    return expression(inner[0], scope)


def _number(node: Node, scope: Scope) -> Expression:
    if node.is_missing:
        return _missing(node, scope)
    found = number(scope.text(node))
    if found is None:
        return scope.opaque(node, "this number is not understood")
    return Literal(found[0], found[1], scope.where(node))


def _character(node: Node, scope: Scope) -> Expression:
    text = scope.text(node)[1:-1]
    escapes = {"\\n": 10, "\\t": 9, "\\0": 0, "\\\\": 92, "\\'": 39, "\\r": 13}
    value = escapes.get(text, ord(text) if len(text) == 1 else None)
    if value is None:
        return scope.opaque(node, "this character literal is not understood")
    return Literal(value, CHAR, scope.where(node))


def _true(node: Node, scope: Scope) -> Expression:
    return Literal(True, BOOL, scope.where(node))


def _false(node: Node, scope: Scope) -> Expression:
    return Literal(False, BOOL, scope.where(node))


def _null(node: Node, scope: Scope) -> Expression:
    return Cast(Literal(0, INT, scope.where(node)), Pointer(VOID), scope.where(node), written=False)


def _identifier(node: Node, scope: Scope) -> Expression:
    start, end = node.start_byte, node.end_byte
    if start == end:
        return _missing(node, scope)
    expanded = scope.program.expanded
    text = expanded.text[start:end].decode("utf-8", "replace")
    found = scope.lookup(text)
    if isinstance(found, Variable) and not isinstance(found.type, Unknown):
        return Name(found, found.type, Place(expanded, start, end))
    # A constant may be one of a constant.
    scope.meter.step()
    if scope.depth >= MAX_DEPTH:
        return scope.opaque(node, f"nested deeper than {MAX_DEPTH} levels")
    scope.depth += 1
    try:
        return names.identifier(text, node, scope)
    finally:
        scope.depth -= 1


def _missing(node: Node, scope: Scope) -> Expression:
    return scope.opaque(node, "the parser could not read this")


def _member(node: Node, scope: Scope) -> Expression:
    argument = node.child_by_field_name("argument")
    name_node = node.child_by_field_name("field")
    if argument is None or name_node is None:
        return scope.opaque(node, "this member access is incomplete")
    base_text, name = scope.text(argument), scope.text(name_node)
    if base_text in _BUILTINS and scope.lookup(base_text) is None:
        axis = "xyz".find(name)
        if len(name) != 1 or axis < 0:
            return scope.opaque(node, f"{base_text} has no component {name}")
        which = typed("OneOf['threadIdx', 'blockIdx', 'blockDim', 'gridDim']", base_text)
        return Builtin(which, axis, UNSIGNED, scope.where(node))
    base = object_of(node, scope)
    of_fragment = registry.member(base, name, node, scope)
    if of_fragment is not None:
        return of_fragment
    if name_node.type != "field_identifier":
        return scope.opaque(node, f"the member {name} is not understood")
    return objects.member(base, name, node, scope)


def object_of(node: Node, scope: Scope) -> Expression:
    """The object whose member a field expression names."""
    argument = node.child_by_field_name("argument")
    if argument is None:
        return scope.opaque(node, "this member access is incomplete")
    if argument.type == "this" and scope.this is not None:
        return scope.this
    base = expression(argument, scope)
    if _operator(node, scope) == "->":
        defined = objects.overloaded("->", (base,), node, scope)
        return dereference(decay(base) if defined is None else defined, node, scope)
    return base


def _this(node: Node, scope: Scope) -> Expression:
    if scope.this is None:
        return scope.opaque(node, "this is used outside of a class")
    found = address(scope.this)
    return found if found is not None else scope.opaque(node, "the address of a value is taken")


def _subscript(node: Node, scope: Scope) -> Expression:
    parts = node.named_children
    listed: Node | None
    if len(parts) == 2 and parts[1].type == "subscript_argument_list":
        base, listed = expression(parts[0], scope), parts[1]
    else:
        # With a comment in it, or an error.
        base, listed = _field(node, "argument", scope), node.child_by_field_name("indices")
    inner = [c for c in listed.named_children if c.type != "comment"] if listed else []
    if len(inner) != 1:
        return scope.opaque(node, "a subscript with several indices is not understood")
    index = expression(inner[0], scope)
    found = objects.indexed(base, index, node, scope)
    return found if found is not None else element(base, index, node, scope)


def _pointer(node: Node, scope: Scope) -> Expression:
    argument = node.child_by_field_name("argument")
    operator = _operator(node, scope)
    if argument is not None and argument.type == "this" and scope.this is not None:
        return scope.this if operator == "*" else scope.opaque(node, "the address of this")
    return _pointed(operator, _field(node, "argument", scope), node, scope)


def _pointed(operator: str, operand: Expression, node: Node, scope: Scope) -> Expression:
    """`*p` or `&x`."""
    if operator == "*":
        defined = objects.overloaded("*", (operand,), node, scope)
        if isinstance(operand.type, Routine):
            return operand
        return defined if defined is not None else dereference(decay(operand), node, scope)
    if isinstance(operand.type, Routine):
        return operand
    found = address(operand)
    if found is None:
        if isinstance(operand.type, Unknown):
            return operand
        return scope.opaque(node, "the address of a value is taken")
    return found


def _unary(node: Node, scope: Scope) -> Expression:
    return _applied(_operator(node, scope), _field(node, "argument", scope), node, scope)


def _applied(operator: str, operand: Expression, node: Node, scope: Scope) -> Expression:
    """A unary operator."""
    where = scope.where(node)
    if isinstance(operand.type, Unknown):
        return operand
    if isinstance(operand.type, Struct | Vector):
        defined = objects.overloaded(operator, (operand,), node, scope)
        if defined is not None:
            return defined
        if isinstance(operand.type, Vector):
            return componentwise.unary(operator, operand, node, scope)
        operand = objects.as_scalar(operand, None, node, scope)
    if operator == "!":
        return Unary("logical_not", condition(operand), BOOL, where)
    if not isinstance(operand.type, Scalar):
        return scope.opaque(node, f"unary {operator} of {operand.type} is not understood")
    kind = promote(operand.type)
    value = convert(operand, kind)
    match operator:
        case "-":
            if isinstance(value, Literal) and not (kind.is_unsigned or kind.is_bool):
                return Literal(-value.value, kind, where)
            return Unary("negate", value, kind, where)
        case "+":
            return value
        case "~" if kind.is_integer:
            return Unary("bitwise_not", value, kind, where)
        case _:
            return scope.opaque(node, f"the operator {operator} is not understood", kind)


def _binary(node: Node, scope: Scope) -> Expression:
    parts = node.children
    if len(parts) == 3 and not parts[1].is_named:
        left_node, sign, right_node = parts
        operator = _WORDS.get(sign.type, sign.type)
        if operator in "+-*&" and left_node.type == "parenthesized_expression":
            cast = _prefixed(left_node, operator, node, scope)
            if cast is not None:
                return cast
        left, right = expression(left_node, scope), expression(right_node, scope)
        return binary(operator, left, right, node, scope)
    # With a comment in it, or an error.
    operator = _operator(node, scope)
    cast = _prefixed(node.child_by_field_name("left"), operator, node, scope)
    if cast is not None:
        return cast
    left = _field(node, "left", scope)
    right = _field(node, "right", scope)
    return binary(operator, left, right, node, scope)


def _prefixed(left: Node | None, operator: str, node: Node, scope: Scope) -> Expression | None:
    """`(T)-x`, which reads as a difference where `T` is a named type."""
    if left is None or left.type != "parenthesized_expression" or operator not in "+-*&":
        return None
    core = innermost(left)
    if core.type not in ("identifier", "qualified_identifier"):
        return None
    name = scope.text(core)
    if scope.lookup(name) is not None or not is_type_name(name, scope):
        return None
    right = node.child_by_field_name("right")
    if right is None or right.type == "binary_expression":
        return scope.opaque(node, "this cast is not understood")
    operand = expression(right, scope)
    made = (_applied if operator in "+-" else _pointed)(operator, operand, node, scope)
    return cast_to(resolve(core, scope), made, node, scope)


def _assignment(node: Node, scope: Scope) -> Expression:
    operator = _operator(node, scope)
    target = _field(node, "left", scope)
    value_node = node.child_by_field_name("right")
    if value_node is None:
        value: Expression = scope.opaque(node, "its right is missing")
    elif value_node.type == "initializer_list":
        value = braced(value_node, target.type, scope)
    else:
        value = expression(value_node, scope)
    if isinstance(target.type, Unknown):
        return scope.unclear(node, target)
    where = scope.where(node)
    defined = objects.overloaded(operator, (target, value), node, scope)
    if defined is not None:
        return defined
    if not is_place(target):
        return scope.opaque(node, "the left side cannot be assigned", target.type)
    if operator == "=":
        target = packed(target, value.type)
        value = objects.fitted(value, target.type, node, scope)
        return Assign(target, None, value, target.type, target.type, where)
    word = operator[:-1]
    if isinstance(target.type, Pointer) and word in "+-":
        return Assign(target, ARITHMETIC[word], value, target.type, target.type, where)
    if isinstance(value.type, Unknown):
        return scope.unclear(node, value)
    if isinstance(target.type, Scalar):
        value = objects.as_scalar(value, None, node, scope)
    combined = binary(word, target, value, node, scope)
    if isinstance(target.type, Vector | Struct) and not isinstance(combined.type, Unknown):
        if not pure(target):
            return scope.opaque(node, "an operator on a place with side effects", target.type)
        value = objects.fitted(combined, target.type, node, scope)
        return Assign(target, None, value, target.type, target.type, where)
    if not isinstance(combined, Binary) or not isinstance(combined.type, Scalar):
        return combined
    return Assign(target, combined.operator, combined.right, combined.type, target.type, where)


def _update(node: Node, scope: Scope) -> Expression:
    target = _field(node, "argument", scope)
    if isinstance(target.type, Struct):
        defined = objects.overloaded(_operator(node, scope), (target,), node, scope)
        if defined is not None:
            return defined
    if not is_place(target) or not isinstance(target.type, Scalar | Pointer):
        return (
            scope.unclear(node, target)
            if isinstance(target.type, Unknown)
            else scope.opaque(node, "this cannot be incremented")
        )
    operator_node = node.child_by_field_name("operator")
    argument = node.child_by_field_name("argument")
    prefix = (
        operator_node is not None
        and argument is not None
        and operator_node.start_byte < argument.start_byte
    )
    delta = 1 if _operator(node, scope) == "++" else -1
    return Step(target, delta, prefix, target.type, scope.where(node))


def _conditional(node: Node, scope: Scope) -> Expression:
    test = truth(_field(node, "condition", scope), node, scope)
    if node.child_by_field_name("consequence") is None:
        return scope.opaque(node, "? : without a middle is not understood")
    then = decay(_field(node, "consequence", scope))
    otherwise = decay(_field(node, "alternative", scope))
    where = scope.where(node)
    if isinstance(test.type, Unknown):
        return test
    known = fold(test, scope.known)
    if then.type != otherwise.type and Unknown not in (type(then.type), type(otherwise.type)):
        if isinstance(then.type, Struct) and isinstance(otherwise.type, Scalar):
            then = objects.as_scalar(then, otherwise.type, node, scope)
        elif isinstance(otherwise.type, Struct) and isinstance(then.type, Scalar):
            otherwise = objects.as_scalar(otherwise, then.type, node, scope)
    if known is not None and then.type == VOID and otherwise.type == VOID:
        return then if known else otherwise
    for branch in (then, otherwise):
        if isinstance(branch.type, Unknown):
            return branch
    if then.type == otherwise.type:
        return Conditional(test, then, otherwise, then.type, where)
    balanced = balance(then, otherwise)
    if balanced is not None:
        return Conditional(test, balanced[0], balanced[1], balanced[2], where)
    if isinstance(then.type, Pointer):
        return Conditional(test, then, convert(otherwise, then.type), then.type, where)
    if isinstance(otherwise.type, Pointer):
        return Conditional(test, convert(then, otherwise.type), otherwise, otherwise.type, where)
    return scope.opaque(node, f"? : between {then.type} and {otherwise.type} is not understood")


def truth(value: Expression, node: Node, scope: Scope) -> Expression:
    """An expression as a condition."""
    if isinstance(value.type, Struct):
        value = objects.as_scalar(value, BOOL, node, scope)
    made = condition(value)
    if isinstance(made, OpaqueExpression) and made not in scope.issues:
        return scope.opaque(node, made.reason, BOOL)
    return made


def _comma(node: Node, scope: Scope) -> Expression:
    first = _field(node, "left", scope)
    second = _field(node, "right", scope)
    return Comma(first, second, second.type, scope.where(node))


def _cast(node: Node, scope: Scope) -> Expression:
    named = node.child_by_field_name("type")
    value = node.child_by_field_name("value")
    if named is not None and value is not None:
        # `(a) + b` with a variable reads as a cast of `+b`.
        found = scope.lookup(scope.text(named))
        operator = value.child_by_field_name("operator")
        operand = value.child_by_field_name("argument")
        if found is not None and operator is not None and operand is not None:
            where = scope.where(named)
            left = names.meant(found, where)
            if left is not None:
                right = expression(operand, scope)
                return binary(scope.text(operator), left, right, node, scope)
    to = resolve(node.child_by_field_name("type"), scope)
    return cast_to(to, _field(node, "value", scope), node, scope)


def _sizeof(node: Node, scope: Scope) -> Expression:
    of = node.child_by_field_name("type")
    value = node.child_by_field_name("value")
    if of is not None:
        kind = resolve(of, scope)
    elif value is not None:
        text = scope.text(value).strip("() ")
        inner = scope.lookup(text)
        if inner is None and is_type_name(text, scope):
            kind = scope.type_named(text) or resolve(innermost(value), scope)
        else:
            kind = expression(value, scope).type
    else:
        return scope.opaque(node, "sizeof without an operand")
    if isinstance(kind, Unknown):
        return scope.opaque(node, f"the size of {kind} is not known", UNSIGNED_LONG)
    return Literal(kind.size, UNSIGNED_LONG, scope.where(node))


def _alignof(node: Node, scope: Scope) -> Expression:
    kind = resolve(node.child_by_field_name("type"), scope)
    if isinstance(kind, Unknown):
        return scope.opaque(node, f"the alignment of {kind} is not known", UNSIGNED_LONG)
    return Literal(kind.align, UNSIGNED_LONG, scope.where(node))


def _compound_literal(node: Node, scope: Scope) -> Expression:
    kind = resolve(node.child_by_field_name("type"), scope)
    value = node.child_by_field_name("value")
    if value is None:
        return scope.opaque(node, "this literal has no value")
    return braced(value, kind, scope)


def template_argument(node: Node, scope: Scope) -> Binding:
    """What a template argument means: a type, a number or a function."""
    return templates.argument(node, scope)


def _lambda(node: Node, scope: Scope) -> Expression:
    return closures.value(closures.closure(node, scope), node, scope)


def _template_name(node: Node, scope: Scope) -> Expression:
    return names.template_name(node, scope)


_LEAVES: dict[str, Callable[[Node, Scope], Expression]] = {
    "identifier": _identifier,
    "number_literal": _number,
}

_HANDLERS: dict[str, Callable[[Node, Scope], Expression]] = {
    "parenthesized_expression": _parenthesized,
    "char_literal": _character,
    "true": _true,
    "false": _false,
    "null": _null,
    "nullptr": _null,
    "qualified_identifier": names.qualified,
    "field_expression": _member,
    "subscript_expression": _subscript,
    "pointer_expression": _pointer,
    "unary_expression": _unary,
    "binary_expression": _binary,
    "assignment_expression": _assignment,
    "update_expression": _update,
    "conditional_expression": _conditional,
    "comma_expression": _comma,
    "cast_expression": _cast,
    "sizeof_expression": _sizeof,
    "compound_literal_expression": _compound_literal,
    "call_expression": callees.call_expression,
    "alignof_expression": _alignof,
    "this": _this,
    "lambda_expression": _lambda,
    "template_function": _template_name,
}
