"""The faults of the samples, planted: each is told, at its place, in words that can be read.

Sizes are smaller than the samples' own, with a whole tile and a remainder in each.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import migrate
from migrate.case.faults import Fault, Faulty, apply, load
from migrate.results import Comparison
from migrate.rules.registry import BY_ID
from migrate.source import read

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
SIZES = {
    "vector_add": {"n": [100, 1024, 70000]},
    "softmax_rows": {"R": [3, 130], "C": [8, 520]},
    "matmul_tiled": {"M": [30, 10], "N": [20, 520], "K": [130, 20]},
}
SLOW = {
    "matmul_tiled": {
        "k-tail-dropped",
        "not-accumulated",
        "k-offset",
        "columns-dropped",
        "wrong-memory",
        "bfloat16-result",
    },
    "softmax_rows": {
        "maximum-dropped",
        "sum-of-inputs",
        "not-reciprocal",
        "rows-dropped",
        "tile-offset",
        "partition-axis",
        "bfloat16-sum",
    },
}
"""Of the larger samples, faults of every family and place; of the others, all."""

FAULTS = [
    (sample, fault)
    for sample in SIZES
    for fault in load(SAMPLES / sample / "faults.toml")
    if fault.id in SLOW.get(sample, {fault.id})
]
INTERNAL = re.compile(r"%v\d|\b(AxisKind|Combine|Apply|Element|None|nan\()|\btable [0-9a-f]|\.\.\.")


@cache
def planted(sample: str, fault: str) -> tuple[Faulty, Comparison]:
    folder = SAMPLES / sample
    entry: Fault = next(f for f in load(folder / "faults.toml") if f.id == fault)
    faulty = apply(entry, read(folder / "kernel.py"))
    case = (folder / "case.toml").read_text("utf-8")
    for name, values in SIZES[sample].items():
        case, count = re.subn(rf"^{name} = \[.*\]$", f"{name} = {values}", case, flags=re.MULTILINE)
        assert count == 1
    cuda = (folder / "kernel.cu").read_text("utf-8")
    return faulty, migrate.compare_text(cuda, faulty.text, case=case, run="never")


IDS = [f"{sample}: {fault.id}" for sample, fault in FAULTS]


def test_there_are_enough() -> None:
    assert len(FAULTS) >= 20
    assert {fault.family for _, fault in FAULTS} >= {"mapping", "hardware", "numerics"}


@pytest.mark.parametrize(("sample", "fault"), FAULTS, ids=IDS)
def test_a_fault_is_told_at_its_place(sample: str, fault: Fault) -> None:
    faulty, result = planted(sample, fault.id)
    lines = set(faulty.lines)
    told = [f for f in result.findings if f.severity != "note"]
    assert told
    if fault.effect in {"wrong", "rejects"}:
        assert result.verdict == "not-faithful"
        assert result.confidence >= 0.85
        assert result.score.fidelity is not None
        assert result.score.fidelity <= 40.0
    else:
        assert result.verdict == "faithful-with-findings"
    at_place = [f for f in told if lines & set(range(f.span.start_line, f.span.end_line + 1))]
    assert at_place, [(f.rule, str(f.span)) for f in told]
    assert {f.family for f in at_place} & {fault.family, "mapping"}


@pytest.mark.parametrize(("sample", "fault"), FAULTS, ids=IDS)
def test_every_lost_construct_names_its_finding(sample: str, fault: Fault) -> None:
    _, result = planted(sample, fault.id)
    by_id = {finding.id: finding for finding in result.findings}
    for construct in result.constructs:
        if construct.verdict in {"mismapped", "missing"}:
            named = [by_id[identity] for identity in construct.findings]
            assert any(construct.kind in BY_ID[f.rule].about for f in named), (
                construct.kind,
                construct.reason,
                [f.rule for f in result.findings],
            )


@pytest.mark.parametrize(("sample", "fault"), FAULTS, ids=IDS)
def test_messages_can_be_read(sample: str, fault: Fault) -> None:
    _, result = planted(sample, fault.id)
    for finding in result.findings:
        message = finding.message
        assert 10 < len(message) <= 300
        assert message[0].islower() or not message[0].isalpha() or message.split()[0].isupper()
        assert not message.endswith((".", ",", ":"))
        assert not INTERNAL.search(message), message
        assert "  " not in message
        assert message.count("`") % 2 == 0
        # Numbers are cut to what a reader compares.
        assert not re.search(r"\d\.\d{7,}", message), message


@pytest.mark.parametrize("sample", sorted(SIZES))
def test_without_a_fault_nothing_is_told(sample: str) -> None:
    folder = SAMPLES / sample
    texts = [(folder / name).read_text("utf-8") for name in ("kernel.cu", "kernel.py", "case.toml")]
    result = migrate.compare_text(texts[0], texts[1], case=texts[2], run="never")
    assert result.verdict == "faithful"
    assert [f for f in result.findings if f.severity != "note"] == []
