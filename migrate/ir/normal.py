"""The normal form of a kernel: what each output element is, whatever the program's shape.

`normalise` evaluates the IR in the algebra of `terms`, in which regrouping, reordering,
tiling and splitting leave no trace, and reads tensor expressions back from the terms:

1. from the output's terms downwards, the operator and arguments of each are looked up in
   the log; nested sums, products and extrema become one flat combination;
2. upwards, terms of the same *shape* (same operators and tensors, other coordinates) get
   one skeleton and a row of coordinates each; the parts of a combination are sorted by
   skeleton, then by coordinates;
3. the cells of an output that share a skeleton are one piece; each coordinate column is
   written as an affine function of the cell and of the counters of the reductions, or
   listed where there is none.

The result is exact at the sizes it was taken at, and says nothing about others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from migrate.budget import Budget, Meter
from migrate.ir.evaluate import Evaluation, Unevaluable, evaluate
from migrate.ir.forms import (
    NormalForm,
    OutputForm,
    Piece,
)
from migrate.ir.hashing import Ids
from migrate.ir.needed import needed
from migrate.ir.nodes import Kernel, Op
from migrate.ir.reader import Reader
from migrate.ir.rings import element_terms
from migrate.ir.terms import Leaves, Terms

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tensor:
    """How a buffer holds a logical tensor.

    `elements` gives the row-major logical element of each cell of the buffer, -1 for
    none; `None` is the identity.
    """

    name: str
    shape: tuple[int, ...]
    elements: Numbers | None = None


def identity_tensors(kernel: Kernel, sizes: Mapping[str, int]) -> dict[str, Tensor]:
    """Every buffer with content or result as the logical tensor of its own name."""
    written = {output.version.buffer for output in kernel.outputs}
    tensors: dict[str, Tensor] = {}
    for buffer in kernel.buffers:
        if buffer.role in {"in", "inout"} or buffer.name in written:
            try:
                shape = tuple(int(extent.evaluate(sizes)) for extent in buffer.shape)
            except KeyError as error:
                raise Unevaluable(f"{error.args[0]} has no value", buffer.span) from None
            tensors[buffer.name] = Tensor(buffer.name, shape)
    return tensors


def normalise(
    kernel: Kernel,
    sizes: Mapping[str, int],
    tensors: Mapping[str, Tensor] | None = None,
    *,
    meter: Meter | None = None,
) -> tuple[NormalForm, Evaluation]:
    """The kernel's outputs as canonical tensor expressions, and the evaluation behind it.

    As `meaning`, for those who need no more.
    """
    found = meaning(kernel, sizes, tensors, meter=meter)
    return found.form, found.evaluation


def meaning(
    kernel: Kernel,
    sizes: Mapping[str, int],
    tensors: Mapping[str, Tensor] | None = None,
    *,
    meter: Meter | None = None,
) -> Meaning:
    """What the kernel computes at these sizes.

    `tensors` maps buffers to logical tensors (default: themselves).  Raises
    `evaluate.Unevaluable` and `budget.Exhausted`.
    """
    meter = meter or Meter(Budget(), "normalising")
    bound = dict(tensors) if tensors is not None else identity_tensors(kernel, sizes)
    content = _leaves(kernel, bound)
    terms = Terms(content, meter, keep=False)

    def logged() -> Terms:
        kept = Terms(content, meter)
        evaluate(kernel, sizes, kept, meter=meter)
        return kept

    with meter.scratch():
        evaluation = evaluate(kernel, sizes, terms, meter=meter)
    ids = _logical(evaluation, bound, terms)
    writers = {
        bound[name].name: _scattered(evaluation.writers[name], bound[name], np.int32(-1))
        for name in evaluation.outputs
        if name in bound
    }
    shapes = {tensor.name: tensor.shape for tensor in bound.values()}
    outputs = {name: bound[name] for name in evaluation.outputs if name in bound}
    return Meaning(evaluation, ids, writers, shapes, terms, logged, meter, outputs)


def logical_terms(
    kernel: Kernel,
    sizes: Mapping[str, int],
    tensors: Mapping[str, Tensor],
    meter: Meter,
    algebra: Callable[[Leaves], Terms],
) -> dict[str, Ids]:
    """The outputs' logical elements, row-major, as terms of some making.

    Raises `evaluate.Unevaluable` and `budget.Exhausted`.
    """
    terms = algebra(_leaves(kernel, tensors))
    return _logical(evaluate(kernel, sizes, terms, meter=meter), tensors, terms)


def _leaves(kernel: Kernel, tensors: Mapping[str, Tensor]) -> Leaves:
    return {
        buffer.name: (tensors[buffer.name].name, tensors[buffer.name].elements)
        for buffer in kernel.buffers
        if buffer.name in tensors and buffer.role in {"in", "inout"}
    }


class Meaning:
    """What a kernel computes at fixed sizes, down to single elements.

    `terms` holds for each output the canonical term of every logical element, row-major:
    two kernels over the same logical tensors compute the same where their terms are
    equal.  `writers` gives the position in `evaluation.stores` of the op that wrote the
    element last, -1 for none.  Expressions are read back from the terms when first asked
    for: most elements of most comparisons are never asked about.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        terms: dict[str, Ids],
        writers: dict[str, NDArray[np.int32]],
        shapes: dict[str, tuple[int, ...]],
        made: Terms,
        logged: Callable[[], Terms],
        meter: Meter,
        tensors: Mapping[str, Tensor],
    ) -> None:
        """`logged` evaluates again, keeping the log that `made` has not.

        `tensors` maps the output buffers to their logical tensors.
        """
        self.evaluation = evaluation
        self.terms = terms
        self.writers = writers
        self.shapes = shapes
        self.rewrites = tuple(sorted(made.used))
        self._tensors = {tensor.name: tensor for tensor in tensors.values()}
        self._buffers = {tensor.name: buffer for buffer, tensor in tensors.items()}
        self._made = made
        self._again = logged
        self._meter = meter
        self._reader: Reader | None = None
        self._considered: dict[str, Numbers] = {}

    def clear(self, output: str) -> bool:
        """Whether an output certainly depends on nothing unknown or undefined.

        What is computed from an undefined term is that term, so it shows in the output; what
        is computed from an unknown one does not, so there must be none.
        """
        log = self._made.log
        if any(made.operator == "opaque" for made in log):
            return False
        undefined = [made.ids.reshape(-1) for made in log if made.operator == "undefined"]
        return not undefined or not np.isin(self.terms[output], np.concatenate(undefined)).any()

    def undefined(self, output: str) -> NDArray[np.bool_]:
        """Which elements (flat) were computed from what nobody wrote.

        That an element was not written at all is told by `writers`.
        """
        ids = self.terms[output].reshape(-1)
        made = [made.ids.reshape(-1) for made in self._made.log if made.operator == "undefined"]
        copied = (ids == self._made.missing) & (self.writers[output].reshape(-1) >= 0)
        return np.asarray(copied | np.isin(ids, np.concatenate(made or [_EMPTY])))

    @cached_property
    def form(self) -> NormalForm:
        """Every output as tensor expressions."""
        everything = {n: np.arange(t.size, dtype=np.int64) for n, t in self.terms.items()}
        self.consider(everything)
        return NormalForm(
            tuple(
                OutputForm(name, self.shapes[name], self.pieces(name, everything[name]))
                for name in sorted(self.terms)
            ),
            self.rewrites,
        )

    def consider(self, elements: Mapping[str, Numbers]) -> None:
        """Read back some elements (flat, ascending) of some outputs, and no others.

        Reading what will be asked for at once is cheaper than reading it bit by bit.
        """
        self._considered = dict(elements)
        self._reader = None

    def pieces(self, output: str, elements: Numbers) -> tuple[Piece, ...]:
        """The expressions of some elements (flat, ascending) of an output."""
        known = self._considered.get(output)
        if known is None or not np.isin(elements, known).all():
            wider = elements if known is None else np.union1d(known, elements)
            self.consider({**self._considered, output: wider})
        if self._reader is None:
            wanted = [self.terms[name].reshape(-1)[e] for name, e in self._considered.items()]
            roots = np.concatenate(wanted or [_EMPTY])
            log = needed(self._logged.log, roots, self._meter) if roots.size < _FEW else None
            self._reader = Reader(log or self._logged.log, self.shapes, self._meter)
            self._reader.read(roots)
        return self._reader.pieces(self.terms[output], self.shapes[output], elements)

    def once_held(self, output: str, elements: Numbers, terms: Ids) -> NDArray[np.bool_]:
        """Which of some elements had the given terms at some time, if not at the end."""
        tensor = self._tensors[output]
        cells = elements
        if tensor.elements is not None:
            places = np.full(int(np.prod(tensor.shape, dtype=object)), -1, np.int64)
            held = np.flatnonzero(tensor.elements >= 0)
            places[tensor.elements[held]] = held
            cells = places[elements]
        found = np.zeros(cells.size, np.bool_)
        if not cells.size:
            return found
        order = np.argsort(cells)
        ordered, wanted = cells[order], terms[order]
        for write in self.evaluation.writes.get(self._buffers[output], ()):
            at = np.minimum(np.searchsorted(ordered, write.cells), cells.size - 1)
            right = (ordered[at] == write.cells) & (wanted[at] == write.content)
            found[order[at[right]]] = True
        return found

    def reader_of(self, tensor: str, element: int) -> Op | None:
        """The first op that loads an element of an input, if any does."""
        term = element_terms(tensor, np.array([element], np.int64))[0]
        for op, ids in self._logged.reads:
            if bool((ids == term).any()):
                return op
        return None

    @cached_property
    def _logged(self) -> Terms:
        return self._again()


_EMPTY = np.zeros(0, np.uint64)

_FEW = 4096
"""Elements whose expressions are read from the part of the log that they need."""


def _logical(evaluation: Evaluation, tensors: Mapping[str, Tensor], terms: Terms) -> dict[str, Ids]:
    return {
        tensors[name].name: _scattered(content, tensors[name], terms.missing)
        for name, content in evaluation.outputs.items()
        if name in tensors
    }


def _scattered(content: NDArray[Any], tensor: Tensor, missing: Any) -> NDArray[Any]:
    """A buffer's cells as the elements of its logical tensor."""
    if tensor.elements is None:
        return content
    size = int(np.prod(tensor.shape, dtype=object)) if tensor.shape else 1
    logical = np.full(size, missing)
    held = tensor.elements >= 0
    logical[tensor.elements[held]] = content[held]
    return logical
