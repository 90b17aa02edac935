"""Shapes and formats that a docstring states for parameters.

Only entries that begin a line with the parameter's name count, and only brackets that list
extents: `x (nl.ndarray): [B, S, H] in HBM`, `x : (M=4096, K=2048) fp32`, `x: tensor of shape
[K, M]`, `x - an image of dimensions C x H x W`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from migrate.numerics.dtypes import DType

MAX_TEXT = 40_000
"""Characters of a docstring that are read."""

MAX_RANK = 6


@dataclass(frozen=True, slots=True)
class Stated:
    """What a docstring says of one parameter: extents as expressions, a value of some names."""

    extents: tuple[str, ...]
    values: tuple[tuple[str, int], ...]
    dtype: DType | None


_BRACKETS = re.compile(r"[\[(]([^\[\]()]*(?:\([^()]*\)[^\[\]()]*)*)[\])]")
_CROSSES = re.compile(r"\b(?:dimensions?|shape|size)\s+(?:of\s+)?(\w+(?:\s*[x*×]\s*\w+)+)\b")
_ENTRY = re.compile(
    r"^\s*(?:[-*•]\s*)?(?::param\s+)?[`*]*(?P<names>[A-Za-z_]\w*(?:\s*[,/]\s*[A-Za-z_]\w*)*)[`*]*"
    r"\s*(?P<rest>[:=(\-–—\[].*)$"
)
_FORMATS = (
    (re.compile(r"\b(?:float32|fp32|f32)\b"), DType.FLOAT32),
    (re.compile(r"\b(?:bfloat16|bf16)\b"), DType.BFLOAT16),
    (re.compile(r"\b(?:float16|fp16|f16)\b"), DType.FLOAT16),
    (re.compile(r"\b(?:int32|i32)\b"), DType.INT32),
    (re.compile(r"\b(?:uint32|u32)\b"), DType.UINT32),
    (re.compile(r"\b(?:int8|i8)\b"), DType.INT8),
    (re.compile(r"\b(?:uint8|u8)\b"), DType.UINT8),
)
_TYPES = frozenset(
    {"any", "array", "bool", "default", "dict", "dtype", "false", "float", "in", "inout", "input"}
    | {"int", "list", "ndarray", "nki", "nl", "none", "np", "optional", "out", "output"}
    | {"required", "str", "tensor", "torch", "true", "tuple", "type"}
)


def stated(text: str, names: frozenset[str]) -> dict[str, Stated]:
    """What a docstring says of each of the parameters `names`."""
    found: dict[str, Stated] = {}
    for name, entry in _entries(text[:MAX_TEXT], names):
        shape = _shape(entry)
        if name not in found and shape is not None:
            extents, values = shape
            found[name] = Stated(extents, values, _dtype(entry))
    return found


def _entries(text: str, names: frozenset[str]) -> Iterator[tuple[str, str]]:
    """The parameters with the text after their names, up to the next entry or empty line."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        entry = _ENTRY.match(line)
        if entry is None or re.match(r"\[\d+\]\s*:", entry["rest"]):
            continue  # the last: an item of a tuple
        rest = [entry["rest"]]
        for following in lines[number + 1 : number + 4]:
            if not following.strip() or _ENTRY.match(following):
                break
            rest.append(following.strip())
        for name in re.split(r"\s*[,/]\s*", entry["names"]):
            if name in names:
                yield name, " ".join(rest)


def _shape(entry: str) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]] | None:
    # A bracket of one name tells only with a word before it: "(tensor)" is a type.
    for match in _BRACKETS.finditer(entry):
        before = entry[: match.start()].rstrip().lower()
        told = before.endswith(("shape", "shape:", "dimensions", "shape =", "shape is", "size"))
        inner = match.group(1)
        square = entry[match.start()] == "["
        # `Optional[...]`, `tensor[128, 4]`: only the latter lists extents.
        word = re.search(r"\w+$", entry[: match.start()])
        if word and word.group().lower() in {"optional", "list", "tuple", "dict", "union"}:
            continue
        found = _listed(inner, bare=told or square)
        if found is not None:
            return found
    crossed = _CROSSES.search(entry)
    if crossed is not None:
        return _listed(re.sub(r"\s*[x*×]\s*", ",", crossed.group(1)), bare=True)
    return None


def _listed(inner: str, bare: bool) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]] | None:
    parts = [part.strip() for part in _split(inner)]
    one = len(parts) == 1 or (len(parts) == 2 and not parts[1])
    if not parts or (one and not bare and len(parts) == 1):
        return None
    if parts and not parts[-1]:
        parts.pop()
    if not parts or len(parts) > MAX_RANK:
        return None
    extents: list[str] = []
    values: list[tuple[str, int]] = []
    for part in parts:
        name, equals, value = part.partition("=")
        name = name.strip().strip("`")
        if equals:
            if not name.isidentifier() or not value.strip().isdigit():
                return None
            values.append((name, int(value)))
        if name.lower() in _TYPES or not extent_like(name) or name == "0":
            return None
        extents.append(name)
    return tuple(extents), tuple(values)


def _split(inner: str) -> Iterator[str]:
    """At commas outside parentheses."""
    depth, begin = 0, 0
    for position, character in enumerate(inner):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            yield inner[begin:position]
            begin = position + 1
    yield inner[begin:]


def extent_like(text: str) -> bool:
    """Whether a text is whole numbers and names with `+ - * //` between them."""
    if not text or len(text) > 80:
        return False
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    pending: list[ast.expr] = [tree]
    while pending:
        match pending.pop():
            case ast.BinOp(left=a, op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv(), right=b):
                pending += [a, b]
            case ast.Name() | ast.Constant(value=int()):
                pass
            case _:
                return False
    return True


def _dtype(entry: str) -> DType | None:
    found = [(match.start(), dtype) for words, dtype in _FORMATS if (match := words.search(entry))]
    return min(found, key=lambda pair: pair[0])[1] if found else None
