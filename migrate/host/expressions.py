"""Expressions of host code: what they make of the arrays and numbers that names stand for."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from migrate.host import spellings
from migrate.host.branches import joined
from migrate.host.calls import Call, Reading
from migrate.host.functions import defaults
from migrate.host.keys import indexed
from migrate.host.shapes import after
from migrate.host.values import (
    UNKNOWN,
    Array,
    Bounds,
    Listed,
    Parameter,
    Result,
    Shape,
    ShapeOf,
    Swapped,
    Transposed,
    Unknown,
    extent_of,
    opaque,
)
from migrate.ir.index import Index, TooComplex
from migrate.nki.parse import Kernel
from migrate.numerics.dtypes import DType
from migrate.python_text import span_of
from migrate.source import Source, Span

MAX_STEPS = 40_000
"""Statements and expressions that are followed in one file."""

MAX_CALLS = 6
"""Functions that are followed into one another."""

MAX_NESTED = 200
"""Expressions and statements within one another."""

_WRAPPERS = frozenset({"jit", "nki_jit", "baremetal", "benchmark", "profile", "trace"})
_LAUNCHERS = frozenset({"simulate_kernel", "simulate", "nki_call"})


@dataclass(frozen=True, slots=True)
class Launcher:
    """The kernel as a value, with the grid it is launched on."""

    grid: tuple[object, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Decorator:
    """`nki.jit(...)` without the kernel."""


Names = dict[str, object]


@dataclass(slots=True, eq=False)
class Expressions(ABC):
    """Follows expressions; `launchers` are the names under which the file has the kernel."""

    source: Source
    kernel: Kernel
    launchers: frozenset[str]
    modules: frozenset[str]
    readings: list[Reading] = field(default_factory=list)
    steps: int = 0
    nested: int = 0
    path: list[str] = field(default_factory=list)
    returns: list[list[object]] = field(default_factory=list)
    constants: Names = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)

    @property
    def reading(self) -> Reading:
        return self.readings[-1]

    @abstractmethod
    def body(self, body: Sequence[ast.stmt], names: Names, depth: int) -> object:
        """What statements return at their own level, `UNKNOWN` where they go on."""

    def span(self, node: ast.expr | ast.stmt) -> Span:
        return span_of(self.source, node)

    @abstractmethod
    def condition(self, test: ast.expr, names: Names, depth: int) -> object:
        """What is not zero where a condition holds, as an expression."""

    def value(self, node: ast.expr, names: Names, depth: int) -> object:
        self.steps += 1
        if self.steps > MAX_STEPS or depth > MAX_CALLS or self.nested > MAX_NESTED:
            return UNKNOWN
        self.nested += 1
        try:
            return self._value(node, names, depth)
        except TooComplex:
            return UNKNOWN
        finally:
            self.nested -= 1

    def _value(self, node: ast.expr, names: Names, depth: int) -> object:
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None as value):
                return value
            case ast.Constant(value=value) if value is ...:
                return ...
            case ast.Name(id=name):
                if name in names:
                    return names[name]
                if name in self.constants and not isinstance(self.constants[name], Unknown):
                    return self.constants[name]
                return Launcher() if name in self.launchers else UNKNOWN
            case ast.Tuple(elts=parts):
                return tuple(self.value(part, names, depth) for part in parts)
            case ast.List(elts=parts):
                return Listed(self.value(part, names, depth) for part in parts)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                found = self.value(operand, names, depth)
                return -found if isinstance(found, int | float | Index) else UNKNOWN
            case ast.BinOp(left=left, op=op, right=right):
                sides = (self.value(left, names, depth), self.value(right, names, depth))
                where = self.span(node)
                return spellings.operated(type(op).__name__, *sides, where)
            case ast.Slice(lower=lower, upper=upper, step=step):
                start = self.value(lower, names, depth) if lower is not None else None
                stop = self.value(upper, names, depth) if upper is not None else None
                return Bounds(start, stop) if step is None else UNKNOWN
            case ast.Subscript(value=inner, slice=key):
                return self.subscript(node, inner, key, names, depth)
            case ast.Attribute(value=inner, attr=name):
                return self.attribute(node, inner, name, names, depth)
            case ast.Call():
                return self.call(node, names, depth)
            case ast.IfExp(test=test, body=then, orelse=otherwise):
                kept = self.value(then, names, depth)
                other = self.value(otherwise, names, depth)
                if not spellings.followed(kept) and not spellings.followed(other):
                    return kept
                where = self.span(test)
                condition = self.condition(test, names, depth)
                return joined(UNKNOWN, kept, other, condition, where)
            case ast.Compare(left=left, comparators=parts):
                for part in (left, *parts):
                    self.value(part, names, depth)
                return UNKNOWN
            case ast.BoolOp(values=parts):
                for part in parts:
                    self.value(part, names, depth)
                return UNKNOWN
            case _:
                return UNKNOWN

    def subscript(
        self, node: ast.Subscript, inner: ast.expr, key: ast.expr, names: Names, depth: int
    ) -> object:
        found, at = self.value(inner, names, depth), self.value(key, names, depth)
        match found:
            case Launcher():
                return Launcher(at if isinstance(at, tuple) else (at,))
            case tuple() if isinstance(at, int) and -len(found) <= at < len(found):
                return found[at]
            case tuple() if isinstance(at, Bounds):
                ends = (at.start, at.stop)
                known = [e for e in ends if e is None or isinstance(e, int)]
                return found[slice(*known)] if len(known) == 2 else UNKNOWN
            case ShapeOf(parameter) if isinstance(at, int):
                rank = self.reading.ranks.get(parameter)
                return extent_of(parameter, at if rank is None else at % rank)
            case Array(root=Result(call, None), steps=()) if isinstance(at, int):
                return Array(Result(call, at))
            case Array():
                return indexed(found, at, self.span(node))
            case _:
                return UNKNOWN

    def attribute(
        self, node: ast.Attribute, inner: ast.expr, name: str, names: Names, depth: int
    ) -> object:
        found = self.value(inner, names, depth)
        where = self.span(node)
        if isinstance(found, Array):
            match name:
                case "shape":
                    return self.shape_of(found)
                case "dtype":
                    return found.dtype or UNKNOWN
                case "T":
                    return spellings.stepped(found, Transposed(where))
                case "mT":
                    return spellings.stepped(found, Swapped(-1, -2, where))
                case "data":
                    return found
                case _:
                    return UNKNOWN
        if name == self.kernel.name and not isinstance(found, Array):
            return Launcher()
        try:
            return DType.named(ast.unparse(node))
        except (KeyError, ValueError):
            return UNKNOWN

    def shape_of(self, array: Array) -> object:
        """A shape: numbers, expressions, or that of a parameter whose rank nothing shows."""
        if array.shape is not None:
            return array.shape
        if not isinstance(array.root, Parameter):
            return UNKNOWN
        name = array.root.name
        rank = self.reading.ranks.get(name)
        if rank is None:
            return ShapeOf(name) if not array.steps else UNKNOWN
        shape: Shape | None = tuple(extent_of(name, axis) for axis in range(rank))
        for step in array.steps:
            shape = after(step, shape) if shape is not None else None
        return shape if shape is not None else UNKNOWN

    def call(self, node: ast.Call, names: Names, depth: int) -> object:
        function = self.callee(node.func, names, depth)
        where = self.span(node)
        if isinstance(function, Launcher):
            return self.launched(node, function, 0, names, depth)
        given = [self.value(arg, names, depth) for arg in node.args]
        keywords = {k.arg: self.value(k.value, names, depth) for k in node.keywords if k.arg}
        if any(isinstance(arg, ast.Starred) for arg in node.args):
            given = []
        called = _last(node.func)
        if isinstance(function, _Decorator) or called in _WRAPPERS or called in _LAUNCHERS:
            launcher = given[0] if given else keywords.get("func", UNKNOWN)
            if isinstance(launcher, Launcher):
                if called in _LAUNCHERS and (len(node.args) > 1 or node.keywords):
                    return self.launched(node, launcher, 1, names, depth)
                return launcher
            if called in _WRAPPERS:
                return _Decorator()
        match node.func:
            case ast.Name(id=name) if name in self.functions and depth < MAX_CALLS:
                return self.inlined(self.functions[name], given, keywords, depth)
            case ast.Name(id=name):
                found = spellings.builtin(name, given)
                if not isinstance(found, Unknown):
                    return found
                return spellings.called("", name, given, keywords, where)
            case ast.Attribute(value=inner, attr=name):
                holder = self.value(inner, names, depth)
                if isinstance(holder, Array):
                    return self.asked(holder, name, given, keywords, node)
                text = ast.unparse(inner)
                if text.partition(".")[0] not in self.modules:
                    return spellings.made(name, given, keywords, where)
                return spellings.called(text, name, given, keywords, where)
            case _:
                return UNKNOWN

    def asked(
        self,
        holder: Array,
        name: str,
        given: Sequence[object],
        keywords: Mapping[str, object],
        node: ast.Call,
    ) -> object:
        """A method of an array."""
        if name == "size" and not keywords:
            shape = self.shape_of(holder)
            if not given:
                return shape
            if isinstance(given[0], int) and isinstance(shape, ShapeOf):
                rank = self.reading.ranks.get(shape.parameter)
                return extent_of(shape.parameter, given[0] if rank is None else given[0] % rank)
            if isinstance(given[0], int) and isinstance(shape, tuple):
                return shape[given[0]] if -len(shape) <= given[0] < len(shape) else UNKNOWN
            return UNKNOWN
        where = self.span(node)
        plain = name == "transpose" and list(given) == [0, 1] and not self.uses_torch
        if plain:
            return holder
        return spellings.method(holder, name, given, keywords, where)

    @property
    def uses_torch(self) -> bool:
        return "torch" in self.source.text

    def callee(self, function: ast.expr, names: Names, depth: int) -> object:
        """The value of what is called, where that can be the kernel."""
        match function:
            case ast.Name() | ast.Subscript() | ast.Call():
                return self.value(function, names, depth)
            case ast.Attribute(attr=name) if name == self.kernel.name:
                return self.value(function, names, depth)
            case _:
                return UNKNOWN

    def inlined(
        self,
        function: ast.FunctionDef,
        given: Sequence[object],
        keywords: Mapping[str, object],
        depth: int,
    ) -> object:
        if function is self.kernel.node:
            return UNKNOWN
        inner: Names = {
            name: self.value(default, {}, depth + 1) for name, default in defaults(function)
        }
        positional = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
        inner.update(zip(positional, given, strict=False))
        inner.update(keywords)
        self.path.append(function.name)
        self.returns.append([])
        try:
            found = self.body(function.body, inner, depth + 1)
        finally:
            self.path.pop()
            returned = self.returns.pop()
        if any(map(spellings.followed, returned)) and any(r != returned[0] for r in returned):
            where = self.span(function)
            return opaque(f"{function.name} returns one thing or another", where)
        return returned[0] if returned and isinstance(found, Unknown) else found

    # -- launches ---------------------------------------------------------------------

    def launched(
        self, node: ast.Call, launcher: Launcher, skipped: int, names: Names, depth: int
    ) -> object:
        parameters = self.kernel.node.args
        positional = [arg.arg for arg in (*parameters.posonlyargs, *parameters.args)]
        grid = launcher.grid
        for keyword in node.keywords:
            if keyword.arg == "grid" and skipped and grid is None:
                at = self.value(keyword.value, names, depth)
                grid = at if isinstance(at, tuple) else (at,)
        given = node.args[skipped:]
        stars = next((i for i, a in enumerate(given) if isinstance(a, ast.Starred)), len(given))
        pairs = list(zip(positional, given[:stars], strict=False))
        known = {*positional, *(arg.arg for arg in parameters.kwonlyargs)}
        pairs += [
            (k.arg, k.value)
            for k in node.keywords
            if k.arg and (k.arg in known or parameters.kwarg is not None)
        ]
        arguments = {name: self.value(argument, names, depth) for name, argument in pairs}
        where = self.span(node)
        self.reading.calls.append(Call(arguments, grid, where, tuple(self.path)))
        return Array(Result(where))


def _last(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
