"""Calls of a kernel in the rest of its file: what arrays and numbers it is given there.

Tests and the code under `if __name__ == "__main__"` make arrays with NumPy or torch and call the
kernel with them.  That code is followed from its text, function by function, as far as shapes
are plain: nothing is run, and what is not understood stays unknown.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from migrate.nki.parse import Kernel, Module
from migrate.numerics.dtypes import DType
from migrate.python_text import span_of
from migrate.source import Span

MAX_STEPS = 20_000
"""Expressions that are followed in one file."""

MAX_CALLS = 6
"""Functions that are followed into one another."""

MAX_RANK = 8


@dataclass(frozen=True, slots=True)
class Array:
    """An array of host code."""

    shape: tuple[int, ...]
    dtype: DType


Known: TypeAlias = Array | bool | int | float | str | DType | tuple[object, ...] | None


@dataclass(frozen=True, slots=True)
class _Unknown:
    pass


UNKNOWN = _Unknown()


@dataclass(frozen=True, slots=True)
class Example:
    """A call of the kernel: what its parameters are given, and the grid it is launched on."""

    arguments: Mapping[str, Known]
    grid: tuple[int, ...]
    span: Span


def examples(module: Module, kernel: Kernel) -> tuple[Example, ...]:
    """The calls of a kernel in its file of which some arguments are known, in order."""
    reader = _Reader(module, kernel)
    for function in _functions(module.tree):
        if function is not kernel.node:
            reader.function(function)
    reader.body(module.tree.body, {}, 0)
    return tuple(reader.found)


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    pending: list[ast.stmt] = list(reversed(tree.body))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            pending += reversed(node.body)


_RANDOM = frozenset(
    {"rand", "randn", "random", "random_sample", "zeros", "ones", "empty", "full", "normal",
     "uniform", "standard_normal", "randint", "integers", "zeros_like", "ones_like", "empty_like",
     "rand_like", "randn_like", "arange", "ndarray", "eye", "identity", "full_like", "tensor"}
)  # fmt: skip
_INTEGERS = frozenset({"randint", "integers", "arange"})
_SAME = frozenset(
    {"to", "cuda", "cpu", "contiguous", "clone", "copy", "detach", "requires_grad_", "numpy",
     "asarray", "array", "ascontiguousarray", "float", "half", "bfloat16", "int", "round", "abs",
     "astype", "type", "from_numpy", "as_tensor", "device_put"}
)  # fmt: skip
_CASTS = {"float": DType.FLOAT32, "half": DType.FLOAT16, "bfloat16": DType.BFLOAT16,
          "int": DType.INT32}  # fmt: skip


@dataclass(slots=True, eq=False)
class _Reader:
    module: Module
    kernel: Kernel
    found: list[Example] = field(default_factory=list)
    steps: int = 0
    constants: dict[str, object] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.module.tree.body:
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
        for node in self.module.tree.body:
            if isinstance(node, ast.Assign):
                self.statement(node, self.constants, 0)

    def function(self, node: ast.FunctionDef) -> None:
        """A function by itself: its parameters are what they are left out as, or decorated with."""
        for names in _parametrized(node) or ({},):
            inner: dict[str, object] = {}
            for name, default in _defaults(node):
                inner[name] = self.value(default, {}, 0)
            for name, given in names.items():
                inner[name] = self.value(given, {}, 0)
            self.body(node.body, inner, 0)

    def body(self, body: Sequence[ast.stmt], names: dict[str, object], depth: int) -> object:
        """What a function returns, after its statements."""
        for node in body:
            result = self.statement(node, names, depth)
            if result is not UNKNOWN:
                return result
        return UNKNOWN

    def statement(self, node: ast.stmt, names: dict[str, object], depth: int) -> object:
        self.steps += 1
        if self.steps > MAX_STEPS:
            return UNKNOWN
        match node:
            case ast.Assign(targets=[target], value=value):
                self.bind(target, self.value(value, names, depth), names)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.bind(target, self.value(value, names, depth), names)
            case ast.Expr(value=value):
                self.value(value, names, depth)
            case ast.Return(value=ast.expr() as value):
                return self.value(value, names, depth)
            case ast.If(body=then, orelse=otherwise):
                for part in (then, otherwise):
                    self.body(part, names, depth)
            case ast.For(target=target, iter=over, body=body):
                self.bind(target, self.first(over, names, depth), names)
                self.body(body, names, depth)
            case ast.With(body=body) | ast.Try(body=body) | ast.While(body=body):
                if isinstance(node, ast.With):
                    for item in node.items:
                        self.value(item.context_expr, names, depth)
                self.body(body, names, depth)
            case ast.Assert(test=test):
                self.value(test, names, depth)
            case _:
                pass
        return UNKNOWN

    def first(self, over: ast.expr, names: dict[str, object], depth: int) -> object:
        found = self.value(over, names, depth)
        if isinstance(found, tuple) and found:
            return found[0]
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Name):
            if over.func.id == "range":
                return 0
        return UNKNOWN

    def bind(self, target: ast.expr, value: object, names: dict[str, object]) -> None:
        match target:
            case ast.Name(id=name):
                names[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                values = value if isinstance(value, tuple) else ()
                for position, part in enumerate(parts):
                    same = len(values) == len(parts)
                    self.bind(part, values[position] if same else UNKNOWN, names)
            case _:
                pass

    # -- expressions ------------------------------------------------------------------

    def value(self, node: ast.expr, names: dict[str, object], depth: int) -> object:
        self.steps += 1
        if self.steps > MAX_STEPS or depth > MAX_CALLS:
            return UNKNOWN
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None as value):
                return value
            case ast.Name(id=name):
                return names.get(name, self.constants.get(name, UNKNOWN))
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple(self.value(part, names, depth) for part in parts)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                found = self.value(operand, names, depth)
                return -found if isinstance(found, int | float) else UNKNOWN
            case ast.BinOp(left=left, op=op, right=right):
                return _operated(
                    type(op), self.value(left, names, depth), self.value(right, names, depth)
                )
            case ast.Subscript(value=inner, slice=key):
                return self.subscript(inner, key, names, depth)
            case ast.Attribute(value=inner, attr=name):
                return self.attribute(node, inner, name, names, depth)
            case ast.Call():
                return self.call(node, names, depth)
            case ast.IfExp(body=body):
                return self.value(body, names, depth)
            case ast.Compare(left=left, comparators=parts):
                for part in (left, *parts):
                    self.value(part, names, depth)
                return UNKNOWN
            case _:
                return UNKNOWN

    def subscript(
        self, inner: ast.expr, key: ast.expr, names: dict[str, object], depth: int
    ) -> object:
        found, at = self.value(inner, names, depth), self.value(key, names, depth)
        if isinstance(found, tuple) and isinstance(at, int) and -len(found) <= at < len(found):
            return found[at]
        return UNKNOWN

    def attribute(
        self, node: ast.Attribute, inner: ast.expr, name: str, names: dict[str, object], depth: int
    ) -> object:
        found = self.value(inner, names, depth)
        if isinstance(found, Array):
            if name == "shape":
                return found.shape
            if name == "dtype":
                return found.dtype
            if name == "T":
                return replace(found, shape=found.shape[::-1])
        try:
            return DType.named(ast.unparse(node))
        except (KeyError, ValueError):
            return UNKNOWN

    def call(self, node: ast.Call, names: dict[str, object], depth: int) -> object:
        callee = self.callee(node, names, depth)
        if callee is not None:
            self.launched(node, callee, names, depth)
            return UNKNOWN
        given = [self.value(arg, names, depth) for arg in node.args]
        keywords = {k.arg: self.value(k.value, names, depth) for k in node.keywords if k.arg}
        match node.func:
            case ast.Name(id=name) if name in self.functions and depth < MAX_CALLS:
                return self.inlined(self.functions[name], given, keywords, depth)
            case ast.Name(id=name):
                return _plain(name, given)
            case ast.Attribute(value=inner, attr=name):
                holder = self.value(inner, names, depth)
                if isinstance(holder, Array):
                    return _method(holder, name, given, keywords)
                return _made(name, given, keywords)
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
        inner: dict[str, object] = {
            name: self.value(default, {}, depth + 1) for name, default in _defaults(function)
        }
        positional = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
        inner.update(zip(positional, given, strict=False))
        inner.update(keywords)
        return self.body(function.body, inner, depth + 1)

    # -- launches ---------------------------------------------------------------------

    def callee(
        self, node: ast.Call, names: dict[str, object], depth: int
    ) -> tuple[tuple[int, ...], int] | None:
        """If the call launches the kernel: the grid, and how many arguments come before its own."""
        name = self.kernel.name
        function = node.func
        grid: tuple[int, ...] = ()
        if isinstance(function, ast.Subscript):
            at = self.value(function.slice, names, depth)
            dims = at if isinstance(at, tuple) else (at,)
            grid = tuple(d for d in dims if isinstance(d, int) and not isinstance(d, bool))
            grid = grid if len(grid) == len(dims) else ()
            function = function.value
        match function:
            case ast.Name(id=called) | ast.Attribute(attr=called) if called == name:
                return grid, 0
            case ast.Call(args=[ast.Name(id=called), *_]) if called == name:
                # `nki.jit(kernel)(x)`, `nki.baremetal(kernel)(x)`
                return grid, 0
        match node:
            case ast.Call(
                func=ast.Attribute(attr="simulate_kernel" | "simulate"),
                args=[ast.Name(id=called), *_],
            ) if called == name:
                return grid, 1
            case ast.Call(
                func=ast.Attribute(attr="simulate_kernel" | "simulate"),
                args=[ast.Subscript(value=ast.Name(id=called), slice=key), *_],
            ) if called == name:
                at = self.value(key, names, depth)
                dims = at if isinstance(at, tuple) else (at,)
                return tuple(d for d in dims if isinstance(d, int)), 1
        return None

    def launched(
        self,
        node: ast.Call,
        callee: tuple[tuple[int, ...], int],
        names: dict[str, object],
        depth: int,
    ) -> None:
        grid, skipped = callee
        parameters = self.kernel.node.args
        positional = [arg.arg for arg in (*parameters.posonlyargs, *parameters.args)]
        arguments: dict[str, Known] = {}
        pairs: list[tuple[str, ast.expr]] = list(zip(positional, node.args[skipped:], strict=False))
        known = {*positional, *(arg.arg for arg in parameters.kwonlyargs)}
        pairs += [
            (k.arg, k.value)
            for k in node.keywords
            if k.arg and (k.arg in known or parameters.kwarg is not None)
        ]
        for name, argument in pairs:
            found = self.value(argument, names, depth)
            if _whole(found):
                arguments[name] = found  # type: ignore[assignment]  # `_whole` says so
        if any(isinstance(value, Array) for value in arguments.values()):
            self.found.append(Example(arguments, grid, span_of(self.module.source, node)))


def _whole(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_whole, value))
    return isinstance(value, Array | bool | int | float | str | DType) or value is None


def _defaults(node: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    positional = [*node.args.posonlyargs, *node.args.args]
    for argument, value in zip(reversed(positional), reversed(node.args.defaults), strict=False):
        yield argument.arg, value
    for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        if default is not None:
            yield argument.arg, default


def _parametrized(node: ast.FunctionDef) -> list[dict[str, ast.expr]]:
    """The first values of `@pytest.mark.parametrize("m, n", [(1, 2), ...])`, all of them in one."""
    names: dict[str, ast.expr] = {}
    for decorator in node.decorator_list:
        match decorator:
            case ast.Call(
                func=ast.Attribute(attr="parametrize"),
                args=[ast.Constant(value=str() as listed), ast.List(elts=[first, *_]), *_],
            ):
                wanted = [part.strip() for part in listed.split(",") if part.strip()]
                parts = first.elts if isinstance(first, ast.Tuple | ast.List) else [first]
                if len(wanted) == 1:
                    parts = [first]
                names.update(zip(wanted, parts, strict=False))
            case _:
                pass
    return [names] if names else []


_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int | float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Div: lambda a, b: a / b,
}


def _operated(op: type[ast.operator], left: object, right: object) -> object:
    if isinstance(left, Array) or isinstance(right, Array):
        return _broadcast(left, right)
    if isinstance(left, tuple) and isinstance(right, tuple) and op is ast.Add:
        return (left + right) if len(left) + len(right) <= MAX_RANK * 2 else UNKNOWN
    number = isinstance(left, int | float) and isinstance(right, int | float)
    if not number or op not in _OPERATORS:
        return UNKNOWN
    assert isinstance(left, int | float)
    assert isinstance(right, int | float)
    if abs(left) > 1e12 or abs(right) > 1e12:
        return UNKNOWN
    try:
        return _OPERATORS[op](left, right)  # type: ignore[arg-type]  # floats do as well
    except (ZeroDivisionError, OverflowError):
        return UNKNOWN


def _broadcast(left: object, right: object) -> object:
    arrays = [side for side in (left, right) if isinstance(side, Array)]
    if len(arrays) == 1:
        other = right if isinstance(left, Array) else left
        return arrays[0] if isinstance(other, int | float) else UNKNOWN
    longer, shorter = sorted(arrays, key=lambda a: -len(a.shape))
    shape = list(longer.shape)
    for axis in range(1, len(shorter.shape) + 1):
        a, b = shape[-axis], shorter.shape[-axis]
        if a != b and 1 not in (a, b):
            return UNKNOWN
        shape[-axis] = max(a, b)
    return Array(tuple(shape), longer.dtype)


def _extents(value: object) -> tuple[int, ...] | None:
    parts = value if isinstance(value, tuple) else (value,)
    if len(parts) > MAX_RANK:
        return None
    found = tuple(p for p in parts if isinstance(p, int) and not isinstance(p, bool) and p > 0)
    return found if len(found) == len(parts) else None


def _dtype(value: object) -> DType | None:
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        try:
            return DType.named(value)
        except KeyError:
            return None
    return None


def _made(name: str, given: Sequence[object], keywords: Mapping[str, object]) -> object:
    """`np.zeros((4, 5))`, `torch.rand(4, 5)`, `np.random.normal(size=(4, 5))` and the like."""
    if name in _SAME and given and isinstance(given[0], Array):
        cast = next((d for d in map(_dtype, (*given[1:], *keywords.values())) if d), None)
        return replace(given[0], dtype=cast or given[0].dtype)
    if name in ("matmul", "dot", "transpose", "reshape") and given and isinstance(given[0], Array):
        return _method(given[0], name, given[1:], keywords)
    if name not in _RANDOM:
        return UNKNOWN
    dtype = _dtype(keywords.get("dtype"))
    if name.endswith("_like"):
        like = given[0] if given else None
        if isinstance(like, Array):
            return replace(like, dtype=dtype or like.dtype)
        return UNKNOWN
    shape: object = keywords.get("size", keywords.get("shape", UNKNOWN))
    if shape is UNKNOWN:
        if name in ("eye", "identity") and given:
            shape = (given[0], given[0])
        elif name in ("normal", "uniform", "randint", "integers"):
            shape = next((g for g in given if isinstance(g, tuple)), UNKNOWN)
        elif name == "arange":
            ends = [g for g in given if isinstance(g, int)]
            count = ends[0] if len(ends) == 1 else ends[1] - ends[0] if len(ends) == 2 else 0
            shape = (count,)
        elif name == "tensor":
            shape = (len(given[0]),) if given and isinstance(given[0], tuple) else UNKNOWN
        elif given and isinstance(given[0], tuple):
            shape = given[0]
            dtype = dtype or next((d for d in map(_dtype, given[1:]) if d), None)
        else:
            shape = tuple(given)
    extents = _extents(shape)
    if not extents:
        return UNKNOWN
    return Array(extents, dtype or (DType.INT32 if name in _INTEGERS else DType.FLOAT32))


def _method(
    array: Array, name: str, given: Sequence[object], keywords: Mapping[str, object]
) -> object:
    if name in _SAME:
        cast = next((d for d in map(_dtype, (*given, *keywords.values())) if d), None)
        return replace(array, dtype=cast or _CASTS.get(name, array.dtype))
    if name in ("reshape", "view"):
        wanted = given[0] if given and isinstance(given[0], tuple) else tuple(given)
        assert isinstance(wanted, tuple)
        total = math.prod(array.shape)
        known = [part for part in wanted if isinstance(part, int) and part != -1]
        if len(known) == len(wanted) - 1 and math.prod(known) > 0:
            rest = total // math.prod(known)
            wanted = tuple(rest if part == -1 else part for part in wanted)
        extents = _extents(wanted)
        return replace(array, shape=extents) if extents else UNKNOWN
    if name in ("transpose", "permute"):
        order = given[0] if given and isinstance(given[0], tuple) else tuple(given)
        assert isinstance(order, tuple)
        axes = [a for a in order if isinstance(a, int)]
        rank = len(array.shape)
        if not axes:
            return replace(array, shape=array.shape[::-1])
        if len(axes) == 2 and rank > 2 and all(-rank <= a < rank for a in axes):
            shape = list(array.shape)
            shape[axes[0]], shape[axes[1]] = shape[axes[1]], shape[axes[0]]
            return replace(array, shape=tuple(shape))
        if sorted(axes) == list(range(rank)):
            return replace(array, shape=tuple(array.shape[a] for a in axes))
    if name == "unsqueeze" and given and isinstance(given[0], int):
        shape = list(array.shape)
        shape.insert(given[0] if given[0] >= 0 else len(shape) + 1 + given[0], 1)
        return replace(array, shape=tuple(shape))
    if name == "t":
        return replace(array, shape=array.shape[::-1])
    return UNKNOWN


def _plain(name: str, given: Sequence[object]) -> object:
    numbers = [g for g in given if isinstance(g, int | float)]
    if len(numbers) == len(given) and numbers:
        if name in ("min", "max"):
            return min(numbers) if name == "min" else max(numbers)
        if name == "int" and math.isfinite(numbers[0]):
            return int(numbers[0])
        if name == "float":
            return float(numbers[0])
    if name == "tuple" and given and isinstance(given[0], tuple):
        return given[0]
    return _made(name, given, {})
