"""The tables of the NKI API: checked as a whole, signatures taken apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import msgspec

from migrate.facts.base import FactsError
from migrate.facts.build import paths, table
from migrate.facts.nki import (
    VERSIONS,
    Brief,
    Call,
    Disputes,
    Family,
    Name,
    Parameter,
    Signature,
    Version,
    Versions,
)


def tables(folder: Path, targets: tuple[str, ...]) -> dict[str, dict[str, object]]:
    """The generated files by name.  Raises `FactsError` where a table is wrong."""
    files = {path.stem: path for path in paths(folder)}
    if not {"versions", "disputes"} <= files.keys():
        raise FactsError(f"{folder} lacks versions.toml or disputes.toml")
    versions = table(files.pop("versions"), Versions)
    disputes = table(files.pop("disputes"), Disputes)
    names: dict[str, Name] = {}
    titles: dict[str, object] = {}
    briefs: dict[str, object] = {}
    for path in files.values():
        family = table(path, Family)
        for entry in family.name:
            if entry.id in names:
                raise FactsError(f"{path}: {entry.id!r} is there twice")
            names[entry.id] = entry
            titles[entry.id] = family.title
            try:
                briefs[entry.id] = _brief(entry)
                _check(entry)
            except ValueError as error:
                raise FactsError(f"{path}: {entry.id}: {error}") from None
    for problem in (*_version_problems(versions), *_dispute_problems(disputes, names, targets)):
        raise FactsError(f"{folder}: {problem}")
    return {
        "nki.json": {key: _plain(entry) for key, entry in names.items()},
        "nki_briefs.json": briefs,
        "nki_families.json": titles,
        "nki_versions.json": msgspec.to_builtins(versions),
        "nki_disputes.json": msgspec.to_builtins(disputes),
    }


def _plain(entry: Name) -> object:
    """An entry without the fields that say nothing."""
    fields: dict[str, object] = msgspec.to_builtins(entry)
    return {key: value for key, value in fields.items() if value not in (None, False, [], {})}


def _brief(entry: Name) -> Brief:
    return Brief(
        kind=entry.kind,
        since=entry.since,
        removed=entry.removed,
        absent_in=entry.absent_in,
        calls=tuple(_signature(entry, call) for call in entry.call),
        members={name: member.since for name, member in entry.member.items()},
        use_instead=entry.use_instead,
    )


def _signature(entry: Name, call: Call) -> Signature:
    name = entry.id.rpartition(".")[2]
    if not call.text.startswith(f"{name}("):
        raise ValueError(f"{call.text!r} does not begin with its name")
    try:
        (function,) = ast.parse(f"def {call.text}: pass").body
    except SyntaxError:
        raise ValueError(f"{call.text!r} is no signature") from None
    assert isinstance(function, ast.FunctionDef)
    return Signature(call.since, tuple(_parameters(function.args)), call.style, call.refused)


def _parameters(given: ast.arguments) -> Iterator[Parameter]:
    positional = [*given.posonlyargs, *given.args]
    missing = len(positional) - len(given.defaults)
    defaults: list[ast.expr | None] = [*[None] * missing, *given.defaults]
    for argument, default in zip(positional, defaults, strict=True):
        yield Parameter(argument.arg, None if default is None else ast.unparse(default))
    if given.vararg is not None:
        yield Parameter(given.vararg.arg, "", "rest")
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        text = None if default is None else ast.unparse(default)
        yield Parameter(argument.arg, text, "keyword")
    if given.kwarg is not None:
        yield Parameter(given.kwarg.arg, "", "keywords")


def _check(entry: Name) -> None:
    """Raises `ValueError` where the parts of an entry do not fit each other."""
    order: list[Version] = [call.since for call in entry.call]
    if order != sorted(order):
        raise ValueError("its calls are not in the order of versions")
    if order and order[0] != entry.since:
        raise ValueError(f"since {entry.since}, first call in {order[0]}")
    if entry.removed is not None and entry.removed <= entry.since:
        raise ValueError("is removed before it exists")
    known = {
        parameter.name for call in entry.call for parameter in _signature(entry, call).parameters
    }
    asked = {*entry.operand, *entry.indirect_names()}
    asked |= {limit.operand for limit in entry.limit if limit.operand is not None}
    if entry.call and not asked <= known:
        raise ValueError(f"has no parameter {', '.join(sorted(asked - known))}")


def _version_problems(versions: Versions) -> Iterator[str]:
    if tuple(release.version for release in versions.release) != VERSIONS:
        yield "versions.toml does not list every version in order"
    ids = [feature.id for feature in versions.feature]
    if len(set(ids)) != len(ids):
        yield "versions.toml uses an id twice"


def _dispute_problems(
    disputes: Disputes, names: dict[str, Name], targets: tuple[str, ...]
) -> Iterator[str]:
    ids = [dispute.id for dispute in disputes.dispute]
    if len(set(ids)) != len(ids):
        yield "disputes.toml uses an id twice"
    for dispute in disputes.dispute:
        for about in dispute.about:
            if about not in names and about not in targets:
                yield f"disputes.toml: {dispute.id} is about {about!r}, which does not exist"
