"""NumPy arrays that a kernel makes while it is specialised, as far as tensors are made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.operations import integer, items_of
from migrate.nki.symbols import Number, Origin, constant
from migrate.nki.values import Builtin, View
from migrate.numerics.dtypes import DType


@dataclass(frozen=True, slots=True, eq=False)
class HostArray:
    """An identity matrix, or an array of one number everywhere."""

    described: ClassVar[str] = "a NumPy array"
    kind: Literal["identity", "full"]
    shape: tuple[Number, ...]
    dtype: DType
    value: Number

    def tensor(self, frame: Frame, dtype: DType, origin: Origin) -> View:
        """The array as a tile."""
        from migrate.nki.language.expansion import Expansion
        from migrate.nki.language.moves import identity

        if self.kind == "identity":
            return identity(frame, self.shape[0], dtype, origin)
        e = Expansion(frame, origin)
        made = e.tile(self.shape, dtype)
        e.bare("memset", made, self.value)
        return made


def _dtype(given: object, origin: Origin) -> DType:
    from migrate.nki.language.expansion import dtype_of

    return DType.FLOAT32 if given is None else dtype_of(given, origin)


def _identity(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    given = dict(zip(("n", "dtype"), args, strict=False)) | keywords
    if not given.keys() <= {"n", "N", "dtype"} or len(args) > 2:
        raise Unsupported("an identity matrix that is not square", origin)
    n = integer(given.get("n", given.get("N")), origin)
    return HostArray("identity", (n, n), _dtype(given.get("dtype"), origin), constant(1))


def _filled(name: str, value: float | None) -> Builtin:
    def make(
        _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
    ) -> object:
        names = ("shape", "dtype") if value is not None else ("shape", "fill_value", "dtype")
        given = dict(zip(names, args, strict=False)) | keywords
        if not given.keys() <= set(names) or len(args) > len(names) or "shape" not in given:
            raise KernelFault("type", f"{name} is called with the wrong arguments", origin)
        shape = given["shape"]
        items = items_of(shape, origin) if isinstance(shape, tuple | list) else [shape]
        content = constant(value) if value is not None else given.get("fill_value")
        if not isinstance(content, Number):
            raise Unsupported(f"{name} of something else than a number", origin)
        extents = tuple(integer(item, origin) for item in items)
        return HostArray("full", extents, _dtype(given.get("dtype"), origin), content)

    return Builtin(name, make)


def _format(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`np.dtype(x)`."""
    from migrate.nki.language.expansion import dtype_of

    if len(args) != 1 or keywords:
        raise KernelFault("type", "dtype is called with the wrong arguments", origin)
    return dtype_of(args[0], origin)


FUNCTIONS: dict[str, object] = {
    "dtype": Builtin("dtype", _format),
    "identity": Builtin("identity", _identity),
    "eye": Builtin("eye", _identity),
    "zeros": _filled("zeros", 0.0),
    "ones": _filled("ones", 1.0),
    "full": _filled("full", None),
}
"""Of NumPy."""
