"""The real numbers, as far as float64 goes: the algebra that gives values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from migrate.ir.evaluate import Array, Mask, Unevaluable
from migrate.ir.nodes import Buffer, Map, Op, Rounding, Scan, Value
from migrate.numerics.dtypes import DType
from migrate.numerics.operators import OPERATORS

_WIDTH_MATTERS = frozenset({"divide", "power", "left_shift", "multiply_high"})
_WIDTH_OF_OPERAND_MATTERS = frozenset(
    {"bitwise_not", "right_shift_logical", "population_count", "leading_zeros"}
)
_BELOW_ZERO = frozenset({"subtract", "negate"})


def spelled(operator: str, op: Op) -> str:
    """The operator's name, with the integer type where its meaning depends on one.

    `divide:int32` truncates, `subtract:uint32` wraps below zero.  Other arithmetic on
    integers is that of the reals: that it stays within its type is taken for granted.
    """
    if not isinstance(op, Map):
        return operator
    dtype = op.result.dtype
    if operator in _WIDTH_OF_OPERAND_MATTERS or (operator == "multiply_high" and op.args):
        dtype = op.args[0].dtype
    if not dtype.is_integer:
        return operator
    matters = (
        operator in _WIDTH_MATTERS
        or operator in _WIDTH_OF_OPERAND_MATTERS
        or (operator in _BELOW_ZERO and dtype.kind == "uint")
    )
    return f"{operator}:{dtype.value}" if matters else operator


def real(operator: str, *args: Any) -> Array:
    """An operator on float64 arrays; its name may carry an integer type (`spelled`).

    `wrap:uint8` is the conversion to that type.  Raises `Unevaluable` for an operator
    that has no meaning on real numbers.
    """
    name, _, dtype = operator.partition(":")
    if name == "wrap":
        return _wrapped(np.asarray(args[0], np.float64), DType(dtype)).astype(np.float64)
    entry = OPERATORS[name]
    if not dtype and entry.reals is not None:
        return np.asarray(entry.reals(*args), np.float64)
    if entry.integers is None or (not dtype and entry.kind != "bitwise"):
        raise Unevaluable(f"{name} has no meaning on real numbers")
    # Without a type, the operator means the same in all that hold its operands.
    width = DType(dtype) if dtype else DType.INT64
    given = np.broadcast_arrays(*(np.asarray(arg, np.float64) for arg in args))
    result = entry.integers(*(_wrapped(arg, width) for arg in given))
    defined = np.logical_and.reduce([np.isfinite(arg) for arg in given])
    return np.asarray(np.where(defined, result.astype(np.float64), np.nan))


def _wrapped(numbers: NDArray[np.float64], dtype: DType) -> NDArray[Any]:
    """Numbers as integers of a type, modulo its range; what is not finite is 0."""
    whole = np.trunc(np.where(np.isfinite(numbers), numbers, 0.0))
    if dtype.kind == "bool":
        return np.asarray(whole != 0)
    whole = np.fmod(whole, 2.0**64)
    if dtype.bits == 64:
        # Beyond 2^63 a float64 is even, so half of it is exact and fits.
        halves = np.trunc(whole / 2.0).astype(np.int64)
        rest = (whole - 2.0 * np.trunc(whole / 2.0)).astype(np.int64)
        return np.asarray((halves * 2 + rest).astype(dtype.numpy))
    return np.asarray(np.mod(whole, 2.0**dtype.bits).astype(np.int64).astype(dtype.numpy))


def rounding_operator(rounding: Rounding) -> str:
    """The operator that rounds to an integer as a cast does."""
    match rounding:
        case Rounding.TOWARD_ZERO:
            return "trunc"
        case Rounding.AWAY:
            return "round_away"
        case _:
            return "round_even"


def wraps(source: DType, to: DType) -> bool:
    """Whether a conversion between integer types changes numbers the source may hold.

    Narrowing to 32 bits or more is taken to lose nothing, as arithmetic is.
    """
    if not (source.is_integer and to.is_integer):
        return False
    if source.kind == "int" and to.kind == "uint":
        return True
    narrower = to.precision < source.precision
    return narrower and to.bits < 32


def truth_values(op: Op, operator: str) -> bool:
    """Whether a logical operator's operands must first be made truth values."""
    if not operator.startswith("logical_"):
        return False
    given: tuple[Value, ...] = ()
    match op:
        case Map(args=args):
            given = args
        case Scan(arg=arg):
            given = (arg,)
        case _:
            given = tuple(x for x in (getattr(op, "arg", None),) if isinstance(x, Value))
    return any(value.dtype is not DType.BOOL for value in given)


class Reals:
    """Numbers as float64; casts between float formats change nothing.

    `inputs` maps buffer names to arrays of the buffer's size.  Buffers without an entry
    start as NaN, the mark of what nobody wrote.
    """

    missing = np.nan
    idle = 0.0

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        self._inputs = inputs

    def constant(self, number: float, dtype: DType) -> Array:
        return np.asarray(float(number), np.float64)

    def position(self, numbers: Array, dtype: DType) -> Array:
        return numbers.astype(np.float64)

    def content(self, buffer: Buffer, size: int) -> Array:
        given = self._inputs.get(buffer.name)
        if given is None:
            return np.full(size, np.nan)
        flat = np.asarray(given).astype(np.float64).reshape(-1)
        if flat.size != size:
            raise ValueError(f"{buffer.name} has {size} elements, its input {flat.size}")
        return flat.copy()

    def loaded(self, buffer: Buffer, value: Array, op: Op) -> None:
        pass

    def apply(self, operator: str, args: Sequence[Array], op: Op) -> Array:
        return real(spelled(operator, op), *args)

    def cast(self, value: Array, source: DType, to: DType, rounding: Rounding, op: Op) -> Array:
        if to.kind == "bool":
            return np.asarray(value != 0, np.float64)
        if to.kind in {"int", "uint"} and source.kind == "float":
            return real(rounding_operator(rounding), value)
        if wraps(source, to):
            return np.where(np.isnan(value), value, real(f"wrap:{to.value}", value))
        return value

    def reduce(self, operator: str, value: Array, active: Mask, dims: int, op: Op) -> Array:
        identity = OPERATORS[operator].identity
        axes = tuple(range(dims))
        if operator.startswith("logical_"):
            value = np.where(np.isnan(value), value, value != 0)
        if active is not True:
            if identity is None:
                raise Unevaluable(f"{operator} has no neutral element to leave points out", op.span)
            shape = np.broadcast_shapes(np.shape(active), value.shape)
            value = np.where(active, np.broadcast_to(value, shape), identity)
        match operator:
            case "add":
                return np.asarray(value.sum(axis=axes))
            case "multiply":
                return np.asarray(value.prod(axis=axes))
            case "maximum":
                return np.asarray(value.max(axis=axes, initial=-np.inf))
            case "minimum":
                return np.asarray(value.min(axis=axes, initial=np.inf))
        flat = value.reshape((math.prod(value.shape[:dims]), *value.shape[dims:]))
        if not len(flat):
            if identity is None:
                raise Unevaluable(f"{operator} over no points has no result", op.span)
            return np.full(flat.shape[1:], identity)
        total = flat[0]
        for part in flat[1:]:
            total = real(operator, total, part)
        return np.asarray(total)

    def scan(self, operator: str, value: Array, dim: int, inclusive: bool, op: Op) -> Array:
        identity = OPERATORS[operator].identity
        if truth_values(op, operator):
            value = np.where(np.isnan(value), value, value != 0)
        moved = np.moveaxis(value, dim, 0)
        out = np.empty_like(moved)
        running: Array = np.full(moved.shape[1:], np.nan if identity is None else identity)
        for position in range(moved.shape[0]):
            if not inclusive:
                out[position] = running
            running = moved[position] if position == 0 else real(operator, running, moved[position])
            if inclusive:
                out[position] = running
        return np.moveaxis(out, 0, dim)

    def truth(self, value: Array) -> NDArray[np.bool_]:
        return np.asarray(value != 0)

    def whole(self, value: Array) -> NDArray[np.int64]:
        return np.nan_to_num(value, nan=-1.0).astype(np.int64)

    def unwritten(self, value: Array) -> NDArray[np.bool_]:
        # NaN is also what 0 / 0 gives.
        return np.zeros(np.shape(value), bool)

    def unknown(self, op: Op, args: Sequence[Array], shape: tuple[int, ...]) -> Array:
        return np.full(shape, np.nan)
