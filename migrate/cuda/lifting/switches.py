"""`switch` as a chain of branches."""

from __future__ import annotations

from migrate.cuda import ast
from migrate.cuda.lifting.scan import assigned, leaves, stores
from migrate.cuda.types import BOOL


def branches(statement: ast.Switch) -> tuple[ast.Statement, ...] | None:
    """The statements that mean the same; `None` where a `break` is not a case's last word,
    or what is asked has effects.

    A case that falls through has what follows it too.
    """
    if assigned(statement.subject) or stores(statement.subject):
        return None
    default: tuple[ast.Statement, ...] | None = None
    arms: list[tuple[ast.Expression, tuple[ast.Statement, ...]]] = []
    for position, case in enumerate(statement.cases):
        body = _until_break(statement.cases[position:])
        if body is None:
            return None
        if case.value is None:
            default = body
        else:
            arms.append((case.value, body))
    otherwise = ast.Block(default, statement.span) if default else None
    for value, body in reversed(arms):
        test = ast.Binary("equal", statement.subject, value, BOOL, value.span)
        chain = ast.If(test, ast.Block(body, statement.span), otherwise, statement.span)
        otherwise = ast.Block((chain,), statement.span)
    return otherwise.body if otherwise is not None else ()


def _until_break(cases: tuple[ast.Case, ...]) -> tuple[ast.Statement, ...] | None:
    found: list[ast.Statement] = []
    for case in cases:
        for statement in _flat(case.body):
            if isinstance(statement, ast.Break):
                return tuple(found)
            if leaves(statement, (ast.Break,)):
                return None
            found.append(statement)
            if isinstance(statement, ast.Return | ast.Continue):
                return tuple(found)
    return tuple(found)


def _flat(body: tuple[ast.Statement, ...]) -> list[ast.Statement]:
    """The statements with plain blocks opened."""
    found: list[ast.Statement] = []
    pending = list(reversed(body))
    while pending:
        statement = pending.pop()
        if isinstance(statement, ast.Block):
            pending += reversed(statement.body)
        else:
            found.append(statement)
    return found
