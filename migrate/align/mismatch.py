"""Elements of an output that differ, in groups that differ in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from migrate.align.binding import BoundTensor
from migrate.align.difference import Difference, differences, similarity
from migrate.ir.forms import Element, Form, Piece, Table
from migrate.ir.nodes import Op
from migrate.ir.normal import Meaning

_FEW = 96
"""Elements of a group whose expressions are read."""


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


def mismatches(
    tensor: BoundTensor, cuda: Meaning, nki: Meaning, differing: NDArray[np.int64]
) -> list[Mismatch]:
    """Differing elements, grouped by who wrote them and by the shapes of both expressions."""
    wanted = cuda.terms[tensor.name].reshape(-1)[differing]
    once_right = nki.once_held(tensor.name, differing, wanted)
    groups = _groups(tensor.name, cuda, nki, differing, once_right)
    samples = [sampled(group, _FEW) for group in groups]
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
        for other in nki.pieces(tensor.name, flat(piece, tensor.shape)):
            elements = flat(other, tensor.shape)
            (mine,) = cuda.pieces(tensor.name, elements)
            yield mine, other, elements


def sampled(elements: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """The first and last of many elements and some between, near one another and far apart."""
    if elements.size <= most:
        return elements
    half = most // 2
    spread = np.linspace(0, elements.size - 1, half).astype(np.int64)
    return np.asarray(elements[np.unique(np.concatenate([np.arange(half), spread]))])


def flat(piece: Piece, shape: tuple[int, ...]) -> NDArray[np.int64]:
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
