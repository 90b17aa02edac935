"""Findings that the reviewed file itself sets aside.

`# migrate: ignore[HW203] reason` on a line, or `// migrate: ignore[...]` in CUDA, suppresses the
findings of those rules (several, separated by commas) that begin on the line.  They stay in the
result, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from migrate.results import Finding
from migrate.source import Source

_MARK = re.compile(r"(?:#|//)\s*migrate:\s*ignore\[([A-Z]+\d+(?:\s*,\s*[A-Z]+\d+)*)\]([^\r\n]*)")
NO_REASON = "no reason given"
MAX_REASON = 200
"""Characters of a reason that are kept."""


def suppressed(found: Sequence[Finding], sources: Iterable[Source]) -> tuple[Finding, ...]:
    """The findings, with the reason at those that a comment in their file sets aside."""
    marks = {source.name: _marks(source) for source in sources}
    return tuple(_marked(finding, marks) for finding in found)


def _marked(finding: Finding, marks: Mapping[str, Mapping[int, Mapping[str, str]]]) -> Finding:
    line = marks.get(finding.span.file, {}).get(finding.span.start_line, {})
    reason = line.get(finding.rule)
    return finding if reason is None else msgspec.structs.replace(finding, suppressed=reason)


def _marks(source: Source) -> dict[int, dict[str, str]]:
    """The reason by line and rule."""
    found: dict[int, dict[str, str]] = {}
    if "migrate:" not in source.text:
        return found
    for number in range(1, source.line_count + 1):
        mark = _MARK.search(source.line(number))
        if mark is not None:
            reason = mark[2].strip()[:MAX_REASON] or NO_REASON
            for rule in mark[1].split(","):
                found.setdefault(number, {})[rule.strip()] = reason
    return found
