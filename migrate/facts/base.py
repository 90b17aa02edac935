"""What all tables share: where they are, how they are read, what they are made of."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


class FactsError(Exception):
    """The tables are missing, stale or wrong."""


class Fact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of a table; an unknown key is an error."""


def root() -> Path:
    """The folder of the tables: in the package, else (editable installs) in the checkout.

    Raises `FactsError` where there is none.
    """
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_mappings", package.parent / "mappings"):
        if folder.is_dir():
            return folder
    raise FactsError(f"the tables are missing: neither {package / '_mappings'} nor a checkout")


def read(name: str, kind: type[T]) -> T:
    """The generated file `name`, typed.  Raises `FactsError` where it is missing."""
    path = root() / "generated" / name
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        raise FactsError(f"{path} is missing; run: python -m migrate.facts build") from None


def digest() -> str:
    """Sixteen hexadecimal digits that change with any fact."""
    return read("index.json", dict[str, str])["digest"]


def digest_of(files: dict[str, bytes]) -> str:
    """The digest of generated files, by name."""
    hashed = hashlib.sha256()
    for name in sorted(files):
        hashed.update(name.encode() + b"\0" + files[name] + b"\0")
    return hashed.hexdigest()[:16]


def pretty(data: object) -> bytes:
    """JSON for small files that people read."""
    text = json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False)
    return (text + "\n").encode()


def rows(data: dict[str, object]) -> bytes:
    """JSON with one line an entry, for files that only differences are read of."""
    lines = (f"{json.dumps(key)}:{msgspec.json.encode(data[key]).decode()}" for key in sorted(data))
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()
