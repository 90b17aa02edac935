"""Running a kernel given as text."""

from __future__ import annotations

from typing import Any

import numpy as np

from migrate.budget import Budget, Meter
from migrate.cuda.execute import Execution, execute
from migrate.cuda.parse import parse
from migrate.numerics.rounded import Rounded
from migrate.source import Source


def run(
    text: str,
    *,
    grid: int | tuple[int, int, int] = 1,
    block: int | tuple[int, int, int] = 32,
    kernel: str = "k",
    steps: int = 100_000,
    **options: Any,
) -> Execution:
    """Run a kernel; what is no option of `execute` is a kernel argument."""
    known = {"template", "shared_bytes", "fma", "domain"}
    args = {name: value for name, value in options.items() if name not in known}
    given = {name: value for name, value in options.items() if name in known}
    given.setdefault("domain", Rounded())
    return execute(
        parse(Source.of(text, "kernel.cu")),
        kernel,
        args,
        grid if isinstance(grid, tuple) else (grid, 1, 1),
        block if isinstance(block, tuple) else (block, 1, 1),
        meter=Meter(Budget(steps=steps)),
        **given,
    )


def compute(body: str, kind: str = "int", lanes: int = 1, dtype: Any = None, **args: Any) -> Any:
    """What `body` leaves in `out[i]` for each of some threads, i the thread's number.

    `args` become parameters: arrays are pointers to `int` or `float`, numbers are `int`.
    """
    parameters = [f"{kind}* out"]
    for name, value in args.items():
        if isinstance(value, np.ndarray):
            element = {"float32": "float", "int32": "int"}[value.dtype.name]
            parameters.append(f"const {element}* {name}")
        else:
            parameters.append(f"int {name}")
    text = f"__global__ void k({', '.join(parameters)}) {{ int i = threadIdx.x; {body} }}"
    types = {"int": np.int32, "float": np.float32, "unsigned": np.uint32, "double": np.float64}
    out = np.zeros(lanes, dtype if dtype is not None else types[kind])
    return run(text, block=lanes, out=out, **args).outputs["out"]
