"""Read and check a `case.toml`.

Everything that can be wrong with a case is found here, as a `SourceError` that points at
the key: TOML errors, unknown keys (with the nearest known one), wrong types, expressions
that do not parse or do not evaluate for some run, paths that leave the case's folder.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar, get_args

import msgspec

from migrate.case import expression, fills, layout
from migrate.case.positions import Positions, Step, positions
from migrate.case.types import Case, CudaSide, Integer, Launch, NkiSide, Scalar, Tensor
from migrate.source import Source, SourceError, Span, read

MAX_CASE_BYTES: Final = 64 * 1024
MAX_KEY_NAMES: Final = 64
MAX_RUNS: Final = 1000
MAX_RANK: Final = 16
MAX_SIZE: Final = 2**40
MAX_THREADS: Final = 1024
MAX_GRID_X: Final = 2**31 - 1
MAX_GRID_YZ: Final = 65535
MAX_PROGRAMS: Final = 1024

T = TypeVar("T", bound=msgspec.Struct)

_MACRO = re.compile(r"[A-Za-z_]\w*(?:\([\w\s,.]*\))?")

_LAUNCH_KEYS: Final = tuple(field.name for field in msgspec.structs.fields(Launch))
_TOML_PLACE = re.compile(
    r"\s*\(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)"
)
# `tomllib` takes time with the cube of a dotted key's length.
_LONG_KEY = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+)"""
    rf"{{{MAX_KEY_NAMES}}}"
)
_FIELD = re.compile(r" - at `\$(?:\.(?P<field>\w+))?.*`$")


def load(path: str | Path) -> Case:
    """Read the case file at `path`; raises `SourceError`."""
    source = read(path)
    return parse(source, folder=Path(path).parent.resolve())


def parse(source: Source, *, folder: Path | None = None) -> Case:
    """Check a case's text; without a folder its paths are not looked at.

    Raises `SourceError`.
    """
    if len(source.encoded) > MAX_CASE_BYTES:
        raise SourceError(f"is larger than {MAX_CASE_BYTES // 1024} KiB", file=source.name)
    if found := _LONG_KEY.search(source.text):
        start = len(source.text[: found.start()].encode())
        where = source.span(start, start + 1)
        message = f"has a key of more than {MAX_KEY_NAMES} names"
        raise SourceError(message, file=source.name, where=where)
    try:
        data = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        _fail_toml(source, str(error))
    except (RecursionError, ValueError) as error:
        # The only other `ValueError` is Python's, of an integer that it will not convert.
        reason = "an integer has too many digits"
        if isinstance(error, RecursionError):
            reason = "nested too deeply"
        raise SourceError(f"is not TOML that can be read: {reason}", file=source.name) from None
    reader = _Reader(source.name, positions(source), folder)
    return reader.case(data)


def _fail_toml(source: Source, text: str) -> NoReturn:
    found = _TOML_PLACE.search(text)
    message = _TOML_PLACE.sub("", text)
    where = source.whole()
    if found and found["line"]:
        line, column = int(found["line"]), int(found["column"])
        where = Span(
            file=source.name,
            start_line=line,
            start_column=column,
            end_line=line,
            end_column=column + 1,
        )
    elif found:
        where = msgspec.structs.replace(where, start_line=where.end_line, start_column=1)
    raise SourceError(f"is not TOML: {message}", file=source.name, where=where) from None


class _Reader:
    """Turns the parsed TOML of one file into a `Case`; knows where its keys stand."""

    def __init__(self, name: str, places: Positions, folder: Path | None) -> None:
        self.name = name
        self.places = places
        self.folder = folder

    def fail(self, path: Sequence[Step], message: str) -> NoReturn:
        raise SourceError(message, file=self.name, where=self.places.find(path)) from None

    def case(self, data: dict[str, Any]) -> Case:
        self.known_keys(data, ("cuda", "nki", "sizes", "tensor", "scalar"), ())
        case = Case(
            file=self.name,
            folder=self.folder,
            cuda=self.cuda(data.get("cuda", {})),
            nki=self.table(data.get("nki", {}), NkiSide, ("nki",)),
            sizes=self.sizes(data.get("sizes", {})),
            tensors=self.tables(data.get("tensor", []), Tensor, ("tensor",)),
            scalars=self.tables(data.get("scalar", []), Scalar, ("scalar",)),
        )
        self.check_names(case)
        self.check_files(case)
        for sizes in case.runs():
            self.check_run(case, sizes, single="launch" not in data.get("cuda", {}))
        return case

    # -- tables -----------------------------------------------------------------------

    def cuda(self, data: Any) -> CudaSide:
        if not isinstance(data, dict):
            self.fail(("cuda",), "'cuda' must be a table")
        own = {key: data[key] for key in _LAUNCH_KEYS if key in data}
        rest = {key: data[key] for key in data if key not in own and key != "launch"}
        known = ("file", "define", "include", "launch", *_LAUNCH_KEYS)
        self.known_keys(data, known, ("cuda",))
        side = self.table(rest, CudaSide, ("cuda",))
        if "launch" in data:
            if own:
                key = next(iter(own))
                self.fail(("cuda", key), f"'{key}' belongs into the [[cuda.launch]] tables")
            launches = self.tables(data["launch"], Launch, ("cuda", "launch"))
        else:
            launches = (self.table(own, Launch, ("cuda",)),) if own else ()
        return msgspec.structs.replace(side, launch=launches)

    def tables(self, data: Any, kind: type[T], path: tuple[Step, ...]) -> tuple[T, ...]:
        if not isinstance(data, list):
            header = f"[[{'.'.join(map(str, path))}]]"
            self.fail(path, f"'{path[-1]}' must be a list of tables, written {header}")
        return tuple(self.table(item, kind, (*path, i)) for i, item in enumerate(data))

    def table(self, data: Any, kind: type[T], path: tuple[Step, ...]) -> T:
        if not isinstance(data, dict):
            self.fail(path, f"'{path[0]}' must be a table")
        self.known_keys(data, [field.name for field in msgspec.structs.fields(kind)], path)
        try:
            return msgspec.convert(data, kind)
        except msgspec.ValidationError as error:
            found = _FIELD.search(str(error))
            field = found["field"] if found else None
            message = _FIELD.sub("", str(error))
            at = (*path, field) if field else path
            self.fail(at, f"'{field}': {message}" if field else message)

    def known_keys(
        self, data: Mapping[str, Any], known: Sequence[str], path: tuple[Step, ...]
    ) -> None:
        for key in data:
            if key not in known:
                hint = f"; did you mean '{near}'?" if (near := nearest(key, known)) else ""
                known_here = "" if near else f" (known here: {', '.join(known)})"
                self.fail((*path, key), f"unknown key '{key}'{hint}{known_here}")

    def sizes(self, data: Any) -> dict[str, tuple[int, ...]]:
        if not isinstance(data, dict):
            self.fail(("sizes",), "'sizes' must be a table")
        sizes: dict[str, tuple[int, ...]] = {}
        for name, given in data.items():
            at = ("sizes", name)
            if not re.fullmatch(r"[^\W\d]\w*", name) or name in get_args(expression.Function):
                self.fail(at, f"'{name}' cannot be the name of a size")
            values = given if isinstance(given, list) else [given]
            if not values:
                self.fail(at, f"size '{name}' has no value")
            for value in values:
                if not isinstance(value, int) or isinstance(value, bool):
                    self.fail(at, f"size '{name}' must be an integer or a list of integers")
                if not 0 <= value <= MAX_SIZE:
                    self.fail(at, f"size '{name}' is {value}, not between 0 and 2^40")
            sizes[name] = tuple(values)
        lengths = {name: len(values) for name, values in sizes.items() if len(values) != 1}
        first, count = next(iter(lengths.items()), ("", 0))
        for name, length in lengths.items():
            if length != count:
                self.fail(
                    ("sizes", name),
                    f"size '{name}' has {length} values, '{first}' has {count}:"
                    " lists are read position by position and must be equally long",
                )
        if count > MAX_RUNS:
            self.fail(("sizes", first), f"there are more than {MAX_RUNS} runs")
        return sizes

    # -- checks -----------------------------------------------------------------------

    def check_names(self, case: Case) -> None:
        seen: set[str] = set()
        named = [(t.name, ("tensor", i)) for i, t in enumerate(case.tensors)]
        named += [(s.name, ("scalar", i)) for i, s in enumerate(case.scalars)]
        for name, path in named:
            if name in seen:
                self.fail((*path, "name"), f"the name '{name}' is used twice")
            seen.add(name)
        for i, tensor in enumerate(case.tensors):
            if len(tensor.shape) > MAX_RANK:
                self.fail(("tensor", i, "shape"), f"a shape has at most {MAX_RANK} axes")
            if tensor.nki_out is not None and tensor.nki_out < 0:
                self.fail(("tensor", i, "nki_out"), "'nki_out' counts from 0")
            if tensor.nki_out is not None and tensor.role == "in":
                self.fail(("tensor", i, "nki_out"), "a tensor with role 'in' is not returned")
            if tensor.fill is not None and tensor.role == "out":
                self.fail(("tensor", i, "fill"), "a tensor with role 'out' takes no fill")
            for key in ("dtype", "cuda_dtype", "nki_dtype"):
                self.check_dtype(("tensor", i, key), getattr(tensor, key))
        for i, scalar in enumerate(case.scalars):
            self.check_dtype(("scalar", i, "dtype"), scalar.dtype)
            self.check_value(("scalar", i), scalar)
        for name, value in case.cuda.define.items():
            if not _MACRO.fullmatch(name) or "\n" in str(value):
                self.fail(("cuda", "define", name), f"'{name}' is not a macro of one line")

    def check_value(self, path: tuple[Step, ...], scalar: Scalar) -> None:
        """A number that its dtype has no room for is not what was meant."""
        if scalar.dtype is None or not isinstance(scalar.value, int | float):
            return
        from migrate.numerics.dtypes import DType

        dtype = DType.named(scalar.dtype)
        if dtype.is_float:
            return
        low, high = dtype.range
        # Literals such as 0xffffffff are written for signed types too.
        high = max(high, 2**dtype.bits - 1)
        if not float(scalar.value).is_integer() or not low <= scalar.value <= high:
            self.fail((*path, "value"), f"{scalar.value} is no {scalar.dtype}")

    def check_dtype(self, path: tuple[Step, ...], name: str | None) -> None:
        if name is None:
            return
        from migrate.numerics.dtypes import DType

        try:
            DType.named(name)
        except (KeyError, ValueError):
            near = nearest(name, [dtype.value for dtype in DType])
            hint = f"; did you mean '{near}'?" if near else ""
            self.fail(path, f"unknown dtype '{name}'{hint}")

    def check_files(self, case: Case) -> None:
        self.confined(("cuda", "file"), case.cuda.file)
        for i, folder in enumerate(case.cuda.include):
            self.confined(("cuda", "include", i), folder)
            if self.folder is not None and not (self.folder / folder).is_dir():
                self.fail(("cuda", "include", i), f"'{folder}' is no folder")
        self.confined(("nki", "file"), case.nki.file)
        for i, tensor in enumerate(case.tensors):
            if tensor.expect is not None and not tensor.expect.endswith(".npy"):
                self.fail(("tensor", i, "expect"), "'expect' must name a .npy file")
            self.confined(("tensor", i, "expect"), tensor.expect)
            self.check_array(("tensor", i, "expect"), tensor.expect)
            if tensor.fill is None:
                continue
            try:
                fill = fills.parse(tensor.fill)
            except fills.FillError as error:
                self.fail(("tensor", i, "fill"), str(error))
            if isinstance(fill, fills.Stored):
                self.confined(("tensor", i, "fill"), fill.file)
                self.check_array(("tensor", i, "fill"), fill.file)

    def check_array(self, path: tuple[Step, ...], file: str | None) -> None:
        if file is None or self.folder is None:
            return
        try:
            fills.opened(self.folder / file)
        except fills.FillError as error:
            self.fail(path, str(error))

    def confined(self, path: tuple[Step, ...], file: str | None) -> None:
        """Refuse a path that is not a file inside the case's folder, links followed."""
        if file is None or self.folder is None:
            return
        try:
            root = self.folder.resolve()
            resolved = (root / file).resolve()
            inside = resolved.is_relative_to(root) and not Path(file).is_absolute()
            present = inside and resolved.is_file()
            folder = inside and resolved.is_dir()
        except (OSError, ValueError, RuntimeError) as error:
            # Up to Python 3.12 a `RuntimeError` says that links go round in a circle.
            reason = "it links to itself" if isinstance(error, RuntimeError) else str(error)
            reason = getattr(error, "strerror", None) or reason
            self.fail(path, f"'{file}' is not a path that can be used: {reason}")
        if not inside:
            self.fail(path, f"'{file}' leaves the folder of the case")
        if folder:
            self.fail(path, f"'{file}' is a directory, not a file")
        if not present:
            self.fail(path, f"'{file}': no such file in the folder of the case")

    def check_run(self, case: Case, sizes: Mapping[str, int], *, single: bool) -> None:
        for i, launch in enumerate(case.cuda.launch):
            path: tuple[Step, ...] = ("cuda",) if single else ("cuda", "launch", i)
            for key in ("grid", "block"):
                extents = getattr(launch, key)
                if extents is None:
                    continue
                if not 1 <= len(extents) <= 3:
                    self.fail((*path, key), f"'{key}' has 1 to 3 extents, not {len(extents)}")
                counts = [
                    self.number((*path, key), extent, sizes, least=int(key == "block"))
                    for extent in extents
                ]
                self.check_extents((*path, key), counts)
            self.number((*path, "dynamic_shared"), launch.dynamic_shared, sizes)
        programs = [self.number(("nki", "grid"), extent, sizes) for extent in case.nki.grid]
        if prod(programs) > MAX_PROGRAMS:
            self.fail(("nki", "grid"), f"{prod(programs):,} programs, {MAX_PROGRAMS:,} at most")
        for i, tensor in enumerate(case.tensors):
            self.check_tensor(("tensor", i), tensor, sizes)
        for i, scalar in enumerate(case.scalars):
            if isinstance(scalar.value, str):
                self.number(("scalar", i, "value"), scalar.value, sizes, least=None)

    def check_extents(self, path: tuple[Step, ...], counts: Sequence[int]) -> None:
        """What a device can launch (CUDA C++ Programming Guide, compute capabilities)."""
        if path[-1] == "block":
            if prod(counts) > MAX_THREADS:
                self.fail(path, f"a block of {prod(counts):,} threads, {MAX_THREADS:,} at most")
        elif counts[0] > MAX_GRID_X or max(counts[1:], default=0) > MAX_GRID_YZ:
            shown = " x ".join(f"{count:,}" for count in counts)
            self.fail(path, f"a grid of {shown} blocks, 2^31 - 1 x 65,535 x 65,535 at most")

    def check_tensor(
        self, path: tuple[Step, ...], tensor: Tensor, sizes: Mapping[str, int]
    ) -> None:
        shape = tuple(self.number((*path, "shape"), extent, sizes) for extent in tensor.shape)
        if prod(shape) > fills.MAX_ELEMENTS:
            self.fail((*path, "shape"), f"'{tensor.name}' has more than 2^30 elements")
        if tensor.nki_layout is not None:
            try:
                layout.shapes(layout.parse(tensor.nki_layout), shape, sizes)
            except layout.LayoutError as error:
                self.fail((*path, "nki_layout"), str(error))
        if tensor.fill is not None:
            fill = fills.parse(tensor.fill)
            if isinstance(fill, fills.Integers):
                low = self.number((*path, "fill"), fill.low.text, sizes, least=None)
                high = self.number((*path, "fill"), fill.high.text, sizes, least=None)
                if low >= high:
                    self.fail((*path, "fill"), f"int({low}, {high}) holds no number")

    def number(
        self,
        path: tuple[Step, ...],
        given: Integer,
        sizes: Mapping[str, int],
        *,
        least: int | None = 0,
    ) -> int:
        try:
            value = expression.evaluate(given, sizes)
        except expression.ExpressionError as error:
            self.fail(path, f"'{path[-1]}': {error}")
        if least is not None and value < least:
            shown = ", ".join(f"{name}={size}" for name, size in sizes.items())
            at = f" is {value} for {shown}," if isinstance(given, str) and shown else " is"
            self.fail(path, f"'{path[-1]}': {given}{at} less than {least}")
        return value


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word most like `word`, if one is like it."""
    from cydifflib import get_close_matches

    matches: list[str] = get_close_matches(word, known, n=1, cutoff=0.6)
    return matches[0] if matches else None
