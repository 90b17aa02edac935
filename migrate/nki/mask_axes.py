"""Which axes of which operands a mask is about, instruction by instruction.

A mask of NKI 0.1 is over the positions of index tensors.  In an elementwise instruction they
are the positions of every operand alike; matmuls, reductions and transposes use the same axis
of different operands for different things.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from migrate.nki import addresses
from migrate.nki.errors import Unsupported
from migrate.nki.indices import Condition
from migrate.nki.symbols import Number, Origin
from migrate.nki.values import Address, View

Operands: TypeAlias = Mapping[str, object]
Place: TypeAlias = tuple[str, int]
"""An axis of an operand by name."""


def references(opcode: str) -> tuple[str, ...]:
    """The operands that the mask of an instruction may be about, likeliest first."""
    return _REFERENCES.get(opcode, ("dst",))


def along(opcode: str, values: Operands, reference: str, axis: int, origin: Origin) -> list[Place]:
    """Every operand and axis that goes with an axis of the one that a mask is about.

    Raises `Unsupported` where that does not follow from the shapes.
    """
    return _ALONG.get(opcode, _elementwise)(values, reference, axis, origin)


def placed(
    opcode: str,
    mask: Condition,
    values: Operands,
    named: tuple[str, ...],
    origin: Origin,
) -> tuple[str, tuple[Address, ...]]:
    """The operand that a mask is about, and the conditions over its axes."""
    used: frozenset[int] = frozenset().union(*map(addresses.axes_of, mask.parts))
    sizes = mask.sizes
    for name in named:
        view = values.get(name)
        if not isinstance(view, View):
            continue
        # Aligned at the right as NumPy would; a mask of fewer axes may leave out the last ones.
        for by in dict.fromkeys((len(view.shape) - len(sizes), 0)):
            if all(
                0 <= axis + by < len(view.shape) and view.sizes[axis + by] == sizes[axis]
                for axis in used
            ):
                places = {axis: axis + by for axis in used}
                return name, tuple([addresses.renamed(part, places) for part in mask.parts])
    stationary = values.get("stationary")
    if opcode == "nc_matmul" and isinstance(stationary, View) and used == {0}:
        # The partitions of the result are the columns of stationary.
        if len(stationary.shape) == 2 and stationary.sizes[1] == sizes[0]:
            return "stationary", tuple(addresses.renamed(part, {0: 1}) for part in mask.parts)
    views = [view.sizes for name in named if isinstance(view := values.get(name), View)]
    shown = " and ".join(map(str, views)) or "no tensor"
    raise Unsupported(f"a mask over {sizes} on {opcode} over {shown}", origin)


def _elementwise(values: Operands, reference: str, axis: int, origin: Origin) -> list[Place]:
    """The same axis of everything; a column has the partitions only."""
    view = values[reference]
    assert isinstance(view, View)
    found: list[Place] = []
    for name, value in values.items():
        if isinstance(value, View):
            place = _matching(view, value, axis, name, origin)
            if place is not None:
                found.append((name, place))
    return found


def _matching(view: View, other: View, axis: int, name: str, origin: Origin) -> int | None:
    """The axis of another operand that goes with one of `view`; `None` where it repeats."""
    if other.sizes == view.sizes:
        return axis
    wide = [k for k, size in enumerate(view.sizes) if size != 1]
    theirs = [k for k, size in enumerate(other.sizes) if size != 1]
    if [view.sizes[k] for k in wide] == [other.sizes[k] for k in theirs]:
        return theirs[wide.index(axis)] if axis in wide else _single(view, other, axis)
    if other.free_elements == 1:
        if axis > 0:
            return None
        return 0 if other.sizes[0] == view.sizes[0] else None
    if len(other.sizes) == len(view.sizes) and all(
        a in (1, b) for a, b in zip(other.sizes, view.sizes, strict=True)
    ):
        return axis if other.sizes[axis] != 1 else None
    if axis == 0 and other.sizes[:1] == view.sizes[:1]:
        return 0
    raise Unsupported(f"a mask with {name} of another shape", origin)


def _single(view: View, other: View, axis: int) -> int | None:
    """An axis of size 1 in both: the same one where the ranks agree, else the first or last."""
    if len(view.shape) == len(other.shape):
        return axis
    return axis if axis == 0 else len(other.shape) - 1


def _reduction(values: Operands, reference: str, axis: int, origin: Origin) -> list[Place]:
    """What is read loses the positions; the result only where the axis is not reduced."""
    data, dst = values["data"], values.get("dst")
    if reference != "data" or not isinstance(data, View):
        raise Unsupported("a mask on the result of a reduction", origin)
    rank = len(data.shape)
    given = values.get("axis")
    items = given if isinstance(given, tuple | list) else (given,)
    reduced: set[int] = set()
    for item in items:
        if not isinstance(item, Number) or not item.integral:
            raise Unsupported("a masked reduction whose axes are not integers", origin)
        reduced.add(int(item.value) % rank)
    found: list[Place] = [("data", axis)]
    if axis not in reduced and isinstance(dst, View):
        if len(dst.shape) == rank:
            found.append(("dst", axis))
        else:
            kept = [k for k in range(rank) if k not in reduced]
            found.append(("dst", kept.index(axis)))
    return found


def _rows(values: Operands, reference: str, axis: int, origin: Origin) -> list[Place]:
    """What is read loses the positions; every other operand its partitions."""
    if reference not in ("data", "src"):
        raise Unsupported(f"a mask on {reference} alone", origin)
    found: list[Place] = [(reference, axis)]
    if axis == 0:
        others = (n for n, value in values.items() if isinstance(value, View) and n != reference)
        found += [(name, 0) for name in others]
    return found


def _replacement(values: Operands, reference: str, axis: int, origin: Origin) -> list[Place]:
    """What is read and what is written lose the positions; other operands their partitions."""
    found = _rows(values, reference, axis, origin)
    return found if axis == 0 else [*found, ("dst", axis)]


def _transposition(values: Operands, reference: str, axis: int, origin: Origin) -> list[Place]:
    """Partitions become the free axis and the other way round."""
    for name in ("data", "dst"):
        view = values.get(name)
        if not isinstance(view, View) or len(view.shape) != 2:
            raise Unsupported("a masked transpose of more than two axes", origin)
    other = "dst" if reference == "data" else "data"
    return [(reference, axis), (other, 1 - axis)]


def _gathering(values: Operands, reference: str, axis: int, origin: Origin) -> list[Place]:
    """What is chosen loses the positions; what it is chosen from its partitions only."""
    free = {name: value for name, value in values.items() if name != "data"}
    found = _elementwise(free, reference, axis, origin)
    return [*found, ("data", 0)] if axis == 0 else found


def _refused(_: Operands, __: str, ___: int, origin: Origin) -> list[Place]:
    raise Unsupported("a mask on an instruction that moves elements between axes", origin)


def _matmul(values: Operands, reference: str, axis: int, origin: Origin) -> list[Place]:
    """Both operands are contracted over axis 0; the result has the other axes of both."""
    if axis == 0 and reference != "dst":
        return [("stationary", 0), ("moving", 0)]
    operand, result = values.get(reference), values.get("dst")
    if isinstance(operand, View) and isinstance(result, View):
        if reference == "stationary" and len(operand.shape) == 2:
            return [("stationary", 1), ("dst", 0)]
        if reference == "moving" and operand.sizes[1:] == result.sizes[1:]:
            return [("moving", axis), ("dst", axis)]
    raise Unsupported("a mask on a matmul that fits none of its axes", origin)


_REFERENCES: dict[str, tuple[str, ...]] = {
    "tensor_reduce": ("data",),
    "bn_stats": ("data",),
    "bn_aggr": ("data",),
    "max8": ("src",),
    "nc_match_replace8": ("data",),
    "nc_find_index8": ("data",),
    "nc_transpose": ("data",),
    "nc_matmul": ("moving", "stationary"),
}

_ALONG: dict[str, Callable[[Operands, str, int, Origin], list[Place]]] = {
    "tensor_reduce": _reduction,
    "bn_stats": _rows,
    "bn_aggr": _rows,
    "max8": _rows,
    "nc_match_replace8": _replacement,
    "nc_find_index8": _rows,
    "nc_transpose": _transposition,
    "nc_matmul": _matmul,
    "nc_n_gather": _gathering,
    **dict.fromkeys(
        (
            "dma_compute", "dma_transpose", "local_gather", "nc_matmul_mx", "nc_stream_shuffle",
            "nonzero_with_count", "quantize_mx", "sendrecv", "sequence_bounds",
            "tensor_partition_reduce", "topk",
        ),
        _refused,
    ),
}  # fmt: skip
