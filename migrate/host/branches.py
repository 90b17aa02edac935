"""What a name stands for after code that may or may not have run."""

from __future__ import annotations

from itertools import islice, product

from migrate.host.spellings import followed
from migrate.host.values import Array, Cast, Padded, Step, Unknown, opaque
from migrate.ir.index import Index
from migrate.source import Span

TRIED = (1, 2, 7, 63, 64, 65, 96, 127, 128, 129, 255, 256, 384, 512, 513, 1000)
"""Values of sizes at which a condition and an amount of padding are compared."""

MAX_TRIED = 400


def joined(
    before: object, then: object, otherwise: object, condition: object, span: Span
) -> object:
    """The value after both branches; `condition` is not zero in the first one.

    Numbers and arrays that are made here show one way the code can go; what is followed from a
    parameter must be the same whichever way it goes.
    """
    if then == otherwise:
        return then
    if not followed(then) and not followed(otherwise):
        if isinstance(then, Index) or isinstance(otherwise, Index):
            return Unknown()
        return otherwise if otherwise != before else then
    if isinstance(then, Array) and isinstance(otherwise, Array):
        if _same_but_format(then, otherwise):
            return Array(then.root, then.shape, None, _moves(then))
        if _padded_if_needed(then, otherwise, condition):
            return then
    return opaque("it is one thing or another", span)


def _moves(array: Array) -> tuple[Step, ...]:
    return tuple(step for step in array.steps if not isinstance(step, Cast))


def _same_but_format(left: Array, right: Array) -> bool:
    return left.root == right.root and _moves(left) == _moves(right)


def _padded_if_needed(then: Array, otherwise: Array, condition: object) -> bool:
    """Whether the first is the second padded, by nothing where the condition does not hold."""
    if then.root != otherwise.root or then.steps[:-1] != otherwise.steps or not then.steps:
        return False
    step = then.steps[-1]
    if not isinstance(step, Padded) or not isinstance(condition, Index):
        return False
    amounts = [amount for edge in step.edges for amount in edge[1:]]
    symbols = {s.name for amount in amounts if isinstance(amount, Index) for s in amount.symbols()}
    names = sorted(symbols | {s.name for s in condition.symbols()})
    for values in islice(product(TRIED, repeat=len(names)), MAX_TRIED):
        sizes = dict(zip(names, values, strict=True))
        if condition.evaluate(sizes) == 0 and any(
            amount.evaluate(sizes) if isinstance(amount, Index) else amount for amount in amounts
        ):
            return False
    return True
