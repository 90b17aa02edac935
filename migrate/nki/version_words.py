"""Versions in words."""

from __future__ import annotations

from collections.abc import Set

from migrate.facts.nki import VERSIONS, Version


def spoken(versions: Set[Version]) -> str:
    """`only in 0.1.0`, `from 0.3.0 on`, `up to 0.2.0`, `in 0.1.0 and from 0.3.0 on`."""
    if not versions:
        return "in no version"
    if len(versions) == len(VERSIONS):
        return "in every version"
    runs = _runs(versions)
    said = [_run(run) for run in runs]
    if len(said) == 1 and len(runs[0]) == 1 and runs[0][0] != VERSIONS[-1]:
        return f"only {said[0]}"
    return " and ".join(said)


def _run(run: list[Version]) -> str:
    first, last = run[0], run[-1]
    if last == VERSIONS[-1]:
        return f"from {first} on"
    if first == VERSIONS[0] and len(run) > 1:
        return f"up to {last}"
    return f"in {first}" if first == last else f"from {first} to {last}"


def listed(versions: Set[Version]) -> str:
    """`0.1.0`, `0.3.0 to 0.6.0`, `0.2.0 or later`, `0.1.0, 0.3.0 or later`."""
    return ", ".join(
        f"{run[0]} or later"
        if run[-1] == VERSIONS[-1]
        else run[0]
        if len(run) == 1
        else f"{run[0]} to {run[-1]}"
        for run in _runs(versions)
    )


def _runs(versions: Set[Version]) -> list[list[Version]]:
    """Versions as stretches without a gap."""
    runs: list[list[Version]] = []
    for before, version in zip((None, *VERSIONS), VERSIONS, strict=False):
        if version not in versions:
            continue
        if before is not None and before in versions:
            runs[-1].append(version)
        else:
            runs.append([version])
    return runs
