"""What in a kernel's text says which versions of NKI it is for.

Each `Reason` is a place and the versions that what stands there is possible in.  The scan
reads names, calls and a few constructs; it follows no values but local names with one
assignment, so what it cannot see narrows nothing.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Mapping

from msgspec import Struct, field

from migrate.facts.nki import VERSIONS, Feature, Version, briefs, features
from migrate.nki.version_calls import Use, fit
from migrate.nki.version_locals import Local, base_of, locals_of
from migrate.nki.version_names import (
    CURRENT,
    CUSTOMARY,
    LEGACY,
    Bindings,
    Definition,
    Nodes,
    Path,
    Paths,
    Scope,
    bindings_of,
    bound_in,
    paths_of,
    reached,
)
from migrate.nki.version_syntax import (
    ALL,
    LEGACY_VERSIONS,
    branches_of,
    called,
    guarded_names,
    known,
    mark,
    missing,
    nearest,
    of_namespace,
    uses_of,
    written_as,
)
from migrate.nki.version_types import Reason, Scan, UnknownName
from migrate.nki.version_words import spoken
from migrate.python_text import span_of
from migrate.source import Source

MAX_REASONS = 2_000
"""Places that are kept of one file."""

MAX_UNKNOWN = 200
"""Unknown names that are kept of one file."""

MAX_LINE = 1 << 40
"""More than the lines of any file."""

_MODULES = frozenset(
    f"nki.{name}" for name in ("isa", "language", "collectives", "compiler", "typing", "kernels")
) | {"nki"}
_COMPLETE = frozenset({"nki.isa", "nki.language", "nki.collectives"})
"""Modules of which every public name is documented."""

_ENUMS = frozenset({"engine", "dge_mode", "oob_mode", "reduce_cmd", "perf_mode", "dma_engine"})
_OUTPUT = frozenset({"nki.language.hbm", "nki.language.private_hbm"})
_INTEGERS = frozenset(f"nki.language.{s}int{n}" for s in ("", "u") for n in (8, 16, 32))


def scan(source: Source, tree: ast.Module, kernel: str | None) -> Scan:
    """Scan a kernel with everything of the file that it reaches; without one, the file."""
    outer = bindings_of(tree.body)
    if not outer.names:
        outer = Bindings({name: (Path(None, path),) for name, path in CUSTOMARY.items()})
    reader = _Reader(source, outer, kernel, Scan())
    reader.find_kernels(tree)
    for node in reader.parts(tree):
        reader.top(node)
    if kernel is not None:
        reader.launches(tree)
    else:
        reader.all_imports()
    found = reader.found
    found.reasons.sort(key=lambda reason: reason.span)
    found.unknown.sort(key=lambda name: name.span)
    return found


class _Reader(Struct):
    source: Source
    outer: Bindings
    kernel: str | None
    found: Scan
    nodes: Nodes = field(default_factory=Nodes)
    names: Mapping[str, Paths] = field(default_factory=dict)
    local: dict[str, Local] = field(default_factory=dict)
    told: set[tuple[str, frozenset[Version]]] = field(default_factory=set)
    kernels: set[str] = field(default_factory=set)
    device: set[str] = field(default_factory=set)
    helpers: set[str] = field(default_factory=set)
    """Functions that others of the file call: what they return is no output."""
    on_device: bool = False
    branches: list[tuple[int, int]] = field(default_factory=list)

    def find_kernels(self, tree: ast.Module) -> None:
        """The decorated functions of the file."""
        self.names = self.outer.names
        for node in tree.body:
            if isinstance(node, Scope) and self._is_kernel(node):
                self.kernels.add(node.name)

    def parts(self, tree: ast.Module) -> list[ast.stmt]:
        """What of the file is read: all that the kernel reaches, or all that is for the device."""
        defined = {node.name: node for node in tree.body if isinstance(node, Scope)}
        for name, node in defined.items():
            if name in self.kernels or name == self.kernel or self._issues(node):
                self.helpers.update(
                    inner.func.id
                    for inner in self.nodes.below(node)
                    if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name)
                )
        if self.kernel is not None:
            return reached(tree, (self.kernel,), self.nodes)
        for statement in tree.body:
            if isinstance(statement, Definition) and self._issues(statement):
                self.device.add(statement.name)
        return reached(tree, sorted(self.kernels | self.device), self.nodes)

    def _issues(self, node: Definition) -> bool:
        """Whether a definition calls an instruction or a function of the language."""
        return any(
            path.name.startswith(("nki.isa.", "nki.language.", "nki.collectives."))
            for inner in self.nodes.below(node)
            if isinstance(inner, ast.Call)
            for path in paths_of(inner.func, self.outer.names)
        )

    def top(self, node: ast.stmt) -> None:
        """A definition or an assignment of the file."""
        inner = self.outer
        self.names, self.local = inner.names, {}
        self.on_device = self.kernel is not None
        if isinstance(node, Scope):
            self.on_device = self.on_device or node.name in self.kernels
            self._enter(node)
        self._body(node)

    def _enter(self, function: Scope) -> None:
        own = bindings_of(function.body)
        hidden = bound_in(function, self.nodes.below(function)) - own.names.keys()
        names = {name: p for name, p in self.outer.names.items() if name not in hidden}
        names.update(own.names)
        for name, statement in own.imports.items():
            self.outer.imports.setdefault(name, statement)
        self.names = names
        self.local = locals_of(self.nodes.below(function), self._id)
        if function.name == self.kernel or function.name in self.kernels:
            self._signature(function)
            if function.name not in self.helpers:
                self._returns(function)

    def _is_kernel(self, function: Scope) -> bool:
        return any(self._id(called(d)) == "nki.jit" for d in function.decorator_list)

    # -- reasons ---------------------------------------------------------------------------

    def _say(
        self,
        node: ast.expr | ast.stmt | ast.arg,
        message: str,
        versions: frozenset[Version],
        doubt: str | None = None,
    ) -> None:
        key = (message, versions)
        if versions == ALL:
            return
        if not isinstance(node, ast.Import | ast.ImportFrom) or key not in self.told:
            self.found.weights[key] += 1
        if key in self.told or len(self.found.reasons) >= MAX_REASONS:
            return
        self.told.add(key)
        where = span_of(self.source, node)
        under = self._under(node)
        imported = isinstance(node, ast.Import | ast.ImportFrom)
        self.found.reasons.append(Reason(where, message, versions, doubt, under, imported))

    def _under(self, node: ast.expr | ast.stmt | ast.arg) -> bool:
        place = bisect_right(self.branches, (node.lineno, MAX_LINE)) - 1
        return place >= 0 and node.lineno <= self.branches[place][1]

    def _feature(self, node: ast.expr | ast.stmt | ast.arg, id: str) -> None:  # noqa: A002
        feature: Feature = features()[id]
        versions = frozenset(feature.versions)
        self._say(node, f"{feature.states}: {spoken(versions)}", versions, feature.doubt)

    def _import(self, name: str, paths: Paths) -> None:
        """What the namespace of a used name says, told at its import."""
        spaces = {path.namespace for path in paths}
        if None in spaces or all(of_namespace(path) == ALL for path in paths):
            return
        if len(spaces) > 1:
            self.found.shim = True
            return
        versions = LEGACY_VERSIONS if LEGACY in spaces else ALL - LEGACY_VERSIONS
        space = LEGACY if LEGACY in spaces else CURRENT
        statement = self.outer.imports.get(name)
        if statement is not None:
            self._say(statement, f"the namespace `{space}`: {spoken(versions)}", versions)

    def all_imports(self) -> None:
        """The namespaces of a file, whether its names are used or not."""
        spaces = {of_namespace(p) for paths in self.outer.names.values() for p in paths}
        if len(spaces - {ALL}) > 1:
            self.found.shim = True
        for name, paths in self.outer.names.items():
            self._import(name, paths)

    # -- walking ---------------------------------------------------------------------------

    def _body(self, top: ast.stmt) -> None:
        inner: set[int] = set()
        nodes = self.nodes.below(top)
        uses = uses_of(nodes)
        called_ = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        guarded = guarded_names(nodes)
        self.branches = branches_of(nodes) if isinstance(top, Scope | ast.ClassDef) else []
        for node in nodes:
            match node:
                case ast.Attribute() | ast.Name(ctx=ast.Load()) if id(node) not in inner:
                    mark(node, inner)
                    self._name(node, guarded, called=id(node) in called_)
                case ast.Compare(ops=ops) if any(isinstance(op, ast.Is | ast.IsNot) for op in ops):
                    if isinstance(top, Scope):
                        self._feature(node, "identity")
                case ast.AugAssign(target=target) if self._holds(base_of(target) or "") == "tensor":
                    self._feature(node, "tensor-operator")
                case ast.While(test=ast.Name(id=name)) if self._holds(name) == "register":
                    self._feature(node.test, "register-while")
            if isinstance(node, ast.Call):
                self._call(node, uses.get(id(node), "value"))

    def _holds(self, name: str) -> str | None:
        local = self.local.get(name)
        return None if local is None else local.holds

    def _name(self, node: ast.expr, guarded: set[str], *, called: bool) -> None:
        paths = paths_of(node, self.names)
        if not paths:
            return
        base = node
        while isinstance(base, ast.Attribute):
            base = base.value
        if isinstance(base, ast.Name):
            self._import(base.id, self.names.get(base.id, ()))
        written = written_as(node)
        allowed: set[Version] = set()
        for path in paths:
            versions = of_namespace(path)
            found = known(path.name)
            if found is None:
                if not self._unknown(node, path, written, guarded):
                    return
                continue
            id, brief, member = found  # noqa: A001
            there = {v for v in versions if brief.exists(v)}
            if member is not None and brief.members:
                since = brief.members.get(member)
                if since is None:
                    full = f"{id}.{member}"
                    if member not in guarded and not member.startswith("_"):
                        self._add_unknown(node, written, full)
                    return
                there = {v for v in there if v >= since}
            allowed |= there
        if not called:
            versions_ = frozenset(allowed)
            widened = versions_ | missing(paths)
            self._say(node, f"`{written}` is there {spoken(widened)}", widened)

    def _unknown(self, node: ast.expr, path: Path, written: str, guarded: set[str]) -> bool:
        """Tell of a name that no version has; whether another import may have it."""
        module, _, rest = path.name.rpartition(".")
        if path.name in _MODULES or module not in _MODULES:
            parent = ".".join(path.name.split(".")[:2])
            if path.name in _MODULES or parent not in _COMPLETE:
                return False
            rest = path.name.split(".")[2]
            module = parent
        if module in _COMPLETE and not rest.startswith("_") and rest not in guarded:
            self._add_unknown(node, written, f"{module}.{rest}")
        return False

    def _add_unknown(self, node: ast.expr, written: str, name: str) -> None:
        if len(self.found.unknown) < MAX_UNKNOWN:
            where = span_of(self.source, node)
            self.found.unknown.append(UnknownName(where, written, name, self._under(node)))

    # -- calls -----------------------------------------------------------------------------

    def _id(self, node: ast.expr) -> str | None:
        for path in paths_of(node, self.names):
            found = known(path.name)
            if found is not None and found[2] is None:
                return found[0]
        return None

    def _is_operator(self, node: ast.expr) -> bool:
        id = self._id(node)  # noqa: A001
        return id is not None and briefs()[id].kind == "operator"

    def _call(self, call: ast.Call, use: Use) -> None:
        paths = paths_of(call.func, self.names)
        if not paths:
            self._method(call)
            self._helper(call)
            return
        written = written_as(call.func)
        allowed: set[Version] = set()
        misfits: dict[Version, str] = {}
        for path in paths:
            found = known(path.name)
            if found is None or found[2] is not None:
                return
            brief = found[1]
            spaces = tuple(v for v in VERSIONS if v in of_namespace(path))
            tried = fit(call, brief, spaces, use, self._is_operator)
            allowed |= tried.versions
            misfits.update(tried.misfits)
        versions = frozenset(allowed) | missing(paths)
        because = ""
        if misfits:
            near = nearest(versions, misfits)
            because = f" (in {near} {misfits[near]})"
        where = f"`{written}(…)` as it is called here"
        self._say(call, f"{where}: {spoken(versions)}{because}", versions)
        if found is not None:
            self._arguments(call, found[0])

    def _arguments(self, call: ast.Call, id: str) -> None:  # noqa: A002
        given = {k.arg: k.value for k in call.keywords if k.arg is not None}
        for name, value in given.items():
            if isinstance(value, ast.Constant):
                if name in _ENUMS and type(value.value) is int:
                    self._feature(value, "integer-enum")
                if name == "buffer" and isinstance(value.value, str):
                    self._feature(value, "string-buffer")
        if id == "nki.isa.dma_copy":
            src = given.get("src", call.args[1] if len(call.args) > 1 else None)
            if src is not None and self._buffer(src) == "nki.language.psum":
                self._feature(src, "dma-from-psum")
        if id == "nki.isa.memset":
            dst = given.get("dst", call.args[0] if call.args else None)
            value_ = given.get("value", call.args[1] if len(call.args) > 1 else None)
            if (
                dst is not None
                and isinstance(value_, ast.Constant)
                and isinstance(value_.value, float)
                and self._dtype(dst) in _INTEGERS
            ):
                self._feature(value_, "float-into-integer")

    def _buffer(self, node: ast.expr) -> str | None:
        local = self.local.get(base_of(node) or "")
        return None if local is None else local.buffer

    def _dtype(self, node: ast.expr) -> str | None:
        local = self.local.get(base_of(node) or "")
        return None if local is None else local.dtype

    def _method(self, call: ast.Call) -> None:
        """A method of a tensor that this function made."""
        match call.func:
            case ast.Attribute(value=value, attr=method):
                name = base_of(value)
                if name is None or self._holds(name) != "tensor":
                    return
                old = briefs().get(f"nki.tensor.{method}")
                new = briefs().get(f"nki.language.NkiTensor.{method}")
                there = frozenset(v for b in (old, new) if b for v in VERSIONS if b.exists(v))
                if there:
                    self._say(call, f"`.{method}()` of a tensor: {spoken(there)}", there)

    def _helper(self, call: ast.Call) -> None:
        """A call of another kernel of the file."""
        if self.on_device and isinstance(call.func, ast.Name) and call.func.id in self.kernels:
            self._feature(call, "decorated-helper")

    # -- the kernel itself -----------------------------------------------------------------

    def _signature(self, function: Scope) -> None:
        for argument in function.args.kwonlyargs[:1]:
            self._feature(argument, "keyword-only")
        for default in (*function.args.defaults, *function.args.kw_defaults):
            if isinstance(default, ast.List):
                self._feature(default, "list-default")

    def _returns(self, function: Scope) -> None:
        for node in self.nodes.below(function):
            if isinstance(node, ast.Return) and node.value is not None:
                value = node.value
                parts = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
                for part in parts:
                    if isinstance(part, ast.Name) and self._buffer(part) in _OUTPUT:
                        self._feature(part, "hbm-output")

    def launches(self, tree: ast.Module) -> None:
        """Launches of the kernel in its own file: their grids."""
        self.names = self.outer.names
        for node in self.nodes.below(tree):
            match node:
                case ast.Call(
                    func=ast.Subscript(
                        value=ast.Name(id=name), slice=ast.Tuple(elts=elts)
                    ) as launch
                ) if name == self.kernel and len(elts) > 1:
                    self._feature(launch, "grid-of-two")
