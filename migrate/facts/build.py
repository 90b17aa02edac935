"""From the TOML that people edit to the JSON that is loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

import msgspec

from migrate.facts.base import FactsError, digest_of, pretty, root, rows
from migrate.facts.hardware import Target
from migrate.facts.pairings import Entry
from migrate.facts.scores import CapName, Scoring
from migrate.results import ConstructKind, Effect, Severity

T = TypeVar("T")

_FOLDERS: Final[Mapping[str, Any]] = {"cuda_to_nki": Entry, "score": Scoring, "targets": Target}

_KEYS: Final = {
    "kind": ConstructKind,
    "effect": Effect,
    "severity": Severity,
    "cap": CapName,
}
"""The fields of `Scoring` that must say something about every name."""


def generate(folder: Path) -> dict[str, bytes]:
    """The generated files of `folder`, by path below it.

    Raises `FactsError` naming the file where a table is wrong.
    """
    from migrate.facts.build_nki import tables as nki_tables
    from migrate.results import schemas

    files: dict[str, bytes] = {}
    targets: tuple[str, ...] = ()
    for name, kind in _FOLDERS.items():
        tables = {path.stem: table(path, kind) for path in paths(folder / name)}
        files[f"generated/{name}.json"] = pretty(msgspec.to_builtins(tables))
        if kind is Target:
            targets = tuple(tables)
    for name, content in nki_tables(folder / "nki", targets).items():
        files[f"generated/{name}"] = rows(content)
    files["generated/index.json"] = pretty({"digest": digest_of(files)})
    for name, schema in {**schemas(), **_schemas()}.items():
        files[f"schema/{name}"] = pretty(schema)
    return files


def _schemas() -> dict[str, Any]:
    """The JSON Schemas of the tables that editors check by them, by file name."""
    from migrate.facts import nki
    from migrate.results import schema_of

    return {
        "targets.schema.json": schema_of(Target, "One generation of the accelerator"),
        "nki.schema.json": schema_of(nki.Family, "Names of the NKI API"),
        "nki_versions.schema.json": schema_of(nki.Versions, "The releases of NKI"),
        "nki_disputes.schema.json": schema_of(nki.Disputes, "What sources disagree about"),
    }


def stale(folder: Path) -> list[str]:
    """The generated files of `folder` that do not say what its tables say."""
    return [
        name
        for name, content in generate(folder).items()
        if not (folder / name).is_file() or (folder / name).read_bytes() != content
    ]


def paths(folder: Path) -> list[Path]:
    """The tables of a folder; raises `FactsError` where there are none."""
    found = sorted(folder.glob("*.toml"))
    if not found:
        raise FactsError(f"{folder} has no tables")
    return found


def table(path: Path, kind: type[T]) -> T:
    """A table, checked.  Raises `FactsError`."""
    import tomllib

    try:
        found = msgspec.convert(tomllib.loads(path.read_text("utf-8")), kind)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise FactsError(f"{path}: {error}") from None
    for problem in _problems(found, path.stem):
        raise FactsError(f"{path}: {problem}")
    return found


def _problems(found: object, stem: str) -> Iterator[str]:
    match found:
        case Target():
            if found.name != stem:
                yield f"is named {found.name!r}"
        case Entry():
            if found.id != stem:
                yield f"has the id {found.id!r}"
            known = [requirement.id for requirement in found.requirement]
            used = {name for way in found.realisation for name in way.requires}
            if len(set(known)) != len(known) or used != set(known):
                yield f"states the requirements {sorted(known)}, uses {sorted(used)}"
            ids = [way.id for way in found.realisation]
            if len(set(ids)) != len(ids):
                yield "uses an id twice"
            ids = [piece.id for piece in found.advice]
            if len(set(ids)) != len(ids):
                yield "uses an id of advice twice"
            for name in (*(w.id for w in found.realisation), *(a.id for a in found.advice)):
                if name.partition(".")[0] != found.id:
                    yield f"{name!r} does not begin with {found.id!r}"
            for way in found.realisation:
                if way.cuda_kind is None and way.nki_kind is None:
                    yield f"{way.id!r} names no kind"
        case Scoring():
            if found.id != stem:
                yield f"has the id {found.id!r}"
            for name, kind in _KEYS.items():
                left_out = set(get_args(kind)) - getattr(found, name).keys()
                if left_out:
                    yield f"says nothing about the {name} {', '.join(sorted(left_out))}"
    for text in _sources(msgspec.to_builtins(found)):
        if not text.strip():
            yield "a fact has no source"


def _sources(data: object) -> Iterator[str]:
    match data:
        case dict():
            for key, item in data.items():
                if key == "source":
                    yield from item if isinstance(item, list | tuple) else (str(item),)
                else:
                    yield from _sources(item)
        case list() | tuple():
            for item in data:
                yield from _sources(item)


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
