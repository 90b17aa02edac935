"""Reductions of `nki.language` along free axes, and what is made of them.

All are `tensor_reduce` on the Vector engine.  The partition axis is none of them: NKI refuses
it (NKI API reference, nl.sum and its like: axis).
"""

from __future__ import annotations

from migrate.nki import views
from migrate.nki.allocation import arguments
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.language.elementwise import binary, viewed
from migrate.nki.language.expansion import Expansion
from migrate.nki.operations import integer, truth
from migrate.nki.symbols import Number, Origin, constant
from migrate.nki.values import Builtin, OperatorName, View
from migrate.nki.views import product
from migrate.numerics.dtypes import DType

_NAMES = ("x", "axis", "dtype", "mask", "keepdims")


def named(
    function: str,
    names: tuple[str, ...],
    args: tuple[object, ...],
    keywords: dict[str, object],
    frame: Frame,
    origin: Origin,
) -> dict[str, object]:
    """Arguments by name; NKI 0.1 took any keyword and ignored those it did not know."""
    if frame.run.legacy:
        keywords = {name: value for name, value in keywords.items() if name in names}
    given = arguments(function, names, args, keywords, origin)
    if "mask" in given and not frame.run.legacy:
        raise KernelFault("type", f"nl.{function} has no parameter mask", origin)
    return given


def axes_of(given: object, view: View, origin: Origin) -> tuple[int, ...]:
    """Free axes by number, in order.  Raises for the partition axis."""
    if given is None:
        raise KernelFault("type", "a reduction without axis", origin)
    items = given if isinstance(given, tuple | list) else (given,)
    rank = len(view.shape)
    found = []
    for item in items:
        axis = int(integer(item, origin).value)
        axis = axis + rank if axis < 0 else axis
        if not 0 <= axis < rank:
            raise KernelFault("value", f"axis {axis} of a tensor of rank {rank}", origin)
        found.append(axis)
    if 0 in found:
        raise KernelFault("value", "a reduction over the partition axis (axis 0)", origin)
    return tuple(sorted(set(found)))


def left_over(view: View, axes: tuple[int, ...], keepdims: bool) -> tuple[Number, ...]:
    """The shape after a reduction: of at least two axes, as every tile is."""
    if keepdims:
        return tuple(constant(1) if k in axes else n for k, n in enumerate(view.shape))
    shape = tuple(n for k, n in enumerate(view.shape) if k not in axes)
    return shape if len(shape) > 1 else (*shape, constant(1))


def reduced(
    e: Expansion, operator: str, x: object, axis: object, asked: object, keepdims: bool = False
) -> View:
    """One `tensor_reduce`."""
    view = viewed(x, e.origin)
    if view is None:
        raise KernelFault("type", "a reduction of a number", e.origin)
    axes = axes_of(axis, view, e.origin)
    dst = e.result(left_over(view, axes, keepdims), view.dtype, asked)
    _emit(e, dst, operator, x, axes)
    return dst


def _emit(e: Expansion, dst: View, operator: str, x: object, axes: tuple[int, ...]) -> None:
    x, axes = trailing(x, axes, e.origin)
    view = viewed(x, e.origin)
    assert view is not None
    kept = len(dst.shape) == len(view.shape)
    given = tuple(constant(axis) for axis in axes)
    e.emit("tensor_reduce", dst, OperatorName(operator), x, given, keepdims=kept)


def trailing(x: object, axes: tuple[int, ...], origin: Origin) -> tuple[object, tuple[int, ...]]:
    """The operand read with its reduced axes last, which costs nothing."""
    view = viewed(x, origin)
    assert view is not None
    rank = len(view.shape)
    wanted = tuple(range(rank - len(axes), rank))
    if axes == wanted:
        return x, axes
    if not isinstance(x, View):
        raise Unsupported("a mask with a reduction over other axes than the last", origin)
    order = [axis for axis in range(rank) if axis not in axes]
    return views.permute(x, [*order, *axes], origin), wanted


def _reduction(name: str, operator: str) -> Builtin:
    def compute(
        frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
    ) -> object:
        given = named(name, _NAMES, args, keywords, frame, origin)
        e = Expansion(frame, origin, given.get("mask"))
        keep = truth(given.get("keepdims", False), origin)
        return reduced(e, operator, given.get("x"), given.get("axis"), given.get("dtype"), keep)

    return Builtin(name, compute)


def mean_of(e: Expansion, x: object, axis: object, asked: object, keepdims: bool) -> View:
    """A sum, and a factor."""
    view = viewed(x, e.origin)
    if view is None:
        raise KernelFault("type", "the mean of a number", e.origin)
    if e.mask is not None:
        raise Unsupported("nl.mean with a mask", e.origin)
    axes = axes_of(axis, view, e.origin)
    shape = left_over(view, axes, keepdims)
    total = e.tile(shape, DType.FLOAT32)
    _emit(e, total, "add", x, axes)
    dst = e.result(shape, view.dtype, asked)
    count = product([view.shape[axis] for axis in axes])
    factor = Number(1.0 / int(count.value), "reciprocal", (count,), e.origin)
    e.bare("tensor_scalar", dst, total, OperatorName("multiply"), factor)
    return dst


def _mean(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    given = named("mean", _NAMES, args, keywords, frame, origin)
    e = Expansion(frame, origin, given.get("mask"))
    keep = truth(given.get("keepdims", False), origin)
    return mean_of(e, given.get("x"), given.get("axis"), given.get("dtype"), keep)


def _variance(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """The mean of the squares of what is left when the mean is taken off."""
    given = named("var", _NAMES, args, keywords, frame, origin)
    if given.get("mask") is not None:
        raise Unsupported("nl.var with a mask", origin)
    x = given.get("x")
    view = viewed(x, origin)
    if view is None:
        raise KernelFault("type", "the variance of a number", origin)
    place, frame.run.destination = frame.run.destination, None
    e = Expansion(frame, origin)
    center = mean_of(e, x, given.get("axis"), DType.FLOAT32, True)
    apart = binary(e, "subtract", x, center, DType.FLOAT32)
    squares = binary(e, "multiply", apart, apart, DType.FLOAT32)
    frame.run.destination = place
    keep = truth(given.get("keepdims", False), origin)
    return mean_of(e, squares, given.get("axis"), given.get("dtype") or view.dtype, keep)


REDUCTIONS = {
    "sum": "add",
    "max": "maximum",
    "min": "minimum",
    "prod": "multiply",
    "all": "logical_and",
    "amax": "maximum",
    "amin": "minimum",
}
"""The operator of a reduction, which in NKI 0.1 its name may stand for."""

FUNCTIONS: dict[str, object] = {
    **{name: _reduction(name, REDUCTIONS[name]) for name in ("sum", "max", "min", "prod", "all")},
    "mean": Builtin("mean", _mean),
    "var": Builtin("var", _variance),
}
