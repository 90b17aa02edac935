"""Softmax and normalisation of `nki.language`, in the instructions of their documented formula."""

from __future__ import annotations

from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.language.elementwise import binary, unary, viewed
from migrate.nki.language.expansion import Expansion
from migrate.nki.language.reductions import axes_of, left_over, named, reduced
from migrate.nki.operations import number
from migrate.nki.symbols import Number, Origin, constant
from migrate.nki.values import Builtin, OperatorName, View
from migrate.numerics.dtypes import DType


def _alone(name: str, x: object, mask: object, origin: Origin) -> View:
    view = viewed(x, origin)
    if view is None:
        raise KernelFault("type", f"nl.{name} takes a tensor", origin)
    if mask is not None:
        raise Unsupported(f"nl.{name} with a mask", origin)
    return view


def _softmax(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """exp(x - max) divided by its sum along an axis."""
    names = ("x", "axis", "dtype", "compute_dtype", "mask")
    given = named("softmax", names, args, keywords, frame, origin)
    x = given.get("x")
    view = _alone("softmax", x, given.get("mask"), origin)
    place, frame.run.destination = frame.run.destination, None
    e = Expansion(frame, origin)
    axis = given.get("axis", constant(-1))
    axes = axes_of(axis, view, origin)
    largest = e.tile(left_over(view, axes, keepdims=True), DType.FLOAT32)
    given_axes = tuple(constant(a) for a in axes)
    e.emit("tensor_reduce", largest, OperatorName("maximum"), x, given_axes, keepdims=True)
    shifted = binary(e, "subtract", x, largest, DType.FLOAT32)
    powers = unary(e, "exp", shifted, DType.FLOAT32)
    total = reduced(e, "add", powers, axis, DType.FLOAT32, keepdims=True)
    frame.run.destination = place
    return binary(e, "divide", powers, total, given.get("dtype") or view.dtype)


def _rms_norm(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """x / sqrt(sum(x²) / n + epsilon) times weights."""
    names = ("x", "w", "axis", "n", "epsilon", "dtype", "compute_dtype", "mask")
    given = named("rms_norm", names, args, keywords, frame, origin)
    x = given.get("x")
    view = _alone("rms_norm", x, given.get("mask"), origin)
    place, frame.run.destination = frame.run.destination, None
    e = Expansion(frame, origin)
    squares = unary(e, "square", x, DType.FLOAT32)
    total = reduced(e, "add", squares, given.get("axis"), DType.FLOAT32, keepdims=True)
    count = number(given.get("n"), origin)
    if count.value == 0:
        raise KernelFault("division", "nl.rms_norm with n = 0", origin)
    factor = Number(1.0 / count.value, "reciprocal", (count,), origin)
    scaled = e.tile(total.shape, DType.FLOAT32)
    epsilon = number(given.get("epsilon", constant(1e-6)), origin)
    e.emit(
        "tensor_scalar", scaled, total, OperatorName("multiply"), factor,
        op1=OperatorName("add"), operand1=epsilon,
    )  # fmt: skip
    root = unary(e, "rsqrt", scaled, DType.FLOAT32)
    normed = binary(e, "multiply", x, root, DType.FLOAT32)
    frame.run.destination = place
    asked = given.get("dtype") or view.dtype
    weights = given.get("w")
    if weights is None:
        frame.run.destination = None
        return unary(e, "copy", normed, asked)
    return binary(e, "multiply", normed, weights, asked)


FUNCTIONS: dict[str, object] = {
    "softmax": Builtin("softmax", _softmax),
    "rms_norm": Builtin("rms_norm", _rms_norm),
}
