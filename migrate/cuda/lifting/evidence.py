"""What the typed text tells of a kernel that is only partly understood.

Where blocks and threads enter a number, which loops stand around, and which parts of the
device libraries the text that was not understood asks for.  It is less than the IR tells, and
is asked only where the IR leaves gaps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from migrate.cuda import ast
from migrate.cuda.lifting.scan import nodes
from migrate.ir.nodes import Told

_FETCH: Final = re.compile(r"\btex[123]D\w*\s*(?:<[^<>()]*>)?\s*\(([^,()]*),([^;]{0,400})\)")
_RANDOM: Final = re.compile(r"\bcurand(_\w+)?\b")
_SCAN: Final = re.compile(r"\bBlock\w{0,40}Scan|\bWarp\w{0,40}Scan|\b(in|ex)clusive_scan\b")
_TOGETHER: Final = re.compile(r"\bBlock(Load|Store|Scan|Exchange|Reduce)|\bmake_smem_ptr\b")
_PRODUCT: Final = re.compile(r"\bgemm\s*\(|(\b\w+\([^()]*\))\s*=\s*[^;=+*]+\*[^;=+*]+\+\s*\1")
_TILE: Final = re.compile(r"\blocal_tile\s*\([^;]{0,400}\bmake_coord\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)")
_CALLEES: Final = 64
"""Functions that a kernel calls which are looked into."""
_LONGEST: Final = 4000
"""Characters of one text that are looked at."""


def evidence(kernel: ast.Function, reasons: Iterable[str]) -> Told:
    """What a kernel computes and how it spreads its work, each "" where nothing tells.

    `reasons` say why parts were not understood.
    """
    found = _nodes(kernel)
    gaps = [n for n in found if isinstance(n, ast.Opaque | ast.OpaqueExpression)]
    texts = [gap.text[:_LONGEST] for gap in gaps]
    words = "\n".join(
        (*texts, *(gap.reason for gap in gaps), *(reason[:_LONGEST] for reason in reasons))
    )
    return Told(_computes(texts, words, found), _mapping(found, texts, words))


def _nodes(kernel: ast.Function) -> tuple[object, ...]:
    """The nodes of a kernel and of the functions that it calls."""
    found: list[object] = []
    functions = [kernel]
    for function in functions:
        for node in nodes(function.body):
            found.append(node)
            if isinstance(node, ast.Call) and len(functions) < _CALLEES:
                called = node.function
                if all(called.body is not known.body for known in functions):
                    functions.append(called)
    return tuple(found)


def _computes(texts: list[str], words: str, found: tuple[object, ...]) -> str:
    if _SCAN.search(words):
        return "scan/prefix"
    if _RANDOM.search(words):
        return "RNG"
    fetched: dict[str, set[str]] = {}
    for text in texts:
        for match in _FETCH.finditer(text):
            fetched.setdefault(match[1].strip(), set()).add("".join(match[2].split()))
    # One texture at several places: the neighbours of an element.
    if fetched:
        several = any(len(places) > 1 for places in fetched.values())
        return "conv/pool/stencil" if several else "gather/scatter/index"
    if _PRODUCT.search(words) or any(isinstance(node, ast.WarpContract) for node in found):
        return "GEMM/GEMV"
    tiles = _tiles(texts)
    if any((second, first) in tiles for first, second in tiles):
        return "transpose/permute"
    if _indirect(found):
        return "gather/scatter/index"
    return "elementwise" if _alike(found) else ""


def _tiles(texts: list[str]) -> set[tuple[str, str]]:
    """The tiles of matrices that two different numbers choose."""
    pairs = {(match[1], match[2]) for text in texts for match in _TILE.finditer(text)}
    return {pair for pair in pairs if pair[0] != pair[1] and all(w[0].isalpha() for w in pair)}


def _indirect(found: tuple[object, ...]) -> bool:
    """Whether a place is chosen by what was loaded from a tensor."""
    loaded: set[int] = set()
    for node in found:
        match node:
            case ast.Declare(variable=variable, initial=value) if value is not None:
                pass
            case ast.Assign(target=ast.Name(variable=variable), value=value):
                pass
            case _:
                continue
        if variable.id not in loaded and _rests_on(value, loaded):
            loaded.add(variable.id)
    return any(isinstance(n, ast.Element) and _rests_on(n.index, loaded) for n in found)


def _rests_on(tree: object, loaded: set[int]) -> bool:
    return any(
        (isinstance(n, ast.Name) and n.variable.id in loaded)
        or (isinstance(n, ast.Element) and _in_memory(n))
        for n in nodes(tree)
    )


def _in_memory(element: ast.Element) -> bool:
    """Whether an element is one of a tensor's, and no other reading of such an element."""
    base = tuple(nodes(element.base))
    return not any(isinstance(n, ast.Element) for n in base) and any(
        isinstance(n, ast.Name) and n.variable.storage == "parameter" for n in base
    )


def _alike(found: tuple[object, ...]) -> bool:
    """Whether several tensors are accessed, all at the place that one variable names."""
    tensors: set[int] = set()
    places: set[int | None] = set()
    for node in found:
        if isinstance(node, ast.Element) and _in_memory(node):
            tensors |= {n.variable.id for n in nodes(node.base) if isinstance(n, ast.Name)}
            index = node.index
            while isinstance(index, ast.Cast):
                index = index.operand
            places.add(index.variable.id if isinstance(index, ast.Name) else None)
    written = any(isinstance(n, ast.Assign) and isinstance(n.target, ast.Element) for n in found)
    return written and len(tensors) > 1 and len(places) == 1 and None not in places


def _mapping(found: tuple[object, ...], texts: list[str], words: str) -> str:
    blocks = {n.axis for n in found if isinstance(n, ast.Builtin) and n.which == "blockIdx"}
    threads = any(isinstance(n, ast.Builtin) and n.which == "threadIdx" for n in found)
    numbered: set[int] = set()
    scaled: set[int] = set()
    for node in found:
        if isinstance(node, ast.Binary) and node.operator == "add":
            numbered |= _axes(node, "blockIdx") & _axes(node, "threadIdx")
        elif isinstance(node, ast.Binary) and node.operator == "multiply":
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if _constant(other):
                    scaled |= _axes(one, "blockIdx")
    together = _TOGETHER.search(words) is not None or any(
        (isinstance(node, ast.Declare) and node.variable.storage == "shared")
        or (isinstance(node, ast.Barrier) and node.scope == "block")
        for node in found
    )
    loops = [node for node in found if isinstance(node, ast.Loop)]
    if not blocks and not threads and not together:
        return "single thread"
    if _tiles(texts):
        return "block tile 2-D"
    if any(_axes(loop.step, "gridDim") for loop in loops):
        return "grid-stride loop"
    if numbered and not together:
        if len(numbered) > 1:
            return "thread per element, 2-D/3-D"
        if blocks - numbered:
            return "block tile 2-D" if loops else "thread per element, 2-D/3-D"
        return "thread per row" if loops else "thread per element, 1-D"
    if together and blocks:
        tiles = numbered | scaled
        if len(tiles) > 1:
            return "block tile 2-D"
        return "block tile 1-D" if tiles else "block per row"
    return ""


def _axes(tree: object, which: str) -> set[int]:
    return {n.axis for n in nodes(tree) if isinstance(n, ast.Builtin) and n.which == which}


def _constant(tree: object) -> bool:
    """Whether an expression is made of literals alone."""
    inner = (n for n in nodes(tree) if type(n).__module__ == ast.__name__)
    return all(isinstance(n, ast.Literal | ast.Binary | ast.Cast) for n in inner)
