"""Attributes and methods of tensors (`nki.language.NkiTensor`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from migrate.nki import addresses, indirect, reshaping, views
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.operations import integer, items_of, key_of
from migrate.nki.registers import Register, settled
from migrate.nki.symbols import Number, Origin, constant
from migrate.nki.values import Builtin, Slice, View, describe
from migrate.numerics.dtypes import DType


def attribute(view: View, name: str) -> object:
    """The attribute, or `None` where there is none of that name."""
    match name:
        case "shape":
            return view.shape
        case "dtype":
            return view.dtype
        case "ndim":
            return constant(len(view.shape))
        case "size":
            return views.product(view.shape)
        case "buffer":
            return view.buffer.memory
        case "name":
            return view.buffer.name
        case "offset":
            return constant(view.offset)
        case "strides":
            return tuple(constant(stride) for stride in view.strides)
    if name == "broadcast_to":
        return Builtin(name, _broadcast_to(view))
    method = _METHODS.get(name)
    if method is None:
        return None
    parameters, compute = method

    def call(
        frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
    ) -> object:
        given = dict(zip(parameters, args, strict=False)) | keywords
        if len(args) > len(parameters) or not given.keys() <= set(parameters):
            raise KernelFault("type", f"{name} is called with the wrong arguments", origin)
        return compute(view, {k: settled(frame.run, value) for k, value in given.items()}, origin)

    return Builtin(name, call)


def _shape(value: object, origin: Origin) -> list[Number]:
    items = items_of(value, origin) if isinstance(value, tuple | list) else [value]
    return [integer(item, origin) for item in items]


def _axis(given: dict[str, object], name: str, origin: Origin) -> int:
    if name not in given:
        raise KernelFault("type", f"{name} is not given", origin)
    return int(integer(given[name], origin).value)


def _own_axis(view: View, given: dict[str, object], origin: Origin) -> int:
    axis = _axis(given, "dim", origin)
    if not 0 <= axis < len(view.shape):
        raise KernelFault("index", f"axis {axis} of a tensor of rank {len(view.shape)}", origin)
    return axis


def _reshape(view: View, given: dict[str, object], origin: Origin) -> object:
    return reshaping.reshape(view, _shape(given.get("shape"), origin), origin)


def _permute(view: View, given: dict[str, object], origin: Origin) -> object:
    order = [int(n.value) for n in _shape(given.get("dims"), origin)]
    return views.permute(view, order, origin)


def _expand(view: View, given: dict[str, object], origin: Origin) -> object:
    return views.expand_dim(view, _axis(given, "dim", origin), origin)


def _squeeze(view: View, given: dict[str, object], origin: Origin) -> object:
    return views.squeeze_dim(view, _axis(given, "dim", origin), origin)


def _broadcast(view: View, given: dict[str, object], origin: Origin) -> object:
    extent = integer(given.get("size"), origin)
    return views.broadcast(view, _axis(given, "dim", origin), extent, origin)


def _select(view: View, given: dict[str, object], origin: Origin) -> object:
    axis, index = _own_axis(view, given, origin), given.get("index")
    if isinstance(index, View | Register):
        return indirect.select(view, axis, index, origin)
    return _along(view, axis, integer(index, origin), origin)


def _vector_select(view: View, given: dict[str, object], origin: Origin) -> object:
    given = {"dim": constant(0), **given}
    axis = _own_axis(view, given, origin)
    return indirect.vector_select(view, axis, given.get("vector_offset"), origin)


def _slice(view: View, given: dict[str, object], origin: Origin) -> object:
    parts = [
        integer(given[name], origin) if given.get(name) is not None else None
        for name in ("start", "end", "step")
    ]
    return _along(view, _own_axis(view, given, origin), Slice(*parts), origin)


def _along(view: View, axis: int, key: object, origin: Origin) -> View:
    everything = Slice(None, None, None)
    keys: Sequence[object] = [key if a == axis else everything for a in range(len(view.shape))]
    return views.subscript(view, keys, origin)


def _reshape_dim(view: View, given: dict[str, object], origin: Origin) -> object:
    return _split(view, _own_axis(view, given, origin), _shape(given.get("shape"), origin), origin)


def _split(view: View, axis: int, inner: Sequence[Number], origin: Origin) -> View:
    """One axis as several; the size of one of them may be left open (-1)."""
    sizes = list(inner)
    unknown = [k for k, n in enumerate(sizes) if n.value == -1]
    if len(unknown) > 1:
        raise KernelFault("value", "more than one -1 in a shape", origin)
    if unknown:
        known = views.product([n for n in sizes if n.value != -1])
        extent = view.shape[axis]
        if known.value <= 0 or extent.value % known.value:
            raise KernelFault("value", f"{extent.value} does not divide by {known.value}", origin)
        sizes[unknown[0]] = addresses.divided(
            addresses.fixed(extent), known, (), remainder=False
        ).start
    if views.product(sizes).value != view.shape[axis].value:
        raise KernelFault("value", f"axis {axis} has {view.sizes[axis]} elements", origin)
    return reshaping.reshape(view, [*view.shape[:axis], *sizes, *view.shape[axis + 1 :]], origin)


def _flatten(view: View, given: dict[str, object], origin: Origin) -> object:
    first, last = _axis(given, "start_dim", origin), _axis(given, "end_dim", origin)
    return _joined(view, first, last, origin)


def _joined(view: View, first: int, last: int, origin: Origin) -> View:
    if not 0 <= first <= last < len(view.shape):
        raise KernelFault("index", f"axes {first} to {last} cannot be joined", origin)
    joined = views.product(view.shape[first : last + 1])
    return reshaping.reshape(view, [*view.shape[:first], joined, *view.shape[last + 1 :]], origin)


def _rearrange(view: View, given: dict[str, object], origin: Origin) -> object:
    """Axes split, reordered and joined by name."""
    source = _named(given.get("src_pattern"), origin)
    wanted = _named(given.get("dst_pattern"), origin)
    sizes: dict[object, Number] = {}
    fixed = given.get("fixed_sizes")
    if isinstance(fixed, dict):
        sizes = {key_of(name, origin): integer(n, origin) for name, n in fixed.items()}
    elif fixed is not None:
        raise KernelFault("type", f"fixed_sizes is {describe(fixed)}", origin)
    names = [name for group in source for name in group]
    if len(source) != len(view.shape) or len(set(names)) != len(names):
        raise KernelFault("value", "the pattern does not name the axes of the tensor", origin)
    if sorted(names) != sorted(name for group in wanted for name in group):
        raise KernelFault("value", "the patterns do not name the same axes", origin)
    axis = 0
    for group in source:
        if len(group) > 1:
            inner = [sizes.get(name, constant(-1)) for name in group]
            view = _split(view, axis, inner, origin)
        axis += len(group)
    order = [names.index(name) for group in wanted for name in group]
    if order != list(range(len(order))):
        view = views.permute(view, order, origin)
    for axis, group in enumerate(wanted):
        if len(group) > 1:
            view = _joined(view, axis, axis + len(group) - 1, origin)
    return view


def _named(pattern: object, origin: Origin) -> list[list[str]]:
    """The names of a pattern, those of one axis together."""
    if not isinstance(pattern, tuple | list):
        raise KernelFault("type", f"a pattern of axes is {describe(pattern)}", origin)
    found: list[list[str]] = []
    for item in pattern:
        group = list(item) if isinstance(item, tuple | list) else [item]
        if not group or not all(isinstance(name, str) for name in group):
            raise KernelFault("type", "a pattern of axes is made of names", origin)
        found.append([str(name) for name in group])
    return found


def _pattern(view: View, given: dict[str, object], origin: Origin) -> object:
    pairs: list[tuple[Number, Number]] = []
    for pair in items_of(given.get("pattern"), origin):
        numbers = _shape(pair, origin)
        if len(numbers) != 2:
            raise KernelFault("type", "an access pattern takes pairs of step and count", origin)
        pairs.append((numbers[0], numbers[1]))
    offset = given.get("offset")
    start = None if offset is None else integer(offset, origin)
    scalar, vector = given.get("scalar_offset"), given.get("vector_offset")
    dtype = _dtype(given["dtype"], origin) if given.get("dtype") is not None else None
    if scalar is None and vector is None and dtype in (None, view.dtype):
        return views.pattern(view, pairs, start, origin)
    dimension = given.get("indirect_dim")
    return indirect.pattern(
        view,
        pairs,
        start,
        origin,
        by_scalar=scalar,
        by_vector=vector,
        dimension=0 if dimension is None else int(integer(dimension, origin).value),
        dtype=dtype,
    )


def _dtype(value: object, origin: Origin) -> DType:
    if not isinstance(value, DType):
        raise KernelFault("type", f"{describe(value)} where a dtype is needed", origin)
    return value


def _view(view: View, given: dict[str, object], origin: Origin) -> object:
    return indirect.reinterpreted(view, _dtype(given.get("dtype"), origin), origin)


def _is_indirect(view: View, _: dict[str, object], __: Origin) -> object:
    return bool(view.indirect)


def _is_contiguous(view: View, _: dict[str, object], origin: Origin) -> object:
    """Row-major without gaps; on chip within a partition."""
    if not view.strided:
        raise Unsupported("whether a view without strides is contiguous", origin)
    step = 1
    first = 1 if view.buffer.memory.on_chip else 0
    for size, stride in reversed(list(zip(view.sizes, view.strides, strict=True))[first:]):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def _get_pattern(view: View, _: dict[str, object], origin: Origin) -> object:
    if not view.strided:
        raise Unsupported("the pattern of a view without strides", origin)
    return [
        [constant(stride), extent] for stride, extent in zip(view.strides, view.shape, strict=True)
    ]


def _indirect(_: View, __: dict[str, object], origin: Origin) -> object:
    raise Unsupported("offsets along the free axis, one for several partitions", origin)


Host = Callable[[Frame, tuple[object, ...], dict[str, object], Origin], object]
_Method = Callable[[View, dict[str, object], Origin], object]


def _broadcast_to(view: View) -> Host:
    """`tile.broadcast_to(shape)` of NKI 0.1."""

    def call(
        frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
    ) -> object:
        from migrate.nki.language.products import broadcast_to

        given = dict(zip(("shape",), args, strict=False)) | keywords
        if given.keys() != {"shape"}:
            raise KernelFault("type", "broadcast_to is called with the wrong arguments", origin)
        return broadcast_to(view, given["shape"], frame, origin)

    return call


_METHODS: dict[str, tuple[tuple[str, ...], _Method]] = {
    "reshape": (("shape",), _reshape),
    "permute": (("dims",), _permute),
    "expand_dim": (("dim",), _expand),
    "squeeze_dim": (("dim",), _squeeze),
    "broadcast": (("dim", "size"), _broadcast),
    "select": (("dim", "index"), _select),
    "vector_select": (("dim", "vector_offset"), _vector_select),
    "slice": (("dim", "start", "end", "step"), _slice),
    "reshape_dim": (("dim", "shape"), _reshape_dim),
    "flatten_dims": (("start_dim", "end_dim"), _flatten),
    "rearrange": (("src_pattern", "dst_pattern", "fixed_sizes"), _rearrange),
    "view": (("dtype",), _view),
    "reinterpret_cast": (("dtype",), _view),
    "is_indirect": ((), _is_indirect),
    "is_contiguous": ((), _is_contiguous),
    "get_pattern": ((), _get_pattern),
    "indirect": (("index", "num_elem"), _indirect),
    "ap": (
        ("pattern", "offset", "scalar_offset", "vector_offset", "indirect_dim", "dtype"),
        _pattern,
    ),
}
