"""What the text of a kernel says about it, without specialising: one scan a file.

A scan looks at the syntax tree of a kernel and of the functions of its file that it calls.
`registry.SCANS` is the table.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from migrate.nki.parse import Kernel, Module
    from migrate.nki.values import Problem


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A kernel's text: `functions` are its own definition, then those of the file it calls."""

    module: Module
    kernel: Kernel
    functions: tuple[ast.FunctionDef, ...]


Scan: TypeAlias = Callable[[Text], "Iterator[Problem]"]


def text_of(module: Module, kernel: Kernel) -> Text:
    """The kernel with the functions of its file that it reaches by name."""
    defined = {node.name: node for node in module.tree.body if isinstance(node, ast.FunctionDef)}
    found: dict[str, ast.FunctionDef] = {}
    pending = [kernel.node]
    while pending:
        function = pending.pop(0)
        if function.name in found:
            continue
        found[function.name] = function
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id in defined:
                pending.append(defined[node.id])
    return Text(module, kernel, tuple(found.values()))


def scanned(module: Module, kernel: Kernel) -> Iterator[Problem]:
    """What all scans find."""
    from migrate.nki.scans.registry import SCANS

    text = text_of(module, kernel)
    for scan in SCANS:
        yield from scan(text)
