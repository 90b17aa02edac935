"""Pages of names and versions of NKI: found as kernels write them, complete, with sources."""

import pytest

from migrate.facts import nki
from migrate.report import explain, instruction


def test_an_instruction_has_calls_operands_limits_cost_and_sources():
    page = explain.page("nki.isa.NC_MATMUL")
    assert (page.kind, page.id) == ("name", "nki.isa.nc_matmul")
    assert page == explain.page("nisa.nc_matmul") == explain.page("nc_matmul")
    assert "NKI 0.1.0 (SDK 2.20), returns a tile:" in page.markdown
    assert "NKI 0.3.0 (SDK 2.29), writes to a destination:" in page.markdown
    assert "| `dst` | accumulate | psum |" in page.markdown
    assert "| `moving` | ≤ 512 | ≤ 512 | ≤ 4096 |" in page.markdown
    assert "| `moving` | - | - | ≤ 8192 |" in page.markdown
    assert "cycles of the tensor engine" in page.markdown
    assert "## Where sources disagree" in page.markdown
    assert "Neuron SDK 2.32 documentation, nki/api/nki/isa/__init__.py" in page.markdown
    assert page.facts["engines"] == ("tensor",)
    assert page.facts["disputes"][0]["readings"]


def test_what_is_checked_of_an_instruction_is_on_its_page():
    page = explain.page("nisa.activation").markdown
    assert "* `reduce_op`, `add`: The operator can only be this one." in page
    for name in instruction.names():
        for check in explain.page(name).facts["checked"] or ():
            assert check.endswith("."), (name, check)


def test_an_instruction_that_is_not_modelled_says_so():
    assert "not modelled" in explain.page("nisa.topk").markdown
    assert "not modelled" not in explain.page("nisa.core_barrier").markdown


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("nl.load", "nki.language.load"),
        ("neuronxcc.nki.language.load", "nki.language.load"),
        ("nl.tile_size.pmax", "nki.language.tile_size"),
        ("nisa.reduce_cmd.reset", "nki.isa.reduce_cmd"),
        ("NkiTensor.ap", "nki.language.NkiTensor.ap"),
        ("affine_range", "nki.language.affine_range"),
        ("ncc.multi_buffer", "nki.compiler.multi_buffer"),
    ],
)
def test_a_name_is_found_as_kernels_write_it(asked, found):
    assert explain.page(asked).id == found


def test_a_name_that_several_modules_have_is_not_guessed():
    assert explain.page("reciprocal") == ("nki.isa.reciprocal", "nki.language.reciprocal")


def test_a_version_says_what_came_and_went():
    page = explain.page("nki 0.2")
    assert (page.kind, page.id) == ("version", "0.2.0")
    new, removed = page.markdown.split("## Removed names")
    assert "* `nki.isa.dma_compute`" in new
    assert "* `nki.language.arange`" in removed
    assert explain.page("0.9.0") == ()


def test_every_name_has_a_page_with_a_lifetime_and_a_source():
    for key, entry in nki.names().items():
        page = explain.page(key)
        assert page.id == key
        assert f"* since {entry.since}" in page.markdown
        assert page.markdown.rstrip().endswith(entry.source[-1])


def test_the_index_lists_everything_by_kind():
    index = explain.index()
    assert list(index) == ["rules", "mappings", "targets", "versions", "names"]
    listed = {name for names in index["names"].values() for name in names}
    assert listed == set(nki.names())
    assert any(rule.startswith("MAP101 ") for rule in index["rules"]["mapping"])
    assert "`nki.isa.nc_matmul`" in explain.index_markdown()
