"""`migrate ir`: what was understood of the kernels of a file."""

from __future__ import annotations

import sys

from migrate.cli import OK, UNDETERMINED, VERBS
from migrate.cli.common import (
    EXITS_ALONE,
    Parser,
    add_format,
    add_nki_version,
    add_preprocessing,
    defines,
    emit,
    is_case,
    reference,
)


def run(arguments: list[str]) -> int:
    """Exit 3 when no kernel was understood at all."""
    parser = Parser(
        "ir",
        VERBS["ir"],
        [
            "migrate ir kernel.cu",
            "migrate ir kernel.py::vector_add --format json",
            "migrate ir kernel.py --case case.toml",
            "migrate ir extension.py --side cuda",
        ],
        EXITS_ALONE,
    )
    parser.add_argument("file", metavar="FILE", help="a CUDA or Python file, or file::kernel")
    parser.add_argument(
        "--side",
        choices=("cuda", "nki"),
        help="of a Python file with CUDA in strings: which kernels (default: NKI, if it has any)",
    )
    parser.add_argument("--case", metavar="FILE", help="sizes and tensors to read it with")
    add_nki_version(parser)
    add_preprocessing(parser)
    add_format(parser, "text", "json")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE")
    options = parser.parse_args(arguments)
    if is_case(options.file):
        parser.error("'ir' reads one kernel file; a case goes to --case")
    file, kernel = reference(options.file)

    from migrate.api import lifted

    document = lifted(
        file,
        kernel,
        case=options.case,
        side=options.side,
        nki_version=options.nki_version,
        defines=defines(parser, options),
        include=options.include,
    )
    if options.format == "json":
        from migrate.report import json

        emit(json.render(document), options.output)
    else:
        from migrate.report import ir

        shown = ir.render(document)
        if options.output is None:
            sys.stdout.write(shown)
        else:
            emit(shown.encode(), options.output)
    understood = any(kernel.coverage > 0 for kernel in document.kernels)
    return OK if understood else UNDETERMINED
