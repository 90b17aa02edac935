"""CUDA kernels found without a parser, and whether a tree says what its text says.

Both are written against the text alone and share nothing with the reader that they judge.
Comments, literals and the branches of `#if` that are certainly dead are masked, braces are
matched.  Of other conditionals all branches stay, so that a kernel in any of them is counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tree_sitter import Node

_QUIET = re.compile(
    rb"//(?:\\\r?\n|[^\n])*|/\*.*?\*/"
    rb"|\b(?:u8|[uUL])?R\"([^()\\\s]{0,16})\(.*?\)\1\""
    rb"|\"(?:\\.|[^\"\\\n])*\"|\b[0-9][0-9a-zA-Z_.']*|'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)
_DIRECTIVE = re.compile(rb"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)
_CONDITIONAL = re.compile(
    rb"^[ \t]*#[ \t]*(ifdef|ifndef|if|elif|else|endif)\b[ \t]*((?:\\\r?\n|[^\n])*)", re.MULTILINE
)


def masked(text: bytes) -> bytes:
    """The text with blanks for comments and literals."""

    def blanked(found: re.Match[bytes]) -> bytes:
        piece = found[0]
        return piece if piece[:1].isdigit() else re.sub(rb"[^\n]", b" ", piece)

    return _QUIET.sub(blanked, text)


class Kernel(NamedTuple):
    """A `__global__` function with a body: where its body begins and ends in the text."""

    name: str
    start: int
    end: int


def kernels(text: bytes) -> list[Kernel]:
    """Every kernel that is defined in a text (not in a macro of it)."""
    code = _DIRECTIVE.sub(lambda d: re.sub(rb"[^\n]", b" ", d[0]), _without_dead(masked(text)))
    found: list[Kernel] = []
    for mark in re.finditer(rb"\b__global__\b", code):
        head = _head(code, mark.end())
        if head is None:
            continue
        name, brace = head
        end = _matching(code, brace, b"{", b"}")
        # Branches of `#if` that open one brace twice leave it open: the text is still there.
        found.append(Kernel(name, brace, end if end is not None else len(code)))
    seen: dict[int, Kernel] = {kernel.start: kernel for kernel in found}
    return [seen[start] for start in sorted(seen)]


def _without_dead(code: bytes) -> bytes:
    """Blanks for what `#if 0` leaves out."""
    out = bytearray(code)
    stack: list[int | None] = []
    for found in _CONDITIONAL.finditer(code):
        word, condition = found[1], found[2].strip()
        if word in (b"if", b"ifdef", b"ifndef"):
            dead = word == b"if" and condition in (b"0", b"false", b"(0)")
            stack.append(found.end() if dead else None)
        elif stack and word in (b"else", b"elif", b"endif"):
            start = stack.pop()
            if start is not None:
                piece = bytes(out[start : found.start()])
                out[start : found.start()] = re.sub(rb"[^\n]", b" ", piece)
            if word != b"endif":
                stack.append(None)
    return bytes(out)


_ATTRIBUTE = re.compile(
    rb"(?:__launch_bounds__|__attribute__|__align__|__cluster_dims__|__maxnreg__|alignas|decltype"
    rb"|[A-Z0-9_]*LAUNCH_BOUNDS[A-Z0-9_]*)\s*\Z"
)


def _head(code: bytes, position: int) -> tuple[str, int] | None:
    """The name and the opening brace of the function that is declared here, if it has a body."""
    name = ""
    while position < len(code):
        character = code[position : position + 1]
        if character == b"(":
            before = code[max(position - 200, 0) : position]
            if not _ATTRIBUTE.search(before):
                word = re.search(rb"([A-Za-z_]\w*)\s*(?:<[^<>;{}]*>)?\s*\Z", before)
                if word is not None and not name:
                    name = word[1].decode()
            after = _matching(code, position, b"(", b")")
            if after is None:
                return None
            position = after
            continue
        if character == b"{":
            return (name, position) if name else None
        if character in (b";", b"=", b"}"):
            return None
        position += 1
    return None


def _matching(code: bytes, position: int, opening: bytes, closing: bytes) -> int | None:
    level = 0
    for found in re.compile(b"[" + re.escape(opening + closing) + b"]").finditer(code, position):
        level += 1 if found[0] == opening else -1
        if level == 0:
            return found.end()
    return None


# -- text against tree ------------------------------------------------------------------

_BEGINS = {
    "for": ("for_statement", "for_range_loop"),
    "if": ("if_statement",),
    "while": ("while_statement", "do_statement"),
    "switch": ("switch_statement",),
    "return": ("return_statement",),
    "goto": ("goto_statement",),
}


def is_clean(function: Node) -> bool:
    """Whether a function, its template header with it, has no error in its tree."""
    above = function.parent
    whole = function
    if above is not None and above.type == "template_declaration":
        whole = above
    return not any(node.type == "ERROR" or node.is_missing for node in walk(whole))


def misreadings(function: Node) -> list[str]:
    """What a function's tree has that its text cannot mean."""
    out: list[str] = []
    variables = _variables(function)
    kinds: Counter[str] = Counter()
    for node in walk(function):
        kinds[node.type] += 1
        match node.type:
            case "function_definition" if node != function and not _is_member(node):
                out.append("a function in a function")
            case "call_expression" if _is_parenthesized_name(node, "function", variables):
                out.append("a call of a parenthesized name")
            case "binary_expression" if _is_parenthesized_name(node, "left", variables):
                operator = node.child_by_field_name("operator")
                if operator is not None and operator.type in ("-", "+", "*", "&"):
                    left = node.child_by_field_name("left")
                    name = left.named_children[0].text if left is not None else b""
                    if name is not None and (name.endswith(b"_t") or name in _SCALARS):
                        out.append("a cast of a signed value as arithmetic")
            case "template_function":
                name_node = node.child_by_field_name("name")
                if name_node is not None and name_node.text in variables:
                    out.append("a comparison as a template")
            case "declaration":
                if any(_is_prototype(d) for d in node.children_by_field_name("declarator")):
                    out.append("an object as a prototype")
            case "preproc_if" | "preproc_ifdef":
                out.append("both branches of #if")
            case _:
                pass
    body = function.child_by_field_name("body")
    code = masked(function.text or b"") if body is not None else b""
    for word, types in _BEGINS.items():
        written = len(re.findall(rb"\b" + word.encode() + rb"\b", code))
        if written != sum(kinds[kind] for kind in types):
            out.append(f"{written} {word} in the text, others in the tree")
    return out


_SCALARS = frozenset(b"half uint uchar ushort ulong float2 float4 int2 int4".split())


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it."""
    pending = [node]
    while pending:
        here = pending.pop()
        yield here
        pending.extend(reversed(here.children))


def _variables(function: Node) -> frozenset[bytes]:
    found: set[bytes] = set()
    for node in walk(function):
        if node.type in ("declaration", "parameter_declaration", "optional_parameter_declaration"):
            for declarator in node.children_by_field_name("declarator"):
                for inner in walk(declarator):
                    if inner.type == "identifier" and inner.text is not None:
                        found.add(inner.text)
                        break
    return frozenset(found)


def _is_parenthesized_name(node: Node, field: str, variables: frozenset[bytes]) -> bool:
    inner = node.child_by_field_name(field)
    if inner is None or inner.type != "parenthesized_expression" or inner.named_child_count != 1:
        return False
    name = inner.named_children[0]
    return name.type in ("identifier", "qualified_identifier") and name.text not in variables


def _is_prototype(declarator: Node) -> bool:
    while declarator.type in ("pointer_declarator", "reference_declarator"):
        inner = declarator.named_children[-1] if declarator.named_children else None
        if inner is None:
            return False
        declarator = inner
    if declarator.type != "function_declarator":
        return False
    named = declarator.child_by_field_name("declarator")
    parameters = declarator.child_by_field_name("parameters")
    pointer = named is not None and named.type == "parenthesized_declarator"
    return not pointer and parameters is not None and parameters.named_child_count > 0


def _is_member(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "field_declaration_list"
