"""The functions and methods of torch, NumPy and JAX that make, move and cast arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from migrate.host.shapes import after, plain, product
from migrate.host.values import (
    UNKNOWN,
    Array,
    Cast,
    Created,
    Extent,
    Flattened,
    Inserted,
    Opaque,
    Padded,
    Parameter,
    Permuted,
    Reshaped,
    Result,
    Shape,
    Step,
    Swapped,
    Transposed,
    Unknown,
    moved,
    number,
    opaque,
    whole,
)
from migrate.ir.index import Index, ceil_div
from migrate.numerics.dtypes import DType
from migrate.source import Span

MAX_RANK: Final = 8

_MADE = frozenset(
    {"rand", "randn", "random", "random_sample", "zeros", "ones", "empty", "full", "normal",
     "uniform", "standard_normal", "randint", "integers", "zeros_like", "ones_like", "empty_like",
     "rand_like", "randn_like", "arange", "ndarray", "eye", "identity", "full_like", "tensor"}
)  # fmt: skip
_INTEGERS = frozenset({"randint", "integers", "arange"})
_SAME = frozenset(
    {"to", "cuda", "cpu", "contiguous", "clone", "copy", "detach", "requires_grad_", "numpy",
     "asarray", "array", "ascontiguousarray", "float", "half", "bfloat16", "int", "astype", "type",
     "from_numpy", "as_tensor", "device_put", "tensor", "block_until_ready"}
)  # fmt: skip
"""What gives the same elements, perhaps in another format."""

_CASTS = {"float": DType.FLOAT32, "half": DType.FLOAT16, "bfloat16": DType.BFLOAT16,
          "int": DType.INT32}  # fmt: skip
_FORMATTED = frozenset({"to", "type", "astype"})
_ELEMENTWISE = frozenset({"round", "abs"})
_FUNCTIONS = frozenset(
    {"matmul", "dot", "transpose", "reshape", "pad", "swapaxes", "permute", "permute_dims",
     "flatten", "ravel", "expand_dims", "unsqueeze", "moveaxis", "movedim", "t", "rearrange"}
)  # fmt: skip
"""Methods that are functions of a module, too, with the array first."""

_COUNTS = frozenset({"nc", "spmd_dim", "cdiv", "ceil_div", "div_ceil"})

_ASKED = frozenset(
    {"stride", "item", "tolist", "dim", "ndimension", "numel", "nelement", "element_size",
     "data_ptr", "get_device", "is_contiguous"}
)  # fmt: skip
"""Methods that give no array."""

OPERATORS: Final[Mapping[str, Callable[[int, int], int | float]]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mult": lambda a, b: a * b,
    "FloorDiv": lambda a, b: a // b,
    "Mod": lambda a, b: a % b,
    "Div": lambda a, b: a / b,
}


def extents_of(value: object) -> Shape | None:
    """A tuple of extents, or one alone; `None` where one of them is none."""
    parts = value if isinstance(value, tuple) else (value,)
    if len(parts) > MAX_RANK:
        return None
    found = tuple(n for part in parts if (n := number(part)) is not None)
    if len(found) != len(parts) or any(isinstance(n, int) and n <= 0 for n in found):
        return None
    return found


def dtype_of(value: object) -> DType | None:
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        try:
            return DType.named(value)
        except KeyError:
            return None
    return None


def called(
    holder: str, name: str, given: Sequence[object], keywords: Mapping[str, object], span: Span
) -> object:
    """`np.zeros((4, 5))`, `torch.rand(4, 5)`, `np.transpose(x)` and the like."""
    if name in _COUNTS:
        return builtin(name, given)
    first = given[0] if given else keywords.get("input", keywords.get("a", UNKNOWN))
    if isinstance(first, Array):
        if name in _SAME or name in _ELEMENTWISE:
            return method(first, name, given[1:], keywords, span)
        if name == "pad":
            return _padded(first, holder, given[1:], keywords, span)
        if name in _FUNCTIONS:
            return method(first, name, given[1:], keywords, span)
    return made(name, given, keywords, span)


def made(name: str, given: Sequence[object], keywords: Mapping[str, object], span: Span) -> object:
    """An array that a function makes, be it of a module or of a generator of random numbers."""
    if name in _MADE:
        return _made(name, given, keywords)
    if any(map(followed, (*given, *keywords.values()))):
        return opaque(f"{name} of an array is not followed", span)
    return UNKNOWN


def _made(name: str, given: Sequence[object], keywords: Mapping[str, object]) -> object:
    dtype = dtype_of(keywords.get("dtype"))
    if name.endswith("_like"):
        like = given[0] if given else None
        if isinstance(like, Array):
            return Array(Created(name == "zeros_like"), like.shape, dtype or like.dtype)
        return UNKNOWN
    shape: object = keywords.get("size", keywords.get("shape", UNKNOWN))
    if isinstance(shape, Unknown):
        if name in ("eye", "identity") and given:
            shape = (given[0], given[0])
        elif name in ("normal", "uniform", "randint", "integers"):
            shape = next((g for g in given if isinstance(g, tuple)), UNKNOWN)
        elif name == "arange":
            ends = [g for g in given if isinstance(g, int)]
            count = ends[0] if len(ends) == 1 else ends[1] - ends[0] if len(ends) == 2 else 0
            shape = (count,)
        elif name == "tensor":
            shape = (len(given[0]),) if given and isinstance(given[0], tuple) else UNKNOWN
        elif given and isinstance(given[0], tuple):
            shape = given[0]
            dtype = dtype or next((d for d in map(dtype_of, given[1:]) if d), None)
        else:
            shape = tuple(given)
    extents = extents_of(shape)
    if not extents:
        return UNKNOWN
    default = DType.INT32 if name in _INTEGERS else DType.FLOAT32
    return Array(Created(name == "zeros"), extents, dtype or default)


def method(
    array: Array, name: str, given: Sequence[object], keywords: Mapping[str, object], span: Span
) -> object:
    """`x.reshape(...)`, `x.to(...)` and the like."""
    if name in _ASKED or isinstance(array.root, Opaque):
        return UNKNOWN if name in _ASKED else array
    if name in _SAME:
        return _cast(array, name, given, keywords, span)
    if name in _ELEMENTWISE and array.plain:
        return array
    step = _step(array, name, given, keywords, span)
    if isinstance(step, tuple):
        for one in step:
            array = stepped(array, one)
        return array
    if name in ("new_zeros", "new_empty", "new_ones", "new_full"):
        made = extents_of(given[0] if given and isinstance(given[0], tuple) else tuple(given))
        return Array(Created(name == "new_zeros"), made, array.dtype) if made else UNKNOWN
    if array.plain:
        return UNKNOWN
    if name in ("reshape", "view"):
        return opaque(f"the extents of {name} are not known", span)
    return opaque(f"{name} is not followed", span)


def stepped(array: Array, step: Step) -> Array:
    """The array after a step, of unknown shape where its own is unknown."""
    if array.shape is None:
        return moved(array, step, None)
    shape = after(step, array.shape)
    if shape is None:
        return opaque("a step that does not fit the shape", step.span)
    return moved(array, step, tuple(map(plain, shape)))


def _cast(
    array: Array, name: str, given: Sequence[object], keywords: Mapping[str, object], span: Span
) -> Array:
    wanted = next((d for d in map(dtype_of, (*given, *keywords.values())) if d), None)
    wanted = wanted or _CASTS.get(name)
    if wanted is not None:
        return replace(moved(array, Cast(wanted, span), array.shape), dtype=wanted)
    unknown = any(isinstance(v, Unknown) for v in (*given, *keywords.values()))
    if not array.plain and unknown and (name in _FORMATTED or "dtype" in keywords):
        return replace(array, dtype=None)
    return array


def _listed(given: Sequence[object]) -> tuple[object, ...]:
    """`f(x, (1, 0))` as `f(x, 1, 0)`."""
    first = given[0] if given else ()
    return first if isinstance(first, tuple) else tuple(given)


def _step(
    array: Array, name: str, given: Sequence[object], keywords: Mapping[str, object], span: Span
) -> tuple[Step, ...] | None:
    """The steps that a method is; `None` where it is not understood."""
    if not given and keywords:
        given = [v for k, v in keywords.items() if k in _POSITIONS]
    parts = _listed(given)
    axes = tuple(p for p in parts if isinstance(p, int) and not isinstance(p, bool))
    integers = len(axes) == len(parts)
    match name:
        case "t" if not given:
            return (Transposed(span),)
        case "transpose" if not given:
            return (Transposed(span),)
        case "transpose" | "permute" | "permute_dims" if integers:
            if name == "transpose" and len(axes) == 2 and not isinstance(given[0], tuple):
                return (Swapped(axes[0], axes[1], span),)
            return (Permuted(axes, span),)
        case "swapaxes" | "swapdims" if integers and len(axes) == 2:
            return (Swapped(axes[0], axes[1], span),)
        case "reshape" | "view":
            return _reshaped(parts, span)
        case "flatten" | "ravel":
            if integers and name == "flatten" and axes:
                return (Flattened(axes[0], axes[1] if len(axes) > 1 else -1, span),)
            return (Reshaped((None,), span),) if not given else None
        case "unsqueeze" | "expand_dims" if integers and len(axes) == 1:
            return (Inserted(axes[0], span),)
        case "moveaxis" | "movedim" if integers and len(axes) == 2 and array.shape is not None:
            return _carried(len(array.shape), axes[0], axes[1], span)
        case "rearrange" if parts and isinstance(parts[0], str):
            return _rearranged(parts[0], span)
        case _:
            return None


_POSITIONS = ("dim0", "dim1", "dims", "dim", "axis", "axes", "shape", "newshape", "source",
              "destination", "axis1", "axis2", "start_dim", "end_dim")  # fmt: skip


def _reshaped(parts: tuple[object, ...], span: Span) -> tuple[Step, ...] | None:
    made: list[Extent | None] = []
    for part in parts:
        extent = number(part)
        if extent is None or len(made) >= MAX_RANK:
            return None
        made.append(None if extent == -1 else extent)
    if made.count(None) > 1 or any(isinstance(e, int) and e <= 0 for e in made):
        return None
    return (Reshaped(tuple(made), span),)


def _carried(rank: int, source: int, target: int, span: Span) -> tuple[Step, ...] | None:
    if not (-rank <= source < rank and -rank <= target < rank):
        return None
    order = list(range(rank))
    axis = order.pop(source)
    order.insert(target % rank, axis)
    return (Permuted(tuple(order), span),)


def _rearranged(pattern: str, span: Span) -> tuple[Step, ...] | None:
    """A pattern of einops that only puts axes in another order."""
    left, arrow, right = pattern.partition("->")
    before, behind = left.split(), right.split()
    if not arrow or len(set(before)) != len(before) or sorted(before) != sorted(behind):
        return None
    if not all(name.isidentifier() for name in before) or len(before) > MAX_RANK:
        return None
    return (Permuted(tuple(before.index(name) for name in behind), span),)


_NUMPY = frozenset({"np", "jnp", "numpy", "jax.numpy", "onp"})


def _padded(
    array: Array, holder: str, given: Sequence[object], keywords: Mapping[str, object], span: Span
) -> Array:
    """`F.pad` counts pairs from the last axis, `np.pad` has one for every axis from the first."""
    amounts = given[0] if given else keywords.get("pad", keywords.get("pad_width", UNKNOWN))
    mode = given[1] if len(given) > 1 else keywords.get("mode", "constant")
    fills = [*given[2:3], *(keywords[k] for k in ("value", "constant_values") if k in keywords)]
    if mode != "constant" or any(f not in (0, 0.0, None) or f is False for f in fills):
        return opaque("it is padded with something else than zeros", span)
    if not isinstance(amounts, tuple):
        return opaque("the amounts of padding are not known", span)
    nested = bool(amounts) and all(isinstance(pair, tuple) for pair in amounts)
    edges: list[tuple[int, Extent, Extent]] = []
    if nested:
        pairs = [pair for pair in amounts if isinstance(pair, tuple)]
    elif holder in _NUMPY:
        if array.shape is None or len(amounts) != 2:
            return opaque("the amounts of padding are not known", span)
        pairs = [amounts] * len(array.shape)
    else:
        pairs = [amounts[i : i + 2] for i in range(0, len(amounts), 2)]
    for position, pair in enumerate(pairs):
        numbers = [n for part in pair if (n := number(part)) is not None]
        if len(numbers) != 2 or position >= MAX_RANK:
            return opaque("the amounts of padding are not known", span)
        axis = position if nested or holder in _NUMPY else -1 - position
        edges.append((axis, numbers[0], numbers[1]))
    return stepped(array, Padded(tuple(edges), span))


def operated(op: str, left: object, right: object, span: Span) -> object:
    """What an operator gives."""
    arrays = [side for side in (left, right) if isinstance(side, Array)]
    numbers = [number(side) for side in (left, right)]
    if isinstance(left, tuple) and isinstance(right, tuple) and op == "Add":
        return (left + right) if len(left) + len(right) <= MAX_RANK * 2 else UNKNOWN
    if arrays and any(not array.plain for array in arrays):
        return opaque("it is computed", span)
    if arrays:
        return _broadcast(left, right)
    if None not in numbers and not (whole(left) and whole(right)):
        return _symbolic(op, numbers)
    known = isinstance(left, int | float) and isinstance(right, int | float)
    if not known or op not in OPERATORS:
        return UNKNOWN
    assert isinstance(left, int | float)
    assert isinstance(right, int | float)
    if abs(left) > 1e12 or abs(right) > 1e12:
        return UNKNOWN
    try:
        return OPERATORS[op](left, right)  # type: ignore[arg-type]  # floats do as well
    except (ZeroDivisionError, OverflowError):
        return UNKNOWN


def _symbolic(op: str, sides: Sequence[Extent | None]) -> object:
    left, right = sides
    if left is None or right is None or op not in OPERATORS or op == "Div":
        return UNKNOWN
    if right == 0 and op in ("FloorDiv", "Mod"):
        return UNKNOWN
    made = OPERATORS[op](left, right)  # type: ignore[arg-type]  # expressions do as well
    return plain(made)  # type: ignore[arg-type]  # expressions stay expressions


def _broadcast(left: object, right: object) -> object:
    arrays = [side for side in (left, right) if isinstance(side, Array)]
    if len(arrays) == 1:
        other = right if isinstance(left, Array) else left
        return _fresh(arrays[0], arrays[0].shape) if isinstance(other, int | float) else UNKNOWN
    longer, shorter = sorted(arrays, key=lambda a: -len(a.shape or ()))
    shape = list(longer.shape or ())
    less = shorter.shape or ()
    for axis in range(1, len(less) + 1):
        a, b = shape[-axis], less[-axis]
        if a != b and 1 not in (a, b):
            return UNKNOWN
        shape[-axis] = a if b == 1 else b
    return _fresh(longer, tuple(shape))


def _fresh(array: Array, shape: Shape | None) -> Array:
    """Another array of the same format, made here."""
    return Array(Created(), shape, array.dtype)


def builtin(name: str, given: Sequence[object]) -> object:
    """`min`, `int`, `len` and the like; `UNKNOWN` for other names."""
    numbers = [g for g in given if isinstance(g, int | float)]
    if len(numbers) == len(given) and numbers:
        if name in ("min", "max"):
            return min(numbers) if name == "min" else max(numbers)
        if name == "int" and math.isfinite(numbers[0]):
            return int(numbers[0])
        if name == "float":
            return float(numbers[0])
    if name in ("tuple", "list") and given and isinstance(given[0], tuple):
        return given[0]
    if name == "len" and len(given) == 1 and isinstance(given[0], tuple):
        return len(given[0])
    if name == "int" and len(given) == 1 and isinstance(given[0], Index):
        return given[0]
    if name == "nc" and len(given) == 1:
        return given[0]  # `kernel[nl.nc(2)]` is one program on each of two cores
    if name == "spmd_dim" and given:
        dims = [extent for part in given if (extent := number(part)) is not None]
        return product(dims) if len(dims) == len(given) else UNKNOWN
    if name in _COUNTS and len(given) == 2:
        top, bottom = map(number, given)
        return plain(ceil_div(top, bottom)) if top is not None and bottom else UNKNOWN
    return UNKNOWN


def followed(value: object) -> bool:
    """Whether a value leads to what the function is given, or to what a launch gives back."""
    if isinstance(value, tuple):
        return any(map(followed, value))
    return isinstance(value, Array) and isinstance(value.root, Parameter | Result | Opaque)
