"""Loads, stores, copies and tensors of `nki.language`."""

from __future__ import annotations

from migrate.nki import allocation
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.language.elementwise import broadcast_shape, viewed
from migrate.nki.language.expansion import Expansion, dtype_of, repeated
from migrate.nki.language.reductions import named
from migrate.nki.operations import integer, items_of
from migrate.nki.symbols import Number, Origin, binary, constant
from migrate.nki.values import Builtin, Memory, OperatorName, View, describe
from migrate.numerics.dtypes import DType


def _load(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nl.load(src, dtype=None)`: a DMA into a new SBUF tile, or into what it is assigned to."""
    given = named("load", ("src", "mask", "dtype"), args, keywords, frame, origin)
    src = given.get("src")
    view = viewed(src, origin)
    if view is None:
        raise KernelFault("type", "nl.load takes a tensor", origin)
    e = Expansion(frame, origin, given.get("mask"))
    dst = e.result(view.shape, view.dtype, given.get("dtype"))
    if view.buffer.memory.on_chip:
        # A constant of the program, which stands for memory that a load reads.
        e.emit("tensor_copy", dst, src)
    else:
        e.emit("dma_copy", dst, src)
    return dst


def _store(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nl.store(dst, value)`: a DMA to HBM; what is in PSUM goes through SBUF."""
    given = named("store", ("dst", "value", "mask"), args, keywords, frame, origin)
    dst, value = given.get("dst"), given.get("value")
    place, view = viewed(dst, origin), viewed(value, origin)
    if place is None:
        raise KernelFault("type", f"nl.store to {describe(dst)}", origin)
    e = Expansion(frame, origin, given.get("mask"))
    if view is None:
        view = value = e.tile(place.shape, place.dtype)
        e.bare("memset", value, given.get("value"))
    if e.legacy and view.buffer.memory is Memory.PSUM:
        # NKI 0.1 made the copy itself (release notes of Neuron SDK 2.26).
        copied = e.tile(view.shape, view.dtype)
        e.bare("tensor_copy", copied, value)
        value = copied
    e.emit("dma_copy", dst, value)
    return None


def _copied(x: object, asked: object, mask: object, frame: Frame, origin: Origin) -> View:
    view = viewed(x, origin)
    if view is None:
        raise KernelFault("type", "a copy of a number", origin)
    e = Expansion(frame, origin, mask)
    dst = e.result(view.shape, view.dtype, asked)
    e.emit("tensor_copy" if view.buffer.memory.on_chip else "dma_copy", dst, x)
    return dst


def _static_cast(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    if "arr" in keywords or "input_data" in keywords:
        keywords = {
            ("x" if name in ("arr", "input_data") else name): v for name, v in keywords.items()
        }
    given = named("static_cast", ("x", "dtype"), args, keywords, frame, origin)
    return _copied(given.get("x"), given.get("dtype"), None, frame, origin)


def _like(name: str) -> Builtin:
    """`nl.zeros_like(x)`, `nl.empty_like(x)`."""

    def make(
        frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
    ) -> object:
        if "a" in keywords:
            keywords = {("x" if key == "a" else key): v for key, v in keywords.items()}
        given = named(name, ("x", "dtype", "buffer", "name"), args, keywords, frame, origin)
        view = viewed(given.pop("x", None), origin)
        if view is None:
            raise KernelFault("type", f"nl.{name} takes a tensor", origin)
        chip = view.buffer.memory if view.buffer.memory.on_chip else Memory.SBUF
        made = allocation.allocate(
            frame,
            {
                "shape": view.shape,
                "dtype": given.get("dtype") or view.dtype,
                "buffer": given.get("buffer") or chip,
                "name": given.get("name", ""),
            },
            origin,
        )
        if name == "zeros_like":
            Expansion(frame, origin).bare("memset", made, _zero(made.dtype))
        return made

    return Builtin(name, make)


def _zero(dtype: DType) -> Number:
    return constant(0.0 if dtype.is_float else 0)


def _where(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nl.where(condition, x, y)`: a copy of `y`, then of `x` where the condition holds."""
    given = named("where", ("condition", "x", "y", "dtype", "mask"), args, keywords, frame, origin)
    condition = viewed(given.get("condition"), origin)
    x, y = given.get("x"), given.get("y")
    if condition is None:
        raise KernelFault("type", "nl.where without a tensor as condition", origin)
    views = [view for view in (viewed(x, origin), viewed(y, origin)) if view is not None]
    shape = condition.shape
    for view in views:
        shape = broadcast_shape(_shaped(condition, shape, origin), view, origin)
    dtype = views[0].dtype if views else DType.FLOAT32
    e = Expansion(frame, origin, given.get("mask"))
    # The condition may be what the result is assigned to: it is read after the first copy.
    dst = e.tile(shape, dtype_of(given["dtype"], origin) if given.get("dtype") else dtype)
    if viewed(y, origin) is None:
        e.emit("memset", dst, y)
    else:
        e.emit("tensor_copy", dst, _over(y, dst, origin))
    chosen = x if viewed(x, origin) is None else _over(x, dst, origin)
    predicate = _over(given.get("condition"), dst, origin)
    e.emit("tensor_copy_predicated", dst, src=chosen, predicate=predicate)
    return dst


def _shaped(view: View, shape: tuple[Number, ...], origin: Origin) -> View:
    return view if len(shape) == len(view.shape) else repeated(view, shape, origin)


def _over(value: object, dst: View, origin: Origin) -> object:
    view = viewed(value, origin)
    assert view is not None
    return value if view.sizes == dst.sizes else repeated(view, dst.shape, origin)


def identity(frame: Frame, n: Number, dtype: DType, origin: Origin) -> View:
    """A square matrix of ones on the diagonal, made on the GpSimd engine.

    `nl.shared_constant` and `nl.shared_identity_matrix` put it into the program; that is the
    same content, read at another place.
    """
    e = Expansion(frame, origin)
    made = e.tile((n, n), dtype)
    e.bare("memset", made, constant(1.0 if dtype.is_float else 1))
    e.bare(
        "affine_select",
        made,
        pattern=((constant(-1), n),),
        channel_multiplier=constant(1),
        on_true_tile=made,
        on_false_value=_zero(dtype),
        cmp_op=OperatorName("equal"),
        offset=constant(0),
    )
    return made


def _identity_matrix(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    given = named("shared_identity_matrix", ("n", "dtype", "dst"), args, keywords, frame, origin)
    if given.get("dst") is not None:
        raise Unsupported("nl.shared_identity_matrix with dst", origin)
    dtype = dtype_of(given.get("dtype", DType.UINT8), origin)
    return identity(frame, integer(given.get("n"), origin), dtype, origin)


def _shared_constant(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    from migrate.nki.language.arrays import HostArray

    given = named("shared_constant", ("constant", "dtype"), args, keywords, frame, origin)
    array = given.get("constant")
    if not isinstance(array, HostArray):
        raise Unsupported(f"nl.shared_constant of {describe(array)}", origin)
    asked = given.get("dtype")
    return array.tensor(frame, dtype_of(asked, origin) if asked else array.dtype, origin)


def _counted(name: str) -> Builtin:
    """`nl.nc(n)` and `nl.spmd_dim(a, b)`: extents of a grid."""

    def compute(
        _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
    ) -> object:
        if keywords or not args:
            raise KernelFault("type", f"nl.{name} is called with the wrong arguments", origin)
        total = integer(args[0], origin)
        for item in args[1:]:
            total = binary("*", total, integer(item, origin), origin)
        return total

    return Builtin(name, compute)


def _printed(frame: Frame, _: tuple[object, ...], __: dict[str, object], ___: Origin) -> object:
    """`nl.device_print`: nothing that the kernel computes depends on it."""
    frame.run.step()
    return None


def _random(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    given = named("rand", ("shape", "dtype", "buffer", "name"), args, keywords, frame, origin)
    e = Expansion(frame, origin)
    shape = tuple(integer(n, origin) for n in items_of(given.get("shape"), origin))
    dst = e.result(shape, DType.FLOAT32, given.get("dtype"))
    # Before trn3 the numbers come from `rng`, how is not documented (nki.language.rand).
    e.anywhere("rand2", dst, constant(0.0), constant(1.0))
    return dst


def _dropout(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    given = named("dropout", ("x", "rate", "dtype", "mask"), args, keywords, frame, origin)
    view = viewed(given.get("x"), origin)
    if view is None:
        raise KernelFault("type", "nl.dropout takes a tensor", origin)
    e = Expansion(frame, origin, given.get("mask"))
    dst = e.result(view.shape, view.dtype, given.get("dtype"))
    e.emit("dropout", dst, given.get("x"), given.get("rate"))
    return dst


def _gather(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nl.gather_flattened`: `nisa.nc_n_gather` (its documented successor)."""
    names = ("data", "indices", "axis", "mask", "dtype")
    given = named("gather_flattened", names, args, keywords, frame, origin)
    data, indices = viewed(given.get("data"), origin), viewed(given.get("indices"), origin)
    axis = given.get("axis")
    if data is None or indices is None:
        raise KernelFault("type", "nl.gather_flattened takes two tensors", origin)
    if axis is not None and integer(axis, origin).value != 0:
        raise Unsupported("nl.gather_flattened along another axis", origin)
    e = Expansion(frame, origin, given.get("mask"))
    dst = e.result(indices.shape, data.dtype, given.get("dtype"))
    e.emit("nc_n_gather", dst, given.get("data"), given.get("indices"))
    return dst


FUNCTIONS: dict[str, object] = {
    "load": Builtin("load", _load),
    "store": Builtin("store", _store),
    "static_cast": Builtin("static_cast", _static_cast),
    "zeros_like": _like("zeros_like"),
    "empty_like": _like("empty_like"),
    "where": Builtin("where", _where),
    "shared_constant": Builtin("shared_constant", _shared_constant),
    "shared_identity_matrix": Builtin("shared_identity_matrix", _identity_matrix),
    "nc": _counted("nc"),
    "spmd_dim": _counted("spmd_dim"),
    "device_print": Builtin("device_print", _printed),
    "rand": Builtin("rand", _random),
    "dropout": Builtin("dropout", _dropout),
    "gather_flattened": Builtin("gather_flattened", _gather),
}
