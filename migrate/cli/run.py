"""`migrate run`: one kernel on the CPU, arrays in and out as .npz."""

from __future__ import annotations

import argparse
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

from migrate.cli import INTERRUPTED, OK, USAGE, VERBS
from migrate.cli.arrays import load_npz, npz
from migrate.cli.common import (
    CUDA_ENDINGS,
    Parser,
    Status,
    add_format,
    add_preprocessing,
    defines,
    emit,
    is_case,
    reference,
)
from migrate.source import neutral

if TYPE_CHECKING:
    from migrate.nki.watching import Step
    from migrate.pipeline.run_options import Options, Ran

_SHORT: Final = {"define": "-D", "include": "-I"}


EXITS: Final = (
    "exit codes: 0 the kernel ran to its end, 2 usage, unreadable input, or it cannot be run,"
    " 130 Ctrl-C ended the run; where that or a bound did, OUT.npz has the tensors in HBM as they"
    " were then"
)

TRACED: Final = 1000
"""Instructions of a trace, unless more or fewer are asked for."""


def run(arguments: list[str]) -> int:
    """Exit 0 when the kernel ran to its end."""
    parser = _parser()
    options = parser.parse_intermixed_args(arguments)
    if is_case(options.file):
        parser.error("'run' runs one kernel file, not a case")
    as_json = options.format == "json"
    if options.output is None and not as_json and sys.stdout.isatty():
        parser.error("an .npz is not for a terminal; name a file with -o")
    file, kernel = reference(options.file)
    if options.kernel is not None:
        if kernel is not None:
            parser.error("the kernel is named twice")
        kernel = options.kernel
    if options.arrays is not None and options.inputs is not None:
        parser.error("the inputs are named twice")
    side = _side(parser, file, options)
    values = load_npz(options.arrays or options.inputs, pairs(parser, "--dtype", options.dtype))
    for name, text in pairs(parser, "--arg", options.arg).items():
        value = scalar(text)
        if isinstance(value, str):
            parser.error(f"--arg {name}={text} is not a number, true or false")
        values[name] = value
    # Results to a file leave standard output to what is told of the run.
    told = sys.stderr if options.output in (None, "-") else sys.stdout
    status = Status()
    with Interrupts() as interrupts:
        how = _how(parser, options, status, interrupts, None if as_json else told)
        try:
            found = _ran(parser, side, file, kernel, values, options, how)
        finally:
            status.done()
    document = found.document
    from migrate.report import run as report

    for warning in document.warnings:
        print(f"migrate: warning: {report.warning(warning)}", file=sys.stderr)
    complete = document.outcome == "complete"
    if options.output is not None or not as_json:
        # What is left of a run is for a file that was asked for, not for a pipe.
        if complete or (found.results and options.output not in (None, "-")):
            emit(npz(found.results), options.output)
    if as_json:
        emit(document.to_json(indent=2) + b"\n", None)
    elif complete and (told is sys.stdout or options.stats):
        told.write(report.render(document))
    if complete:
        return OK
    place = neutral(str(document.where or document.file))
    print(f"migrate: {place}: {neutral(document.reason)}", file=sys.stderr)
    if found.results and options.output not in (None, "-"):
        print(f"migrate: {options.output} holds the tensors in HBM as they were", file=sys.stderr)
    return INTERRUPTED if document.outcome == "interrupted" else USAGE


def _parser() -> Parser:
    parser = Parser(
        "run",
        VERBS["run"],
        [
            "migrate run kernel.py in.npz -o out.npz",
            "migrate run kernel.py --kernel softmax in.npz -o out.npz --stats --precision bounded",
            "migrate run kernel.py::vector_add in.npz --format json --trace",
            "migrate run kernel.cu --inputs in.npz --arg n=1000 --grid 4 --block 256 -o out.npz",
            "migrate run cupy_code.py::scale --inputs in.npz --grid 4 --block 256 -o out.npz",
        ],
        EXITS,
    )
    parser.add_argument("file", metavar="FILE", help="a CUDA or Python file, or file::kernel")
    parser.add_argument(
        "arrays",
        metavar="IN.npz",
        nargs="?",
        help="arrays by parameter name (also those written to)",
    )
    parser.add_argument("--inputs", metavar="NPZ", help="the same")
    parser.add_argument("--kernel", metavar="NAME", help="which kernel of the file")
    parser.add_argument(
        "--side",
        choices=("cuda", "nki"),
        help="of a Python file with CUDA in strings: which kernel (default: CUDA with --block)",
    )
    parser.add_argument(
        "--arg",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a scalar argument: integer, float, true or false",
    )
    parser.add_argument(
        "--dtype",
        metavar="NAME=DTYPE",
        action="append",
        default=[],
        help="what an array of raw bytes holds, such as x=bfloat16 (.npz cannot say)",
    )
    parser.add_argument(
        "--grid", metavar="X[,Y[,Z]]", help="blocks of a CUDA launch, programs of an NKI one"
    )
    parser.add_argument(
        "--precision",
        choices=("rounded", "single", "bounded"),
        default="rounded",
        help="rounded as the hardware does (default), float32 without casts to narrow formats, or"
        " real numbers with a bound on rounding (NAME_bound)",
    )
    cuda = parser.add_argument_group("CUDA")
    cuda.add_argument("--block", metavar="X[,Y[,Z]]", help="threads of a block")
    cuda.add_argument("--shared", metavar="BYTES", type=int, default=0, help="dynamic shared bytes")
    cuda.add_argument(
        "--template",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a template argument: a number, true, false or a type's name",
    )
    cuda.add_argument(
        "--fma",
        choices=("on", "off"),
        help="whether a * b + c is rounded once, as nvcc compiles it (default: on)",
    )
    add_preprocessing(parser)
    nki = parser.add_argument_group("NKI")
    nki.add_argument("--target", choices=("trn1", "trn2", "trn3"), help="default: trn2")
    nki.add_argument(
        "--nki-version",
        metavar="VERSION",
        help="refuse a kernel that does not go with this version, as 0.3",
    )
    nki.add_argument(
        "--order",
        choices=("blas", "sequential"),
        help="how sums are associated: as the library does (default), or first to last, slowly",
    )
    nki.add_argument(
        "--stats",
        action="store_true",
        help="count instructions by engine and bytes moved from memory to memory",
    )
    nki.add_argument(
        "--trace", action="store_true", help="show instructions with shapes and values"
    )
    nki.add_argument(
        "--trace-limit",
        metavar="COUNT",
        type=int,
        help=f"how many instructions a trace shows (default: {TRACED:,})",
    )
    add_format(parser, "text", "json")
    parser.add_argument("-o", "--output", metavar="OUT.npz", help="where the results go")
    return parser


def _how(
    parser: Parser,
    options: argparse.Namespace,
    status: Status,
    interrupts: Interrupts,
    told: TextIO | None,
) -> Options:
    """The options of the run; a trace is told to `told` as it goes on, if anywhere."""
    from migrate.pipeline.run_options import Options

    limit = TRACED if options.trace_limit is None else options.trace_limit
    if limit < 1:
        parser.error(f"--trace-limit {limit} is less than 1")

    def show(step: Step) -> None:
        from migrate.pipeline.running_nki import traced
        from migrate.report import run as report

        status.done()
        print(report.step(traced(step)), file=told)

    return Options(
        order=options.order or "blas",
        precision=options.precision,
        fma=options.fma != "off",
        target=options.target or "trn2",
        grid=extents(parser, "--grid", options.grid) if options.grid else (),
        nki_version=options.nki_version,
        statistics=options.stats,
        trace=limit if options.trace else 0,
        on_step=show if told is not None else None,
        progress=status,
        cancelled=lambda: interrupts.asked,
    )


def _ran(
    parser: Parser,
    side: Literal["cuda", "nki"],
    file: str,
    kernel: str | None,
    values: Mapping[str, Any],
    options: argparse.Namespace,
    how: Options,
) -> Ran:
    if side == "nki":
        for option in ("block", "shared", "template", "fma", "define", "include"):
            if getattr(options, option):
                parser.error(f"{_SHORT.get(option, '--' + option)} is for CUDA kernels")
        from migrate.api import ran_nki

        return ran_nki(file, kernel, values, options=how)
    if options.grid is None or options.block is None:
        parser.error("a CUDA kernel needs --grid and --block")
    for option in ("target", "nki_version", "order", "stats", "trace", "trace_limit"):
        if getattr(options, option):
            parser.error(f"--{option.replace('_', '-')} is for NKI kernels")
    x, y, z = (*how.grid, 1, 1)[:3]
    threads = (*extents(parser, "--block", options.block), 1, 1)
    given = pairs(parser, "--template", options.template)
    from migrate.api import ran_cuda

    return ran_cuda(
        file,
        kernel,
        values,
        grid=(x, y, z),
        block=(threads[0], threads[1], threads[2]),
        template={name: scalar(text) for name, text in given.items()},
        shared=options.shared,
        defines=defines(parser, options),
        include=options.include,
        options=how,
    )


class Interrupts:
    """While it is entered, the first Ctrl-C asks for an end and the second one makes it."""

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        # Only the main thread may say what a signal does.
        with suppress(ValueError):
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


def _side(parser: Parser, file: str, options: argparse.Namespace) -> Literal["cuda", "nki"]:
    """By the file's ending; threads of a block are for the CUDA in a Python file's strings."""
    suffix = Path(file).suffix
    if suffix not in (*CUDA_ENDINGS, ".py"):
        parser.error(f"'{file}' is neither .cu nor .py")
    if suffix != ".py":
        if options.side == "nki":
            parser.error(f"'{file}' has no NKI kernel, which stands in a .py")
        return "cuda"
    if options.side is not None:
        side: Literal["cuda", "nki"] = options.side
        return side
    return "cuda" if options.block else "nki"


def scalar(text: str) -> bool | int | float | str:
    """What a scalar on the command line means; text where it is nothing else."""
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def pairs(parser: Parser, option: str, given: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` arguments as a dictionary."""
    found: dict[str, str] = {}
    for text in given:
        name, mark, value = text.partition("=")
        if not mark or not name or not value:
            parser.error(f"{option} {text} is not NAME=VALUE")
        if name in found:
            parser.error(f"{option} gives {name} twice")
        found[name] = value
    return found


def extents(parser: Parser, option: str, text: str) -> tuple[int, ...]:
    """`X`, `X,Y` or `X,Y,Z` as numbers."""
    parts = text.split(",")
    if len(parts) > 3 or not all(re.fullmatch(r"[0-9]{1,10}", part) for part in parts):
        parser.error(f"{option} {text} is not X, X,Y or X,Y,Z")
    found = tuple(map(int, parts))
    if 0 in found:
        parser.error(f"{option} {text} has an extent of 0")
    return found
