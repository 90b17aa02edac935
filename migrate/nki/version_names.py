"""Which names of NKI a file binds, and which parts of it a kernel reaches.

Nothing is resolved but imports, plain aliases and attribute chains: a name that is bound in
any other way stands for nothing here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from msgspec import Struct, field

LEGACY: Final = "neuronxcc.nki"
CURRENT: Final = "nki"

CUSTOMARY: Final[Mapping[str, str]] = {
    "nki": "nki",
    "nl": "nki.language",
    "nisa": "nki.isa",
}
"""What kernels without imports (pasted into a frame that has them) call the modules."""

MAX_ALTERNATIVES: Final = 8
"""Imports of one name that are kept."""

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Scope: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Path(Struct, frozen=True):
    """A dotted name in the words of the current namespace, and the namespace it came by.

    `namespace` is `None` where no import says which.
    """

    namespace: str | None
    name: str

    def member(self, attribute: str) -> Path:
        return Path(self.namespace, f"{self.name}.{attribute}")


Paths: TypeAlias = tuple[Path, ...]
"""What a name may stand for: several where an import has an alternative."""


def path_of(dotted: str) -> Path | None:
    """A module or a name of NKI; `None` for any other."""
    for namespace in (LEGACY, CURRENT):
        if dotted == namespace or dotted.startswith(f"{namespace}."):
            return Path(namespace, CURRENT + dotted.removeprefix(namespace))
    return None


class Bindings(Struct):
    """The names of NKI in a scope; `imports` are the statements that bind each first."""

    names: dict[str, Paths] = field(default_factory=dict)
    imports: dict[str, ast.stmt] = field(default_factory=dict)

    def add(self, name: str, path: Path, statement: ast.stmt) -> None:
        known = self.names.get(name, ())
        if path not in known and len(known) < MAX_ALTERNATIVES:
            self.names[name] = (*known, path)
        self.imports.setdefault(name, statement)


def bindings_of(body: Iterable[ast.stmt]) -> Bindings:
    """What the imports and plain aliases of a body bind, in blocks too."""
    found = Bindings()
    imported: set[str] = set()
    rebound: set[str] = set()
    for node in _statements(body):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    imported.add(bound)
                    path = path_of(alias.name if alias.asname else bound)
                    if path is not None:
                        found.add(bound, path, node)
                    elif bound == "neuronxcc":
                        found.add(bound, Path(LEGACY, "neuronxcc"), node)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                for alias in names:
                    imported.add(alias.asname or alias.name)
                    path = path_of(f"{module}.{alias.name}")
                    if path is not None and alias.name != "*":
                        found.add(alias.asname or alias.name, path, node)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                paths = paths_of(value, found.names)
                for path in paths:
                    found.add(name, path, node)
                if not paths:
                    rebound.add(name)
    for name in rebound - imported:
        found.names.pop(name, None)
    return found


def paths_of(node: ast.expr, names: Mapping[str, Paths]) -> Paths:
    """What a name or an attribute chain stands for; empty where it is none of NKI."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ()
    paths = names.get(node.id, ())
    for attribute in reversed(attributes):
        paths = tuple(_member(path, attribute) for path in paths)
    return paths


def _member(path: Path, attribute: str) -> Path:
    if path.name == "neuronxcc":
        return Path(LEGACY, CURRENT) if attribute == "nki" else Path(None, "neuronxcc.")
    return path.member(attribute)


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body and of its blocks, not those of definitions in it."""
    pending = list(body)[::-1]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, Definition):
            continue
        for part in ("finalbody", "orelse", "body"):
            pending.extend(reversed(getattr(node, part, [])))
        for handler in getattr(node, "handlers", []):
            pending.extend(reversed(handler.body))


class Nodes:
    """The nodes below a node, walked once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[ast.AST, ...]] = {}

    def below(self, node: ast.AST) -> tuple[ast.AST, ...]:
        """Every node of the tree of `node`, which must outlive this."""
        found = self._known.get(id(node))
        if found is None:
            found = self._known[id(node)] = tuple(ast.walk(node))
        return found


def bound_in(function: Scope, nodes: Iterable[ast.AST]) -> set[str]:
    """Names that a function binds itself: its parameters and what its nodes assign."""
    arguments = function.args
    found = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    for extra in (arguments.vararg, arguments.kwarg):
        if extra is not None:
            found.add(extra.arg)
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def reached(tree: ast.Module, roots: Iterable[str], nodes: Nodes) -> list[ast.stmt]:
    """The definitions and assignments of a file that some of them use, in the file's order."""
    defined: dict[str, list[ast.stmt]] = {}
    for node in _statements(tree.body):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                defined.setdefault(name, []).append(node)
            case ast.Assign(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Name):
                        defined.setdefault(target.id, []).append(node)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                defined.setdefault(name, []).append(node)
    order = [node for node in _statements(tree.body) if not isinstance(node, ast.Import)]
    wanted: set[int] = set()
    pending = list(roots)
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        for node in defined.get(name, ()):
            wanted.add(id(node))
            pending.extend(
                inner.id
                for inner in nodes.below(node)
                if isinstance(inner, ast.Name) and inner.id in defined
            )
    return [node for node in order if id(node) in wanted]
