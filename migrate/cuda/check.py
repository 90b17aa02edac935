"""Typed trees of whole functions: template parameters bound, callees found and built.

`function` gives a kernel's tree.  Building is lazy and by instantiation, as in C++: the
same definition with other template arguments is another `Function`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from migrate.budget import Meter
from migrate.cuda.ast import Expression, Function, Literal, Storage, Variable
from migrate.cuda.declarators import declared
from migrate.cuda.expressions import expression, extent, resolve
from migrate.cuda.folding import fold
from migrate.cuda.parse import Definition, Program, TemplateParameter
from migrate.cuda.scope import Scope
from migrate.cuda.statements import block
from migrate.cuda.types import (
    Array,
    Pointer,
    Scalar,
    Type,
    Unknown,
    Vector,
    named,
)
from migrate.source import SourceError

MAX_CALL_DEPTH = 32

Binding = Type | int | float | bool


def function(
    program: Program,
    name: str,
    template: Mapping[str, object] | None = None,
    *,
    meter: Meter | None = None,
) -> Function:
    """The typed tree of a kernel, or of a device function.

    `template` gives template parameters by name: a type as text (`"float"`) or a number;
    parameters with a default may be left out.  Raises `SourceError` for an unknown name, a
    parameter without a value, and a value that does not fit.
    """
    group = program.functions.get(name, ())
    bodies = [found for found in group if found.kind != "host"] or list(group)
    if not bodies:
        raise SourceError(f"has no function named {name}", file=program.source.name)
    given = dict(template or {})
    # Of overloads the first that has all the template parameters given.
    chosen = next(
        (b for b in bodies if set(given) <= {p.name for p in b.template} and not b.specialised),
        bodies[0],
    )
    builder = _Builder(program, meter if meter is not None else Meter(doing=f"reading {name}"))
    bindings: dict[str, Binding] = {}
    known = {parameter.name for parameter in chosen.template}
    for key in given:
        if key not in known:
            raise SourceError(
                f"{name} has no template parameter {key}",
                file=program.source.name,
                where=chosen.span,
            )
    for parameter in chosen.template:
        if parameter.name in given:
            bindings[parameter.name] = _bound(given[parameter.name], parameter, program, chosen)
    built = builder.build(chosen, bindings)
    if isinstance(built, str):
        raise SourceError(built, file=program.source.name, where=chosen.span)
    return built


def _bound(
    value: object, parameter: TemplateParameter, program: Program, owner: Definition
) -> Binding:
    match value:
        case bool() | int() | float() if parameter.kind == "value":
            return value
        case str() if parameter.kind == "type":
            kind = named(value)
            if kind is not None:
                return kind
        case str() if value in ("true", "false") and parameter.kind == "value":
            return value == "true"
        case _:
            pass
    raise SourceError(
        f"template parameter {parameter.name} cannot be {value!r}",
        file=program.source.name,
        where=owner.span,
    )


@dataclass(slots=True)
class _Builder:
    program: Program
    meter: Meter
    done: dict[tuple[int, tuple[tuple[str, str], ...]], Function | str] = field(
        default_factory=dict
    )
    globals_used: dict[str, Variable] = field(default_factory=dict)
    depth: int = 0

    def build(self, definition: Definition, bindings: Mapping[str, Binding]) -> Function | str:
        """Instantiate a definition; the reason where that is not possible."""
        scope = Scope(self.program, self.meter, self.call, globals_used=self.globals_used)
        complete: list[tuple[str, str]] = []
        for parameter in definition.template:
            value = self._parameter(parameter, bindings, scope)
            if isinstance(value, str):
                return f"{definition.name}: {value}"
            complete.append((parameter.name, str(value)))
            if isinstance(value, bool | int | float):
                kind = resolve(parameter.type, scope) if parameter.type is not None else None
                scalar = kind if isinstance(kind, Scalar) else named("long long")
                assert isinstance(scalar, Scalar)
                scope.frames[0][parameter.name] = Literal(value, scalar, definition.span)
            else:
                scope.types[parameter.name] = value
        key = (definition.node.start_byte, tuple(complete))
        if key in self.done:
            return self.done[key]
        if self.depth >= MAX_CALL_DEPTH:
            return f"calls nest deeper than {MAX_CALL_DEPTH} levels"
        # A call of itself finds this and is reported; C++ recursion on device is not followed.
        self.done[key] = f"{definition.name} calls itself"
        self.depth += 1
        try:
            built = self._body(definition, tuple(complete), scope)
        finally:
            self.depth -= 1
        self.done[key] = built
        return built

    def _parameter(
        self, parameter: TemplateParameter, bindings: Mapping[str, Binding], scope: Scope
    ) -> Binding | str:
        if parameter.kind == "pack":
            return f"template parameter {parameter.name} is not understood"
        value = bindings.get(parameter.name)
        if value is not None:
            return value
        if parameter.default is None:
            return f"template parameter {parameter.name} has no value"
        if parameter.kind == "type":
            return resolve(parameter.default, scope)
        folded = fold(expression(parameter.default, scope), scope.known)
        return f"template parameter {parameter.name} has no value" if folded is None else folded

    def _body(
        self, definition: Definition, template: tuple[tuple[str, str], ...], scope: Scope
    ) -> Function | str:
        node = definition.node
        body = node.child_by_field_name("body")
        if body is None or body.type != "compound_statement":
            return f"{definition.name} has no body that can be read"
        scope.result = self._result(node, scope)
        scope.push()
        parameters = []
        for child in _parameter_nodes(node):
            base = resolve(child.child_by_field_name("type"), scope)
            const = any(scope.text(word) == "const" for word in child.children if word.is_named)
            declarator = child.child_by_field_name("declarator")
            if declarator is None:
                parameters.append(scope.declare("", base, "parameter", scope.span(child)))
                continue
            what = declared(declarator, base, scope, extent, const=const)
            kind = what.type
            storage: Storage = "parameter"
            if isinstance(kind, Array):
                kind = Pointer(kind.element, const=const)
            elif what.reference and not const:
                storage = "reference"
            parameters.append(
                scope.declare(what.name, kind, storage, scope.span(child), const=const)
            )
        made = block(body, scope)
        return Function(
            name=definition.name,
            parameters=tuple(parameters),
            result=scope.result,
            body=made,
            span=definition.span,
            kernel=definition.kind == "kernel",
            template=template,
            globals_used=tuple(self.globals_used.values()),
            launch_bounds=_launch_bounds(node, scope),
            issues=tuple(scope.issues),
        )

    def _result(self, node: Node, scope: Scope) -> Type:
        type_node = node.child_by_field_name("type")
        if type_node is not None and type_node.type == "placeholder_type_specifier":
            return Unknown("auto")
        kind = resolve(type_node, scope)
        declarator = node.child_by_field_name("declarator")
        while declarator is not None and declarator.type == "pointer_declarator":
            kind = Pointer(kind)
            declarator = declarator.child_by_field_name("declarator")
        return kind

    def call(
        self, name: str, template: Sequence[Binding], arguments: Sequence[Expression]
    ) -> Function | str:
        """The function that a call by name with these arguments means, built."""
        candidates = [d for d in self.program.functions[name] if d.kind != "host"]
        if not candidates:
            # A plain constexpr or host-device helper may lack the keyword in a header.
            candidates = list(self.program.functions[name])
        reasons: list[str] = []
        best: tuple[int, Function] | None = None
        for definition in candidates:
            if definition.specialised:
                continue
            needed, allowed = _arity(definition.node)
            if not needed <= len(arguments) <= allowed:
                reasons.append(f"{name} takes {allowed} arguments")
                continue
            if len(arguments) < allowed:
                reasons.append(f"default arguments of {name} are not understood")
                continue
            bindings = self._deduce(definition, template, arguments)
            if isinstance(bindings, str):
                reasons.append(bindings)
                continue
            built = self.build(definition, bindings)
            if isinstance(built, str):
                reasons.append(built)
                continue
            distance = _distance(built, arguments)
            if best is None or distance < best[0]:
                best = (distance, built)
        if best is not None:
            return best[1]
        return reasons[0] if reasons else f"{name} is only specialised, which is not understood"

    def _deduce(
        self,
        definition: Definition,
        template: Sequence[Binding],
        arguments: Sequence[Expression],
    ) -> dict[str, Binding] | str:
        bindings: dict[str, Binding] = {}
        for parameter, value in zip(definition.template, template, strict=False):
            if isinstance(value, Unknown):
                return f"template argument {value} is not understood"
            bindings[parameter.name] = value
        open_types = {
            parameter.name
            for parameter in definition.template
            if parameter.kind == "type" and parameter.name not in bindings
        }
        if not open_types:
            return bindings
        scope = Scope(self.program, self.meter, self.call)
        scope.types = {name: Unknown(f"template {name}") for name in open_types}
        for child, argument in zip(_parameter_nodes(definition.node), arguments, strict=False):
            base = resolve(child.child_by_field_name("type"), scope)
            declarator = child.child_by_field_name("declarator")
            pattern = base
            if declarator is not None:
                pattern = declared(declarator, base, scope, extent).type
            actual = argument.type
            while isinstance(pattern, Pointer | Array) and isinstance(actual, Pointer | Array):
                pattern, actual = pattern.element, actual.element
            if isinstance(pattern, Unknown) and pattern.name.startswith("template "):
                bindings.setdefault(pattern.name.removeprefix("template "), actual)
        return bindings


def _parameter_nodes(node: Node) -> list[Node]:
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            inner = next((c for c in declarator.named_children if "declarator" in c.type), None)
        declarator = inner
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    return [
        child
        for child in (listed.named_children if listed is not None else [])
        if child.type in ("parameter_declaration", "optional_parameter_declaration")
        and child.child_by_field_name("type") is not None
        and not (
            child.child_by_field_name("declarator") is None
            and (child.child_by_field_name("type") or child).text == b"void"
        )
    ]


def _arity(node: Node) -> tuple[int, int]:
    nodes = _parameter_nodes(node)
    optional = sum(child.type == "optional_parameter_declaration" for child in nodes)
    return len(nodes) - optional, len(nodes)


def _distance(function_: Function, arguments: Sequence[Expression]) -> int:
    """How many arguments need a conversion: enough to choose between overloads by type."""
    cost = 0
    for parameter, argument in zip(function_.parameters, arguments, strict=False):
        if parameter.type == argument.type:
            continue
        same_kind = isinstance(parameter.type, Scalar) and isinstance(argument.type, Scalar)
        if same_kind:
            cost += 1
        elif isinstance(parameter.type, Pointer) and isinstance(argument.type, Pointer | Array):
            cost += 0 if parameter.type.element == argument.type.element else 10
        elif isinstance(parameter.type, Vector) or isinstance(argument.type, Vector):
            cost += 100
        else:
            cost += 50
    return cost


def _launch_bounds(node: Node, scope: Scope) -> tuple[int, ...]:
    found = next((child for child in node.children if child.type == "launch_bounds"), None)
    if found is None:
        return ()
    values = [extent(child, scope) for child in found.named_children if child.type != "comment"]
    return tuple(value for value in values if value is not None)
