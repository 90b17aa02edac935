"""What the instructions that move elements within or between partitions compute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from migrate.nki.errors import Unsupported
from migrate.nki.frames import Instruction
from migrate.nki.parts import Part
from migrate.nki.semantics import Machine, flat_free, required_view
from migrate.nki.symbols import Number, binary
from migrate.numerics.dtypes import DType

V = TypeVar("V")

CORE = 16
"""Partitions that one of the eight GpSimd cores is connected to."""

QUADRANT = 32
"""Partitions between which the Vector engine moves data at will."""

KEPT = 255
"""In a shuffle mask: the destination keeps its content."""


def nc_n_gather(m: Machine[V], i: Instruction) -> None:
    """In each partition, the elements of `data` that its own indices say."""
    dst, data = required_view(i, "dst"), required_view(i, "data")
    indices = required_view(i, "indices")
    shape = (indices.shape[0], flat_free(indices))
    chosen = m.convert(m.read(indices, shape), DType.INT32)
    m.write(dst, m.reshape(m.gather(data, chosen, shape), dst.shape))


def local_gather(m: Machine[V], i: Instruction) -> None:
    """In each partition, elements that the indices of its 16 partitions say.

    Those are counted with the partition fastest; each stands for `num_elem_per_idx` elements
    from that offset on.
    """
    dst, data = required_view(i, "dst"), required_view(i, "src_buffer")
    index = required_view(i, "index")
    each, valid = i.attribute("num_elem_per_idx"), i.attribute("num_valid_indices")
    rows, width = index.shape[0], flat_free(index)
    if valid is None:
        valid = binary("*", width, Number(CORE))
    if not isinstance(each, Number) or not isinstance(valid, Number):
        raise Unsupported("local_gather without constant numbers of indices and elements")
    count = binary("*", valid, each)
    if dst.free_elements != count.value:
        raise Unsupported(
            f"local_gather of {count.value} elements into {dst.free_elements}, which does what is"
            " not documented"
        )
    if index.sizes[0] % CORE or valid.value > CORE * width.value:
        raise Unsupported("local_gather of partitions that are no whole cores")
    given = m.convert(m.read(index, (rows, width)), DType.INT32)
    # Where only whole elements are meant, the offset within one is no part of the expression.
    size = int(each.value)
    shape = (rows, count)

    def first(place: Any, _: object) -> tuple[object, ...]:
        row, here = place
        number = here // size if size > 1 else here
        return row // CORE * CORE + number % CORE, number // CORE

    starts = m.rearrange(given, shape, first)
    if size > 1:
        wide = (rows, valid, each)
        within = m.position(wide, Number(0), (Number(0), Number(0), Number(1)))
        starts = m.apply("add", (starts, m.reshape(within, shape)), DType.INT32)
    m.write(dst, m.reshape(m.gather(data, starts, shape), dst.shape))


def nc_stream_shuffle(m: Machine[V], i: Instruction) -> None:
    """Partitions moved within each group of 32, by one mask for all groups."""
    dst, src = required_view(i, "dst"), required_view(i, "src")
    mask = i.attribute("shuffle_mask")
    if not isinstance(mask, tuple | list) or len(mask) != QUADRANT:
        raise Unsupported("nc_stream_shuffle without a mask of 32 numbers")
    chosen = [int(n.value) for n in mask if isinstance(n, Number) and n.integral]
    if len(chosen) != QUADRANT:
        raise Unsupported("a shuffle mask with something other than integers")
    flat = (src.shape[0], flat_free(src))
    value = m.read(src, flat)
    if src.buffer is dst.buffer:
        value = m.keep(value, flat)
    rows = dst.sizes[0]
    for group in range(0, rows, QUADRANT):
        for start, count, source, step in _runs(chosen[: rows - group]):
            if not all(0 <= source + step * k < QUADRANT for k in (0, count - 1)):
                raise Unsupported("a shuffle mask with a partition outside its group")
            if group + max(source, source + step * (count - 1)) >= src.sizes[0]:
                raise Unsupported("a shuffle mask with a partition that src does not have")
            part = m.part(dst, (Part(0, group + start, 1, Number(count)),))
            base = group + source

            def where(
                place: Any, _: object, base: int = base, step: int = step
            ) -> tuple[object, ...]:
                row, here = place
                return row * step + base, here

            moved = m.rearrange(value, (Number(count), flat[1]), where)
            m.write(part, m.reshape(moved, part.shape))


def _runs(mask: list[int]) -> Iterator[tuple[int, int, int, int]]:
    """The mask as (first, count, source, step): partition first + k takes source + step * k."""
    start = 0
    while start < len(mask):
        end, step = start + 1, 0
        if mask[start] != KEPT:
            if end < len(mask) and mask[end] != KEPT:
                step = mask[end] - mask[start]
            while end < len(mask) and mask[end] != KEPT and mask[end] - mask[end - 1] == step:
                end += 1
            yield start, end - start, mask[start], step
        start = end
