"""Versions and names of NKI in public files, against labels given by hand.

    python bench/nki_corpus.py FOLDER [-v]

FOLDER holds checkouts named OWNER+NAME.  Every Python file in it is read; printed are crashes,
files that are not Python, the functions that run on the device, generations against the
imports, ranges of versions, files that no version fits, unknown names by frequency, and how many
of the labels in `bench/data/nki_versions.tsv` agree.  The labels were read from the files with
the release notes of NKI at hand.  Exits 1 where something crashed or a label disagrees.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from migrate.nki.device_functions import device_functions
from migrate.nki.parse import parse
from migrate.nki.versions import Detected, detect
from migrate.source import SourceError, read

LABELS = Path(__file__).resolve().parent / "data" / "nki_versions.tsv"


@dataclass
class Survey:
    """What was found in a folder."""

    files: dict[str, Detected] = field(default_factory=dict)
    kernels: int = 0
    device: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    crashed: list[str] = field(default_factory=list)


def survey(folder: Path) -> Survey:
    """Read every Python file below `folder`, and every kernel of it by itself."""
    found = Survey()
    for path in sorted(folder.rglob("*.py")):
        place = str(path.relative_to(folder))
        try:
            module = parse(read(str(path)))
        except SourceError as error:
            found.refused.append(str(error).replace(str(folder) + "/", ""))
            continue
        try:
            found.device.update(function.role for function in device_functions(module))
            found.files[place] = detect(module)
            for kernel in module.kernels:
                detect(module, kernel.name)
                found.kernels += 1
        except Exception:  # noqa: BLE001 - a crash is what is looked for
            found.crashed.append(f"{place}\n{traceback.format_exc()}")
    return found


def disagreements(found: Survey) -> Iterator[str]:
    """Labels that say something else, or are of a file that is not there."""
    with LABELS.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            place = f"{row['repository'].replace('/', '+')}/{row['path']}"
            told = found.files.get(place)
            if told is None:
                yield f"{place}: not there"
            elif (told.lowest, told.highest) != (row["lowest"], row["highest"]):
                yield f"{place}: {told.words}, labelled {row['lowest']} to {row['highest']}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-v", "--verbose", action="store_true", help="every file's versions")
    options = parser.parse_args()
    began = time.monotonic()
    found = survey(options.folder)
    seconds = time.monotonic() - began
    print(f"{len(found.files)} files and {found.kernels} kernels read in {seconds:.0f} s")
    print(
        f"{found.device.total()} device functions: {found.device['kernel']} kernels by their"
        f" decorators, {found.device['helper']} functions that call nki.language or nki.isa"
    )
    print(f"{len(found.crashed)} crashed, {len(found.refused)} are not Python:")
    for line in (*found.crashed, *found.refused):
        print(f"  {line}")
    generations = Counter((f.generation, f.imported) for f in found.files.values())
    print("generation, by imports:")
    for (generation, imported), count in generations.most_common():
        print(f"  {count:4} {generation or 'open'}, {imported or 'no imports'}")
    print("versions:")
    for words, count in Counter(f.words for f in found.files.values()).most_common():
        print(f"  {count:4} {words}")
    print("no version fits:")
    for place, told in found.files.items():
        if told.conflict:
            print(f"  {place}")
            for reason in told.conflict:
                print(f"    line {reason.span.start_line}: {reason.message}")
    unknown = Counter(u.reason.name for f in found.files.values() for u in f.unknown)
    print(f"{len(unknown)} unknown names:")
    for name, count in unknown.most_common():
        print(f"  {count:4} {name}")
    wrong = list(disagreements(found))
    print(f"{len(wrong)} labels disagree:")
    for line in wrong:
        print(f"  {line}")
    if options.verbose:
        for place, told in found.files.items():
            print(f"{told.words}\t{told.generation}\t{place}")
    return 1 if found.crashed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
