"""The tables: generated files are current, what they say is reachable, faults are found."""

import shutil

import pytest

from migrate import facts
from migrate.facts import FactsError, build


def test_generated_files_say_what_the_tables_say(checkout):
    assert build.stale(checkout / "mappings") == []


@pytest.fixture
def tables(checkout, tmp_path):
    folder = tmp_path / "mappings"
    shutil.copytree(checkout / "mappings", folder)
    return folder


def edit(folder, table, old, new):
    path = folder / table
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_a_changed_table_makes_its_json_stale(tables):
    edit(tables, "targets/trn2.toml", "value = 229376", "value = 229377")
    assert set(build.stale(tables)) == {"generated/targets.json", "generated/index.json"}


def test_a_changed_schema_is_stale(tables):
    (tables / "schema" / "comparison.schema.json").write_text("{}")
    assert build.stale(tables) == ["schema/comparison.schema.json"]


@pytest.mark.parametrize(
    ("table", "old", "new", "message"),
    [
        ("targets/trn2.toml", 'unit = "cores", ', "", "missing required field `unit`"),
        ("targets/trn2.toml", "psum_banks", "psum_bank", "unknown field `psum_bank`"),
        ("targets/trn2.toml", 'name = "trn2"', 'name = "trn1"', "is named 'trn1'"),
        ("cuda_to_nki/mask.toml", 'verdict = "transformed"', 'verdict = "fine"', "Invalid enum"),
        ("cuda_to_nki/mask.toml", '["same-bound"]', '["same-value"]', "requirements"),
        ("cuda_to_nki/mask.toml", '["same-bound"]', '["looks-alike"]', "Invalid enum"),
        ("cuda_to_nki/mask.toml", 'id = "mask"', 'id = "guard"', "has the id 'guard'"),
        ("cuda_to_nki/mask.toml", '"mask.exact-tiles"', '"cast.exact"', "does not begin with"),
        ("cuda_to_nki/mask.toml", '"mask.exact-tiles"', '"mask.bounded-slice"', "id twice"),
        ("cuda_to_nki/mask.toml", "source =", "source = ''#", "has no source"),
        ("cuda_to_nki/mask.toml", "[[realisation]]", "[[realisation]", "mask.toml"),
        ("score/fidelity-1.toml", 'id = "fidelity-1"', 'id = "x"', "has the id 'x'"),
        ("score/fidelity-1.toml", "[kind.scan]", "[kind.scam]", "Invalid enum"),
        ("score/fidelity-1.toml", "weight = 10", "weight = 0", "Expected `int` >= 1"),
        ("score/fidelity-1.toml", "at = 20", "at = 120", "Expected `int` <= 100"),
        (
            "score/fidelity-1.toml",
            '[severity.note]\npercent = 25\nreason = "worth knowing"',
            "",
            "says nothing about the severity note",
        ),
    ],
)
def test_wrong_tables_are_refused(tables, table, old, new, message):
    edit(tables, table, old, new)
    with pytest.raises(FactsError, match=table) as raised:
        build.generate(tables)
    assert message in str(raised.value)


def test_targets():
    trn1, trn2, trn3 = (facts.target(name) for name in ("trn1", "trn2", "trn3"))
    assert {target.partitions.value for target in (trn1, trn2, trn3)} == {128}
    # 24, 28 and 32 MiB of SBUF a core, 2 MiB of PSUM in 8 banks.
    sizes = [t.sbuf_bytes_per_partition.value * 128 / 2**20 for t in (trn1, trn2, trn3)]
    assert sizes == [24, 28, 32]
    for target in (trn1, trn2, trn3):
        banks = target.psum_banks.value * target.psum_bank_bytes.value
        assert banks == target.psum_bytes_per_partition.value
        assert [start.most for start in target.start_partitions] == [32, 64, 128]
    with pytest.raises(KeyError):
        facts.target("trn9")


def test_realisations_by_pair_of_kinds():
    (bounded,) = facts.realisations("mask", "mask")
    assert (bounded.id, bounded.verdict) == ("mask.bounded-slice", "transformed")
    gone = facts.realisations("mask", None)
    assert {way.verdict for way in gone} == {"not-needed"}
    assert {way.id for way in facts.realisations("elementwise", "elementwise")} == {
        "elementwise.vector",
        "elementwise.activation",
    }
    assert facts.realisations("elementwise", "reduction") == ()


def test_an_entry_is_found_by_its_realisation():
    entry = facts.mapping("mask.exact-tiles")
    assert entry is facts.mapping("mask")
    way = next(way for way in entry.realisation if way.id == "mask.exact-tiles")
    (requirement,) = entry.requirements(way)
    assert (requirement.id, requirement.effect) == ("covers-extent", "wrong")
    with pytest.raises(KeyError):
        facts.mapping("nothing")


def test_versions_of_the_score():
    table = facts.scoring("fidelity-1")
    assert table.kind["contraction"].weight > table.kind["barrier"].weight
    with pytest.raises(KeyError):
        facts.scoring("fidelity-0")


def test_the_digest_changes_with_a_fact(tables):
    before = build.generate(tables)["generated/index.json"]
    edit(tables, "cuda_to_nki/mask.toml", "shorter slices", "shorter  slices")
    assert build.generate(tables)["generated/index.json"] != before
    assert facts.digest() in before.decode()


def test_build_and_check(tables, monkeypatch, capsys):
    monkeypatch.setattr(build, "root", lambda: tables)
    edit(tables, "targets/trn2.toml", "value = 229376", "value = 229377")
    assert build.main(["check"]) == 1
    assert "targets.json is stale" in capsys.readouterr().err
    assert build.main(["build"]) == 0
    assert build.main(["check"]) == 0
    assert build.main(["bake"]) == 2
    edit(tables, "targets/trn2.toml", "psum_banks", "psum_bank")
    assert build.main(["build"]) == 2
    assert "trn2.toml" in capsys.readouterr().err
