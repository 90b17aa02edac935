"""Operators of `nki.language` on tensors, called as functions or written with a sign.

The engine that runs a function is the one that the API reference lists for it: functions of one
operand that the Scalar engine has a table for are `activation`, the others run on the Vector
engine.  A quotient is a reciprocal and a product: no engine divides (NKI API reference, supported
math operators of nki.isa).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.indices import Masked
from migrate.nki.language.expansion import Expansion, promoted, repeated
from migrate.nki.operators import COMPARISONS, OPERATORS
from migrate.nki.symbols import ArithmeticFault, Number, Origin, constant, extremum
from migrate.nki.symbols import binary as arithmetic_of
from migrate.nki.symbols import unary as numeric
from migrate.nki.values import OperatorName, Unknown, View, describe
from migrate.numerics.dtypes import DType

_TRUTHS = COMPARISONS | {"logical_and", "logical_or", "logical_xor", "logical_not"}
_SYMMETRIC = frozenset(
    {"add", "multiply", "maximum", "minimum", "equal", "not_equal", "logical_and", "logical_or"}
    | {"logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "abs_max", "abs_min"}
)
_SIGNS = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "**": "power",
    "<<": "left_shift", ">>": "right_shift", "&": "bitwise_and", "|": "bitwise_or",
    "^": "bitwise_xor", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
    "==": "equal", "!=": "not_equal", "%": "mod",
}  # fmt: skip


def viewed(value: object, origin: Origin) -> View | None:
    """The tensor of an operand, with a mask on it or without; `None` for a number."""
    match value:
        case View():
            return value
        case Masked():
            return value.view
        case Number() | bool():
            return None
        case Unknown():
            raise Unsupported(f"{value.text}: {value.reason}", origin)
    raise KernelFault("type", f"{describe(value)} where a tensor or a number is needed", origin)


def call_operator(
    name: OperatorName,
    args: tuple[object, ...],
    keywords: dict[str, object],
    frame: Frame,
    origin: Origin,
) -> object:
    """`nl.add(x, y, dtype=None)`, `nl.exp(x, dtype=None)` and their like."""
    given = dict(keywords)
    dtype, mask = given.pop("dtype", None), given.pop("mask", None)
    operands = [*args, *(given.pop(key) for key in ("x", "src", "y") if key in given)]
    legacy = frame.run.legacy
    if (given or mask is not None) and not legacy:
        unknown = next(iter(given), "mask")
        raise KernelFault("type", f"nl.{name.name} has no parameter {unknown}", origin)
    views = [viewed(operand, origin) for operand in operands]
    if not any(views) and all(isinstance(operand, Number) for operand in operands):
        return _of_numbers(name.name, [x for x in operands if isinstance(x, Number)], origin)
    if not any(views) or len(operands) > 2:
        raise Unsupported(f"nl.{name.name} without a tensor", origin)
    e = Expansion(frame, origin, mask)
    if len(operands) == 1:
        return unary(e, name.name, operands[0], dtype)
    return binary(e, name.name, operands[0], operands[1], dtype)


def _of_numbers(name: str, numbers: list[Number], origin: Origin) -> Number:
    """A function of numbers, as NumPy's of that name computes while a kernel is specialised."""
    signs = {word: sign for sign, word in _SIGNS.items() if sign in "+-*/**%"}
    try:
        match name, numbers:
            case _, [left, right] if name in signs:
                return arithmetic_of(signs[name], left, right, origin)
            case "maximum", [_, _]:
                return extremum("max", tuple(numbers))
            case "minimum", [_, _]:
                return extremum("min", tuple(numbers))
            case "square", [x]:
                return arithmetic_of("*", x, x, origin)
            case "negative" | "abs", [x]:
                return numeric("abs", x, origin) if name == "abs" else numeric("-", x, origin)
            case _, [x] if name in _FLOATING:
                return Number(_FLOATING[name](float(x.value)), name, (x,), origin)
    except (ArithmeticFault, ValueError, OverflowError, ZeroDivisionError) as fault:
        raise KernelFault("value", f"{name}: {fault}", origin) from None
    raise Unsupported(f"nl.{name} of numbers", origin)


_FLOATING: dict[str, Callable[[float], float]] = {
    "cos": math.cos,
    "exp": math.exp,
    "log": math.log,
    "reciprocal": lambda x: 1.0 / x,
    "rsqrt": lambda x: 1.0 / math.sqrt(x),
    "sin": math.sin,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
}


def operate(sign: str, left: object, right: object, frame: Frame, origin: Origin) -> object:
    """`left + right` and the like, of which a side is a tensor (NKI 0.1)."""
    name = _SIGNS.get(sign)
    if name is None:
        raise Unsupported(f"{sign} of tensors", origin)
    return binary(Expansion(frame, origin), name, left, right, None)


def signed(sign: str, value: object, frame: Frame, origin: Origin) -> object:
    """`-tile`, `~tile` (NKI 0.1)."""
    e = Expansion(frame, origin)
    match sign:
        case "+":
            return value
        case "-":
            return unary(e, "negative", value, None)
        case _:
            return unary(e, "invert", value, None)


def unary(e: Expansion, name: str, x: object, asked: object) -> View:
    """A function of one tensor."""
    view = viewed(x, e.origin)
    assert view is not None
    dtype = DType.BOOL if name in _TRUTHS and e.legacy else view.dtype
    dst = e.result(view.shape, dtype, asked)
    unary_to(e, dst, name, x)
    return dst


def unary_to(e: Expansion, dst: View, name: str, x: object) -> None:
    """A function of one tensor into another."""
    operator = OPERATORS.get(name)
    view = viewed(x, e.origin)
    assert view is not None
    match name:
        case "copy":
            e.emit("tensor_copy" if view.buffer.memory.on_chip else "dma_copy", dst, x)
        case "reciprocal":
            e.emit("reciprocal", dst, x)
        case "negative":
            e.emit("tensor_scalar", dst, x, OperatorName("multiply"), constant(-1.0))
        case "logical_not":
            e.emit("tensor_scalar", dst, x, OperatorName("equal"), constant(0.0))
        case "invert":
            e.emit("tensor_scalar", dst, x, OperatorName("bitwise_xor"), _ones(view.dtype, e))
        case "cos":
            quarter = e.tile((view.shape[0], constant(1)), DType.FLOAT32)
            e.bare("memset", quarter, constant(math.pi / 2))
            e.emit("activation", dst, OperatorName("sin"), x, bias=quarter)
        case _ if operator is not None and "activation" in operator.uses:
            e.emit("activation", dst, OperatorName(name), x)
        case _:
            raise Unsupported(f"nl.{name}: which instructions it stands for", e.origin)


def _ones(dtype: DType, e: Expansion) -> Number:
    if not dtype.is_integer:
        raise KernelFault("type", f"the bits of a {dtype}", e.origin)
    signed_format = not str(dtype).startswith("u")
    return constant(-1 if signed_format else (1 << (8 * dtype.bytes)) - 1)


def binary(e: Expansion, name: str, x: object, y: object, asked: object) -> View:
    """A function of two operands, of which one may be a number."""
    left, right = viewed(x, e.origin), viewed(y, e.origin)
    if left is None and right is None:
        raise Unsupported(f"nl.{name} without a tensor", e.origin)
    if left is None or right is None:
        view = left if left is not None else right
        assert view is not None
        dtype = _format(e, name, view.dtype, view.dtype)
        dst = e.result(view.shape, dtype, asked)
        _with_number(e, dst, name, x, y, reverse=left is None)
        return dst
    shape = broadcast_shape(left, right, e.origin)
    dst = e.result(shape, _format(e, name, left.dtype, right.dtype), asked)
    _with_tensor(e, dst, name, x, y, left, right)
    return dst


def apply_to(e: Expansion, dst: View, sign: str, x: object, y: object) -> None:
    """`x sign y` into a tensor."""
    name = _SIGNS.get(sign)
    left, right = viewed(x, e.origin), viewed(y, e.origin)
    if name is None:
        raise Unsupported(f"{sign} of tensors", e.origin)
    if left is None or right is None:
        _with_number(e, dst, name, x, y, reverse=left is None)
    else:
        _with_tensor(e, dst, name, x, y, left, right)


def _format(e: Expansion, name: str, left: DType, right: DType) -> DType:
    """The format of a result: promoted in NKI 0.1, the first operand's later."""
    if name in _TRUTHS and e.legacy:
        return DType.BOOL
    return promoted(left, right) if e.legacy else left


def _with_number(
    e: Expansion, dst: View, name: str, x: object, y: object, *, reverse: bool
) -> None:
    tile, number = (y, x) if reverse else (x, y)
    plain = constant(int(number)) if isinstance(number, bool) else number
    if name == "divide" and not reverse:
        assert isinstance(plain, Number)
        if plain.value == 0:
            raise Unsupported("a quotient by the number 0", e.origin)
        one = Number(1.0 / plain.value, "reciprocal", (plain,), e.origin)
        e.emit("tensor_scalar", dst, tile, OperatorName("multiply"), one)
        return
    if name == "divide":
        view = viewed(tile, e.origin)
        assert view is not None
        turned = e.tile(view.shape, DType.FLOAT32)
        e.emit("reciprocal", turned, tile)
        e.emit("tensor_scalar", dst, turned, OperatorName("multiply"), plain)
        return
    options: dict[str, object] = {}
    if reverse and name not in _SYMMETRIC:
        options["reverse0"] = True
    e.emit("tensor_scalar", dst, tile, _operator(name, e), plain, **options)


def _with_tensor(
    e: Expansion, dst: View, name: str, x: object, y: object, left: View, right: View
) -> None:
    if name == "divide":
        turned = e.tile(right.shape, DType.FLOAT32)
        e.emit("reciprocal", turned, y)
        _with_tensor(e, dst, "multiply", x, turned, left, turned)
        return
    operator = _operator(name, e)
    if left.sizes != right.sizes and left.sizes[0] == right.sizes[0]:
        for tile, column, wide, narrow, swapped in (
            (x, y, left, right, False), (y, x, right, left, True)
        ):  # fmt: skip
            # A column is an operand of its own, as long as its format is the engine's.
            if (
                narrow.free_elements == 1
                and narrow.dtype is DType.FLOAT32
                and (wide.sizes == dst.sizes and not OPERATORS[name].bitvec)
            ):
                options = {"reverse0": True} if swapped and name not in _SYMMETRIC else {}
                flat = narrow if len(narrow.shape) == 2 else _column(narrow, e.origin)
                given = column if isinstance(column, Masked) else flat
                e.emit("tensor_scalar", dst, tile, operator, given, **options)
                return
    first = _spread(e, x, left, dst)
    second = _spread(e, y, right, dst)
    e.emit("tensor_tensor", dst, first, second, operator)


def _column(view: View, origin: Origin) -> View:
    from migrate.nki import reshaping

    return reshaping.reshape(view, (view.shape[0], constant(1)), origin)


def _spread(e: Expansion, value: object, view: View, dst: View) -> object:
    """An operand over the shape of the result."""
    if view.sizes == dst.sizes:
        return value
    if isinstance(value, Masked):
        raise Unsupported("a mask on an operand that is broadcast", e.origin)
    if view.sizes[0] == 1 and dst.sizes[0] > 1:
        from migrate.nki.language.products import over_partitions

        view = over_partitions(e, view, dst.shape[0])
    return repeated(view, dst.shape, e.origin)


def _operator(name: str, e: Expansion) -> OperatorName:
    operator = OPERATORS.get(name)
    if operator is None or not operator.uses & {"binary", "scalar"}:
        raise Unsupported(f"nl.{name}: which instructions it stands for", e.origin)
    return OperatorName(name)


def broadcast_shape(left: View, right: View, origin: Origin) -> tuple[Number, ...]:
    """The shape of a result of two tensors: axes of size 1 repeat."""
    rank = max(len(left.shape), len(right.shape))
    a, b = _padded(left, rank), _padded(right, rank)
    found: list[Number] = []
    for one, other in zip(a, b, strict=True):
        if one.value != other.value and 1 not in (one.value, other.value):
            raise KernelFault(
                "value",
                f"tensors of shapes {left.sizes} and {right.sizes} do not fit",
                origin,
                ((one, "==", other),),
            )
        found.append(other if one.value == 1 else one)
    return tuple(found)


def _padded(view: View, rank: int) -> tuple[Number, ...]:
    missing = rank - len(view.shape)
    return (*view.shape[:1], *(constant(1),) * missing, *view.shape[1:])
