"""How the CUDA kernel is launched: stated by the case, else read from the host code."""

from __future__ import annotations

from migrate.align.binding import Binding
from migrate.case.expression import ExpressionError, evaluate
from migrate.case.types import Integer
from migrate.ir.index import Index
from migrate.pipeline.kernels import Pair
from migrate.source import SourceError
from migrate.verify.launch import Launch


def launch_at(pair: Pair, binding: Binding) -> Launch:
    """The launch at one position of the sizes; raises `SourceError` where it is open."""
    grid = tuple(_number(extent, pair, binding) for extent in _grid(pair))
    block = tuple(_number(extent, pair, binding) for extent in _block(pair))
    return Launch(
        kernel=pair.cuda.name,
        grid=_three(grid),
        block=_three(block),
        shared_bytes=_number(pair.launch.dynamic_shared, pair, binding),
        template=dict(pair.launch.template) or None,
    )


def symbolic_launch(pair: Pair) -> tuple[tuple[Index, ...], tuple[Index, ...]]:
    """Grid and block as expressions over the sizes, three extents each."""
    from migrate.case.expression import parse

    def index(extent: Integer) -> Index:
        return Index.of(extent) if isinstance(extent, int) else parse(extent).index()

    def three(extents: tuple[Integer, ...]) -> tuple[Index, ...]:
        padded = (*extents, 1, 1)[:3]
        return tuple(index(extent) for extent in padded)

    return three(_grid(pair)), three(_block(pair))


def _grid(pair: Pair) -> tuple[Integer, ...]:
    if pair.launch.grid is None:
        raise SourceError(
            f"the launch of {pair.cuda.name} is not known; state grid and block in a case",
            file=pair.cuda_source.name,
            where=pair.cuda.span,
        )
    return pair.launch.grid


def _block(pair: Pair) -> tuple[Integer, ...]:
    if pair.launch.block is None:
        raise SourceError(
            f"the block of {pair.cuda.name} is not known; state it in a case",
            file=pair.cuda_source.name,
            where=pair.cuda.span,
        )
    return pair.launch.block


def _number(extent: Integer, pair: Pair, binding: Binding) -> int:
    if isinstance(extent, int):
        return extent
    try:
        return evaluate(extent, binding.sizes)
    except ExpressionError as error:
        raise SourceError(str(error), file=pair.case.file or "the case") from None


def _three(extents: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z
