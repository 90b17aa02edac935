"""The syntax tree of CUDA C++ text, and questions to it that are answered in one pass."""

from __future__ import annotations

import re
import time
from functools import cache
from typing import Final

from tree_sitter import Language, Node, Parser, Query, QueryCursor

from migrate.budget import Meter
from migrate.source import SourceError

_CHUNK: Final = 1 << 15
_CHUNK_OF_NODES: Final = 64

Captures = dict[str, list[Node]]

# What the repairs and the comparison of text and tree look at.  A comparison reads as a
# template where its "arguments" are an expression (`i < n && j > (m)`) or several names
# (`a < b, c > (d)`).
_QUESTIONS: Final = """
(ERROR) @error
(MISSING) @missing
(parenthesized_expression
  . [(identifier) (qualified_identifier) (template_function)] .) @parenthesized
(cast_expression
  type: (type_descriptor !declarator type: [(type_identifier) (qualified_identifier)])
  value: [(unary_expression) (pointer_expression)]) @operation
(declaration declarator: (function_declarator) @prototype)
(declaration declarator: (pointer_declarator declarator: (function_declarator) @prototype))
(declaration declarator: (reference_declarator (function_declarator) @prototype))
(template_function arguments: (template_argument_list (binary_expression))) @template
(template_function
  arguments: (template_argument_list . (type_descriptor type: (type_identifier)) (_))) @template
(function_definition) @function
(preproc_if) @conditional
(preproc_ifdef) @conditional
[(for_statement) (for_range_loop) (if_statement) (while_statement) (do_statement)
 (switch_statement) (return_statement) (case_statement) (goto_statement)] @statement
"""

_NAMES: Final = """
(declaration declarator: (identifier) @name)
(init_declarator declarator: (identifier) @name)
(pointer_declarator declarator: (identifier) @name)
(array_declarator declarator: (identifier) @name)
(function_declarator declarator: (identifier) @name)
(reference_declarator (identifier) @name)
(parenthesized_declarator (identifier) @name)
(parameter_declaration declarator: (identifier) @name)
(optional_parameter_declaration declarator: (identifier) @name)
(for_range_loop declarator: (identifier) @name)
"""


@cache
def _language() -> Language:
    import tree_sitter_cuda

    return Language(tree_sitter_cuda.language())


@cache
def _query(text: str) -> Query:
    return Query(_language(), text)


def tree(text: bytes, name: str, meter: Meter) -> Node:
    """The root of the tree of a text.

    Raises what the meter raises, and `SourceError` only for text that no parser could make
    anything of, or only in a time that grows with a power of its length.
    """
    parser = Parser(_language())
    stopped: list[Exception] = []
    allowed = PARSER_TURNS + len(text) // BYTES_A_TURN
    turns = 0
    chunk = _CHUNK
    began = time.process_time()

    def read(offset: int, _point: object) -> bytes:
        return b"" if stopped else text[offset : offset + chunk]

    def progress(_offset: int, _error: bool) -> bool:
        # An exception must not pass through the parser, so it waits here.
        nonlocal turns
        turns += 1
        if turns > allowed and time.process_time() - began > PARSER_SECONDS:
            stopped.append(SourceError("has more readings than the parser can follow", file=name))
        try:
            meter.look()
        except Exception as error:  # noqa: BLE001
            stopped.append(error)
        return bool(stopped)

    try:
        made = parser.parse(read, progress_callback=progress)
    except ValueError:
        if not stopped:
            raise SourceError("cannot be parsed as CUDA C++", file=name) from None
        raise stopped[0] from None
    if stopped:
        raise stopped[0]
    # The tree goes on reading: whoever asks for the text of a node is given a whole chunk first.
    chunk = _CHUNK_OF_NODES
    return made.root_node


PARSER_TURNS: Final = 300
BYTES_A_TURN: Final = 40
"""How often the parser may report on its way: in 984 public files at most once in 55 bytes,
whatever is wrong with them; in `A<A<A<` thousands deep once in 10, each time slower."""

PARSER_SECONDS: Final = 1.5
"""A backstop: many reports alone are no harm, of brackets ten thousand deep each is quick."""

MAX_OPEN: Final = 4096
"""Questions that may be half answered at one place: more are a text that nests without end."""

MAX_PASSAGES: Final = 200
"""Passages over a tree, in each of which the parts of a file before it are stepped over."""

MAX_DEPTH: Final = 1000
"""Levels of a tree that are looked at: what is typed nests far less (`scope.MAX_DEPTH`)."""

_NAMES_IN_PARENTHESES: Final = frozenset(
    {"identifier", "qualified_identifier", "template_function"}
)


def captures(root: Node, text: bytes, name: str) -> Captures:
    """The nodes of a tree that `repairs` and `disagreements` ask for, by the query's names.

    `cast` are the names that stand alone in parentheses with an operand, or an operation, behind
    them.  What only the host runs is left out, where no error makes that uncertain.  Raises
    `SourceError` for a tree that nests too deeply.
    """
    cursor = QueryCursor(_query(_QUESTIONS), match_limit=MAX_OPEN)
    cursor.set_max_start_depth(MAX_DEPTH)
    found: Captures = {}
    after = 0
    left_out = [] if root.has_error else _on_host(root, text)
    if len(left_out) > MAX_PASSAGES:
        left_out = []
    for start, end in (*left_out, (len(text), len(text))):
        # Whatever is asked for has a parenthesis in it, an error aside.
        if root.has_error or text.find(b"(", after, start) >= 0:
            cursor.set_byte_range(after, start)
            for question, nodes in cursor.captures(root).items():
                found.setdefault(question, []).extend(nodes)
            if cursor.did_exceed_match_limit:
                raise SourceError("nests too deeply to be read", file=name)
        after = end
    found["cast"] = [
        inner
        for node in found.pop("parenthesized", ())
        if _AFTER_CAST.match(text, node.end_byte) is not None
        for inner in node.named_children[:2]
        if node.named_child_count == 1 and inner.type in _NAMES_IN_PARENTHESES
    ]
    return found


DEVICE: Final = re.compile(rb"\b(?:__global__|__device__|constexpr)\b")
"""What a function has before its body that can be part of a kernel."""

AHEAD: Final = 80
"""Bytes before a function in which its qualifiers may stand, in an error."""


def is_on_device(function: Node, text: bytes) -> bool:
    """Whether a function can be part of a kernel, by its qualifiers."""
    start = max(function.start_byte - AHEAD, 0)
    end = text.find(b"{", function.start_byte) + 1
    return DEVICE.search(text, start, end) is not None


def _on_host(root: Node, text: bytes) -> list[tuple[int, int]]:
    """Where functions stand that only the host runs, in order."""
    out: list[tuple[int, int]] = []
    pending = [root]
    while pending:
        for child in pending.pop().named_children:
            if child.type == "function_definition":
                if not is_on_device(child, text):
                    out.append((child.start_byte, child.end_byte))
            elif child.type not in _WITHOUT_FUNCTIONS and (
                text.find(b"{", child.start_byte, child.end_byte) >= 0
            ):
                pending.append(child)
    return sorted(out)


_WITHOUT_FUNCTIONS: Final = frozenset({"initializer_list", "comment", "preproc_def"})


# After `(T)` in `(T)(x)`, `(T)-x`, `(T)*p`.
_AFTER_CAST: Final = re.compile(rb"\s*+(?:\(|[-+*&](?![-+&=]))")


def declared_names(function: Node) -> frozenset[bytes]:
    """The variables and parameters that are declared anywhere in a function."""
    cursor = QueryCursor(_query(_NAMES))
    cursor.set_max_start_depth(MAX_DEPTH)
    found = cursor.captures(function).get("name", ())
    return frozenset(node.text or b"" for node in found)


def identifiers(node: Node) -> list[str]:
    """The names that stand for values anywhere below a node, each once, in order."""
    cursor = QueryCursor(_query("(identifier) @name"))
    cursor.set_max_start_depth(MAX_DEPTH)
    found = cursor.captures(node).get("name", ())
    return list(dict.fromkeys((name.text or b"").decode("utf-8", "replace") for name in found))
