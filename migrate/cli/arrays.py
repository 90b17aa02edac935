"""Arrays as `.npz`: what `migrate run` takes and gives."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from migrate.source import SourceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_INPUT_BYTES: Final = 1024**3


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
