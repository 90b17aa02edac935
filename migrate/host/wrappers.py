"""Wrappers of a kernel: what a function with arrays for parameters hands over, and returns.

Where one function calls another that launches the kernel, the outer one is the interface.  What
a caller turns before it hands it to a wrapper is not laid out as the wrapper's parameters are
called, so that it says nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from migrate.host.beside import read_beside
from migrate.host.calls import Call, Reading
from migrate.host.reader import read
from migrate.host.shapes import permutation
from migrate.host.values import Array, Cast, Created, Parameter, Result, Step
from migrate.nki.parse import Kernel, Module
from migrate.source import Span


@dataclass(frozen=True, slots=True)
class Wrapper:
    """One launch in a wrapper.

    `arguments` are by parameter of the kernel.  `returned` are the results of the launch as the
    function gives them back, by position, `None` where it takes the result as one.  `axes` are
    the names that the function gives extents of its parameters.
    """

    function: str
    docstring: str
    parameters: tuple[str, ...]
    arguments: Mapping[str, object]
    grid: tuple[object, ...] | None
    returned: Mapping[int | None, Array]
    axes: Mapping[tuple[str, int], str]
    span: Span


def wrappers(module: Module, kernel: Kernel) -> tuple[Wrapper, ...]:
    """The launches in functions that hand over what they are given, outermost functions only."""
    readings = [*read(module, kernel), *read_beside(module, kernel)]
    wrapping = [r for r in readings if r.wrapper and any(map(_hands_on, r.calls))]
    inner = {name for r in wrapping for call in r.calls if _hands_on(call) for name in call.path}
    turned = [call for r in readings for call in r.calls if _turns(call)]
    found: list[Wrapper] = []
    for reading in wrapping:
        node = reading.node
        if node is None or node.name in inner:
            continue
        callers = [call for call in turned if node.name in call.path]
        found += [_wrapper(node, reading, call, callers) for call in reading.calls]
    return tuple(found)


def _wrapper(node: ast.FunctionDef, reading: Reading, call: Call, callers: list[Call]) -> Wrapper:
    open_names = {
        name
        for caller in callers
        for name, value in caller.arguments.items()
        if isinstance(value, Array) and _order(value.steps) != _order(_steps(call, name))
    }
    parameters = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return Wrapper(
        function=node.name,
        docstring=ast.get_docstring(node) or "",
        parameters=tuple(argument.arg for argument in parameters),
        arguments={n: v for n, v in call.arguments.items() if n not in open_names},
        grid=call.grid,
        returned=dict(_returned(reading, call)),
        axes=dict(reading.axes),
        span=call.span,
    )


def _hands_on(call: Call) -> bool:
    return any(
        isinstance(value, Array) and isinstance(value.root, Parameter)
        for value in call.arguments.values()
    )


def _turns(call: Call) -> bool:
    return any(
        isinstance(value, Array) and isinstance(value.root, Created) and bool(_order(value.steps))
        for value in call.arguments.values()
    )


def _steps(call: Call, name: str) -> tuple[Step, ...]:
    value = call.arguments.get(name)
    return value.steps if isinstance(value, Array) else ()


def _order(steps: tuple[Step, ...]) -> tuple[tuple[int, ...] | None, ...]:
    """The orders of axes among steps, as a matrix has them, then as more axes have them."""
    return tuple(
        permutation(step, 2) or permutation(step, 4) for step in steps if not isinstance(step, Cast)
    )


def _returned(reading: Reading, call: Call) -> Iterator[tuple[int | None, Array]]:
    """What becomes of the results of a launch, as far as the function always says the same."""
    seen: dict[int | None, list[Array]] = {}
    for value in reading.returned:
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Array) and isinstance(part.root, Result):
                if part.root.call == call.span:
                    seen.setdefault(part.root.position, []).append(part)
    for position, parts in seen.items():
        if all(part.steps == parts[0].steps for part in parts):
            yield position, parts[0]
