"""What the parameters of an NKI kernel are, as its text uses them: tensors and their rank.

Only what is certain counts: `a, b = x.shape` and `x[i, :]` say that `x` has two axes,
`x.shape[1]` that it has at least two.  Functions of the file are followed where a parameter is
handed on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from migrate.nki.parse import Kernel, Module

MAX_FOLLOWED = 64
"""Functions that a parameter is followed into."""

MAX_LITERALS = 12

_TENSOR_ATTRIBUTES = frozenset({"shape", "dtype", "reshape", "ap", "permute", "rearrange", "view"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as used: `rank` is exact, `least` a lower bound of it.

    `default` is the literal it has when left out; `optional` says that it may be.
    """

    name: str
    kind: Literal["tensor", "scalar", "open"]
    rank: int | None = None
    least: int = 1
    optional: bool = False
    default: bool | int | float | None = None


def parameters(module: Module, kernel: Kernel) -> tuple[Parameter, ...]:
    """The parameters of a kernel in order."""
    functions = {node.name: node for node in module.tree.body if isinstance(node, ast.FunctionDef)}
    given = kernel.node.args
    positional = [*given.posonlyargs, *given.args]
    defaults: dict[str, ast.expr] = {}
    for argument, value in zip(reversed(positional), reversed(given.defaults), strict=False):
        defaults[argument.arg] = value
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        if default is not None:
            defaults[argument.arg] = default
    found: list[Parameter] = []
    for argument in (*positional, *given.kwonlyargs):
        uses = list(_uses(kernel.node, argument.arg, functions))
        ranks = [use.rank for use in uses if use.rank is not None]
        kind: Literal["tensor", "scalar", "open"] = "open"
        if any(use.tensor for use in uses) or _annotated(argument):
            kind = "tensor"
        elif any(not use.tensor for use in uses) or argument.arg in defaults:
            kind = "scalar"
        found.append(
            Parameter(
                name=argument.arg,
                kind=kind,
                rank=ranks[0] if ranks else None,
                least=max((use.least for use in uses), default=1),
                optional=argument.arg in defaults,
                default=_literal(defaults.get(argument.arg)),
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Use:
    tensor: bool
    rank: int | None = None
    least: int = 1


def _uses(
    start: ast.FunctionDef, name: str, functions: dict[str, ast.FunctionDef]
) -> Iterator[_Use]:
    pending = [(start, name)]
    seen: set[tuple[str, str]] = set()
    while pending and len(seen) < MAX_FOLLOWED:
        function, called = pending.pop()
        if (function.name, called) in seen:
            continue
        seen.add((function.name, called))
        rebound = any(
            isinstance(node, ast.Name) and node.id == called and isinstance(node.ctx, ast.Store)
            for node in ast.walk(function)
        )
        for node in ast.walk(function):
            use = _use(node, called)
            if use is not None:
                # A name that is bound again may stand for another tensor by then.
                yield _Use(use.tensor) if rebound else use
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                callee = functions.get(node.func.id)
                if callee is not None:
                    pending += [(callee, inner) for inner in _handed(node, called, callee)]


def _use(node: ast.AST, name: str) -> _Use | None:
    match node:
        case ast.Assign(
            targets=[ast.Tuple(elts=parts)],
            value=ast.Attribute(value=ast.Name(id=called), attr="shape"),
        ) if called == name:
            if any(isinstance(part, ast.Starred) for part in parts):
                return _Use(tensor=True, least=max(len(parts) - 1, 1))
            return _Use(tensor=True, rank=len(parts))
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id=called), attr="shape"),
            slice=ast.Constant(value=int(position)),
        ) if called == name:
            return _Use(tensor=True, least=position + 1 if position >= 0 else -position)
        case ast.Subscript(value=ast.Name(id=called), slice=key) if called == name:
            keys = key.elts if isinstance(key, ast.Tuple) else [key]
            plain = not any(isinstance(part, ast.Constant) and part.value in (None, ...)
                            for part in keys)  # fmt: skip
            if plain and len(keys) > 1:
                return _Use(tensor=True, rank=len(keys))
            return _Use(tensor=True)
        case ast.Attribute(value=ast.Name(id=called), attr=attribute) if called == name:
            return _Use(tensor=True) if attribute in _TENSOR_ATTRIBUTES else None
        case ast.BinOp(left=left, right=right):
            named = any(isinstance(side, ast.Name) and side.id == name for side in (left, right))
            return _Use(tensor=False) if named else None
        case ast.Compare(left=ast.Name(id=called)) if called == name:
            return _Use(tensor=False)
        case ast.Call(func=ast.Name(id="range"), args=args):
            named = any(isinstance(arg, ast.Name) and arg.id == name for arg in args)
            return _Use(tensor=False) if named else None
        case _:
            return None


def _handed(call: ast.Call, name: str, callee: ast.FunctionDef) -> Iterator[str]:
    """The parameters of a function that the name is passed for."""
    positional = [arg.arg for arg in (*callee.args.posonlyargs, *callee.args.args)]
    for argument, parameter in zip(call.args, positional, strict=False):
        if isinstance(argument, ast.Name) and argument.id == name:
            yield parameter
    for keyword in call.keywords:
        if keyword.arg and isinstance(keyword.value, ast.Name) and keyword.value.id == name:
            yield keyword.arg


def float_literals(module: Module, kernel: Kernel) -> tuple[float, ...]:
    """The floating-point numbers of a kernel, then of the rest of its file, each once."""
    found: dict[float, None] = {}
    for tree in (kernel.node, module.tree):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, float):
                found.setdefault(node.value)
    return tuple(found)[:MAX_LITERALS]


def _annotated(argument: ast.arg) -> bool:
    return argument.annotation is not None and "tensor" in ast.unparse(argument.annotation).lower()


def _literal(node: ast.expr | None) -> bool | int | float | None:
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case _:
            return None
