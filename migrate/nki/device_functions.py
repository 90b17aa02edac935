"""Which functions of a file run on the device: kernels, and what they are made of.

A function is a kernel where one of its decorators makes it one, and a helper where its own body
calls something of `nki.language` or `nki.isa`.  Helpers that only call other helpers cannot be
told from the host's functions by the file alone; they are found when a kernel is specialised.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from migrate.nki.parse import Module
from migrate.python_text import span_of
from migrate.source import Span

Role: TypeAlias = Literal["kernel", "helper"]

CONVENTIONAL = {"nl": "language", "nisa": "isa", "nki": "nki"}
"""What names stand for that no import of the file binds."""

_DECORATORS = frozenset({"baremetal", "benchmark", "jit", "profile", "trace"})
_ROOTS = ("nki", "neuronxcc.nki")


@dataclass(frozen=True, slots=True)
class DeviceFunction:
    """A function or method; `name` has the names of what it is nested in, with dots."""

    name: str
    role: Role
    span: Span


def device_functions(module: Module) -> tuple[DeviceFunction, ...]:
    """Every function of the file that runs on the device, in the order of the text."""
    meanings = _meanings(module.tree)
    found: list[DeviceFunction] = []
    pending: list[tuple[ast.AST, str]] = [(module.tree, "")]
    while pending:
        node, prefix = pending.pop()
        inner = prefix
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            inner = f"{prefix}{node.name}."
        if isinstance(node, ast.FunctionDef):
            role = _role(node, meanings)
            if role is not None:
                span = span_of(module.source, node)
                found.append(DeviceFunction(inner[:-1], role, span))
        pending.extend((child, inner) for child in ast.iter_child_nodes(node))
    return tuple(sorted(found, key=lambda function: function.span))


def _meanings(tree: ast.Module) -> dict[str, str]:
    """What the file's names stand for: a namespace of NKI, a decorator, or "" for another thing."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    path = alias.name if alias.asname is not None else bound
                    _bind(found, bound, _namespace(path))
            case ast.ImportFrom(module=str(path), level=0):
                for alias in node.names:
                    bound = alias.asname or alias.name
                    meaning = _namespace(f"{path}.{alias.name}")
                    if not meaning and path in _ROOTS and alias.name in _DECORATORS:
                        meaning = "decorator"
                    if not meaning and alias.name == "nki_jit":
                        meaning = "decorator"
                    _bind(found, bound, meaning)
    return {**CONVENTIONAL, **found}


def _bind(found: dict[str, str], name: str, meaning: str) -> None:
    # Of two imports of one name (a fallback for another release), the one of NKI counts.
    if meaning or name not in found:
        found[name] = meaning


def _namespace(path: str) -> str:
    """`language`, `isa`, `nki` or "" for the dotted path of a module."""
    for root in _ROOTS:
        if path == root:
            return "nki"
        if path in (f"{root}.language", f"{root}.isa"):
            return path.rpartition(".")[2]
    return ""


def _role(node: ast.FunctionDef, meanings: dict[str, str]) -> Role | None:
    if any(_makes_kernel(decorator, meanings) for decorator in node.decorator_list):
        return "kernel"
    return "helper" if any(_of_device(call, meanings) for call in _own_calls(node)) else None


def _makes_kernel(decorator: ast.expr, meanings: dict[str, str]) -> bool:
    match decorator:
        case ast.Call(func=func):
            return _makes_kernel(func, meanings)
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if meanings.get(name) == "nki":
            return attribute in _DECORATORS
        case ast.Attribute(attr=attribute):
            # `neuronxcc.nki.jit`, `torch_neuronx.nki_jit`
            return attribute in {"jit", "nki_jit"} and "nki" in ast.unparse(decorator)
        case ast.Name(id=name):
            return meanings.get(name) == "decorator" or (
                name in {"jit", "nki_jit"} and name not in meanings
            )
    return False


def _own_calls(function: ast.FunctionDef) -> Iterator[ast.Call]:
    """Calls in a function's body, without those of functions and classes defined in it."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.Call):
            yield node
        pending.extend(ast.iter_child_nodes(node))


def _of_device(call: ast.Call, meanings: dict[str, str]) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id=name)):
            return meanings.get(name) in ("language", "isa")
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id=name), attr="language" | "isa")):
            return meanings.get(name) == "nki"
        case _:
            return False
