"""The pages of `explain`: found by every id, complete, with their sources."""

import re

from migrate import facts
from migrate.report import explain
from migrate.rules.registry import RULES


def test_everything_known_has_a_page():
    for id_ in explain.known():
        page = explain.page(id_)
        assert isinstance(page, explain.Page), id_
        assert page.markdown.startswith("# ")
        assert page.markdown.endswith("\n")
        assert not page.markdown.endswith("\n\n")
        assert explain.page(id_.upper()) == page


def test_a_rule_by_id_and_by_name():
    for rule in RULES:
        page = explain.page(rule.id)
        assert page == explain.page(rule.name)
        assert (page.kind, page.id, page.title) == ("rule", rule.id, rule.name)
        assert set(page.facts["sections"]) >= {"What", "Sources"}


def test_a_mapping_has_all_its_ways_and_what_they_require():
    entry = facts.mapping("mask")
    page = explain.page("mask")
    for way in entry.realisation:
        assert f"### `{way.id}`" in page.markdown
        assert way.source in page.markdown
    for requirement in entry.requirement:
        assert f"**`{requirement.id}`**: {requirement.states}" in page.markdown


def test_one_way_has_only_what_it_requires():
    page = explain.page("mask.exact-tiles")
    assert page.id == "mask.exact-tiles"
    assert "mask.bounded-slice" not in page.markdown
    assert re.search(r"CUDA mask.* → NKI nothing: \*not-needed\*", page.markdown)
    assert "covers-extent" in page.markdown
    assert "same-bound" not in page.markdown


def test_a_target_has_every_figure_with_unit_and_source():
    page = explain.page("Trainium2")
    assert page.id == "trn2"
    for row in (
        "| SBUF per partition | 229,376 bytes (224 KiB) | Neuron SDK",
        "| partitions | 128 partitions | Neuron SDK",
        "| vector | 960 MHz | Neuron SDK",
        "| bfloat16 | 79 Tflop/s | Neuron SDK",
        "| device memory of the chip | 103,079,215,104 bytes (96 GiB) | Neuron SDK",
    ):
        assert row in page.markdown
    assert "* up to 64 partitions: 0, 64" in page.markdown


def test_nothing_else_has_a_page():
    assert explain.page("") == ()
    assert explain.page("MAP") == ()
    assert explain.nearest("qqqqqqqq") == ()
