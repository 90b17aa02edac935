"""Files beside that of a kernel that import it: its wrapper is often in one of those."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.host.calls import Reading
from migrate.host.reader import read_tree
from migrate.nki.parse import Kernel, Module
from migrate.nki.project import text_of
from migrate.source import SourceError

MAX_FILES = 64
"""In one folder."""


def read_beside(module: Module, kernel: Kernel) -> Iterator[Reading]:
    """The functions that launch a kernel in other files of its folder."""
    project = module.project
    if project is None:
        return
    try:
        files = sorted(project.file.parent.glob("*.py"))
    except OSError:
        return
    for file in files[:MAX_FILES]:
        place = project.relative(project.file, 1, (file.stem,))
        if place is None or place == project.file or not place.is_file():
            continue
        try:
            if kernel.name.encode() not in place.read_bytes():
                continue
            text = text_of(place, project.name_of(place))
        except (SourceError, OSError):
            continue
        launchers = _names(text.tree, kernel.name, project.file.stem)
        if launchers is not None:
            yield from read_tree(text.source, text.tree, kernel, launchers)


def _names(tree: ast.Module, kernel: str, stem: str) -> frozenset[str] | None:
    """The names under which a file has the kernel; `None` where it does not import its module."""
    found: set[str] = set()
    whole = False
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=module, names=names):
                own = module is not None and module.rpartition(".")[2] == stem
                for alias in names:
                    if own and alias.name == kernel:
                        found.add(alias.asname or alias.name)
                    whole = whole or alias.name == stem
            case ast.Import(names=names):
                whole = whole or any(a.name.rpartition(".")[2] == stem for a in names)
            case _:
                pass
    return frozenset(found) if found or whole else None
