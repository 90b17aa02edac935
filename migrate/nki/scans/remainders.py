"""Loops over whole tiles of an axis, where nothing covers or forbids a remainder."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.nki.preconditions import multiples
from migrate.nki.scans import Text
from migrate.nki.values import Problem
from migrate.python_text import span_of

CODES = frozenset({"floor-trips"})

_LOOPS = frozenset({"range", "affine_range", "sequential_range", "static_range"})
_SETTLES = frozenset({"min", "minimum", "ceil", "ceil_div", "div_ceil", "cdiv"})
"""Functions whose use on an extent shows that its remainder was thought of."""


def scan(text: Text) -> Iterator[Problem]:
    """Code `floor-trips`, at the division: `rows // 128` trips of a loop, and no other word of
    `rows`' remainder in the kernel or its functions.

    Only extents that come from a tensor's shape are looked at, since others may be multiples by
    how they are made, and only functions that are kernels by a decorator: what calls another may
    give it whole tiles.
    """
    if not text.kernel.decorated:
        return
    settled = {key for function in text.functions for key in _settled(function)}
    for function in text.functions:
        demanded = multiples(ast.get_docstring(function) or "").keys()
        names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        if demanded - names - {arg.arg for arg in ast.walk(function) if isinstance(arg, ast.arg)}:
            return  # of which of the extents is open
        settled.update(ast.dump(_loaded(ast.Name(id=name))) for name in demanded)
    for function in text.functions:
        extents = _extents(function)
        values = _single(function)
        for loop in ast.walk(function):
            if not isinstance(loop, ast.For | ast.comprehension):
                continue
            for bound in _bounds(loop.iter):
                division = values.get(bound.id, bound) if isinstance(bound, ast.Name) else bound
                match division:
                    case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                        pass
                    case _:
                        continue
                if not _steps(function, loop.target, right):
                    continue  # a count of something else than tiles
                key = ast.dump(left)
                if key in settled or not (_is_shape(left) or key in extents):
                    continue
                whole, tile = ast.unparse(left), ast.unparse(right)
                yield Problem(
                    "floor-trips",
                    f"the loop goes over {whole} // {tile} tiles, and nothing covers or forbids"
                    f" the remainder of {whole}",
                    span_of(text.module.source, division),
                )


def _bounds(iterated: ast.expr) -> Iterator[ast.expr]:
    """What a counted loop ends at."""
    match iterated:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[bound]) if (
            name in _LOOPS
        ):
            yield bound
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[_, bound]) if (
            name in _LOOPS
        ):
            yield bound


def _steps(function: ast.FunctionDef, variable: ast.expr, tile: ast.expr) -> bool:
    """Whether the loop's variable is multiplied by the length of a tile."""
    if not isinstance(variable, ast.Name):
        return False
    wanted = {ast.dump(_loaded(variable)), ast.dump(tile)}
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and {ast.dump(node.left), ast.dump(node.right)} == wanted
        for node in ast.walk(function)
    )


def _is_shape(node: ast.expr) -> bool:
    """`x.shape[0]`."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "shape"
    )


def _extents(function: ast.FunctionDef) -> set[str]:
    """Names that are bound to extents of a tensor's shape, as their trees."""
    found: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Attribute(attr="shape")):
                found.update(ast.dump(_loaded(n)) for n in names if isinstance(n, ast.Name))
            case ast.Assign(targets=[ast.Name() as name], value=value) if _is_shape(value):
                found.add(ast.dump(_loaded(name)))
    return found


def _single(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """The values of names that are assigned once."""
    found: dict[str, ast.expr | None] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = None if node.id in found else ast.Constant(value=None)
    values: dict[str, ast.expr] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if found.get(name):
                values[name] = value
    return values


def _loaded(name: ast.Name) -> ast.Name:
    return ast.Name(id=name.id, ctx=ast.Load())


def _settled(function: ast.FunctionDef) -> Iterator[str]:
    """Everything in remainders, minima, masks, comparisons and roundings up."""
    for node in ast.walk(function):
        match node:
            case ast.BinOp(op=ast.Mod()) | ast.Compare() | ast.Assert():
                yield from _parts(node)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if (
                name in _SETTLES or "assert" in name
            ):
                yield from _parts(node)
            case ast.keyword(arg="mask", value=value):
                yield from _parts(value)
            case ast.BinOp(left=ast.BinOp(op=ast.Add() | ast.Sub()) as sum_, op=ast.FloorDiv()):
                yield from _parts(sum_)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                yield from _parts(inner)
            case ast.BinOp(op=ast.Sub(), left=left):
                yield from _parts(left)


def _parts(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Subscript):
            yield ast.dump(part)
