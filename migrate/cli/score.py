"""`migrate score`: the number, and what each lost point was lost for."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError

from migrate.cli import SAYS_NO, UNDETERMINED, VERBS
from migrate.cli.common import Parser, Status, add_format, add_subjects, emit, subjects


def run(arguments: list[str]) -> int:
    """Exit as `diff` does, and 1 below `--fail-under`; a missing score is 3."""
    parser = Parser(
        "score",
        VERBS["score"],
        [
            "migrate score kernel.cu kernel.py",
            "migrate score case.toml --run never --format json",
            "migrate score case.toml --fail-under 90",
        ],
    )
    add_subjects(parser)
    add_format(parser, "text", "json")
    parser.add_argument(
        "--fail-under",
        metavar="N",
        type=_points,
        help="exit 1 for a score below N, 3 where there is no score",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE")
    options = parser.parse_args(arguments)
    asked = subjects(parser, options)

    from migrate.api import compare
    from migrate.cli.diff import exit_code
    from migrate.score.losses import account

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
        emit(account(result).to_json(indent=2) + b"\n", options.output)
    else:
        from migrate.report import score

        shown = score.render(result)
        if options.output is None:
            sys.stdout.write(shown)
        else:
            emit(shown.encode(), options.output)
    code = exit_code(result, "error")
    if code == SAYS_NO or options.fail_under is None:
        return code
    fidelity = result.score.fidelity
    if fidelity is None:
        return UNDETERMINED
    return SAYS_NO if fidelity < options.fail_under else code


def _points(text: str) -> float:
    try:
        points = float(text)
    except ValueError:
        points = -1.0
    if not 0 <= points <= 100:
        raise ArgumentTypeError(f"'{text}' is not a number from 0 to 100")
    return points
