"""What the parameters of a kernel may be, from its text: the likeliest first.

Evidence, from the strongest to the weakest: calls in the same file, docstrings, annotations and
defaults, how the text uses a parameter, and what it is called.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from migrate.nki.parse import Kernel, Module
from migrate.nki.values import OperatorName
from migrate.numerics.dtypes import DType
from migrate.pipeline.infer_signature import Parameter, parameters
from migrate.pipeline.nki_alone.docstrings import stated
from migrate.pipeline.nki_alone.examples import Array, Example
from migrate.python_text import span_of
from migrate.source import Span

LENGTH = 128
"""What an axis is given first: the partitions of a tile, and a divisor of all of its columns."""

BATCH = 2
"""The same for axes before the last two."""

MAX_RANK = 4

CALLED = "a call in the file"
"""Where an argument is from that the file gives the kernel itself."""


@dataclass(frozen=True, slots=True)
class SizeGuess:
    """A size by name; the larger `stiff`, the surer it is."""

    name: str
    value: int
    stiff: int = 0


@dataclass(frozen=True, slots=True)
class TensorGuess:
    """A tensor: its extents as expressions over the sizes."""

    extents: tuple[str, ...]
    sizes: tuple[SizeGuess, ...]
    dtype: DType
    why: str
    span: Span
    unsaid: bool = False
    """Whether nothing tells how many axes it has."""
    plain: bool = False
    """Whether nothing tells its format."""


@dataclass(frozen=True, slots=True)
class ValueGuess:
    """Something else than a tensor.  An integer with a `size` may take other values."""

    value: object
    why: str
    span: Span
    size: str = ""


@dataclass(frozen=True, slots=True)
class Left:
    """A parameter that is left out, so that its default applies."""


Guess = TensorGuess | ValueGuess | Left


def guesses(
    module: Module, kernel: Kernel, example: Example | None
) -> dict[str, tuple[Guess, ...]] | str:
    """For every parameter what it may be; a sentence where nothing can be said of one."""
    docs = stated(ast.get_docstring(kernel.node) or "", frozenset(kernel.parameters))
    named = _axis_names(kernel.node)
    formats = dict(_demanded(kernel.node))
    found: dict[str, tuple[Guess, ...]] = {}
    arguments = {
        a.arg: a
        for a in (
            *kernel.node.args.posonlyargs,
            *kernel.node.args.args,
            *kernel.node.args.kwonlyargs,
        )
    }
    for parameter in parameters(module, kernel):
        span = span_of(module.source, arguments[parameter.name])
        options: list[Guess] = []
        if example is not None and parameter.name in example.arguments:
            given = _exemplary(parameter.name, example)
            if given is not None:
                options.append(given)
        doc = docs.get(parameter.name)
        if doc is not None:
            sizes = _sizes_of(parameter.name, doc.extents, dict(doc.values))
            extents = tuple(
                extent if not extent.isdigit() else f"{parameter.name}_{axis}"
                for axis, extent in enumerate(doc.extents)
            )
            told = doc.dtype or formats.get(parameter.name)
            dtype = told or _format(parameter.name)
            options.append(
                TensorGuess(extents, sizes, dtype, "its docstring", span, plain=told is None)
            )
        note = _annotation(arguments[parameter.name])
        if parameter.optional and not options:
            options.append(Left())
        if doc is None or parameter.optional:
            named_axes = named.get(parameter.name, {})
            options += _unstated(parameter, note, named_axes, formats.get(parameter.name), span)
        if parameter.optional and Left() not in options:
            options.append(Left())
        if not options:
            return f"nothing tells what {parameter.name} is"
        if parameter.optional and doc is not None and example is None:
            # What may be left out is left out at first: what it would have to be is open.
            options.remove(Left())
            options.insert(0, Left())
        found[parameter.name] = tuple(dict.fromkeys(options))
    if example is not None and kernel.node.args.kwarg is not None:
        for name in example.arguments:
            given = _exemplary(name, example)
            if name not in found and given is not None:
                found[name] = (given,)
    return found


def _exemplary(name: str, example: Example) -> Guess | None:
    value = example.arguments[name]
    why = CALLED
    if isinstance(value, Array):
        sizes = tuple(
            SizeGuess(f"{name}_{axis}", extent, 4) for axis, extent in enumerate(value.shape)
        )
        dtype = _NARROW.get(value.dtype, value.dtype)
        extents = tuple(size.name for size in sizes)
        return TensorGuess(extents, sizes, dtype, why, example.span)
    return ValueGuess(value, why, example.span)


_NARROW = {DType.FLOAT64: DType.FLOAT32, DType.INT64: DType.INT32, DType.UINT64: DType.UINT32}
"""Formats that no engine computes in, and what arrays of them become on the device."""


def _sizes_of(
    name: str, extents: tuple[str, ...], values: Mapping[str, int]
) -> tuple[SizeGuess, ...]:
    """The sizes in extents that a docstring states."""
    found: dict[str, SizeGuess] = {}
    for axis, extent in enumerate(extents):
        if extent.isdigit():
            found[f"{name}_{axis}"] = SizeGuess(f"{name}_{axis}", int(extent), 3)
            continue
        for part in ast.walk(ast.parse(extent, mode="eval")):
            if isinstance(part, ast.Name):
                given = values.get(part.id)
                start = _start(axis, len(extents), part.id)
                stiff = 0 if given is None else 3
                found[part.id] = SizeGuess(part.id, given if given is not None else start, stiff)
    return tuple(found.values())


def _start(axis: int, rank: int, name: str = "") -> int:
    if name.lower() in {"b", "bs", "batch", "batch_size", "n_batch"}:
        return BATCH
    return LENGTH if axis >= rank - 2 else BATCH


_WORDS = (
    (
        re.compile(
            r"^(?:nl\.)?(?:nl|nt|nki)\.(?:nd)?(?:array|tensor)|tensor|ndarray", re.IGNORECASE
        ),
        "tensor",
    ),
    (re.compile(r"\bbool\b"), "bool"),
    (re.compile(r"\bint\b"), "int"),
    (re.compile(r"\bfloat\b"), "float"),
    (re.compile(r"\bstr\b"), "str"),
    (re.compile(r"dtype|\btype\b"), "dtype"),
)


def _annotation(argument: ast.arg) -> str:
    """`tensor`, `int`, `float`, `bool`, `str`, `dtype`, `other` or nothing."""
    if argument.annotation is None:
        return ""
    text = ast.unparse(argument.annotation)[:200]
    return next((kind for words, kind in _WORDS if words.search(text)), "other")


_NAMES = (
    (re.compile(r"dtype|_type$"), "dtype"),
    (
        re.compile(
            r"^(?:is|use|has|do|with|enable|skip|return|lnc)_|_(?:flag|enabled)$|causal"
        ),
        "bool",
    ),
    (re.compile(r"^(?:op\d?|.*_op\d?)$"), "operator"),
    (
        re.compile(
            r"eps|scale$|^scale|alpha|^lr$|momentum|_rate$|^rate$|dropout_p|value$|theta"
        ),
        "float",
    ),
    (
        re.compile(
            r"^(?:n|k|m|num|max|min)_|_(?:size|dim|len|length|count|degree|factor|axis|idx|id|n)$"
            r"|^(?:axis|dim|size|seed|stride|padding|groups|k|n|rank)$|pool|^num|repeat|_per_"
        ),
        "int",
    ),
)  # fmt: skip


def _unstated(
    parameter: Parameter, note: str, named: Mapping[int, str], dtype: DType | None, span: Span
) -> Iterator[Guess]:
    """What a parameter may be that neither a call nor a docstring tells of."""
    called = next((kind for words, kind in _NAMES if words.search(parameter.name.lower())), "")
    likely = note or ("tensor" if parameter.kind == "tensor" else "")
    if not likely:
        certain = parameter.kind == "scalar"
        likely = called or ("int" if certain else "tensor")
        if parameter.rank or parameter.least > 1:
            likely = "tensor"
    kinds = [likely]
    if not note and parameter.kind != "tensor":
        kinds += [kind for kind in (called, "tensor", "float", "int") if kind and kind != likely]
    for kind in dict.fromkeys(kinds):
        yield from _of_kind(parameter, kind, named, dtype, span)


def _of_kind(
    parameter: Parameter, kind: str, named: Mapping[int, str], dtype: DType | None, span: Span
) -> Iterator[Guess]:
    name = parameter.name
    match kind:
        case "tensor":
            exact = (parameter.rank,) if parameter.rank else (2, 1, 3, 4)
            if parameter.rank is None and named:
                # An axis is asked for by number: there may be no more than that.
                exact = (max(named) + 1, *exact)
            ranks = dict.fromkeys(r for r in exact if r >= parameter.least)
            for rank in ranks or (parameter.least,):
                extents = tuple(named.get(axis, f"{name}_{axis}") for axis in range(rank))
                sizes = tuple(
                    SizeGuess(extent, _start(axis, rank, extent))
                    for axis, extent in enumerate(extents)
                )
                yield TensorGuess(
                    extents,
                    sizes,
                    dtype or _format(name),
                    "how it is used",
                    span,
                    unsaid=parameter.rank is None and parameter.least < rank,
                    plain=dtype is None,
                )
        case "int":
            yield ValueGuess(2, "its annotation or name", span, size=name)
        case "float":
            small = 1e-5 if "eps" in name.lower() else 1.0
            yield ValueGuess(small, "its annotation or name", span)
        case "bool":
            yield ValueGuess(False, "its annotation or name", span)
        case "dtype":
            yield ValueGuess(DType.FLOAT32, "its annotation or name", span)
        case "operator":
            yield ValueGuess(OperatorName("add"), "its name", span)
        case _:
            pass


_INTEGERS = re.compile(r"(?:^|_)(?:idx|index|indices|ids|offsets?|positions?|block_tables?)(?:_|$)")


def _format(name: str) -> DType:
    return DType.INT32 if _INTEGERS.search(name.lower()) else DType.FLOAT32


def _demanded(node: ast.FunctionDef) -> Iterator[tuple[str, DType]]:
    """Formats that parameters are asserted to have, by a statement or by a function for that."""
    for part in ast.walk(node):
        match part:
            case ast.Assert(test=test):
                tests: list[ast.expr] = [test]
            case ast.Call(args=args):
                tests = args
            case _:
                continue
        for test in tests:
            match test:
                case ast.Compare(
                    left=ast.Attribute(value=ast.Name(id=name), attr="dtype"),
                    ops=[ast.Eq()],
                    comparators=[ast.Attribute() as wanted],
                ):
                    try:
                        yield name, DType.named(ast.unparse(wanted))
                    except (KeyError, ValueError):
                        continue
                case _:
                    pass


def _axis_names(node: ast.FunctionDef) -> dict[str, dict[int, str]]:
    """The axes of parameters that a kernel asks for by number, and what it calls them.

    `rows, cols = x.shape` and `rows = x.shape[0]`; a name that is bound to something else too
    names nothing.
    """
    found: dict[str, dict[int, str]] = {}
    meant: dict[str, set[str]] = {}
    asked: dict[str, set[int]] = {}
    for part in ast.walk(node):
        match part:
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=tensor), attr="shape"),
                slice=ast.Constant(value=int(axis)),
            ) if 0 <= axis < MAX_RANK:
                asked.setdefault(tensor, set()).add(axis)
            case _:
                pass
        if not isinstance(part, ast.Assign | ast.AugAssign | ast.For | ast.AnnAssign):
            continue
        targets = part.targets if isinstance(part, ast.Assign) else [part.target]
        for target in targets:
            if isinstance(part, ast.Assign):
                pairs = list(_named_extents(target, part.value))
                if pairs:
                    for name, tensor, axis in pairs:
                        found.setdefault(tensor, {}).setdefault(axis, name)
                        meant.setdefault(name, set()).add("extent")
                    continue
            for inner in ast.walk(target):
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                    meant.setdefault(inner.id, set()).add("other")
    named: dict[str, dict[int, str]] = {
        tensor: {axis: f"{tensor}_{axis}" for axis in axes} for tensor, axes in asked.items()
    }
    for tensor, axes in found.items():
        for axis, name in axes.items():
            if meant[name] == {"extent"}:
                named.setdefault(tensor, {})[axis] = name
    return named


def _named_extents(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str, int]]:
    match target, value:
        case (
            ast.Tuple(elts=parts),
            ast.Attribute(value=ast.Name(id=tensor), attr="shape"),
        ) if not any(isinstance(part, ast.Starred) for part in parts):
            for axis, part in enumerate(parts):
                if isinstance(part, ast.Name) and part.id.strip("_"):
                    yield part.id, tensor, axis
        case (
            ast.Name(id=name),
            ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=tensor), attr="shape"),
                slice=ast.Constant(value=int(axis)),
            ),
        ) if axis >= 0:
            yield name, tensor, axis
        case (ast.Tuple(elts=parts), ast.Tuple(elts=values)) if len(parts) == len(values):
            for part, inner in zip(parts, values, strict=True):
                yield from _named_extents(part, inner)
        case _:
            return
