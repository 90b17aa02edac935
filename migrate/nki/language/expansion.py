"""One call of `nki.language` on its way to become instructions."""

from __future__ import annotations

from collections.abc import Sequence

from migrate.nki import views
from migrate.nki.allocation import allocate
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.issue import issue
from migrate.nki.symbols import Number, Origin, constant
from migrate.nki.values import Memory, OperatorName, View, describe
from migrate.numerics.dtypes import DType


class Expansion:
    """Emits the instructions of one expression; each is a part of its site.

    `mask` goes to every instruction.
    """

    __slots__ = ("frame", "mask", "origin", "part", "tiles")

    def __init__(self, frame: Frame, origin: Origin, mask: object = None) -> None:
        self.frame = frame
        self.origin = origin
        self.mask = mask
        self.part = 0
        self.tiles = 0

    @property
    def legacy(self) -> bool:
        """Whether the call is one of NKI 0.1."""
        return self.frame.run.legacy

    def emit(self, opcode: str, *args: object, **keywords: object) -> None:
        """One instruction, destination first."""
        if self.mask is not None:
            keywords["mask"] = self.mask
        part, self.part = self.part, self.part + 1
        issue(opcode, args, keywords, self.frame, self.origin, part)

    def bare(self, opcode: str, *args: object, **keywords: object) -> None:
        """An instruction that the mask is not about: it works on whole tiles of the expansion."""
        part, self.part = self.part, self.part + 1
        issue(opcode, args, keywords, self.frame, self.origin, part)

    def anywhere(self, opcode: str, *args: object) -> None:
        """An instruction that stands for what other targets do in another way."""
        part, self.part = self.part, self.part + 1
        issue(opcode, args, {}, self.frame, self.origin, part, on_every_target=True)

    def tile(
        self, shape: Sequence[object], dtype: DType, memory: Memory = Memory.SBUF, name: str = ""
    ) -> View:
        """A tile for something in between."""
        part, self.tiles = self.tiles, self.tiles + 1
        given: dict[str, object] = {
            "shape": tuple(shape), "dtype": dtype, "buffer": memory, "name": name,
        }  # fmt: skip
        return allocate(self.frame, given, self.origin, part)

    def result(
        self,
        shape: Sequence[object],
        dtype: DType,
        asked: object = None,
        memory: Memory = Memory.SBUF,
    ) -> View:
        """Where the result goes: what the statement assigns to, else a new tile.

        `asked` is the `dtype` argument; without one the result takes the format of what it is
        assigned to (NKI 0.1: the assignment decides the buffer).
        """
        wanted = dtype_of(asked, self.origin) if asked is not None else None
        if self.legacy and len(shape) == 1:
            # In NKI 0.1 a tile of one axis is a column.
            shape = (shape[0], constant(1))
        place = self.frame.run.destination
        if place is not None and not place.accumulate:
            view = place.view
            fits = memory is Memory.PSUM or view.buffer.memory.on_chip
            if fits and wanted in (None, view.dtype) and _same(view, shape):
                place.taken = True
                return view
            if self.legacy and view.buffer.memory.on_chip:
                place.mask, place.origin = self.mask, self.origin
        return self.tile(shape, wanted or dtype, memory)

    def sum_to(self) -> View | None:
        """The tensor that a matmul of an augmented assignment adds to."""
        place = self.frame.run.destination
        if place is None or not place.accumulate or place.view.buffer.memory is not Memory.PSUM:
            return None
        place.taken = True
        return place.view


def _same(view: View, shape: Sequence[object]) -> bool:
    """Whether a tile of that shape fits into a view, apart from axes of size 1."""
    wanted = [int(n.value) for n in shape if isinstance(n, Number)]
    return [n for n in view.sizes if n != 1] == [n for n in wanted if n != 1]


def dtype_of(value: object, origin: Origin) -> DType:
    """A format, given as one or by its name."""
    match value:
        case DType():
            return value
        case str():
            try:
                return DType.named(value)
            except KeyError:
                raise KernelFault("value", f"no dtype is called {value[:40]!r}", origin) from None
        case OperatorName():
            raise KernelFault("type", f"{describe(value)} as a dtype", origin)
    raise Unsupported(f"{describe(value)} as a dtype", origin)


def promoted(left: DType, right: DType) -> DType:
    """The format of a result of two formats (NKI 0.1, NKI API common: type promotion).

    A float beats an integer, the wider beats the narrower; float16 with bfloat16 and int32
    with uint32 give float32.
    """
    if left is right:
        return left
    if left.is_float != right.is_float:
        return left if left.is_float else right
    if {left, right} in ({DType.FLOAT16, DType.BFLOAT16}, {DType.INT32, DType.UINT32}):
        return DType.FLOAT32
    if left.is_float:
        if left.bytes == right.bytes:
            return DType.FLOAT32 if left.bytes >= 2 else DType.BFLOAT16
        return left if left.bytes > right.bytes else right
    if DType.BOOL in (left, right):
        return right if left is DType.BOOL else left
    if left.bytes != right.bytes:
        wide, narrow = (left, right) if left.bytes > right.bytes else (right, left)
        signed = not str(narrow).startswith("u")
        if signed and str(wide).startswith("u"):
            return _signed_above(wide)
        return wide
    return _signed_above(left)


def _signed_above(dtype: DType) -> DType:
    """A signed format that holds what an unsigned one does."""
    return {1: DType.INT16, 2: DType.INT32}.get(dtype.bytes, DType.FLOAT32)


def repeated(view: View, shape: Sequence[Number], origin: Origin) -> View:
    """A view with its axes of size 1 repeated to a shape; the partition axis stays."""
    found = view
    while len(found.shape) < len(shape):
        found = views.expand_dim(found, len(found.shape) if len(found.shape) < 2 else 1, origin)
    for axis, extent in enumerate(shape):
        if found.sizes[axis] == int(extent.value):
            continue
        found = views.broadcast(found, axis, extent, origin)
    return found
