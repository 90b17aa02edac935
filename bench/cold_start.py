"""Cold start: medians of fresh processes, wall and CPU seconds, and as ratios.

    python bench/cold_start.py [--repeat N]

Two questions: what the libraries cost (argparse is part of Python, click is measured where it
is installed), and how long the tool's own commands take.  `--check` ends with exit code 1
where a command takes longer than it may on a quiet machine of two cores.
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

LIBRARIES = {
    "python alone": "pass",
    "numpy": "import numpy",
    "argparse": (
        "import argparse\n"
        "p = argparse.ArgumentParser()\n"
        "p.add_argument('cuda'); p.add_argument('nki'); p.add_argument('--run')\n"
        "p.parse_args(['a.cu', 'b.py', '--run', 'never'])\n"
    ),
    "click": (
        "import click\n"
        "@click.command()\n"
        "@click.argument('cuda')\n"
        "@click.argument('nki')\n"
        "@click.option('--run')\n"
        "def diff(cuda, nki, run): pass\n"
        "diff(['a.cu', 'b.py', '--run', 'never'], standalone_mode=False)\n"
    ),
}

LIMITS = {"migrate --help": 0.25, "migrate score --run never": 0.6}
"""Seconds of wall time."""

COMMANDS = {
    "migrate --help": ["--help"],
    "migrate score --run never": ["score", "samples/softmax_rows/case.toml", "--run", "never"],
    "migrate diff --help": ["diff", "--help"],
    "migrate diff --run never": ["diff", "samples/vector_add/case.toml", "--run", "never"],
    "migrate diff --run never, JSON": [
        *("diff", "samples/vector_add/case.toml", "--run", "never", "--format", "json"),
    ],
}


def measured(command: Sequence[str], repeat: int) -> tuple[float, float]:
    """The median wall and CPU time of fresh processes, the first one not counted."""
    walls, cpus = [], []
    for _ in range(repeat + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
        walls.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpus.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
        if done.returncode not in (0, 1, 3):
            sys.exit(f"{' '.join(command)} failed:\n{done.stderr.decode()}")
    return statistics.median(walls[1:]), statistics.median(cpus[1:])


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="measure the cold start")
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--check", action="store_true", help="exit 1 where a limit is passed")
    options = parser.parse_args()

    print(f"medians of {options.repeat} fresh processes")
    alone = None
    for name, code in LIBRARIES.items():
        if name == "click" and importlib.util.find_spec("click") is None:
            print(f"{name:<32} not installed")
            continue
        wall, cpu = measured([sys.executable, "-c", code], options.repeat)
        alone = alone or wall
        _print(name, wall, cpu, alone)
    slow = False
    for name, arguments in COMMANDS.items():
        wall, cpu = measured([sys.executable, "-m", "migrate", *arguments], options.repeat)
        limit = LIMITS.get(name)
        slow = slow or (limit is not None and wall > limit)
        _print(name, wall, cpu, alone or wall, limit)
    return int(slow and options.check)


def _print(name: str, wall: float, cpu: float, alone: float, limit: float | None = None) -> None:
    within = "" if limit is None else f"   at most {limit:g} s"
    print(f"{name:<32} {wall:.3f} s   cpu {cpu:.3f} s   {wall / alone:5.2f} x python alone{within}")


if __name__ == "__main__":
    sys.exit(main())
