"""Do two kernels compute the same?  Proved, refuted or unknown, at concrete sizes.

Both IRs are read as canonical terms over the same logical tensors.  An output is

* *proved* where every element has the same term on both sides and nothing in it is
  unknown: equal over the reals, for every input, at these sizes;
* *refuted* where evaluating both in float64 gives different numbers for the same
  inputs: the element is a witness;
* *unknown* otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.align.binding import Binding, BoundTensor, logical_tensors
from migrate.align.difference import Difference, differences, similarity
from migrate.align.overflow import WIDE, Overflow, Watched
from migrate.budget import Meter
from migrate.ir.evaluate import Trouble, evaluate
from migrate.ir.forms import Element, Form, Missing, Piece, Table, Unknown, walk
from migrate.ir.nodes import Kernel, Op
from migrate.ir.normal import Meaning, Tensor, meaning
from migrate.ir.reals import Reals
from migrate.results import Inputs, Value, Witness, value
from migrate.source import Span

Status: TypeAlias = Literal["proved", "refuted", "unknown"]
Make: TypeAlias = "Callable[[Binding, Inputs], Mapping[str, NDArray[np.generic]]]"

FAMILIES = ("normal", "uniform", "int")
"""Input families tried for a witness, in order."""

_FEW = 96
"""Elements of a group whose expressions are read."""

_MANY = 2048
"""Elements among which a witness is looked for where some are not understood."""

_SAME = 1e-6
"""Relative difference below which two float64 evaluations count as equal."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Elements of one output whose two expressions differ in the same way.

    There are about `count` of them; `elements`, if `sampled`, are only those looked at.  They
    are flat and ascending; `cuda_op` and `nki_op` are the ops that wrote them
    last, `reads` the NKI ops that load the elements a `Difference` is about.  `overwritten`:
    the NKI kernel had the right expression there, and then wrote another one over it.
    """

    output: str
    elements: NDArray[np.int64]
    count: int
    sampled: bool
    differences: tuple[Difference, ...]
    cuda_op: Op | None
    nki_op: Op | None
    reads: tuple[Op, ...]
    likeness: float
    overwritten: bool


@dataclass(frozen=True, slots=True)
class OutputRelation:
    """One output: its status, the share of elements that agree, and what differs."""

    name: str
    shape: tuple[int, ...]
    status: Status
    agreeing: float
    alike: float
    mismatches: tuple[Mismatch, ...]
    witness: Witness | None
    overflow: Overflow | None = None
    """Where the NKI side leaves the range of numbers for the witness's inputs; the CUDA side
    does not, and no other inputs tell them apart."""


@dataclass(frozen=True, slots=True)
class Relation:
    """Both kernels at one position of the sizes."""

    sizes: Mapping[str, int]
    outputs: tuple[OutputRelation, ...]
    rewrites: tuple[str, ...]
    cuda_trouble: tuple[Trouble, ...]
    nki_trouble: tuple[Trouble, ...]
    nki_stores: tuple[Op, ...]
    nki_writers: Mapping[str, NDArray[np.int32]]

    @property
    def status(self) -> Status:
        if any(output.status == "refuted" for output in self.outputs):
            return "refuted"
        if self.outputs and all(output.status == "proved" for output in self.outputs):
            return "proved"
        return "unknown"


def relate(
    cuda: Kernel,
    nki: Kernel,
    binding: Binding,
    make: Make,
    *,
    cuda_sizes: Mapping[str, int],
    nki_sizes: Mapping[str, int],
    meter: Meter,
) -> Relation:
    """Relate two kernels at the binding's sizes.

    `make` makes the input arrays of a family, by tensor name.  Raises
    `ir.evaluate.Unevaluable` and `budget.Exhausted`.
    """
    with meter.scratch():
        return _related(cuda, nki, binding, make, cuda_sizes, nki_sizes, meter)


def _related(
    cuda: Kernel,
    nki: Kernel,
    binding: Binding,
    make: Make,
    cuda_sizes: Mapping[str, int],
    nki_sizes: Mapping[str, int],
    meter: Meter,
) -> Relation:
    cuda_tensors = logical_tensors(binding, cuda, "cuda")
    nki_tensors = logical_tensors(binding, nki, "nki")
    cuda_means = meaning(cuda, cuda_sizes, cuda_tensors, meter=meter)
    nki_means = meaning(nki, nki_sizes, nki_tensors, meter=meter)
    differing: dict[str, NDArray[np.int64]] = {}
    for tensor in binding.outputs:
        left = cuda_means.terms.get(tensor.name)
        right = nki_means.terms.get(tensor.name)
        if left is None or right is None:
            continue
        if left.size == right.size:
            differing[tensor.name] = np.flatnonzero(left.reshape(-1) != right.reshape(-1))
        else:
            differing[tensor.name] = np.arange(tensor.size, dtype=np.int64)
    witnesses: dict[str, Witness] = {}
    overflows: dict[str, Overflow] = {}
    if any(elements.size for elements in differing.values()):
        sides = ((cuda, cuda_sizes, cuda_tensors), (nki, nki_sizes, nki_tensors))
        known = {
            name: _knowable(name, elements, (cuda_means, nki_means))
            for name, elements in differing.items()
        }
        witnesses = _witnesses(sides, binding, make, known, meter)
        alike = {name: elements for name, elements in known.items() if name not in witnesses}
        for name, (witness, overflow) in _overflows(sides, binding, make, alike, meter).items():
            witnesses[name], overflows[name] = witness, overflow
    outputs = tuple(
        _output(tensor, cuda_means, nki_means, differing.get(tensor.name), witnesses, overflows)
        for tensor in binding.outputs
    )
    return Relation(
        sizes=binding.sizes,
        outputs=outputs,
        rewrites=tuple(sorted({*cuda_means.rewrites, *nki_means.rewrites})),
        cuda_trouble=cuda_means.evaluation.trouble,
        nki_trouble=nki_means.evaluation.trouble,
        nki_stores=nki_means.evaluation.stores,
        nki_writers=nki_means.writers,
    )


def _output(
    tensor: BoundTensor,
    cuda: Meaning,
    nki: Meaning,
    differing: NDArray[np.int64] | None,
    witnesses: Mapping[str, Witness],
    overflows: Mapping[str, Overflow],
) -> OutputRelation:
    if differing is None:
        return OutputRelation(tensor.name, tensor.shape, "unknown", 0.0, 0.0, (), None)
    witness = witnesses.get(tensor.name)
    mismatches = tuple(_mismatches(tensor, cuda, nki, differing))
    total = max(tensor.size, 1)
    agreeing = 1.0 - differing.size / total
    alike = agreeing + sum(m.likeness * m.count for m in mismatches) / total
    status: Status
    if witness is not None:
        status = "refuted"
    elif not differing.size and _understood(tensor.name, cuda) and _understood(tensor.name, nki):
        status = "proved"
    else:
        status = "unknown"
    return OutputRelation(
        tensor.name,
        tensor.shape,
        status,
        agreeing,
        min(alike, 1.0),
        mismatches,
        witness,
        overflows.get(tensor.name),
    )


def _understood(output: str, means: Meaning) -> bool:
    """Whether nothing in an output is unknown; the terms alone often tell."""
    if means.clear(output):
        return True
    form = means.form.output(output)
    return form is not None and not any(
        isinstance(part, Unknown) or (isinstance(part, Missing) and part.used)
        for piece in form.pieces
        for part in walk(piece.form)
    )


def _knowable(
    output: str, elements: NDArray[np.int64], both: tuple[Meaning, Meaning]
) -> NDArray[np.int64]:
    """The elements in which nothing is unknown on either side: only they can refute."""
    for means in both:
        if not elements.size or means.clear(output):
            continue
        elements = _sample(elements, _MANY)
        pieces = means.pieces(output, elements)
        kept = [
            _flat(piece, means.shapes[output])
            for piece in pieces
            if not any(isinstance(form, Unknown) for form in walk(piece.form))
        ]
        elements = np.sort(np.concatenate(kept)) if kept else elements[:0]
    return elements


def _mismatches(
    tensor: BoundTensor, cuda: Meaning, nki: Meaning, differing: NDArray[np.int64]
) -> list[Mismatch]:
    """Differing elements, grouped by who wrote them and by the shapes of both expressions."""
    groups = _groups(tensor.name, cuda, nki, differing)
    samples = [_sample(group, _FEW) for group in groups]
    if not groups:
        return []
    every = np.unique(np.concatenate(samples))
    cuda.consider({tensor.name: every})
    nki.consider({tensor.name: every})
    found: list[Mismatch] = []
    for group, sample in zip(groups, samples, strict=True):
        parts = list(_parts(tensor, cuda, nki, sample))
        for mine, other, elements in parts:
            alone = len(parts) == 1
            count = group.size if alone else round(group.size * elements.size / sample.size)
            parted = differences(mine.form, other.form)
            found.append(
                Mismatch(
                    output=tensor.name,
                    elements=group if alone else elements,
                    count=count,
                    sampled=not alone and sample.size < group.size,
                    differences=parted,
                    cuda_op=_writer(cuda, tensor.name, int(elements[0])),
                    nki_op=_writer(nki, tensor.name, int(elements[0])),
                    reads=_reads(nki, parted, other),
                    likeness=similarity(mine.form, other.form),
                    overwritten=nki.once_held(
                        tensor.name,
                        elements,
                        cuda.terms[tensor.name].reshape(-1)[elements],
                    ),
                )
            )
    return found


def _groups(
    output: str, cuda: Meaning, nki: Meaning, differing: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Elements that the same ops of both sides wrote last (or none did)."""
    if not differing.size:
        return []
    left = cuda.writers[output].reshape(-1)[differing]
    right = nki.writers[output].reshape(-1)[differing]
    keys = left.astype(np.int64) * (int(right.max()) + 2) + right + 1
    order = np.argsort(keys, kind="stable")
    bounds = np.flatnonzero(np.diff(keys[order])) + 1
    groups = [differing[part] for part in np.split(order, bounds)]
    return sorted(groups, key=lambda group: int(group[0]))


def _parts(
    tensor: BoundTensor, cuda: Meaning, nki: Meaning, sample: NDArray[np.int64]
) -> Iterator[tuple[Piece, Piece, NDArray[np.int64]]]:
    """The expressions of both sides over the elements on which each is one expression."""
    for piece in cuda.pieces(tensor.name, sample):
        for other in nki.pieces(tensor.name, _flat(piece, tensor.shape)):
            elements = _flat(other, tensor.shape)
            (mine,) = cuda.pieces(tensor.name, elements)
            yield mine, other, elements


def _sample(elements: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """The first and last of many elements and some between, near one another and far apart."""
    if elements.size <= most:
        return elements
    half = most // 2
    spread = np.linspace(0, elements.size - 1, half).astype(np.int64)
    return np.asarray(elements[np.unique(np.concatenate([np.arange(half), spread]))])


def _flat(piece: Piece, shape: tuple[int, ...]) -> NDArray[np.int64]:
    if not shape:
        return np.zeros(1, np.int64)
    return np.asarray(np.ravel_multi_index(tuple(piece.cells.T), shape), np.int64)


def _writer(means: Meaning, output: str, element: int) -> Op | None:
    number = int(means.writers[output][element])
    return means.evaluation.stores[number] if number >= 0 else None


def _reads(means: Meaning, parted: tuple[Difference, ...], piece: Piece) -> tuple[Op, ...]:
    """The ops that load the inputs a difference is about, for its first element."""
    found: list[Op] = []
    for difference in parted:
        if not isinstance(difference.nki, Element):
            continue
        op = _loader(means, difference.nki, piece)
        if op is not None and op not in found:
            found.append(op)
    return tuple(found)


def _loader(means: Meaning, form: Element, piece: Piece) -> Op | None:
    shape = means.shapes[form.tensor]
    places: list[int] = []
    for place in form.index:
        if isinstance(place, Table):
            places.append(int(place.listed.reshape(-1)[0]))
        else:
            counts = (1,) * len(place.counters)
            places.append(int(place.numbers(piece.cells[:1], counts).reshape(-1)[0]))
    element = int(np.ravel_multi_index(tuple(places), shape)) if shape else 0
    return means.reader_of(form.tensor, element)


_Sides: TypeAlias = tuple[
    tuple[Kernel, Mapping[str, int], dict[str, Tensor]],
    tuple[Kernel, Mapping[str, int], dict[str, Tensor]],
]


def _witnesses(
    sides: _Sides,
    binding: Binding,
    make: Make,
    differing: Mapping[str, NDArray[np.int64]],
    meter: Meter,
) -> dict[str, Witness]:
    """An element of each output, of those given, on which float64 evaluation differs."""
    found: dict[str, Witness] = {}
    wanted = {name for name, elements in differing.items() if elements.size}
    for family in FAMILIES:
        inputs = Inputs(family=family, seed=0)
        arrays = make(binding, inputs)
        results = [_evaluated(*side, arrays, meter) for side in sides]
        for name in sorted(wanted - found.keys()):
            tensor = next(t for t in binding.outputs if t.name == name)
            left, right = (result[name] for result in results)
            if left.shape != right.shape:
                continue
            elements = differing[name]
            different = _different(left[elements], right[elements])
            if different.any():
                cell = int(elements[np.flatnonzero(different)[0]])
                found[name] = _witness(binding, tensor, inputs, cell, left, right)
        if wanted <= found.keys():
            break
    return found


def _witness(
    binding: Binding,
    tensor: BoundTensor,
    inputs: Inputs,
    cell: int,
    cuda: NDArray[np.float64],
    nki: NDArray[np.float64],
) -> Witness:
    return Witness(
        found_by="evaluation",
        sizes=dict(binding.sizes),
        inputs=inputs,
        output=tensor.name,
        index=tuple(int(i) for i in np.unravel_index(cell, tensor.shape)),
        cuda=_shown(cuda[cell]),
        nki=_shown(nki[cell]),
    )


def _overflows(
    sides: _Sides,
    binding: Binding,
    make: Make,
    differing: Mapping[str, NDArray[np.int64]],
    meter: Meter,
) -> dict[str, tuple[Witness, Overflow]]:
    """Outputs that are no number on the NKI side, for large inputs, but are in CUDA."""
    wanted = {name for name, elements in differing.items() if elements.size}
    if not wanted:
        return {}
    inputs = Inputs(family=WIDE, seed=0)
    arrays = make(binding, inputs)
    watched: list[Watched] = []

    def watching(given: Mapping[str, NDArray[np.float64]]) -> Reals:
        watched.append(Watched(given))
        return watched[-1]

    cuda = _evaluated(*sides[0], arrays, meter)
    nki = _evaluated(*sides[1], arrays, meter, watching)
    overflow = watched[0].first
    if overflow is None:
        return {}
    found: dict[str, tuple[Witness, Overflow]] = {}
    for name in sorted(wanted):
        tensor = next(t for t in binding.outputs if t.name == name)
        left, right, elements = cuda[name], nki[name], differing[name]
        if left.shape == right.shape:
            lost = np.isfinite(left[elements]) & ~np.isfinite(right[elements])
            if lost.any():
                cell = int(elements[np.flatnonzero(lost)[0]])
                found[name] = (_witness(binding, tensor, inputs, cell, left, right), overflow)
    return found


def _evaluated(
    kernel: Kernel,
    sizes: Mapping[str, int],
    tensors: Mapping[str, Tensor],
    arrays: Mapping[str, NDArray[np.generic]],
    meter: Meter,
    algebra: Callable[[Mapping[str, NDArray[np.float64]]], Reals] = Reals,
) -> dict[str, NDArray[np.float64]]:
    """The outputs as logical tensors, flat; unwritten elements are `_UNWRITTEN`."""
    inputs: dict[str, NDArray[np.float64]] = {}
    for buffer, tensor in tensors.items():
        if tensor.name not in arrays:
            continue
        flat = np.asarray(arrays[tensor.name]).astype(np.float64).reshape(-1)
        if tensor.elements is not None:
            held = tensor.elements >= 0
            placed = np.zeros(tensor.elements.size)
            placed[held] = flat[tensor.elements[held]]
            flat = placed
        inputs[buffer] = flat
    evaluation = evaluate(kernel, sizes, algebra(inputs), meter=meter)
    results: dict[str, NDArray[np.float64]] = {}
    for buffer, content in evaluation.outputs.items():
        if buffer not in tensors:
            continue
        tensor = tensors[buffer]
        unwritten = (evaluation.writers[buffer] < 0) & (buffer not in inputs)
        marked = np.where(unwritten, _UNWRITTEN, content)
        if tensor.elements is not None:
            size = int(np.prod(tensor.shape, dtype=object)) if tensor.shape else 1
            logical = np.full(size, _UNWRITTEN)
            held = tensor.elements >= 0
            logical[tensor.elements[held]] = marked[held]
            marked = logical
        results[tensor.name] = marked
    return results


# A NaN with a payload of its own, so that "nobody wrote this" survives as a value.
_UNWRITTEN = np.array([0x7FF8_0000_DEAD_0000], np.uint64).view(np.float64)[0]


def _unwritten(number: np.float64) -> bool:
    return int(np.float64(number).view(np.uint64)) == 0x7FF8_0000_DEAD_0000


def _different(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.bool_]:
    with np.errstate(all="ignore"):
        scale = np.maximum(np.maximum(np.abs(left), np.abs(right)), 1e-30)
        apart = np.abs(left - right) > _SAME * scale
        finite = np.isfinite(left) & np.isfinite(right)
        bits = left.view(np.uint64) != right.view(np.uint64)
        classes = (
            (np.isnan(left) != np.isnan(right))
            | (np.isinf(left) & np.isinf(right) & (left != right))
            | (np.isinf(left) != np.isinf(right))
        )
    marked = np.uint64(0x7FF8_0000_DEAD_0000)
    lost = (left.view(np.uint64) == marked) ^ (right.view(np.uint64) == marked)
    return np.asarray(np.where(finite, apart & bits, classes) | lost)


def _shown(number: np.float64) -> Value:
    return "uninitialised" if _unwritten(number) else value(float(number))


def spans_of(form: Form) -> tuple[Span, ...]:
    """Every span in a form, outer first."""
    found = [getattr(node, "span", None) for node in walk(form)]
    return tuple(dict.fromkeys(span for span in found if span is not None))
