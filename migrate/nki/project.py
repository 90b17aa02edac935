"""Where the modules lie that a kernel file imports, and their text.

They are read as text, never imported.  What may be read is bounded: Python files below the
folders that the caller named, and below the project of the kernel file.  That is the nearest
folder above it with a `pyproject.toml`, `setup.py`, `setup.cfg` or `.git`; without one, the
folder around its outermost package (`__init__.py`), which is its own where it is in no package.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from migrate.python_text import syntax_tree
from migrate.source import Source, read

MAX_LEVELS = 12
"""Folders above a kernel file among which its project is looked for."""

_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")


@dataclass(frozen=True, slots=True)
class Project:
    """The files around a kernel file.

    `file` is where it lies, `shown` what the user called it; `boundary` and `roots` are the
    folders below which files may be read.
    """

    file: Path
    shown: str
    boundary: Path
    roots: tuple[Path, ...]

    @staticmethod
    def around(file: Path, shown: str, roots: Sequence[Path] = ()) -> Project:
        """The project of a file; `roots` are folders that packages are looked for in, first."""
        resolved = _resolved(file)
        folders = tuple(dict.fromkeys(_resolved(root) for root in roots))
        return Project(resolved, shown, _boundary(resolved.parent), folders)

    def relative(self, importer: Path, level: int, parts: Sequence[str]) -> Path | None:
        """The module or package that a relative import names, seen from a file."""
        folder = importer.parent
        for _ in range(level - 1):
            folder = folder.parent
        return self._below(folder, parts)

    def absolute(self, importer: Path, parts: Sequence[str]) -> Path | None:
        """The module or package of a dotted name."""
        for folder in self._folders(importer):
            found = self._below(folder, parts)
            if found is not None:
                return found
        return None

    def submodule(self, package: Path, name: str) -> Path | None:
        """A module in a package, which is a folder or its `__init__.py`."""
        folder = package.parent if package.name == "__init__.py" else package
        return self._below(folder, (name,)) if folder.is_dir() else None

    def name_of(self, file: Path) -> str:
        """What to call a file: its place as seen from where the kernel file was named."""
        try:
            beside = os.path.relpath(file, self.file.parent)
        except ValueError:
            return str(file)
        return os.path.normpath(Path(self.shown).parent / beside)

    def _folders(self, importer: Path) -> Iterator[Path]:
        yield from self.roots
        here = importer.parent
        while self._allowed(here):
            yield here
            yield here / "src"
            if here in (self.boundary, here.parent):
                break
            here = here.parent

    def _below(self, folder: Path, parts: Sequence[str]) -> Path | None:
        if not all(part.isidentifier() for part in parts):
            return None
        place = folder.joinpath(*parts)
        for candidate in (place / "__init__.py", place.with_name(f"{place.name}.py")):
            if candidate.is_file() and self._allowed(candidate) and candidate.name != ".py":
                return _resolved(candidate)
        return _resolved(place) if place.is_dir() and self._allowed(place) else None

    def _allowed(self, path: Path) -> bool:
        """Whether a path, links followed, is in the project or below a named folder."""
        resolved = _resolved(path)
        return any(resolved.is_relative_to(root) for root in (self.boundary, *self.roots))


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path.absolute()


def _boundary(folder: Path) -> Path:
    here = folder
    for _ in range(MAX_LEVELS):
        if any((here / mark).exists() for mark in _MARKS):
            return here
        if here.parent == here:
            break
        here = here.parent
    top = folder
    for _ in range(MAX_LEVELS):
        if not (top / "__init__.py").is_file() or top.parent == top:
            break
        top = top.parent
    return top


@dataclass(frozen=True, slots=True)
class Text:
    """A file that was read: its source and syntax tree."""

    source: Source
    tree: ast.Module


def text_of(file: Path, shown: str) -> Text:
    """Read and parse a file.  Raises `SourceError` for what is no Python text.

    Trees are kept for the process and made anew when the content changes.
    """
    source = read(file, name=shown)
    return _parsed(str(file), shown, source.digest, _Held(source))


@dataclass(frozen=True, slots=True)
class _Held:
    """A source that does not count when parsed texts are told apart: its digest does."""

    source: Source

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=256)
def _parsed(file: str, shown: str, digest: str, held: _Held) -> Text:
    return Text(held.source, syntax_tree(held.source))
