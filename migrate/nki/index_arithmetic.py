"""Arithmetic and comparisons on index tensors, and the masks that comparisons make.

Masks of NKI 0.1 are comparisons of affine expressions joined with `&` (NKI API masking); what
else is exact is read too.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrate.nki import addresses
from migrate.nki.addresses import MINUS_ONE
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.indices import (
    MAX_CONDITIONS,
    Condition,
    IndexGrid,
    IndexTensor,
    integer_of,
    joint,
)
from migrate.nki.symbols import ArithmeticFault, Number, Origin, extremum, unary
from migrate.nki.values import Address, View, describe


def _pair(
    left: object, right: object, origin: Origin
) -> tuple[tuple[Number, ...], Address, Address]:
    """Two operands over the axes they have in common."""
    if isinstance(left, IndexTensor) and isinstance(right, IndexTensor):
        if left.shape == right.shape:
            return left.shape, left.address, right.address
        shape, (first, second) = joint((left.shape, right.shape), origin)
        return (
            shape,
            addresses.renamed(left.address, first),
            addresses.renamed(right.address, second),
        )
    if isinstance(left, IndexTensor):
        return left.shape, left.address, Address(integer_of(right, origin))
    assert isinstance(right, IndexTensor)
    return right.shape, Address(integer_of(left, origin)), right.address


def arithmetic(sign: str, left: object, right: object, origin: Origin) -> object:
    """`left sign right` where one of them is an index tensor or a condition."""
    if isinstance(left, Condition) or isinstance(right, Condition):
        match sign:
            case "&":
                return conjunction(left, right, origin)
            case "|":
                return disjunction(left, right, origin)
        raise KernelFault("type", f"a mask {sign} something", origin)
    if isinstance(left, IndexGrid) or isinstance(right, IndexGrid):
        raise Unsupported("arithmetic on an index grid", origin)
    if isinstance(left, View) or isinstance(right, View):
        raise Unsupported("index arithmetic on what a tile holds", origin)
    try:
        return _arithmetic(sign, left, right, origin)
    except ArithmeticFault as fault:
        raise KernelFault("value", str(fault), origin) from None


def _arithmetic(sign: str, left: object, right: object, origin: Origin) -> object:
    shape, a, b = _pair(left, right, origin)
    match sign:
        case "+":
            return IndexTensor(shape, addresses.total(a, b))
        case "-":
            return IndexTensor(shape, addresses.total(a, addresses.scaled(b, MINUS_ONE)))
        case "*":
            if not isinstance(left, IndexTensor) or not addresses.axes_of(left.address):
                a, b = b, a
            if addresses.axes_of(b) or b.digits:
                raise Unsupported("the product of two index tensors", origin)
            return IndexTensor(shape, addresses.scaled(a, b.start))
        case "//" | "%":
            if addresses.axes_of(b) or b.digits:
                raise Unsupported("division by an index tensor", origin)
            if int(b.start.value) <= 0:
                raise Unsupported(f"index arithmetic modulo {b.start.value}", origin)
            sizes = tuple(int(extent.value) for extent in shape)
            found = addresses.divided(a, b.start, sizes, remainder=sign == "%")
            return IndexTensor(shape, found)
    raise Unsupported(f"index tensors with {sign}", origin)


def signed(sign: str, operand: IndexTensor | IndexGrid | Condition, origin: Origin) -> object:
    """Unary `-`, `+`, and `~` of a condition."""
    match operand:
        case Condition() if sign == "~":
            return opposite(operand, origin)
        case IndexTensor() if sign == "+":
            return operand
        case IndexTensor() if sign == "-":
            return IndexTensor(operand.shape, addresses.scaled(operand.address, MINUS_ONE))
    raise Unsupported(f"{sign} of an index tensor", origin)


def compare(sign: str, left: object, right: object, origin: Origin) -> object:
    """A comparison of index tensors and numbers: a condition, or a bool where none is left."""
    if sign in ("is", "is not"):
        return (left is right) == (sign == "is")
    if left is None or right is None:
        if sign in ("==", "!="):
            return sign == "!="
        raise KernelFault("type", f"None {sign} an index tensor", origin)
    if isinstance(left, Condition) or isinstance(right, Condition):
        raise Unsupported("comparing masks", origin)
    if isinstance(left, IndexGrid) or isinstance(right, IndexGrid):
        raise Unsupported("comparing an index grid", origin)
    if sign not in _DIFFERENCES and sign != "!=":
        raise KernelFault("type", f"{sign} with an index tensor", origin)
    if isinstance(left, View) or isinstance(right, View):
        raise Unsupported("comparing an index with what a tile holds", origin)
    if isinstance(left, Number) and not left.integral:
        return compare(_MIRRORED[sign], right, left, origin)
    if isinstance(right, Number) and not right.integral:
        sign, right = _whole(sign, right, origin)
    shape, a, b = _pair(left, right, origin)
    if sign == "!=":
        return opposite(_compared("==", shape, a, b), origin)
    return _compared(sign, shape, a, b)


def _whole(sign: str, bound: Number, origin: Origin) -> tuple[str, Number]:
    """The comparison of an integer with a float, as one with an integer."""
    if sign in ("==", "!=") and float(bound.value).is_integer():
        return sign, unary("int", bound, origin)
    match sign:
        case "<" | ">=":
            return sign, unary("ceil", bound, origin)
        case "<=" | ">":
            return sign, unary("floor", bound, origin)
    raise Unsupported("comparing an index tensor with a fraction", origin)


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
# (sign of left, sign of right, constant): a comparison as differences that are at least 0.
_DIFFERENCES: dict[str, tuple[tuple[bool, int], ...]] = {
    "<": ((False, -1),),
    "<=": ((False, 0),),
    ">": ((True, -1),),
    ">=": ((True, 0),),
    "==": ((True, 0), (False, 0)),
}


def _compared(sign: str, shape: tuple[Number, ...], a: Address, b: Address) -> Condition | bool:
    parts: list[Address] = []
    for left_first, less in _DIFFERENCES[sign]:
        first, second = (a, b) if left_first else (b, a)
        difference = addresses.total(first, addresses.scaled(second, MINUS_ONE))
        if less:
            difference = addresses.shifted(difference, MINUS_ONE)
        parts.append(difference)
    return _settled(shape, parts)


def _settled(shape: tuple[Number, ...], parts: Sequence[Address]) -> Condition | bool:
    """The condition without what holds everywhere; a bool where that settles it.

    What a size or the position of a loop is part of stays: it may hold for one iteration
    and not for another, and the instruction is the same one.
    """
    sizes = tuple(int(extent.value) for extent in shape)
    kept: list[Address] = []
    for part in parts:
        low, high = addresses.bounds(part, sizes)
        if not addresses.axes_of(part) or not _varies(part):
            if high < 0:
                return False
            if low >= 0:
                continue
        kept.append(part)
    return Condition(shape, tuple(kept)) if kept else True


def _varies(part: Address) -> bool:
    return any(number.symbolic for number in addresses.numbers_of(part))


def truth(value: object, origin: Origin) -> bool | None:
    """What a mask is without looking at an element; `None` where that does not settle it."""
    match value:
        case Condition():
            return None
        case bool():
            return value
        case Number():
            return bool(value.value)
        case None:
            return True
    raise KernelFault("type", f"{describe(value)} as a mask", origin)


def conjunction(left: object, right: object, origin: Origin) -> object:
    """Both conditions."""
    for one, other in ((left, right), (right, left)):
        settled = truth(one, origin)
        if settled is not None:
            return other if settled else False
    assert isinstance(left, Condition)
    assert isinstance(right, Condition)
    shape, (first, second) = joint((left.shape, right.shape), origin)
    parts = (
        *(addresses.renamed(part, first) for part in left.parts),
        *(addresses.renamed(part, second) for part in right.parts),
    )
    if len(parts) > MAX_CONDITIONS:
        raise Unsupported(f"a mask of more than {MAX_CONDITIONS} comparisons", origin)
    return Condition(shape, parts)


def disjunction(left: object, right: object, origin: Origin) -> object:
    """Either condition, where one of them settles it or they are bounds on the same thing."""
    for one, other in ((left, right), (right, left)):
        settled = truth(one, origin)
        if settled is not None:
            return True if settled else other
    assert isinstance(left, Condition)
    assert isinstance(right, Condition)
    shape, (first, second) = joint((left.shape, right.shape), origin)
    if len(left.parts) == len(right.parts) == 1:
        one = addresses.renamed(left.parts[0], first)
        two = addresses.renamed(right.parts[0], second)
        steps = [[(axis, step.value) for axis, step in part.terms] for part in (one, two)]
        if steps[0] == steps[1] and not one.digits and not two.digits:
            start = extremum("max", (one.start, two.start), origin)
            return Condition(shape, (Address(start, one.terms),))
    raise Unsupported("a mask that joins comparisons with |", origin)


def opposite(value: Condition | bool, origin: Origin) -> object:
    """Where a single comparison does not hold."""
    if isinstance(value, bool):
        return not value
    if len(value.parts) != 1:
        raise Unsupported("the opposite of several comparisons joined", origin)
    (part,) = value.parts
    flipped = addresses.shifted(addresses.scaled(part, MINUS_ONE), MINUS_ONE)
    return _settled(value.shape, (flipped,))
