"""A case: what reading two kernels alone cannot know.

The types are the tables of `case.toml`.  An `Integer` is a number or a size expression
(`migrate.case.expression`); `load` has parsed and evaluated each of them for every run,
so that later users may take them as sound.  Whatever is `None` was left out, to be
inferred.  A `Case()` without a file is valid and knows nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from migrate.case.expression import evaluate

Integer: TypeAlias = int | str
Role: TypeAlias = Literal["in", "out", "inout", "scratch"]
Target: TypeAlias = Literal["trn1", "trn2", "trn3"]
Sizes: TypeAlias = Mapping[str, int]


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Launch(_Table, frozen=True, kw_only=True):
    """One launch of a CUDA kernel.  `dynamic_shared` is in bytes."""

    kernel: str | None = None
    grid: tuple[Integer, ...] | None = None
    block: tuple[Integer, ...] | None = None
    dynamic_shared: Integer = 0
    template: dict[str, bool | int | float | str] = {}


class CudaSide(_Table, frozen=True, kw_only=True):
    """The CUDA kernels: one launch in the table itself, or several in order.

    `include` are the folders in which `#include` looks, the only ones that are read.
    """

    file: str | None = None
    define: dict[str, bool | int | float | str] = {}
    include: tuple[str, ...] = ()
    launch: tuple[Launch, ...] = ()


class NkiSide(_Table, frozen=True, kw_only=True):
    """The NKI kernel.  `args` are compile-time arguments that only it takes."""

    file: str | None = None
    kernel: str | None = None
    target: Target = "trn2"
    version: str | None = None
    grid: tuple[Integer, ...] = ()
    args: dict[str, Any] = {}


class Tensor(_Table, frozen=True, kw_only=True):
    """A logical tensor, and what carries it on each side.

    `cuda` names a parameter (a struct's field as `args.x`), or with `symbol` a
    `__constant__` or `__device__` variable.  `nki` names a parameter, `nki_out` a
    position in the kernel's return value.  `nki_layout` leads from the logical shape to
    the NKI side's (`migrate.case.layout`).
    """

    name: str
    shape: tuple[Integer, ...]
    dtype: str | None = None
    cuda_dtype: str | None = None
    nki_dtype: str | None = None
    role: Role | None = None
    cuda: str | None = None
    symbol: bool = False
    nki: str | None = None
    nki_out: int | None = None
    nki_layout: str | None = None
    fill: str | None = None
    expect: str | None = None

    def extents(self, sizes: Sizes) -> tuple[int, ...]:
        """The logical shape in elements."""
        return tuple(evaluate(extent, sizes) for extent in self.shape)


class Scalar(_Table, frozen=True, kw_only=True):
    """A scalar argument; a `str` value is a size expression."""

    name: str
    value: bool | int | float | str
    cuda: str | None = None
    nki: str | None = None
    dtype: str | None = None

    def resolve(self, sizes: Sizes) -> bool | int | float:
        """The value under `sizes`."""
        return evaluate(self.value, sizes) if isinstance(self.value, str) else self.value


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A whole case.  `file` is its name as the user gave it, `folder` where paths start."""

    file: str | None = None
    folder: Path | None = None
    cuda: CudaSide = CudaSide()
    nki: NkiSide = NkiSide()
    sizes: dict[str, tuple[int, ...]] = {}
    tensors: tuple[Tensor, ...] = ()
    scalars: tuple[Scalar, ...] = ()

    def runs(self) -> tuple[dict[str, int], ...]:
        """The sizes of each run: the lists of `[sizes]` zipped, a single value repeated.

        Without sizes there is one run with none.
        """
        count = max((len(values) for values in self.sizes.values()), default=1)
        return tuple(
            {
                name: values[position if len(values) > 1 else 0]
                for name, values in self.sizes.items()
            }
            for position in range(count)
        )

    def path(self, file: str) -> Path:
        """Where a file that the case names lies."""
        return Path(file) if self.folder is None else self.folder / file

    def include_folders(self) -> tuple[Path, ...]:
        """Where the files lie that the CUDA file includes."""
        return tuple(self.path(folder) for folder in self.cuda.include)

    def preprocessed(self, define: Mapping[str, str], include: Sequence[str]) -> Case:
        """The case with macros and include folders (from the working directory) added."""
        if not define and not include:
            return self
        folders = (*map(str, self.include_folders()), *(str(Path(f).absolute()) for f in include))
        cuda = msgspec.structs.replace(
            self.cuda, define={**self.cuda.define, **define}, include=folders
        )
        return msgspec.structs.replace(self, cuda=cuda)

    def shown(self, file: str) -> str:
        """How to call a file that the case names: beside the case, as the user called that."""
        return file if self.file is None else str(Path(self.file).parent / file)
