"""What `migrate explain` shows: a rule, a mapping, a target or a name of NKI as one page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from migrate import facts
from migrate.facts import Advice, Choices, Entry, Real, Realisation, Requirement, Target, Whole, nki
from migrate.report import explain_nki
from migrate.results import SCHEMA_VERSION
from migrate.rules import pages
from migrate.rules.registry import RULES
from migrate.rules.rule import Rule

NEAREST: Final = 3

Kind = Literal["rule", "mapping", "target", "version", "name"]

_LABELS: Final[Mapping[str, str]] = {
    "cores_per_chip": "cores per chip",
    "partitions": "partitions",
    "sbuf_bytes_per_partition": "SBUF per partition",
    "sbuf_usable_bytes_per_partition": "SBUF per partition that kernels may use",
    "psum_bytes_per_partition": "PSUM per partition",
    "psum_banks": "PSUM banks per partition",
    "psum_bank_bytes": "PSUM bank per partition",
    "matmul_stationary_free": "stationary operand of a matrix product, free axis",
    "matmul_moving_free": "moving operand of a matrix product, free axis",
    "dma_engines": "DMA engines",
    "dma_engine_rate": "rate of a DMA engine",
    "logical_cores": "cores that one program may span",
    "engine_free_sbuf": "elements a partition of one instruction, in SBUF",
    "engine_free_psum": "elements a partition of one instruction, in PSUM",
    "bn_stats_free": "elements a partition of `bn_stats`",
    "matmul_tile_rows": "rows of a tile of the Tensor engine",
    "dma_queues_per_engine": "queues of a DMA engine",
    "dma_bytes_per_partition": "contiguous bytes a partition that a DMA runs well with",
    "dma_start": "from a signal to the first byte of a DMA",
    "sequencer_registers": "registers of an engine's sequencer",
    "instruction_cycles": "least cycles of an instruction",
    "hbm_bytes": "device memory of the chip",
    "hbm_rate": "rate of the device memory of the chip",
}


@dataclass(frozen=True, slots=True)
class Page:
    """A page and the facts it was made from; `id` is the canonical one."""

    kind: Kind
    id: str
    title: str
    markdown: str
    facts: Mapping[str, Any]

    def to_json(self) -> bytes:
        """UTF-8 JSON with a final newline."""
        document = {
            "schema_version": SCHEMA_VERSION,
            "kind": self.kind,
            "id": self.id,
            "title": self.title,
            "markdown": self.markdown,
            "facts": dict(self.facts),
        }
        return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def page(id: str) -> Page | tuple[str, ...]:  # noqa: A002
    """The page of a rule (id or name), a mapping (an entry or a realisation), a target, a
    version or a name of NKI (`nisa.nc_matmul`, `nki.language.load`, `nc_matmul`).

    Upper and lower case are alike.  Without a page: the names that it may mean, several
    where it is not clear and none where nothing is called so.
    """
    wanted = id.casefold()
    for rule in RULES:
        if wanted in (rule.id.casefold(), rule.name.casefold()):
            return _rule(rule)
    for name, target in facts.targets().items():
        if wanted in (name.casefold(), target.title.casefold(), *target.also):
            return _target(target)
    for name, entry in facts.mappings().items():
        if wanted == name.casefold():
            return _mapping(entry, entry.realisation)
        for way in entry.realisation:
            if wanted == way.id.casefold():
                return _mapping(entry, (way,))
    release = explain_nki.release(wanted)
    if release is not None:
        shown = msgspec.to_builtins(release)
        markdown = explain_nki.release_page(release)
        return Page("version", release.version, f"NKI {release.version}", markdown, shown)
    found = explain_nki.candidates(wanted)
    if len(found) != 1:
        return found
    entry_ = nki.name(found[0])
    return Page(
        kind="name",
        id=entry_.id,
        title=explain_nki.title(entry_),
        markdown=explain_nki.name_page(entry_),
        facts=explain_nki.name_facts(entry_),
    )


def index() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Everything that has a page: kind, then heading, then the ids."""
    names: dict[str, list[str]] = {}
    for key, title in nki.families().items():
        names.setdefault(title, []).append(key)
    families: dict[str, list[str]] = {}
    for rule in RULES:
        families.setdefault(rule.family, []).append(f"{rule.id} {rule.name}")
    return {
        "rules": {family: tuple(rules) for family, rules in families.items()},
        "mappings": {
            entry.title: (name, *(way.id for way in entry.realisation))
            for name, entry in facts.mappings().items()
        },
        "targets": {target.title: (name,) for name, target in facts.targets().items()},
        "versions": {"NKI": tuple(release.version for release in nki.releases())},
        "names": {title: tuple(ids) for title, ids in sorted(names.items())},
    }


def index_json() -> bytes:
    """The index as JSON with a final newline."""
    document = {"schema_version": SCHEMA_VERSION, "index": index()}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def index_markdown() -> str:
    """The index as Markdown."""
    parts = ["# What can be explained"]
    for kind, headings in index().items():
        parts.append(f"## {kind.capitalize()}")
        for heading, ids in headings.items():
            parts.append(f"**{heading}**: {', '.join(f'`{id}`' for id in ids)}")  # noqa: A001
    return "\n\n".join(parts) + "\n"


def known() -> tuple[str, ...]:
    """Everything that has a page, as it is asked for."""
    names = [name for rule in RULES for name in (rule.id, rule.name)]
    names += facts.targets()
    for name, entry in facts.mappings().items():
        names += [name, *(way.id for way in entry.realisation)]
    names += [release.version for release in nki.releases()]
    clear = Counter(key.rpartition(".")[2].casefold() for key in nki.families())
    taken = {name.casefold() for name in names}
    for key in nki.families():
        module, _, last = key.rpartition(".")
        names.append(key)
        if clear[last.casefold()] == 1 and last.casefold() not in taken:
            names.append(last)
        short = _SHORT.get(module)
        if short is not None:
            names.append(f"{short}.{last}")
    return tuple(dict.fromkeys(names))


_SHORT: Final = {"nki.isa": "nisa", "nki.language": "nl", "nki.compiler": "ncc"}


def nearest(id: str) -> tuple[str, ...]:  # noqa: A002
    """Known ids that look like this one, the likeliest first."""
    from cydifflib import get_close_matches

    by_folded = {name.casefold(): name for name in known()}
    wanted = _digits(id.casefold()[:100])
    found = get_close_matches(wanted, list(by_folded), n=2 * NEAREST, cutoff=0.5)
    # Among names that are equally alike, the one with the most characters in place is meant.
    ordered = sorted(found, key=lambda name: -sum(map(str.__eq__, wanted, name)))
    return tuple(by_folded[name] for name in ordered[:NEAREST])


def _digits(text: str) -> str:
    """A rule's id with the letters that look like digits, where digits belong, as digits."""
    found = re.fullmatch(r"([a-z]+?)([0-9oli]{3})", text)
    if found is None:
        return text
    return found[1] + found[2].translate(str.maketrans("oli", "011"))


def _rule(rule: Rule) -> Page:
    return Page(
        kind="rule",
        id=rule.id,
        title=rule.name,
        markdown=pages.page(rule),
        facts={
            "name": rule.name,
            "family": rule.family,
            "severity": rule.severity,
            "effect": rule.effect,
            "sections": dict(pages.sections(rule)),
        },
    )


def _mapping(entry: Entry, ways: tuple[Realisation, ...]) -> Page:
    whole = len(ways) > 1 or ways == entry.realisation
    needed = {name for way in ways for name in way.requires}
    requirements = tuple(r for r in entry.requirement if r.id in needed)
    id = entry.id if whole else ways[0].id  # noqa: A001
    parts = [f"# {id}: {entry.title}", entry.what, "## What may stand for it"]
    parts += [_way(way) for way in ways]
    if requirements:
        parts += ["## What must hold", *map(_requirement, requirements)]
    if whole and entry.advice:
        parts += ["## How to write it", *map(_advice, entry.advice)]
    shown: dict[str, Any] = msgspec.to_builtins(entry)
    if not whole:
        shown["realisation"] = msgspec.to_builtins(ways)
        shown["requirement"] = msgspec.to_builtins(requirements)
    return Page("mapping", id, entry.title, "\n\n".join(parts) + "\n", shown)


def _way(way: Realisation) -> str:
    left = _end(way.cuda_kind, way.cuda_when)
    right = _end(way.nki_kind, way.nki_when)
    if way.opcodes:
        right += f" by {', '.join(f'`{opcode}`' for opcode in way.opcodes)}"
    lines = [
        f"### `{way.id}`",
        f"CUDA {left} → NKI {right}: *{way.verdict}*",
        f"{_sentence(way.reason)}",
    ]
    if way.requires:
        lines.append(f"Requires {', '.join(f'`{name}`' for name in way.requires)}.")
    lines.append(f"Source: {way.source}")
    return "\n\n".join(lines)


def _end(kind: str | None, when: Mapping[str, str]) -> str:
    if kind is None:
        return "nothing"
    words = ", ".join(f"{name} = {value}" for name, value in sorted(when.items()))
    return f"{kind} ({words})" if words else kind


def _requirement(requirement: Requirement) -> str:
    return (
        f"* **`{requirement.id}`**: {requirement.states} Otherwise {requirement.otherwise}"
        f" (*{requirement.effect}*).\n\n  Source: {requirement.source}"
    )


def _advice(advice: Advice) -> str:
    words = _end(advice.cuda_kind, advice.when)
    label = "mind: " if advice.caution else ""
    why = f" ({advice.why})" if advice.why else ""
    return (
        f"* **`{advice.id}`**, for {words}: {label}{advice.how}{why}\n\n  Source: {advice.source}"
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _target(target: Target) -> Page:
    parts = [
        f"# {target.name}: {target.title}",
        f"Also {', '.join(target.also)}.",
        f"Sizes are per core ({target.core}) unless the row says otherwise.",
        _table("what", _figures(target)),
        "## Clock",
        _table("engine", target.clock.items()),
        "## Elements a cycle",
        _table("engine", ((name.replace("_", ", "), f) for name, f in target.width.items())),
        "## Peak of the tensor engine",
        _table("format", target.peak.items()),
        "## Where an operand may begin",
        "\n".join(
            f"* up to {start.most} partitions: {', '.join(map(str, start.allowed))}"
            f" ({start.source})"
            for start in target.start_partitions
        ),
        *explain_nki.disputed(nki.disputes_about(target.name)),
    ]
    return Page(
        kind="target",
        id=target.name,
        title=target.title,
        markdown="\n\n".join(parts) + "\n",
        facts={
            **msgspec.to_builtins(target),
            "disputes": msgspec.to_builtins(nki.disputes_about(target.name)),
        },
    )


def _figures(target: Target) -> Iterator[tuple[str, Whole | Real | Choices]]:
    for name in target.__struct_fields__:
        figure = getattr(target, name)
        if isinstance(figure, Whole | Real | Choices):
            yield _LABELS.get(name, name.replace("_", " ")), figure


def _table(head: str, figures: Any) -> str:
    rows = [f"| {head} | value | source |", "| --- | --- | --- |"]
    for label, figure in figures:
        derived = " (computed)" if getattr(figure, "derived", False) else ""
        rows.append(f"| {label} | {_value(figure)} | {figure.source}{derived} |")
    return "\n".join(rows)


def _value(figure: Whole | Real | Choices) -> str:
    """`229,376 bytes (224 KiB)`, `2.4 GHz`, `79 Tflop/s`."""
    match figure:
        case Choices(value=choices, unit=unit):
            return f"{' or '.join(map(str, choices))} {unit}"
        case Whole(value=value, unit="bytes") if value >= 1024:
            return f"{value:,} bytes ({_binary(value)})"
        case Whole(value=value, unit=unit):
            return f"{value:,} {unit}"
        case Real(value=number, unit=unit):
            if unit == "s":
                return f"{number * 1e6:g} µs"
            for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
                if number >= scale:
                    return f"{number / scale:g} {prefix}{unit.replace('bytes', 'B')}"
            return f"{number:g} {unit}"


def _binary(value: int) -> str:
    power = min((value.bit_length() - 1) // 10, 3)
    return f"{value / 1024**power:g} {('', 'Ki', 'Mi', 'Gi')[power]}B"
