"""Canonical terms: the algebra that gives normal forms.

A term stands for an expression over the elements of the kernel's inputs, and is one
64-bit number.  Equal expressions, up to the laws below, are equal numbers; different
ones collide with the probability of a 64-bit hash.

* `add`, `multiply`, `maximum`, `minimum` and their kin are associative and commutative:
  order and grouping leave no trace, a neutral element vanishes, a term and its negation
  or reciprocal cancel, a reduction is one sum (`ir.rings`); how often a maximum has an
  operand does leave one, since partial maxima do not show what they have in common;
* signs and numbers of a product are one number: (-x) * 2 * y * 3 is -(6 * (x * y));
* other operators hash their operator and arguments, in order unless they commute;
* the rewrites of `ir.rewrites` apply, and operators on numbers are computed; what
  settles a result alone does so (0 * x, a known condition);
* casts between float formats change nothing (precision is judged elsewhere), casts to
  integers and to bool are operators;
* what is computed from a cell that nobody wrote is undefined, and nothing cancels it.

Every term made is logged with its operator and arguments, so that `ir.normal` can read
an expression back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.budget import Meter
from migrate.ir.evaluate import Array, Mask, Unevaluable
from migrate.ir.hashing import Ids, Noted
from migrate.ir.literals import Literals
from migrate.ir.nodes import Buffer, Op, Rounding
from migrate.ir.reals import real, rounding_operator, spelled, truth_values, wraps
from migrate.ir.rewrites import REWRITES
from migrate.ir.rings import GROUPS, INVERSES, Hashes, Ring, number_terms
from migrate.numerics.dtypes import DType
from migrate.numerics.operators import OPERATORS
from migrate.source import Span


@dataclass(frozen=True, slots=True)
class Made:
    """Terms made by one operation: `ids[i]` is `operator(args[0][i], args[1][i], ...)`.

    For a reduction, `args` is one array with a last dimension over what was combined.
    For elements of an input, `operator` is `element` and `tensor` its name; for numbers,
    `constant`.
    """

    operator: str
    ids: Ids
    args: tuple[Ids, ...]
    span: Span | None
    tensor: str = ""
    numbers: NDArray[np.float64] | None = None


def neutral_term(operator: str) -> np.uint64:
    """The term of the number that changes nothing under the operator."""
    return np.uint64(number_terms(np.asarray(GROUPS[operator])))


Leaves: TypeAlias = Mapping[str, tuple[str, NDArray[np.int64] | None]]
"""The logical tensor that a buffer holds, and the element of each of its cells."""


class Terms:
    """Numbers as canonical terms over the elements of the inputs.

    `leaves` maps a buffer to the logical tensor it holds and, where it is not row-major,
    the logical element of each of its cells (-1: a cell with no logical element).  Without
    `keep` the log has only what is unknown or undefined: enough to compare terms, not to
    read expressions back.
    """

    def __init__(
        self,
        leaves: Leaves,
        meter: Meter,
        *,
        keep: bool = True,
        ring: Callable[[Literals], Ring] = Hashes,
    ) -> None:
        self._leaves = leaves
        self._keep = keep
        self._meter = meter
        self.log: list[Made] = []
        self.used: set[str] = set()
        self.reads: list[tuple[Op, Ids]] = []
        self._literals = Literals(self._told)
        self._ring = ring(self._literals)
        self._opaque = 0
        self._undefined: dict[tuple[str, Span | None], Ids] = {}
        self.missing = self._ring.mark("nobody wrote this")
        self.idle = self._ring.mark("no point is here")
        # An undefined term is known to be no number.
        missing = np.asarray(self.missing).reshape(1)
        self._record("missing", missing, (), None)
        self._literals.learn(missing, np.full(1, np.nan))
        self._lost = Noted()
        self._lost.note(missing)
        self._nan = self._number(np.nan)
        for number in GROUPS.values():
            self._number(number)

    # -- the algebra ----------------------------------------------------------------

    def constant(self, number: float, dtype: DType) -> Array:
        return self._number(float(number))

    def position(self, numbers: Array, dtype: DType) -> Array:
        return self._numbers(numbers.astype(np.float64))

    def content(self, buffer: Buffer, size: int) -> Array:
        leaf = self._leaves.get(buffer.name)
        if leaf is None:
            return np.full(size, self.missing)
        tensor, elements = leaf
        if elements is None:
            elements = np.arange(size, dtype=np.int64)
        ids = self._ring.elements(tensor, elements)
        outside = elements < 0
        if outside.any():
            ids = np.where(outside, self.missing, ids)
        self._record("element", ids, (elements.astype(np.uint64),), buffer.span, tensor)
        return ids.copy()

    def loaded(self, buffer: Buffer, value: Array, op: Op) -> None:
        if self._keep and buffer.name in self._leaves:
            self.reads.append((op, value))

    def apply(self, operator: str, args: Sequence[Array], op: Op) -> Array:
        if truth_values(op, operator):
            args = [self._apply("not_equal", (arg, self._number(0.0)), op.span) for arg in args]
        return self._apply(spelled(operator, op), args, op.span)

    def cast(self, value: Array, source: DType, to: DType, rounding: Rounding, op: Op) -> Array:
        if to.kind == "float" or source.kind == "bool" or source is to:
            return value
        if to.kind == "bool":
            return self._apply("not_equal", (value, self._number(0.0)), op.span)
        if source.kind == "float":
            return self._apply(rounding_operator(rounding), (value,), op.span)
        return self._apply(f"wrap:{to.value}", (value,), op.span) if wraps(source, to) else value

    def reduce(self, operator: str, value: Array, active: Mask, dims: int, op: Op) -> Array:
        if truth_values(op, operator):
            value = self._apply("not_equal", (value, self._number(0.0)), op.span)
        operator = self._plain(operator)
        outer = np.broadcast_shapes(value.shape, np.shape(active))
        count = math.prod(outer[:dims])
        unsettled = False
        flat = np.moveaxis(np.broadcast_to(value, outer).reshape((count, *outer[dims:])), 0, -1)
        identity = OPERATORS[operator].identity
        if identity is None and (active is not True or not count):
            raise Unevaluable(f"{operator} has no neutral element to leave points out", op.span)
        if active is not True:
            # Points left out get the neutral number, which alone is no reason to look for others.
            unsettled = self._literals.known(flat) is None
            shown = np.broadcast_to(active, outer).reshape((count, *outer[dims:]))
            flat = np.where(np.moveaxis(shown, 0, -1), flat, self._number(identity or 0.0))
        if not count:
            return np.broadcast_to(self._number(identity or 0.0), outer[dims:])
        if operator not in GROUPS:
            total: Array = np.asarray(flat[..., 0])
            for position in range(1, count):
                total = self._apply(operator, (total, flat[..., position]), op.span)
            return total
        ids = self._ring.total(operator, flat)
        settled = None if unsettled else self._settled_rows(operator, flat, ids, op.span)
        rows = np.ascontiguousarray(flat).reshape(-1, count)
        if settled is None:
            return self._record(operator, ids, (rows,), op.span)
        found, known = settled
        rest = ~found.reshape(-1)
        if rest.any():
            self._record(operator, ids.reshape(-1)[rest], (rows[rest],), op.span)
        return np.where(found, known, ids)

    def scan(self, operator: str, value: Array, dim: int, inclusive: bool, op: Op) -> Array:
        if truth_values(op, operator):
            value = self._apply("not_equal", (value, self._number(0.0)), op.span)
        operator = self._plain(operator)
        moved = np.moveaxis(value, dim, 0)
        out = np.empty(moved.shape, np.uint64)
        identity = OPERATORS[operator].identity
        start = self._nan if identity is None else self._number(identity)
        running: Array = np.broadcast_to(start, moved.shape[1:])
        for position in range(moved.shape[0]):
            if not inclusive:
                out[position] = running
            now = moved[position]
            running = self._apply(operator, (running, now), op.span) if position else now
            if inclusive:
                out[position] = running
        return np.moveaxis(out, 0, dim)

    def truth(self, value: Array) -> NDArray[np.bool_] | None:
        numbers = self._all_numbers(value)
        return None if numbers is None else np.asarray(numbers != 0)

    def whole(self, value: Array) -> NDArray[np.int64] | None:
        numbers = self._all_numbers(value)
        if numbers is None or not np.array_equal(numbers, np.rint(numbers)):
            return None
        return numbers.astype(np.int64) if np.isfinite(numbers).all() else None

    def unwritten(self, value: Array) -> NDArray[np.bool_]:
        lost = self._lost.known(value)
        return np.zeros(np.shape(value), bool) if lost is None else lost

    def unknown(self, op: Op, args: Sequence[Array], shape: tuple[int, ...]) -> Array:
        self._opaque += 1
        size = math.prod(shape)
        self._meter.take(8 * size)
        ids = self._ring.unknown(f"opaque {self._opaque} {op.span}", size).reshape(shape)
        self._record("opaque", ids, (), op.span)
        return ids

    # -- building -------------------------------------------------------------------

    def _apply(self, operator: str, args: Sequence[Array], span: Span | None) -> Array:
        args = [np.asarray(arg) for arg in args]
        settled = self._settled(operator, args, span)
        if settled is None:
            return self._built(operator, args, span)
        found, ids = settled
        if found.all():
            return ids
        rest = ~found
        spread = [np.broadcast_to(arg, found.shape)[rest] for arg in args]
        ids[rest] = self._built(operator, spread, span)
        return ids

    def _built(self, operator: str, args: Sequence[Array], span: Span | None) -> Array:
        """New terms, by the laws that hold whatever the arguments are."""
        rewrite = REWRITES.get(operator)
        if rewrite is not None:
            self.used.add(rewrite.name)
            return np.asarray(
                rewrite.replacement(
                    lambda name, *inner: self._apply(name, inner, span), self._number, *args
                )
            )
        return self._record(operator, self._raw(operator, args), tuple(args), span)

    def _raw(self, operator: str, args: Sequence[Array]) -> Ids:
        if operator in INVERSES:
            return self._ring.inverse(operator, args[0])
        if operator in GROUPS:
            return self._ring.combine(operator, args)
        return self._ring.call(operator, args)

    def _settled(
        self, operator: str, args: Sequence[Array], span: Span | None
    ) -> tuple[NDArray[np.bool_], Ids] | None:
        """Where the result is known without a new term, and what it is there."""
        if operator == "select":
            return self._settled_select(args, span)
        computable = operator not in self._ring.spelled
        knowns = [self._literals.known(arg) for arg in args]
        if all(known is None for known in knowns):
            return None
        shape = np.broadcast_shapes(*(np.shape(arg) for arg in args))
        found = np.zeros(shape, bool)
        ids = np.zeros(shape, np.uint64)
        pairs = zip(args, knowns, strict=True)
        numbers = [self._literals.numbers_or_one(arg, known) for arg, known in pairs]
        spread = [np.broadcast_to(arg, shape) for arg in args]

        def settle(where: NDArray[np.bool_], result: Array) -> None:
            new = np.broadcast_to(where, shape) & ~found
            if new.any():
                ids[new] = np.broadcast_to(result, shape)[new]
                found[new] = True

        for arg, known in zip(spread, knowns, strict=True):
            if known is not None and (gone := self._lost.known(arg)) is not None:
                undefined = self._no_number(operator, span)
                settle(gone, np.where(arg == self.missing, undefined, arg))
        known_everywhere = [known for known in knowns if known is not None]
        if computable and len(known_everywhere) == len(args):
            both = ~found
            for known in known_everywhere:
                both = np.asarray(both & known)
            if both.any():
                given = [np.broadcast_to(n, shape)[both] for n in numbers]
                ids[both] = self._computed(operator, given, [arg[both] for arg in spread])
                found |= both
        for position, (known, number) in enumerate(zip(knowns, numbers, strict=True)):
            if known is None:
                continue
            if operator in _ABSORBING:
                settle(known & _ABSORBING[operator](number), args[position])
        return (found, ids) if found.any() else None

    def _settled_select(
        self, args: Sequence[Array], span: Span | None
    ) -> tuple[NDArray[np.bool_], Ids] | None:
        condition, then, otherwise = args
        shape = np.broadcast_shapes(*(np.shape(arg) for arg in args))
        found: NDArray[np.bool_] = np.array(np.broadcast_to(then == otherwise, shape))
        ids: Ids = np.array(np.where(found, then, np.uint64(0)))
        for arg in (then, otherwise):
            # A cell that nobody wrote may be what a condition keeps; no result computed from it.
            gone = np.asarray(self.unwritten(arg) & (arg != self.missing))
            if gone.any():
                ids = np.array(np.where(gone & ~found, arg, ids))
                found = np.asarray(found | gone)
        for operator, greater, smaller in (
            ("maximum", then, otherwise),
            ("minimum", otherwise, then),
        ):
            for comparison in ("greater", "greater_equal"):
                chosen = np.asarray(condition == self._raw(comparison, (greater, smaller)))
                chosen = np.broadcast_to(chosen, shape) & ~found
                if chosen.any():
                    self.used.add("select-of-the-greater-is-maximum")
                    given = [np.broadcast_to(arg, shape)[chosen] for arg in (then, otherwise)]
                    ids[chosen] = self._apply(operator, given, span)
                    found = np.asarray(found | chosen)
        known = self._literals.known(condition)
        if known is not None:
            number = self._literals.numbers_or_one(condition, known)
            gone = known & self.unwritten(condition)
            decided = np.where(number != 0, then, otherwise)
            decided = np.where(gone, self._no_number("select", span), decided)
            found = np.asarray(found | known)
            ids = np.array(np.where(known, decided, ids))
        return (np.asarray(found), ids) if found.any() else None

    def _settled_rows(
        self, operator: str, rows: Ids, ids: Ids, span: Span | None
    ) -> tuple[NDArray[np.bool_], Ids] | None:
        """As `_settled`, for a reduction of the last dimension; `ids` are the plain sums."""
        known = self._literals.known(rows)
        if known is None:
            return None
        numbers = self._literals.numbers_or_one(rows, known)
        found: NDArray[np.bool_] = np.asarray(known.all(axis=-1))
        result: Ids = np.zeros(found.shape, np.uint64)
        if found.any():
            total = numbers[found][..., 0]
            for column in range(1, rows.shape[-1]):
                total = real(operator, total, numbers[found][..., column])
            if operator == "add":
                result[found] = self._sums(total, ids[found], np.isfinite(total))
            else:
                result[found] = self._numbers(total)
        absorbed = known & _ABSORBING[operator](numbers) if operator in _ABSORBING else None
        if absorbed is not None and absorbed.any():
            # Two infinities of opposite sign have no sum.
            low = np.where(absorbed, numbers, np.inf).min(axis=-1)
            high = np.where(absorbed, numbers, -np.inf).max(axis=-1)
            some = absorbed.any(axis=-1)
            if operator == "multiply":
                endless = (known & np.isinf(numbers)).any(axis=-1)
                low = np.where(endless, np.nan, low)
            settled = np.where(low == high, low, np.nan)[some]
            result[some] = self._numbers(settled)
            found = np.asarray(found | some)
        gone = self.unwritten(rows)
        if gone.any():
            some = gone.any(axis=-1)
            first = np.take_along_axis(rows, gone.argmax(axis=-1)[..., None], -1)[..., 0]
            undefined = self._no_number(operator, span)
            result[some] = np.where(first == self.missing, undefined, first)[some]
            found = np.asarray(found | some)
        return (found, result) if found.any() else None

    def _computed(self, operator: str, given: Sequence[Array], args: Sequence[Array]) -> Ids:
        """An operator on numbers."""
        try:
            with np.errstate(all="ignore"):
                result = real(operator, *given)
        except Unevaluable:
            return self._built(operator, args, None)
        if operator in self._ring.keeps:
            exact = np.isfinite(result)
            if operator not in {"add", "negate"}:
                # Not what has overflowed or vanished, and not 1 / infinity.
                ends = np.logical_or.reduce([number == 0.0 for number in given])
                finite = np.logical_and.reduce([np.isfinite(number) for number in given])
                exact &= finite & ((result != 0.0) | ends)
            return self._sums(result, self._raw(operator, args), exact)
        return self._numbers(np.broadcast_to(result, np.shape(args[0])))

    def _sums(self, numbers: Array, ids: Ids, exact: NDArray[np.bool_]) -> Ids:
        """Terms of numbers that were computed; the given ones where `exact`."""
        numbers, ids = np.broadcast_to(numbers, np.shape(ids)), np.asarray(ids)
        result = np.where(exact, ids, self._numbers(np.where(exact, 0.0, numbers)))
        self._literals.learn(ids[exact], numbers[exact])
        return result

    def _plain(self, operator: str) -> str:
        """The operator that a reduction of real numbers goes by."""
        rewrite = REWRITES.get(operator)
        if not operator.endswith("_number") or rewrite is None:
            return operator
        self.used.add(rewrite.name)
        return operator.removesuffix("_number")

    # -- numbers --------------------------------------------------------------------

    def _number(self, number: float) -> Ids:
        return self._numbers(np.asarray(number, np.float64))

    def _numbers(self, numbers: NDArray[np.float64]) -> Ids:
        """The terms of numbers; what is computed from them starts from all their digits."""
        numbers = np.asarray(numbers) + 0.0
        ids = self._ring.numbers(numbers)
        self._literals.learn(ids, numbers)
        return ids

    def _told(self, ids: Ids, numbers: NDArray[np.float64]) -> None:
        self._record("constant", ids, (), None, numbers=numbers)

    def _all_numbers(self, ids: Ids) -> NDArray[np.float64] | None:
        known = self._literals.known(ids)
        if known is None or not known.all() or self.unwritten(ids).any():
            return None
        return self._literals.numbers_or_one(ids, known)

    def _no_number(self, operator: str, span: Span | None) -> Ids:
        """What an operator makes of a cell that nobody wrote."""
        found = self._undefined.get((operator, span))
        if found is None:
            text = f"undefined {len(self._undefined)} {operator} {span}"
            found = self._undefined[operator, span] = np.asarray(self._ring.mark(text))
            self._record("undefined", found.reshape(1), (), span)
            self._literals.learn(found.reshape(1), np.full(1, np.nan))
            self._lost.note(found)
        return found

    def _record(
        self,
        operator: str,
        ids: Ids,
        args: tuple[Ids, ...],
        span: Span | None,
        tensor: str = "",
        numbers: NDArray[np.float64] | None = None,
    ) -> Ids:
        self._meter.step(max(1, ids.size // 64))
        if not self._keep and operator not in {"opaque", "undefined"}:
            return ids
        self._meter.take(ids.nbytes + sum(arg.nbytes for arg in args if arg.base is None))
        self.log.append(Made(operator, ids, args, span, tensor, numbers))
        return ids


_ABSORBING: dict[str, Callable[[NDArray[np.float64]], NDArray[np.bool_]]] = {
    "add": lambda x: ~np.isfinite(x),
    "multiply": lambda x: (x == 0.0) | np.isnan(x),
    "maximum": lambda x: (x == np.inf) | np.isnan(x),
    "minimum": lambda x: (x == -np.inf) | np.isnan(x),
    "logical_and": lambda x: x == 0.0,
    "logical_or": lambda x: x == 1.0,
}
"""Operands that alone decide the result, whatever real number the other is."""
