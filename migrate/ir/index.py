"""Canonical index expressions: integer polynomials with floor-division, min and max.

An `Index` is a sum of monomials over *atoms*: symbols (axes and sizes), floor
quotients, minima and maxima.  Building one applies the laws below, so that equal
expressions are equal objects:

* sums and products are sorted and collected;
* `x % c` is stored as `x - c * (x // c)`, so `c * (x // c) + x % c` is `x`
  (it still prints as `x % c`);
* `(c*q + r) // c` is `q + r // c`, common factors cancel, `(x // a + k) // b` is
  `(x + a*k) // (a*b)` for constants, `a` and `b` positive;
* `min` and `max` are flat, without duplicates, without arguments that another one
  dominates by a constant, and without a part common to all arguments.

Division is floor division, as Python and index arithmetic on non-negative numbers have
it.  A front end whose language truncates must not build a quotient of something that
can be negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any, Literal, TypeAlias

MAX_TERMS = 128
MAX_DEPTH = 24
MAX_DEGREE = 8
MAX_COEFFICIENT = 1 << 62
MAX_WEIGHT = 2048
"""Symbols and operators written out: squaring a quotient over and over doubles its text."""


class TooComplex(ValueError):
    """An index expression outgrew what is worth reasoning about."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named integer: an axis (varies over an extent) or a size (fixed for a run)."""

    name: str
    kind: Literal["axis", "size"] = "size"

    @property
    def depth(self) -> int:
        return 0

    @property
    def weight(self) -> int:
        return 1

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Quotient:
    """Floor division of an expression by a non-zero expression."""

    numerator: Index
    denominator: Index

    @property
    def depth(self) -> int:
        return 1 + max(self.numerator.depth, self.denominator.depth)

    @property
    def weight(self) -> int:
        return 1 + self.numerator.weight + self.denominator.weight

    def __str__(self) -> str:
        return f"{_factor(self.numerator)} // {_factor(self.denominator)}"


@dataclass(frozen=True, slots=True)
class Extremum:
    """The least or greatest of several expressions."""

    which: Literal["min", "max"]
    args: tuple[Index, ...]

    @property
    def depth(self) -> int:
        return 1 + max(arg.depth for arg in self.args)

    @property
    def weight(self) -> int:
        return 1 + sum(arg.weight for arg in self.args)

    def __str__(self) -> str:
        return f"{self.which}({', '.join(map(str, self.args))})"


Atom: TypeAlias = Symbol | Quotient | Extremum
Monomial: TypeAlias = tuple[Atom, ...]
Range: TypeAlias = tuple[int | None, int | None]


class Index:
    """A canonical integer expression.  Immutable; equal meaning by the laws is equality."""

    __slots__ = ("_depth", "_hash", "_text", "_weight", "terms")

    terms: tuple[tuple[Monomial, int], ...]

    def __init__(self, terms: Iterable[tuple[Monomial, int]] = ()) -> None:
        given = [(m, c) for m, c in terms if c]
        if len(given) > MAX_TERMS:
            raise TooComplex(f"index expression has more than {MAX_TERMS} terms")
        # Before anything is ordered by its text, which is as long as this says.
        self._weight = sum(1 + sum(atom.weight for atom in m) for m, _ in given)
        if self._weight > MAX_WEIGHT:
            raise TooComplex(f"index expression has more than {MAX_WEIGHT} parts")
        kept = tuple(sorted(given, key=_order))
        for monomial, coefficient in kept:
            if len(monomial) > MAX_DEGREE or abs(coefficient) > MAX_COEFFICIENT:
                raise TooComplex("index expression has too high a degree or coefficient")
        self.terms = kept
        self._hash = hash(kept)
        self._text: str | None = None
        self._depth = max((atom.depth for m, _ in kept for atom in m), default=0)
        if self._depth > MAX_DEPTH:
            raise TooComplex(f"index expression is nested more than {MAX_DEPTH} deep")

    # -- construction ---------------------------------------------------------------

    @staticmethod
    def of(value: int | Index | Symbol) -> Index:
        if isinstance(value, Index):
            return value
        if isinstance(value, Symbol):
            return Index([((value,), 1)])
        return Index([((), int(value))])

    @staticmethod
    def axis(name: str) -> Index:
        return Index([((Symbol(name, "axis"),), 1)])

    @staticmethod
    def size(name: str) -> Index:
        return Index([((Symbol(name, "size"),), 1)])

    def __add__(self, other: int | Index) -> Index:
        collected = dict(self.terms)
        for monomial, coefficient in Index.of(other).terms:
            collected[monomial] = collected.get(monomial, 0) + coefficient
        return Index(collected.items())

    __radd__ = __add__

    def __neg__(self) -> Index:
        return Index((m, -c) for m, c in self.terms)

    def __sub__(self, other: int | Index) -> Index:
        return self + -Index.of(other)

    def __rsub__(self, other: int | Index) -> Index:
        return Index.of(other) - self

    def __mul__(self, other: int | Index) -> Index:
        collected: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in Index.of(other).terms:
                monomial = tuple(sorted((*left, *right), key=str))
                collected[monomial] = collected.get(monomial, 0) + a * b
        return Index(collected.items())

    __rmul__ = __mul__

    def __floordiv__(self, other: int | Index) -> Index:
        return _quotient(self, Index.of(other))

    def __rfloordiv__(self, other: int | Index) -> Index:
        return _quotient(Index.of(other), self)

    def __mod__(self, other: int | Index) -> Index:
        divisor = Index.of(other)
        return self - divisor * (self // divisor)

    def __rmod__(self, other: int | Index) -> Index:
        return Index.of(other) % self

    # -- queries --------------------------------------------------------------------

    @property
    def depth(self) -> int:
        return self._depth

    @property
    def weight(self) -> int:
        return self._weight

    @property
    def constant(self) -> int | None:
        """The value, when nothing varies."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and not self.terms[0][0]:
            return self.terms[0][1]
        return None

    def symbols(self) -> frozenset[Symbol]:
        found: set[Symbol] = set()
        pending = [self]
        while pending:
            for monomial, _ in pending.pop().terms:
                for atom in monomial:
                    match atom:
                        case Symbol():
                            found.add(atom)
                        case Quotient(numerator, denominator):
                            pending += (numerator, denominator)
                        case Extremum(_, args):
                            pending += args
        return frozenset(found)

    def axes(self) -> frozenset[str]:
        return frozenset(s.name for s in self.symbols() if s.kind == "axis")

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """The value under `values` (numbers, or integer arrays that broadcast).

        Raises `KeyError` for a symbol without a value, `ZeroDivisionError` for a zero
        divisor.
        """
        total: Any = 0
        for monomial, coefficient in self.terms:
            product: Any = coefficient
            for atom in monomial:
                product = product * _value(atom, values)
            total = total + product
        return total

    def substitute(self, values: Mapping[str, int | Index]) -> Index:
        """Replace symbols by name."""
        if not values:
            return self
        total = ZERO
        for monomial, coefficient in self.terms:
            product = Index([((), coefficient)])
            for atom in monomial:
                product = product * _substituted(atom, values)
            total = total + product
        return total

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """Inclusive bounds, given inclusive bounds of the symbols (`None`: unbounded)."""
        low: int | None = 0
        high: int | None = 0
        for monomial, coefficient in self.terms:
            term: Range = (coefficient, coefficient)
            for atom in monomial:
                term = _times(term, _atom_bounds(atom, ranges))
            low = None if low is None or term[0] is None else low + term[0]
            high = None if high is None or term[1] is None else high + term[1]
        return low, high

    def simplify(self, ranges: Mapping[str, Range]) -> Index:
        """Drop quotients and extrema that the ranges of the symbols decide."""
        total = ZERO
        for monomial, coefficient in self.terms:
            product = Index([((), coefficient)])
            for atom in monomial:
                product = product * _simplified(atom, ranges)
            total = total + product
        return total

    def coefficients(self) -> tuple[dict[str, int], int] | None:
        """Coefficient of each symbol and the constant, if the expression is affine."""
        linear: dict[str, int] = {}
        constant = 0
        for monomial, coefficient in self.terms:
            match monomial:
                case ():
                    constant = coefficient
                case (Symbol(name=name),):
                    linear[name] = coefficient
                case _:
                    return None
        return linear, constant

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Index):
            return self._hash == other._hash and self.terms == other.terms
        return NotImplemented

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Index({self})"

    def __str__(self) -> str:
        if self._text is None:
            self._text = _text(self)
        return self._text


def minimum(*args: int | Index) -> Index:
    """The least of the arguments."""
    return _extremum("min", args)


def maximum(*args: int | Index) -> Index:
    """The greatest of the arguments."""
    return _extremum("max", args)


def ceil_div(numerator: int | Index, denominator: int | Index) -> Index:
    """The quotient rounded up, for a positive denominator."""
    divisor = Index.of(denominator)
    return (Index.of(numerator) + divisor - 1) // divisor


def _order(term: tuple[Monomial, int]) -> tuple[int, str]:
    return -len(term[0]), "*".join(map(str, term[0]))


def _quotient(numerator: Index, denominator: Index) -> Index:
    divisor = denominator.constant
    if divisor == 0:
        raise ZeroDivisionError("division by zero in an index expression")
    if divisor is None:
        if numerator == denominator:
            return ONE
        if not numerator.terms:
            return ZERO
        return _symbolic_quotient(numerator, denominator)
    if divisor < 0:
        return _quotient(-numerator, -denominator)
    if divisor == 1:
        return numerator
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in numerator.terms:
        quotient, remainder = divmod(coefficient, divisor)
        if monomial and remainder >= divisor - divisor // 16 and remainder < divisor:
            # `(n - t) // 256` rather than `(n + 255*t) // 256 - t`.
            quotient, remainder = quotient + 1, remainder - divisor
        if quotient:
            whole[monomial] = quotient
        if remainder:
            rest[monomial] = remainder
    outside = Index(whole.items())
    if not rest or not any(rest):
        return outside  # what is left is a constant below the divisor
    common = divisor
    for monomial, coefficient in rest.items():
        if monomial:
            common = gcd(common, coefficient)
    inner = Index((m, c // common) for m, c in rest.items())
    divisor //= common
    if divisor == 1:
        return outside + inner
    match inner.terms:
        case (((Quotient(numerator=n, denominator=d),), 1), *rest_terms) if (
            d.constant or 0
        ) > 0 and (not rest_terms or (len(rest_terms) == 1 and not rest_terms[0][0])):
            offset = rest_terms[0][1] if rest_terms else 0
            return outside + _quotient(n + d * offset, d * divisor)
    return outside + Index([((Quotient(inner, Index.of(divisor)),), 1)])


def _symbolic_quotient(numerator: Index, denominator: Index) -> Index:
    """Split off what is a whole multiple of a one-term denominator."""
    outside: dict[Monomial, int] = {}
    inside: dict[Monomial, int] = {}
    if len(denominator.terms) == 1:
        (divisor, factor), *_ = denominator.terms
        for monomial, coefficient in numerator.terms:
            left = list(monomial)
            try:
                for atom in divisor:
                    left.remove(atom)
            except ValueError:
                inside[monomial] = coefficient
                continue
            if coefficient % factor:
                inside[monomial] = coefficient
            else:
                outside[tuple(left)] = coefficient // factor
    else:
        inside = dict(numerator.terms)
    rest = Index(inside.items())
    whole = Index(outside.items())
    if not rest.terms:
        return whole
    return whole + Index([((Quotient(rest, denominator),), 1)])


def _extremum(which: Literal["min", "max"], given: Iterable[int | Index]) -> Index:
    flat: list[Index] = []
    for arg in map(Index.of, given):
        flat.extend(_alternatives(which, arg))
    sign = 1 if which == "min" else -1
    kept: list[Index] = []
    for candidate in flat:
        replaced = False
        for position, other in enumerate(kept):
            difference = (candidate - other).constant
            if difference is not None:
                if sign * difference < 0:
                    kept[position] = candidate
                replaced = True
                break
        if not replaced:
            kept.append(candidate)
    if len(kept) == 1:
        return kept[0]
    common = dict(kept[0].terms)
    for arg in kept[1:]:
        terms = dict(arg.terms)
        common = {m: c for m, c in common.items() if terms.get(m) == c}
    shared = Index(common.items())
    if common:
        # Without it, an argument may be an extremum, and then goes flat.
        return shared + _extremum(which, [arg - shared for arg in kept])
    return Index([((Extremum(which, tuple(sorted(kept, key=str))),), 1)])


def _alternatives(which: str, index: Index) -> tuple[Index, ...]:
    """`x + min(a, b)` as the arguments `x + a` and `x + b` of a minimum around it."""
    inner = [
        (monomial, atom)
        for monomial, coefficient in index.terms
        if coefficient == 1 and len(monomial) == 1
        for atom in monomial
        if isinstance(atom, Extremum) and atom.which == which
    ]
    if len(inner) != 1:
        return (index,)
    ((monomial, atom),) = inner
    rest = index - Index([(monomial, 1)])
    return tuple(rest + arg for arg in atom.args)


def _value(atom: Atom, values: Mapping[str, Any]) -> Any:
    match atom:
        case Symbol(name=name):
            return values[name]
        case Quotient(numerator, denominator):
            divisor = denominator.evaluate(values)
            dividend = numerator.evaluate(values)
            if isinstance(divisor, int) and isinstance(dividend, int):
                return dividend // divisor
            import numpy as np

            if np.any(np.asarray(divisor) == 0):
                raise ZeroDivisionError(f"{denominator} is zero")
            return dividend // divisor
        case Extremum(which, args):
            import numpy as np

            results = [arg.evaluate(values) for arg in args]
            if all(isinstance(r, int) for r in results):
                return min(results) if which == "min" else max(results)
            choose = np.minimum if which == "min" else np.maximum
            total = results[0]
            for other in results[1:]:
                total = choose(total, other)
            return total


def _substituted(atom: Atom, values: Mapping[str, int | Index]) -> Index:
    match atom:
        case Symbol(name=name):
            return Index.of(values[name]) if name in values else Index([((atom,), 1)])
        case Quotient(numerator, denominator):
            return numerator.substitute(values) // denominator.substitute(values)
        case Extremum(which, args):
            return _extremum(which, [arg.substitute(values) for arg in args])


def _simplified(atom: Atom, ranges: Mapping[str, Range]) -> Index:
    match atom:
        case Symbol():
            return Index([((atom,), 1)])
        case Quotient(numerator, denominator):
            top = numerator.simplify(ranges)
            bottom = denominator.simplify(ranges)
            low, high = _floor_bounds(top.bounds(ranges), bottom.bounds(ranges))
            if low is not None and low == high:
                return Index.of(low)
            return top // bottom
        case Extremum(which, args):
            simple = [arg.simplify(ranges) for arg in args]
            kept: list[Index] = []
            for position, arg in enumerate(simple):
                if not any(
                    other != position
                    and _dominates(which, simple[other], arg, ranges)
                    and not (other > position and _dominates(which, arg, simple[other], ranges))
                    for other in range(len(simple))
                ):
                    kept.append(arg)
            return _extremum(which, kept or simple[:1])


def _dominates(which: str, winner: Index, loser: Index, ranges: Mapping[str, Range]) -> bool:
    low, high = (loser - winner).bounds(ranges)
    return low is not None and low >= 0 if which == "min" else high is not None and high <= 0


def _atom_bounds(atom: Atom, ranges: Mapping[str, Range]) -> Range:
    match atom:
        case Symbol(name=name):
            return ranges.get(name, (None, None))
        case Quotient(numerator, denominator):
            return _floor_bounds(numerator.bounds(ranges), denominator.bounds(ranges))
        case Extremum(which, args):
            each = [arg.bounds(ranges) for arg in args]
            lows = [low for low, _ in each if low is not None]
            highs = [high for _, high in each if high is not None]
            complete_low, complete_high = len(lows) == len(each), len(highs) == len(each)
            if which == "min":
                return (min(lows) if complete_low else None, min(highs) if highs else None)
            return (max(lows) if lows else None, max(highs) if complete_high else None)


def _floor_bounds(top: Range, bottom: Range) -> Range:
    if bottom[0] is None or bottom[0] < 0 or bottom[1] == 0:
        return None, None
    low, high = top
    # A quotient by zero has no value, so that nothing is said of it.
    smallest, largest = max(bottom[0], 1), bottom[1]

    def edge(value: int | None, *, lower: bool) -> int | None:
        if value is None:
            return None
        toward_smallest = value < 0 if lower else value >= 0
        if toward_smallest:
            return value // smallest
        if largest is None:
            return 0 if value >= 0 else -1
        return value // largest

    return edge(low, lower=True), edge(high, lower=False)


def _times(left: Range, right: Range) -> Range:
    if left == (0, 0) or right == (0, 0):
        return 0, 0
    if None in left or None in right:
        if (left[0] or 0) >= 0 and (right[0] or 0) >= 0 and None not in (left[0], right[0]):
            low = (left[0] or 0) * (right[0] or 0)
            return low, None
        return None, None
    corners = [a * b for a in left for b in right if a is not None and b is not None]
    return min(corners), max(corners)


def _factor(index: Index) -> str:
    text = str(index)
    simple = text.replace("_", "").replace(".", "").isalnum()
    return text if simple else f"({text})"


def _text(index: Index) -> str:
    pieces: list[tuple[str, int]] = []
    rest = dict(index.terms)
    for monomial, coefficient in index.terms:
        match monomial:
            case (Quotient(numerator=n, denominator=d),) if divisor := d.constant:
                scale, left_over = divmod(-coefficient, divisor)
                wanted = {m: c * scale for m, c in n.terms}
                if scale and not left_over and all(rest.get(m) == c for m, c in wanted.items()):
                    for m in (*wanted, monomial):
                        rest.pop(m, None)
                    pieces.append((f"{_factor(n)} % {divisor}", scale))
    for monomial, coefficient in index.terms:
        if monomial in rest:
            pieces.append((_product(monomial), coefficient))
    if not pieces:
        return "0"
    text = ""
    for body, coefficient in pieces:
        size = abs(coefficient)
        shown = body if body and size == 1 else f"{size}*{_wrapped(body)}" if body else str(size)
        if not text:
            text = shown if coefficient > 0 else f"-{_wrapped(shown) if size == 1 else shown}"
        else:
            text += f" {'+' if coefficient > 0 else '-'} {shown}"
    return text


def _wrapped(body: str) -> str:
    return f"({body})" if "//" in body or " % " in body else body


def _product(monomial: Monomial) -> str:
    if len(monomial) == 1:
        return str(monomial[0])
    return "*".join(_wrapped(str(atom)) for atom in monomial)


ZERO = Index()
ONE = Index([((), 1)])
