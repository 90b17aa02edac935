"""Following arrays through host code, function by function, from its text.

Every function is read by itself: its parameters are arrays of which nothing is known but their
names.  Functions of the file that it calls are followed.  Nothing is run, and what is not
understood stays unknown, or is an `Opaque` with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from migrate.host import spellings
from migrate.host.branches import joined
from migrate.host.calls import Reading
from migrate.host.expressions import MAX_NESTED, MAX_STEPS, Expressions, Names
from migrate.host.functions import (
    assigned,
    defaults,
    given_arrays,
    imported,
    is_wrapper,
    parametrized,
    reaching,
)
from migrate.host.keys import stored
from migrate.host.values import (
    UNKNOWN,
    Array,
    Parameter,
    Result,
    ShapeOf,
    Unknown,
    extent_of,
    opaque,
)
from migrate.ir.index import Index
from migrate.nki.parse import Kernel, Module
from migrate.source import Source


def read(module: Module, kernel: Kernel) -> tuple[Reading, ...]:
    """Every function of the kernel's file that launches it, then the code of the file itself."""
    return read_tree(module.source, module.tree, kernel, frozenset({kernel.name}))


def read_tree(
    source: Source, tree: ast.Module, kernel: Kernel, launchers: frozenset[str]
) -> tuple[Reading, ...]:
    """The same of a file that has the kernel under some names."""
    reader = _Reader(source, kernel, launchers, imported(tree))
    reader.begin(Reading(None))
    reader.globals(tree)
    for node, method in reaching(tree, {*launchers, kernel.name}):
        if node is not kernel.node:
            reader.function(node, method=method)
    reader.begin(Reading(None))
    reader.body(tree.body, {}, 0)
    return tuple(reading for reading in reader.readings if reading.calls)


@dataclass(slots=True, eq=False)
class _Reader(Expressions):
    def globals(self, tree: ast.Module) -> None:
        """The functions and constants of the file."""
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
        for node in tree.body:
            if isinstance(node, ast.Assign):
                self.statement(node, self.constants, 0)

    def begin(self, reading: Reading) -> None:
        self.readings.append(reading)

    def function(self, node: ast.FunctionDef, *, method: bool) -> None:
        """A function by itself: its parameters are what they are left out as, or decorated with."""
        wrapper = is_wrapper(node)
        for names in parametrized(node) or ({},):
            self.begin(Reading(node, wrapper))
            inner: Names = {}
            if wrapper:
                for name, array in given_arrays(node, method=method):
                    inner[name] = Array(Parameter(name)) if array else Index.size(name)
            for name, default in defaults(node):
                inner[name] = self.value(default, {}, 0)
            for name, given in names.items():
                inner[name] = self.value(given, {}, 0)
            self.returns = [self.reading.returned]
            self.body(node.body, inner, 0)
            self.returns = []

    def body(self, body: Sequence[ast.stmt], names: Names, depth: int) -> object:
        """What the statements return at their own level, `UNKNOWN` where they go on."""
        for node in body:
            result = self.statement(node, names, depth)
            if not isinstance(result, Unknown):
                return result
        return UNKNOWN

    def statement(self, node: ast.stmt, names: Names, depth: int) -> object:
        self.steps += 1
        if self.steps > MAX_STEPS or self.nested > MAX_NESTED:
            return UNKNOWN
        self.nested += 1
        try:
            return self._statement(node, names, depth)
        finally:
            self.nested -= 1

    def _statement(self, node: ast.stmt, names: Names, depth: int) -> object:
        match node:
            case ast.Assign(targets=targets, value=value):
                found = self.value(value, names, depth)
                for target in targets:
                    self.bind(target, found, names, depth)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.bind(target, self.value(value, names, depth), names, depth)
            case ast.AugAssign(target=target, value=value):
                self.value(value, names, depth)
                self.forget(assigned([node]), names, node, "it is computed")
            case ast.Expr(value=value):
                self.value(value, names, depth)
                self.in_place(value, names)
            case ast.Return(value=ast.expr() as value):
                found = self.value(value, names, depth)
                if self.returns:
                    self.returns[-1].append(found)
                return found
            case ast.If(test=test, body=then, orelse=otherwise):
                self.value(test, names, depth)
                self.branches(test, then, otherwise, names, depth)
            case ast.For(target=target, iter=over, body=body):
                first = self.first(over, names, depth)
                self.forget(assigned(body), names, node, "a loop changes it")
                self.bind(target, first, names, depth)
                self.body(body, names, depth)
                self.forget(assigned(body), names, node, "a loop changes it")
            case ast.While(body=body):
                self.forget(assigned(body), names, node, "a loop changes it")
                self.body(body, names, depth)
                self.forget(assigned(body), names, node, "a loop changes it")
            case ast.With(items=items, body=body):
                for item in items:
                    self.value(item.context_expr, names, depth)
                return (
                    self.body(body, names, depth)
                    if self.reading.wrapper
                    else self.went(body, names, depth)
                )
            case ast.Try(body=body, handlers=handlers):
                self.body(body, names, depth)
                for handler in handlers:
                    self.forget(assigned(handler.body), names, node, "a handler changes it")
            case ast.Assert(test=test):
                self.value(test, names, depth)
                self.asserted(test, names, depth)
            case ast.Delete() | ast.Match() | ast.AsyncFor() | ast.AsyncWith():
                self.forget(assigned([node]), names, node, "a statement that is not followed")
            case _:
                pass
        return UNKNOWN

    def went(self, body: Sequence[ast.stmt], names: Names, depth: int) -> object:
        self.body(body, names, depth)
        return UNKNOWN

    def branches(
        self,
        test: ast.expr,
        then: Sequence[ast.stmt],
        otherwise: Sequence[ast.stmt],
        names: Names,
        depth: int,
    ) -> None:
        before = dict(names)
        left, right = dict(names), dict(names)
        ended = not isinstance(self.body(then, left, depth), Unknown) or _leaves(then)
        self.body(otherwise, right, depth)
        if ended and not otherwise:
            return  # what follows is reached past it only
        condition = self.condition(test, before, depth)
        for name in left | right:
            names[name] = joined(
                before.get(name, UNKNOWN),
                left.get(name, UNKNOWN),
                right.get(name, UNKNOWN),
                condition,
                self.span(test),
            )

    def condition(self, test: ast.expr, names: Names, depth: int) -> object:
        """What is not zero where a condition holds, as an expression."""
        match test:
            case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[right]):
                pair = (self.value(left, names, depth), self.value(right, names, depth))
                return spellings.operated("Sub", *pair, self.span(test))
            case ast.Compare(left=left, ops=[ast.Gt()], comparators=[ast.Constant(value=0)]):
                return self.value(left, names, depth)
            case _:
                return self.value(test, names, depth)

    def forget(self, changed: set[str], names: Names, node: ast.stmt, why: str) -> None:
        """What code changes that is not followed is unknown from there on."""
        for name in changed:
            if name in names and (
                spellings.followed(names[name]) or isinstance(names[name], Index)
            ):
                where = self.span(node)
                array = isinstance(names[name], Array)
                names[name] = opaque(why, where) if array else UNKNOWN

    def in_place(self, node: ast.expr, names: Names) -> None:
        """`x.transpose_(0, 1)` changes `x`."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=called)) if (
                called.endswith("_") and called != "requires_grad_"
            ):
                found = names.get(name)
                if isinstance(found, Array) and not found.plain:
                    where = self.span(node)
                    names[name] = opaque(f"{called} changes it", where)
            case _:
                pass

    def first(self, over: ast.expr, names: Names, depth: int) -> object:
        found = self.value(over, names, depth)
        if isinstance(found, tuple) and found:
            return found[0]
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Name):
            if over.func.id == "range" and not self.reading.wrapper:
                return 0
        return UNKNOWN

    def bind(self, target: ast.expr, value: object, names: Names, depth: int) -> None:
        match target:
            case ast.Name(id=name):
                names[name] = value
                self.named(name, value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                values = self.unpacked(value, parts)
                for position, part in enumerate(parts):
                    same = len(values) == len(parts)
                    self.bind(part, values[position] if same else UNKNOWN, names, depth)
            case ast.Subscript(value=ast.Name(id=name), slice=key):
                at = self.value(key, names, depth)
                where = self.span(target)
                names[name] = stored(names.get(name, UNKNOWN), at, value, where)
            case _:
                pass

    def named(self, name: str, value: object) -> None:
        """The name that an extent of a parameter is given."""
        if isinstance(value, Index) and self.reading.wrapper and not self.path:
            symbol = str(value)
            parameter, found, axis = symbol.partition(".shape[")
            if found and value == Index.size(symbol) and axis[:-1].lstrip("-").isdigit():
                self.reading.axes.setdefault((parameter, int(axis[:-1])), name)

    def asserted(self, test: ast.expr, names: Names, depth: int) -> None:
        """`assert x.shape == (m, k)` names extents, too."""
        match test:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Tuple(elts=parts)]):
                found = self.value(left, names, depth)
                if isinstance(found, ShapeOf) and self.reading.wrapper and not self.path:
                    for axis, part in enumerate(parts):
                        if isinstance(part, ast.Name):
                            self.reading.axes.setdefault((found.parameter, axis), part.id)
            case _:
                pass

    def unpacked(self, value: object, parts: Sequence[ast.expr]) -> Sequence[object]:
        starred = any(isinstance(part, ast.Starred) for part in parts)
        match value:
            case tuple():
                return value
            case ShapeOf(parameter) if not starred:
                self.reading.ranks.setdefault(parameter, len(parts))
                return [extent_of(parameter, axis) for axis in range(len(parts))]
            case Array(root=Result(call, None), steps=()) if not starred:
                return [Array(Result(call, position)) for position in range(len(parts))]
            case _:
                return ()


def _leaves(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
