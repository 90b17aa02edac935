"""`try` statements."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.exceptions import EXCEPTIONS, caught
from migrate.nki.flow import Execute, Flow
from migrate.nki.frames import Evaluate, Frame
from migrate.nki.generators import Stop
from migrate.nki.objects import Class, Deferred
from migrate.nki.symbols import Origin
from migrate.nki.syntax import bound_names
from migrate.nki.values import Unknown, describe

if TYPE_CHECKING:
    from migrate.nki.statements import Compiler


@dataclass(frozen=True, slots=True)
class _Handler:
    kind: Evaluate | None
    name: str | None
    body: Execute
    origin: Origin


def compiled(compiler: Compiler, node: ast.Try) -> Execute:
    """`try ... except ... else ... finally`."""
    if node.handlers and all(isinstance(part, ast.Import | ast.ImportFrom) for part in node.body):
        return _imports(compiler, node)
    attempt = _handled(compiler, node)
    if not node.finalbody:
        return attempt
    last = compiler.block(node.finalbody)

    def execute(frame: Frame) -> Flow:
        loops = frame.run.loops
        try:
            flow = attempt(frame)
        except (KernelFault, Stop, Unsupported):
            frame.run.loops = loops
            ended = last(frame)
            if ended is not None:
                return ended
            raise
        ended = last(frame)
        return flow if ended is None else ended

    return execute


def _handled(compiler: Compiler, node: ast.Try) -> Execute:
    body, otherwise = compiler.block(node.body), compiler.block(node.orelse)
    handlers = [
        _Handler(
            compiler.expression(handler.type) if handler.type is not None else None,
            handler.name,
            compiler.block(handler.body),
            Origin(compiler.source, handler.type or handler.body[0]),
        )
        for handler in node.handlers
    ]

    def execute(frame: Frame) -> Flow:
        run = frame.run
        loops = run.loops
        try:
            flow = body(frame)
        except KernelFault as fault:
            run.loops = loops
            for handler in handlers:
                if _matches(handler, fault, frame):
                    return _handle(handler, fault, frame)
            raise
        return otherwise(frame) if flow is None else flow

    return execute


def _handle(handler: _Handler, fault: KernelFault, frame: Frame) -> Flow:
    run = frame.run
    if handler.name is not None:
        frame.names[handler.name] = caught(fault)
    run.handling.append(fault)
    try:
        return handler.body(frame)
    finally:
        run.handling.pop()
        if handler.name is not None:
            frame.names.pop(handler.name, None)


def _matches(handler: _Handler, fault: KernelFault, frame: Frame) -> bool:
    if handler.kind is None:
        return True
    kinds = handler.kind(frame)
    error = caught(fault)
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        if not isinstance(kind, Class):
            raise Unsupported(f"except {describe(kind)}", handler.origin)
        if error.cls.derives(kind):
            return True
        if fault.kind == "raise" and fault.value is error and error.cls.stranger is not None:
            raise Unsupported("catching an error of an unknown kind", handler.origin)
    return False


def _imports(compiler: Compiler, node: ast.Try) -> Execute:
    """Names that one branch or the other imports.

    The first is taken as far as its names are known; where one is not, and the branch for a
    failed import knows them all, that branch is.
    """
    first = compiler.block([*node.body, *node.orelse])
    last = compiler.block(node.finalbody)
    bound = [name for part in node.body for name in bound_names(part)]
    others = [
        compiler.block(handler.body) for handler in node.handlers if _catches_imports(handler.type)
    ]

    def unknown(frame: Frame, name: str) -> bool:
        value = frame.names.get(name)
        if isinstance(value, Deferred):
            value = value.get()
        return value is None or isinstance(value, Unknown)

    def execute(frame: Frame) -> Flow:
        flow = first(frame)
        if flow is None and others and any(unknown(frame, name) for name in bound):
            before = dict(frame.names)
            try:
                others[0](frame)
                worse = any(isinstance(frame.names.get(name), Unknown) for name in bound)
            except (Unsupported, KernelFault):
                worse = True
            if worse:
                frame.names.clear()
                frame.names.update(before)
        ended = last(frame)
        return flow if ended is None else ended

    return execute


def _catches_imports(kind: ast.expr | None) -> bool:
    names = [inner.id for inner in ast.walk(kind) if isinstance(inner, ast.Name)] if kind else []
    error = EXCEPTIONS["ModuleNotFoundError"]
    return kind is None or any(
        name in EXCEPTIONS and error.derives(EXCEPTIONS[name]) for name in names
    )
