"""Terms as residues: the arithmetic of a finite field in place of hashes.

A term is a pair of residues, modulo a prime q and modulo the prime p = 2q + 1, kept in one
64-bit number.  Sums, products, negations and reciprocals are those of the two fields, so
that every law of theirs holds, distribution and common denominators among them.  An
exponential is w^(residue modulo q) modulo p, for an element w of order q: it turns sums
into products, as exp does.  (Residues in pairs for the sake of exp: Jia et al., "Mirage: A
Multi-Level Superoptimizer for Tensor Programs", 2024, section 6.)

An exponential has no residue modulo q, and neither has what is computed from one: of an
exponential of it only the equality of its argument is seen.  Everything else is a hash of
its arguments: elements of inputs, other functions, maxima and the like (of the collection
of their operands).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from migrate.ir.hashing import Ids, salt, scramble
from migrate.ir.literals import Floats, Literals, canonical
from migrate.ir.rewrites import REWRITES
from migrate.ir.rings import GROUPS, hashed

PRIMES: Final = (2147483543, 2147482943, 2147481893, 2147481359, 2147480921, 2147480591)
"""The largest q below 2^31 for which q and 2q + 1 are prime."""

_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFFFFFF)
_ZERO: Final = np.uint64(0)
_DIGIT: Final = np.uint64(16)
_DIGITS: Final = np.uint64(0xFFFF)
_BLIND: Final = np.uint64(1 << 31)
"""In place of the residue modulo q, where there is none."""

_ROUNDS: Final = 4

_DEFINED: dict[str, Callable[[Residues, Ids], Ids]] = {
    "exp2": lambda ring, x: ring.exp(ring.times(x, ring.constants["ln 2"])),
    "exp10": lambda ring, x: ring.exp(ring.times(x, ring.constants["ln 10"])),
    "expm1": lambda ring, x: ring.plus(ring.exp(x), ring.minus_one),
    "log2": lambda ring, x: ring.times(ring.log(x), ring.constants["log2 e"]),
    "log10": lambda ring, x: ring.times(ring.log(x), ring.constants["log10 e"]),
    "log1p": lambda ring, x: ring.log(ring.plus(x, ring.one)),
    "softplus": lambda ring, x: ring.log(ring.plus(ring.exp(x), ring.one)),
    "tanh": lambda ring, x: ring.tanh(x),
}
"""Functions by their definition in terms of exp and log."""

_CONSTANTS: Final = {
    "ln 2": float(np.log(2.0)),
    "ln 10": float(np.log(10.0)),
    "log2 e": float(1.0 / np.log(2.0)),
    "log10 e": float(1.0 / np.log(10.0)),
}
"""Numbers that stand for themselves wherever they are met, each the inverse of another."""


class Residues:
    """The arithmetic modulo one pair of primes, with random elements of inputs.

    `side` keeps apart what two kernels do not understand.  `unlucky` is set by a division
    by something that is 0 modulo one of the primes only: nothing that was computed counts.
    """

    keeps = frozenset(
        {"add", "negate", "multiply", "reciprocal", "exp", "exp2", "exp10", "expm1", "tanh"}
    )
    spelled = frozenset(REWRITES)

    def __init__(self, literals: Literals, prime: int, seed: int, side: str) -> None:
        self._literals = literals
        self._seed = seed
        self._side = side
        self._q = np.uint64(prime)
        self._p = np.uint64(2 * prime + 1)
        self.unlucky = False
        self._endless = {x: self._code(f"number {x}") for x in ("inf", "-inf", "nan")}
        self.constants: dict[str, Ids] = {}
        for name, inverse in (("ln 2", "log2 e"), ("ln 10", "log10 e")):
            drawn = self._spread(scramble(np.asarray(np.uint64(salt(f"{name} {seed}")))))
            self.constants[name] = drawn
            self.constants[inverse] = self._inverted(drawn)
        self.one: Ids = self.numbers(np.array(1.0))
        self.minus_one: Ids = self.numbers(np.array(-1.0))
        self._two = self.numbers(np.array(2.0))
        self._powers = self._power_tables()

    # -- what `Terms` asks for ------------------------------------------------------

    def numbers(self, numbers: Floats) -> Ids:
        numbers = canonical(numbers)
        whole = np.isfinite(numbers) & (numbers == np.rint(numbers)) & (np.abs(numbers) < 2.0**53)
        listed = np.where(whole, numbers, 0.0).astype(np.int64)
        parts = (np.mod(listed, np.int64(prime)).astype(np.uint64) for prime in (self._p, self._q))
        ids = np.array(_packed(*parts))
        for number in np.unique(numbers[~whole]):
            same = (numbers == number) | (np.isnan(numbers) & np.isnan(number))
            ids[same & ~whole] = self._number(float(number))
        return ids

    def elements(self, tensor: str, elements: NDArray[np.int64]) -> Ids:
        base = np.uint64(salt(f"tensor {tensor} {self._seed}"))
        return self._spread(scramble(scramble(elements.astype(np.uint64)) ^ base))

    def mark(self, text: str) -> np.uint64:
        return self._code(f"{self._side} {text}")

    def unknown(self, text: str, size: int) -> Ids:
        base = np.uint64(salt(f"{self._side} {text} {self._seed}"))
        return self._spread(scramble(np.arange(size, dtype=np.uint64) ^ base))

    def combine(self, operator: str, args: Sequence[Ids]) -> Ids:
        match operator:
            case "add":
                return self.plus(*args)
            case "multiply":
                return self.times(*args)
        return self.total(operator, np.stack(np.broadcast_arrays(*args), axis=-1))

    def total(self, operator: str, rows: Ids) -> Ids:
        match operator:
            case "add":
                low, high = _unpacked(rows)
                blind = np.bitwise_or.reduce(high, axis=-1)
                low, high = (part.sum(axis=-1, dtype=np.uint64) for part in (low, high))
                return self._pair(low % self._p, high % self._q, blind)
            case "multiply":
                # Half of the factors times the other half, until one is left.
                while rows.shape[-1] > 1:
                    half = rows.shape[-1] // 2
                    product = self.times(rows[..., :half], rows[..., half : 2 * half])
                    rows = np.concatenate([product, rows[..., 2 * half :]], axis=-1)
                return rows[..., 0]
        others = rows != self.numbers(np.array(GROUPS[operator]))
        low, high = self._in_group(operator, rows)
        total = self._out_of_group(
            operator,
            np.where(others, low, _ZERO).sum(axis=-1, dtype=np.uint64),
            np.where(others, high, _ZERO).sum(axis=-1, dtype=np.uint64),
        )
        # What is combined with nothing is left as it is.
        first = np.take_along_axis(rows, others.argmax(axis=-1)[..., None], -1)[..., 0]
        return np.where(others.sum(axis=-1) <= 1, first, total)

    def inverse(self, operator: str, arg: Ids) -> Ids:
        if operator == "negate":
            low, high = _unpacked(arg)
            return self._pair(
                (self._p - low % self._p) % self._p, (self._q - high % self._q) % self._q, high
            )
        ids, where = np.unique(arg, return_inverse=True)
        return self._inverted(ids)[where].reshape(np.shape(arg))

    def call(self, operator: str, args: Sequence[Ids]) -> Ids:
        if operator == "exp":
            return self.exp(args[0])
        if operator in _DEFINED:
            return _DEFINED[operator](self, args[0])
        return self._spread(hashed(operator, args))

    # -- the fields -----------------------------------------------------------------

    def plus(self, one: Ids, other: Ids) -> Ids:
        (a, b), (c, d) = _unpacked(one), _unpacked(other)
        return self._pair((a + c) % self._p, (b + d) % self._q, b | d)

    def times(self, one: Ids, other: Ids) -> Ids:
        (a, b), (c, d) = _unpacked(one), _unpacked(other)
        product = self._pair(a * c % self._p, b * d % self._q, b | d)
        # What infinity multiplies may be 0: it is left as it is.
        endless = (a >= self._p) | (c >= self._p)
        if np.any(endless):
            with np.errstate(over="ignore"):
                both = self._spread(scramble(scramble(one) + scramble(other)))
            product = np.where(endless, both, product)
        return product

    def exp(self, arg: Ids) -> Ids:
        _, exponent = _unpacked(arg)
        low, high = self._powers
        power = low[exponent & _DIGITS] * high[exponent >> _DIGIT & _DIGITS] % self._p
        blind = exponent >= _BLIND
        if np.any(blind):
            power = np.where(blind, _unpacked(self._spread(hashed("exp", (arg,))))[0], power)
        return _packed(power, np.full_like(power, _BLIND))

    def log(self, arg: Ids) -> Ids:
        return self._spread(hashed("log", (arg,)))

    def tanh(self, arg: Ids) -> Ids:
        double = self.exp(self.times(arg, self._two))
        return self.times(
            self.plus(double, self.minus_one),
            self.inverse("reciprocal", self.plus(double, self.one)),
        )

    def _inverted(self, ids: Ids) -> Ids:
        low, high = _unpacked(ids)
        zero = (low % self._p == 0) | (high == 0)
        known = self._literals.known(ids) if np.any(zero) else None
        if np.any(zero & ~known if known is not None else zero):
            self.unlucky = True
        return self._pair(_inverse(low, self._p), _inverse(high, self._q), high)

    def _pair(self, low: Ids, high: Ids, given: Ids) -> Ids:
        """Residues computed from pairs whose second parts are, or'ed together, `given`."""
        blind = given >= _BLIND
        return _packed(low, np.where(blind, _BLIND, high) if np.any(blind) else high)

    def _power_tables(self) -> tuple[Ids, Ids]:
        """w^i and w^(65536 i), for i below 65536 and a w of order q."""
        p = int(self._p)
        base = pow(2 + salt(f"root {self._seed}") % (p - 3), 2, p)
        tables: list[Ids] = []
        for step in (base, pow(base, 1 << 16, p)):
            table = np.ones(1, np.uint64)
            for bit in range(16):
                shift = np.uint64(pow(step, 1 << bit, p))
                table = np.concatenate([table, table * shift % self._p])
            tables.append(table)
        return tables[0], tables[1]

    # -- hashes ---------------------------------------------------------------------

    def _spread(self, hashes: Ids) -> Ids:
        """A pair of residues for every hash, each about as likely as any other."""
        low, high = _unpacked(hashes)
        return _packed(low * self._p >> _HALF, high * self._q >> _HALF)

    def _code(self, text: str) -> np.uint64:
        """What is no pair of residues."""
        return np.uint64(int(_LOW) | (salt(text) & int(_LOW)) << 32)

    def _number(self, number: float) -> np.uint64:
        if not np.isfinite(number):
            return self._endless[str(number)]
        for name, constant in _CONSTANTS.items():
            if canonical(np.array(constant)) == abs(number):
                own = self.constants[name]
                return np.uint64(own if number > 0 else self.inverse("negate", own))
        exact = ratio(number)
        low, high = (
            exact.numerator * pow(exact.denominator, -1, int(prime)) % int(prime)
            for prime in (self._p, self._q)
        )
        return np.uint64(low | high << 32)

    def _in_group(self, operator: str, ids: Ids) -> tuple[Ids, Ids]:
        """Terms as elements of an operator's group: pairs too, scrambled (a Feistel cipher)."""
        low, high = _unpacked(ids)
        blind = high >= _BLIND
        if np.any(blind):
            low, high = _unpacked(np.where(blind, self._spread(scramble(ids)), ids))
        for turn in range(_ROUNDS):
            key = np.uint64(salt(f"{operator} {turn}"))
            if turn % 2:
                high = (high + self._draw(low, key, self._q)) % self._q
            else:
                low = (low + self._draw(high, key, self._p)) % self._p
        return low, high

    def _out_of_group(self, operator: str, low: Ids, high: Ids) -> Ids:
        low, high = low % self._p, high % self._q
        for turn in reversed(range(_ROUNDS)):
            key = np.uint64(salt(f"{operator} {turn}"))
            if turn % 2:
                high = (high + self._q - self._draw(low, key, self._q)) % self._q
            else:
                low = (low + self._p - self._draw(high, key, self._p)) % self._p
        return _packed(low, high)

    @staticmethod
    def _draw(part: Ids, key: np.uint64, below: np.uint64) -> Ids:
        return np.asarray((scramble(part ^ key) >> _HALF) * below >> _HALF)


def agree(one: Ids, other: Ids) -> NDArray[np.bool_]:
    """Which terms are equal as far as both have residues."""
    (a, b), (c, d) = _unpacked(one), _unpacked(other)
    return np.asarray((a == c) & ((b == d) | (((b | d) >= _BLIND) & (a < _LOW))))


def _unpacked(ids: Ids) -> tuple[Ids, Ids]:
    ids = np.asarray(ids)
    return np.asarray(ids & _LOW), np.asarray(ids >> _HALF)


def _packed(low: Ids, high: Ids) -> Ids:
    return np.asarray(low | high << _HALF)


def _inverse(residues: Ids, prime: np.uint64) -> Ids:
    """By Fermat; 0 for 0."""
    result = np.ones_like(residues)
    square, exponent = residues % prime, int(prime) - 2
    while exponent:
        if exponent & 1:
            result = result * square % prime
        square = square * square % prime
        exponent >>= 1
    return result


@lru_cache(maxsize=4096)
def ratio(number: float) -> Fraction:
    """The simplest fraction that float32 rounds to the number: 0.1 is 1/10, 0.33333334 is 1/3.

    Of fractions about as simple a decimal one: 0.9999 is 9999/10000, not 9996/9997.  Whole
    numbers, and those that float32 does not hold, are themselves.
    """
    if number == round(number) or float(np.float32(number)) != number:
        return Fraction(number)
    size = np.float32(abs(number))
    below, above = (
        (Fraction(abs(number)) + Fraction(float(np.nextafter(size, np.float32(end))))) / 2
        for end in (0.0, np.inf)
    )
    found = _simplest(below, above)
    decimal = Fraction(str(size))
    if below < decimal < above and decimal.denominator <= 2 * found.denominator:
        found = decimal
    return found if number > 0 else -found


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """The fraction of the smallest denominator strictly between two positive ones."""
    wholes: list[int] = []
    while True:
        whole = low.numerator // low.denominator
        if whole + 1 < high:
            found = Fraction(whole + 1)
            break
        wholes.append(whole)
        if low == whole:
            found = Fraction((1 / (high - whole)).__floor__() + 1)
            break
        low, high = 1 / (high - whole), 1 / (low - whole)
    for whole in reversed(wholes):
        found = whole + 1 / found
    return found
