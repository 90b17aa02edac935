"""How a kernel is run, whichever side it is of, and what may come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from migrate.budget import Budget, Meter
from migrate.source import SourceError, Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from migrate.nki.watching import Step
    from migrate.numerics.domain import Domain
    from migrate.pipeline.run_document import RunDocument

Order: TypeAlias = Literal["blas", "sequential"]
Precision: TypeAlias = Literal["rounded", "single", "bounded"]


@dataclass(frozen=True, slots=True)
class Options:
    """How a kernel is run.

    `order` is how sums are associated (`blas`: as the library does, `sequential`: first to last),
    `precision` the arithmetic: as the hardware rounds, in float32 without casts to narrow
    formats, or the real numbers with a bound on what rounding may do.  With `fma` a CUDA kernel's
    `a * b + c` is rounded once, as nvcc compiles it by default.  `trace` is how many
    instructions are kept, each told to `on_step`, too; `progress` is told what is being done.
    """

    order: Order = "blas"
    precision: Precision = "rounded"
    target: str = "trn2"
    grid: tuple[int, ...] = ()
    fma: bool = True
    nki_version: str | None = None
    statistics: bool = False
    trace: int = 0
    on_step: Callable[[Step], None] | None = None
    budget: Budget = field(default_factory=Budget)
    progress: Callable[[str], None] | None = None
    cancelled: Callable[[], bool] | None = None

    def domain(self) -> Domain[Any]:
        """The arithmetic."""
        match self.precision:
            case "rounded":
                from migrate.numerics.rounded import Rounded

                return Rounded()
            case "single":
                from migrate.numerics.plain import Plain

                return Plain()
            case "bounded":
                from migrate.numerics.bounded import Bounded

                return Bounded()

    def meter(self, kernel: str, done: Callable[[int], str] | None = None) -> Meter:
        """A meter of the budget that tells the progress; `done` says it of the steps."""
        meter = Meter(self.budget, f"running {kernel}", self.cancelled)
        if self.progress is not None:
            told, words = self.progress, done or (lambda steps: f"{steps:,} steps")
            meter.progress = lambda steps: told(f"running {kernel}: {words(steps)}")
        return meter


class Within(NamedTuple):
    """Real numbers, and how far from each of them a run that rounds may come to be."""

    value: NDArray[Any]
    bound: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Ran:
    """Arrays by name, and what is told of the run."""

    results: dict[str, NDArray[Any]]
    document: RunDocument


class UnwrittenRead(UserWarning):
    """A kernel read memory that nothing had been written to."""


class RunFault(UserWarning):
    """A CUDA kernel did what has no defined result: a race, a barrier that not all reach."""


class OverCapacity(UserWarning):
    """More was alive at once than a memory of the chip holds."""


class Overwritten(UserWarning):
    """A tensor was read after another one at the same addresses was written."""


class Outside(Exception):
    """An access outside an array: where it is, and where the array is from."""

    def __init__(
        self,
        message: str,
        place: Span | None,
        allocated: Span | None = None,
        index: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(message)
        self.place = place
        self.allocated = allocated
        self.index = index

    def told(self) -> IndexError:
        """As NumPy says it of the flat tensor, with what happened and where as notes."""
        error = IndexError(str(self))
        if self.index is not None:
            index, size = self.index
            error = IndexError(f"index {index} is out of bounds for axis 0 with size {size}")
            error.add_note(str(self))
        if self.place is not None:
            error.add_note(f"at {self.place}")
        if self.allocated is not None:
            error.add_note(f"allocated at {self.allocated}")
        return error

    def refusal(self, file: str) -> SourceError:
        """As a sentence with the place."""
        from_ = f" (allocated at {self.allocated})" if self.allocated is not None else ""
        return SourceError(f"{self}{from_}", file=file, where=self.place)


def extents(grid: int | Sequence[int]) -> tuple[int, ...]:
    """A grid as the kernel's own launch may give it: a number, or numbers."""
    return (grid,) if isinstance(grid, int) else tuple(int(n) for n in grid)


def plain_array(value: Any) -> NDArray[Any]:
    """The elements of what a domain gives."""
    import numpy as np

    from migrate.numerics.errors import BoundedValue
    from migrate.numerics.plain import PlainValue

    return np.asarray(value.value if isinstance(value, BoundedValue | PlainValue) else value)


def with_bound(value: Any) -> Any:
    """As `plain_array`, floats that are not exact with their bound."""
    from migrate.numerics.errors import BoundedValue

    if isinstance(value, BoundedValue) and value.dtype.is_float:
        return Within(value.value, value.limit())
    return plain_array(value)


def by_name(found: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Arrays by name; bounds have the name with `_bound` after it."""
    results: dict[str, NDArray[Any]] = {}
    for name, value in found.items():
        match with_bound(value):
            case Within(number, bound):
                results[name] = number
                results[f"{name}_bound"] = bound
            case array:
                results[name] = array
    return results
