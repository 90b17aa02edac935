"""The tables of the NKI API: whole, checked, and of one mind with what the front end knows."""

import shutil

import pytest

from migrate import facts
from migrate.facts import nki
from migrate.facts.base import FactsError
from migrate.facts.build import generate
from migrate.nki import library, matmul_limits, registers
from migrate.nki.instructions import INSTRUCTIONS, REQUIRED, Enumerated
from migrate.nki.operators import OPERATORS
from migrate.nki.values import OperatorName

NEWEST = "0.6.0"
"""The version whose signatures the front end has."""


@pytest.fixture
def tables(checkout, tmp_path):
    folder = tmp_path / "mappings"
    shutil.copytree(checkout / "mappings", folder)
    return folder


def edit(folder, table, old, new):
    path = folder / "nki" / table
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("table", "old", "new", "message"),
    [
        ("isa_matrix.toml", 'text = "nc_matmul(', 'text = "nc_mul(', "begin with its name"),
        ("isa_matrix.toml", "mask=None, **kwargs)", "mask=None, **kwargs", "is no signature"),
        ("isa_matrix.toml", 'operand = "moving"', 'operand = "moved"', "no parameter moved"),
        ("isa_matrix.toml", 'since = "0.1.0"', 'since = "0.2.0"', "first call in 0.1.0"),
        ("isa_matrix.toml", 'since = "0.1.0"', 'since = "0.9.0"', "Invalid enum"),
        ("isa_matrix.toml", '"nki.isa.nc_transpose"', '"nki.isa.nc_matmul"', "is there twice"),
        ("isa_matrix.toml", 'kind = "instruction"', 'kind = "thing"', "Invalid enum"),
        ("disputes.toml", '"nki.jit"', '"nki.jot"', "'nki.jot', which does not exist"),
        ("disputes.toml", 'id = "hbm-rate"', 'id = "platforms"', "uses an id twice"),
        ("versions.toml", 'version = "0.6.0"', 'version = "0.7.0"', "every version in order"),
    ],
)
def test_wrong_tables_are_refused(tables, table, old, new, message):
    edit(tables, table, old, new)
    with pytest.raises(FactsError) as raised:
        generate(tables)
    assert message in str(raised.value)


def test_a_name_without_a_source_is_refused(tables):
    edit(tables, "host.toml", "source = [", "source = []\nnote = [")
    with pytest.raises(FactsError, match=r"host\.toml"):
        generate(tables)


def test_the_brief_and_the_whole_say_the_same():
    assert nki.briefs().keys() == nki.names().keys() == nki.families().keys()
    for key, entry in nki.names().items():
        brief = nki.briefs()[key]
        assert (brief.kind, brief.since, brief.removed) == (entry.kind, entry.since, entry.removed)
        assert [call.since for call in brief.calls] == [call.since for call in entry.call]


def test_lifetimes():
    load = nki.briefs()["nki.language.load"]
    assert [load.exists(v) for v in nki.VERSIONS] == [True, False, True, True, True, True, True]
    exp = nki.briefs()["nki.language.exp"]
    assert exp.exists("0.2.0"), "as an operator"
    assert "0.2.0" in exp.absent_in, "as a function"
    arange = nki.briefs()["nki.language.arange"]
    assert [v for v in nki.VERSIONS if arange.exists(v)] == ["0.1.0"]


def test_signatures_by_version():
    matmul = nki.briefs()["nki.isa.nc_matmul"]
    old, new = matmul.signatures("0.1.0"), matmul.signatures("0.5.0")
    assert {s.style for s in old} == {"value"}
    assert len(old) == 3, "one for each release that changed it"
    (newest,) = new
    assert newest.style == "destination"
    assert [p.name for p in newest.parameters][:3] == ["dst", "stationary", "moving"]
    assert next(p for p in newest.parameters if p.name == "accumulate").default == "None"
    mask = next(p for p in old[-1].parameters if p.name == "mask")
    assert mask.kind == "keyword"


def test_every_instruction_has_both_styles_or_came_later():
    for key, entry in nki.names().items():
        if entry.kind == "instruction" and entry.since == "0.1.0" and entry.removed is None:
            styles = {call.style for call in entry.call}
            assert "destination" in styles, key


def shown(default):
    """A default of the front end as documentation writes it."""
    match default:
        case _ if default is REQUIRED:
            return None
        case Enumerated(enum=enum, name=name):
            return f"{enum}.{name}"
        case OperatorName(name=name):
            return name
    return repr(default)


UNCLEAR = {
    # The signature shows an ellipsis; the number is in the text.
    ("range_select", "on_false_value"),
}


@pytest.mark.parametrize("opcode", sorted(INSTRUCTIONS))
def test_the_front_end_has_the_signature_of_the_tables(opcode):
    spec, entry = INSTRUCTIONS[opcode], nki.name(f"nki.isa.{opcode}")
    (signature,) = nki.briefs()[entry.id].signatures(NEWEST)
    assert [p.name for p in spec.parameters] == [p.name for p in signature.parameters]
    for mine, known in zip(spec.parameters, signature.parameters, strict=True):
        if (opcode, mine.name) not in UNCLEAR:
            assert shown(mine.default) == known.default, mine.name
    assert set(spec.engines) == set(entry.engines)
    assert spec.targets == (entry.targets or tuple(facts.targets()))
    for mine in spec.parameters:
        memories = set(getattr(entry.operand.get(mine.name), "memory", ()))
        if mine.kind == "tile" and memories:
            assert set(mine.memories) == memories - {"immediate"}, mine.name


def test_every_instruction_of_the_tables_is_known_to_the_front_end():
    current = {
        key.removeprefix("nki.isa.")
        for key, entry in nki.names().items()
        if entry.kind == "instruction" and entry.removed is None and entry.since < "0.7.0"
    }
    assert current == {*INSTRUCTIONS, *registers.CALLS}


def test_every_operator_dtype_and_memory_of_the_front_end_is_in_the_tables():
    for name in (*OPERATORS, *library._MEMORIES, *library._DTYPES, *library._LANGUAGE):
        assert f"nki.language.{name}" in nki.names()


def test_operators_agree():
    for name, operator in OPERATORS.items():
        entry = nki.name(f"nki.language.{name}")
        assert ("reduce" in operator.uses) == entry.reduces_with, name
        assert operator.bitvec == (entry.operator_class == "bitvec"), name


def test_enums_agree():
    for enum, members in library.ENUMS.items():
        known = set(nki.name(f"nki.isa.{enum}").member)
        assert known <= set(members), enum


def test_sizes_and_limits_agree():
    sizes = nki.name("nki.language.tile_size").member
    for name, value in library.TILE_SIZE.items():
        assert sizes[name].value == value, name
    moving = [
        limit
        for limit in nki.name("nki.isa.nc_matmul").limit
        if limit.operand == "moving" and limit.measure == "free"
    ]
    most = {
        target: max(limit.most.get(target, 0) for limit in moving) for target in facts.targets()
    }
    assert most == matmul_limits.MOVING_MAX
    for name, target in facts.targets().items():
        assert target.partitions.value == 128
        assert target.bn_stats_free.value == library.TILE_SIZE["bn_stats_fmax"]
        float32 = next(limit for limit in moving if limit.when == "float32 dst")
        assert target.matmul_moving_free.value == float32.most[name]


def test_disputes_say_which_reading_is_taken():
    for dispute in nki.disputes():
        assert len(dispute.readings) >= 2
        assert dispute.taken
        assert dispute.why
    about = {d.id for d in nki.disputes_about("nki.isa.dma_transpose")}
    assert about == {"hwdge-transpose", "dma-transpose-dst"}


def test_releases_are_in_order_and_cover_every_version():
    assert tuple(release.version for release in nki.releases()) == nki.VERSIONS
    dates = [release.date for release in nki.releases()]
    assert dates == sorted(dates)
