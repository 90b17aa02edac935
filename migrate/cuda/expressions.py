"""Expressions: syntax nodes to typed tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal as OneOf
from typing import cast as typed

from tree_sitter import Node

from migrate.cuda import calls
from migrate.cuda.ast import (
    Assign,
    Binary,
    Builtin,
    Cast,
    Comma,
    Component,
    Conditional,
    Expression,
    Literal,
    MakeVector,
    Name,
    Step,
    Unary,
    Variable,
)
from migrate.cuda.conversions import (
    address,
    balance,
    condition,
    convert,
    decay,
    is_place,
    number,
)
from migrate.cuda.declarators import declared, is_type_name, type_of
from migrate.cuda.folding import fold
from migrate.cuda.intrinsics import CONSTANTS
from migrate.cuda.operators import ARITHMETIC, binary, cast_to, checked, dereference, element
from migrate.cuda.scope import MAX_DEPTH, Scope
from migrate.cuda.types import (
    BOOL,
    CHAR,
    COMPONENTS,
    INT,
    UNSIGNED,
    UNSIGNED_LONG,
    VOID,
    Pointer,
    Scalar,
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
    scope.meter.step()
    handler = _HANDLERS.get(node.type)
    if node.is_missing or node.type == "ERROR":
        return scope.opaque(node, "the parser could not read this")
    if handler is None:
        return scope.opaque(node, f"{node.type.replace('_', ' ')} is not understood")
    if scope.depth >= MAX_DEPTH:
        return scope.opaque(node, f"nested deeper than {MAX_DEPTH} levels")
    scope.depth += 1
    try:
        return handler(node, scope)
    finally:
        scope.depth -= 1


def extent(node: Node, scope: Scope) -> int | None:
    """The value of a constant integer expression, such as an array's length."""
    mark = len(scope.issues)
    value = fold(expression(node, scope), scope.known)
    del scope.issues[mark:]
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
    text = scope.text(child) if child is not None else ""
    return _WORDS.get(text, text)


def _parenthesized(node: Node, scope: Scope) -> Expression:
    inner = [child for child in node.named_children if child.type != "comment"]
    if len(inner) != 1:
        return scope.opaque(node, "these parentheses hold no single expression")
    return expression(inner[0], scope)


def _number(node: Node, scope: Scope) -> Expression:
    found = number(scope.text(node))
    if found is None:
        return scope.opaque(node, "this number is not understood")
    return Literal(found[0], found[1], scope.span(node))


def _character(node: Node, scope: Scope) -> Expression:
    text = scope.text(node)[1:-1]
    escapes = {"\\n": 10, "\\t": 9, "\\0": 0, "\\\\": 92, "\\'": 39, "\\r": 13}
    value = escapes.get(text, ord(text) if len(text) == 1 else None)
    if value is None:
        return scope.opaque(node, "this character literal is not understood")
    return Literal(value, CHAR, scope.span(node))


def _true(node: Node, scope: Scope) -> Expression:
    return Literal(True, BOOL, scope.span(node))


def _false(node: Node, scope: Scope) -> Expression:
    return Literal(False, BOOL, scope.span(node))


def _null(node: Node, scope: Scope) -> Expression:
    return Cast(Literal(0, INT, scope.span(node)), Pointer(VOID), scope.span(node), written=False)


def _identifier(node: Node, scope: Scope) -> Expression:
    text = scope.text(node)
    found = scope.lookup(text)
    span = scope.span(node)
    match found:
        case Variable():
            return Name(found, found.type, span)
        case Literal():
            return Literal(found.value, found.type, span)
        case None:
            pass
    plain = text.rsplit("::", 1)[-1]
    if plain == "warpSize":
        return Literal(32, INT, span)
    if plain in ("NULL", "nullptr"):
        return _null(node, scope)
    if plain in scope.program.enumerators:
        return _enumerator(node, plain, scope)
    if plain in scope.program.variables:
        return _file_variable(node, plain, scope)
    if plain in CONSTANTS:
        value, kind = CONSTANTS[plain]
        return Literal(value, kind, span)
    if plain in scope.program.functions:
        return scope.opaque(node, f"the function {plain} is used as a value")
    return scope.opaque(node, f"{plain} is not defined in this file")


def _enumerator(node: Node, name: str, scope: Scope) -> Expression:
    base, offset = scope.program.enumerators[name]
    value = 0 if base is None else extent(base, scope)
    if value is None:
        return scope.opaque(node, f"the value of enumerator {name} is not understood", INT)
    return Literal(value + offset, INT, scope.span(node))


def _file_variable(node: Node, name: str, scope: Scope) -> Expression:
    if name in scope.globals_used:
        variable = scope.globals_used[name]
        return Name(variable, variable.type, scope.span(node))
    found = scope.program.variables[name]
    base = resolve(found.declaration.child_by_field_name("type"), scope)
    what = declared(found.declarator, base, scope, extent)
    if found.memory == "host":
        initial = found.declarator.child_by_field_name("value")
        if initial is None or not isinstance(what.type, Scalar):
            return scope.opaque(node, f"the constant {name} has no scalar value", what.type)
        value = fold(convert(expression(initial, scope), what.type), scope.known)
        if value is None:
            return scope.opaque(node, f"the value of {name} is not constant", what.type)
        return Literal(value, what.type, scope.span(node))
    variable = Variable(
        -1 - len(scope.globals_used),
        name,
        what.type,
        "constant" if found.memory == "constant" else "global",
        scope.span(found.declarator),
        const=found.memory == "constant",
    )
    scope.globals_used[name] = variable
    return Name(variable, variable.type, scope.span(node))


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
        return Builtin(which, axis, UNSIGNED, scope.span(node))
    base = expression(argument, scope)
    if _operator(node, scope) == "->":
        base = dereference(base, node, scope)
    if isinstance(base.type, Vector) and len(name) == 1:
        index = COMPONENTS.find(name)
        if 0 <= index < base.type.lanes:
            return Component(base, index, base.type.element, scope.span(node))
    if isinstance(base.type, Unknown):
        return scope.opaque(node, f"{base_text} is of type {base.type}, which is not understood")
    return scope.opaque(node, f"{base.type} has no member {name}")


def _subscript(node: Node, scope: Scope) -> Expression:
    base = _field(node, "argument", scope)
    indices = node.child_by_field_name("indices")
    inner = [c for c in indices.named_children if c.type != "comment"] if indices else []
    if len(inner) != 1:
        return scope.opaque(node, "a subscript with several indices is not understood")
    return element(base, expression(inner[0], scope), node, scope)


def _pointer(node: Node, scope: Scope) -> Expression:
    operand = _field(node, "argument", scope)
    if _operator(node, scope) == "*":
        return dereference(decay(operand), node, scope)
    found = address(operand)
    if found is None:
        if isinstance(operand.type, Unknown):
            return operand
        return scope.opaque(node, "the address of a value is taken")
    return found


def _unary(node: Node, scope: Scope) -> Expression:
    operator = _operator(node, scope)
    operand = _field(node, "argument", scope)
    span = scope.span(node)
    if isinstance(operand.type, Unknown):
        return operand
    if operator == "!":
        return Unary("logical_not", condition(operand), BOOL, span)
    if not isinstance(operand.type, Scalar):
        return scope.opaque(node, f"unary {operator} of {operand.type} is not understood")
    kind = promote(operand.type)
    value = convert(operand, kind)
    match operator:
        case "-":
            if isinstance(value, Literal) and not (kind.is_unsigned or kind.is_bool):
                return Literal(-value.value, kind, span)
            return Unary("negate", value, kind, span)
        case "+":
            return value
        case "~" if kind.is_integer:
            return Unary("bitwise_not", value, kind, span)
        case _:
            return scope.opaque(node, f"the operator {operator} is not understood", kind)


def _binary(node: Node, scope: Scope) -> Expression:
    operator = _operator(node, scope)
    left = _field(node, "left", scope)
    right = _field(node, "right", scope)
    return binary(operator, left, right, node, scope)


def _assignment(node: Node, scope: Scope) -> Expression:
    operator = _operator(node, scope)
    target = _field(node, "left", scope)
    value_node = node.child_by_field_name("right")
    if value_node is not None and value_node.type == "initializer_list":
        value = braced(value_node, target.type, scope)
    else:
        value = _field(node, "right", scope)
    span = scope.span(node)
    if isinstance(target.type, Unknown):
        return target
    if not is_place(target):
        return scope.opaque(node, "the left side cannot be assigned", target.type)
    if operator == "=":
        value = checked(convert(value, target.type), node, scope)
        return Assign(target, None, value, target.type, target.type, span)
    word = operator[:-1]
    if isinstance(target.type, Pointer) and word in "+-":
        return Assign(target, ARITHMETIC[word], value, target.type, target.type, span)
    if isinstance(value.type, Unknown):
        return value
    combined = binary(word, target, value, node, scope)
    if not isinstance(combined, Binary) or not isinstance(combined.type, Scalar):
        return combined
    return Assign(target, combined.operator, combined.right, combined.type, target.type, span)


def _update(node: Node, scope: Scope) -> Expression:
    target = _field(node, "argument", scope)
    if not is_place(target) or not isinstance(target.type, Scalar | Pointer):
        return (
            target
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
    return Step(target, delta, prefix, target.type, scope.span(node))


def _conditional(node: Node, scope: Scope) -> Expression:
    test = condition(_field(node, "condition", scope))
    then = decay(_field(node, "consequence", scope))
    otherwise = decay(_field(node, "alternative", scope))
    span = scope.span(node)
    for branch in (then, otherwise):
        if isinstance(branch.type, Unknown):
            return branch
    if then.type == otherwise.type:
        return Conditional(test, then, otherwise, then.type, span)
    balanced = balance(then, otherwise)
    if balanced is not None:
        return Conditional(test, balanced[0], balanced[1], balanced[2], span)
    if isinstance(then.type, Pointer):
        return Conditional(test, then, convert(otherwise, then.type), then.type, span)
    if isinstance(otherwise.type, Pointer):
        return Conditional(test, convert(then, otherwise.type), otherwise, otherwise.type, span)
    return scope.opaque(node, f"? : between {then.type} and {otherwise.type} is not understood")


def _comma(node: Node, scope: Scope) -> Expression:
    first = _field(node, "left", scope)
    second = _field(node, "right", scope)
    return Comma(first, second, second.type, scope.span(node))


def _cast(node: Node, scope: Scope) -> Expression:
    named = node.child_by_field_name("type")
    value = node.child_by_field_name("value")
    if named is not None and value is not None:
        # `(a) + b` with a variable reads as a cast of `+b`.
        found = scope.lookup(scope.text(named))
        operator = value.child_by_field_name("operator")
        operand = value.child_by_field_name("argument")
        if found is not None and operator is not None and operand is not None:
            span = scope.span(named)
            left = Name(found, found.type, span) if isinstance(found, Variable) else found
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
            kind = scope.type_named(text) or resolve(_innermost(value), scope)
        else:
            kind = expression(value, scope).type
    else:
        return scope.opaque(node, "sizeof without an operand")
    if isinstance(kind, Unknown):
        return scope.opaque(node, f"the size of {kind} is not known", UNSIGNED_LONG)
    return Literal(kind.size, UNSIGNED_LONG, scope.span(node))


def _innermost(node: Node) -> Node:
    while node.type == "parenthesized_expression" and node.named_child_count == 1:
        node = node.named_children[0]
    return node


def braced(node: Node, kind: Type, scope: Scope) -> Expression:
    """`{a, b}` as a value of a known type."""
    values = [expression(child, scope) for child in node.named_children if child.type != "comment"]
    match kind:
        case Vector(element=element_type, lanes=lanes) if len(values) <= lanes:
            filler = Literal(1 if kind.name == "dim3" else 0, element_type, scope.span(node))
            parts = [convert(value, element_type) for value in values]
            parts += [filler] * (lanes - len(parts))
            return MakeVector(tuple(parts), kind, scope.span(node))
        case Scalar() if len(values) == 1:
            return convert(values[0], kind)
        case Scalar() if not values:
            return Literal(0, kind, scope.span(node))
        case _:
            return scope.opaque(node, f"braces for {kind} are not understood", kind)


def _compound_literal(node: Node, scope: Scope) -> Expression:
    kind = resolve(node.child_by_field_name("type"), scope)
    value = node.child_by_field_name("value")
    if value is None:
        return scope.opaque(node, "this literal has no value")
    return braced(value, kind, scope)


def _call(node: Node, scope: Scope) -> Expression:
    function = node.child_by_field_name("function")
    if function is None:
        return scope.opaque(node, "a call of nothing")
    arguments_node = node.child_by_field_name("arguments")
    children = [
        child
        for child in (arguments_node.named_children if arguments_node is not None else [])
        if child.type != "comment"
    ]
    # `(T)(x)` and `T(x)` with a named type read as calls.
    core = _innermost(function)
    name = scope.text(core)
    if core.type in ("identifier", "primitive_type", "qualified_identifier", "type_identifier"):
        shadowed = scope.lookup(name) is not None or name in scope.program.functions
        if core.type == "primitive_type" or (not shadowed and is_type_name(name, scope)):
            kind = resolve(core, scope)
            return _functional_cast(kind, children, node, scope)
    if core.type == "sized_type_specifier":
        return _functional_cast(resolve(core, scope), children, node, scope)
    template: list[Node] = []
    if core.type == "qualified_identifier":
        inner = core.child_by_field_name("name")
        if inner is not None and inner.type == "template_function":
            core = inner
    if core.type == "template_function":
        listed = core.child_by_field_name("arguments")
        template = [c for c in listed.named_children if c.type != "comment"] if listed else []
        name = scope.text(core.child_by_field_name("name") or core)
        if name.endswith("_cast") and len(template) == 1 and len(children) == 1:
            value = expression(children[0], scope)
            return cast_to(resolve(template[0], scope), value, node, scope)
    elif core.type not in ("identifier", "qualified_identifier"):
        return scope.opaque(node, f"a call of {core.type.replace('_', ' ')} is not understood")
    arguments = [expression(child, scope) for child in children]
    given = [_template_argument(child, scope) for child in template]
    return calls.call(name.rsplit("::", 1)[-1], given, arguments, node, scope)


def _template_argument(node: Node, scope: Scope) -> Type | int | float | bool:
    if node.type == "type_descriptor":
        text = scope.text(node)
        found = scope.lookup(text)
        if isinstance(found, Literal):
            return found.value
        if isinstance(found, Variable):
            return scope.known.get(found.id, Unknown(text))
        if not is_type_name(text, scope) and text in scope.program.variables:
            value = fold(_file_variable(node, text, scope), scope.known)
            return Unknown(text) if value is None else value
        return resolve(node, scope)
    mark = len(scope.issues)
    value = fold(expression(node, scope), scope.known)
    del scope.issues[mark:]
    return Unknown(scope.text(node)) if value is None else value


def _functional_cast(kind: Type, children: list[Node], node: Node, scope: Scope) -> Expression:
    if len(children) == 1 and not isinstance(kind, Vector):
        return cast_to(kind, expression(children[0], scope), node, scope)
    if not children and isinstance(kind, Scalar):
        return Literal(0, kind, scope.span(node))
    values = [expression(child, scope) for child in children]
    if isinstance(kind, Vector):
        return calls.vector(kind, values, node, scope)
    return scope.opaque(node, f"the construction of {kind} is not understood", kind)


_HANDLERS: dict[str, Callable[[Node, Scope], Expression]] = {
    "parenthesized_expression": _parenthesized,
    "number_literal": _number,
    "char_literal": _character,
    "true": _true,
    "false": _false,
    "null": _null,
    "nullptr": _null,
    "identifier": _identifier,
    "qualified_identifier": _identifier,
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
    "call_expression": _call,
}
