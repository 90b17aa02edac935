"""What the instructions that look for elements compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from migrate.nki.errors import Unsupported
from migrate.nki.frames import Instruction
from migrate.nki.parts import Part, cell
from migrate.nki.semantics import F32, Machine, flat_free, required_view
from migrate.nki.symbols import Number, binary
from migrate.nki.values import View
from migrate.numerics.dtypes import DType

V = TypeVar("V")

I32 = DType.INT32
EIGHT = Number(8)
ONE = Number(1)

NOWHERE = 2**31 - 1
"""A position after every other."""


def max8(m: Machine[V], i: Instruction) -> None:
    """The eight largest of each partition, largest first; equal ones count each."""
    dst, src = required_view(i, "dst"), required_view(i, "src")
    shape = (src.shape[0], flat_free(src))
    value = m.convert(m.read(src, shape), F32)
    values, _ = m.largest(value, shape, EIGHT)
    m.write(dst, m.reshape(values, dst.shape))


def nc_find_index8(m: Machine[V], i: Instruction) -> None:
    """Where each of eight values stands first; equal ones take successive places."""
    dst, data = required_view(i, "dst"), required_view(i, "data")
    found = _places(m, i, range(8))
    for slot in range(8):
        m.write(m.part(dst, cell(dst, slot)), _as_index(m, found[slot], dst, data))


def nc_match_replace8(m: Machine[V], i: Instruction) -> None:
    """The data with the first occurrence of each of eight values replaced.

    Equal values are looked for from the last slot to the first.
    """
    dst, data = required_view(i, "dst"), required_view(i, "data")
    imm, places = i.attribute("imm"), i.view("dst_idx")
    if not isinstance(imm, Number):
        raise Unsupported("nc_match_replace8 without a number to replace by")
    found = _places(m, i, range(7, -1, -1))
    shape = (data.shape[0], flat_free(data))
    numbers = m.position(shape, Number(0), (Number(0), ONE))
    dtype = data.dtype if data.dtype is dst.dtype else F32
    value, filler = m.convert(m.read(data, shape), dtype), m.number(imm, dtype)
    for place in found.values():
        value = m.select(m.apply("equal", (numbers, place), I32), filler, value)
    if data.buffer is dst.buffer:
        value = m.keep(value, shape)
    if places is not None:
        for slot in range(8):
            place = m.keep(found[slot], (data.shape[0], ONE))
            m.write(m.part(places, cell(places, slot)), _as_index(m, place, places, data))
    m.write(dst, m.reshape(value, dst.shape))


def _places(m: Machine[V], i: Instruction, order: Sequence[int]) -> dict[int, V]:
    """For each slot of `vals` the position in `data`, `NOWHERE` if there is none left.

    Of equal values, the first in `order` takes the first position, and so on.
    """
    data, vals = required_view(i, "data"), required_view(i, "vals")
    rows = data.shape[0]
    shape = (rows, flat_free(data))
    if vals.free_elements != 8:
        raise Unsupported(f"{i.opcode} with {vals.free_elements} values")
    value = m.convert(m.read(data, shape), F32)
    wanted = m.convert(m.read(vals, (rows, EIGHT)), F32)
    numbers = m.position(shape, Number(0), (Number(0), ONE))
    nowhere = m.number(Number(NOWHERE), I32)
    found: dict[int, V] = {}
    looked: dict[int, V] = {}

    def slot_of(slot: int) -> V:
        return m.rearrange(wanted, (rows, ONE), lambda place, _: (place[0], place[1] + slot))

    for slot in order:
        looked[slot] = slot_of(slot)
        after = m.number(Number(-1), I32)
        for other, place in found.items():
            same = m.apply("equal", (looked[other], looked[slot]), F32)
            after = m.select(same, place, after)
        hit = m.apply("equal", (value, looked[slot]), F32)
        later = m.select(m.apply("greater", (numbers, after), I32), numbers, nowhere)
        first = m.reduce("minimum", m.select(hit, later, nowhere), (1,), I32)
        found[slot] = m.keep(first, (rows, ONE))
    return found


def _as_index(m: Machine[V], place: V, dst: View, data: View) -> V:
    """A position in the destination's format; all ones where there is none."""
    missing = m.number(Number(2 ** (8 * dst.dtype.bytes) - 1), dst.dtype)
    none = m.apply("equal", (place, m.number(Number(NOWHERE), I32)), I32)
    chosen = m.select(none, missing, m.convert(place, dst.dtype))
    return m.reshape(chosen, (data.shape[0], *(ONE for _ in dst.shape[1:])))


def nonzero_with_count(m: Machine[V], i: Instruction) -> None:
    """In every 16th partition: positions of what is not zero, padding, and their number."""
    dst, src = required_view(i, "dst"), required_view(i, "src")
    offset, padding = i.attribute("index_offset"), i.attribute("padding_val")
    if not isinstance(offset, Number) or not isinstance(padding, Number):
        raise Unsupported("nonzero_with_count without constant offset and padding")
    wide = any(extent != 1 for extent in dst.sizes[1:-1])
    if len(dst.shape) < 2 or wide or dst.free_elements != src.free_elements + 1:
        raise Unsupported("nonzero_with_count into a tile of another size")
    rows = binary("//", binary("+", src.shape[0], Number(15)), Number(16))
    shape = (rows, flat_free(src))
    every = (Part(0, 0, 16, rows),)
    value = m.convert(m.read(m.part(src, every), shape), F32)
    truth = m.apply("not_equal", (value, m.number(0.0, F32)), F32)
    # The first of what is not zero is the largest when positions count downwards.
    down = m.convert(m.position(shape, shape[1], (Number(0), Number(-1))), F32)
    ranks, places = m.largest(m.apply("multiply", (truth, down), F32), shape, shape[1])
    moved = m.apply("add", (places, m.number(offset, I32)), I32)
    some = m.apply("greater", (ranks, m.number(0.0, F32)), F32)
    listed = m.select(some, moved, m.number(padding, I32))
    count = m.keep(m.reduce("add", truth, (1,), F32), (rows, ONE))
    whole, axis, last = m.part(dst, every), len(dst.shape) - 1, int(shape[1].value)
    for start, value in ((0, listed), (last, count)):
        part = m.part(whole, (Part(axis, start, 1, ONE if start else shape[1]),))
        m.write(part, m.reshape(value, part.shape))


def sequence_bounds(m: Machine[V], i: Instruction) -> None:
    """For each element, where the run of equal ids around it begins, and where it ends.

    Padding (id 0) gives the length, and -1.
    """
    dst, ids = required_view(i, "dst"), required_view(i, "segment_ids")
    rows, length = ids.shape[0], flat_free(ids)
    if ids.sizes[0] != 1 or dst.free_elements != 2 * length.value:
        raise Unsupported("sequence_bounds of more than one partition, or into another size")
    shape = (rows, length)
    value = m.convert(m.read(ids, shape), F32)
    zero, one = Number(0), Number(1)
    ahead = m.rearrange(value, shape, lambda p, n: (p[0], (p[1] + 1) % n[1]))
    behind = m.rearrange(value, shape, lambda p, n: (p[0], (p[1] + n[1] - 1) % n[1]))
    # What wraps around only says anew what the state begins with.
    begins = m.apply("not_equal", (value, behind), F32)
    ends = m.apply("not_equal", (value, ahead), F32)
    here = m.convert(m.position(shape, zero, (zero, one)), F32)
    following = m.convert(m.position(shape, one, (zero, one)), F32)

    def step(state: V, flag: V, position: V) -> V:
        return m.select(flag, position, state)

    starts = m.scan(step, m.number(0.0, F32), begins, here, shape)

    def backwards(given: V) -> V:
        return m.rearrange(given, shape, lambda p, n: (p[0], n[1] - 1 - p[1]))

    stops = backwards(
        m.scan(step, m.number(length, F32), backwards(ends), backwards(following), shape)
    )
    padding = m.apply("equal", (value, m.number(0.0, F32)), F32)
    results = (
        m.select(padding, m.number(length, F32), starts),
        m.select(padding, m.number(-1.0, F32), stops),
    )
    if dst.sizes[:2] != (1, 2):
        raise Unsupported("sequence_bounds into a tile without an axis of 2 after the first")
    for position, result in enumerate(results):
        half = m.part(dst, (Part(1, position, 1, ONE),))
        m.write(half, m.reshape(result, half.shape))
