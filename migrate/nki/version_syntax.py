"""What the syntax of a kernel and the tables of names say, piece by piece."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from migrate.facts.nki import VERSIONS, Brief, Version, briefs
from migrate.nki.version_calls import Use
from migrate.nki.version_names import LEGACY, Path, Paths

ALL: Final[frozenset[Version]] = frozenset(VERSIONS)
MAX_WRITTEN: Final = 80
"""Characters of a name as written that messages show."""

LEGACY_VERSIONS: Final[frozenset[Version]] = frozenset({"0.1.0"})


def known(name: str) -> tuple[str, Brief, str | None] | None:
    """The longest known beginning of a dotted name, and what follows it directly."""
    parts = name.split(".")
    table = briefs()
    for length in range(len(parts), 1, -1):
        brief = table.get(".".join(parts[:length]))
        if brief is not None:
            return ".".join(parts[:length]), brief, parts[length] if length < len(parts) else None
    return None


def guarded_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that the code asks for with `hasattr` or `getattr` before it uses them."""
    return {
        str(node.args[1].value)
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("hasattr", "getattr")
        and len(node.args) >= 2
        and isinstance(node.args[1], ast.Constant)
    }


def branches_of(nodes: Iterable[ast.AST]) -> list[tuple[int, int]]:
    """First and last lines of what runs under a condition only, in order, without overlap."""
    found: list[tuple[int, int]] = []
    for node in nodes:
        if isinstance(node, ast.If):
            found.extend(
                (body[0].lineno, body[-1].end_lineno or body[-1].lineno)
                for body in (node.body, node.orelse)
                if body
            )
    merged: list[tuple[int, int]] = []
    for first, last in sorted(found):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


def called(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def of_namespace(path: Path) -> frozenset[Version]:
    """The versions that a name is there in because of the namespace it was imported from.

    Annotations say nothing: kernels for 0.2 and 0.3 take `neuronxcc.nki.typing` beside `nki`.
    """
    if path.namespace is None or path.name.startswith("nki.typing"):
        return ALL
    return LEGACY_VERSIONS if path.namespace == LEGACY else ALL - LEGACY_VERSIONS


def missing(paths: Paths) -> frozenset[Version]:
    """Versions that the namespaces exclude already, which an import has told of."""
    return ALL - frozenset(v for path in paths for v in of_namespace(path))


def nearest(versions: frozenset[Version], misfits: Mapping[Version, str]) -> Version:
    """The misfit that stands next to what fits; the newest where nothing does."""
    if not versions:
        return max(misfits)
    order = {version: place for place, version in enumerate(VERSIONS)}
    return min(misfits, key=lambda v: (min(abs(order[v] - order[w]) for w in versions), -order[v]))


def mark(node: ast.expr, inner: set[int]) -> None:
    while isinstance(node, ast.Attribute):
        node = node.value
        inner.add(id(node))


def uses_of(nodes: Iterable[ast.AST]) -> dict[int, Use]:
    """How the results of calls are used."""
    found: dict[int, Use] = {}
    for node in nodes:
        for part, use in _parts(node):
            found[id(part)] = use
    return found


def _parts(node: ast.AST) -> Iterator[tuple[ast.expr, Use]]:
    match node:
        case ast.Expr(value=ast.Call() as call):
            yield call, "statement"
        case ast.Assign(targets=targets, value=ast.Call() as call):
            if any(isinstance(target, ast.Subscript) for target in targets):
                yield call, "tile"
        case ast.AugAssign(value=ast.Call() as call):
            yield call, "tile"
        case ast.BinOp(left=left, right=right):
            for side in (left, right):
                if isinstance(side, ast.Call):
                    yield side, "tile"
        case ast.Subscript(value=ast.Call() as call):
            yield call, "tile"


def written_as(node: ast.expr) -> str:
    """A name or an attribute chain as it is written, not all of it where it is long."""
    text = ast.unparse(node)
    return text if len(text) <= MAX_WRITTEN else f"{text[: MAX_WRITTEN - 1]}…"
