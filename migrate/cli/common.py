"""What the verbs share: the argument parser, kernel references, where results go."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

from migrate.cli import USAGE
from migrate.source import SourceError, neutral, shortened

EPILOG_EXITS: Final = (
    "exit codes: 0 fine, 1 not faithful or a finding, 2 usage or unreadable input, 3 undetermined"
)

EXITS_ALONE: Final = "exit codes: 0 fine, 2 usage or unreadable input, 3 nothing was understood"
"""Of a verb that looks at one kernel."""

QUIET_SECONDS: Final = 1.0
"""What takes no longer shows no progress."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence."""

    def __init__(
        self, verb: str, summary: str, examples: Sequence[str], exits: str = EPILOG_EXITS
    ) -> None:
        lines = ["examples:", *(f"  {example}" for example in examples), "", exits]
        super().__init__(
            prog=f"migrate {verb}",
            description=summary[0].upper() + summary[1:] + ".",
            epilog="\n".join(lines),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {neutral(shortened(message))} ({self.prog} --help)", file=sys.stderr)
        raise SystemExit(USAGE)


CUDA_ENDINGS: Final = (".cu", ".cuh", ".cuda", ".h", ".hpp")
"""What files of CUDA are called; in a Python file it stands in strings."""


@dataclass(frozen=True, slots=True)
class Subjects:
    """What a comparing verb was asked to compare; without kernels, the case names them."""

    cuda: str | None
    nki: str | None
    case: str | None
    nki_version: str | None = None
    defines: Mapping[str, str] = field(default_factory=dict)
    include: tuple[str, ...] = ()


def add_subjects(parser: Parser) -> None:
    """The arguments of a verb that compares: two kernels or a case, and whether to run."""
    parser.add_argument(
        "cuda", metavar="CUDA", help="file, file::kernel, or a case.toml for both sides"
    )
    parser.add_argument("nki", metavar="NKI", nargs="?", help="file or file::kernel")
    parser.add_argument("--case", metavar="FILE", help="sizes, tensors and launches for the two")
    parser.add_argument(
        "--run",
        choices=("auto", "never", "always"),
        default="auto",
        help="whether both kernels are also run (default: auto)",
    )
    add_nki_version(parser)
    add_preprocessing(parser)


def add_preprocessing(parser: Parser) -> None:
    """The options that say how a CUDA file is preprocessed."""
    parser.add_argument(
        "-D",
        dest="define",
        metavar="NAME[=TEXT]",
        action="append",
        default=[],
        help="define a macro of the CUDA file (1 without a text)",
    )
    parser.add_argument(
        "-I",
        dest="include",
        metavar="FOLDER",
        action="append",
        default=[],
        help="read what the CUDA file includes from below FOLDER",
    )


_MACRO: Final = re.compile(r"[A-Za-z_]\w*(?:\([\w\s,.]*\))?")


def defines(parser: Parser, options: argparse.Namespace) -> dict[str, str]:
    """The macros of `-D`, or a usage error."""
    found: dict[str, str] = {}
    for given in options.define:
        name, mark, text = given.partition("=")
        if not _MACRO.fullmatch(name) or "\n" in text:
            parser.error(f"-D {given}: not NAME or NAME=TEXT")
        found[name] = text if mark else "1"
    return found


def add_format(parser: Parser, *choices: str) -> None:
    """`--format` with the first choice as the default, and `--json` for short."""
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--format", choices=choices, default=choices[0], help=f"default: {choices[0]}")
    how.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const="json",
        help="the same as --format json",
    )


def add_fail_on(parser: Parser) -> None:
    """`--fail-on`."""
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning", "note", "never"),
        default="error",
        help="the mildest finding that makes the exit code 1 (default: error)",
    )


def add_nki_version(parser: Parser) -> None:
    """The option that says which version of NKI a kernel is for."""
    parser.add_argument(
        "--nki-version",
        metavar="VERSION",
        help="the NKI version that the kernel is for, as 0.3 (default: the case's, else detected)",
    )


def subjects(parser: Parser, options: argparse.Namespace) -> Subjects:
    """What `add_subjects` was given, or a usage error."""
    macros, folders = defines(parser, options), tuple(options.include)
    if options.nki is None:
        if not is_case(options.cuda):
            parser.error("the NKI kernel is missing; give both kernels, or one case.toml")
        if options.case is not None:
            parser.error("a case was given twice")
        return Subjects(None, None, options.cuda, options.nki_version, macros, folders)
    if is_case(options.cuda) or is_case(options.nki):
        parser.error("a case.toml stands in place of both kernels; beside them use --case")
    return Subjects(options.cuda, options.nki, options.case, options.nki_version, macros, folders)


def reference(text: str) -> tuple[str, str | None]:
    """`file` or `file::kernel` as file and kernel; raises `SourceError` for an empty part."""
    file, mark, kernel = text.partition("::")
    if not file or (mark and not kernel):
        raise SourceError("is not FILE or FILE::KERNEL", file=text)
    return file, kernel or None


def is_case(text: str) -> bool:
    """Whether an argument names a case file rather than a kernel."""
    return Path(text).suffix == ".toml"


class Status:
    """What is being done, on standard error if it is a terminal and takes a while."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty() and not os.environ.get("NO_PROGRESS")
        self._start = time.monotonic()
        self._width = 0

    def __call__(self, text: str) -> None:
        if self._shown and time.monotonic() - self._start > QUIET_SECONDS:
            line = neutral(text)[: shutil.get_terminal_size().columns - 1]
            sys.stderr.write("\r" + line.ljust(self._width))
            sys.stderr.flush()
            self._width = len(line)

    def done(self) -> None:
        """Take the line away."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


def emit(data: bytes, output: str | None) -> None:
    """Write a result to `output`, to standard output without one (or for `-`)."""
    if output is None or output == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        Path(output).write_bytes(data)
    except OSError as error:
        raise SourceError(f"cannot be written: {error.strerror}", file=output) from None
