"""Pointers, loads and stores on versions of flat buffers."""

from __future__ import annotations

from migrate.cuda.lifting.base import Base
from migrate.cuda.lifting.symbolic import (
    Data,
    Number,
    Parts,
    Pointer,
    Raw,
    Symbolic,
    merged,
)
from migrate.cuda.types import INT, Scalar, Type, Vector, scalar_of, scalars_in
from migrate.ir.index import Index
from migrate.ir.nodes import (
    Axis,
    Buffer,
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
        stride = self._stride(pointer, element, span)
        index = self._number(index)
        if isinstance(index, Number) and isinstance(kind, Scalar):
            if not self.known.exact(index.index, kind):
                index = Data(self.value(index, kind, span))
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
        raw = held.size != scalar.size and kind.size % held.size == 0
        if raw:
            # Through a pointer of another width memory is only passed on.
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
        return Parts(tuple(items)) if isinstance(kind, Vector) else items[0]

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
        if scalar is None or scalar.dtype is not self.scalars[buffer].dtype:
            raise self.not_lifted(f"memory of {self.scalars[buffer]} accessed as {kind}", span)
        self.stored.add(buffer)
        items = value.items if isinstance(value, Parts | Raw) else (value,)
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
