"""Which findings a construct names."""

from __future__ import annotations

from typing import Any

import msgspec

from migrate.pipeline.linking import linked, unnamed
from migrate.results import Construct, ConstructSide, Finding, Related
from migrate.source import Span
from tests import examples


def at(line: int, file: str = "kernel.py") -> Span:
    return Span(file=file, start_line=line, start_column=1, end_line=line, end_column=9)


def construct(
    kind: str, verdict: str = "mismapped", *, cuda: int = 5, nki: int = 50, name: str = "c1"
) -> Construct:
    return examples.construct(
        id=name,
        kind=kind,
        verdict=verdict,
        cuda=(ConstructSide(summary="", span=at(cuda, "kernel.cu")),),
        nki=(ConstructSide(summary="", span=at(nki)),),
    )


def finding(rule: str, line: int, **changes: Any) -> Finding:
    return examples.finding(
        **{"id": rule, "rule": rule, "span": at(line), "related": (), **changes}
    )


def names(one: Construct, *found: Finding) -> tuple[str, ...]:
    (done,) = linked([one], found)
    return done.findings


def test_what_stands_in_its_lines() -> None:
    found = (finding("MAP103", 50), finding("MAP106", 51))
    assert names(construct("elementwise"), *found) == ("MAP103",)
    assert names(construct("elementwise", "matched"), *found) == ("MAP103",)


def test_a_finding_on_cuda_stands_in_cuda_lines() -> None:
    found = finding("CUDA501", 5, side="cuda", span=at(5, "kernel.cu"))
    assert names(construct("mask"), found) == ("CUDA501",)
    assert names(construct("mask", nki=5), finding("MAP999", 5, side="cuda")) == ()


def test_a_lost_construct_takes_what_is_about_its_kind() -> None:
    assert names(construct("mask"), finding("MAP101", 7), finding("MAP103", 8)) == ("MAP101",)
    assert names(construct("elementwise"), finding("MAP101", 7), finding("MAP103", 8)) == (
        "MAP103",
    )


def test_a_sound_construct_does_not() -> None:
    for verdict in ("matched", "transformed", "not-needed", "unknown"):
        assert names(construct("mask", verdict), finding("MAP101", 7)) == ()


def test_one_that_names_a_place_in_it_is_nearer() -> None:
    near = finding("MAP102", 8, related=(Related(side="cuda", span=at(5, "kernel.cu")),))
    assert names(construct("mask"), finding("MAP101", 7), near) == ("MAP102",)


def test_one_in_its_lines_about_something_else_is_not_enough() -> None:
    found = (finding("MAP101", 7), finding("NUM301", 50))
    assert names(construct("mask"), *found) == ("MAP101", "NUM301")


def test_what_is_not_needed_for_a_lost_result() -> None:
    """A load is missing since nothing is written from it."""
    lost = construct("barrier", "missing")
    assert names(lost, finding("MAP101", 7)) == ("MAP101",)
    assert names(construct("barrier"), finding("MAP101", 7)) == ()


def test_the_order_is_that_of_the_findings() -> None:
    found = (finding("MAP101", 7), finding("MAP102", 8))
    assert names(construct("mask"), *found) == ("MAP101", "MAP102")
    assert names(construct("mask"), *reversed(found)) == ("MAP102", "MAP101")


def test_lost_constructs_without_a_name() -> None:
    constructs = [
        construct("mask"),
        construct("elementwise", name="c2"),
        construct("stage-in", "matched", name="c3"),
        construct("cast", "extra", name="c4"),
    ]
    found = (finding("MAP101", 7),)
    assert unnamed(linked(constructs, found), found) == ("c2",)
    assert unnamed(linked(constructs[:1], found), found) == ()
    assert unnamed(constructs[:1], found) == ("c1",)


def test_a_suppressed_finding_and_one_on_cuda_name_nothing() -> None:
    one = construct("mask")
    quiet = msgspec.structs.replace(finding("MAP101", 50), suppressed="known")
    fault = finding("CUDA501", 5, side="cuda", family="cuda", span=at(5, "kernel.cu"))
    for found in (quiet, fault):
        assert unnamed(linked([one], [found]), [found]) == ("c1",)
