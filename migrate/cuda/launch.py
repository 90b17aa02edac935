"""Kernel launches in host code: geometry and arguments as expressions over host names.

Host code is read for evidence, never run.  A launch's expressions are kept as small trees
over the enclosing function's parameters: locals that are assigned once are replaced by
what they are assigned, file constants by their value, one-line helpers by what they
return.  `Launch.grid` can then be evaluated, or turned into an index expression.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from migrate.cuda.conversions import number
from migrate.cuda.parse import Program
from migrate.cuda.types import named
from migrate.ir.index import Index, TooComplex, maximum, minimum
from migrate.source import Span

_MAX_DEPTH = 40


@dataclass(frozen=True, slots=True)
class Constant:
    """A number; `name` is the host variable it was read from, which equality ignores."""

    value: int
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name whose value the caller of the host function decides."""

    name: str


@dataclass(frozen=True, slots=True)
class Operation:
    """`+ - * / % << >> min max ?:`; division truncates, as C's."""

    operator: str
    args: tuple[HostExpression, ...]


@dataclass(frozen=True, slots=True)
class NotRead:
    """An expression that is not understood."""

    text: str


HostExpression = Constant | Symbol | Operation | NotRead


@dataclass(frozen=True, slots=True)
class Launch:
    """One `kernel<<<grid, block, shared, stream>>>(arguments)`.

    `grid` and `block` are (x, y, z); `shared` is in bytes.  `arguments` pairs the kernel's
    parameters in order with expressions (`NotRead` for what is no integer, its text kept).
    `template` are the template arguments as written, `template_values` the same read.
    """

    kernel: str
    template: tuple[str, ...]
    grid: tuple[HostExpression, HostExpression, HostExpression]
    block: tuple[HostExpression, HostExpression, HostExpression]
    shared: HostExpression
    arguments: tuple[HostExpression, ...]
    function: str
    span: Span
    template_values: tuple[HostExpression, ...] = ()


def launches(program: Program) -> tuple[Launch, ...]:
    """Every launch that the parser could read, in file order."""
    text = program.expanded.text
    found: list[Launch] = []
    for mark in re.finditer(rb"<<<", text):
        node = program.root.descendant_for_byte_range(mark.start(), mark.end())
        while node is not None and node.type != "call_expression":
            node = node.parent
        if node is None:
            continue
        launch = _launch(node, program)
        if launch is not None:
            found.append(launch)
    return tuple(found)


def evaluate(expression: HostExpression, values: Mapping[str, int], depth: int = 0) -> int | None:
    """The expression's value; `None` where something in it has none."""
    if depth > _MAX_DEPTH:
        return None
    match expression:
        case Constant(value=value):
            return value
        case Symbol(name=name):
            return values.get(name)
        case Operation(operator=operator, args=args):
            numbers = [evaluate(arg, values, depth + 1) for arg in args]
            known = [item for item in numbers if item is not None]
            return _apply(operator, known) if len(known) == len(numbers) else None
        case NotRead():
            return None


def index(expression: HostExpression, symbols: Mapping[str, Index], depth: int = 0) -> Index | None:
    """The expression as an index expression; `None` where it is none.

    Sizes are taken to be non-negative, so that C's division is the floor division of indices
    where no subtraction is below it.
    """
    if depth > _MAX_DEPTH:
        return None
    match expression:
        case Constant(value=value):
            return Index.of(value)
        case Symbol(name=name):
            return symbols.get(name)
        case Operation(operator=operator, args=args):
            parts = [index(arg, symbols, depth + 1) for arg in args]
            known = [part for part in parts if part is not None]
            if len(known) != len(parts):
                return None
            try:
                return _indexed(operator, known)
            except (TooComplex, ZeroDivisionError):
                return None
        case NotRead():
            return None


def _apply(operator: str, args: list[int]) -> int | None:
    match operator, args:
        case "+", [a, b]:
            return a + b
        case "-", [a, b]:
            return a - b
        case "-", [a]:
            return -a
        case "*", [a, b]:
            return a * b
        case (("/" | "%"), [a, b]):
            if b == 0:
                return None
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return quotient if operator == "/" else a - quotient * b
        case "<<", [a, b] if 0 <= b < 63:
            return a << b
        case ">>", [a, b] if 0 <= b < 63:
            return a >> b
        case "min", _:
            return min(args)
        case "max", _:
            return max(args)
        case "<", [a, b]:
            return int(a < b)
        case ">", [a, b]:
            return int(a > b)
        case "<=", [a, b]:
            return int(a <= b)
        case ">=", [a, b]:
            return int(a >= b)
        case "==", [a, b]:
            return int(a == b)
        case "!=", [a, b]:
            return int(a != b)
        case "?:", [condition, then, otherwise]:
            return then if condition else otherwise
        case _:
            return None


def _indexed(operator: str, args: list[Index]) -> Index | None:
    match operator, args:
        case "+", [a, b]:
            return a + b
        case "-", [a, b]:
            return a - b
        case "*", [a, b]:
            return a * b
        case "/", [a, b]:
            return a // b
        case "%", [a, b]:
            return a % b
        case "<<", [a, b] if (amount := b.constant) is not None and 0 <= amount < 63:
            return a * (1 << amount)
        case ">>", [a, b] if (amount := b.constant) is not None and 0 <= amount < 63:
            return a // (1 << amount)
        case "min", _:
            return minimum(*args)
        case "max", _:
            return maximum(*args)
        case _:
            return None


@dataclass(slots=True)
class _Host:
    """The names of one host function, as they are seen at a position of the text."""

    program: Program
    position: int = 0
    locals: dict[str, list[Node]] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)
    bound: dict[str, HostExpression] = field(default_factory=dict)

    def text(self, node: Node | None) -> str:
        return "" if node is None else self.program.text(node)


def _launch(node: Node, program: Program) -> Launch | None:
    function = node.child_by_field_name("function")
    configuration = next((c for c in node.children if c.type == "kernel_call_syntax"), None)
    arguments = node.child_by_field_name("arguments")
    if function is None or configuration is None:
        return None
    template_nodes: list[Node] = []
    name_node = function
    if function.type == "template_function":
        listed = function.child_by_field_name("arguments")
        template_nodes = listed.named_children if listed is not None else []
        name_node = function.child_by_field_name("name") or function
    enclosing: Node | None = node
    while enclosing is not None and enclosing.type not in (
        "function_definition",
        "lambda_expression",
    ):
        enclosing = enclosing.parent
    host = _Host(program, node.start_byte)
    owner = ""
    if enclosing is not None:
        _collect(enclosing, host)
        declarator = enclosing.child_by_field_name("declarator")
        while declarator is not None and declarator.type != "identifier":
            declarator = declarator.child_by_field_name("declarator")
        owner = program.text(declarator) if declarator is not None else ""
    parts = [child for child in configuration.named_children if child.type != "comment"]
    if len(parts) < 2:
        return None
    listed_arguments = [
        child
        for child in (arguments.named_children if arguments is not None else [])
        if child.type != "comment"
    ]
    return Launch(
        kernel=program.text(name_node).rsplit("::", 1)[-1],
        template=tuple(program.text(child) for child in template_nodes),
        grid=_dimensions(parts[0], host, 0),
        block=_dimensions(parts[1], host, 0),
        shared=_read(parts[2], host, 0) if len(parts) > 2 else Constant(0),
        arguments=tuple(_read(child, host, 0) for child in listed_arguments),
        function=owner,
        span=program.span(node),
        template_values=tuple(_read(child, host, 0) for child in template_nodes),
    )


def _collect(function: Node, host: _Host) -> None:
    """The function's locals and how often each is assigned."""
    stack = [function]
    while stack:
        node = stack.pop()
        if node.type == "declaration":
            for declarator in node.children_by_field_name("declarator"):
                named_node: Node | None = declarator
                while named_node is not None and named_node.type != "identifier":
                    named_node = named_node.child_by_field_name("declarator")
                if named_node is not None:
                    name = host.text(named_node)
                    host.locals.setdefault(name, []).append(declarator)
        elif node.type in ("assignment_expression", "update_expression"):
            target = node.child_by_field_name("left") or node.child_by_field_name("argument")
            while target is not None and target.type == "field_expression":
                target = target.child_by_field_name("argument")
            host.assigned.add(host.text(target))
        stack.extend(node.children)


def _at(host: _Host, declarator: Node) -> _Host:
    """The names as the declarator's own initialiser sees them."""
    return replace(host, position=declarator.start_byte)


Triple = tuple[HostExpression, HostExpression, HostExpression]
_ONE = Constant(1)


def _dimensions(node: Node, host: _Host, depth: int) -> Triple:
    """A `dim3`, or an integer that converts to one."""
    if depth > _MAX_DEPTH:
        return NotRead(host.text(node)), _ONE, _ONE
    if node.type == "parenthesized_expression" and node.named_child_count == 1:
        return _dimensions(node.named_children[0], host, depth + 1)
    if node.type == "identifier":
        declared = _declared(host.text(node), host)
        if declared is not None:
            made = _constructed(declared, _at(host, declared), depth + 1)
            if made is not None:
                return made
    if node.type == "call_expression" and host.text(node.child_by_field_name("function")) == "dim3":
        listed = node.child_by_field_name("arguments")
        return _triple(listed.named_children if listed is not None else [], host, depth + 1)
    if node.type in ("initializer_list", "compound_literal_expression"):
        inner = node.child_by_field_name("value") or node
        return _triple(inner.named_children, host, depth + 1)
    return _read(node, host, depth + 1), _ONE, _ONE


def _declared(name: str, host: _Host) -> Node | None:
    """The declarator of a local that is never assigned again, in a block around the position."""
    if name in host.assigned:
        return None
    seen: Node | None = None
    for declarator in host.locals.get(name, ()):
        block: Node | None = declarator
        while block is not None and block.type not in ("compound_statement", "for_statement"):
            block = block.parent
        if block is None or not block.start_byte <= host.position < block.end_byte:
            continue
        if declarator.end_byte <= host.position:
            if seen is None or declarator.start_byte > seen.start_byte:
                seen = declarator
    return seen


def _constructed(declarator: Node, host: _Host, depth: int) -> Triple | None:
    """What a `dim3` variable was made from, in any of the forms of initialisation."""
    if declarator.type == "function_declarator":
        # `dim3 grid(a, b);` with plain names reads as a prototype.
        parameters = declarator.child_by_field_name("parameters")
        names = parameters.named_children if parameters is not None else []
        items = [_name(host.text(item), host, depth) for item in names]
        return _filled(items)
    value = declarator.child_by_field_name("value")
    if value is None:
        return None
    parent = declarator.parent
    kind = host.text(parent.child_by_field_name("type")) if parent is not None else ""
    if value.type in ("argument_list", "initializer_list") and kind == "dim3":
        return _triple(value.named_children, host, depth)
    if kind == "dim3" or host.text(value).startswith("dim3"):
        return _dimensions(value, host, depth)
    return None


def _triple(nodes: list[Node], host: _Host, depth: int) -> Triple:
    return _filled([_read(node, host, depth) for node in nodes if node.type != "comment"])


def _filled(items: list[HostExpression]) -> Triple:
    padded = [*items, _ONE, _ONE, _ONE]
    return padded[0], padded[1], padded[2]


def _read(node: Node | None, host: _Host, depth: int) -> HostExpression:
    """An integer expression."""
    if node is None or depth > _MAX_DEPTH:
        return NotRead(host.text(node))
    match node.type:
        case "number_literal":
            found = number(host.text(node))
            if found is not None and isinstance(found[0], int):
                return Constant(found[0])
        case "identifier" | "qualified_identifier":
            return _name(host.text(node), host, depth + 1)
        case "parenthesized_expression" if node.named_child_count == 1:
            return _read(node.named_children[0], host, depth + 1)
        case "binary_expression":
            operator = host.text(node.child_by_field_name("operator"))
            left = _read(node.child_by_field_name("left"), host, depth + 1)
            right = _read(node.child_by_field_name("right"), host, depth + 1)
            if operator in _OPERATORS and not isinstance(left, NotRead | None):
                if not isinstance(right, NotRead):
                    return Operation(operator, (left, right))
        case "unary_expression" if host.text(node.child_by_field_name("operator")) == "-":
            inner = _read(node.child_by_field_name("argument"), host, depth + 1)
            if not isinstance(inner, NotRead):
                return Operation("-", (inner,))
        case "cast_expression":
            return _read(node.child_by_field_name("value"), host, depth + 1)
        case "conditional_expression":
            names = ("condition", "consequence", "alternative")
            parts = [_read(node.child_by_field_name(name), host, depth + 1) for name in names]
            if not any(isinstance(part, NotRead) for part in parts):
                return Operation("?:", tuple(parts))
        case "sizeof_expression":
            return _size(node, host)
        case "field_expression":
            axis = "xyz".find(host.text(node.child_by_field_name("field")))
            argument = node.child_by_field_name("argument")
            if axis >= 0 and argument is not None and argument.type == "identifier":
                declared = _declared(host.text(argument), host)
                if declared is not None:
                    made = _constructed(declared, _at(host, declared), depth + 1)
                    if made is not None:
                        return made[axis]
        case "call_expression":
            return _call(node, host, depth)
    return NotRead(host.text(node))


_EXTENT = re.compile(r"[A-Za-z_]\w*(\.size\(\d+\)|\.numel\(\))")
_OPERATORS = frozenset({"+", "-", "*", "/", "%", "<<", ">>", "<", ">", "<=", ">=", "==", "!="})


def _name(name: str, host: _Host, depth: int) -> HostExpression:
    if depth > _MAX_DEPTH:
        return NotRead(name)
    if name in host.bound:
        return host.bound[name]
    if name in host.locals:
        declared = _declared(name, host)
        value = declared.child_by_field_name("value") if declared is not None else None
        if declared is None or value is None:
            return NotRead(name)
        if value.type in ("argument_list", "initializer_list") and value.named_child_count == 1:
            value = value.named_children[0]
        return _called(name, _read(value, _at(host, declared), depth + 1))
    variable = host.program.variables.get(name)
    if variable is not None:
        value = variable.declarator.child_by_field_name("value")
        if value is None:
            return NotRead(name)
        return _called(name, _read(value, _Host(host.program), depth + 1))
    if name in host.program.enumerators:
        base, offset = host.program.enumerators[name]
        start = _read(base, _Host(host.program), depth + 1) if base is not None else Constant(0)
        return Constant(start.value + offset) if isinstance(start, Constant) else NotRead(name)
    return Symbol(name)


def _called(name: str, value: HostExpression) -> HostExpression:
    """The value under the name of the variable that holds it first."""
    match value:
        case Constant(name=""):
            return replace(value, name=name)
        case Operation() if (known := evaluate(value, {})) is not None:
            return Constant(known, name)
        case _:
            return value


def _size(node: Node, host: _Host) -> HostExpression:
    of = node.child_by_field_name("type") or node.child_by_field_name("value")
    kind = named(host.text(of).strip("() "))
    return Constant(kind.size) if kind is not None else NotRead(host.text(node))


def _call(node: Node, host: _Host, depth: int) -> HostExpression:
    """`min`, `max`, a numeric cast, or a helper that only returns an expression."""
    function = node.child_by_field_name("function")
    listed = node.child_by_field_name("arguments")
    nodes = [c for c in listed.named_children if c.type != "comment"] if listed else []
    name_node = function
    if function is not None and function.type == "field_expression":
        # The extents of a tensor are the caller's, like a parameter.
        written = "".join(host.text(node).split())
        return Symbol(written) if _EXTENT.fullmatch(written) else NotRead(host.text(node))
    if function is not None and function.type == "template_function":
        name_node = function.child_by_field_name("name")
        if host.text(name_node) == "static_cast" and len(nodes) == 1:
            return _read(nodes[0], host, depth + 1)
    name = host.text(name_node).rsplit("::", 1)[-1]
    args = [_read(child, host, depth + 1) for child in nodes]
    if any(isinstance(arg, NotRead) for arg in args):
        return NotRead(host.text(node))
    if name in ("min", "max") and args:
        return Operation(name, tuple(args))
    if named(name) is not None and len(args) == 1:
        return args[0]
    for definition in host.program.functions.get(name, ()):
        made = _returned(definition.node, args, host, depth)
        if made is not None:
            return made
    return NotRead(host.text(node))


def _returned(
    function: Node, args: list[HostExpression], host: _Host, depth: int
) -> HostExpression | None:
    body = function.child_by_field_name("body")
    statements = [c for c in body.named_children if c.type != "comment"] if body else []
    if len(statements) != 1 or statements[0].type != "return_statement":
        return None
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    names: list[str] = []
    for parameter in listed.named_children if listed is not None else []:
        inner = parameter.child_by_field_name("declarator")
        names.append(host.text(inner))
    if len(names) != len(args) or statements[0].named_child_count != 1:
        return None
    inside = _Host(host.program, bound=dict(zip(names, args, strict=True)))
    return _read(statements[0].named_children[0], inside, depth + 1)
