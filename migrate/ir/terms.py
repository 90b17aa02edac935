"""Canonical terms: the algebra that gives normal forms.

A term stands for an expression over the elements of the kernel's inputs, and is one
64-bit number.  Equal expressions, up to the laws below, are equal numbers; different
ones collide with the probability of a 64-bit hash.

* `add`, `multiply`, `maximum`, `minimum` and their kin are associative and commutative:
  each is addition modulo 2^64 seen through a bijection `f` of its own,
  `id(a + b) = f^-1(f(a) + f(b))`.  Order and grouping vanish, a neutral element is
  `f^-1(0)`, negation and reciprocal are `f^-1(-f(x))`, and a reduction is one sum.
* other operators hash their operator and arguments, in order;
* the rewrites of `ir.rewrites` apply, and operators on constants are computed;
* casts between float formats change nothing (precision is judged elsewhere), casts to
  integers and to bool are operators.

Every term made is logged with its operator and arguments, so that `ir.normal` can read
an expression back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.budget import Meter
from migrate.ir.evaluate import Array, Mask
from migrate.ir.nodes import Buffer, Op, Rounding
from migrate.ir.reals import real
from migrate.ir.rewrites import REWRITES
from migrate.numerics.dtypes import DType
from migrate.source import Span

Ids: TypeAlias = NDArray[np.uint64]

GROUPS = {
    "add": 0.0,
    "multiply": 1.0,
    "maximum": -np.inf,
    "minimum": np.inf,
    "logical_and": 1.0,
    "logical_or": 0.0,
    "bitwise_and": -1.0,
    "bitwise_or": 0.0,
    "bitwise_xor": 0.0,
}
"""Associative, commutative operators and their neutral elements."""

INVERSES = {"negate": "add", "reciprocal": "multiply"}
COMMUTATIVE_ONLY = frozenset({"equal", "not_equal"})

_WORD = 1 << 64
_SEEDS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def _mix(value: int) -> int:
    value = (value + _SEEDS[0]) % _WORD
    value = (value ^ value >> 30) * _SEEDS[1] % _WORD
    value = (value ^ value >> 27) * _SEEDS[2] % _WORD
    return value ^ value >> 31


def _salt(text: str) -> int:
    value = 0
    for byte in text.encode():
        value = _mix(value ^ byte)
    return value


def scramble(values: Ids) -> Ids:
    """A hash of each number (splitmix64's finaliser)."""
    with np.errstate(over="ignore"):
        values = values + np.uint64(_SEEDS[0])
        values = (values ^ values >> np.uint64(30)) * np.uint64(_SEEDS[1])
        values = (values ^ values >> np.uint64(27)) * np.uint64(_SEEDS[2])
        return values ^ values >> np.uint64(31)


def element_terms(tensor: str, elements: NDArray[np.int64]) -> Ids:
    """The terms of some elements (flat, row-major) of an input."""
    return scramble(elements.astype(np.uint64) ^ np.uint64(_salt(f"tensor {tensor}")))


def _as_written(number: float, dtype: DType) -> float:
    """A constant as float32 holds it, so that 1e-5 is one number in every float format.

    What float32 cannot hold to within its rounding (2^24 + 1, 1e300) stays as it is.
    """
    if dtype.kind != "float":
        return number
    with np.errstate(over="ignore"):
        short = float(np.float32(number))
    whole = number.is_integer() if np.isfinite(number) else True
    return number if whole or not np.isfinite(short) else short


class Bijection:
    """An invertible scrambling of 64-bit numbers: multiply, fold the halves, twice."""

    def __init__(self, name: str) -> None:
        factors = [_salt(f"{name}/{position}") | 1 for position in range(3)]
        self._forward = tuple(np.uint64(f) for f in factors)
        self._backward = tuple(np.uint64(pow(f, -1, _WORD)) for f in reversed(factors))

    def __call__(self, values: Ids) -> Ids:
        return self._pass(values, self._forward)

    def inverse(self, values: Ids) -> Ids:
        return self._pass(values, self._backward)

    @staticmethod
    def _pass(values: Ids, factors: Sequence[np.uint64]) -> Ids:
        # Folding the high half onto the low one undoes itself, so both ways look alike.
        with np.errstate(over="ignore"):
            a, b, c = factors
            values = values * a
            values = values ^ values >> np.uint64(32)
            values = values * b
            values = values ^ values >> np.uint64(32)
            return values * c


_BIJECTIONS = {name: Bijection(name) for name in GROUPS}


@dataclass(frozen=True, slots=True)
class Made:
    """Terms made by one operation: `ids[i]` is `operator(args[0][i], args[1][i], ...)`.

    For a reduction, `args` is one array with a last dimension over what was combined.
    For an element of an input, `operator` is `element` and `tensor` its name; for a
    number, `constant`.
    """

    operator: str
    ids: Ids
    args: tuple[Ids, ...]
    span: Span | None
    tensor: str = ""
    number: float = 0.0


class Terms:
    """Numbers as canonical terms over the elements of the inputs.

    `leaves` maps a buffer to the logical tensor it holds and, where it is not row-major,
    the logical element of each of its cells (-1: a cell with no logical element).
    """

    def __init__(
        self, leaves: Mapping[str, tuple[str, NDArray[np.int64] | None]], meter: Meter
    ) -> None:
        self._leaves = leaves
        self._meter = meter
        self.log: list[Made] = []
        self.used: set[str] = set()
        self.reads: list[tuple[Op, Ids]] = []
        self._numbers: dict[int, float] = {}
        self._constants: dict[float, Ids] = {}
        self._opaque = 0
        self.missing = np.uint64(_salt("nobody wrote this"))
        self._record("missing", np.asarray(self.missing).reshape(1), (), None)
        for name, neutral in GROUPS.items():
            self._neutral(name, neutral)

    # -- the algebra ----------------------------------------------------------------

    def constant(self, number: float, dtype: DType) -> Array:
        return self._number(_as_written(float(number), dtype))

    def position(self, numbers: Array, dtype: DType) -> Array:
        distinct, places = np.unique(numbers, return_inverse=True)
        ids = np.concatenate([self._number(float(n)).reshape(1) for n in distinct])
        return np.asarray(ids[places].reshape(np.shape(numbers)))

    def content(self, buffer: Buffer, size: int) -> Array:
        leaf = self._leaves.get(buffer.name)
        if leaf is None:
            return np.full(size, self.missing)
        tensor, elements = leaf
        if elements is None:
            elements = np.arange(size, dtype=np.int64)
        ids = element_terms(tensor, elements)
        outside = elements < 0
        if outside.any():
            ids = np.where(outside, self.missing, ids)
        self._record("element", ids, (elements.astype(np.uint64),), buffer.span, tensor)
        return ids.copy()

    def loaded(self, buffer: Buffer, value: Array, op: Op) -> None:
        if buffer.name in self._leaves:
            self.reads.append((op, value))

    def apply(self, operator: str, args: Sequence[Array], op: Op) -> Array:
        return self._apply(operator, args, op.span)

    def cast(self, value: Array, source: DType, to: DType, rounding: Rounding, op: Op) -> Array:
        if to.kind == "float" or source.kind == to.kind or source.kind == "bool":
            return value
        if to.kind == "bool":
            return self._apply("not_equal", (value, self._number(0.0)), op.span)
        if source.kind == "float":
            name = "trunc" if rounding is Rounding.TOWARD_ZERO else "round_even"
            return self._apply(name, (value,), op.span)
        return value

    def reduce(self, operator: str, value: Array, active: Mask, dims: int, op: Op) -> Array:
        rewrite = REWRITES.get(operator)
        if operator.endswith("_number") and rewrite is not None:
            operator = operator.removesuffix("_number")
            self.used.add(rewrite.name)
        outer = np.broadcast_shapes(value.shape, np.shape(active))
        value = np.broadcast_to(value, outer)
        flat = np.moveaxis(value.reshape((-1, *outer[dims:])), 0, -1)
        bijection = _BIJECTIONS.get(operator)
        if bijection is None:
            total = np.asarray(flat[..., 0])
            for position in range(1, flat.shape[-1]):
                total = self._apply(operator, (total, flat[..., position]), op.span)
            return total
        neutral = bijection.inverse(np.zeros(1, np.uint64))[0]
        if active is not True:
            shown = np.broadcast_to(active, outer).reshape((-1, *outer[dims:]))
            flat = np.where(np.moveaxis(shown, 0, -1), flat, neutral)
        with np.errstate(over="ignore"):
            ids = bijection.inverse(self._in_group(operator, flat).sum(axis=-1, dtype=np.uint64))
        rows = np.ascontiguousarray(flat).reshape(-1, flat.shape[-1])
        self._record(operator, np.asarray(ids), (rows,), op.span)
        return np.asarray(ids)

    def scan(self, operator: str, value: Array, dim: int, inclusive: bool, op: Op) -> Array:
        moved = np.moveaxis(value, dim, 0)
        out = np.empty_like(moved)
        running: Array = np.broadcast_to(self._number(GROUPS.get(operator, 0.0)), moved.shape[1:])
        for position in range(moved.shape[0]):
            if not inclusive:
                out[position] = running
            running = self._apply(operator, (running, moved[position]), op.span)
            if inclusive:
                out[position] = running
        return np.moveaxis(out, 0, dim)

    def truth(self, value: Array) -> NDArray[np.bool_] | None:
        known = [self._numbers.get(int(i)) for i in np.unique(value)]
        if any(number is None for number in known):
            return None
        lookup = {int(i): bool(n) for i, n in zip(np.unique(value), known, strict=True)}
        return np.asarray(np.vectorize(lambda i: lookup[int(i)], otypes=[bool])(value))

    def whole(self, value: Array) -> NDArray[np.int64] | None:
        distinct, places = np.unique(value, return_inverse=True)
        known = [self._numbers.get(int(i)) for i in distinct]
        if any(number is None or number != int(number) for number in known):
            return None
        numbers = np.array([int(n) for n in known if n is not None], np.int64)
        return numbers[places].reshape(np.shape(value))

    def unknown(self, op: Op, args: Sequence[Array], shape: tuple[int, ...]) -> Array:
        self._opaque += 1
        base = np.uint64(_salt(f"opaque {self._opaque} {op.span}"))
        size = int(np.prod(shape, dtype=object)) if shape else 1
        self._meter.take(8 * size)
        ids = scramble(np.arange(size, dtype=np.uint64) ^ base).reshape(shape)
        self._record("opaque", ids, (), op.span)
        return ids

    # -- building -------------------------------------------------------------------

    def _apply(self, operator: str, args: Sequence[Array], span: Span) -> Array:
        folded = self._folded(operator, args)
        if folded is not None:
            return folded
        rewrite = REWRITES.get(operator)
        if rewrite is not None:
            self.used.add(rewrite.name)
            return np.asarray(
                rewrite.replacement(
                    lambda name, *inner: self._apply(name, inner, span), self._number, *args
                )
            )
        if operator in INVERSES:
            bijection = _BIJECTIONS[INVERSES[operator]]
            (arg,) = args
            with np.errstate(over="ignore"):
                ids = bijection.inverse(np.uint64(0) - bijection(arg))
            return self._record(operator, ids, (arg,), span)
        if operator == "multiply":
            for constant, other in (args, tuple(reversed(args))):
                if constant.ndim == 0 and self._numbers.get(int(constant)) == -1.0:
                    return self._apply("negate", (other,), span)
        if operator in GROUPS:
            bijection = _BIJECTIONS[operator]
            left, right = args
            with np.errstate(over="ignore"):
                ids = bijection.inverse(
                    self._in_group(operator, left) + self._in_group(operator, right)
                )
            return self._record(operator, ids, (left, right), span)
        total = np.uint64(_salt(f"operator {operator}/{len(args)}"))
        with np.errstate(over="ignore"):
            ids = np.asarray(total)
            for position, arg in enumerate(args):
                salted = scramble(arg ^ np.uint64(_mix(position + 1)))
                ids = ids + salted if operator in COMMUTATIVE_ONLY else scramble(ids ^ salted)
            if operator in COMMUTATIVE_ONLY:
                first, second = args
                ids = total + scramble(first) + scramble(second)
            ids = scramble(ids)
        return self._record(operator, ids, tuple(args), span)

    def _folded(self, operator: str, args: Sequence[Array]) -> Array | None:
        """The result of an operator on numbers, which is a number."""
        if any(arg.ndim for arg in args):
            return None
        numbers = [self._numbers.get(int(arg)) for arg in args]
        given = [number for number in numbers if number is not None]
        if len(given) != len(args):
            return None
        with np.errstate(all="ignore"):
            result = float(real(operator, *map(np.float64, given)))
        return self._number(result) if np.isfinite(result) else None

    def _number(self, number: float) -> Ids:
        number = number + 0.0  # -0.0 and 0.0 are one number
        found = self._constants.get(number)
        if found is None:
            bits = int(np.float64(number).view(np.uint64))
            found = np.asarray(np.uint64(_mix(bits ^ _salt("number"))))
            self._constants[number] = found
            self._numbers[int(found)] = number
            self._record("constant", found.reshape(1), (), None, number=number)
        return found

    def _in_group(self, operator: str, ids: Array) -> Array:
        """The terms as elements of an operator's group."""
        bijection = _BIJECTIONS[operator]
        seen = bijection(ids)
        neutral = self._constants[GROUPS[operator] + 0.0]
        if int(bijection(neutral)):
            seen = np.where(ids == neutral, np.uint64(0), seen)
        return np.asarray(seen)

    def _neutral(self, operator: str, number: float) -> None:
        """Let the number that changes nothing be the group's neutral element.

        A number that is neutral for several operators is the first one's neutral
        element; `_in_group` translates it for the others.
        """
        zero = _BIJECTIONS[operator].inverse(np.zeros(1, np.uint64))
        self._numbers[int(zero[0])] = number
        self._record("constant", zero, (), None, number=number)
        self._constants.setdefault(number, zero.reshape(()))

    def _record(
        self,
        operator: str,
        ids: Ids,
        args: tuple[Ids, ...],
        span: Span | None,
        tensor: str = "",
        number: float = 0.0,
    ) -> Ids:
        self._meter.step(max(1, ids.size // 64))
        self._meter.take(ids.nbytes + sum(arg.nbytes for arg in args if arg.base is None))
        self.log.append(Made(operator, ids, args, span, tensor, number))
        return ids
