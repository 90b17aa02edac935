"""What is known about the field, as data: `mappings/`, shipped with the package.

People edit TOML with a source per fact.  `python -m migrate.facts build` checks it and
writes one JSON per folder under `mappings/generated/`, which is what is loaded, typed,
and only the part that is asked for (reading the TOML would take 40 times as long).

    targets/*.toml       what a Trainium generation has          -> `target`
    cuda_to_nki/*.toml   which NKI construct may stand for which
                         CUDA construct, and under what terms    -> `mapping`, `realisations`
    score/*.toml         what fidelity weighs and costs          -> `scoring`
    schema/*.json        JSON Schemas of the results, generated from `migrate.results`
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta

from migrate.results import ConstructKind, ConstructVerdict, Effect, Severity

T = TypeVar("T")

Engine = Literal["tensor", "vector", "scalar", "gpsimd"]
RequirementName = Literal[
    "same-operator",
    "same-operands",
    "same-elements",
    "same-bound",
    "same-dtype",
    "same-rounding",
    "same-value",
    "same-special-values",
    "covers-extent",
    "written-once",
    "partition-limit",
    "fits-on-chip",
]
"""What the alignment can check of a pairing.  A table may ask for nothing else."""


class FactsError(Exception):
    """The tables are missing, stale or wrong."""


class _Fact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Whole(_Fact, frozen=True, kw_only=True):
    """A whole number with its unit and where it is stated."""

    value: int
    unit: str
    source: str
    derived: bool = False
    """Whether it is computed from stated figures rather than stated."""


class Real(_Fact, frozen=True, kw_only=True):
    """A measured or rated figure with its unit and where it is stated."""

    value: float
    unit: str
    source: str
    derived: bool = False


class StartPartitions(_Fact, frozen=True, kw_only=True):
    """Where an operand of up to `most` partitions may begin."""

    most: int
    allowed: tuple[int, ...]
    source: str


class Target(_Fact, frozen=True, kw_only=True):
    """One generation of the accelerator; sizes are per core where the name says nothing."""

    name: str
    title: str
    core: str
    cores_per_chip: Whole
    partitions: Whole
    sbuf_bytes_per_partition: Whole
    sbuf_usable_bytes_per_partition: Whole | None = None
    """What the compiler leaves to kernels, where that is stated."""
    psum_bytes_per_partition: Whole
    psum_banks: Whole
    psum_bank_bytes: Whole
    matmul_stationary_free: Whole
    matmul_moving_free: Whole
    dma_engines: Whole
    dma_engine_rate: Real
    hbm_bytes: Whole
    hbm_rate: Real
    clock: dict[Engine, Real]
    peak: dict[str, Real]
    """The tensor engine's peak by dtype."""
    start_partitions: tuple[StartPartitions, ...]


class Requirement(_Fact, frozen=True, kw_only=True):
    """What a pairing must satisfy, and what it means where it does not."""

    id: RequirementName
    states: str
    otherwise: str
    effect: Effect
    source: str


class Realisation(_Fact, frozen=True, kw_only=True):
    """One way in which a construct of one side may stand on the other.

    A missing kind means that nothing stands there: CUDA only is rightly gone, NKI only
    is rightly added.  `cuda_when` and `nki_when` are attributes that the constructs must
    have; `opcodes` are the NKI instructions that carry it (empty: any).
    """

    id: str
    cuda_kind: ConstructKind | None = None
    nki_kind: ConstructKind | None = None
    cuda_when: dict[str, str] = {}
    nki_when: dict[str, str] = {}
    opcodes: tuple[str, ...] = ()
    verdict: ConstructVerdict
    requires: tuple[RequirementName, ...] = ()
    reason: str
    source: str


class Entry(_Fact, frozen=True, kw_only=True):
    """One file of `cuda_to_nki`: a kind of construct and its accepted realisations."""

    id: str
    title: str
    what: str
    requirement: tuple[Requirement, ...] = ()
    realisation: tuple[Realisation, ...]

    def requirements(self, realisation: Realisation) -> tuple[Requirement, ...]:
        """The requirements of one of its realisations, in the order asked for."""
        by_id = {requirement.id: requirement for requirement in self.requirement}
        return tuple(by_id[name] for name in realisation.requires)


Hundredths = Annotated[int, Meta(ge=0, le=100)]
Positive = Annotated[int, Meta(ge=1)]


class Weight(_Fact, frozen=True, kw_only=True):
    """What a kind of construct counts, and whether it tells computations apart."""

    weight: Positive
    computes: bool
    reason: str


class Cost(_Fact, frozen=True, kw_only=True):
    """What a finding of an effect costs: points, and percent of a construct it names."""

    points: Hundredths
    share: Hundredths
    reason: str


class Percent(_Fact, frozen=True, kw_only=True):
    """A factor in percent."""

    percent: Hundredths
    reason: str


class Repetition(_Fact, frozen=True, kw_only=True):
    """Each further finding of a rule costs `percent` of the one before, `most` of them."""

    percent: Hundredths
    most: Positive
    reason: str


CapName = Literal["not-faithful", "fails", "rejects", "cheat"]


class Cap(_Fact, frozen=True, kw_only=True):
    """The most that is given where something holds; `words` say what."""

    at: Hundredths
    words: str
    reason: str


class Scoring(_Fact, frozen=True, kw_only=True):
    """One version of the score.  `unit` is the number of parts of a point that are counted."""

    id: str
    title: str
    unit: Positive
    least_understood: Hundredths
    """Percent of both kernels below which no number is given."""
    least_understood_reason: str
    kind: dict[ConstructKind, Weight]
    effect: dict[Effect, Cost]
    severity: dict[Severity, Percent]
    repetition: Repetition
    cap: dict[CapName, Cap]


_FOLDERS: Final[Mapping[str, Any]] = {"cuda_to_nki": Entry, "score": Scoring, "targets": Target}


def root() -> Path:
    """The folder of the tables: in the package, else (editable installs) in the checkout.

    Raises `FactsError` where there is none.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "_mappings", package.parent / "mappings"):
        if folder.is_dir():
            return folder
    raise FactsError(f"the tables are missing: neither {package / '_mappings'} nor a checkout")


def digest() -> str:
    """Sixteen hexadecimal digits that change with any fact."""
    index = _read(root() / "generated" / "index.json", dict[str, str])
    return index["digest"]


def target(name: str) -> Target:
    """A target's figures; raises `KeyError` for an unknown one."""
    return targets()[name]


@cache
def targets() -> Mapping[str, Target]:
    """All targets by name."""
    return _read(root() / "generated" / "targets.json", dict[str, Target])


@cache
def mappings() -> Mapping[str, Entry]:
    """All entries of `cuda_to_nki` by id."""
    return _read(root() / "generated" / "cuda_to_nki.json", dict[str, Entry])


def mapping(id: str) -> Entry:  # noqa: A002
    """The entry `id`, or the one that holds the realisation `id`; raises `KeyError`."""
    return mappings()[id.partition(".")[0]]


def scoring(id: str) -> Scoring:  # noqa: A002
    """A version of the score, `fidelity-1`; raises `KeyError` for an unknown one."""
    return _scorings()[id]


@cache
def _scorings() -> Mapping[str, Scoring]:
    return _read(root() / "generated" / "score.json", dict[str, Scoring])


def realisations(
    cuda_kind: ConstructKind | None, nki_kind: ConstructKind | None
) -> tuple[Realisation, ...]:
    """Every accepted way for this pair of kinds, in the order of the tables.

    `None` stands for no construct on that side.  Without a result the pairing is not one
    that the tables know.
    """
    return _by_kinds().get((cuda_kind, nki_kind), ())


@cache
def _by_kinds() -> Mapping[tuple[str | None, str | None], tuple[Realisation, ...]]:
    found: dict[tuple[str | None, str | None], tuple[Realisation, ...]] = {}
    for entry in mappings().values():
        for way in entry.realisation:
            key = (way.cuda_kind, way.nki_kind)
            found[key] = (*found.get(key, ()), way)
    return found


def _read(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        raise FactsError(f"{path} is missing; run: python -m migrate.facts build") from None


# -- build -------------------------------------------------------------------------------


def generate(folder: Path) -> dict[str, bytes]:
    """The generated files of `folder`, by path below it.

    Raises `FactsError` naming the file where a table is wrong.
    """
    from migrate.results import schemas

    files: dict[str, bytes] = {}
    for name, kind in _FOLDERS.items():
        tables = {path.stem: _table(path, kind) for path in _tables(folder / name)}
        files[f"generated/{name}.json"] = _pretty(msgspec.to_builtins(tables))
    hashed = hashlib.sha256()
    for name in sorted(files):
        hashed.update(name.encode() + b"\0" + files[name] + b"\0")
    files["generated/index.json"] = _pretty({"digest": hashed.hexdigest()[:16]})
    for name, schema in schemas().items():
        files[f"schema/{name}"] = _pretty(schema)
    return files


def stale(folder: Path) -> list[str]:
    """The generated files of `folder` that do not say what its tables say."""
    return [
        name
        for name, content in generate(folder).items()
        if not (folder / name).is_file() or (folder / name).read_bytes() != content
    ]


def _tables(folder: Path) -> Iterator[Path]:
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise FactsError(f"{folder} has no tables")
    yield from paths


def _table(path: Path, kind: type[T]) -> T:
    import tomllib

    try:
        table = msgspec.convert(tomllib.loads(path.read_text("utf-8")), kind)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise FactsError(f"{path}: {error}") from None
    for problem in _problems(table, path.stem):
        raise FactsError(f"{path}: {problem}")
    return table


_KEYS: Final = {
    "kind": ConstructKind,
    "effect": Effect,
    "severity": Severity,
    "cap": CapName,
}
"""The fields of `Scoring` that must say something about every name."""


def _problems(table: object, stem: str) -> Iterator[str]:
    match table:
        case Target():
            if table.name != stem:
                yield f"is named {table.name!r}"
        case Entry():
            if table.id != stem:
                yield f"has the id {table.id!r}"
            known = [requirement.id for requirement in table.requirement]
            used = {name for way in table.realisation for name in way.requires}
            if len(set(known)) != len(known) or used != set(known):
                yield f"states the requirements {sorted(known)}, uses {sorted(used)}"
            ids = [way.id for way in table.realisation]
            if len(set(ids)) != len(ids):
                yield "uses an id twice"
            for way in table.realisation:
                if way.id.partition(".")[0] != table.id:
                    yield f"{way.id!r} does not begin with {table.id!r}"
                if way.cuda_kind is None and way.nki_kind is None:
                    yield f"{way.id!r} names no kind"
        case Scoring():
            if table.id != stem:
                yield f"has the id {table.id!r}"
            for name, kind in _KEYS.items():
                left_out = set(get_args(kind)) - getattr(table, name).keys()
                if left_out:
                    yield f"says nothing about the {name} {', '.join(sorted(left_out))}"
    for text in _sources(msgspec.to_builtins(table)):
        if not text.strip():
            yield "a fact has no source"


def _sources(data: object) -> Iterator[str]:
    match data:
        case dict():
            for key, item in data.items():
                if key == "source":
                    yield str(item)
                else:
                    yield from _sources(item)
        case list() | tuple():
            for item in data:
                yield from _sources(item)


def _pretty(data: object) -> bytes:
    text = json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False)
    return (text + "\n").encode()


def main(arguments: list[str]) -> int:
    """`build` writes the generated files, `check` exits 1 where they are stale."""
    folder = root()
    try:
        match arguments:
            case ["build"]:
                for name, content in generate(folder).items():
                    path = folder / name
                    path.parent.mkdir(exist_ok=True)
                    path.write_bytes(content)
                return 0
            case ["check"]:
                names = stale(folder)
                for name in names:
                    print(f"{folder / name} is stale", file=sys.stderr)
                return 1 if names else 0
            case _:
                print("usage: python -m migrate.facts build|check", file=sys.stderr)
                return 2
    except FactsError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
