"""Whether a kernel's outputs come from neighbourhoods of its inputs, or from all before."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Final

from migrate.ir.index import Index, Symbol
from migrate.ir.linear import factor_of, quotients
from migrate.ir.nodes import (
    Axis,
    Carried,
    Cast,
    Contract,
    Fold,
    Load,
    Map,
    Op,
    Parallel,
    Reduce,
    Scatter,
    Store,
    Value,
    operands,
)
from migrate.ir.scene import Scene

_SUMS: Final = frozenset({"add", "multiply", "fma", "maximum", "minimum"})


def windowed(scene: Scene) -> bool:
    """Whether outputs come from neighbourhoods of one input."""
    stored = {
        axis.name
        for op in scene.ops
        if isinstance(op, Store | Scatter) and scene.outside(op.into)
        for axis in _varying(scene, op)
    }
    shifted: dict[tuple[str, str, int], set[int]] = {}
    for op in scene.ops:
        if not isinstance(op, Load):
            continue
        folded = {
            axis.name
            for region in scene.inside[id(op)]
            if isinstance(region, Reduce | Contract | Fold)
            for axis in _axes(region)
        } - stored
        for part in op.index:
            outside = scene.outside(op.source)
            # A tile that is staged, or an array of a thread, moves on with its loop too.
            if part.coefficients() is not None or (outside and _computed_with(scene, op)):
                if _steps(part, folded) & _steps(part, stored):
                    return True
            if outside and _wraps(part, stored):
                return True
        if scene.outside(op.source) and len(op.index) == 1 and stored & op.index[0].axes():
            _note(shifted, op.source.buffer, op.index[0], _step(op.index[0], stored))
    # Neighbours written out reach into those of the next element.
    return any(
        len(offsets) > 2 and max(offsets) - min(offsets) >= step
        for (_, _, step), offsets in shifted.items()
    ) and not _unrolled(scene)


def _computed_with(scene: Scene, op: Load) -> bool:
    """Whether floats that are loaded go straight into a sum or product."""
    users = scene.users.get(op.result, [])
    return bool(users) and all(
        isinstance(user, Map) and user.operator in _SUMS and not user.result.dtype.is_integer
        for user in users
    )


def _steps(part: Index, names: Set[str]) -> set[int]:
    """How far a place moves with each of some axes, where that is one number."""
    factors = (factor_of(part, name) for name in names & part.axes())
    return {f.constant for f in factors if f is not None and f.constant is not None}


def _wraps(part: Index, stored: set[str]) -> bool:
    """Whether a place is `(p + c) % n`, where `p` moves with the outputs: a neighbour."""
    for atom in quotients(part):
        shift = dict(atom.numerator.terms).get((), 0)
        own = atom.numerator.axes() & stored
        if shift and own and atom.numerator - shift == _without_quotients(part, own):
            return True
    return False


def _without_quotients(part: Index, names: Set[str]) -> Index:
    """The terms of a place, none of them a quotient, that name some axes and no size but them."""
    total = Index.of(0)
    for monomial, coefficient in part.terms:
        symbols = [atom for atom in monomial if isinstance(atom, Symbol)]
        if len(symbols) == len(monomial) and any(s.name in names for s in symbols):
            total = total + _monomial(symbols) * coefficient
    return total


def _monomial(symbols: list[Symbol]) -> Index:
    total = Index.of(1)
    for symbol in symbols:
        total = total * Index(terms=(((symbol,), 1),))
    return total


def _step(moving: Index, stored: set[str]) -> int:
    """How far an access moves at least from one output to the next."""
    weights = [
        abs(coefficient)
        for monomial, coefficient in moving.terms
        if len(monomial) == 1 and isinstance(monomial[0], Symbol) and monomial[0].name in stored
    ]
    return min(weights, default=1)


def _unrolled(scene: Scene) -> bool:
    """Whether each thread stores at as many places as it loads from."""
    written: dict[tuple[str, str, int], set[int]] = {}
    read: dict[tuple[str, str, int], set[int]] = {}
    for op in scene.ops:
        if isinstance(op, Store) and scene.outside(op.into) and len(op.index) == 1:
            _note(written, op.into.buffer, op.index[0], 0)
        elif isinstance(op, Load) and scene.outside(op.source) and len(op.index) == 1:
            _note(read, op.source.buffer, op.index[0], 0)
    most = max(map(len, written.values()), default=1)
    return max(map(len, read.values()), default=0) <= 2 * most and most > 1


def _note(
    found: dict[tuple[str, str, int], set[int]], buffer: str, moving: Index, step: int
) -> None:
    """Sort a position by what it is but for a constant."""
    constant = dict(moving.terms).get((), 0)
    found.setdefault((buffer, str(moving - constant), step), set()).add(constant)


def _axes(op: Op) -> tuple[Axis, ...]:
    match op:
        case Parallel(axes=axes) | Fold(axes=axes) | Reduce(axes=axes) | Contract(axes=axes):
            return axes
        case _:
            return ()


def _varying(scene: Scene, op: Store | Scatter) -> tuple[Axis, ...]:
    """The axes that a store's place varies over."""
    names = {name for part in _positions(op) for name in part.axes()}
    return tuple(axis for name, axis in scene.axes_at(op).items() if name in names)


def _positions(op: Store | Scatter) -> Iterator[Index]:
    return (part for part in op.index if isinstance(part, Index))


def running(scene: Scene) -> bool:
    """Whether what a loop has come to so far is put down, element by element.

    A sum that elements leave again, read at a second place of their tensor, is a window's.
    """
    stored: dict[Value, list[Store]] = {}
    for op in scene.ops:
        if isinstance(op, Store):
            stored.setdefault(op.value, []).append(op)
    for loop in scene.ops:
        if not isinstance(loop, Fold):
            continue
        axes = {axis.name for axis in loop.axes}
        for state in loop.state:
            if not isinstance(state.next, Value) or not isinstance(state.inner, Value):
                continue
            put_down = any(
                any(region is loop for region in scene.inside[id(op)])
                and any(part.axes() & axes for part in op.index)
                for op in stored.get(state.next, ())
            )
            if put_down and _adds_an_element(scene, state.next, state.inner):
                return True
    return False


def _adds_an_element(scene: Scene, value: Value, before: Value) -> bool:
    """Whether a value is made, by floats' sums and products, of one before and of loads."""
    seen: set[Carried] = set()
    pending: list[Carried] = [value]
    read: dict[str, set[tuple[Index, ...]]] = {}
    while pending:
        current = pending.pop()
        if current in seen or current == before:
            seen.add(current)
            continue
        seen.add(current)
        match scene.maker.get(current):
            case Load(source=source, index=index):
                read.setdefault(source.buffer, set()).add(index)
            case (Map() | Cast()) as made if not made.result.dtype.is_integer:
                pending += operands(made)
            case _:
                pass
    return before in seen and bool(read) and all(len(places) == 1 for places in read.values())
