"""What `migrate run` tells of a run beside its arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from migrate.results import SCHEMA_VERSION, Side, Value
from migrate.source import Span, quoted

if TYPE_CHECKING:
    from numpy.typing import NDArray

Outcome = Literal["complete", "stopped", "interrupted"]


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """One array: its range, and how many of its elements are no finite number."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    least: Value | None = None
    greatest: Value | None = None
    nan: int = 0
    infinite: int = 0


class RunWarning(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong in a run that went on; `related` is the allocation concerned."""

    code: str
    message: str
    span: Span | None = None
    related: Span | None = None


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes moved from one memory to another."""

    source: str
    destination: str
    bytes: int


class RunStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Instructions by engine and by opcode, the most frequent first, and bytes moved."""

    engines: dict[str, int] = {}
    opcodes: dict[str, int] = {}
    moved: tuple[Moved, ...] = ()


class TracedOperand(msgspec.Struct, frozen=True, kw_only=True):
    """A tile of an instruction; `values` are the first ones of what it has written."""

    name: str
    tensor: str
    memory: str
    dtype: str
    shape: tuple[int, ...]
    values: tuple[Value, ...] | None = None


class TracedStep(msgspec.Struct, frozen=True, kw_only=True):
    """An instruction that was executed."""

    number: int
    span: Span
    opcode: str
    engine: str
    operands: tuple[TracedOperand, ...] = ()
    attributes: dict[str, str] = {}


class RunDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one kernel.

    `stopped` and `interrupted` runs have no results of the kernel's: theirs are the tensors in
    device memory as they were then; `reason` and `where` say why.
    """

    schema_version: Literal["1"] = SCHEMA_VERSION
    file: str
    kernel: str
    side: Side
    target: str | None = None
    precision: str = "rounded"
    order: str = "blas"
    outcome: Outcome = "complete"
    reason: str = ""
    where: Span | None = None
    results: tuple[RunResult, ...] = ()
    warnings: tuple[RunWarning, ...] = ()
    instructions: int | None = None
    statistics: RunStatistics | None = None
    trace: tuple[TracedStep, ...] | None = None

    def to_json(self, *, indent: int = 0) -> bytes:
        """UTF-8 JSON; equal documents give equal bytes."""
        data = quoted(msgspec.json.encode(self))
        return msgspec.json.format(data, indent=indent) if indent else data


def described(results: Mapping[str, NDArray[Any]]) -> tuple[RunResult, ...]:
    """What the arrays of a run are."""
    return tuple(_described(name, array) for name, array in results.items())


def _described(name: str, array: NDArray[Any]) -> RunResult:
    import numpy as np

    from migrate.numerics.dtypes import DType

    dtype = DType.of(array.dtype)
    numbers = array.astype(np.float64) if dtype.is_float else array
    finite = np.isfinite(numbers)
    kept = numbers[finite]
    return RunResult(
        name=name,
        dtype=str(dtype),
        shape=array.shape,
        least=kept.min().item() if kept.size else None,
        greatest=kept.max().item() if kept.size else None,
        nan=int(np.count_nonzero(np.isnan(numbers))) if dtype.is_float else 0,
        infinite=int(np.count_nonzero(np.isinf(numbers))) if dtype.is_float else 0,
    )
