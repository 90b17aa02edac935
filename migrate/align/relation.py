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

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from migrate.align.binding import Binding, BoundTensor, given_shape, logical_tensors
from migrate.align.chance import left_to_chance
from migrate.align.difference import Difference
from migrate.align.mismatch import Mismatch, flat, sampled
from migrate.align.mismatch import mismatches as mismatches_of
from migrate.align.overflow import Overflow
from migrate.align.witness import Make, Sides, overflowing, witnesses
from migrate.budget import Exhausted, Meter
from migrate.ir.evaluate import Trouble, Unevaluable
from migrate.ir.forms import Form, Missing, Unknown, walk
from migrate.ir.nodes import Kernel, Op
from migrate.ir.normal import Meaning, Tensor, meaning
from migrate.ir.scene import place
from migrate.results import Side, Witness
from migrate.source import Span

Status: TypeAlias = Literal["proved", "refuted", "unknown"]

_MANY = 2048
"""Elements among which a witness is looked for where some are not understood."""


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
    sides = ((cuda, cuda_sizes, cuda_tensors), (nki, nki_sizes, nki_tensors))
    if any(elements.size for elements in differing.values()):
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
    if _many(outputs) and 2 * meter.steps - before < meter.budget.steps:
        outputs = _without_innocent(outputs, sides, meter)
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
    mismatches = tuple(mismatches_of(tensor, cuda, nki, differing))
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


_COMPUTED = frozenset({"operator", "sign", "constant", "extent", "operand", "expression"})
"""Differences that are of the instruction at their place, and not of what it is given."""


def _many(outputs: tuple[OutputRelation, ...]) -> bool:
    """Whether a refuted result differs in several places."""
    places = {
        place(difference.nki_span)
        for output in outputs
        if output.status == "refuted" and output.overflow is None
        for mismatch in output.mismatches
        for difference in mismatch.differences
        if difference.nki_span is not None
    }
    return len(places) > 1


def _without_innocent(
    outputs: tuple[OutputRelation, ...], sides: Sides, meter: Meter
) -> tuple[OutputRelation, ...]:
    """The outputs without differences at instructions whose results the CUDA kernel has too."""
    from migrate.ir.innocence import innocent

    try:
        fine = innocent(*sides, meter)
    except (Unevaluable, Exhausted):
        return outputs

    def excused(difference: Difference) -> bool:
        own = difference.nki_span if difference.what in _COMPUTED else None
        around = difference.within if own is None else (*difference.within, own)
        return any(place(span) in fine for span in around)

    def kept(mismatch: Mismatch) -> Mismatch:
        left = tuple(d for d in mismatch.differences if not excused(d))
        return replace(mismatch, differences=left) if left else mismatch

    return tuple(
        replace(output, mismatches=tuple(kept(mismatch) for mismatch in output.mismatches))
        if output.status == "refuted" and output.overflow is None
        else output
        for output in outputs
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
        elements = sampled(elements, _MANY)
        pieces = means.pieces(output, elements)
        kept = [
            flat(piece, means.shapes[output])
            for piece in pieces
            if not any(isinstance(form, Unknown) for form in walk(piece.form))
        ]
        elements = np.sort(np.concatenate(kept)) if kept else elements[:0]
    return elements


def spans_of(form: Form) -> tuple[Span, ...]:
    """Every span in a form, outer first."""
    found = [getattr(node, "span", None) for node in walk(form)]
    return tuple(dict.fromkeys(span for span in found if span is not None))
