"""What a tensor is filled with before a run.

| fill | floats | integers | bool |
| --- | --- | --- | --- |
| `normal` | mean 0, deviation 1 | -100 to 100 (unsigned: 0 to 100) | even odds |
| `uniform` | 0 to 1, without 1 | as `normal` | even odds |
| `wide` | mean 0, deviation 1000 | as `normal` | even odds |
| `special` | as `normal`, with NaN and both infinities strewn in | as `normal` | even odds |
| `ones`, `zeros`, `arange` | 1, 0, the flat index | the same | index odd |
| `int(lo, hi)` | whole numbers, lo to hi without hi | the same | value odd |
| `file.npy` | the file's values; shape and kind of dtype must agree | | |

The same fill, seed and name give the same array.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args
from zlib import crc32

from migrate.case import expression
from migrate.case.expression import Expression, ExpressionError
from migrate.case.types import Sizes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

MAX_ELEMENTS: Final = 2**30
"""The most elements that a tensor may have: 4 GiB of float32."""

Kind = Literal["normal", "uniform", "wide", "special", "ones", "zeros", "arange"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_INTEGERS = re.compile(r"int\s*\((?P<low>[^,]*),(?P<high>.*)\)", re.DOTALL)


class FillError(ValueError):
    """A fill that cannot be read, or does not fit its tensor."""


@dataclass(frozen=True, slots=True)
class Integers:
    """Whole numbers from `low` up to, without, `high`."""

    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class Stored:
    """The array of an `.npy` file, named from the case's folder."""

    file: str


Fill: TypeAlias = Kind | Integers | Stored


def parse(text: str) -> Fill:
    """Read a fill; raises `FillError`."""
    for kind in KINDS:
        if text == kind:
            return kind
    if text.endswith(".npy"):
        return Stored(text)
    found = _INTEGERS.fullmatch(text.strip())
    if found is None:
        known = ", ".join(KINDS)
        raise FillError(f"unknown fill {text!r} (there are {known}, int(lo, hi) and a .npy file)")
    try:
        return Integers(expression.parse(found["low"]), expression.parse(found["high"]))
    except ExpressionError as error:
        raise FillError(str(error)) from None


def make(
    fill: Fill,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    name: str = "",
    seed: int = 0,
    sizes: Sizes | None = None,
    folder: Path | None = None,
) -> Array:
    """A C-contiguous array of `shape` and `dtype`.

    Raises `FillError` where the fill does not fit, a file cannot be read, or there would
    be more than `MAX_ELEMENTS`.
    """
    import numpy as np

    if prod(shape) > MAX_ELEMENTS:
        raise FillError(f"{prod(shape):,} elements are more than {MAX_ELEMENTS:,}")
    # Tensors of one run differ though they share its seed.
    random = np.random.Generator(np.random.PCG64([seed, crc32(name.encode())]))
    floating = _is_floating(dtype)
    match fill:
        case "zeros":
            return np.zeros(shape, dtype)
        case "ones":
            return np.ones(shape, dtype)
        case "arange":
            values: Array = np.arange(prod(shape)).reshape(shape)
        case "normal" if floating:
            values = random.standard_normal(shape)
        case "uniform" if floating:
            values = random.random(shape)
        case "wide" if floating:
            values = 1000.0 * random.standard_normal(shape)
        case "special" if floating:
            values = random.standard_normal(shape)
            for number, odds in ((np.nan, 0.1), (np.inf, 0.05), (-np.inf, 0.05)):
                values[random.random(shape) < odds] = number
        case "normal" | "uniform" | "wide" | "special":
            low = 0 if np.issubdtype(dtype, np.unsignedinteger) else -100
            values = random.integers(low, 101, shape)
        case Integers(low_expression, high_expression):
            values = _integers(random, shape, low_expression, high_expression, sizes or {})
        case Stored(file):
            return load(file if folder is None else folder / file, shape, dtype)
    if dtype == np.bool_:
        return (values & 1).astype(dtype)
    return values.astype(dtype)


def load(path: str | Path, shape: tuple[int, ...] | None, dtype: np.dtype[Any]) -> Array:
    """The array of an `.npy` file, without pickle; raises `FillError`.

    `ml_dtypes` arrays are stored as raw bytes of their width and come back as `dtype`.
    """
    import numpy as np

    stored = opened(path)
    called = f"'{Path(path).name}'"
    if shape is not None and stored.shape != shape:
        raise FillError(f"{called} has shape {stored.shape}, not {shape}")
    if stored.dtype.kind == "V" and stored.dtype.itemsize == dtype.itemsize:
        stored = stored.view(dtype)
    if _is_floating(stored.dtype) != _is_floating(dtype) and stored.dtype != dtype:
        raise FillError(f"{called} has dtype {stored.dtype}, not {dtype}")
    return np.array(stored, dtype=dtype, order="C")


def opened(path: str | Path) -> Array:
    """An `.npy` file, mapped: a file of any size is judged by its header before it is read.

    Raises `FillError`.
    """
    import numpy as np

    called = f"'{Path(path).name}'"
    try:
        with Path(path).open("rb") as file:
            start = file.read(6)
    except OSError as error:
        raise FillError(f"{called} cannot be read: {error.strerror}") from None
    if start.startswith(b"PK"):
        raise FillError(f"{called} holds several arrays; one .npy array is needed")
    if start != b"\x93NUMPY":
        raise FillError(f"{called} is not an .npy file")
    try:
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, SyntaxError) as error:
        if "Python objects" in str(error):
            raise FillError(f"{called} holds Python objects (pickle), never loaded") from None
        raise FillError(f"{called} cannot be read: {error}") from None
    if stored.size > MAX_ELEMENTS:
        raise FillError(f"{called} has {stored.size:,} elements, more than {MAX_ELEMENTS:,}")
    return np.asarray(stored)


def _integers(
    random: np.random.Generator,
    shape: tuple[int, ...],
    low: Expression,
    high: Expression,
    sizes: Sizes,
) -> Array:
    try:
        first, end = low.evaluate(sizes), high.evaluate(sizes)
    except ExpressionError as error:
        raise FillError(str(error)) from None
    if first >= end:
        raise FillError(f"int({first}, {end}) holds no number")
    return random.integers(first, end, shape)


def _is_floating(dtype: np.dtype[Any]) -> bool:
    import ml_dtypes
    import numpy as np

    if dtype.kind == "V":
        try:
            ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
        except ValueError:
            return False
        return True
    return bool(np.issubdtype(dtype, np.floating))
