"""The texts that a result speaks of, for reports that quote them.

A result holds places, not texts.  A file is quoted only if its digest is the one that
was judged: quoting another text at the same place would mislead.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from migrate.results import Comparison
from migrate.source import Source, SourceError, read


def of(result: Comparison, case: str | Path | None = None) -> Mapping[str, Source]:
    """The reviewed files by the name that spans carry.

    Names are looked up from the working directory, then from the case's folder.
    """
    found: dict[str, Source] = {}
    for subject in (result.cuda, result.nki):
        candidates = [Path(subject.file)]
        if case is not None:
            candidates.append(Path(case).parent / subject.file)
        for path in candidates:
            try:
                source = read(path, name=subject.file)
            except SourceError:
                continue
            if source.digest == subject.digest:
                found[subject.file] = source
                break
    return found


def alone(file: str, digest: str) -> Mapping[str, Source]:
    """The one file that a result is about, if it is still the one that was judged."""
    try:
        source = read(file)
    except SourceError:
        return {}
    return {file: source} if source.digest == digest else {}
