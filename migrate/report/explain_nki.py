"""What `migrate explain` shows of NKI: a name of its API, a version."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from migrate import facts
from migrate.facts import nki
from migrate.facts.nki import Dispute, Limit, Name, Release
from migrate.report import instruction

_PREFIXES: Final[Mapping[str, str]] = {
    "neuronxcc.nki.": "nki.",
    "nl.": "nki.language.",
    "nisa.": "nki.isa.",
    "ncc.": "nki.compiler.",
    "nt.": "nki.typing.",
    "nkitensor.": "nki.language.NkiTensor.",
    ".": "nki.language.NkiTensor.",
}
"""What people write before a name, and the module it stands for."""

_STYLES: Final = {
    None: "",
    "value": ", returns a tile",
    "destination": ", writes to a destination",
}


def candidates(wanted: str) -> tuple[str, ...]:
    """The names that `wanted` (in small letters) may mean: one where it is clear."""
    if re.fullmatch(r"[a-z_]\w*(?:\.\w+)*", wanted) is None:
        return ()
    known = nki.families()
    folded: dict[str, list[str]] = {}
    for key in known:
        folded.setdefault(key.casefold(), []).append(key)
    for prefix, module in _PREFIXES.items():
        if wanted.startswith(prefix):
            wanted = (module + wanted.removeprefix(prefix)).casefold()
    while wanted.count(".") >= 1:
        if wanted in folded:
            return tuple(folded[wanted])
        # A member of an enum is on the page of the enum.
        if wanted.count(".") < 3:
            return ()
        wanted = wanted.rpartition(".")[0]
    return tuple(key for key in known if key.rpartition(".")[2].casefold() == wanted)


def release(wanted: str) -> Release | None:
    """A version as it is asked for: `0.3.0`, `0.3`, `nki 0.3.0`."""
    found = re.fullmatch(r"(?:nki[ -]?)?(0\.\d+)(?:\.0)?", wanted)
    if found is None:
        return None
    return next((r for r in nki.releases() if r.version == f"{found[1]}.0"), None)


def title(entry: Name) -> str:
    """One line: what it is and where it stands."""
    return f"{entry.kind}, {entry.id.rpartition('.')[0]}"


def name_facts(entry: Name) -> dict[str, Any]:
    """Everything that is known of a name, for JSON."""
    found: dict[str, Any] = msgspec.to_builtins(entry)
    found["disputes"] = msgspec.to_builtins(nki.disputes_about(entry.id))
    if entry.kind == "instruction":
        found["checked"] = instruction.checks(entry.id.rpartition(".")[2])
    return found


def name_page(entry: Name) -> str:
    """The Markdown page of a name."""
    parts = [f"# {entry.id}", entry.summary]
    if entry.computes:
        parts.append(f"Computes `{entry.computes}`.")
    parts.append("\n".join(f"* {row}" for row in _rows(entry)))
    if entry.call:
        parts += ["## How it is called", _calls(entry)]
    if entry.operand:
        parts += ["## Operands", _operands(entry)]
    if entry.limit:
        parts += ["## Limits", _limits(entry)]
    if entry.kind == "instruction" and entry.removed is None:
        parts += ["## What a kernel is checked for", _checked(entry)]
    if entry.member:
        parts += ["## Members", _members(entry)]
    if entry.dtypes:
        parts += ["## Dtypes", "\n".join(f"* {k}: {v}" for k, v in entry.dtypes.items())]
    if entry.cost:
        cost = f"`{entry.cost.formula}` cycles of the {entry.cost.engine} engine"
        note = f" ({entry.cost.note})" if entry.cost.note else ""
        words = "N are the elements a partition, P the partitions."
        parts += ["## Cost", f"{cost}{note}. {words}", f"Source: {entry.cost.source}"]
    if entry.change:
        parts += ["## Versions", "\n".join(f"* {c.version}: {c.what}" for c in entry.change)]
    if entry.note:
        parts += ["## Notes", "\n".join(f"* {note}" for note in entry.note)]
    parts += disputed(nki.disputes_about(entry.id))
    parts += ["## Sources", "\n".join(f"* {source}" for source in entry.source)]
    return "\n\n".join(parts) + "\n"


def _rows(entry: Name) -> Iterator[str]:
    yield title(entry)
    yield _lifetime(entry)
    if entry.undocumented:
        yield "not documented"
    if entry.use_instead:
        yield f"use instead: {entry.use_instead}"
    if entry.experimental:
        yield "experimental: a wrapper over `nki.isa` since 0.3.0"
    if entry.engines:
        yield f"engines: {', '.join(entry.engines)}"
    if entry.targets:
        yield f"targets: {', '.join(entry.targets)}"
    if entry.operator_class:
        reduces = "; reduces" if entry.reduces_with else ""
        yield f"operator: {entry.operator_class}{reduces}"
    if entry.operators:
        yield f"operators: {entry.operators}"
    if entry.valid_inputs:
        yield f"inputs that the Scalar engine's table is valid for: {entry.valid_inputs}"
    if entry.reduces:
        yield f"reduces: {entry.reduces}"
    if entry.bytes is not None:
        yield f"bytes: {entry.bytes}"
    if entry.indirect:
        yield f"takes `.indirect()` views: {', '.join(entry.indirect)}"


def _lifetime(entry: Name) -> str:
    said = f"since {entry.since}"
    if entry.absent_in:
        how = "as a function " if entry.kind == "operator" else ""
        said += f", not {how}in {', '.join(entry.absent_in)}"
    if entry.deprecated:
        said += f", deprecated in {entry.deprecated}"
    return said + (f", removed in {entry.removed}" if entry.removed else "")


def _calls(entry: Name) -> str:
    blocks = []
    for call in entry.call:
        refused = ", ".join(f"`{name}`" for name in call.refused)
        raises = f"; {refused} raises an error" if refused else ""
        head = f"NKI {call.since} (SDK {call.sdk}){_STYLES[call.style]}{raises}:"
        blocks.append(f"{head}\n\n```python\n{call.text}\n```")
    return "\n\n".join(blocks)


def _operands(entry: Name) -> str:
    rows = [
        "| operand | role | memory | shape | dtypes | |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, operand in entry.operand.items():
        cells = (
            f"`{name}`",
            operand.role,
            ", ".join(operand.memory) or "-",
            operand.shape or "",
            operand.dtypes or "",
            operand.note or "",
        )
        rows.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(rows)


def _limits(entry: Name) -> str:
    targets = tuple(facts.targets())
    rows = [
        f"| limit | operand | {' | '.join(targets)} |",
        f"| --- | --- |{' --- |' * len(targets)}",
    ]
    for limit in entry.limit:
        words = limit.states
        words += f" (since {limit.since})" if limit.since else ""
        cells = [words, f"`{limit.operand}`" if limit.operand else ""]
        cells += [_number(limit, target) for target in targets]
        rows.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(rows)


def _number(limit: Limit, target: str) -> str:
    """What a limit is on a target, as numbers: `8 to 16384`, `multiple of 16`, `1, 2 or 4`."""
    if limit.targets and target not in limit.targets:
        return "-"
    given = limit.most.items() if isinstance(limit.most, dict) else ()
    by_target: dict[str, int] = dict(given)
    if by_target and target not in by_target:
        return "-"
    most = limit.most if isinstance(limit.most, int) else by_target.get(target)
    said = []
    if limit.one_of:
        said.append(" or ".join(map(str, limit.one_of)))
    if limit.least is not None and most is not None:
        said.append(f"{limit.least} to {most}")
    elif most is not None:
        said.append(f"≤ {most}")
    elif limit.least is not None:
        said.append(f"≥ {limit.least}")
    if limit.multiple is not None:
        said.append(f"multiple of {limit.multiple}")
    return ", ".join(said) or "applies"


def _checked(entry: Name) -> str:
    opcode = entry.id.rpartition(".")[2]
    found = instruction.checks(opcode)
    text = "\n".join(f"* {check}" for check in found or ()) or "Nothing."
    if instruction.modelled(opcode):
        return text
    return f"{text}\n\nWhat it computes is not modelled: what it writes is unknown."


def _members(entry: Name) -> str:
    rows = ["| member | value | since | |", "| --- | --- | --- | --- |"]
    for name, member in entry.member.items():
        value = "" if member.value is None else str(member.value)
        old = f"deprecated in {member.deprecated}" if member.deprecated else ""
        rows.append(f"| `{name}` | {value} | {member.since} | {old} |")
    return "\n".join(rows)


def disputed(disputes: Iterable[Dispute]) -> list[str]:
    """The sections on what sources disagree about."""
    parts = []
    for dispute in disputes:
        lines = [f"**{dispute.question}**", ""]
        lines += [f"* {reading}" for reading in dispute.readings]
        lines += ["", f"Taken: {dispute.taken} {dispute.why}", ""]
        lines += [f"Sources: {'; '.join(dispute.source)}"]
        parts.append("\n".join(lines))
    return ["## Where sources disagree", *parts] if parts else []


def release_page(found: Release) -> str:
    """The Markdown page of a version: what came, what went, what the language takes."""
    names = nki.names().values()
    came = [n.id for n in names if n.since == found.version and n.kind != "method"]
    went = [n.id for n in names if n.removed == found.version and n.kind != "method"]
    changed = [(n.id, c.what) for n in names for c in n.change if c.version == found.version]
    kind = f", {found.title}" if found.title else ""
    parts = [
        f"# NKI {found.version}{kind}",
        found.what,
        f"Neuron SDK {found.sdk}, {found.date}; namespace `{found.namespace}`.",
    ]
    if found.version != nki.VERSIONS[0]:
        parts += _list("## New names", came)
    parts += _list("## Removed names", went)
    if changed:
        rows = "\n".join(f"* `{id}`: {what}" for id, what in changed)  # noqa: A001
        parts += ["## Changes", rows]
    language = [
        f"* {feature.states}: {'yes' if found.version in feature.versions else 'no'}"
        + (f". {feature.doubt}" if feature.doubt else "")
        for feature in nki.features().values()
    ]
    parts += ["## What a kernel may have", "\n".join(language)]
    parts += ["## Sources", "\n".join(f"* {source}" for source in found.source)]
    return "\n\n".join(parts) + "\n"


def _list(head: str, names: list[str]) -> list[str]:
    return [head, "\n".join(f"* `{name}`" for name in names)] if names else []


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
