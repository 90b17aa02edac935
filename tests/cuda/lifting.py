"""Lifting a kernel given as text, and holding its IR against its execution."""

from __future__ import annotations

from typing import Any

import numpy as np

from migrate.budget import Budget, Meter
from migrate.cuda.lift import lift
from migrate.cuda.parse import parse
from migrate.ir.evaluate import evaluate
from migrate.ir.nodes import Kernel
from migrate.ir.reals import Reals
from migrate.ir.validate import problems
from migrate.source import Source
from tests.cuda.running import run


def lifted(text: str, grid: Any, block: Any, *, kernel: str = "k", **options: Any) -> Kernel:
    """The IR of a kernel, which must be well formed."""
    options.setdefault("sizes", {})
    made = lift(parse(Source.of(text, "kernel.cu")), kernel, grid=grid, block=block, **options)
    assert problems(made) == ()
    return made


def agrees(
    text: str,
    *,
    grid: tuple[int, ...] | int = 1,
    block: tuple[int, ...] | int = 32,
    template: dict[str, object] | None = None,
    shared_bytes: int = 0,
    rtol: float = 1e-5,
    **args: Any,
) -> Kernel:
    """Check that the evaluated IR equals the execution; the IR, lifted without sizes."""
    grids = grid if isinstance(grid, tuple) else (grid,)
    blocks = block if isinstance(block, tuple) else (block,)
    arrays = {name: value for name, value in args.items() if isinstance(value, np.ndarray)}
    numbers = {name: value for name, value in args.items() if name not in arrays}
    made = lifted(
        text,
        grids,
        blocks,
        template=template,
        lengths={name: value.size for name, value in arrays.items()},
        shared_bytes=shared_bytes,
    )
    done = run(
        text,
        grid=(*grids, 1, 1)[:3],
        block=(*blocks, 1, 1)[:3],
        template=template,
        shared_bytes=shared_bytes,
        fma=False,
        **args,
    )
    sizes = {name: value for name, value in numbers.items() if name in made.sizes}
    inputs = {
        buffer.name: np.asarray(args[buffer.name], np.float64).reshape(-1)
        for buffer in made.buffers
        if buffer.name in args and buffer.role in ("in", "inout")
    }
    found = evaluate(made, sizes, Reals(inputs), meter=Meter(Budget()))
    assert {output.version.buffer for output in made.outputs} == set(done.written)
    for name in done.written:
        expected = np.asarray(done.outputs[name], np.float64).reshape(-1)
        got = np.asarray(found.outputs[name], np.float64)
        writers = found.writers[name]
        # What nobody wrote keeps what it had, which the IR of an output does not know.
        written = writers >= 0
        assert np.allclose(got[written], expected[written], rtol=rtol, atol=1e-7, equal_nan=True)
        before = np.asarray(args[name], np.float64).reshape(-1)
        assert np.array_equal(before[~written], expected[~written])
    assert [trouble.kind for trouble in found.trouble] == []
    return made
