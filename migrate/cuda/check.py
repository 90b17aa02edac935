"""Typed trees of whole functions: template parameters bound, callees found and built.

`function` gives a kernel's tree.  Building is lazy and by instantiation, as in C++: the
same definition with other template arguments is another `Function`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from migrate.budget import Meter
from migrate.cuda.ast import (
    Block,
    Declare,
    Expression,
    Function,
    MakeVector,
    Name,
    Statement,
    Variable,
)
from migrate.cuda.building import Builder
from migrate.cuda.parse import Definition, Program, TemplateParameter
from migrate.cuda.scope import Binding
from migrate.cuda.types import Routine, Struct, Unknown, named
from migrate.source import SourceError, Span


def function(
    program: Program,
    name: str,
    template: Mapping[str, object] | None = None,
    *,
    meter: Meter | None = None,
) -> Function:
    """The typed tree of a kernel, or of a device function.

    `template` gives template parameters by name: a type as text (`"float"`, `"Pair<int, 4>"`),
    the name of a function, or a number; parameters with a default may be left out.  A struct
    that a kernel takes by value comes apart: its members are parameters `args.x`.  Raises
    `SourceError` for an unknown name, a parameter without a value, and a value that does not
    fit.
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
    builder = Builder(program, meter if meter is not None else Meter(doing=f"reading {name}"))
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
            bindings[parameter.name] = _bound(
                given[parameter.name], parameter, program, chosen, builder
            )
    built = builder.build(chosen, bindings)
    if isinstance(built, str):
        raise SourceError(built, file=program.source.name, where=chosen.span)
    return _flattened(built) if built.kernel else built


def instantiate(program: Program, name: str, bindings: Mapping[str, Binding]) -> Function | str:
    """The typed tree of a function with its template parameters bound; why not, as text."""
    builder = Builder(program, Meter(doing=f"reading {name}"))
    return builder.build(program.functions[name][0], bindings)


def _bound(
    value: object,
    parameter: TemplateParameter,
    program: Program,
    owner: Definition,
    builder: Builder,
) -> Binding:
    match value:
        case bool() | int() | float() if parameter.kind == "value":
            return value
        case str() if parameter.kind == "type":
            kind = named(value)
            if kind is None:
                kind = builder.type_from_text(value)
            if not isinstance(kind, Unknown):
                return kind
        case str() if value in ("true", "false") and parameter.kind == "value":
            return value == "true"
        case str() if parameter.kind == "value":
            if value in program.functions:
                return Routine(value)
            number = builder.value_from_text(value)
            if number is not None:
                return number
        case _:
            pass
    raise SourceError(
        f"template parameter {parameter.name} cannot be {value!r}",
        file=program.source.name,
        where=owner.span,
    )


def _flattened(kernel: Function) -> Function:
    """The kernel with a parameter for each member of a struct that it takes by value."""
    if not any(isinstance(parameter.type, Struct) for parameter in kernel.parameters):
        return kernel
    parameters: list[Variable] = []
    before: list[Statement] = []
    following = kernel.variables
    for parameter in kernel.parameters:
        kind = parameter.type
        if not isinstance(kind, Struct) or kind.layout.overlaid:
            parameters.append(parameter)
            continue
        leaves = _leaves(parameter, parameter.name, kind, following)
        following += len(leaves)
        parameters += leaves
        value = _assembled(iter(leaves), kind, parameter.span)
        local = Variable(
            parameter.id, parameter.name, kind, "local", parameter.span, parameter.const
        )
        before.append(Declare(local, value, parameter.span))
    body = Block((*before, *kernel.body.body), kernel.body.span)
    return msgspec.structs.replace(
        kernel, parameters=tuple(parameters), body=body, variables=following
    )


def _leaves(parameter: Variable, name: str, kind: Struct, following: int) -> list[Variable]:
    out: list[Variable] = []
    for member in kind.members:
        title = f"{name}.{member.name}"
        if isinstance(member.type, Struct) and not member.type.layout.overlaid:
            out += _leaves(parameter, title, member.type, following + len(out))
        else:
            number = following + len(out)
            out.append(Variable(number, title, member.type, "parameter", parameter.span))
    return out


def _assembled(leaves: Iterator[Variable], kind: Struct, span: Span) -> Expression:
    parts: list[Expression] = []
    for member in kind.members:
        if isinstance(member.type, Struct) and not member.type.layout.overlaid:
            parts.append(_assembled(leaves, member.type, span))
        else:
            leaf = next(leaves)
            parts.append(Name(leaf, leaf.type, span))
    return MakeVector(tuple(parts), kind, span)
