"""`migrate run`: one kernel on the CPU, arrays in and out as .npz."""

from __future__ import annotations

import argparse
import io
import math
import re
import sys
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from migrate.cli import OK, VERBS
from migrate.cli.common import (
    CUDA_ENDINGS,
    Parser,
    add_preprocessing,
    defines,
    emit,
    is_case,
    reference,
)
from migrate.source import SourceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_INPUT_BYTES: Final = 1024**3

_SHORT: Final = {"define": "-D", "include": "-I"}


def run(arguments: list[str]) -> int:
    """Exit 0 when the kernel ran to its end."""
    parser = Parser(
        "run",
        VERBS["run"],
        [
            "migrate run kernel.py::vector_add --inputs in.npz -o out.npz",
            "migrate run kernel.cu --inputs in.npz --arg n=1000 --grid 4 --block 256 -o out.npz",
            "migrate run cupy_code.py::scale --inputs in.npz --grid 4 --block 256 -o out.npz",
        ],
        "exit codes: 0 the kernel ran to its end, 2 usage, unreadable input, or it cannot be run",
    )
    parser.add_argument("file", metavar="FILE", help="a CUDA or Python file, or file::kernel")
    parser.add_argument(
        "--side",
        choices=("cuda", "nki"),
        help="of a Python file with CUDA in strings: which kernel (default: CUDA with a launch)",
    )
    parser.add_argument(
        "--inputs", metavar="NPZ", help="arrays by parameter name (also those written to)"
    )
    parser.add_argument(
        "--arg",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a scalar argument: integer, float, true or false",
    )
    parser.add_argument(
        "--dtype",
        metavar="NAME=DTYPE",
        action="append",
        default=[],
        help="what an array of raw bytes holds, such as x=bfloat16 (.npz cannot say)",
    )
    cuda = parser.add_argument_group("CUDA")
    cuda.add_argument("--grid", metavar="X[,Y[,Z]]", help="blocks of the launch")
    cuda.add_argument("--block", metavar="X[,Y[,Z]]", help="threads of a block")
    cuda.add_argument("--shared", metavar="BYTES", type=int, default=0, help="dynamic shared bytes")
    cuda.add_argument(
        "--template",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a template argument: a number, true, false or a type's name",
    )
    add_preprocessing(parser)
    nki = parser.add_argument_group("NKI")
    nki.add_argument("--target", choices=("trn1", "trn2", "trn3"), default="trn2")
    parser.add_argument("-o", "--output", metavar="NPZ", help="where the results go")
    options = parser.parse_args(arguments)
    if is_case(options.file):
        parser.error("'run' runs one kernel file, not a case")
    if options.output is None and sys.stdout.isatty():
        parser.error("an .npz is not for a terminal; name a file with -o")
    file, kernel = reference(options.file)
    side = _side(parser, file, options)

    values = load_npz(options.inputs, pairs(parser, "--dtype", options.dtype))
    for name, text in pairs(parser, "--arg", options.arg).items():
        value = scalar(text)
        if isinstance(value, str):
            parser.error(f"--arg {name}={text} is not a number, true or false")
        values[name] = value

    if side == "cuda":
        if options.grid is None or options.block is None:
            parser.error("a CUDA kernel needs --grid and --block")
        grid = extents(parser, "--grid", options.grid)
        block = extents(parser, "--block", options.block)
        given = pairs(parser, "--template", options.template)
        template = {name: scalar(text) for name, text in given.items()}
        from migrate.api import run_cuda

        results = run_cuda(
            file,
            kernel,
            values,
            grid=grid,
            block=block,
            template=template,
            shared=options.shared,
            defines=defines(parser, options),
            include=options.include,
        )
    else:
        for option in ("grid", "block", "shared", "template", "define", "include"):
            if getattr(options, option):
                parser.error(f"{_SHORT.get(option, '--' + option)} is for CUDA kernels")
        from migrate.api import run_nki

        results = run_nki(file, kernel, values, target=options.target)
    emit(npz(results), options.output)
    return OK


def _side(parser: Parser, file: str, options: argparse.Namespace) -> Literal["cuda", "nki"]:
    """By the file's ending; a launch is for the CUDA in a Python file's strings."""
    suffix = Path(file).suffix
    if suffix not in (*CUDA_ENDINGS, ".py"):
        parser.error(f"'{file}' is neither .cu nor .py")
    if suffix != ".py":
        if options.side == "nki":
            parser.error(f"'{file}' has no NKI kernel, which stands in a .py")
        return "cuda"
    if options.side is not None:
        side: Literal["cuda", "nki"] = options.side
        return side
    return "cuda" if options.grid or options.block else "nki"


def npz(arrays: Mapping[str, Any]) -> bytes:
    """An `.npz` of the arrays; equal arrays give equal bytes.

    (`numpy.savez` takes the names as keywords, so that none may be called `file`.)
    """
    import numpy as np

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def scalar(text: str) -> bool | int | float | str:
    """What a scalar on the command line means; text where it is nothing else."""
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def pairs(parser: Parser, option: str, given: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` arguments as a dictionary."""
    found: dict[str, str] = {}
    for text in given:
        name, mark, value = text.partition("=")
        if not mark or not name or not value:
            parser.error(f"{option} {text} is not NAME=VALUE")
        if name in found:
            parser.error(f"{option} gives {name} twice")
        found[name] = value
    return found


def extents(parser: Parser, option: str, text: str) -> tuple[int, int, int]:
    """`X`, `X,Y` or `X,Y,Z` as three extents."""
    parts = text.split(",")
    if len(parts) > 3 or not all(re.fullmatch(r"[0-9]{1,10}", part) for part in parts):
        parser.error(f"{option} {text} is not X, X,Y or X,Y,Z")
    x, y, z = (*map(int, parts), 1, 1)[:3]
    if 0 in (x, y, z):
        parser.error(f"{option} {text} has an extent of 0")
    return x, y, z


def load_npz(
    path: str | None, dtypes: dict[str, str]
) -> dict[str, NDArray[Any] | bool | int | float]:
    """The arrays of an `.npz`, without pickle; `dtypes` says what raw bytes hold.

    Raises `SourceError` where it cannot be read or would take over `MAX_INPUT_BYTES`.
    """
    if path is None:
        return {}
    import numpy as np

    from migrate.numerics.dtypes import DType

    found: dict[str, NDArray[Any] | bool | int | float] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > MAX_INPUT_BYTES:
                raise SourceError(f"holds {size:,} bytes, more than 1 GiB", file=path)
            for member in archive.infolist():
                _check_header(archive, member, path)
        with np.load(path, allow_pickle=False) as arrays:
            for name in dtypes:
                if name not in arrays.files:
                    raise SourceError(f"has no array '{name}', as --dtype names", file=path)
            for name in arrays.files:
                array = arrays[name]
                if name in dtypes:
                    array = array.view(DType.named(dtypes[name]).numpy)
                elif array.dtype.kind == "V":
                    message = f"'{name}' holds raw bytes; say what with --dtype {name}=DTYPE"
                    raise SourceError(message, file=path)
                found[name] = array
    except KeyError as error:
        raise SourceError(f"unknown dtype {error}", file=path) from None
    except FileNotFoundError:
        raise SourceError("no such file", file=path) from None
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror or error}", file=path) from None
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise SourceError(f"is not an .npz that can be read: {error}", file=path) from None
    return found


def _check_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: str) -> None:
    """Refuse an array that is no numbers, or has not as many bytes as its header says."""
    import numpy as np

    name = member.filename.removesuffix(".npy")
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise SourceError(f"'{name}' is of an .npy version that is not read", file=path)
        header = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = header(file)
    if dtype.hasobject:
        raise SourceError(f"'{name}' holds Python objects (pickle), never loaded", file=path)
    if dtype.kind not in "biufV" or dtype.names is not None:
        raise SourceError(f"'{name}' holds {dtype}, which no kernel takes", file=path)
    if math.prod(shape) * dtype.itemsize > member.file_size:
        raise SourceError(f"'{name}' is cut short", file=path)
