"""`migrate review`: two kernels side by side in the terminal.

The comparison runs in a process of its own.  What it does is bounded but can take long and
keeps an interpreter busy; beside it the screen stays quick, and leaving ends it at once.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.cli import OK, USAGE, VERBS
from migrate.cli.common import Parser, Subjects, add_subjects, reference, subjects
from migrate.source import SourceError, neutral, read

if TYPE_CHECKING:
    from migrate.source import Source
    from migrate.tui.app import Loaded


def run(arguments: list[str]) -> int:
    """Exit 0 when the review was left, 2 without a terminal or a result."""
    parser = Parser(
        "review",
        VERBS["review"],
        [
            "migrate review kernel.cu kernel.py",
            "migrate review kernel.cu::softmax kernel.py::softmax --case case.toml",
            "migrate review case.toml --run never",
        ],
        "exit codes: 0 the review was left, 2 no terminal, usage or unreadable input",
    )
    add_subjects(parser)
    parser.add_argument(
        "--theme", choices=("dark", "light"), default="dark", help="colours (default: dark)"
    )
    options = parser.parse_args(arguments)
    asked = subjects(parser, options)
    if not interactive():
        print(
            "migrate review: needs a terminal on standard input, output and error;"
            " 'migrate diff' writes the same as a report",
            file=sys.stderr,
        )
        return USAGE
    cuda, nki = texts(asked)

    from migrate.tui.app import ReviewApp
    from migrate.tui.model import Review

    async def load() -> Loaded:
        return await compared(asked, options.run)

    app = ReviewApp(Review.reading(cuda, nki), load, light=options.theme == "light")
    error = app.run()
    if error is not None:
        print(error.message, file=sys.stderr)
        return error.code
    return app.return_code or OK


def interactive() -> bool:
    """Whether there is a terminal to draw on and to read keys from."""
    # Textual reads from standard input and draws on standard error.
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(stream.isatty() for stream in streams) and os.environ.get("TERM") != "dumb"


def texts(asked: Subjects) -> tuple[Source, Source]:
    """The two files, to be shown while they are compared; raises `SourceError`."""
    cuda, nki = asked.cuda, asked.nki
    if cuda is not None and nki is not None:
        return read(reference(cuda)[0]), read(reference(nki)[0])
    from migrate.case import load

    assert asked.case is not None, "subjects() gives both kernels or a case"
    case = load(asked.case)
    folder = Path(asked.case).parent
    found = []
    for side, file in (("CUDA", case.cuda.file), ("NKI", case.nki.file)):
        if file is None:
            raise SourceError(f"names no {side} file", file=asked.case)
        found.append(read(folder / file))
    return found[0], found[1]


async def compared(asked: Subjects, run_mode: str) -> Loaded:
    """Compare in another process; the result with the texts it speaks of.

    Raises `LoadError` where there is no result.  Cancelling ends the process.
    """
    from msgspec import DecodeError

    from migrate.report import sources
    from migrate.results import Comparison
    from migrate.tui.app import LoadError

    process = await asyncio.create_subprocess_exec(
        *command(asked, run_mode),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # The same modules as here, and (-P) none from the working directory: it may be
        # that of the reviewed files.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        output, errors = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.communicate()
        raise
    try:
        result = Comparison.from_json(output)
    except DecodeError:
        code = process.returncode or USAGE
        said = neutral(errors.decode("utf-8", "replace").strip(), keep_newlines=True)
        message = said or f"migrate: the comparison ended without a result (exit code {code})"
        raise LoadError(message, code if code > 0 else USAGE) from None
    return result, sources.of(result, asked.case)


def command(asked: Subjects, run_mode: str) -> list[str]:
    """The command that gives the comparison as JSON."""
    line = [sys.executable, "-P", "-m", "migrate", "diff", "--format", "json", "--run", run_mode]
    line += [f"-D{name}={text}" for name, text in asked.defines.items()]
    line += [f"-I{folder}" for folder in asked.include]
    if asked.nki_version is not None:
        line.append(f"--nki-version={asked.nki_version}")
    if asked.cuda is None or asked.nki is None:
        return [*line, "--", asked.case or ""]
    case = [f"--case={asked.case}"] if asked.case is not None else []
    return [*line, *case, "--", asked.cuda, asked.nki]
