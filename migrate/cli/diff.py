"""`migrate diff`: compare two kernels and report every construct."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal, cast

from migrate.cli import OK, SAYS_NO, UNDETERMINED, VERBS
from migrate.cli.common import Parser, emit, is_case

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
    parser.add_argument(
        "cuda", metavar="CUDA", help="file, file::kernel, or a case.toml for both sides"
    )
    parser.add_argument("nki", metavar="NKI", nargs="?", help="file or file::kernel")
    parser.add_argument("--case", metavar="FILE", help="sizes, tensors and launches for the two")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument(
        "--run",
        choices=("auto", "never", "always"),
        default="auto",
        help="whether both kernels are also run (default: auto)",
    )
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning", "note", "never"),
        default="error",
        help="the mildest finding that makes the exit code 1 (default: error)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the report to FILE")
    options = parser.parse_args(arguments)

    cuda, nki, case = options.cuda, options.nki, options.case
    if nki is None:
        if not is_case(cuda):
            parser.error("the NKI kernel is missing; give both kernels, or one case.toml")
        if case is not None:
            parser.error("a case was given twice")
        cuda, case = None, cuda
    elif is_case(cuda) or is_case(nki):
        parser.error("a case.toml stands in place of both kernels; beside them use --case")

    from migrate.api import compare

    result = compare(cuda, nki, case=case, run=options.run)
    if options.format == "json":
        from migrate.report import json

        emit(json.render(result), options.output)
    else:
        from migrate.report import sources, text

        texts = sources.of(result, case)
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
