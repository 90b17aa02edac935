"""Reading an NKI source file: its syntax tree and its kernels.

The text is parsed by `ast`, never compiled or imported (`migrate.python_text`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from migrate.nki.project import Project
from migrate.python_text import span_of, syntax_tree
from migrate.source import Source, SourceError, Span

Generation: TypeAlias = Literal["0.1", "0.2+"]

_JIT = frozenset(
    {"jit", "nki_jit", "baremetal", "benchmark", "profile", "simulate_kernel", "trace"}
)


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A function that is, or may be, an NKI kernel.

    `decorated` is false for functions that only use the API: offered where a file has no
    decorated ones.
    """

    name: str
    node: ast.FunctionDef
    span: Span
    parameters: tuple[str, ...]
    decorated: bool


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """A parsed file.  `generation` is `None` where no NKI namespace is imported.

    `project` are the files around it; without one, what it imports is unknown.
    """

    source: Source
    tree: ast.Module
    kernels: tuple[Kernel, ...]
    generation: Generation | None
    project: Project | None = None

    def kernel(self, name: str) -> Kernel:
        """Raises `SourceError` where there is no kernel of that name."""
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        known = ", ".join(kernel.name for kernel in self.kernels) or "none"
        raise SourceError(f"has no kernel {name!r} (kernels: {known})", file=self.source.name)


_NAMESPACES = frozenset(
    f"{root}.{name}" for root in ("nki", "neuronxcc.nki") for name in ("language", "isa")
)


def parse(source: Source, project: Project | None = None) -> Module:
    """Parse a file and find its kernels; with a `project`, what it imports can be read.

    Raises `SourceError`, with the place, for text that is not Python or is nested or
    long beyond what a kernel can be.
    """
    tree = syntax_tree(source)
    generation = _generation(tree)
    return Module(source, tree, tuple(_kernels(tree, source)), generation, project)


def _generation(tree: ast.Module) -> Generation | None:
    """By the imported namespace, which separates the generations without exception."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found.update(alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                found.add(module)
    if any(name == "nki" or name.startswith("nki.") for name in found):
        return "0.2+"
    if any(name.startswith("neuronxcc.nki") or name == "neuronxcc" for name in found):
        return "0.1"
    return None


def _kernels(tree: ast.Module, source: Source) -> Iterator[Kernel]:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    wrapped = _wrapped_names(tree)
    decorated = [
        node for node in functions if any(map(is_jit, node.decorator_list)) or node.name in wrapped
    ]
    if decorated:
        chosen, marked = decorated, True
    else:
        called = _called_names(tree)
        names = {"nisa", "nl"} - _foreign(tree)
        chosen = [f for f in functions if _calls_any(f, names) and f.name not in called]
        marked = False
    for node in chosen:
        arguments = node.args
        parameters = tuple(
            a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        )
        yield Kernel(node.name, node, span_of(source, node), parameters, marked)


def is_jit(decorator: ast.expr) -> bool:
    """`nki.jit`, `jit`, `nki.jit(...)`, and the legacy decorators."""
    match decorator:
        case ast.Call(func=func):
            return is_jit(func)
        case ast.Attribute(value=ast.Name(id="nki"), attr=name):
            return name in _JIT
        case ast.Attribute(attr=name):
            return name in {"jit", "nki_jit"}
        case ast.Name(id=name):
            return name in {"jit", "nki_jit"}
        case _:
            return False


def _wrapped_names(tree: ast.Module) -> set[str]:
    """Functions made kernels by `kernel = nki.jit(function)` at module level."""
    found: set[str] = set()
    for node in tree.body:
        match node:
            case ast.Assign(value=ast.Call(func=func, args=[ast.Name(id=name), *_])) if is_jit(
                func
            ):
                found.add(name)
    return found


def _called_names(tree: ast.Module) -> set[str]:
    return {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


def _foreign(tree: ast.Module) -> set[str]:
    """Names that imports bind to something else than a namespace of NKI's library."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.level:
            continue
        for alias in node.names:
            if f"{node.module}.{alias.name}" not in _NAMESPACES:
                found.add(alias.asname or alias.name)
    return found


def _calls_any(function: ast.FunctionDef, names: set[str]) -> bool:
    """Whether a function calls something of a namespace; host code only names its formats."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in names
        for node in ast.walk(function)
    )
