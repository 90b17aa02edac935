"""`migrate ir`: what was understood of the kernels of a file."""

from __future__ import annotations

import sys

from migrate.cli import OK, UNDETERMINED, VERBS
from migrate.cli.common import Parser, emit, is_case, reference


def run(arguments: list[str]) -> int:
    """Exit 3 when no kernel was understood at all."""
    parser = Parser(
        "ir",
        VERBS["ir"],
        [
            "migrate ir kernel.cu",
            "migrate ir kernel.py::vector_add --json",
            "migrate ir kernel.py --case case.toml",
        ],
    )
    parser.add_argument("file", metavar="FILE", help="a .cu or .py file, or file::kernel")
    parser.add_argument("--case", metavar="FILE", help="sizes and tensors to read it with")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE")
    options = parser.parse_args(arguments)
    if is_case(options.file):
        parser.error("'ir' reads one kernel file; a case goes to --case")
    file, kernel = reference(options.file)

    from migrate.api import lifted

    document = lifted(file, kernel, case=options.case)
    if options.json:
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
