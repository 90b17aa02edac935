"""The library's verbs: compare two kernels, show what was read of one, run one.

Pure functions of their arguments: no global state, nothing printed.  Everything that can go
wrong with the input is a `SourceError`; what goes wrong inside a kernel is in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from migrate.budget import Budget
from migrate.results import Comparison, IrDocument, LintDocument, Side
from migrate.source import SourceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from migrate.pipeline.mapping import MapDocument
    from migrate.pipeline.run_options import Options, Order, Precision, Ran

RunMode: TypeAlias = Literal["auto", "never", "always"]


def compare(
    cuda: str | None,
    nki: str | None,
    *,
    case: str | None = None,
    run: RunMode = "auto",
    budget: Budget | None = None,
    progress: Callable[[str], None] | None = None,
    defines: Mapping[str, str] | None = None,
    include: Sequence[str] = (),
    nki_version: str | None = None,
) -> Comparison:
    """Compare a CUDA kernel with the NKI kernel that claims to be its migration.

    `cuda` and `nki` are files, or `file::kernel`; `case` a case file, which may name them
    instead.  `run` says whether both kernels are also run: `auto` makes the planned runs
    as far as the budget goes, `never` reads alone, `always` makes every run and raises
    where one is impossible.  `progress` is told in a few words what is being done; what it
    raises ends the comparison.  `defines` are macros of the CUDA file and their text, `include`
    folders: `#include` reads what lies in them, and nothing else.  `nki_version` (`0.3`) is
    the one that the NKI kernel is for, whatever the case says; without either it is detected.

    Raises `SourceError` for input that cannot be read or leaves a choice open.
    """
    from migrate.pipeline.compare import compared

    return compared(
        cuda,
        nki,
        case=case,
        run=run,
        budget=budget or Budget(),
        progress=progress,
        defines=defines,
        include=include,
        nki_version=nki_version,
    )


def compare_text(
    cuda: str,
    nki: str,
    *,
    case: str | None = None,
    run: RunMode = "auto",
    budget: Budget | None = None,
) -> Comparison:
    """Compare two kernels given as text; no file is read.

    The result calls them `kernel.cu` and `kernel.py`.  `case` is the text of a case, which
    must not name `.npy` files; with several kernels in a text, it says which (`[cuda]` and
    `[nki]`, `kernel`).  `run` and `budget` as for `compare`.

    Raises `SourceError` for input that cannot be read or leaves a choice open.
    """
    from migrate.pipeline.compare import compared_text

    return compared_text(cuda, nki, case=case, run=run, budget=budget or Budget())


def lifted(
    file: str,
    kernel: str | None = None,
    *,
    case: str | None = None,
    side: Side | None = None,
    defines: Mapping[str, str] | None = None,
    include: Sequence[str] = (),
    nki_version: str | None = None,
) -> IrDocument:
    """What is understood of the kernels of a file (all of them, or the one named).

    A Python file may have kernels of both sides, CUDA in strings and NKI: the name says which
    is meant, else `side`, else the NKI ones are.  The others as for `compare`.

    Raises `SourceError` for input that cannot be read.
    """
    from migrate.pipeline.single import inspected

    return inspected(
        file,
        kernel,
        case=case,
        side=side,
        defines=defines,
        include=include,
        nki_version=nki_version,
    )


def lint(
    file: str,
    kernel: str | None = None,
    *,
    case: str | None = None,
    target: Literal["trn1", "trn2", "trn3"] | None = None,
    nki_version: str | None = None,
    budget: Budget | None = None,
    progress: Callable[[str], None] | None = None,
) -> LintDocument:
    """What is wrong with the NKI kernels of a file (all of them, or the one named).

    Each is specialised at the sizes of a case, or at sizes inferred from the kernel, for a
    target (`trn2` unless the case or `target` says otherwise), and held against the rules that
    need no CUDA side.  `nki_version` as for `compare`; `budget` is for each kernel.

    Raises `SourceError` for input that cannot be read.
    """
    from migrate.pipeline.lint import linted

    return linted(
        file,
        kernel,
        case=case,
        target=target,
        nki_version=nki_version,
        budget=budget,
        progress=progress,
    )


def lint_text(
    nki: str,
    kernel: str | None = None,
    *,
    case: str | None = None,
    target: Literal["trn1", "trn2", "trn3"] | None = None,
    nki_version: str | None = None,
    budget: Budget | None = None,
) -> LintDocument:
    """`lint` for a text, which the result calls `kernel.py`; `case` is the text of a case.

    Raises `SourceError` for input that cannot be read.
    """
    from migrate.pipeline.lint import linted_text

    return linted_text(
        nki, kernel, case=case, target=target, nki_version=nki_version, budget=budget
    )


def mapped(
    file: str,
    kernel: str | None = None,
    *,
    case: str | None = None,
    target: str = "trn2",
    defines: Mapping[str, str] | None = None,
    include: Sequence[str] = (),
) -> MapDocument:
    """How each construct of the CUDA kernels of a file (or of the one named) goes in NKI.

    Advice with the numbers and limits of a target and the source of each, no code; `case`,
    `defines` and `include` as for `compare`.  Raises `SourceError` for input that cannot be
    read.
    """
    from migrate.pipeline.mapping import mapped as told

    return told(file, kernel, case=case, target=target, defines=defines, include=include)


def run(
    file: str,
    kernel: str | None = None,
    *args: Any,
    grid: int | Sequence[int] | None = None,
    block: int | Sequence[int] | None = None,
    template: Mapping[str, object] | None = None,
    shared: int = 0,
    target: Literal["trn1", "trn2", "trn3"] = "trn2",
    order: Order = "blas",
    precision: Precision = "rounded",
    fma: bool = True,
    nki_version: str | None = None,
    budget: Budget | None = None,
    **named: Any,
) -> Any:
    """Run one kernel on the CPU, called as the kernel is: arrays in, its return value out.

    An NKI kernel takes its arguments in order or by name (one of a name that stands above, in
    order); what it returns comes back in the structure it returns it in, and arrays that it
    writes to are changed in place.  For a CUDA kernel arrays are device memory, changed in place;
    `grid` and `block` are needed, `template` gives template arguments by name and `shared` the
    dynamic shared memory in bytes.

    `order` says how an NKI kernel's sums are associated: as the library does (`blas`), or first to
    last (`sequential`, slow).  `precision` is `rounded` (what the hardware's formats hold),
    `single` (float32, without casts to narrow formats) or `bounded`: real numbers in float64, and
    each float array of an NKI kernel comes back as a pair of those (`value`) and how far a run that
    rounds may be from them (`bound`).  Without `fma` a CUDA kernel's `a * b + c` is rounded
    twice; by default it is once, as nvcc compiles it.  An `nki_version` that the kernel does not
    go with is refused; `budget` bounds the run.

    Raises `SourceError`, with the line, for what does not fit or cannot be run, and `IndexError`
    for an access outside an array (the places are its notes).  Warns where memory is read that
    nothing was written to (`UnwrittenRead`), where a CUDA kernel races or does what else has no
    defined result (`RunFault`), where more is alive at once than SBUF or PSUM hold
    (`OverCapacity`), and where a tensor is read after another at its addresses was written
    (`Overwritten`).
    """
    from migrate.pipeline.run_options import extents
    from migrate.pipeline.running import Options
    from migrate.pipeline.running import run as ran

    options = Options(
        order=order,
        precision=precision,
        fma=fma,
        target=target,
        grid=extents(grid if grid is not None else ()),
        nki_version=nki_version,
        budget=budget or Budget(),
    )
    return ran(
        file, kernel, args, named, block=block, template=template, shared=shared, options=options
    )


def run_cuda(
    file: str,
    kernel: str | None,
    args: Mapping[str, Any],
    *,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    template: Mapping[str, object] | None = None,
    shared: int = 0,
    defines: Mapping[str, str] | None = None,
    include: Sequence[str] = (),
) -> dict[str, NDArray[Any]]:
    """Run a CUDA kernel: its pointer parameters after the launch, by name.

    `args` are arrays (device memory) and numbers by parameter name; `shared` is the
    dynamic shared memory in bytes, `defines` and `include` as for `compare`.  Raises
    `SourceError` for what does not fit or cannot be run.
    """
    return ran_cuda(
        file,
        kernel,
        args,
        grid=grid,
        block=block,
        template=template,
        shared=shared,
        defines=defines,
        include=include,
    ).results


def run_nki(
    file: str, kernel: str | None, args: Mapping[str, Any], *, target: str = "trn2"
) -> dict[str, NDArray[Any]]:
    """Run an NKI kernel: its results as `out0`, `out1`, …, and the arguments it wrote to.

    Raises `SourceError` for what does not fit or cannot be run.
    """
    from migrate.pipeline.running import Options

    found = ran_nki(file, kernel, args, options=Options(target=target))
    if found.document.outcome != "complete":
        raise SourceError(found.document.reason, file=file)
    return found.results


def ran_cuda(
    file: str,
    kernel: str | None,
    args: Mapping[str, Any],
    *,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    template: Mapping[str, object] | None = None,
    shared: int = 0,
    defines: Mapping[str, str] | None = None,
    include: Sequence[str] = (),
    options: Options | None = None,
) -> Ran:
    """`run_cuda` with what is told of the run.

    Of the `options` precision, budget, progress and cancelling count.
    """
    from dataclasses import replace

    from migrate.pipeline.running import Options, cuda_ran

    return cuda_ran(
        file,
        kernel,
        args,
        block=block,
        template=template,
        shared=shared,
        defines=defines,
        include=include,
        options=replace(options or Options(), grid=grid),
    )


def ran_nki(
    file: str, kernel: str | None, args: Mapping[str, Any], *, options: Options | None = None
) -> Ran:
    """`run_nki` with what is told of the run.

    A run that a bound or the caller ends early leaves the tensors in HBM as they were, and says
    so in its document.
    """
    from migrate.pipeline.running import Options, nki_ran

    return nki_ran(file, kernel, args, options or Options())
