"""Runs commands of the tool, each in a process of its own with limits on time and memory.

`python -P tests/cli/limited.py` reads a JSON list of folders and commands (lists of
arguments) from standard input and writes a JSON list of what came of each.  The tool is
imported once and forked, so that a command costs milliseconds.  What no command that only
reads has a reason to do, to write or remove files, start programs or open connections, ends
it with `FORBIDDEN`.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

FORBIDDEN = 99
CPU_SECONDS = 20
"""A command that takes longer is killed."""
ADDRESS_BYTES = 4 * 1024**3
MAX_OUTPUT = 1_000_000

Command: TypeAlias = tuple[Path, Sequence[str]]
"""A folder and the arguments of `migrate` in it."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FORBIDDEN = (
    "os.exec", "os.fork", "os.posix_spawn", "os.remove", "os.rename", "os.rmdir", "os.system",
    "shutil.", "socket.", "subprocess.", "urllib.", "ctypes.dlopen",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a command; `cpu` in seconds, `memory` in bytes at most resident."""

    code: int
    out: str
    err: str
    cpu: float
    memory: int


def run(commands: Sequence[Command], **environment: str) -> list[Done]:
    """The commands, one after the other."""
    import subprocess

    checkout = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-P", __file__],
        input=json.dumps([(str(folder), list(arguments)) for folder, arguments in commands]),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={
            **os.environ,
            "PYTHONPATH": str(checkout),
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            **environment,
        },
    )
    return [Done(**told) for told in json.loads(done.stdout)]


def _forbid(event: str, arguments: tuple[Any, ...]) -> None:
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING
    if writes or event.startswith(_FORBIDDEN):
        os.write(2, f"forbidden: {event} {arguments!r}\n".encode())
        os._exit(FORBIDDEN)


def _one(folder: str, arguments: Sequence[str]) -> Done:
    from migrate.cli import main

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            code = FORBIDDEN
            try:
                os.chdir(folder)
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
                resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
                sys.addaudithook(_forbid)
                code = main(list(arguments))
                sys.stderr.flush()
            finally:
                os._exit(code)
        _, status, used = os.wait4(child, 0)
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read(MAX_OUTPUT).decode("utf-8", "replace"))
    code = os.waitstatus_to_exitcode(status)
    cpu = used.ru_utime + used.ru_stime
    return Done(code, said[0], said[1], cpu, used.ru_maxrss * 1024)


def _serve() -> None:
    import dataclasses
    import importlib

    # What every command would import anyway.
    for name in ("diff", "score", "ir", "run"):
        importlib.import_module(f"migrate.cli.{name}")
    for name in ("api", "pipeline.compare", "pipeline.single", "report.text", "verify.run"):
        importlib.import_module(f"migrate.{name}")
    done = [dataclasses.asdict(_one(*command)) for command in json.load(sys.stdin)]
    json.dump(done, sys.stdout)


if __name__ == "__main__":
    _serve()
