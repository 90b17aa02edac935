"""Lockstep execution: one NumPy operation acts for all threads of many blocks.

Divergence is a mask.  Every statement runs for the lanes of a mask and gives back the mask
of the lanes that go on to the next one; the others have returned, or wait at the end of a
loop they left.  Blocks run together in slices, as many as `LANES` threads allow; what one
slice writes the next one sees.

Threads run in step within every statement, which is one of the orders that the device may
choose for kernels that do not race.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from migrate.budget import Meter
from migrate.cuda.arguments import bind
from migrate.cuda.ast import (
    Function,
)
from migrate.cuda.check import function
from migrate.cuda.machine import Machine
from migrate.cuda.parse import Program
from migrate.cuda.pointers import Addresses
from migrate.cuda.runtime import Dim3, Event, Lanes
from migrate.cuda.threads import Threads
from migrate.numerics.domain import Domain
from migrate.source import SourceError, Span

LANES = 1 << 16


# CUDA C++ Programming Guide, technical specifications per compute capability (9.0).
MAX_THREADS = 1024
MAX_GRID = (2**31 - 1, 65535)
MAX_SHARED = 227 * 1024

SLICE_STEPS = 1000
"""What blocks that run together cost beside their statements (see `Evaluator`)."""


@dataclass(frozen=True, slots=True)
class Execution:
    """What a run left behind.

    `outputs` are the final contents of every pointer parameter (and `__device__` variable) by
    name, flat, as values of the domain (integers as arrays); `written` names those that some
    thread stored to, and `stored` marks the elements of each that one did.
    """

    outputs: Mapping[str, Any]
    written: frozenset[str]
    events: tuple[Event, ...]
    stored: Mapping[str, NDArray[np.bool_]]


def execute(
    program: Program,
    kernel_name: str,
    args: Mapping[str, Any],
    grid: Dim3,
    block: Dim3,
    *,
    domain: Domain[Any],
    template: Mapping[str, object] | None = None,
    shared_bytes: int = 0,
    meter: Meter | None = None,
    fma: bool = True,
) -> Execution:
    """Run a kernel for a whole grid.

    `args` gives every parameter by name: arrays (any shape, row-major) for pointers, numbers
    for scalars, and arrays for the `__constant__` and `__device__` variables that the kernel
    uses; `None` is a null pointer.  Arrays are copied.  `grid` and `block` are (x, y, z).
    `fma` contracts `a * b + c` as nvcc does by default.

    Raises `Unsupported` where a statement that is not understood is reached, `Fault` for an
    access outside an array, `SourceError` for arguments that do not fit, `Exhausted` when the
    meter runs out.
    """
    kernel = function(program, kernel_name, template)
    meter = meter if meter is not None else Meter(doing=f"running {kernel_name}")
    _check_launch(kernel, grid, block, shared_bytes)
    with np.errstate(all="ignore"):
        addresses = Addresses()
        buffers, file_scope, scalars = bind(kernel, args, domain, meter, addresses)
        events: list[Event] = []
        reported: set[tuple[str, Span]] = set()
        threads = block[0] * block[1] * block[2]
        together = max(LANES // threads, 1)
        blocks = grid[0] * grid[1] * grid[2]
        for first in range(0, blocks, together):
            lanes = Lanes(grid, block, first, min(together, blocks - first))
            machine = Machine(lanes, domain, meter, fma, events, reported, addresses=addresses)
            used = meter.bytes
            meter.step(SLICE_STEPS + lanes.total // 32)
            Threads(machine, file_scope, shared_bytes).run(kernel, buffers, scalars)
            meter.give(meter.bytes - used)
    outputs = {
        name: ref.buffer.settled(domain) for name, ref in buffers.items() if ref.buffer is not None
    }
    written = {
        name for name, ref in buffers.items() if ref.buffer is not None and ref.buffer.written
    }
    stored = {
        name: ref.buffer.stored
        for name, ref in buffers.items()
        if ref.buffer is not None and ref.buffer.stored is not None
    }
    return Execution(outputs, frozenset(written), tuple(events), stored)


def _check_launch(kernel: Function, grid: Dim3, block: Dim3, shared_bytes: int) -> None:
    if grid[0] > MAX_GRID[0] or max(grid[1:]) > MAX_GRID[1]:
        raise SourceError(
            "a grid has at most 2^31 - 1 x 65535 x 65535 blocks", file=kernel.span.file
        )
    if not 0 <= shared_bytes <= MAX_SHARED:
        raise SourceError(
            f"dynamic shared memory is 0 to {MAX_SHARED} bytes", file=kernel.span.file
        )
    if min(grid) < 1 or min(block) < 1:
        raise SourceError("a launch needs at least one block and one thread", file=kernel.span.file)
    if block[0] * block[1] * block[2] > MAX_THREADS:
        raise SourceError(f"a block has at most {MAX_THREADS} threads", file=kernel.span.file)
