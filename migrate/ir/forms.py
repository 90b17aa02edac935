"""Normal forms: tensor expressions in logical coordinates.

An output is a set of pieces, each a set of cells and one expression over the cell's
coordinates `i0, i1, …` and the counters `k0, k1, …` of the reductions around it::

    form   = Element(tensor, place*) | Number | Varying(place) | Apply(operator, form*)
           | Combine(operator, part*) | Missing | Hashed(place) | Unknown(reason)
    part   = Part(form, power, count)       -- count > 1: over k = 0 .. count-1
    place  = Affine(over coordinates, over counters, constant) | Table(numbers)

Two outputs are equal if their forms are: spans are not compared.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.ir.reals import real
from migrate.source import Span


@dataclass(frozen=True, slots=True)
class Affine:
    """`constant + sum of coefficient * coordinate + sum of coefficient * counter`."""

    coordinates: tuple[int, ...]
    counters: tuple[int, ...]
    constant: int

    def numbers(self, cells: NDArray[np.int64], counts: tuple[int, ...]) -> NDArray[np.int64]:
        """The place for every cell and counter: shape (cells, *counts)."""
        total = self.constant + cells @ np.array(self.coordinates, np.int64)
        total = np.asarray(total).reshape((-1,) + (1,) * len(counts))
        for position, (coefficient, count) in enumerate(zip(self.counters, counts, strict=True)):
            shape = [1] * (len(counts) + 1)
            shape[position + 1] = count
            total = total + coefficient * np.arange(count).reshape(shape)
        return np.asarray(total, np.int64)

    def __str__(self) -> str:
        terms = [(c, f"i{n}") for n, c in enumerate(self.coordinates) if c]
        terms += [(c, f"k{n}") for n, c in enumerate(self.counters) if c]
        if self.constant or not terms:
            terms.append((self.constant, ""))
        text = ""
        for coefficient, name in terms:
            size = abs(coefficient)
            shown = name if name and size == 1 else f"{size}*{name}" if name else str(size)
            if text:
                text += f" {'+' if coefficient >= 0 else '-'} {shown}"
            else:
                text = shown if coefficient >= 0 else f"-{shown}"
        return text


@dataclass(frozen=True, slots=True)
class Table:
    """Places that follow no affine rule, listed for every cell and counter.

    `listed` has shape (cells, *counts); of a counter along which they go up by equal
    steps, only the first two are there.
    """

    digest: str
    listed: NDArray[np.int64] = field(compare=False, repr=False)

    @staticmethod
    def of(numbers: NDArray[np.int64]) -> Table:
        packed = np.ascontiguousarray(numbers, np.int64)
        digest = hashlib.blake2b(packed.tobytes(), digest_size=12)
        digest.update(repr(packed.shape).encode())
        return Table(digest.hexdigest(), packed)

    def numbers(self, cells: NDArray[np.int64], counts: tuple[int, ...]) -> NDArray[np.int64]:
        listed = self.listed
        for position, count in enumerate(counts):
            if listed.shape[position + 1] != count:
                first, second = np.split(listed, 2, axis=position + 1)
                shape = [1] * listed.ndim
                shape[position + 1] = count
                listed = first + (second - first) * np.arange(count).reshape(shape)
        return listed

    def __str__(self) -> str:
        return f"table {self.digest[:6]}"


Place: TypeAlias = Affine | Table


@dataclass(frozen=True, slots=True)
class Element:
    """An element of an input."""

    tensor: str
    index: tuple[Place, ...]
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.tensor}[{', '.join(map(str, self.index))}]"


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A number.  NaN is equal to itself here: it is the same expression."""

    value: float
    span: Span | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Number):
            return NotImplemented
        return self.value == other.value or (math.isnan(self.value) and math.isnan(other.value))

    def __hash__(self) -> int:
        return hash(str(self.value))

    def __str__(self) -> str:
        short = f"{self.value:g}"
        return short if np.float32(short) == np.float32(self.value) else f"{self.value:.9g}"


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator on arguments in order."""

    operator: str
    args: tuple[Form, ...]
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.operator}({', '.join(map(str, self.args))})"


@dataclass(frozen=True, slots=True)
class Part:
    """One operand of a combination.

    `power` counts how often it enters: a coefficient under `add`, an exponent under
    `multiply`.  `count` > 1 means: for every value of one more counter.
    """

    form: Form
    power: int = 1
    count: int = 1


@dataclass(frozen=True, slots=True)
class Combine:
    """An associative, commutative operator on any number of parts."""

    operator: str
    parts: tuple[Part, ...]
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        shown = []
        for part in self.parts:
            text = str(part.form)
            if part.power != 1:
                text = f"{part.power}*{text}" if self.operator == "add" else f"{text}^{part.power}"
                if part.power == -1 and self.operator == "add":
                    text = f"-{part.form}"
            if part.count > 1:
                text = f"over {part.count}: {text}"
            shown.append(text)
        return f"{self.operator}({', '.join(shown)})"


@dataclass(frozen=True, slots=True)
class Varying:
    """A number that is another one in every cell (an index used as data).

    `place` gives integers if `whole`, else the bits of float64 numbers.
    """

    place: Place
    whole: bool

    def __str__(self) -> str:
        return str(self.place)


@dataclass(frozen=True, slots=True)
class Missing:
    """A cell that nobody wrote, or (`used`) what was computed from one."""

    used: bool = False
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return "undefined" if self.used else "nothing"


@dataclass(frozen=True, slots=True)
class Hashed:
    """An expression too large to write out; equal hashes, equal expressions."""

    identity: Place
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return "large expression"


@dataclass(frozen=True, slots=True, eq=False)
class Unknown:
    """Depends on something that was not understood.  Never equal to anything."""

    reason: str
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return "unknown"


Form: TypeAlias = Element | Number | Varying | Apply | Combine | Missing | Hashed | Unknown


@dataclass(frozen=True, slots=True)
class Piece:
    """Cells of an output that follow one expression, in row-major order.

    `box` bounds the cells, as (first, past the last) a dimension; `full` says that it
    holds nothing else.
    """

    form: Form
    digest: str
    box: tuple[tuple[int, int], ...]
    full: bool
    cells: NDArray[np.int64] = field(compare=False, repr=False)
    """Coordinates, shape (cells, rank)."""

    def __str__(self) -> str:
        ranges = ", ".join(f"{low} <= i{n} < {high}" for n, (low, high) in enumerate(self.box))
        some = "" if self.full else f" ({len(self.cells)} of them)"
        return (
            f"[{', '.join(f'i{n}' for n in range(len(self.box)))}] = {self.form} for {ranges}{some}"
        )


@dataclass(frozen=True, slots=True)
class OutputForm:
    """One output in logical coordinates."""

    tensor: str
    shape: tuple[int, ...]
    pieces: tuple[Piece, ...]

    def __str__(self) -> str:
        return "\n".join(f"{self.tensor}{piece}" for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class NormalForm:
    """What a kernel computes at fixed sizes: each output, in logical coordinates."""

    outputs: tuple[OutputForm, ...]
    rewrites: tuple[str, ...] = field(default=(), compare=False)

    @property
    def understood(self) -> bool:
        """Whether nothing in it is unknown or undefined."""
        return not any(
            isinstance(form, Unknown) or (isinstance(form, Missing) and form.used)
            for output in self.outputs
            for piece in output.pieces
            for form in walk(piece.form)
        )

    def output(self, tensor: str) -> OutputForm | None:
        return next((o for o in self.outputs if o.tensor == tensor), None)

    def __str__(self) -> str:
        return "\n".join(map(str, self.outputs)) + "\n"


def walk(form: Form) -> Iterator[Form]:
    """The form and everything in it, outer first."""
    pending = [form]
    while pending:
        current = pending.pop()
        yield current
        match current:
            case Apply(args=args):
                pending.extend(reversed(args))
            case Combine(parts=parts):
                pending.extend(part.form for part in reversed(parts))


def value(output: OutputForm, tensors: Mapping[str, Any]) -> NDArray[np.float64]:
    """The output's numbers in float64, from the input tensors; NaN where unwritten."""
    result = np.full(output.shape, np.nan)
    flat = result.reshape(-1)
    strides = np.array([int(np.prod(output.shape[n + 1 :])) for n in range(len(output.shape))])
    with np.errstate(all="ignore"):
        for piece in output.pieces:
            numbers = _value(piece.form, piece.cells, (), tensors)
            flat[piece.cells @ strides.astype(np.int64)] = numbers.reshape(len(piece.cells))
    return result


def _value(
    form: Form, cells: NDArray[np.int64], counts: tuple[int, ...], tensors: Mapping[str, Any]
) -> NDArray[np.float64]:
    # As deep as the expression, which `normal` bounds.
    full = (len(cells), *counts)
    match form:
        case Element(tensor=tensor, index=index):
            content = np.asarray(tensors[tensor], np.float64)
            where = tuple(place.numbers(cells, counts) for place in index)
            return np.broadcast_to(content[where], full)
        case Number(value=number):
            return np.full(full, number)
        case Varying(place=place, whole=whole):
            listed = np.broadcast_to(place.numbers(cells, counts), full)
            if whole:
                return listed.astype(np.float64)
            return np.ascontiguousarray(listed).view(np.float64)
        case Apply(operator=operator, args=args):
            given = [_value(arg, cells, counts, tensors) for arg in args]
            return real(operator, *given)
        case Combine(operator=operator, parts=parts):
            total: NDArray[np.float64] | None = None
            for part in parts:
                inner = counts if part.count == 1 else (*counts, part.count)
                numbers = _powered(operator, _value(part.form, cells, inner, tensors), part.power)
                if part.count > 1:
                    numbers = _reduced(operator, numbers)
                total = numbers if total is None else real(operator, total, numbers)
            assert total is not None
            return np.asarray(total, np.float64)
        case Missing() | Unknown() | Hashed():
            return np.full(full, np.nan)


def _powered(operator: str, numbers: NDArray[np.float64], power: int) -> NDArray[np.float64]:
    if power == 1:
        return numbers
    match operator:
        case "add":
            return numbers * power
        case "multiply":
            return np.asarray(numbers ** float(power))
        case _:
            return numbers


def _reduced(operator: str, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    match operator:
        case "add":
            return np.asarray(numbers.sum(axis=-1))
        case "multiply":
            return np.asarray(numbers.prod(axis=-1))
        case "maximum":
            return np.asarray(numbers.max(axis=-1))
        case "minimum":
            return np.asarray(numbers.min(axis=-1))
        case _:
            total = numbers[..., 0]
            for position in range(1, numbers.shape[-1]):
                total = real(operator, total, numbers[..., position])
            return total
