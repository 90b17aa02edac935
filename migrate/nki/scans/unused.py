"""Parameters and locals that nothing reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.nki.scans import Text
from migrate.nki.values import Problem
from migrate.python_text import span_of

CODES = frozenset({"unread-parameter", "unread-local"})


_PURE = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "round"})
_QUERIES = frozenset({"nl.num_programs", "nl.program_id", "nl.program_ndim"})


def scan(text: Text) -> Iterator[Problem]:
    """Codes `unread-parameter` and `unread-local`, in the kernel and its functions.

    Names that begin with an underscore are meant to be unread, but nobody asks for the number of
    programs to forget it.  A name whose value is a call is no fault, unless it is of a function
    that does nothing else: the call may do something; nor is one of several that are unpacked
    together.  A function that is passed on has the parameters that its caller gives.
    """
    passed = _passed(text)
    for function in text.functions:
        read = {
            node.id
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load | ast.Del)
        }
        names = {
            n
            for node in ast.walk(function)
            if isinstance(node, ast.Nonlocal | ast.Global)
            for n in node.names
        }
        if {"locals", "vars", "eval", "exec"} & read:
            continue
        arguments = function.args
        own = (
            ()
            if function.name in passed
            else (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        )
        for arg in own:
            if arg.arg in read or arg.arg.startswith("_") or arg.arg in ("self", "cls"):
                continue
            yield Problem(
                "unread-parameter",
                f"the parameter {arg.arg} of {function.name} is never read",
                span_of(text.module.source, arg),
            )
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=[ast.Name(id=name) as target], value=value):
                    pass
                case ast.AnnAssign(target=ast.Name(id=name) as target, value=ast.expr() as value):
                    pass
                case _:
                    continue
            if name in read or name in names or name == "_":
                continue
            if name.startswith("_") and not _asks(value):
                continue
            if any(_acts(part) for part in ast.walk(value)):
                continue
            yield Problem(
                "unread-local",
                f"{name} is computed in {function.name} and never read",
                span_of(text.module.source, target),
            )


def _asks(value: ast.expr) -> bool:
    """Whether a value is what the library says of the grid."""
    return isinstance(value, ast.Call) and _called(value) in _QUERIES


def _acts(node: ast.AST) -> bool:
    """Whether a part of a value may do something besides having a value."""
    if isinstance(node, ast.Call):
        return _called(node) not in _PURE | _QUERIES
    return isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr)


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id="nl"), attr=name):
            return f"nl.{name}"
        case _:
            return ""


def _passed(text: Text) -> set[str]:
    """Functions of the file that stand somewhere else than in a call of them."""
    tree = text.module.tree
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in called
    }
