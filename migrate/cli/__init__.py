"""The command line: `migrate VERB ...`.

Exit codes: 0 all is well; 1 the verdict or a finding says no; 2 usage or input that
cannot be read; 3 undetermined.  Results go to standard output, the rest to standard
error.  A verb's module is imported only when it is the one asked for, so that
`migrate --help` starts fast.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from migrate.version import VERSION

if TYPE_CHECKING:
    from typing import Protocol

    class Verb(Protocol):
        """What a verb's module has."""

        def run(self, arguments: list[str]) -> int:
            """Do it; the result is the exit code."""
            ...


OK: Final = 0
SAYS_NO: Final = 1
USAGE: Final = 2
UNDETERMINED: Final = 3
INTERRUPTED: Final = 130
"""128 + SIGINT, as shells report it."""
CLOSED_PIPE: Final = 141
"""128 + SIGPIPE."""

VERBS: Final[dict[str, str]] = {
    "review": "read a CUDA kernel and its NKI migration side by side in the terminal",
    "diff": "compare a CUDA kernel with its NKI migration, construct by construct",
    "score": "say how much of the CUDA kernel arrived, from 0 to 100, and what took the rest",
    "lint": "say what is wrong with NKI kernels by themselves",
    "explain": "show the page of a rule, a mapping, a name or version of NKI, or a target",
    "ir": "show what was understood of the kernels of a file",
    "map": "say how each construct of a CUDA kernel would be written in NKI",
    "run": "run one kernel on the CPU, .npz in, .npz out",
}

_HELP: Final = """\
usage: migrate VERB [arguments]

Compare a CUDA kernel with the NKI kernel that claims to be its migration.

verbs:
{verbs}

options:
  -h, --help     show this help; migrate VERB --help shows a verb's
  --version      show the version
  --debug        show the traceback of an error

examples:
  migrate diff kernel.cu kernel.py
  migrate diff samples/vector_add/case.toml
  migrate ir kernel.cu::vector_add

exit codes: 0 fine, 1 not faithful or a finding, 2 usage or unreadable input, 3 undetermined
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the result is the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    given = [argument for argument in given if argument != "--debug"]
    _tolerate_narrow_encodings()
    # Trees and terms live as long as the command: looking for garbage among them is in vain.
    gc.set_threshold(50_000, 20, 100)
    try:
        code = _dispatch(given)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # What reads us is gone; the interpreter must not meet the pipe again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    except Exception as error:
        # The last handler: a sentence, not a traceback.
        if debug:
            raise
        return _explain(error)


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        verbs = "\n".join(f"  {name:<8} {summary}" for name, summary in VERBS.items())
        text = _HELP.format(verbs=verbs)
        print(text, end="", file=sys.stdout if arguments else sys.stderr)
        return OK if arguments else USAGE
    verb, *rest = arguments
    if verb == "--version":
        print(f"migrate {VERSION}")
        return OK
    if verb not in VERBS:
        print(_unknown(verb), file=sys.stderr)
        return USAGE
    from importlib import import_module

    module: Verb = import_module(f"migrate.cli.{verb}")
    return module.run(rest)


def _unknown(verb: str) -> str:
    from cydifflib import get_close_matches

    from migrate.source import neutral, shortened

    near = get_close_matches(verb[:100], VERBS, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(VERBS)}"
    kind = "option" if verb.startswith("-") else "verb"
    return f"migrate: unknown {kind} '{neutral(shortened(verb, 100))}'; {hint}"


def _explain(error: Exception) -> int:
    """Say what went wrong in one sentence; the exit code."""
    from migrate.budget import Exhausted
    from migrate.facts import FactsError
    from migrate.source import SourceError, neutral

    match error:
        case SourceError():
            print(f"migrate: {error}", file=sys.stderr)
            return USAGE
        case Exhausted():
            print(f"migrate: {error}", file=sys.stderr)
            return UNDETERMINED
        case FactsError() | OSError():
            print(f"migrate: {neutral(str(error))}", file=sys.stderr)
            return USAGE
        case _:
            kind = type(error).__name__
            print(
                f"migrate: internal error: {kind}: {neutral(str(error))}"
                " (--debug shows where; please report it)",
                file=sys.stderr,
            )
            return USAGE


def _tolerate_narrow_encodings() -> None:
    """Show what the terminal's encoding lacks as an escape rather than fail."""
    from io import TextIOWrapper

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
