"""The interface through which both interpreters do arithmetic.

An interpreter never touches a float itself: it asks its `Domain` for every operation,
so that one interpreter serves both for what a platform computes (`rounded.Rounded`) and
for the real value with an error bound (`bounded.Bounded`).  A value `V` is opaque: an
array of elements of one `DType`, of any shape (scalars have shape `()`).

Conversions are explicit.  `apply` takes operands of one kind (all floats, or all
integers) as the exact values they are and rounds the result once to `dtype`; what a
platform converts beforehand (CUDA's usual arithmetic conversions, NKI's fp32 operands)
is a `cast` the interpreter writes.

Values are written only by `put`, `put_window`, `add_window` and `combine`, and only those that
`constant`, `from_array` or `copy` made: other results may share memory with their operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from migrate.numerics.dtypes import DType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from migrate.numerics.casts import Rule

    Array: TypeAlias = NDArray[Any]

# How a sum is associated.  `blas`: undocumented, whatever the library does; `sequential`:
# first to last; `pairwise`: neighbours first, as a balanced tree.
Order = Literal["blas", "sequential", "pairwise"]

V = TypeVar("V")


class Window(NamedTuple):
    """Elements of a flattened value: from `offset` on, a step along each axis."""

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def distinct(self) -> bool:
        """Whether no element is in it twice, as far as the steps tell."""
        axes = [(abs(stride), size) for stride, size in zip(self.strides, self.sizes, strict=True)]
        axes.sort()
        reach = 0
        for stride, size in axes:
            if size > 1:
                if stride <= reach:
                    return False
                reach += stride * (size - 1)
        return True


@dataclass(frozen=True, slots=True)
class OperatorError:
    """The published error of a platform's version of an operator.

    The result lies within `relative * |y| + absolute` of the real value y, rounding
    included, for operands (the first one) inside `valid_range`; outside it nothing is
    promised.  `relative` may depend on the first operand (`__expf`).
    """

    relative: float | Callable[[Array], Array] = 0.0
    absolute: float = 0.0
    valid_range: tuple[float, float] | None = None


def ulps(
    count: float,
    *,
    dtype: DType = DType.FLOAT32,
    absolute: float = 0.0,
    valid_range: tuple[float, float] | None = None,
) -> OperatorError:
    """The error of a function published as at most `count` ulp.

    CUDA counts from the correctly rounded result, so the real value is within
    `count` + 1/2 ulp, at worst (2 count + 1) u relative (CUDA C++ Programming Guide,
    mathematical functions).
    """
    return OperatorError((2.0 * count + 1.0) * dtype.unit_roundoff, absolute, valid_range)


class Domain(Protocol[V]):
    """Arithmetic on opaque values."""

    @property
    def effort(self) -> int:
        """What an operation costs, as a multiple of NumPy's own."""
        ...

    @property
    def reusable(self) -> bool:
        """Whether a value that is written anew keeps nothing of what it was."""
        ...

    # Making values

    def constant(
        self,
        value: float | int | bool,
        dtype: DType,
        shape: Sequence[int] = (),
        *,
        computed: bool = False,
    ) -> V:
        """`value` rounded to `dtype` (nearest), in every element of `shape`; writable.

        A `computed` value is meant as it is: that `dtype` does not hold it is an error.
        """
        ...

    def from_array(self, array: Array, dtype: DType) -> V:
        """Elements of an array, rounded to `dtype` (nearest) if they are not of it; a copy."""
        ...

    def borrowed(self, array: Array, dtype: DType) -> V:
        """As `from_array`, but it may share the array's memory: never to be written."""
        ...

    # Looking at values

    def to_array(self, v: V) -> Array:
        """The elements: in `dtype`'s storage (`Rounded`), floats as float64 (`Bounded`)."""
        ...

    def dtype(self, v: V) -> DType: ...

    def shape(self, v: V) -> tuple[int, ...]: ...

    def truth(self, v: V) -> tuple[Array, Array | None]:
        """Which elements are not zero, and where that is within the error bound of zero.

        The second array (`None` for nowhere) marks elements whose truth is ambiguous.
        """
        ...

    # Elementwise

    def apply(
        self,
        operator: str,
        args: Sequence[V],
        dtype: DType,
        *,
        error: OperatorError | None = None,
    ) -> V:
        """An operator of `numerics.operators`, broadcast, its result rounded once to `dtype`.

        Comparisons and predicates give 0 or 1 in `dtype`.  Raises `ValueError` for an
        unknown name, a wrong number of operands or a mix of kinds.
        """
        ...

    def cast(self, v: V, to: DType, rule: Rule) -> V:
        """Conversion by a platform's rule; equal formats are copied bit for bit."""
        ...

    def bitcast(self, v: V, to: DType) -> V:
        """The same bits read as another format of the same width."""
        ...

    def compare(self, operator: str, a: V, b: V) -> tuple[Array, Array | None]:
        """`truth` of a comparison operator."""
        ...

    def select(self, mask: V | Array, a: V, b: V) -> V:
        """`a` where the mask holds, else `b`; both of one dtype."""
        ...

    def mark(self, v: V, where: Array) -> V:
        """The value with elements marked ambiguous: they depend on a decision within the bound."""
        ...

    # Structure

    def reshape(self, v: V, shape: Sequence[int]) -> V: ...

    def broadcast(self, v: V, shape: Sequence[int]) -> V:
        """Broadcast by NumPy's rules; not writable."""
        ...

    def transpose(self, v: V, axes: Sequence[int]) -> V: ...

    def take(self, v: V, flat_index: Array) -> V:
        """Elements at positions of the flattened value, in the index's shape.

        Indices are the caller's to check: out of range raises `IndexError`.
        """
        ...

    def window(self, v: V, place: Window) -> V:
        """Elements of the flattened value, which may share its memory.

        Raises `ValueError` where the window leaves the value.
        """
        ...

    def put_window(self, target: V, place: Window, v: V) -> None:
        """Write elements (broadcast to the window's sizes) in place, none of them twice."""
        ...

    def add_window(self, target: V, place: Window, v: V) -> None:
        """Add to elements in place, in the target's format, none of them twice."""
        ...

    def put(self, target: V, flat_index: Array, v: V, mask: Array | None = None) -> None:
        """Write elements (broadcast to the index's shape) in place where the mask holds.

        `v` has the target's dtype; of equal indices the last one stays.
        """
        ...

    def combine(
        self, operator: str, target: V, flat_index: Array, v: V, mask: Array | None = None
    ) -> None:
        """Read-modify-write in place, equal indices one after the other (atomics).

        For `add`, `subtract`, `multiply`, maxima, minima, and bitwise operators.
        """
        ...

    def copy(self, v: V) -> V:
        """An independent, writable copy."""
        ...

    def is_alone(self, v: V) -> bool:
        """Whether a result is certain to share no memory with what it was made of."""
        ...

    # Contractions

    def reduce(
        self, operator: str, v: V, axis: int | tuple[int, ...], dtype: DType, order: Order = "blas"
    ) -> V:
        """Combine along axes (removed) with an associative operator in `dtype`.

        Several axes are combined as one, in the given order (the last one fastest).
        """
        ...

    def matmul(self, a: V, b: V, dtype: DType, order: Order = "blas") -> V:
        """`a[..., M, K] @ b[..., K, N]`, products exact until added, sums in `dtype`."""
        ...
