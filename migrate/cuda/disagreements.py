"""Where a function's tree does not say what its text says.

A parser that recovers from what it does not understand may give a clean tree that means
something else: a loop that a macro stands for becomes a function, a keyword disappears.
Every statement begins with its keyword, so each keyword of the text must begin a node; and
some nodes cannot stand where they do.  Whatever is found becomes a `Disagreement`: the
statement around it is not read, and says why.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, Literal

from tree_sitter import Node

from migrate.cuda.origins import Expanded
from migrate.cuda.repairs import Names
from migrate.cuda.syntax import MAX_DEPTH as DEEPEST
from migrate.cuda.syntax import Captures
from migrate.cuda.tokens import marks
from migrate.source import Span, shortened

Kind = Literal[
    "error",
    "lost-keyword",
    "nested-function",
    "prototype",
    "call-or-cast",
    "comparison",
    "conditional",
]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A place in a function that is not read as it is written.

    `node` is the innermost statement around it, or the function where its head is concerned.
    """

    kind: Kind
    message: str
    span: Span
    function: tuple[int, int]
    node: tuple[int, int]


_WORDS: Final = ("for", "if", "while", "do", "switch", "return", "case", "default", "goto")
_KEYWORDS: Final = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b".encode())

STATEMENTS: Final = frozenset(
    {
        "expression_statement",
        "declaration",
        "if_statement",
        "for_statement",
        "for_range_loop",
        "while_statement",
        "do_statement",
        "switch_statement",
        "case_statement",
        "return_statement",
        "compound_statement",
        "function_definition",
        "labeled_statement",
        "alias_declaration",
        "type_definition",
        "static_assert_declaration",
        "ERROR",
    }
)


MAX_DISAGREEMENTS: Final = 1000
"""In one function; one that is this far from C++ is not read at all."""

MAX_PASSES: Final = 20
"""How often a text may be looked at, for functions inside of functions."""

# Of nodes only the place is kept: each holds its children once they were asked for.
_Place = tuple[int, int]
_Found = tuple[Kind, _Place, int, int, str]


def disagreements(
    found: Captures,
    functions: Sequence[Node],
    expanded: Expanded,
    names: Names,
    values: Collection[str],
) -> tuple[Disagreement, ...]:
    """What the trees of these functions do not say, in the order of the text.

    `values` are the names of the functions, variables and enumerators of the file.
    """
    if not functions:
        return ()
    statements = sorted(node.start_byte for node in found.get("statement", ()))
    suspects = sorted(
        (node.start_byte, name, node.end_byte, position)
        for name in _SUSPECTS
        for position, node in enumerate(found.get(name, ()))
    )
    out: list[Disagreement] = []
    allowed = MAX_PASSES * len(expanded.text)
    for function in functions:
        place = _place(function)
        allowed -= function.end_byte - function.start_byte
        if allowed < 0:
            message = "functions stand inside functions too often to be looked at"
            out.append(Disagreement("error", message, expanded.span(*place), place, place))
            continue
        first = bisect_left(suspects, (function.start_byte,))
        last = bisect_left(suspects, (function.end_byte,), first)
        here = chain(
            chain.from_iterable(
                _judged(name, found[name][position], function, expanded.text, names, values)
                for _, name, end, position in islice(suspects, first, last)
                if end <= function.end_byte
            ),
            _lost_keywords(function, statements, expanded.text),
        )
        judged = list(islice(here, MAX_DISAGREEMENTS + 1))
        if len(judged) > MAX_DISAGREEMENTS:
            message = (
                f"it is nested deeper than {DEEPEST:,} levels, or more than {MAX_DISAGREEMENTS:,}"
                " places in it are no C++"
            )
            judged = [("error", place, *place, message)]
        for kind, statement, start, end, message in judged:
            out.append(Disagreement(kind, message, expanded.span(start, end), place, statement))
    return tuple(sorted(out, key=lambda issue: issue.node))


def _place(node: Node) -> _Place:
    return node.start_byte, node.end_byte


_SUSPECTS: Final = ("error", "missing", "function", "prototype", "cast", "conditional")


def _judged(
    name: str,
    node: Node,
    function: Node,
    text: bytes,
    names: Names,
    values: Collection[str],
) -> Iterator[_Found]:
    start, end = node.start_byte, node.end_byte
    match name:
        case "error" | "missing":
            yield "error", _statement(node, function), start, end, _error(node, text)
        case "function" if start > function.start_byte and _is_nested(node):
            head = _head(node, text)
            message = (
                f"{head} reads as a function inside a function: a macro that is defined nowhere "
                "in what was read"
            )
            yield "nested-function", _place(node), start, end, message
        case "prototype":
            message = "this reads as the declaration of a function inside a function"
            yield "prototype", _statement(node, function), start, end, message
        case "cast":
            shown = shortened((node.text or b"").decode("utf-8", "replace"), 80)
            known = shown.rsplit("::", 1)[-1] in values or node.text in names.locals_at(start)
            if not known:
                message = f"({shown}) is a cast if {shown} is a type; it is declared nowhere"
                yield "call-or-cast", _statement(node, function), start, end, message
        case "conditional":
            yield "conditional", _place(node), start, end, "both branches of this #if would be read"
        case _:
            return


def _lost_keywords(function: Node, statements: Sequence[int], text: bytes) -> Iterator[_Found]:
    body = function.child_by_field_name("body")
    if body is None:
        return
    first, last = body.start_byte, body.end_byte
    known = set(statements[bisect_left(statements, first) : bisect_left(statements, last)])
    lost = [m for m in _KEYWORDS.finditer(text, first, last) if m.start() not in known]
    if not lost:
        return
    piece = text[first:last]
    quiet = marks(piece)
    spans = list(zip(quiet.quiet_starts, quiet.quiet_ends, strict=True))
    around: dict[int, str] | None = None
    for keyword in lost:
        at = keyword.start() - first
        index = bisect_left(spans, (at + 1,)) - 1
        if index >= 0 and spans[index][0] <= at < spans[index][1]:
            continue
        # A keyword that begins no node may belong to one: `do … while`, `= default`.
        around = _around(function) if around is None else around
        if around.get(keyword.start()) in _HOLDING_KEYWORDS:
            continue
        node = function.descendant_for_byte_range(keyword.start(), keyword.end())
        if node is None:
            continue
        message = f"this {keyword[0].decode()} begins no statement of the tree"
        yield "lost-keyword", _statement(node, function), *keyword.span(), message


_HOLDING_KEYWORDS: Final = frozenset({"do_statement", "default_method_clause", "case_statement"})


def _around(function: Node) -> dict[int, str]:
    """For each keyword's place, the kind of node it is a part of.

    In one passage: a node's parent is looked for from the root each time.
    """
    found: dict[int, str] = {}
    pending = [function]
    while pending:
        node = pending.pop()
        for child in node.children:
            if child.is_named:
                pending.append(child)
            elif child.type in _WORDS:
                found[child.start_byte] = node.type
    return found


def _is_nested(node: Node) -> bool:
    """Whether a definition is a statement, not the member of a local type."""
    above = node.parent
    return above is None or above.type != "field_declaration_list"


MAX_DEPTH: Final = 400
MAX_NODES: Final = 5000
"""Levels and nodes in which the statement around a place is looked for."""


def _statement(node: Node, function: Node) -> _Place:
    """The innermost statement around a node, blocks aside; the function itself for its head."""
    body = function.child_by_field_name("body")
    if body is None or node.start_byte < body.start_byte or node.start_byte >= body.end_byte:
        return _place(function)
    if node.type in STATEMENTS and node.type != "compound_statement":
        return _place(node)
    # What is missing has no extent; it belongs to what stands before it.
    start = node.start_byte - 1 if node.is_missing else node.start_byte
    found = here = body
    visited = 0
    for _ in range(MAX_DEPTH):
        children = here.children
        visited += len(children)
        if visited > MAX_NODES:
            break
        index = bisect_right(children, start, key=lambda child: child.start_byte) - 1
        if index < 0 or children[index].end_byte < node.end_byte:
            break
        here = children[index]
        if here.type in STATEMENTS and here.type != "compound_statement":
            found = here
    # A block is not asked about: then the whole function is not read.
    return _place(found if found != body else function)


def _head(node: Node, text: bytes) -> str:
    declarator = node.child_by_field_name("declarator")
    end = declarator.end_byte if declarator is not None else node.end_byte
    piece = text[node.start_byte : min(end, node.start_byte + 400)]
    return shortened(piece.decode("utf-8", "replace"), 80)


def _error(node: Node, text: bytes) -> str:
    if node.is_missing:
        return f"{node.type!r} is missing here"
    piece = text[node.start_byte : min(node.end_byte, node.start_byte + 400)]
    shown = " ".join(piece.decode("utf-8", "replace").split())
    return f"this is not C++ as far as is known: {shortened(shown, 80)}"
