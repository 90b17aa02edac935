"""Matrix products and transposes of `nki.language`.

`nl.matmul` contracts over the partitions: without `transpose_x` its first operand is transposed
by the Tensor engine first (NKI API reference, nl.matmul).
"""

from __future__ import annotations

from migrate.nki import reshaping, views
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.language.elementwise import viewed
from migrate.nki.language.expansion import Expansion, repeated
from migrate.nki.language.reductions import named
from migrate.nki.operations import integer, items_of, truth
from migrate.nki.symbols import Number, Origin, constant
from migrate.nki.values import Builtin, DynamicSlice, Memory, Slice, View
from migrate.nki.views import product
from migrate.numerics.dtypes import DType

MOVING = 512
"""Columns of one matmul (NKI API reference, nisa.nc_matmul: moving)."""


def _matmul(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    given = named("matmul", ("x", "y", "transpose_x", "mask"), args, keywords, frame, origin)
    x, y = given.get("x"), given.get("y")
    left, right = viewed(x, origin), viewed(y, origin)
    if left is None or right is None or len(left.shape) != 2 or len(right.shape) != 2:
        raise KernelFault("type", "nl.matmul multiplies two matrices", origin)
    e = Expansion(frame, origin, given.get("mask"))
    if not truth(given.get("transpose_x", False), origin):
        if e.mask is not None:
            raise Unsupported("nl.matmul with a mask that transposes", origin)
        x = left = transposed(e, left)
    if e.legacy and isinstance(x, View) and isinstance(y, View):
        x, y = _in_sbuf(e, x), _in_sbuf(e, y)
    return contracted(e, x, y, left, right)


def _in_sbuf(e: Expansion, view: View) -> View:
    """An operand where the Tensor engine reads it; the compiler of NKI 0.1 added the copy."""
    if view.buffer.memory is not Memory.PSUM:
        return view
    copied = e.tile(view.shape, view.dtype)
    e.bare("tensor_copy", copied, view)
    return copied


def contracted(e: Expansion, stationary: object, moving: object, left: View, right: View) -> View:
    """`stationary.T @ moving` in PSUM: added to what is there in an augmented assignment."""
    sums = e.sum_to()
    if sums is not None:
        e.emit("nc_matmul", sums, stationary, moving, accumulate=True)
        return sums
    free = right.shape[1:]
    dst = e.result((*left.shape[1:], *free), DType.FLOAT32, None, Memory.PSUM)
    if dst.buffer.memory is not Memory.PSUM:
        # A matmul writes to PSUM only; the assignment is a copy out of it.
        inner = e.tile((*left.shape[1:], *free), DType.FLOAT32, Memory.PSUM)
        e.emit("nc_matmul", inner, stationary, moving, **_anew(e))
        e.bare("tensor_copy", dst, inner)
        return dst
    e.emit("nc_matmul", dst, stationary, moving, **_anew(e))
    return dst


def _anew(e: Expansion) -> dict[str, object]:
    """In NKI 0.1 an assignment overwrites, whatever a matmul left there before."""
    return {"accumulate": False} if e.legacy else {}


def transposed(e: Expansion, view: View) -> View:
    """A matrix with its axes swapped, in SBUF."""
    shape = (view.shape[1], view.shape[0])
    middle = e.tile(shape, view.dtype, Memory.PSUM)
    e.bare("nc_transpose", middle, view)
    found = e.tile(shape, view.dtype)
    e.bare("tensor_copy", found, middle)
    return found


def _transpose(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    given = named("transpose", ("x", "dtype", "mask"), args, keywords, frame, origin)
    view = viewed(given.get("x"), origin)
    if view is None or len(view.shape) != 2:
        raise KernelFault("type", "nl.transpose takes a matrix", origin)
    e = Expansion(frame, origin, given.get("mask"))
    dtype = given.get("dtype")
    dst = e.result((view.shape[1], view.shape[0]), view.dtype, dtype, Memory.PSUM)
    if dst.buffer.memory is Memory.PSUM and dst.dtype is view.dtype:
        e.emit("nc_transpose", dst, given.get("x"))
        return dst
    middle = e.tile((view.shape[1], view.shape[0]), view.dtype, Memory.PSUM)
    e.emit("nc_transpose", middle, given.get("x"))
    e.bare("tensor_copy", dst, middle)
    return dst


def _load_transposed(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nl.load_transpose2d`: a DMA that swaps the axes."""
    given = named("load_transpose2d", ("src", "mask", "dtype"), args, keywords, frame, origin)
    src = given.get("src")
    view = viewed(src, origin)
    if view is None or len(view.shape) != 2:
        raise KernelFault("type", "nl.load_transpose2d takes a matrix", origin)
    e = Expansion(frame, origin, given.get("mask"))
    shape = (view.shape[1], view.shape[0])
    dtype = given.get("dtype")
    dst = e.result(shape, view.dtype, dtype)
    if dst.dtype is view.dtype:
        e.emit("dma_transpose", dst, src)
        return dst
    same = e.tile(shape, view.dtype)
    e.emit("dma_transpose", same, src)
    e.bare("tensor_copy", dst, same)
    return dst


def over_partitions(e: Expansion, view: View, rows: Number) -> View:
    """One partition's content in `rows` partitions: a product with a column of ones.

    (NKI 0.1 did it so: nl.broadcast_to, nki/guides/architecture: partition broadcast.)
    """
    flat = view
    if len(view.shape) > 2:
        flat = reshaping.reshape(view, (view.shape[0], product(view.shape[1:])), e.origin)
    ones = e.tile((constant(1), rows), view.dtype)
    e.bare("memset", ones, constant(1.0))
    found = e.tile((rows, flat.shape[1]), view.dtype)
    count = int(flat.shape[1].value)
    for start in range(0, count, MOVING):
        e.frame.run.step()
        size = flat.shape[1] if count <= MOVING else constant(min(MOVING, count - start))
        piece = DynamicSlice(constant(start), size)
        keys: list[object] = [Slice(None, None, None), piece]
        wide = e.tile((rows, size), DType.FLOAT32, Memory.PSUM)
        e.bare("nc_matmul", wide, ones, views.subscript(flat, keys, e.origin), **_anew(e))
        e.bare("tensor_copy", views.subscript(found, keys, e.origin), wide)
    if len(view.shape) > 2:
        return reshaping.reshape(found, (rows, *view.shape[1:]), e.origin)
    return found


def _broadcast_to(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    if "src" in keywords:
        keywords = {("x" if name == "src" else name): v for name, v in keywords.items()}
    given = named("broadcast_to", ("x", "shape", "dtype"), args, keywords, frame, origin)
    view = viewed(given.get("x"), origin)
    if view is None or not isinstance(given.get("x"), View):
        raise KernelFault("type", "nl.broadcast_to takes a tensor", origin)
    found = broadcast_to(view, given.get("shape"), frame, origin)
    asked = given.get("dtype")
    if asked is None:
        return found
    e = Expansion(frame, origin)
    dst = e.result(found.shape, view.dtype, asked)
    e.emit("tensor_copy", dst, found)
    return dst


def broadcast_to(view: View, given: object, frame: Frame, origin: Origin) -> View:
    """A tensor with its axes of size 1 repeated to a shape.

    Free axes, and those of tensors in HBM, are repeated by how they are read; over partitions
    the content is multiplied by ones.
    """
    shape = tuple(integer(n, origin) for n in items_of(given, origin))
    if len(shape) != len(view.shape):
        raise KernelFault("value", "broadcast_to to a shape of another rank", origin)
    for here, wanted in zip(view.shape, shape, strict=True):
        if here.value not in (1, wanted.value):
            raise KernelFault(
                "value",
                f"an axis of {here.value} does not repeat to {wanted.value}",
                origin,
                ((here, "==", wanted),),
            )
    if view.buffer.memory.on_chip and view.sizes[0] == 1 and int(shape[0].value) > 1:
        view = over_partitions(Expansion(frame, origin), view, shape[0])
    return repeated(view, shape, origin)


def _expand_dims(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    if "data" in keywords:
        keywords = {("x" if name == "data" else name): v for name, v in keywords.items()}
    given = named("expand_dims", ("x", "axis"), args, keywords, frame, origin)
    view = viewed(given.get("x"), origin)
    if view is None:
        raise KernelFault("type", "nl.expand_dims takes a tensor", origin)
    axes = given.get("axis")
    for item in axes if isinstance(axes, tuple | list) else (axes,):
        axis = int(integer(item, origin).value)
        view = views.expand_dim(view, axis + len(view.shape) + 1 if axis < 0 else axis, origin)
    return view


FUNCTIONS: dict[str, object] = {
    "matmul": Builtin("matmul", _matmul),
    "transpose": Builtin("transpose", _transpose),
    "load_transpose2d": Builtin("load_transpose2d", _load_transposed),
    "broadcast_to": Builtin("broadcast_to", _broadcast_to),
    "expand_dims": Builtin("expand_dims", _expand_dims),
}
