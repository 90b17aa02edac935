"""Parameters that are only compared with a few small numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.nki.scans import Text
from migrate.nki.values import Problem
from migrate.python_text import span_of

CODES = frozenset({"few-values"})

_SMALL = 8
"""Larger numbers are thresholds rather than steps of a window."""

_SIGNS = (ast.Gt, ast.GtE)


def scan(text: Text) -> Iterator[Problem]:
    """Code `few-values`, at the parameter: `if k > 1`, `if k > 2` and no other use of `k`.

    A window that is written out so far is right up to the largest of the numbers and one more.
    An assertion on the parameter is a limit that is stated.
    """
    for function in text.functions:
        arguments = function.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            numbers = _compared(function, argument.arg)
            if numbers is not None and len(numbers) > 1:
                shown = ", ".join(map(str, sorted(numbers)))
                yield Problem(
                    "few-values",
                    f"{argument.arg} is only compared with {shown}: values above"
                    f" {max(numbers) + 1} do the same as that",
                    span_of(text.module.source, argument),
                )


def _compared(function: ast.FunctionDef, name: str) -> set[int] | None:
    """The numbers in tests `name > number`, if the name is used in nothing else."""
    numbers: set[int] = set()
    tests: set[int] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.If):
            number = _threshold(node.test, name)
            if number is not None:
                numbers.add(number)
                tests.add(id(node.test))
    uses = 0
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == name:
            uses += 1
    return numbers if uses == len(tests) else None


def _threshold(test: ast.expr, name: str) -> int | None:
    """The most that `name` may be for the test to fail."""
    match test:
        case ast.Compare(
            left=ast.Name(id=left), ops=[sign], comparators=[ast.Constant(value=int(number))]
        ) if left == name and isinstance(sign, _SIGNS) and not isinstance(number, bool):
            least = number if isinstance(sign, ast.Gt) else number - 1
            return least if 0 < least <= _SMALL else None
    return None
