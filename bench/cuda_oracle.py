"""Run kernels of real CUDA files here and by a C++ compiler, bit for bit.

    python bench/cuda_oracle.py FOLDER ORACLE [--whole FOLDER] [--only TEXT] [--every N] [--list]

FOLDER holds the files, ORACLE is the script of an oracle: a module with
`run(path, kernel, grid, block, args, includes=)`, which changes the arrays among `args` and
raises `RuntimeError` with the reason where it cannot.  Sizes, launch and contents are those
that `pipeline.alone_run` finds the kernel to run with; both sides get the same.  Contraction is
off.  What is compared is every array, byte for byte, NaN with NaN.

agrees        all arrays are the same
attributed    they differ, and the run here reported what makes the result a matter of order
              or luck (a race, an order of atomics, an uninitialised read)
differs       they differ, and nothing explains it
oracle-only   runs in the oracle, not here
here-only     the oracle cannot compile or run it
neither       no sizes were found with which it runs
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from cuda_corpus import files
from cuda_lexical import kernels

from migrate.budget import Budget, Exhausted, Meter
from migrate.cuda.ast import Atomic, Function, Variable
from migrate.cuda.execute import Execution, execute
from migrate.cuda.includes import finder
from migrate.cuda.launches import Launch, launches
from migrate.cuda.lifting.scan import nodes
from migrate.cuda.parse import Definition, Program, parse
from migrate.cuda.runtime import Fault, Unsupported
from migrate.cuda.types import Scalar
from migrate.numerics.errors import BoundedValue
from migrate.numerics.rounded import Rounded
from migrate.pipeline.alone_launch import RUN_BUDGET, settings_of
from migrate.pipeline.alone_run import Run, run
from migrate.source import SourceError, read

EXPLAINED = frozenset(
    {
        "conflicting-stores",
        "divergent-barrier",
        "excluded-lane",
        "inactive-shuffle-source",
        "misaligned",
        "shared-race",
        "unfinished-copy",
        "uninitialised",
    }
)
"""Reports of a run after which its results may be others on a device, too."""

SETTINGS = 4
"""Launches and template arguments of a kernel that are tried."""


def examined(
    program: Program,
    definition: Definition,
    host: Sequence[Launch],
    path: Path,
    root: Path,
    oracle: ModuleType,
    seconds: float,
) -> tuple[str, str]:
    """The outcome for one kernel, and why."""
    try:
        ran = _run(program, definition, host)
    except (SourceError, Exhausted) as error:
        return "neither", str(error)
    if isinstance(ran, str):
        return "neither", ran
    grid, block, shared = _launch(ran)
    args = _arguments(ran)
    kernel = ran.setting.function
    mine: Execution | str
    try:
        mine = execute(
            ran.setting.program,
            definition.name,
            args,
            grid,
            block,
            domain=Rounded(),
            template=dict(ran.setting.template) or None,
            shared_bytes=shared,
            meter=Meter(RUN_BUDGET, f"running {definition.name}"),
            fma=False,
        )
    except (SourceError, Exhausted, Unsupported, Fault) as error:
        mine = str(error)
    theirs: Mapping[str, Any] | str
    try:
        theirs = _theirs(oracle, path, root, kernel, ran, args, grid, block, seconds)
    except RuntimeError as error:
        theirs = str(error)
    if isinstance(theirs, str):
        return "here-only", theirs
    if isinstance(mine, str):
        return "oracle-only", mine
    different = list(_different(mine, theirs, ran.execution))
    if not different:
        return "agrees", ""
    shown = [one.shown for one in different]
    causes = sorted({event.kind for event in mine.events} & EXPLAINED)
    if all(one.is_of_order for one in different):
        if any(isinstance(node, Atomic) for node in nodes(kernel.body)):
            causes.append("order of atomics")
        if re.search(r"\b(?:cg|cooperative_groups)::reduce\b", program.text(definition.node)):
            # The order in which it combines lanes is not documented.
            causes.append("order of a reduction of cooperative groups")
    return ("attributed" if causes else "differs"), "; ".join([*causes, *shown])


def _run(program: Program, definition: Definition, host: Sequence[Launch]) -> Run | str:
    reason = "no template arguments fit"
    spoiled: Run | None = None
    for tried, setting in enumerate(settings_of(program, definition, host)):
        if tried == SETTINGS:
            break
        ran = run(setting, 0)
        if isinstance(ran, Run):
            if not ran.spoiled:
                return ran
            spoiled = spoiled or ran
        else:
            reason = ran if tried == 0 else reason
            if ran.startswith("stopped after"):
                break
    return spoiled or reason


def _launch(ran: Run) -> tuple[tuple[int, int, int], tuple[int, int, int], int]:
    setting, sizes = ran.setting, ran.sizes
    grid = tuple(int(extent.evaluate(sizes)) for extent in setting.grid)
    block = tuple(int(extent.evaluate(sizes)) for extent in setting.block)
    return (
        (grid[0], grid[1], grid[2]),
        (block[0], block[1], block[2]),
        int(setting.shared.evaluate(sizes)),
    )


def _arguments(ran: Run) -> dict[str, Any]:
    """The arguments of the run; variables of the file are zero, as the oracle has them."""
    names = {variable.name for variable in ran.setting.function.parameters}
    return {
        name: value if name in names or not isinstance(value, np.ndarray) else np.zeros_like(value)
        for name, value in ran.args.items()
    }


def _theirs(
    oracle: ModuleType,
    path: Path,
    root: Path,
    kernel: Function,
    ran: Run,
    args: Mapping[str, Any],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    seconds: float,
) -> Mapping[str, Any]:
    given = [
        (variable.name, _given(variable, args[variable.name])) for variable in kernel.parameters
    ]
    if any("." in name for name, _ in given):
        raise RuntimeError("a struct is passed by value")
    template = ran.setting.template
    name = kernel.name
    if template:
        listed = ", ".join(_spelled(value) for value in template.values())
        name = f"{name}<{listed}>"
    shown = [",".join(map(str, extents)) for extents in (grid, block)]
    includes = [str(folder) for folder in _folders(path, root)]
    made: Mapping[str, Any] = oracle.run(
        path, name, *shown, given, includes=includes, timeout=seconds
    )
    return made


def _folders(path: Path, root: Path) -> Iterator[Path]:
    """Where a file's includes may be: in the folders above it, and `include`s there."""
    for folder in path.parents:
        yield folder
        if (folder / "include").is_dir():
            yield folder / "include"
        if folder == root:
            return


def _given(variable: Variable, value: Any) -> Any:
    kind = variable.type
    if isinstance(value, np.ndarray):
        return np.array(value)
    assert isinstance(kind, Scalar)
    if kind.is_float:
        return f"{float(value)!r}{'f' if kind.dtype.bits == 32 else ''}"
    return str(int(value))


def _spelled(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Difference:
    """An array that is not the same; `is_of_order` where sums in another order may explain it."""

    shown: str
    is_of_order: bool


ORDERS = 8
"""Times what the rounding of one order allows that a sum in another order may be off."""


def _different(
    mine: Execution, theirs: Mapping[str, Any], bounded: Execution
) -> Iterator[Difference]:
    for name, other in theirs.items():
        if name not in mine.outputs:
            continue
        ours, other = np.ravel(np.asarray(mine.outputs[name])), np.ravel(other)
        if ours.dtype != other.dtype:
            ours = ours.astype(other.dtype)
        same = ours.view(np.uint8).reshape(len(ours), -1) == other.view(np.uint8).reshape(
            len(other), -1
        )
        equal = same.all(axis=1) | _nan(ours) & _nan(other)
        if not equal.all():
            first = int(np.argmin(equal))
            count = int(equal.size - np.count_nonzero(equal))
            shown = f"{name}[{first}]: {ours[first]} here, {other[first]} there, {count} such"
            held = bounded.outputs.get(name)
            of_order = ours.dtype.kind in "iub"
            if isinstance(held, BoundedValue):
                apart = np.abs(ours.astype(np.float64) - other.astype(np.float64))
                of_order = bool((apart <= ORDERS * np.ravel(held.allowance()))[~equal].all())
            yield Difference(shown, of_order)


def _nan(values: Any) -> Any:
    if values.dtype.kind in "iub":
        return np.zeros(values.shape, bool)
    return np.isnan(values.astype(np.float64))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("oracle", type=Path, help="the script with `run`")
    parser.add_argument(
        "--whole", type=Path, help="where the same files lie with all that they include"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="in FILE::KERNEL")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th kernel")
    parser.add_argument("--seconds", type=float, default=60.0, help="for one run of the oracle")
    parser.add_argument("--list", action="store_true", help="name what does not agree")
    options = parser.parse_args()
    oracle = _loaded(options.oracle)
    counts: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    seen = 0
    whole = options.whole or options.folder
    for listed in files(options.folder):
        path = whole / listed.relative_to(options.folder)
        if not kernels(listed.read_bytes()) or not path.is_file():
            continue
        root = _root(path, whole)
        include = finder(tuple(_folders(path, root)))
        try:
            program = parse(
                read(path), include=include, meter=Meter(Budget(), f"reading {path.name}")
            )
            host = launches(program)
        except (SourceError, Exhausted) as error:
            print(f"{path}: {error}")
            continue
        for definition in program.kernels:
            what = f"{path.relative_to(whole)}::{definition.name}"
            seen += 1
            if options.only not in what or seen % options.every:
                continue
            began = time.perf_counter()
            try:
                outcome, why = examined(
                    program, definition, host, path, root, oracle, options.seconds
                )
            except Exception as error:  # noqa: BLE001  # a crash is what is looked for
                outcome, why = "crash", repr(error)
            counts[outcome] += 1
            reasons[outcome][why.splitlines()[0][:90] if why else ""] += 1
            if options.list or outcome in ("differs", "crash"):
                spent = time.perf_counter() - began
                print(f"{outcome:12} {spent:5.1f} s {what}: {' '.join(why.split())[:300]}")
                sys.stdout.flush()
    there = counts["agrees"] + counts["attributed"] + counts["differs"] + counts["oracle-only"]
    print(f"{there} run in the oracle; here of those:")
    for outcome, count in counts.most_common():
        print(f"{outcome:12} {count:5}")
        if outcome in ("oracle-only", "neither", "attributed"):
            for reason, times in reasons[outcome].most_common(12):
                print(f"    {times:4} {reason}")
    return int(bool(counts["differs"] or counts["crash"]))


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("oracle", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no Python script")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def _root(path: Path, folder: Path) -> Path:
    """The checkout that a file is in."""
    return folder / path.relative_to(folder).parts[0]


if __name__ == "__main__":
    sys.exit(main())
