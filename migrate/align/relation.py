"""Do two kernels compute the same?  Proved, refuted or unknown, at concrete sizes.

Both IRs are read as canonical terms over the same logical tensors.  An output is

* *proved* where every element has the same term on both sides, or is proved equal without
  (`ir.identity`), and nothing in it is unknown: equal over the reals, for every input, at
  these sizes;
* *refuted* where evaluating both in float64 gives different numbers for the same
  inputs: the element is a witness;
* *unknown* otherwise.

Elements that the CUDA kernel itself leaves to chance (it reads what nobody wrote, or its
threads race) prove and refute nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.align.binding import Binding, BoundTensor, given_shape, logical_tensors
from migrate.align.chance import left_to_chance
from migrate.align.difference import Difference, differences, similarity
from migrate.align.overflow import Overflow
from migrate.align.witness import Make, Sides, overflowing, witnesses
from migrate.budget import Meter
from migrate.ir.evaluate import Trouble
from migrate.ir.forms import Element, Form, Missing, Piece, Table, Unknown, walk
from migrate.ir.nodes import Kernel, Op
from migrate.ir.normal import Meaning, Tensor, meaning
from migrate.results import Side, Witness
from migrate.source import Span

Status: TypeAlias = Literal["proved", "refuted", "unknown"]

_FEW = 96
"""Elements of a group whose expressions are read."""

_MANY = 2048
"""Elements among which a witness is looked for where some are not understood."""


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
    undefined: int = 0
    """Elements that the CUDA kernel leaves to chance."""
    fits: bool = True
    """Whether the NKI kernel gives this output, in the shape that is asked for."""


@dataclass(frozen=True, slots=True)
class Relation:
    """Both kernels at one position of the sizes.

    `cuda_trouble` is what the reference itself does wrong, whatever the NKI kernel does.
    """

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
    cuda, nki = _as_given(cuda, binding, "cuda"), _as_given(nki, binding, "nki")
    cuda_tensors = logical_tensors(binding, cuda, "cuda")
    shapes = {t.name: given_shape(binding, nki, t, nki_sizes) for t in binding.outputs}
    misshapen = frozenset(t.name for t in binding.outputs if shapes[t.name] != binding.nki_shape(t))
    nki_tensors = {
        buffer: tensor
        for buffer, tensor in logical_tensors(binding, nki, "nki").items()
        if tensor.name not in misshapen or _holds(tensor, shapes[tensor.name])
    }
    before = meter.steps
    cuda_means = meaning(cuda, cuda_sizes, cuda_tensors, meter=meter)
    nki_means = meaning(nki, nki_sizes, nki_tensors, meter=meter)
    differing: dict[str, NDArray[np.int64]] = {}
    chance: dict[str, NDArray[np.int64]] = {}
    for tensor in binding.outputs:
        left = cuda_means.terms.get(tensor.name)
        right = nki_means.terms.get(tensor.name)
        if left is None or right is None:
            continue
        if left.size != right.size:
            continue  # a result of another shape has no elements to hold against each other
        undefined = left_to_chance(tensor.name, cuda, cuda_means, cuda_tensors)
        chance[tensor.name] = np.flatnonzero(undefined)
        apart = left.reshape(-1) != right.reshape(-1)
        differing[tensor.name] = np.flatnonzero(apart & ~undefined)
    shown: dict[str, Witness] = {}
    identical: frozenset[str] = frozenset()
    overflows: dict[str, Overflow] = {}
    if any(elements.size for elements in differing.values()):
        sides = ((cuda, cuda_sizes, cuda_tensors), (nki, nki_sizes, nki_tensors))
        known = {
            name: _knowable(name, elements, (cuda_means, nki_means))
            for name, elements in differing.items()
        }
        shown = witnesses(sides, binding, make, known, meter)
        alike = {name: elements for name, elements in known.items() if name not in shown}
        for name, (witness, overflow) in overflowing(sides, binding, make, alike, meter).items():
            shown[name], overflows[name] = witness, overflow
        open_ = {name: elements for name, elements in differing.items() if name not in shown}
        # It takes about the work done so far once more.
        if 2 * meter.steps - before < meter.budget.steps:
            identical = _identical(sides, open_, (cuda_means, nki_means), meter)
    outputs = tuple(
        _output(
            tensor,
            cuda_means,
            nki_means,
            differing.get(tensor.name),
            chance.get(tensor.name, _NONE),
            shown.get(tensor.name),
            overflows.get(tensor.name),
            fits=tensor.name not in misshapen,
            identical=tensor.name in identical,
        )
        for tensor in binding.outputs
    )
    return Relation(
        sizes=binding.sizes,
        outputs=outputs,
        rewrites=tuple(
            sorted({*cuda_means.rewrites, *nki_means.rewrites, *(_IDENTITY if identical else ())})
        ),
        cuda_trouble=cuda_means.evaluation.trouble,
        nki_trouble=nki_means.evaluation.trouble,
        nki_stores=nki_means.evaluation.stores,
        nki_writers=nki_means.writers,
    )


def _as_given(kernel: Kernel, binding: Binding, side: Side) -> Kernel:
    """The kernel with no more content in its buffers than it is given: an `out` has none."""
    empty = {t.cuda if side == "cuda" else t.nki for t in binding.tensors if t.role == "out"}
    buffers = tuple(
        replace(buffer, role="out") if buffer.role == "inout" and buffer.name in empty else buffer
        for buffer in kernel.buffers
    )
    return kernel if buffers == kernel.buffers else replace(kernel, buffers=buffers)


def _holds(tensor: Tensor, shape: tuple[int, ...] | None) -> bool:
    """Whether an array of another shape still has the tensor's elements, in their order."""
    return tensor.elements is None and shape is not None and prod(shape) == prod(tensor.shape)


def _output(
    tensor: BoundTensor,
    cuda: Meaning,
    nki: Meaning,
    differing: NDArray[np.int64] | None,
    chance: NDArray[np.int64],
    witness: Witness | None,
    overflow: Overflow | None,
    *,
    fits: bool,
    identical: bool,
) -> OutputRelation:
    if differing is None:
        return OutputRelation(tensor.name, tensor.shape, "unknown", 0.0, 0.0, (), None, fits=fits)
    if identical:
        differing = _NONE
    mismatches = tuple(_mismatches(tensor, cuda, nki, differing))
    total = max(tensor.size, 1)
    agreeing = 1.0 - (differing.size + chance.size) / total
    alike = agreeing + sum(m.likeness * m.count for m in mismatches) / total
    status: Status
    if witness is not None:
        status = "refuted"
    elif chance.size or not fits:
        status = "unknown"
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
        overflow,
        chance.size,
        fits,
    )


_NONE = np.zeros(0, np.int64)
_IDENTITY = ("identity-over-finite-fields",)


def _identical(
    sides: Sides,
    differing: Mapping[str, NDArray[np.int64]],
    both: tuple[Meaning, Meaning],
    meter: Meter,
) -> frozenset[str]:
    """The outputs whose elements are equal though their terms are not."""
    from migrate.ir.identity import proved_equal

    tried = {
        name: elements
        for name, elements in differing.items()
        if elements.size and all(_understood(name, means) for means in both)
    }
    if not tried:
        return frozenset()
    found = proved_equal(*sides, tried, meter)
    return frozenset(name for name, equal in found.items() if equal)


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
    wanted = cuda.terms[tensor.name].reshape(-1)[differing]
    once_right = nki.once_held(tensor.name, differing, wanted)
    groups = _groups(tensor.name, cuda, nki, differing, once_right)
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
            cuda_writer = _writer(cuda, tensor.name, int(elements[0]))
            writer = _writer(nki, tensor.name, int(elements[0]))
            parted = _written(mine.form, other.form, cuda_writer, writer)
            found.append(
                Mismatch(
                    output=tensor.name,
                    elements=group if alone else elements,
                    count=count,
                    sampled=not alone and sample.size < group.size,
                    differences=parted,
                    cuda_op=cuda_writer,
                    nki_op=writer,
                    reads=_reads(nki, parted, other),
                    likeness=similarity(mine.form, other.form),
                    overwritten=bool(once_right[np.searchsorted(differing, elements[0])]),
                )
            )
    return found


def _written(
    cuda: Form, nki: Form, cuda_writer: Op | None, nki_writer: Op | None
) -> tuple[Difference, ...]:
    """How two forms differ, first of all in who writes the elements.

    An element that one side alone writes is just that, whatever was in it before; one that is
    written, with nothing in it, is not unwritten.
    """
    parted = differences(cuda, nki)
    if any(difference.what == "unknown" for difference in parted):
        return parted
    if cuda_writer is not None and nki_writer is None:
        return (Difference("unwritten", cuda, nki, None, None),)
    if cuda_writer is None and nki_writer is not None:
        return (Difference("extra-write", cuda, nki, None, None),)
    return tuple(
        replace(difference, what="unwritten-operand")
        if difference.what == "unwritten" and nki_writer is not None
        else difference
        for difference in parted
    )


def _groups(
    output: str,
    cuda: Meaning,
    nki: Meaning,
    differing: NDArray[np.int64],
    once_right: NDArray[np.bool_],
) -> list[NDArray[np.int64]]:
    """Elements that the same ops of both sides wrote last (or none did), over the same past."""
    if not differing.size:
        return []
    left = cuda.writers[output].reshape(-1)[differing]
    right = nki.writers[output].reshape(-1)[differing]
    keys = left.astype(np.int64) * (int(right.max()) + 2) + right + 1
    keys = 2 * keys + once_right
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


def spans_of(form: Form) -> tuple[Span, ...]:
    """Every span in a form, outer first."""
    found = [getattr(node, "span", None) for node in walk(form)]
    return tuple(dict.fromkeys(span for span in found if span is not None))
