"""Launches found in a folder of CUDA files, against a count that knows no parser.

    python bench/cuda_launches.py FOLDER [--list]

Lexical: every `<<<` outside comments, strings and directives.  Those in branches that the
configuration leaves out, and those in the bodies of macros, are counted apart.  `read`: grid
and block are expressions over numbers and names of the host code, nothing in them left as
text; `numbers`: they have values without a case.  `--list` names what is missed.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from pathlib import Path

from migrate.budget import Exhausted
from migrate.cuda.launches import Launch, evaluate, launches, settled
from migrate.cuda.launches.names import Names
from migrate.cuda.launches.text import Words
from migrate.cuda.parse import Program, parse
from migrate.source import Source, SourceError, read

ENDINGS = (".cu", ".cuh")
_HIDDEN = re.compile(
    r'//(?:[^\n\\]|\\.)*|/\*.*?\*/|\bR"(?P<d>[^()\\\s]{0,16})\(.*?\)(?P=d)"'
    r"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)+'",
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\r?\n|\\.)*", re.MULTILINE)


def blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found.group())


def marks(source: Source) -> tuple[list[tuple[int, int]], int]:
    """Places of `<<<` by line and column, and how many are in directives."""
    shown = _HIDDEN.sub(blank, source.text)
    inside = sum(found.group().count("<<<") for found in _DIRECTIVE.finditer(shown))
    shown = _DIRECTIVE.sub(blank, shown)
    places = []
    for found in re.finditer("<<<", shown):
        line = shown.count("\n", 0, found.start()) + 1
        places.append((line, found.start() - shown.rfind("\n", 0, found.start())))
    return places, inside


def live(program: Program) -> set[tuple[int, int]]:
    """Places of the `<<<` that are left after preprocessing."""
    found = set()
    for mark in re.finditer(rb"<<<", program.expanded.text):
        span = program.expanded.span(mark.start(), mark.end())
        found.add((span.start_line, span.start_column))
    return found


def covers(launch: Launch, place: tuple[int, int]) -> bool:
    span = launch.span
    start, end = (span.start_line, span.start_column), (span.end_line, span.end_column)
    return start <= place < end


def extents(program: Program, told: Counter[str], missed: list[str]) -> None:
    """How the declarations of `dim3` variables are read."""
    text = Words.of(program.expanded.text, program.expanded.macros)
    names = Names(text)
    for at in text.places("dim3"):
        after = at + 1
        while after < len(text.words) and text.words[after] == "const":
            after += 1
        if after >= len(text.words) or text.kinds[after] != "name":
            continue
        inside = text.parent[at]
        parameter = inside >= 0 and text.words[inside] in "(<"
        function = (
            text.words[after + 1] == "("
            and (text.words[text.closing(after + 1, len(text.words) - 2) + 1]) == "{"
        )
        if parameter or function:
            continue
        told["dim3 declared"] += 1
        found = names.declared_at(after)
        if found is None:
            told["dim3 misread"] += 1
            missed.append(f"dim3 {program.expanded.span(text.starts[at], text.ends[after])}")
        elif found.form == "(":
            told["dim3 by constructor"] += 1


def survey(folder: Path, listed: bool) -> None:
    told: Counter[str] = Counter()
    missed: list[str] = []
    seconds = 0.0
    size = 0
    for path in sorted(folder.rglob("*")):
        if path.suffix not in ENDINGS or not path.is_file() or path.is_symlink():
            continue
        try:
            source = read(path, name=str(path.relative_to(folder)))
            program = parse(source)
        except (SourceError, Exhausted) as reason:
            told["files not read"] += 1
            missed.append(f"file {reason}")
            continue
        told["files"] += 1
        places, inside = marks(source)
        told["lexical"] += len(places)
        told["in macro bodies"] += inside
        start = time.process_time()
        found = launches(program)
        seconds += time.process_time() - start
        size += len(source.encoded)
        told["launches"] += len(found)
        told["launches of functions"] += sum(launch.form != "<<<" for launch in found)
        told["launches out of macros"] += sum(bool(launch.span.via) for launch in found)
        present = live(program)
        for place in places:
            if place not in present:
                told["lexical, in a branch left out"] += 1
                continue
            own = [launch for launch in found if covers(launch, place)]
            if not own:
                told["missed"] += 1
                missed.append(f"launch {source.name}:{place[0]}:{place[1]}")
            elif not own[0].read:
                told["found, not read"] += 1
                missed.append(f"read   {own[0].span} {own[0].grid} {own[0].block}")
            else:
                told["found and read"] += 1
        for launch in found:
            parts = (*launch.grid, *launch.block)
            told["all read"] += launch.read
            told["all with an extent of unknown type"] += not all(map(settled, parts))
            told["all in numbers"] += all(evaluate(part, {}) is not None for part in parts)
        if "dim3" in source.text:
            extents(program, told, missed)
    for name, count in told.items():
        print(f"{count:7,}  {name}")
    considered = told["lexical"] - told["lexical, in a branch left out"]
    if considered:
        print(f"{100 * told['found and read'] / considered:7.2f}  % of live marks found and read")
    if told["launches"]:
        print(f"{100 * told['all in numbers'] / told['launches']:7.1f}  % in numbers, no case")
    print(f"{size / 1e6 / max(seconds, 1e-9):7.2f}  MB/s for the launches of what was parsed")
    if listed:
        print("\n".join(missed))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", action="store_true", help="name what is missed")
    options = parser.parse_args()
    survey(options.folder, options.list)


if __name__ == "__main__":
    main()
