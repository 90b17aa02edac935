"""`migrate lint`: what is wrong with the NKI kernels of a file by themselves."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from migrate.cli import OK, SAYS_NO, UNDETERMINED, VERBS
from migrate.cli.common import (
    Parser,
    Status,
    add_fail_on,
    add_format,
    add_nki_version,
    emit,
    is_case,
    reference,
)

if TYPE_CHECKING:
    from migrate.results import LintDocument

EXITS = (
    "exit codes: 0 nothing found, 1 a finding, 2 usage or unreadable input,"
    " 3 nothing found, but a kernel was not read to its end"
)


def run(arguments: list[str]) -> int:
    """Exit 1 when a finding is at least `--fail-on`, 3 when a kernel was not read whole."""
    parser = Parser(
        "lint",
        VERBS["lint"],
        [
            "migrate lint kernel.py",
            "migrate lint kernel.py::softmax --target trn1 --nki-version 0.3",
            "migrate lint kernel.py --case case.toml --fail-on warning --json",
        ],
        EXITS,
    )
    parser.add_argument(
        "file", metavar="FILE", help="a Python file with NKI kernels, or file::kernel"
    )
    parser.add_argument("--case", metavar="FILE", help="sizes and tensors to read it with")
    parser.add_argument(
        "--target",
        choices=("trn1", "trn2", "trn3"),
        help="the hardware it is for (default: the case's, else trn2)",
    )
    add_nki_version(parser)
    add_fail_on(parser)
    add_format(parser, "text", "json")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE")
    options = parser.parse_args(arguments)
    if is_case(options.file):
        parser.error("'lint' reads one NKI file; a case goes to --case")
    file, kernel = reference(options.file)

    from migrate.api import lint

    status = Status()
    try:
        document = lint(
            file,
            kernel,
            case=options.case,
            target=options.target,
            nki_version=options.nki_version,
            progress=status,
        )
    finally:
        status.done()
    if options.format == "json":
        from migrate.report import json

        emit(json.render(document), options.output)
    else:
        from migrate.report import lint as report
        from migrate.report import sources

        texts = sources.alone(document.file, document.digest)
        if options.output is None:
            report.write(document, sys.stdout, texts)
        else:
            emit(report.render(document, texts).encode(), options.output)
    return exit_code(document, options.fail_on)


def exit_code(document: LintDocument, fail_on: str) -> int:
    """What the findings that are not suppressed amount to."""
    from migrate.results import SEVERITIES

    names: tuple[str, ...] = SEVERITIES
    counting = () if fail_on == "never" else names[: names.index(fail_on) + 1]
    for kernel in document.kernels:
        if any(f.severity in counting and f.suppressed is None for f in kernel.findings):
            return SAYS_NO
    return OK if all(kernel.complete for kernel in document.kernels) else UNDETERMINED
