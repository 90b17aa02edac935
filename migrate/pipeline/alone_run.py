"""Running a CUDA kernel at sizes and on data of our own choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from migrate.budget import Exhausted, Meter
from migrate.cuda import ast
from migrate.cuda.runtime import Fault, Unsupported
from migrate.cuda.types import Pointer, Scalar, scalar_of, scalars_in
from migrate.pipeline.alone_launch import RUN_BUDGET, Setting, triple
from migrate.source import SourceError

if TYPE_CHECKING:
    from migrate.cuda.execute import Execution

SIZES = (64, 128, 32, 256, 16, 512, 1024, 8, 4, 2, 1, 4096)
"""Values for sizes that are tried for all of them at once."""

APART = 64
"""Sizes are first tried as different multiples of this."""

MAX_LITERAL = 1024
"""Sizes that the host code gives are kept up to this."""

MAX_THREADS = 1 << 15
"""Threads in a run; of a larger grid only the first blocks are run."""

SPOILING = frozenset(
    {
        "uninitialised",
        "assertion",
        "inactive-shuffle-source",
        "divergent-barrier",
        "misaligned",
        "conflicting-stores",
    }
)
"""What makes a run no measure: another one is looked for first."""

ELEMENTS = 1 << 16

MAX_ELEMENTS = 1 << 23
"""Elements of every array: at first, and at most where the kernel goes beyond."""

PERIOD = 65521
"""Elements after which the content of an array repeats: no size that kernels work with."""

NEAR = 7
"""Integers in arrays are below this, since they may be positions."""

FLOAT = 0.75
"""The value of float parameters that the host code does not give."""

NO_LAUNCH = "no launch is possible at the sizes that were tried"

MAX_LONG = 2
"""Runs that may end at the budget; after one, the smallest sizes are tried."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the kernel at sizes of our choice."""

    setting: Setting
    sizes: Mapping[str, int]
    args: Mapping[str, Any]
    execution: Execution

    @property
    def spoiled(self) -> bool:
        """Whether the kernel did something at these sizes that has no meaning."""
        return any(event.kind in SPOILING for event in self.execution.events)


def run(setting: Setting, seed: int) -> Run | str:
    """The first run to its end that writes something, or why there is none."""
    kernel = setting.function
    for variable in (*kernel.parameters, *kernel.globals_used):
        kind = variable.type
        if not isinstance(kind, Scalar) and scalar_of(_pointed(kind)) is None:
            return f"the parameter {variable.name} ({kind}) cannot be given"
    why: str | None = None
    spoiled: Run | None = None
    long = 0
    pending = list(reversed(list(_choices(setting))))
    while pending:
        sizes = pending.pop()
        try:
            found = _attempt(setting, sizes, seed)
        except Exhausted as stop:
            long += 1
            pending = [other for other in pending if sum(other.values()) < sum(sizes.values())]
            pending.sort(key=lambda other: sum(other.values()), reverse=True)
            why = str(stop)
            if long == MAX_LONG:
                break
            continue
        if isinstance(found, Run):
            if not found.spoiled:
                return found
            spoiled = spoiled or found
            continue
        reason, again = found
        why = reason if why is None or reason != NO_LAUNCH else why
        if not again:
            return reason
    return spoiled or why or "no sizes fit the launch"


def _choices(setting: Setting) -> Iterator[dict[str, int]]:
    """Values for the sizes: those of the host code, then different ones, then all alike."""
    flags = {
        symbol.name
        for parameter in setting.function.parameters
        if isinstance(parameter.type, Scalar) and parameter.type.is_bool
        for symbol in setting.integers[parameter.name].symbols()
    }
    for truth, sizes in enumerate(_sizes(setting)):
        yield {name: truth % 2 if name in flags else value for name, value in sizes.items()}


def _sizes(setting: Setting) -> Iterator[dict[str, int]]:
    names = setting.sizes()
    given = {name: setting.values[name] for name in names if name in setting.values}
    if given and all(0 < value <= MAX_LITERAL for value in given.values()):
        yield {name: given.get(name, APART) for name in names}
    yield {name: APART * (1 + place % 5) for place, name in enumerate(names)}
    for value in SIZES:
        yield dict.fromkeys(names, value)


def _attempt(setting: Setting, sizes: dict[str, int], seed: int) -> Run | tuple[str, bool]:
    """A run at sizes; else the reason, and whether other sizes may do."""
    from migrate.cuda.execute import execute
    from migrate.numerics.bounded import Bounded

    try:
        grid = [int(extent.evaluate(sizes)) for extent in setting.grid]
        block = [int(extent.evaluate(sizes)) for extent in setting.block]
        shared = int(setting.shared.evaluate(sizes))
    except (ArithmeticError, KeyError, ValueError):
        return "the launch has no value", True
    if min(*grid, *block) < 1 or block[0] * block[1] * block[2] > 1024:
        return NO_LAUNCH, True
    threads = block[0] * block[1] * block[2]
    if grid[0] * grid[1] * grid[2] * threads > MAX_THREADS:
        while grid[0] * grid[1] * grid[2] * threads > MAX_THREADS:
            largest = grid.index(max(grid))
            grid[largest] = (grid[largest] + 1) // 2
        setting = replace(setting, grid=triple(*grid))
    kernel = setting.function
    elements, least = ELEMENTS, 0
    while True:
        args = _arguments(setting, sizes, elements, least, seed)
        meter = Meter(RUN_BUDGET, f"running {kernel.name}")
        try:
            execution = execute(
                setting.program,
                kernel.name,
                args,
                (grid[0], grid[1], grid[2]),
                (block[0], block[1], block[2]),
                domain=Bounded(),
                template=dict(setting.template) or None,
                shared_bytes=shared,
                meter=meter,
            )
        except Unsupported as gap:
            return str(gap), True
        except Fault as fault:
            wanted = 0 if fault.event.index is None else 2 * fault.event.index
            if fault.event.kind == "out-of-bounds" and elements <= wanted <= MAX_ELEMENTS:
                elements = wanted
                continue
            return str(fault), True
        except SourceError as error:
            return str(error), True
        if not any(execution.stored[name].any() for name in execution.written):
            if least == 0 and _integer_arrays(kernel):
                # A number below zero may be what it waits for.
                least = -2
                continue
            return "nothing is written at the sizes that were tried", True
        return Run(setting, sizes, args, execution)


def _integer_arrays(kernel: ast.Function) -> bool:
    scalars = (
        scalar_of(_pointed(v.type)) for v in kernel.parameters if isinstance(v.type, Pointer)
    )
    return any(scalar is not None and not scalar.is_float for scalar in scalars)


def _pointed(kind: Any) -> Any:
    return kind.element if isinstance(kind, Pointer) else kind


def _arguments(
    setting: Setting, sizes: Mapping[str, int], elements: int, least: int, seed: int
) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(seed)
    kernel = setting.function
    args: dict[str, Any] = {}
    initial = dict(kernel.initials)
    for variable in (*kernel.parameters, *kernel.globals_used):
        if variable.name in initial:
            continue
        kind = variable.type
        parameter = variable.storage == "parameter"
        if parameter and isinstance(kind, Scalar):
            if kind.is_float:
                args[variable.name] = setting.floats.get(variable.name, FLOAT)
            else:
                value = setting.integers[variable.name].evaluate(sizes)
                low, high = kind.dtype.range
                args[variable.name] = int(min(max(value, low), high))
            continue
        scalar = scalar_of(_pointed(kind))
        assert scalar is not None
        count = elements if isinstance(kind, Pointer) else scalars_in(kind)
        if scalar.is_float:
            drawn = rng.standard_normal(min(count, PERIOD)).astype(scalar.dtype.numpy)
        else:
            low, high = 0 if scalar.is_unsigned else least, 2 if scalar.is_bool else NEAR
            drawn = rng.integers(low, high, min(count, PERIOD)).astype(scalar.dtype.numpy)
        args[variable.name] = np.resize(drawn, count)
    return args
