"""A `Machine` that builds IR: what an instruction computes, as operations.

A lifted value is a recipe: asked for the number at a position, it emits the operations
that make it into the region being built.  Stores make the region.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.ir.index import Index
from migrate.ir.nodes import (
    Axis,
    AxisKind,
    Block,
    Buffer,
    Cast,
    Contract,
    Fill,
    Fold,
    Gather,
    Guard,
    Load,
    Map,
    Merge,
    Op,
    Parallel,
    Position,
    Reduce,
    Rounding,
    Scatter,
    Select,
    Space,
    State,
    Store,
    Value,
    Version,
)
from migrate.ir.predicate import TRUE, Predicate, at_least, both, equal, less, negate
from migrate.nki import addresses
from migrate.nki.accumulation import ADDS, EITHER, OVERWRITES, UNDECIDED
from migrate.nki.errors import Unsupported
from migrate.nki.gathers import Mixed, Moved, inside, mixed_index, moved, names
from migrate.nki.positions import ONE, ZERO, Place, address_index, delinear, element_index, linear
from migrate.nki.program import Program
from migrate.nki.resolve import ResolvedSite
from migrate.nki.symbols import Number, sources
from migrate.nki.values import Member, View
from migrate.numerics.domain import OperatorError
from migrate.numerics.dtypes import DType
from migrate.source import Span

if TYPE_CHECKING:
    from migrate.ir.index import Range


@dataclass(slots=True, eq=False)
class Lifted:
    """A value to be built: `at(place)` emits what makes its element there."""

    shape: tuple[Index, ...]
    dtype: DType
    at: Callable[[Place], Value]


class Builder:
    """Emits the operations of one site."""

    def __init__(
        self,
        program: Program,
        site: ResolvedSite,
        loops: Sequence[Axis],
        ranges: Mapping[str, Range],
    ) -> None:
        self.program = program
        self.site = site
        self.span: Span = site.instruction.span
        self.loops = loops
        self.block: list[Op] = []
        self.ranges: dict[str, Range] = dict(ranges)
        self.axis_names: set[str] = set(program.reserved)
        self._memo: dict[tuple[int, Place], Value] = {}
        self._alive: list[object] = []
        self._chosen: list[Lifted] = []
        """Conditions on data under which an element is stored."""
        self._where: dict[int, tuple[str, Place, Place]] = {}
        """For each operand: its buffer, the instance of it, and that instance's shape."""
        by_name = dict(site.node.allocations)
        for name, operand in site.instruction.operands:
            if isinstance(operand, View):
                buffer = program.names[by_name[name]]
                self._where[id(operand)] = (buffer, site.leading[name], site.shapes[name])

    # Machine

    def read(self, view: View, shape: Sequence[Number] | None = None) -> Lifted:
        extents = tuple(n.index() for n in view.shape)
        source, leading, own = self._where[id(view)]
        version = self.program.version(source)
        places = _sources(view)

        _check_format(view)
        parts = self._moved(view)

        def at(place: Place) -> Value:
            if not parts:
                value = self.program.value(view.dtype)
                index = (*leading, *element_index(view, place, own, self.ranges))
                self.block.append(Load(value, version, index, self.span, sources=places))
                return value
            mixed = mixed_index(self, view, place, leading, own, parts, within=self._skips_outside)
            value = self.program.value(view.dtype)
            self.block.append(Gather(value, version, mixed, self.span, sources=places))
            return value

        found = self._recipe(extents, view.dtype, at)
        if parts and self._skips_outside:
            self._skip(view, own, parts, shape)
        return found if shape is None else self.reshape(found, shape)

    def _moved(self, view: View) -> list[Moved]:
        """Dimensions along which numbers in memory move an operand."""
        if not view.indirect:
            return []
        _, _, own = self._where[id(view)]
        name = names(self.site.instruction.operands)[id(view)]
        tiles: list[Callable[[Place], Value]] = []
        for number in range(len(view.indirect)):
            tile = self.site.instruction.view(f"{name}:{number}")
            assert tile is not None
            tiles.append(self.read(tile).at)
        return moved(view, own, tiles, self._equal)

    @property
    def _skips_outside(self) -> bool:
        """Whether elements whose position is out of bounds are left as they are."""
        mode = self.site.instruction.attribute("oob_mode")
        return isinstance(mode, Member) and mode.name == "skip"

    def _skip(
        self, view: View, own: Place, parts: Sequence[Moved], shape: Sequence[Number] | None
    ) -> None:
        """Leave out of the store that follows what was read outside of its tensor."""
        if self.site.instruction.opcode not in {"dma_copy", "dma_compute"}:
            raise Unsupported(f"{self.site.instruction.opcode} that skips what is out of bounds")
        extents = tuple(n.index() for n in view.shape)
        held = self._recipe(
            extents, DType.BOOL, lambda place: inside(self, view, place, own, parts)
        )
        self._chosen.append(held if shape is None else self.reshape(held, shape))

    def dtype(self, value: Lifted) -> DType:
        return value.dtype

    def convert(self, value: Lifted, dtype: DType) -> Lifted:
        if value.dtype is dtype:
            return value

        def at(place: Place) -> Value:
            return self._cast(value.at(place), dtype)

        return self._recipe(value.shape, dtype, at)

    def number(self, value: Number | float, dtype: DType) -> Lifted:
        def at(_: Place) -> Value:
            result = self.program.value(dtype)
            if isinstance(value, Number) and value.integral:
                index = value.index()
                constant = index.constant
                if constant is None:
                    self.block.append(Position(result, index, self.span))
                    return result
                self.block.append(Fill(result, constant, self.span))
                return result
            plain = value.value if isinstance(value, Number) else value
            self.block.append(Fill(result, plain, self.span))
            return result

        return self._recipe((), dtype, at)

    def apply(
        self,
        operator: str,
        args: Sequence[Lifted],
        dtype: DType,
        error: OperatorError | None = None,
        mapping: str = "",
    ) -> Lifted:
        shape = self._joint([arg.shape for arg in args])

        def at(place: Place) -> Value:
            given = tuple(arg.at(_within(arg.shape, place)) for arg in args)
            result = self.program.value(dtype)
            self.block.append(Map(result, operator, given, self.span, mapping))
            return result

        return self._recipe(shape, dtype, at)

    def select(self, condition: Lifted, then: Lifted, otherwise: Lifted) -> Lifted:
        parts = (condition, then, otherwise)
        shape = self._joint([part.shape for part in parts])

        def at(place: Place) -> Value:
            test, yes, no = (part.at(_within(part.shape, place)) for part in parts)
            result = self.program.value(then.dtype)
            self.block.append(Select(result, test, yes, no, self.span))
            return result

        return self._recipe(shape, then.dtype, at)

    def where_index(
        self,
        comparison: str,
        shape: Sequence[Number],
        offset: Number,
        steps: Sequence[Number],
        then: Lifted,
        otherwise: Lifted,
    ) -> Lifted:
        def at(place: Place) -> Value:
            condition = _CONDITIONS[comparison](_affine(place, offset, steps))
            yes = then.at(_within(then.shape, place))
            no = otherwise.at(_within(otherwise.shape, place))
            result = self.program.value(then.dtype)
            self.block.append(Select(result, condition, yes, no, self.span))
            return result

        return self._recipe(tuple(n.index() for n in shape), then.dtype, at)

    def reduce(self, operator: str, value: Lifted, axes: Sequence[int], dtype: DType) -> Lifted:
        shape = tuple(ONE if k in axes else n for k, n in enumerate(value.shape))

        def at(place: Place) -> Value:
            inner = list(place)
            made: list[Axis] = []
            for k in axes:
                if value.shape[k] == ONE:
                    inner[k] = ZERO
                    continue
                axis = self._axis("r", value.shape[k], AxisKind.FREE, ())
                made.append(axis)
                inner[k] = Index.axis(axis.name)
            if not made:
                return value.at(tuple(inner))
            body, arg = self._region(lambda: value.at(tuple(inner)), made)
            result = self.program.value(dtype)
            self.block.append(Reduce(result, operator, tuple(made), body, arg, self.span))
            return result

        return self._recipe(shape, dtype, at)

    def scan(
        self,
        step: Callable[[Lifted, Lifted, Lifted], Lifted],
        initial: Lifted,
        left: Lifted,
        right: Lifted,
        shape: tuple[Number, Number],
    ) -> Lifted:
        """A loop that carries the state and leaves each one in a scratch buffer."""
        rows, length = (n.index() for n in shape)
        name, outer = self._scratch("states", (rows, length), DType.FLOAT32)
        names = set(self.axis_names)
        row = self._axis("p", rows, AxisKind.PARTITION, ())
        turn = self._axis("f", length, AxisKind.SEQUENTIAL, ())
        place = (ZERO if rows == ONE else Index.axis(row.name), Index.axis(turn.name))
        before = self.program.version(name)
        inner, following, after = (self.program.fresh(name) for _ in range(3))
        state, last = (self.program.value(DType.FLOAT32) for _ in range(2))

        def turned() -> Value:
            carried = self._recipe((rows, length), DType.FLOAT32, lambda _: state)
            return step(carried, left, right).at(place)

        def started() -> Value:
            value = initial.at(_within(initial.shape, place))
            body, made = self._region(turned, [turn])
            store = Store(following, inner, (*outer, *place), made, self.span)
            states = (State(last, value, state, made), State(after, before, inner, following))
            self.block.append(Fold((turn,), states, (*body, store), self.span))
            return last

        body, _ = self._region(started, [row])
        self.program.current[name] = after.number
        self.axis_names = names
        self.block.extend(body if rows == ONE else (Parallel((row,), body, self.span),))

        def at(here: Place) -> Value:
            result = self.program.value(DType.FLOAT32)
            self.block.append(Load(result, after, (*outer, *here), self.span))
            return result

        return self._recipe((rows, length), DType.FLOAT32, at)

    def contract(self, stationary: Lifted, moving: Lifted) -> Lifted:
        left, right = (
            self.convert(self._flattened(side), DType.FLOAT32) for side in (stationary, moving)
        )

        def at(place: Place) -> Value:
            row, column = place
            axis = self._axis("k", left.shape[0], AxisKind.PARTITION, ())
            k = Index.axis(axis.name)
            found: list[Value] = []

            def both() -> Value:
                found.append(left.at((k, row)))
                found.append(right.at((k, column)))
                return found[0]

            body, _ = self._region(both, [axis])
            result = self.program.value(DType.FLOAT32)
            self.block.append(Contract(result, (axis,), body, found[0], found[1], self.span))
            return result

        return self._recipe((left.shape[1], right.shape[1]), DType.FLOAT32, at)

    def _flattened(self, value: Lifted) -> Lifted:
        free = ONE
        for extent in value.shape[1:]:
            free = free * extent
        return self._reshaped(value, (value.shape[0], free))

    def transpose(self, value: Lifted, order: Sequence[int]) -> Lifted:
        shape = tuple(value.shape[axis] for axis in order)

        def at(place: Place) -> Value:
            inner = [ZERO] * len(order)
            for position, axis in enumerate(order):
                inner[axis] = place[position]
            return value.at(tuple(inner))

        return self._recipe(shape, value.dtype, at)

    def reshape(self, value: Lifted, shape: Sequence[Number]) -> Lifted:
        return self._reshaped(value, tuple(n.index() for n in shape))

    def _reshaped(self, value: Lifted, shape: tuple[Index, ...]) -> Lifted:
        if shape == value.shape:
            return value
        wide = [k for k, n in enumerate(value.shape) if n != ONE]
        kept = [k for k, n in enumerate(shape) if n != ONE]
        # Axes of one length at the front stay what they are; the rest is counted through.
        alike = 0
        for old, new in zip(wide, kept, strict=False):
            if not self._equal(value.shape[old], shape[new]):
                break
            alike += 1
        rest_old, rest_new = wide[alike:], kept[alike:]

        def at(place: Place) -> Value:
            inner = [ZERO] * len(value.shape)
            for old, new in zip(wide[:alike], kept[:alike], strict=True):
                inner[old] = place[new]
            flat = linear([place[k] for k in rest_new], [shape[k] for k in rest_new])
            within = delinear(flat, [value.shape[k] for k in rest_old], self.ranges)
            for old, here in zip(rest_old, within, strict=True):
                inner[old] = here
            return value.at(tuple(inner))

        return self._recipe(shape, value.dtype, at)

    def position(self, shape: Sequence[Number], offset: Number, steps: Sequence[Number]) -> Lifted:
        def at(place: Place) -> Value:
            total = _affine(place, offset, steps)
            result = self.program.value(DType.INT32)
            self.block.append(Position(result, total, self.span))
            return result

        return self._recipe(tuple(n.index() for n in shape), DType.INT32, at)

    def keep(self, value: Lifted, shape: Sequence[Number]) -> Lifted:
        extents = tuple(n.index() for n in shape)
        name, outer = self._scratch("kept", extents, value.dtype)
        self._store(name, extents, lambda place: (*outer, *place), value, ())

        def at(place: Place) -> Value:
            result = self.program.value(value.dtype)
            version = self.program.version(name)
            self.block.append(Load(result, version, (*outer, *place), self.span))
            return result

        return self._recipe(extents, value.dtype, at)

    def write(self, view: View, value: Lifted) -> None:
        target, leading, own = self._where[id(view)]
        extents = tuple(n.index() for n in view.shape)
        _check_format(view)
        parts = self._moved(view)
        skips = self._skips_outside
        if parts and skips:
            self._skip(view, own, parts, None)

        def index(place: Place) -> Mixed:
            if not parts:
                return (*leading, *element_index(view, place, own, self.ranges))
            return mixed_index(self, view, place, leading, own, parts, within=skips)

        self._store(
            target,
            extents,
            index,
            self.convert(value, view.dtype),
            view.shape,
            _sources(view),
        )

    def accumulate(self, view: View, value: Lifted, mode: bool | None) -> None:
        """Add or overwrite, as the instances were found to do (`self.adds`)."""
        adds = self.site.adds[self.site.adds != EITHER]
        if bool((adds == OVERWRITES).all()):
            self.write(view, value)
            return
        if bool((adds == UNDECIDED).any()):
            raise Unsupported("a matmul into a tile that is summed, or inside its tensor, in part")
        if not bool((adds == ADDS).all()) and not self.starts_at_zero:
            raise Unsupported("a matmul that adds or overwrites depending on more than loops")
        old = self.convert(self.read(view), DType.FLOAT32)
        self.write(view, self.apply("add", (old, value), DType.FLOAT32))

    starts_at_zero = False
    """Whether a store of zeros before the loops stands for the overwriting instance."""

    def clear(self, view: View) -> None:
        """Zeros, for a sum that starts in the loops that follow."""
        self.write(view, self.number(0.0, view.dtype))

    def _scratch(
        self, called: str, extents: tuple[Index, ...], dtype: DType
    ) -> tuple[str, tuple[Index, ...]]:
        """A buffer with one element for every point of the loops around, and their axes."""
        name = self.program.unique(called)
        shape = tuple(self._largest(n) for n in (*(a.extent for a in self.loops), *extents))
        self.program.declare(Buffer(name, shape, dtype, Space.PRIVATE, "scratch", self.span))
        return name, tuple(Index.axis(axis.name) for axis in self.loops)

    # Regions

    def _store(
        self,
        target: str,
        extents: Place,
        index: Callable[[Place], Mixed],
        value: Lifted,
        shape: Sequence[Number],
        places: tuple[Span, ...] = (),
    ) -> None:
        axes: list[Axis] = []
        place: list[Index] = []
        names = set(self.axis_names)
        for position, extent in enumerate(extents):
            if extent == ONE:
                place.append(ZERO)
                continue
            kind = AxisKind.PARTITION if position == 0 else AxisKind.FREE
            origin = shape[position].sources() if shape else ()
            axis = self._axis("p" if position == 0 else "f", extent, kind, origin)
            axes.append(axis)
            place.append(Index.axis(axis.name))
        where = tuple(place)
        cell: list[Mixed] = []
        masks: list[Value] = []

        def built() -> Value:
            made = value.at(_within(value.shape, where))
            cell.append(index(where))
            masks.extend(held.at(_within(held.shape, where)) for held in self._chosen)
            while len(masks) > 1:
                both_hold = self.program.value(DType.BOOL)
                pair = (masks.pop(), masks.pop())
                self.block.append(Map(both_hold, "logical_and", pair, self.span))
                masks.append(both_hold)
            return made

        body, made = self._region(built, axes)
        before, result = self.program.version(target), self.program.fresh(target)
        store = _stored(result, before, cell[0], made, self.span, masks, places)
        ops: Block = (*body, store)
        condition = self._condition(where)
        if condition != TRUE:
            after = self.program.fresh(target)
            merge = Merge(after, result, before)
            ops, result = (Guard(condition, ops, self.span, (), (merge,)),), after
        self.program.current[target] = result.number
        self.axis_names = names
        if axes:
            self.block.append(Parallel(tuple(axes), ops, self.span))
        else:
            self.block.extend(ops)

    def _condition(self, place: Place) -> Predicate:
        """Where the instruction's mask leaves an element of its destination."""
        mask = self.site.instruction.mask
        if mask is None:
            return TRUE
        conditions = (address_index(part, place, self.ranges) for part in mask.conditions)
        return both(*map(at_least, conditions))

    def _region(self, build: Callable[[], Value], axes: Sequence[Axis]) -> tuple[Block, Value]:
        """What `build` emits, as a block of its own."""
        outside, memo, names = self.block, self._memo, set(self.axis_names)
        self.block, self._memo = [], dict(memo)
        try:
            value = build()
            return tuple(self.block), value
        finally:
            self.block, self._memo, self.axis_names = outside, memo, names

    def _recipe(
        self, shape: tuple[Index, ...], dtype: DType, at: Callable[[Place], Value]
    ) -> Lifted:
        """A value that is built once a place and region."""
        found = Lifted(shape, dtype, at)
        self._alive.append(found)

        def once(place: Place) -> Value:
            key = (id(found), place)
            value = self._memo.get(key)
            if value is None:
                value = at(place)
                self._memo[key] = value
            return value

        found.at = once
        return found

    def _axis(self, letter: str, extent: Index, kind: AxisKind, sources: tuple[Span, ...]) -> Axis:
        name, count = letter, 1
        while name in self.axis_names:
            count += 1
            name = f"{letter}{count}"
        self.axis_names.add(name)
        _, high = extent.bounds(self.ranges)
        self.ranges[name] = (0, None if high is None else max(high - 1, 0))
        return Axis(name, extent, kind, self.span, sources)

    # Positions

    def _equal(self, left: Index, right: Index) -> bool:
        """Whether two extents are equal, wherever they stand in their loops."""
        return (left - right).simplify(self.ranges).bounds(self.ranges) == (0, 0)

    def _largest(self, extent: Index) -> Index:
        if not extent.axes():
            return extent
        _, high = extent.bounds(self.ranges)
        if high is None:
            raise Unsupported("a tile without a largest size")
        return Index.of(high)

    def _cast(self, value: Value, dtype: DType) -> Value:
        result = self.program.value(dtype)
        exact = _widens(value.dtype, dtype)
        rounding = Rounding.EXACT if exact else Rounding.NEAREST_EVEN
        self.block.append(Cast(result, value, self.span, rounding))
        return result

    @staticmethod
    def _joint(shapes: Sequence[tuple[Index, ...]]) -> tuple[Index, ...]:
        """The shape that operands broadcast to."""
        longest = max(shapes, key=len)
        joint = list(longest)
        for shape in shapes:
            for position, extent in enumerate(reversed(shape)):
                if joint[-1 - position] == ONE:
                    joint[-1 - position] = extent
        return tuple(joint)


_CONDITIONS: dict[str, Callable[[Index], Predicate]] = {
    "equal": lambda index: equal(index, 0),
    "not_equal": lambda index: negate(equal(index, 0)),
    "less": lambda index: less(index, 0),
    "less_equal": lambda index: less(index, 1),
    "greater": lambda index: at_least(index - 1),
    "greater_equal": at_least,
}


def _check_format(view: View) -> None:
    if view.dtype is not view.buffer.dtype:
        raise Unsupported(f"the bytes of {view.buffer.dtype} read as {view.dtype}")


def _stored(
    result: Version,
    before: Version,
    cell: Mixed,
    made: Value,
    span: Span,
    masks: Sequence[Value],
    places: tuple[Span, ...],
) -> Op:
    """A store, or a scatter where data say where to."""
    mask = masks[0] if masks else None
    plain = tuple(part for part in cell if isinstance(part, Index))
    if len(plain) == len(cell):
        return Store(result, before, plain, made, span, mask=mask, sources=places)
    return Scatter(result, before, cell, made, span, mask=mask, sources=places)


def _affine(place: Place, offset: Number, steps: Sequence[Number]) -> Index:
    total = offset.index()
    for here, step in zip(place, steps, strict=True):
        total = total + here * step.index()
    return total


def _within(shape: tuple[Index, ...], place: Place) -> Place:
    """The element of a broadcast operand that stands at a place."""
    trimmed = place[len(place) - len(shape) :]
    return tuple(ZERO if n == ONE else here for n, here in zip(shape, trimmed, strict=True))


def _widens(source: DType, to: DType) -> bool:
    """Whether every value of one format is a value of the other."""
    if source.is_float and to.is_float:
        return (
            to.precision >= source.precision
            and to.max >= source.max
            and to.min_subnormal <= source.min_subnormal
        )
    if to.is_float:
        return source.precision <= to.precision
    return False


def _sources(view: View) -> tuple[Span, ...]:
    """The places whose numbers decide where a view stands, nearest first."""
    return sources(number for address in view.index for number in addresses.numbers_of(address))
