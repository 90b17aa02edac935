"""Modules of a project during one specialisation: loaded when a name of theirs is used.

A module's statements are interpreted in a scope of its own.  What fails there fails late: its
names are unknown, with the reason, where something uses them.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from migrate.budget import Exhausted
from migrate.nki import imports
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame, ModuleScope, Run
from migrate.nki.objects import Deferred
from migrate.nki.project import Project, text_of
from migrate.nki.scoping import store
from migrate.nki.symbols import Origin
from migrate.nki.syntax import bound_names, own_statements
from migrate.nki.values import Namespace, Unknown, View
from migrate.python_text import span_of
from migrate.source import Source, SourceError

MAX_FILES = 200
"""Files of a project read for one kernel; the largest public one needs 31."""

MAX_BYTES = 16 * 1024 * 1024
"""Their text, all together."""

MAX_CHAIN = 40
"""Modules that wait for one another."""

MODULE_STEPS = 50_000
"""Steps that one statement of a module may take."""


@dataclass(slots=True, eq=False)
class Loaded:
    """A module with what its statements have bound so far."""

    scope: ModuleScope
    loading: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class ProjectModule:
    """A module or package as a value: `import a.b`, `from . import helpers`."""

    described: ClassVar[str] = "a module"
    text: str
    file: Path
    modules: Modules

    def member(self, name: str, origin: Origin) -> object:
        """A name of the module, or a module in it.  Raises `Unsupported` without one."""
        found = self.modules.member(self.file, name, self.text)
        if isinstance(found, Unknown):
            raise Unsupported(f"{found.text} is not understood: {found.reason}", origin)
        return found


@dataclass(slots=True, eq=False)
class Modules:
    """The modules of one run."""

    project: Project
    run: Run
    loaded: dict[Path, Loaded | Unknown] = field(default_factory=dict)
    bytes: int = 0
    chain: int = 0

    def locate(self, importer: Path | None, level: int, path: str) -> Path | None:
        """Where the module of an import statement lies."""
        parts = path.split(".") if path else []
        if level and importer is not None:
            return self.project.relative(importer, level, parts)
        return self.project.absolute(importer or self.project.file, parts) if parts else None

    def member(self, file: Path, name: str, text: str) -> object:
        """A name of a module; `Unknown` where it has none or could not be read."""
        loaded = self.load(file, text) if file.is_file() else None
        if isinstance(loaded, Loaded):
            if name in loaded.scope.names:
                value = loaded.scope.names[name]
                return value.get() if isinstance(value, Deferred) else value
            if loaded.loading:
                return Unknown(f"{text}.{name}", "modules that import each other", None)
            for star in loaded.scope.stars:
                if isinstance(star, Unknown):
                    return Unknown(f"{text}.{name}", f"may come from {star.text}", None)
                found = imports.member(star.path, name) if isinstance(star, Namespace) else star
                if not isinstance(found, Unknown):
                    return found
        inner = self.project.submodule(file, name)
        if inner is not None:
            return ProjectModule(f"{text}.{name}", inner, self)
        if isinstance(loaded, Unknown):
            return loaded
        return Unknown(f"{text}.{name}", "its module has no such name", None)

    def load(self, file: Path, text: str) -> Loaded | Unknown:
        """Interpret a module's statements, once."""
        found = self.loaded.get(file)
        if found is None:
            found = self.loaded[file] = self._load(file, text)
        return found

    def _load(self, file: Path, text: str) -> Loaded | Unknown:
        from migrate.nki.statements import compiler_of

        if len(self.loaded) >= MAX_FILES or self.bytes > MAX_BYTES:
            return Unknown(text, f"more than {MAX_FILES} modules, or a lot of text", None)
        if self.chain >= MAX_CHAIN:
            return Unknown(text, f"more than {MAX_CHAIN} modules that import each other", None)
        try:
            read = text_of(file, self.project.name_of(file))
        except SourceError as error:
            return Unknown(text, f"{error.file} {error.message}", error.where)
        self.bytes += len(read.source.encoded)
        scope = ModuleScope(module_names(text))
        found = self.loaded[file] = Loaded(scope)
        self.chain += 1
        run = self.run
        before = (run.open, run.loops, run.hint, run.pending, run.destination, run.frame)
        run.open, run.pending, run.destination = False, None, None
        try:
            compiler = compiler_of(read.tree, read.source, file)
            interpret(read.tree, compiler, read.source, scope, run)
        finally:
            run.open, run.loops, run.hint, run.pending, run.destination, run.frame = before
            self.chain -= 1
            found.loading = False
        return found


def module_names(text: str) -> dict[str, object]:
    """What every module knows of itself."""
    hidden = Unknown("__file__", "the place of a file", None)
    return {"__name__": text, "__file__": hidden, "__doc__": None}


def interpret(
    tree: ast.Module, compiler: object, source: Source, scope: ModuleScope, run: Run
) -> None:
    """Bind a module's names.  What fails here fails only where it is used."""
    from migrate.nki.statements import Compiler

    assert isinstance(compiler, Compiler)
    frame = Frame(run, None, scope, None, 0)
    frame.names = scope.names
    outer, run.frame = run.frame, frame
    allowance = run.allowance
    try:
        for node in tree.body:
            run.step()
            run.allowance = MODULE_STEPS
            idle = run.idle
            try:
                compiler.top_statement(node)(frame)
            except (Unsupported, KernelFault) as gap:
                reason = gap.reason if isinstance(gap, Unsupported) else gap.message
                _lost(node, reason, compiler, frame)
            except Exhausted:
                # The whole run may be at its end: then the next step says so again.
                if run.allowance >= 0:
                    raise
                _lost(node, "it takes very long to compute", compiler, frame)
            run.idle = idle
            run.loops = ()
    finally:
        run.allowance = allowance
        run.frame = outer


def _lost(node: ast.stmt, reason: str, compiler: object, frame: Frame) -> None:
    """Make unknown what a statement would have bound or may have changed."""
    from migrate.nki.statements import Compiler

    assert isinstance(compiler, Compiler)
    span = span_of(compiler.source, node)
    touched: list[View] = []
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                value = frame.names.get(inner.id)
                if not isinstance(value, Deferred | Unknown):
                    compiler.forget(inner, frame, touched)
    for part in own_statements([node]):
        for name in bound_names(part):
            frame.names[name] = Unknown(name, reason, span)
        if isinstance(part, ast.ImportFrom) and part.names[0].name == "*":
            if isinstance(frame.outer, ModuleScope):
                frame.outer.stars.append(Unknown(part.module or ".", reason, span))


def bind(
    node: ast.Import | ast.ImportFrom, file: Path | None, frame: Frame, origin: Origin
) -> None:
    """An import statement.  Modules of the project are read when a name is used."""
    modules = frame.run.modules
    if isinstance(node, ast.Import):
        for alias in node.names:
            path = alias.name if alias.asname is not None else alias.name.partition(".")[0]
            value = imports.module(path)
            if isinstance(value, Unknown) and modules is not None:
                place = modules.locate(file, 0, path)
                value = ProjectModule(path, place, modules) if place is not None else value
            store(frame, alias.asname or path, value)
        return
    path = "." * node.level + (node.module or "")
    if node.names[0].name == "*":
        _star(node, path, file, frame)
        return
    for alias in node.names:
        store(frame, alias.asname or alias.name, _member(node, path, alias.name, file, modules))


def _member(
    node: ast.ImportFrom, path: str, name: str, file: Path | None, modules: Modules | None
) -> object:
    value = imports.member(path, name)
    if not isinstance(value, Unknown) or modules is None:
        return value
    place = modules.locate(file, node.level, node.module or "")
    if place is None:
        return value
    if node.level and not node.module and place.is_dir():
        inner = modules.project.submodule(place, name)
        return ProjectModule(f"{path}{name}", inner, modules) if inner is not None else value

    def read() -> object:
        return modules.member(place, name, path)

    return Deferred(f"{path}.{name}", read)


def _star(node: ast.ImportFrom, path: str, file: Path | None, frame: Frame) -> None:
    modules = frame.run.modules
    scope = frame.outer
    if not isinstance(scope, ModuleScope):
        raise KernelFault("raise", "import * inside a function")
    table = imports.module(path)
    if isinstance(table, Namespace):
        scope.stars.append(table)
        return
    place = modules.locate(file, node.level, node.module or "") if modules is not None else None
    loaded: Loaded | Unknown = Unknown(path, "a module outside the reviewed file", None)
    if place is not None and modules is not None and place.is_file():
        loaded = modules.load(place, path)
    if isinstance(loaded, Unknown):
        scope.stars.append(loaded)
        return
    names = loaded.scope.names
    listed = names.get("__all__")
    for name in list(names):
        public = name in listed if isinstance(listed, list | tuple) else not name.startswith("_")
        if public:
            store(frame, name, names[name])
    scope.stars.extend(loaded.scope.stars)
