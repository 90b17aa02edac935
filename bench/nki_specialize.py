"""How many kernels of public files specialise when nothing but their text is given.

    python bench/nki_specialize.py FOLDER [--whole FOLDER] [--tests] [--only TEXT] [--seconds S]
                                   [-v] [--docs FILE]

FOLDER holds parts of checkouts named OWNER+NAME; below `--whole` lie the whole checkouts of the
same names, where there are any.  Every decorated kernel of every Python file in FOLDER is read:
arguments are inferred from its text (`pipeline.nki_alone`), then it is specialised with them.
Printed are, for every repository and in total, how many kernels are self-contained, how
many of those specialise to the end without an `Opaque`, and why the others do not, by frequency.

A kernel is *self-contained* where its text, with the functions, classes and constants that it
reaches, in its own file and in others of the checkout, uses names of these only: its own file,
Python's standard library, NKI, NumPy, ml_dtypes, and modules whose file lies in the same
checkout (found by their dotted path from the file's own folder, a folder above it, or a `src`
folder).  A kernel that needs torch, jax or a package that is installed elsewhere is not: its
helpers cannot be read.

`--tests` reads files whose name begins with `test_` or that lie in a folder of tests, too.
`--docs` writes the table of what does not specialise, as Markdown.  Exits 1 where something
crashed.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from migrate.budget import Budget, Exhausted, Meter
from migrate.nki.parse import Kernel, Module, parse
from migrate.nki.project import Project
from migrate.nki.specialize import specialize
from migrate.pipeline.nki_alone import infer
from migrate.source import SourceError, read

READABLE = frozenset(
    {"nki", "neuronxcc", "numpy", "ml_dtypes", "typing_extensions", *sys.stdlib_module_names}
)
MAX_REACHED = 400


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one kernel."""

    repository: str
    file: str
    kernel: str
    contained: bool
    outcome: str
    """`whole`, `opaque`, `failed`, `empty` (no instruction), `no arguments`, `crashed`."""
    reasons: tuple[str, ...] = ()
    instructions: int = 0
    seconds: float = 0.0
    inferring: float = 0.0
    tries: int = 0
    source: str = ""


def outside(module: Module, kernel: Kernel, file: Path, root: Path) -> tuple[str, ...]:
    """Modules that a kernel needs and that cannot be read; see the top for which can."""
    pending: list[tuple[Path, ast.Module, ast.AST]] = [(file, module.tree, kernel.node)]
    reached: set[tuple[Path, str]] = set()
    found: dict[str, None] = {}
    while pending and len(reached) < MAX_REACHED:
        here, tree, node = pending.pop()
        imported = _imported(tree)
        for part in ast.walk(node):
            if not isinstance(part, ast.Name) or (here, part.id) in reached:
                continue
            reached.add((here, part.id))
            pending += [(here, tree, each) for each in _bound(tree, part.id)]
            if part.id not in imported:
                continue
            path, name = imported[part.id]
            if not _readable(path, here, root):
                found.setdefault(path)
                continue
            other = _place(path, here, root)
            if other is not None and other.is_file() and name is not None:
                inner = _tree(other)
                pending += [(other, inner, each) for each in _bound(inner, name)]
                again = _imported(inner).get(name)
                if again is not None and not _readable(again[0], other, root):
                    found.setdefault(again[0])
    return tuple(found)


@lru_cache(maxsize=512)
def _tree(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_text(errors="replace"))
    except SyntaxError:
        return ast.Module([], [])


def _bound(tree: ast.Module, name: str) -> Iterator[ast.AST]:
    """The statements of a module that say what a name is."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=bound) | ast.ClassDef(name=bound) if bound == name:
                yield node
            case ast.Assign(targets=[ast.Name(id=bound)]) if bound == name:
                yield node.value
            case _:
                pass


@lru_cache(maxsize=512)
def _imported(tree: ast.Module) -> dict[str, tuple[str, str | None]]:
    """What imports bind: the module, and the name in it where there is one."""
    found: dict[str, tuple[str, str | None]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    found[alias.asname or alias.name.partition(".")[0]] = alias.name, None
            case ast.ImportFrom(module=path, level=level, names=names):
                for alias in names:
                    found[alias.asname or alias.name] = "." * level + (path or ""), alias.name
            case _:
                pass
    return found


def _readable(path: str, file: Path, root: Path) -> bool:
    if path.lstrip(".").partition(".")[0] in READABLE and not path.startswith("."):
        return True
    return _place(path, file, root) is not None


def _place(path: str, file: Path, root: Path) -> Path | None:
    """The file of a module in the checkout, or the folder of a package."""
    level = len(path) - len(path.lstrip("."))
    inner = Path(*path.lstrip(".").split(".")) if path.strip(".") else Path()
    if level:
        starts = [file.parent if level == 1 else file.parents[level - 1]]
    else:
        above = [folder for folder in file.parents if folder.is_relative_to(root)]
        starts = [*above, *(folder / "src" for folder in above)]
    for start in starts:
        place = start / inner
        for candidate in (place.with_suffix(".py"), place / "__init__.py", place):
            if candidate.exists():
                return candidate
    return None


def looked(module: Module, kernel: Kernel, file: Path, root: Path, seconds: float) -> Result:
    """Infer arguments for one kernel and specialise it."""
    repository = file.relative_to(root).parts[0]
    place = str(file.relative_to(root))
    contained = not outside(module, kernel, file, root / repository)
    began = time.monotonic()
    meter = Meter(Budget(seconds=seconds), f"reading {kernel.name}")
    try:
        inferred = infer(module, kernel, meter)
    except Exhausted as stop:
        return Result(repository, place, kernel.name, contained, "failed", (str(stop),))
    inferring = time.monotonic() - began
    if isinstance(inferred, str):
        return Result(
            repository, place, kernel.name, contained, "no arguments", (inferred,), 0, 0, inferring
        )
    began = time.monotonic()
    found = specialize(
        module,
        kernel.name,
        inferred.args,
        meter=Meter(Budget(seconds=seconds), f"reading {kernel.name}"),
        grid=inferred.grid,
    )
    spent = time.monotonic() - began
    ends = [e for e in found.events if e.kind in ("error", "assert", "stopped")]
    gaps = [e for e in found.events if e.kind == "unsupported"]
    outcome = "whole" if found.complete else "failed" if ends else "opaque"
    if found.complete and not found.instructions:
        outcome = "empty"
    reasons = tuple(dict.fromkeys(f"{e.kind}: {e.message}" for e in (*gaps, *ends)))
    if found.complete and found.problems:
        reasons = tuple(dict.fromkeys(f"problem: {p.code}" for p in found.problems))
    return Result(
        repository, place, kernel.name, contained, outcome, reasons,
        found.instructions, spent, inferring, inferred.tries, _evidence(inferred.inferred),
    )  # fmt: skip


def _evidence(inferred: tuple[tuple[str, object], ...]) -> str:
    told = " ".join(text for text, _ in inferred)
    for words in ("a call in the file", "its docstring"):
        if words in told:
            return words
    return "how it is used"


def is_test(place: str) -> bool:
    """Whether a file is of tests by its name."""
    parts = place.split("/")
    return parts[-1].startswith("test_") or any(p in ("test", "tests") for p in parts[1:-1])


def survey(
    folder: Path, whole: Path, tests: bool, only: str, seconds: float, verbose: bool
) -> list[Result]:
    """Every decorated kernel below a folder."""
    results: list[Result] = []
    for listed in sorted(folder.rglob("*.py")):
        place = str(listed.relative_to(folder))
        if only not in place or (is_test(place) and not tests):
            continue
        root = whole if (whole / place).is_file() else folder
        path = root / place
        checkout = root / place.partition("/")[0]
        try:
            module = parse(read(str(path)), Project.around(path, str(path), (checkout,)))
        except SourceError:
            continue
        for kernel in module.kernels:
            if not kernel.decorated:
                continue
            try:
                result = looked(module, kernel, path, root, seconds)
            except Exception:  # noqa: BLE001 - a crash is what is looked for
                reason = traceback.format_exc()
                result = Result(
                    place.partition("/")[0], place, kernel.name, True, "crashed", (reason,)
                )
            results.append(result)
            if verbose:
                print(shown(result), flush=True)
    return results


def shown(result: Result) -> str:
    """One line a kernel."""
    each = 1e6 * result.seconds / result.instructions if result.instructions else 0.0
    return (
        f"{result.outcome:12} {'' if result.contained else '(needs others) '}"
        f"{result.file}::{result.kernel}  {result.instructions} instructions,"
        f" {result.seconds:.2f} s, {each:.0f} us each; inferred in {result.inferring:.2f} s,"
        f" {result.tries} tries, {result.source}  {' | '.join(result.reasons)[:300]}"
    )


_NUMBERS = re.compile(r"\b\d[\d,.e+-]*\b")
_FOLLOWING = re.compile(r"(?:\w+ is not understood: )+")
"""What is not understood because something else is not."""


def kinds(results: list[Result]) -> Counter[str]:
    """Reasons by frequency, with their numbers left out; each once a kernel."""
    counted: Counter[str] = Counter()
    for result in results:
        causes = (_FOLLOWING.sub("", reason) for reason in result.reasons)
        counted.update({_NUMBERS.sub("N", cause)[:160] for cause in causes})
    return counted


def report(results: list[Result]) -> Iterator[str]:
    """The tables."""
    yield f"{'':44} {'kernels':>8} {'contained':>9} {'whole':>6} {'share':>6}  other outcomes"
    repositories = sorted({result.repository for result in results})
    for repository in (*repositories, "total"):
        mine = [r for r in results if repository in (r.repository, "total")]
        contained = [r for r in mine if r.contained]
        whole = sum(r.outcome == "whole" for r in contained)
        others = Counter(r.outcome for r in contained if r.outcome != "whole")
        share = 100 * whole / len(contained) if contained else 0.0
        said = ", ".join(f"{count} {outcome}" for outcome, count in others.most_common())
        yield f"{repository:44} {len(mine):8} {len(contained):9} {whole:6} {share:5.1f}%  {said}"
    contained = [r for r in results if r.contained]
    emitted = sum(r.instructions for r in contained)
    spent = sum(r.seconds for r in contained)
    yield f"{emitted} instructions in {spent:.1f} s, {1e6 * spent / max(emitted, 1):.0f} us each"
    yield f"arguments inferred in {sum(r.inferring for r in contained):.1f} s"
    sources = Counter(r.source for r in contained if r.outcome == "whole")
    yield "shapes of whole ones from: " + ", ".join(f"{n} {s}" for s, n in sources.most_common())
    faulty = [r for r in contained if r.outcome == "whole" and r.reasons]
    yield f"{len(faulty)} whole ones with problems: " + ", ".join(
        f"{n} {k}" for k, n in kinds(faulty).most_common(12)
    )
    yield "reasons, by kernels:"
    lost = [r for r in contained if r.outcome != "whole"]
    for reason, count in kinds(lost).most_common(150):
        yield f"  {count:4} {reason}"
    for result in results:
        if result.outcome == "crashed":
            yield f"crashed: {result.file}::{result.kernel}\n{result.reasons[0]}"


def documented(results: list[Result]) -> Iterator[str]:
    """The document on what does not specialise: names and reasons."""
    contained = [r for r in results if r.contained]
    whole = sum(r.outcome == "whole" for r in contained)
    share = 100 * whole / len(contained) if contained else 0.0
    yield PREFACE.format(
        kernels=len(results),
        contained=len(contained),
        whole=whole,
        share=f"{share:.1f}",
        faulty=sum(r.outcome == "whole" and bool(r.reasons) for r in contained),
        late=sum("seconds while" in " ".join(r.reasons) for r in contained if r.outcome != "whole"),
        unknown=sum(r.outcome == "no arguments" for r in contained),
    )
    yield "| Repository | Decorated | Self-contained | To the end | Share |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for repository in sorted({result.repository for result in results}):
        mine = [r for r in results if r.repository == repository]
        inside = [r for r in mine if r.contained]
        done = sum(r.outcome == "whole" for r in inside)
        part = f"{100 * done / len(inside):.0f} %" if inside else ""
        shown = repository.replace("+", "/")
        yield f"| {shown} | {len(mine)} | {len(inside)} | {done} | {part} |"
    yield ""
    yield "## What does not, and why"
    for repository in sorted({r.repository for r in contained if r.outcome != "whole"}):
        yield f"\n### {repository.replace('+', '/')}\n"
        yield "| File | Kernel | What ends it |"
        yield "| --- | --- | --- |"
        for result in contained:
            if result.repository == repository and result.outcome != "whole":
                file = result.file.partition("/")[2]
                yield f"| {file} | `{result.kernel}` | {_cell(result)} |"


def _cell(result: Result) -> str:
    if result.outcome == "empty":
        return "no instruction: the kernel's body issues none"
    reason = _FOLLOWING.sub("", result.reasons[0]) if result.reasons else result.outcome
    if reason.startswith("assert:"):
        # The words of the assertion are its author's.
        return "an assertion of its own that the arguments found do not meet"
    return reason.partition("\n")[0][:160].replace("|", "\\|").replace("<", "&lt;")


PREFACE = """\
# Kernels of public files read from their text alone

Made by `python bench/nki_specialize.py FOLDER --whole FOLDER --tests --docs FILE` over the public
files with NKI kernels.  Of {kernels} decorated kernels {contained} are self-contained, and
{whole} of those ({share} %) specialise to the end without an `Opaque`, with arguments inferred
from their own text; {faulty} of these are not free of faults at the arguments that were found.
For {unknown} nothing tells what an argument is, and {late} reach the bound on seconds
(`--seconds`): they are large, and are read instruction by instruction.

A kernel is *self-contained* where its text, with the functions, classes and constants that it
reaches, in its own file and in others of the checkout, uses names of these only: its own file,
Python's standard library, NKI, NumPy, ml_dtypes, and modules whose file lies in the same
checkout.  A kernel that takes an object of a class (a configuration that its caller makes)
counts, although nothing in its text may tell what is in the object.

"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--whole", type=Path, help="a folder with the whole checkouts")
    parser.add_argument("--docs", type=Path, help="write the list of what is left to this file")
    parser.add_argument("--tests", action="store_true", help="files of tests, too")
    parser.add_argument("--only", default="", help="files with this in their path")
    parser.add_argument("--seconds", type=float, default=30.0, help="for one kernel")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for every kernel")
    options = parser.parse_args()
    results = survey(
        options.folder,
        options.whole or options.folder,
        options.tests,
        options.only,
        options.seconds,
        options.verbose,
    )
    print("\n".join(report(results)))
    if options.docs is not None:
        options.docs.write_text("\n".join(documented(results)) + "\n")
    return 1 if any(result.outcome == "crashed" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
