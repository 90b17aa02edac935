"""Labels and lifting of kernels that were read and labelled by hand.

    python bench/cuda_census.py FOLDER [--only TEXT] [--write docs/census.md]

FOLDER holds checkouts named OWNER+NAME; `bench/data/cuda_census.tsv` names the kernels with
what a reader said they compute, how the work is spread, and whether they can be lifted.
Printed: the shares that agree, the share that is *lifted* (nothing opaque, and the evaluated
IR gives what an execution gave), and every kernel that is not, with the reason.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from migrate.budget import Budget, Exhausted, Meter
from migrate.cuda.launches import Launch, launches
from migrate.cuda.parse import Definition, Program, parse
from migrate.ir.census import computes, work_mapping
from migrate.pipeline.cuda_alone import Reading, reading
from migrate.source import Source, SourceError, read

ROOT = Path(__file__).resolve().parent.parent
LABELS = ROOT / "bench" / "data" / "cuda_census.tsv"
REASONS = ROOT / "bench" / "data" / "cuda_census_reasons.tsv"


@dataclass(frozen=True, slots=True)
class Label:
    """A kernel and what a reader said of it."""

    repository: str
    path: str
    kernel: str
    computes: str
    mapping: str
    lift: str

    @property
    def place(self) -> str:
        return f"{self.repository}/{self.path}::{self.kernel}"


@dataclass(frozen=True, slots=True)
class Found:
    """What the tool says of a kernel."""

    label: Label
    computes: str
    mapping: str
    reading: Reading
    seconds: float

    @property
    def lifted(self) -> bool:
        return self.reading.status == "agrees"


def labels() -> tuple[Label, ...]:
    """The labelled kernels, in the order of the list."""
    with LABELS.open(encoding="utf-8") as file:
        return tuple(Label(**row) for row in csv.DictReader(file, delimiter="\t"))


def examined(label: Label, folder: Path) -> Found:
    """Read one kernel."""
    began = time.perf_counter()
    try:
        made = _read(label, folder)
    except (SourceError, Exhausted) as error:
        made = Reading("not-read", str(error), None, {}, ())
    except Exception as error:  # noqa: BLE001  # a crash is what is looked for
        last = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"CRASH {type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
        made = Reading("not-read", reason, None, {}, ())
    what, how = "other", "other"
    known = made.general or made.kernel
    if known is not None:
        what, how = computes(known), work_mapping(known)
        if what == "other" and made.kernel is not None:
            what = computes(made.kernel)
    small = replace(made, kernel=None, general=None)
    return Found(label, what, how, small, time.perf_counter() - began)


def _read(label: Label, folder: Path) -> Reading:
    checkout = folder / label.repository.replace("/", "+")
    program = _program(checkout / label.path, checkout)
    definitions = [d for d in program.functions.get(label.kernel, ()) if d.kind == "kernel"]
    if not definitions:
        raise SourceError("has no such kernel", file=label.path)
    chosen = next((d for d in definitions if not d.specialised), definitions[0])
    return reading(program, chosen, _launches(program, chosen, checkout, label))


def _launches(
    program: Program, definition: Definition, checkout: Path, label: Label
) -> Sequence[Launch]:
    """Launches of the kernel in its file, else in other files of the repository."""
    own = [launch for launch in launches(program) if launch.kernel == definition.name]
    if own:
        return own
    pattern = re.compile(rb"\b" + re.escape(definition.name.encode()) + rb"\s*(<[^;{}]*>)?\s*<<<")
    for path in _near(checkout, checkout / label.path):
        try:
            if not pattern.search(path.read_bytes()):
                continue
            other = _program(path, checkout)
        except (SourceError, Exhausted, OSError):
            continue
        found = [launch for launch in launches(other) if launch.kernel == definition.name]
        if found:
            return found
    return ()


def _near(checkout: Path, start: Path) -> Iterator[Path]:
    """Source files of a repository, those in the same folders first."""
    seen: set[Path] = set()
    folder = start.parent
    while folder == checkout or checkout in folder.parents:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".cu", ".cuh", ".h", ".hpp", ".cpp") and path not in seen:
                seen.add(path)
                yield path
        folder = folder.parent


def _program(path: Path, checkout: Path) -> Program:
    def include(name: str, _from: Source) -> Source | None:
        for start in _roots(path, checkout):
            found = start / name
            if found.is_file() and checkout in found.resolve().parents:
                return read(str(found))
        # The build files of a repository say where else to look; the nearest of the name will do.
        named = _headers(checkout).get(Path(name).name, ())
        return read(str(max(named, key=near))) if named else None

    def near(found: Path) -> int:
        return len(set(found.parents) & set(path.parents))

    meter = Meter(Budget(), f"reading {path.name}")
    return parse(read(str(path)), include=include, meter=meter)


@cache
def _headers(checkout: Path) -> Mapping[str, Sequence[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted(checkout.rglob("*")):
        if path.suffix in (".cuh", ".h", ".hpp") and path.is_file():
            found.setdefault(path.name, []).append(path)
    return found


def _roots(path: Path, checkout: Path) -> Iterator[Path]:
    """Folders that an include may be relative to: those above the file, and `include`s there."""
    folder = path.parent
    while folder == checkout or checkout in folder.parents:
        yield folder
        yield folder / "include"
        folder = folder.parent


# -- what is printed ----------------------------------------------------------------------


def summary(found: Sequence[Found]) -> Iterator[tuple[str, int]]:
    """The shares, each as a name and a count."""
    yield "computes agrees", sum(f.computes == f.label.computes for f in found)
    yield "mapping agrees", sum(f.mapping == f.label.mapping for f in found)
    yield "lifted", sum(f.lifted for f in found)
    statuses = Counter(f.reading.status for f in found)
    yield from ((f"  {status}", count) for status, count in statuses.most_common())


def shown(found: Sequence[Found]) -> Iterator[str]:
    """The shares as lines of text."""
    total = len(found)
    for name, count in summary(found):
        yield f"{name:18} {count:4} of {total}  {100 * count / max(total, 1):5.1f} %"


HEAD = """# Labels and lifting of 120 kernels

Generated by `python bench/cuda_census.py FOLDER --write docs/census.md`; the kernels, with what
a reader said of them, are in `bench/data/cuda_census.tsv`, the reasons below in
`bench/data/cuda_census_reasons.tsv`.

* *Computes* and *mapping* are the labels of `migrate.ir.census`. They rest on constructs and
  index expressions, never on names of kernels or variables, so that what only such a name, a
  comment or the host code tells is not found. Where a kernel is only partly lifted, its typed
  text adds how numbers of blocks and threads enter a sum, what loops stand around, and which
  parts of the device libraries it asks for (`migrate.cuda.lifting.evidence`). The rules were
  made with these kernels in view: other kernels may agree less often.
* A kernel is *lifted* where nothing in its IR is opaque and the evaluated IR gives what an
  execution of the kernel gave, within the error bounds of the execution. Launch, sizes and
  template arguments are those of the launch in the repository, else tried
  (`migrate.pipeline.cuda_alone`).
"""


def page(found: Sequence[Found], folder: Path) -> str:
    """The page in `docs/`."""
    total = len(found)
    reasons = _reasons()
    lines = [HEAD, "| | kernels | share |", "| --- | ---: | ---: |"]
    for name, count in summary(found):
        lines.append(f"| {name.strip()} | {count} of {total} | {100 * count / total:.1f} % |")
    lines += ["", "## Labels that differ", "", "| kernel | reader | tool | why |"]
    lines.append("| --- | --- | --- | --- |")
    for f in found:
        for column, said, told in (
            ("computes", f.label.computes, f.computes),
            ("mapping", f.label.mapping, f.mapping),
        ):
            if said != told:
                why = reasons.get((f.label.place, column)) or _why(f, folder)
                lines.append(f"| {_place(f.label)} | {said} | {told} | {why} |")
    lines += ["", "## Not lifted", "", "| kernel | state | why |", "| --- | --- | --- |"]
    for f in found:
        if not f.lifted:
            why = reasons.get((f.label.place, "lift")) or _cell(_near_reason(f, folder))
            lines.append(f"| {_place(f.label)} | {f.reading.status} | {why} |")
    return "\n".join(lines) + "\n"


def _why(found: Found, folder: Path) -> str:
    if found.reading.status in ("opaque", "not-read"):
        return f"not understood: {_cell(_near_reason(found, folder))}"
    return "the constructs do not tell"


def _near_reason(found: Found, folder: Path) -> str:
    """The reason without the folder that the checkouts are in."""
    checkout = folder / found.label.repository.replace("/", "+")
    return found.reading.reason.replace(f"{checkout}/", "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")[:200]


def _place(label: Label) -> str:
    return f"{label.repository} `{Path(label.path).name}` `{label.kernel}`"


def _reasons() -> Mapping[tuple[str, str], str]:
    with REASONS.open(encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter="\t")
        return {(row["kernel"], row["column"]): row["reason"] for row in rows}


def _all(wanted: Sequence[Label], folder: Path, jobs: int) -> Iterator[Found]:
    if jobs == 1:
        yield from (examined(label, folder) for label in wanted)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(examined, wanted, [folder] * len(wanted))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="kernels whose place has this text")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--write", type=Path, help="write the page of all kernels")
    options = parser.parse_args()
    wanted = [label for label in labels() if options.only in label.place]
    found = []
    for made in _all(wanted, options.folder, options.jobs):
        label = made.label
        found.append(made)
        marks = (
            "L" if made.lifted else made.reading.status,
            "c" if made.computes == label.computes else f"{label.computes}→{made.computes}",
            "m" if made.mapping == label.mapping else f"{label.mapping}→{made.mapping}",
        )
        line = f"{made.seconds:5.1f}s {label.place.split('/', 1)[1]}: {' | '.join(marks)}"
        print(line, flush=True)
        if not made.lifted:
            print(f"         {made.reading.reason}", flush=True)
    print("\n".join(shown(found)))
    if options.write is not None:
        options.write.write_text(page(found, options.folder), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
