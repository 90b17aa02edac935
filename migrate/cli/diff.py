"""`migrate diff`: compare two kernels and report every construct."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal, cast

from migrate.cli import OK, SAYS_NO, UNDETERMINED, VERBS
from migrate.cli.common import Parser, Status, add_fail_on, add_format, add_subjects, emit, subjects

if TYPE_CHECKING:
    from migrate.results import Comparison

FailOn = Literal["error", "warning", "note", "never"]


def run(arguments: list[str]) -> int:
    """Exit 1 when not faithful or a finding is at least `--fail-on`, 3 when undetermined."""
    parser = Parser(
        "diff",
        VERBS["diff"],
        [
            "migrate diff kernel.cu kernel.py",
            "migrate diff kernel.cu::softmax kernel.py::softmax --case case.toml",
            "migrate diff case.toml --run never --format json",
        ],
    )
    add_subjects(parser)
    add_format(parser, "text", "json", "md")
    add_fail_on(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write the report to FILE")
    options = parser.parse_args(arguments)

    asked = subjects(parser, options)

    from migrate.api import compare

    status = Status()
    try:
        result = compare(
            asked.cuda,
            asked.nki,
            case=asked.case,
            run=options.run,
            progress=status,
            defines=asked.defines,
            include=asked.include,
            nki_version=asked.nki_version,
        )
    finally:
        status.done()
    if options.format == "json":
        from migrate.report import json

        emit(json.render(result), options.output)
    elif options.format == "md":
        from migrate.report import markdown, sources

        emit(markdown.render(result, sources.of(result, asked.case)).encode(), options.output)
    else:
        from migrate.report import sources, text

        texts = sources.of(result, asked.case)
        if options.output is None:
            text.write(result, sys.stdout, texts)
        else:
            emit(text.render(result, texts).encode(), options.output)
    return exit_code(result, cast(FailOn, options.fail_on))


def exit_code(result: Comparison, fail_on: FailOn) -> int:
    """What the verdict and the findings that are not suppressed amount to."""
    from migrate.results import SEVERITIES

    if result.verdict == "not-faithful":
        return SAYS_NO
    counting = () if fail_on == "never" else SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    if any(f.severity in counting and f.suppressed is None for f in result.findings):
        return SAYS_NO
    return UNDETERMINED if result.verdict == "undetermined" else OK
