"""How much of a folder of CUDA files is read, how well and how fast.

    python bench/cuda_corpus.py FOLDER [--include ROOT]... [--list KIND] [--typed]
    python bench/cuda_corpus.py FOLDER --only FILE::KERNEL

For every `.cu` and `.cuh` below the folder:

found        kernels that a lexical finder sees (`cuda_lexical`) and the reader has; one that
             lies in a branch of `#if` that the configuration leaves out counts as left out
clean        no error in the tree of the function and its template header
right        clean, and nothing in the tree that the text cannot mean (`cuda_lexical`)
refused      not right, and the reader itself says so (a disagreement in the kernel)
typed        a typed tree without an opaque part, with template arguments from a launch in the
             file, from defaults, else `float` and 32
lifted       IR without `Opaque`, for any launch
crashes      an exception that is no refusal

The speed is CPU time over the bytes of the files that have kernels: read, repair and typed
trees of all kernels, beside the bare parse of the same texts in the same run.
`--only` reads, types and lifts one kernel and prints time and peak memory of this process.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from cuda_lexical import Kernel, is_clean, kernels, misreadings
from tree_sitter import Language, Parser

from migrate.budget import Budget, Exhausted, Meter
from migrate.cuda.check import function
from migrate.cuda.includes import finder
from migrate.cuda.parse import Definition, Program, parse
from migrate.ir.index import Index
from migrate.ir.nodes import Opaque, walk
from migrate.source import Source, SourceError, read

KINDS = ("lost", "left-out", "dirty", "wrong", "opaque", "crash", "refused-file")


@dataclass(slots=True)
class Tally:
    """Counts, examples of what is not as it should be, and CPU seconds by stage."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    reasons: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    bytes: int = 0

    def note(self, kind: str, what: str) -> None:
        self.counts[kind] += 1
        self.examples[kind].append(what)


class Clock:
    """Adds the CPU time of a block to a stage."""

    def __init__(self, tally: Tally, stage: str) -> None:
        self.tally, self.stage = tally, stage

    def __enter__(self) -> None:
        self.began = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.tally.seconds[self.stage] += time.process_time() - self.began


def files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.cu*")):
        if path.suffix in (".cu", ".cuh") and path.is_file() and not path.is_symlink():
            yield path


def examine(path: Path, folder: Path, roots: Sequence[Path], tally: Tally, lifts: bool) -> None:
    tally.counts["files"] += 1
    shown = str(path.relative_to(folder))
    expected = kernels(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    tally.counts["kernels"] += len(expected)
    try:
        with Clock(tally, "read" if expected else "read, without kernels"):
            source = read(path)
    except SourceError as refusal:
        tally.note("refused-file", f"{shown}: {refusal.message}")
        for kernel in expected:
            tally.note("lost", f"{shown}::{kernel.name}: the file is not read")
        return
    if not expected:
        return
    tally.bytes += len(source.encoded)
    with Clock(tally, "bare parse"):
        _bare(source)
    try:
        program = _program(path, source, roots, tally)
    except (SourceError, Exhausted) as refusal:
        for kernel in expected:
            tally.note("lost", f"{shown}::{kernel.name}: {refusal}")
        return
    except Exception as error:  # noqa: BLE001
        tally.note("crash", f"{shown}: {error!r}")
        return
    templates = _templates(program)
    found = {_body_start(program, definition): definition for definition in program.kernels}
    for kernel in expected:
        place = source.span(kernel.start, kernel.start)
        definition = found.pop((source.name, place.start_line, place.start_column), None)
        if definition is None or definition.name != kernel.name:
            excluded = _is_left_out(program, kernel)
            tally.note("left-out" if excluded else "lost", f"{shown}::{kernel.name}")
            continue
        tally.counts["found"] += 1
        _judge(program, definition, templates.get(kernel.name, ()), shown, tally, lifts)
    tally.counts["made by macros"] += len(found)


def _bare(source: Source) -> None:
    import tree_sitter_cuda

    Parser(Language(tree_sitter_cuda.language())).parse(source.encoded)


def _program(path: Path, source: Source, roots: Sequence[Path], tally: Tally) -> Program:
    own = tuple(root for root in roots if path.is_relative_to(root))
    include = _finder(own) if own else None
    with Clock(tally, "preprocess, parse, repair"):
        return parse(source, include=include, meter=Meter(Budget(), "reading"))


_finder = cache(finder)


def _body_start(program: Program, definition: Definition) -> tuple[str, int, int]:
    body = definition.node.child_by_field_name("body") or definition.node
    span = program.expanded.span(body.start_byte, body.start_byte + 1)
    return span.file, span.start_line, span.start_column


def _is_left_out(program: Program, kernel: Kernel) -> bool:
    return any(part.start <= kernel.start < part.end for part in program.expanded.left_out)


def _judge(
    program: Program,
    definition: Definition,
    template: Sequence[object],
    shown: str,
    tally: Tally,
    lifts: bool,
) -> None:
    what = f"{shown}::{definition.name}"
    clean = is_clean(definition.node)
    wrong = misreadings(definition.node)
    tally.counts["clean"] += clean
    tally.counts["right"] += clean and not wrong
    if not clean:
        tally.note("dirty", what)
    elif wrong:
        tally.note("wrong", f"{what}: {'; '.join(sorted(set(wrong)))}")
    place = (definition.node.start_byte, definition.node.end_byte)
    said = any(issue.function == place for issue in program.disagreements)
    if said:
        tally.counts["refused" if wrong or not clean else "doubted, but right"] += 1
    alone = replace(program, functions={**program.functions, definition.name: (definition,)})
    arguments = _arguments(definition, template)
    try:
        with Clock(tally, "typed trees"):
            made = function(alone, definition.name, arguments, meter=Meter(Budget(), "typing"))
    except (SourceError, Exhausted) as refusal:
        tally.note("opaque", f"{what}: {refusal}")
        tally.reasons[getattr(refusal, "message", str(refusal))[:70]] += 1
        return
    except Exception as error:  # noqa: BLE001
        tally.note("crash", f"{what}: {error!r}")
        return
    if made.issues:
        tally.note("opaque", f"{what}: {made.issues[0].reason} ({made.issues[0].span})")
        for reason in {issue.reason[:70] for issue in made.issues[:1]}:
            tally.reasons[reason] += 1
    else:
        tally.counts["typed"] += 1
    if lifts:
        _lift(alone, definition.name, arguments, what, tally)


def _lift(
    program: Program, name: str, arguments: dict[str, object], what: str, tally: Tally
) -> None:
    from migrate.cuda.lift import lift

    grid = tuple(Index.size(f"gridDim.{axis}") for axis in "xyz")
    block = tuple(Index.size(f"blockDim.{axis}") for axis in "xyz")
    try:
        with Clock(tally, "lifting"):
            meter = Meter(Budget(seconds=20), "lifting")
            kernel = lift(program, name, {}, grid, block, arguments, meter=meter)
    except (SourceError, Exhausted):
        return
    except Exception as error:  # noqa: BLE001
        tally.note("crash", f"{what}: {error!r}")
        return
    tally.counts["lifted"] += not any(isinstance(op, Opaque) for op in walk(kernel.body))


# -- template arguments -------------------------------------------------------------------


def _templates(program: Program) -> dict[str, Sequence[object]]:
    """The template arguments of the first launch of every kernel, as text or numbers."""
    from migrate.cuda.launches import evaluate, launches

    found: dict[str, Sequence[object]] = {}
    try:
        for launch in launches(program):
            if launch.kernel not in found and launch.template:
                values = zip(launch.template, launch.template_values, strict=True)
                found[launch.kernel] = [
                    text if value is None else _number(text, evaluate(value, {}))
                    for text, value in values
                ]
    except (SourceError, Exhausted):
        pass
    return found


def _number(text: str, value: int | None) -> object:
    return value if value is not None else {"true": True, "false": False}.get(text, text)


def _arguments(definition: Definition, given: Sequence[object]) -> dict[str, object]:
    out: dict[str, object] = {}
    for position, parameter in enumerate(definition.template):
        value = given[position] if position < len(given) else None
        if parameter.kind == "pack":
            continue
        number = parameter.kind == "value" and isinstance(value, int | float)
        if number or (parameter.kind == "type" and isinstance(value, str) and _is_type(value)):
            out[parameter.name] = value
        elif parameter.default is None:
            out[parameter.name] = "float" if parameter.kind == "type" else 32
    return out


def _is_type(text: str) -> bool:
    from migrate.cuda.types import named

    return named(text) is not None


# -- one kernel ---------------------------------------------------------------------------


def only(folder: Path, wanted: str, roots: Sequence[Path]) -> int:
    """Read, type and lift one kernel; 1 where something fails that is no refusal."""
    from migrate.cuda.lift import lift

    file, _, name = wanted.partition("::")
    path = folder / file
    began = time.perf_counter()
    outcome = "read"
    try:
        source = read(path)
        include = finder(roots) if roots else None
        program = parse(source, include=include, meter=Meter(Budget(), "reading"))
        group = [d for d in program.functions.get(name, ()) if d.kind == "kernel"]
        if not group:
            raise SourceError(f"has no kernel called {name}", file=source.name)
        arguments = _arguments(group[0], _templates(program).get(name, ()))
        made = function(program, name, arguments)
        grid = tuple(Index.size(f"gridDim.{axis}") for axis in "xyz")
        block = tuple(Index.size(f"blockDim.{axis}") for axis in "xyz")
        kernel = lift(program, name, {}, grid, block, arguments, meter=Meter(Budget(), "lifting"))
        opaque = [op for op in walk(kernel.body) if isinstance(op, Opaque)]
        if opaque:
            share = kernel.statements.coverage
            outcome = f"{share:.0%} read; first: {opaque[0].reason} ({opaque[0].span})"
        outcome += f"; {len(made.issues)} parts not typed"
    except (SourceError, Exhausted) as refusal:
        outcome = f"refused: {refusal}"
    spent = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{wanted}\n  {spent:.2f} s, peak {peak:.0f} MB; {outcome}")
    return int(spent > 5 or peak > 500)


# -- the report ---------------------------------------------------------------------------


def report(tally: Tally, lifts: bool) -> None:
    counts = tally.counts
    total = counts["kernels"]
    print(f"{counts['files']} files, {total} kernels")
    rows = ["found", "left-out", "lost", "clean", "right", "refused", "typed"]
    for name in [*rows, *(["lifted"] if lifts else [])]:
        print(f"  {name:10} {counts[name]:5}  {100 * counts[name] / max(total, 1):6.2f} %")
    print(f"  {'crashes':10} {counts['crash']:5}")
    if counts["doubted, but right"]:
        doubted = counts["doubted, but right"]
        print(f"  kernels that the reader doubts and the text does not: {doubted}")
    print(f"  kernels that macros make: {counts['made by macros']}")
    stages = ("read", "preprocess, parse, repair", "typed trees")
    spent = sum(tally.seconds[stage] for stage in stages)
    print(f"{tally.bytes / 1e6:.2f} MB in files with kernels, CPU seconds:")
    for stage in ("bare parse", *stages, *(["lifting"] if lifts else [])):
        seconds = tally.seconds[stage]
        print(f"  {stage:26} {seconds:7.2f} s  {tally.bytes / 1e6 / max(seconds, 1e-9):7.2f} MB/s")
    speed = tally.bytes / 1e6 / max(spent, 1e-9)
    print(f"  {'read + repair + typed':26} {spent:7.2f} s  {speed:7.2f} MB/s")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--include",
        type=Path,
        action="append",
        default=[],
        metavar="ROOT",
        help="files below ROOT include what lies below it",
    )
    parser.add_argument("--list", choices=KINDS, action="append", default=[], metavar="KIND")
    parser.add_argument("--reasons", type=int, default=0, help="show the N commonest reasons")
    parser.add_argument("--typed", action="store_true", help="stop before lifting")
    parser.add_argument("--only", metavar="FILE::KERNEL")
    options = parser.parse_args()
    gc.set_threshold(50_000, 20, 100)  # as the command line does
    if options.only:
        return only(options.folder, options.only, options.include)
    tally = Tally()
    for path in files(options.folder):
        examine(path, options.folder, options.include, tally, not options.typed)
    report(tally, not options.typed)
    for reason, count in tally.reasons.most_common(options.reasons):
        print(f"{count:5} {reason}")
    for kind in options.list:
        print(f"{kind}:")
        for example in tally.examples[kind]:
            print(f"  {example}")
    return int(bool(tally.counts["crash"]))


if __name__ == "__main__":
    sys.exit(main())
