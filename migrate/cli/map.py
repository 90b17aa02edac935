"""`migrate map`: how the constructs of a CUDA kernel would be written in NKI."""

from __future__ import annotations

import sys

from migrate.cli import OK, UNDETERMINED, VERBS
from migrate.cli.common import (
    EXITS_ALONE,
    Parser,
    add_format,
    add_preprocessing,
    defines,
    emit,
    is_case,
    reference,
)


def run(arguments: list[str]) -> int:
    """Exit 3 when no kernel was understood at all."""
    parser = Parser(
        "map",
        VERBS["map"],
        [
            "migrate map kernel.cu",
            "migrate map kernel.cu::softmax --target trn1",
            "migrate map kernel.cu --format md -o advice.md",
            "migrate map kernel.cu -D TILE=32 -I include --format json",
        ],
        EXITS_ALONE,
    )
    parser.add_argument(
        "file", metavar="FILE", help="a CUDA file, a Python file with CUDA in strings, file::kernel"
    )
    parser.add_argument("--case", metavar="FILE", help="launch, template arguments and macros")
    parser.add_argument("--target", choices=("trn1", "trn2", "trn3"), default="trn2")
    add_format(parser, "text", "json", "md")
    add_preprocessing(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE")
    options = parser.parse_args(arguments)
    if is_case(options.file):
        parser.error("'map' reads one kernel file; a case goes to --case")
    file, kernel = reference(options.file)

    from migrate.api import mapped

    document = mapped(
        file,
        kernel,
        case=options.case,
        target=options.target,
        defines=defines(parser, options),
        include=options.include,
    )
    if options.format == "json":
        emit(document.to_json(indent=2), options.output)
    else:
        from migrate.report import mapping

        render = mapping.markdown if options.format == "md" else mapping.text
        shown = render(document)
        if options.output is None:
            sys.stdout.write(shown)
        else:
            emit(shown.encode(), options.output)
    understood = any(kernel.coverage > 0 for kernel in document.kernels)
    return OK if understood else UNDETERMINED
