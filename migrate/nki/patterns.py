"""`match` statements."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from migrate.nki import classes, members
from migrate.nki.errors import Unsupported
from migrate.nki.flow import Execute, Flow
from migrate.nki.frames import Frame
from migrate.nki.objects import Class, Instance
from migrate.nki.operations import equal, key_of, truth
from migrate.nki.scoping import store
from migrate.nki.values import Builtin, describe

if TYPE_CHECKING:
    from migrate.nki.statements import Compiler

Matches: TypeAlias = Callable[[Frame, object], bool]


def compiled(compiler: Compiler, node: ast.Match) -> Execute:
    """`match subject: case ...`."""
    subject = compiler.expression(node.subject)
    cases = [
        (
            _pattern(compiler, case.pattern, node),
            compiler.expression(case.guard) if case.guard is not None else None,
            compiler.block(case.body),
        )
        for case in node.cases
    ]
    origin = compiler.origin(node)

    def execute(frame: Frame) -> Flow:
        value = subject(frame)
        for matches, guard, body in cases:
            frame.run.step()
            if matches(frame, value) and (guard is None or truth(guard(frame), origin)):
                return body(frame)
        return None

    return execute


def _pattern(compiler: Compiler, node: ast.pattern, statement: ast.Match) -> Matches:
    origin = compiler.origin(statement)
    match node:
        case ast.MatchValue(value=value):
            wanted = compiler.expression(value)
            return lambda frame, given: equal(given, wanted(frame), origin)
        case ast.MatchSingleton(value=single):
            return lambda _, given: given is single
        case ast.MatchOr(patterns=patterns):
            parts = [_pattern(compiler, part, statement) for part in patterns]
            return lambda frame, given: any(part(frame, given) for part in parts)
        case ast.MatchAs(pattern=pattern, name=name):
            part = _pattern(compiler, pattern, statement) if pattern is not None else None
            return _bound(part, name)
        case ast.MatchSequence(patterns=patterns):
            return _sequence(compiler, patterns, statement)
        case ast.MatchMapping():
            return _mapping(compiler, node, statement)
        case ast.MatchClass():
            return _class(compiler, node, statement)

    def fail(_: Frame, __: object) -> bool:
        raise Unsupported("this pattern", origin)

    return fail


def _bound(part: Matches | None, name: str | None) -> Matches:
    def matches(frame: Frame, given: object) -> bool:
        if part is not None and not part(frame, given):
            return False
        if name is not None:
            store(frame, name, given)
        return True

    return matches


def _sequence(compiler: Compiler, patterns: list[ast.pattern], statement: ast.Match) -> Matches:
    stars = [k for k, part in enumerate(patterns) if isinstance(part, ast.MatchStar)]
    parts = [
        _bound(None, part.name)
        if isinstance(part, ast.MatchStar)
        else _pattern(compiler, part, statement)
        for part in patterns
    ]

    def matches(frame: Frame, given: object) -> bool:
        values = classes.items(given) if isinstance(given, Instance) else given
        if not isinstance(values, tuple | list):
            return False
        found: list[object] = list(values)
        if stars:
            after = len(parts) - stars[0] - 1
            if len(found) < len(parts) - 1:
                return False
            middle = found[stars[0] : len(found) - after]
            found = [*found[: stars[0]], middle, *found[len(found) - after :]]
        return len(found) == len(parts) and all(
            part(frame, value) for part, value in zip(parts, found, strict=True)
        )

    return matches


def _mapping(compiler: Compiler, node: ast.MatchMapping, statement: ast.Match) -> Matches:
    origin = compiler.origin(statement)
    keys = [compiler.expression(key) for key in node.keys]
    parts = [_pattern(compiler, part, statement) for part in node.patterns]

    def matches(frame: Frame, given: object) -> bool:
        if not isinstance(given, dict):
            return False
        rest = dict(given)
        for key, part in zip(keys, parts, strict=True):
            plain = key_of(key(frame), origin)
            if plain not in rest or not part(frame, rest.pop(plain)):
                return False
        if node.rest is not None:
            store(frame, node.rest, rest)
        return True

    return matches


def _class(compiler: Compiler, node: ast.MatchClass, statement: ast.Match) -> Matches:
    origin = compiler.origin(statement)
    kind = compiler.expression(node.cls)
    parts = [_pattern(compiler, part, statement) for part in node.patterns]
    named = [
        (name, _pattern(compiler, part, statement))
        for name, part in zip(node.kwd_attrs, node.kwd_patterns, strict=True)
    ]

    def matches(frame: Frame, given: object) -> bool:
        from migrate.nki.object_builtins import is_kind

        cls = kind(frame)
        if not isinstance(cls, Class | Builtin):
            raise Unsupported(f"a pattern of {describe(cls)}", origin)
        if not is_kind(given, cls, origin):
            return False
        attributes = list(named)
        if parts and isinstance(cls, Builtin):
            return len(parts) == 1 and not named and parts[0](frame, given)
        if parts:
            assert isinstance(cls, Class)
            fields = [f.name for f in cls.fields or () if f.init and not f.keyword_only]
            if len(fields) < len(parts):
                raise Unsupported("a pattern with positions", origin)
            attributes = [*zip(fields, parts, strict=False), *named]
        for name, part in attributes:
            if not isinstance(given, Instance):
                value = members.attribute(given, name, origin)
            elif name in given.names or given.cls.find(name) is not None:
                value = classes.attribute(given, name, frame, origin)
            else:
                return False
            if not part(frame, value):
                return False
        return True

    return matches
