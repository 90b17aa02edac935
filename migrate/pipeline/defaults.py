"""Defaults of the NKI kernel that are not what the CUDA kernel is launched with."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.numerics.single import as_float32
from migrate.pipeline.kernels import Pair
from migrate.python_text import span_of
from migrate.rules.rule import Problem


def differing_defaults(given: Pair, completed: Pair) -> tuple[Problem, ...]:
    """What the completed case passes for a parameter whose default is another number.

    Only what was found in the text counts: a value that the case states is there to try the
    kernels with, and need not be what callers pass.
    """
    stated = {scalar.cuda for scalar in given.case.scalars} | set(given.case.nki.args)
    defaults = dict(_defaults(completed.nki.node))
    found: list[Problem] = []
    for scalar in completed.case.scalars:
        if scalar.cuda is None or scalar.cuda in stated or scalar.nki not in defaults:
            continue
        node, default = defaults[scalar.nki]
        if not isinstance(scalar.value, int | float):
            continue
        if as_float32(scalar.value) != as_float32(default):
            message = (
                f"the default of {scalar.nki} is {default:g}, the launch of the CUDA kernel"
                f" passes {scalar.value:g}"
            )
            span = span_of(completed.nki_source, node)
            related = (completed.cuda.span,)
            found.append(Problem("default-differs", message, span, "nki", {}, related))
    return tuple(found)


def _defaults(node: ast.FunctionDef) -> Iterator[tuple[str, tuple[ast.expr, float]]]:
    """The parameters whose defaults are numbers."""
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    pairs = [
        *zip(reversed(positional), reversed(given.defaults), strict=False),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    for argument, default in pairs:
        sign = 1.0
        value = default
        if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
            sign, value = -1.0, value.operand
        if default is None or not isinstance(value, ast.Constant):
            continue
        if isinstance(value.value, int | float) and not isinstance(value.value, bool):
            yield argument.arg, (default, sign * value.value)
