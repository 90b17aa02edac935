"""Finding the files that `#include` names, below given folders and nowhere else.

A reviewed file may name any path.  What is found is read only if it lies, links followed,
below one of the folders that the caller gave.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from migrate.cuda.preprocess import Include
from migrate.source import Source, SourceError, read

MAX_FILES: Final = 100_000
"""Files below a folder among which a header is looked for."""

_HEADERS: Final = frozenset({".h", ".hh", ".hpp", ".hxx", ".cuh", ".cu", ".inl", ".inc", ".ipp"})


def finder(folders: Sequence[str | Path]) -> Include:
    """What finds included files below `folders`.

    As a compiler does: beside the file that includes (its name is its path), then in each
    folder.  A header that is
    there in neither way is taken from anywhere below the folders if one file's path ends in
    its name, or one that does is nearer than all others to the file that includes.  A header
    that is no text is not found.

    Raises `SourceError` for a folder that is none.
    """
    for folder in folders:
        if not Path(folder).is_dir():
            raise SourceError("is no folder to include from", file=str(folder))
    return _Finder([Path(folder) for folder in folders])


class _Finder:
    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = folders
        self.allowed = [folder.resolve() for folder in folders]
        self.read: dict[Path, Source | None] = {}
        self.index: dict[str, list[Path]] | None = None

    def __call__(self, name: str, includer: Source) -> Source | None:
        if "\0" in name or not name or len(name) > 1000:
            return None
        beside = Path(includer.name).parent
        for folder in (beside, *self.folders):
            candidate = folder / name
            if self._is_allowed(candidate):
                return self._source(candidate)
        return self._anywhere(name, beside)

    def _is_allowed(self, path: Path) -> bool:
        try:
            actual = path.resolve()
            return actual.is_file() and any(actual.is_relative_to(top) for top in self.allowed)
        except (OSError, RuntimeError):
            return False

    def _source(self, path: Path) -> Source | None:
        if path not in self.read:
            try:
                self.read[path] = read(path)
            except SourceError:
                self.read[path] = None
        return self.read[path]

    def _anywhere(self, name: str, beside: Path) -> Source | None:
        wanted = PurePosixPath(name)
        if ".." in wanted.parts or wanted.is_absolute():
            wanted = PurePosixPath(wanted.name)
        if self.index is None:
            self.index = _index(self.folders)
        near = beside.resolve().parts
        found = sorted(
            (-_common(path.parts, near), path)
            for path in self.index.get(wanted.name, ())
            if path.parts[-len(wanted.parts) :] == wanted.parts
        )
        if not found or (len(found) > 1 and found[0][0] == found[1][0]):
            return None
        path = found[0][1]
        return self._source(path) if self._is_allowed(path) else None


def _index(folders: Sequence[Path]) -> dict[str, list[Path]]:
    out: dict[str, list[Path]] = {}
    count = 0
    for folder in folders:
        for place, inner, files in os.walk(folder.resolve()):
            inner[:] = sorted(name for name in inner if not name.startswith("."))
            for name in sorted(files):
                count += 1
                if count > MAX_FILES:
                    return out
                if PurePosixPath(name).suffix in _HEADERS:
                    out.setdefault(name, []).append(Path(place) / name)
    return out


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    shared = 0
    for left, right in zip(first, second, strict=False):
        if left != right:
            break
        shared += 1
    return shared
