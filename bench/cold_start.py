"""Cold start: medians of fresh processes, in seconds and as ratios.

    python bench/cold_start.py [--repeat N]

Two questions: what the command-line library costs (argparse is part of Python, click is
measured where it is installed), and how long the tool's own commands take.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

LIBRARIES = {
    "python alone": "pass",
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

COMMANDS = {
    "migrate --help": ["--help"],
    "migrate diff --help": ["diff", "--help"],
    "migrate diff --run never": ["diff", "samples/vector_add/case.toml", "--run", "never"],
    "migrate diff --run never, JSON": [
        *("diff", "samples/vector_add/case.toml", "--run", "never", "--format", "json"),
    ],
}


def seconds(command: Sequence[str], repeat: int) -> float:
    """The median wall time of fresh processes, the first one not counted."""
    times = []
    for _ in range(repeat + 1):
        start = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
        times.append(time.perf_counter() - start)
        if done.returncode not in (0, 1, 3):
            sys.exit(f"{' '.join(command)} failed:\n{done.stderr.decode()}")
    return statistics.median(times[1:])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="measure the cold start")
    parser.add_argument("--repeat", type=int, default=10)
    repeat = parser.parse_args().repeat

    print(f"medians of {repeat} fresh processes")
    alone = None
    for name, code in LIBRARIES.items():
        if name == "click" and importlib.util.find_spec("click") is None:
            print(f"{name:<32} not installed")
            continue
        took = seconds([sys.executable, "-c", code], repeat)
        alone = alone or took
        print(f"{name:<32} {took:.3f} s   {took / alone:.2f} x python alone")
    for name, arguments in COMMANDS.items():
        took = seconds([sys.executable, "-m", "migrate", *arguments], repeat)
        print(f"{name:<32} {took:.3f} s   {took / (alone or took):.2f} x python alone")


if __name__ == "__main__":
    main()
