"""Pointers, loads and stores on versions of flat buffers."""

from __future__ import annotations

from collections.abc import Iterator

from migrate.cuda import ast
from migrate.cuda.lifting.base import Base, part_types
from migrate.cuda.lifting.symbolic import (
    Data,
    Number,
    Parts,
    Pointer,
    Raw,
    Symbolic,
    Unset,
    merged,
)
from migrate.cuda.types import (
    ADDRESS,
    INT,
    LONG,
    Array,
    Scalar,
    Struct,
    Type,
    Vector,
    scalar_of,
    scalars_in,
)
from migrate.cuda.types import Pointer as PointerType
from migrate.ir.index import Index
from migrate.ir.nodes import (
    Axis,
    Buffer,
    Fill,
    Gather,
    Load,
    Scatter,
    Space,
    Store,
    Value,
    Version,
)
from migrate.ir.predicate import (
    Predicate,
    both,
)
from migrate.source import Span


def packed(items: Iterator[Symbolic], kind: Type) -> Symbolic:
    """Scalars in the order of memory as a value of a type."""
    match kind:
        case Vector(lanes=lanes):
            return Parts(tuple(next(items) for _ in range(lanes)))
        case Struct():
            return Parts(tuple(packed(items, member.type) for member in kind.members))
        case Array(element=element, length=length):
            return Parts(tuple(packed(items, element) for _ in range(length or 0)))
        case _:
            return next(items)


def flat(value: Symbolic) -> Iterator[Symbolic]:
    """The scalars of a value in the order of memory."""
    if isinstance(value, Parts):
        for item in value.items:
            yield from flat(item)
    else:
        yield value


def scalars_of(kind: Type) -> list[Scalar] | None:
    """The scalars that a variable consists of; `None` where it is more than those."""
    match kind:
        case Scalar():
            return [kind]
        case PointerType():
            return [LONG]
        case Vector() | Struct():
            found: list[Scalar] = []
            for part in part_types(kind):
                inner = None if isinstance(part, PointerType) else scalars_of(part)
                if inner is None:
                    return None
                found += inner
            return found
        case _:
            return None


def unset(kind: Type) -> list[Symbolic]:
    """The parts of a vector or struct that nothing was assigned to."""
    return [Parts(tuple(unset(part))) if part_types(part) else Unset() for part in part_types(kind)]


def is_place(node: ast.Expression) -> bool:
    """Whether an expression names a place, rather than makes a value."""
    while isinstance(node, ast.Component):
        node = node.base
    return isinstance(node, ast.Name | ast.Element)


class Memory(Base):
    """Buffers and what pointers into them mean."""

    def moved(
        self, pointer: Symbolic, index: Symbolic, kind: Type, element: Type, span: Span
    ) -> Pointer:
        """`pointer + index` in elements of the pointer's type."""
        if not isinstance(pointer, Pointer):
            raise self.not_lifted("a pointer whose value is not known", span)
        if pointer.buffer is None:
            return pointer
        index = self._number(index)
        # Addresses wrap as unsigned numbers of their width do, so that those mean the same.
        wraps = isinstance(kind, Scalar) and (kind.size == 8 or element == ADDRESS.element)
        if isinstance(index, Number) and isinstance(kind, Scalar) and not wraps:
            if not self.known.exact(index.index, kind):
                index = Data(self.value(index, kind, span))
        unit = self.scalars[pointer.buffer].size
        if element.size < unit and unit % element.size == 0:
            # A distance in bytes must come to whole elements.
            index = self._whole(index, unit // element.size, pointer, element, span)
            stride = 1
        else:
            stride = self._stride(pointer, element, span)
        if isinstance(index, Number):
            step = Number(index.index * stride, index.sources)
            if isinstance(pointer.offset, Number):
                total = pointer.offset.index + step.index
                return Pointer(
                    pointer.buffer,
                    Number(total, merged(step.sources, pointer.offset.sources)),
                )
            index = step
        elif stride != 1:
            index = self.arithmetic("multiply", index, Number(Index.of(stride)), INT, INT, span)
        if pointer.offset == Number(Index.of(0)) or (
            isinstance(pointer.offset, Number) and pointer.offset.index.constant == 0
        ):
            if isinstance(index, Data):
                return Pointer(pointer.buffer, index)
        added = self.arithmetic("add", pointer.offset, index, INT, INT, span)
        if not isinstance(added, Number | Data):
            raise self.not_lifted("an index that is no number", span)
        return Pointer(pointer.buffer, added)

    def member(self, pointer: Pointer, whole: Type, index: int, span: Span) -> Pointer:
        """The pointer to a component of a vector, or to a member of a struct, in memory."""
        if pointer.buffer is None:
            raise self.not_lifted("a member through a null pointer", span)
        unit = self.scalars[pointer.buffer].size
        match whole:
            case Vector(element=element):
                offset = index * element.size
            case Struct():
                offset = whole.members[index].offset
            case _:
                raise self.not_lifted(f"a component of {whole}", span)
        if offset % unit:
            raise self.not_lifted(f"{whole} in memory of {self.scalars[pointer.buffer]}", span)
        moved = self.arithmetic(
            "add", pointer.offset, Number(Index.of(offset // unit)), INT, INT, span
        )
        if not isinstance(moved, Number | Data):
            raise self.not_lifted("an index that is no number", span)
        sources = pointer.offset.sources if isinstance(pointer.offset, Number) else ()
        if isinstance(moved, Number):
            moved = Number(moved.index, sources)
        return Pointer(pointer.buffer, moved)

    def _whole(
        self, index: Symbolic, each: int, pointer: Pointer, element: Type, span: Span
    ) -> Number | Data:
        """An index that counts in parts of an element, in elements."""
        if isinstance(index, Data):
            # One that is no whole number of them would be a fault.
            parts = self.arithmetic("divide", index, Number(Index.of(each)), INT, INT, span)
            return Data(self.value(parts, INT, span))
        if isinstance(index, Number):
            rest = (index.index % each).simplify(self.known.ranges)
            if rest.constant == 0:
                return Number((index.index // each).simplify(self.known.ranges), index.sources)
        assert pointer.buffer is not None
        held = self.scalars[pointer.buffer]
        raise self.not_lifted(f"memory of {held} accessed as {element}", span)

    def _stride(self, pointer: Pointer, element: Type, span: Span) -> int:
        if pointer.buffer is None:
            return 1
        unit = self.scalars[pointer.buffer]
        if element.size % unit.size:
            raise self.not_lifted(f"memory of {unit} accessed as {element}", span)
        return element.size // unit.size

    def cells(self, pointer: Pointer, part: int, span: Span) -> tuple[Index | Value, ...]:
        """The index of a buffer's cell, `part` scalars on."""
        assert pointer.buffer is not None
        leading = self.leading[pointer.buffer]
        offset = pointer.offset
        if isinstance(offset, Number):
            return (*leading, offset.index + part)
        value = offset.value
        if part:
            moved = self.arithmetic("add", offset, Number(Index.of(part)), INT, INT, span)
            value = self.value(moved, INT, span)
        return (*leading, value)

    def where(self) -> Predicate:
        """The conditions of expressions around (those of statements are guards)."""
        return both(*self.known.facts[self.guarded :])

    guarded = 0

    def load(self, pointer: Symbolic, kind: Type, span: Span) -> Symbolic:
        if not isinstance(pointer, Pointer) or pointer.buffer is None:
            raise self.not_lifted("a load through a pointer that is not known", span)
        scalar = scalar_of(kind)
        buffer = pointer.buffer
        held = self.scalars[buffer]
        if scalar is None:
            raise self.not_lifted(f"a load of {kind}", span)
        count = scalars_in(kind)
        raw = scalar.dtype is not held.dtype and kind.size % held.size == 0
        if raw:
            # Through a pointer of another type memory is only passed on.
            scalar, count = held, kind.size // held.size
        elif scalar.dtype is not held.dtype:
            raise self.not_lifted(f"memory of {held} accessed as {kind}", span)
        items: list[Data] = []
        sources = pointer.offset.sources if isinstance(pointer.offset, Number) else ()
        for part in range(count):
            index = self.cells(pointer, part, span)
            result = self.fresh(scalar.dtype)
            version = self.state.versions[buffer]
            if version in self.pristine:
                self.loaded.add(buffer)
            exact = tuple(item for item in index if isinstance(item, Index))
            if len(exact) == len(index):
                self.emit(Load(result, version, exact, self.at(span), self.where(), sources))
            else:
                self.emit(Gather(result, version, index, self.at(span), self.where(), sources))
            items.append(Data(result))
        if raw:
            return Raw(scalar, tuple(items))
        return packed(iter(items), kind)

    def unwritten(self, kind: Scalar, span: Span) -> Value:
        """What a variable holds that nothing was assigned to: memory that nobody wrote."""
        made = self.storage("unset", kind, Space.PRIVATE, (), span)
        return self.value(self.load(Pointer(made, Number(Index.of(0))), kind, span), kind, span)

    def store(
        self, pointer: Pointer, value: Symbolic, kind: Type, span: Span, combine: str | None = None
    ) -> None:
        if pointer.buffer is None:
            raise self.not_lifted("a store through a null pointer", span)
        scalar = value.scalar if isinstance(value, Raw) else scalar_of(kind)
        buffer = pointer.buffer
        held = self.scalars[buffer]
        cleared = isinstance(value, Number) and value.index.constant == 0
        cleared &= scalar is None or scalar.dtype is not held.dtype
        if cleared and scalar is not None and combine is None and kind.size % held.size == 0:
            # No bits are no bits in any format.
            scalar, value = held, Raw(held, (self._zero(held, span),) * (kind.size // held.size))
        if scalar is None or scalar.dtype is not held.dtype:
            raise self.not_lifted(f"memory of {self.scalars[buffer]} accessed as {kind}", span)
        self.stored.add(buffer)
        items = value.items if isinstance(value, Raw) else tuple(flat(value))
        sources = pointer.offset.sources if isinstance(pointer.offset, Number) else ()
        for part, item in enumerate(items):
            number = self.value(item, scalar, span)
            index = self.cells(pointer, part, span)
            into = self.state.versions[buffer]
            if combine is not None and into in self.pristine:
                self.loaded.add(buffer)
            result = self.next_version(buffer)
            exact = tuple(piece for piece in index if isinstance(piece, Index))
            place, where = self.at(span), self.where()
            if combine is None and len(exact) == len(index):
                self.emit(Store(result, into, exact, number, place, where, None, sources))
            else:
                self.emit(
                    Scatter(result, into, index, number, place, combine, where, None, sources)
                )

    def _zero(self, kind: Scalar, span: Span) -> Data:
        result = self.fresh(kind.dtype)
        self.emit(Fill(result, 0.0 if kind.is_float else 0, self.at(span)))
        return Data(result)

    def next_version(self, buffer: str) -> Version:
        """A new version of a buffer, which is the current one from here on."""
        self.counts[buffer] += 1
        version = Version(buffer, self.counts[buffer])
        self.state.versions[buffer] = version
        return version

    def add_buffer(self, buffer: Buffer, scalar: Scalar, leading: tuple[Index, ...] = ()) -> None:
        self.buffers[buffer.name] = buffer
        self.leading[buffer.name] = leading
        self.scalars[buffer.name] = scalar
        self.counts[buffer.name] = 0
        self.state.versions[buffer.name] = Version(buffer.name, 0)
        self.pristine.add(Version(buffer.name, 0))

    def unique(self, name: str) -> str:
        """A buffer name that is not taken."""
        if name not in self.buffers:
            return name
        number = 2
        while f"{name}.{number}" in self.buffers:
            number += 1
        return f"{name}.{number}"

    def storage(
        self, name: str, kind: Type, space: Space, axes: tuple[Axis, ...], span: Span,
        size: Index | None = None,
    ) -> str:  # fmt: skip
        """A scratch buffer with one instance for each point of the axes."""
        scalar = scalar_of(kind)
        if scalar is None:
            raise self.not_lifted(f"storage of {kind}", span)
        extent = size if size is not None else Index.of(scalars_in(kind))
        unique = self.unique(name)
        shape = (*(axis.extent for axis in axes), extent)
        copies = len(axes)
        buffer = Buffer(unique, shape, scalar.dtype, space, "scratch", self.at(span), copies)
        self.add_buffer(buffer, scalar, tuple(Index.axis(axis.name) for axis in axes))
        return unique
