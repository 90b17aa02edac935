"""Recoveries from syntax errors: C++ that the grammar does not know, and unknown macros.

Each rule rewrites one form that public CUDA code has, near an error of the tree, without a
change of meaning.  `parse` keeps the result only where it leaves less that is in error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from tree_sitter import Node

from migrate.cuda.origins import Edit
from migrate.cuda.repairs import Change, Names, apart, parenthesized
from migrate.cuda.syntax import Captures
from migrate.cuda.tokens import Marks, marks

_NEAR: Final = 400
"""Bytes around an error in which its cause is looked for."""

MAX_ARGUMENTS: Final = 20_000
"""Bytes of one macro's arguments."""

MAX_WORK: Final = 4_000_000
"""Bytes of arguments that do not end, all macros together."""

MAX_ERRORS: Final = 500
"""Errors that are worked on at once."""


class _Place(NamedTuple):
    """A stretch of text around errors."""

    text: bytes
    start: int
    end: int
    quiet: Marks
    names: Names
    error: Node
    work: list[int]
    """Bytes of macro arguments that may still be looked through."""

    def closing(self, opening: int) -> int | None:
        """The place after the parenthesis that closes the one at `opening`."""
        level = 0
        for found in _PARENTHESES.finditer(self.text, opening, opening + MAX_ARGUMENTS):
            if found[0] == b"(":
                level += 1
            elif found[0] == b")":
                level -= 1
                if level == 0:
                    return found.end()
            if found.end() - opening > self.work[0]:
                return None
        self.work[0] -= MAX_ARGUMENTS
        return None

    def matches(self, pattern: re.Pattern[bytes]) -> Iterator[re.Match[bytes]]:
        for found in pattern.finditer(self.text, self.start, self.end):
            if not _is_quiet(self.quiet, found.start()):
                yield found


def error_bytes(found: Captures) -> int:
    """How much text is in error; what is missing counts as one byte."""
    errors = found.get("error", ())
    return sum(max(node.end_byte - node.start_byte, 1) for node in errors) + len(
        found.get("missing", ())
    )


def recoveries(found: Captures, text: bytes, names: Names) -> list[Edit]:
    """The edits for what the errors of a tree may come from, in order."""
    errors = [
        node
        for node in (*found.get("error", ()), *found.get("missing", ()))
        if names.concerns_device(node, _NEAR)
    ][:MAX_ERRORS]
    if not errors:
        return []
    quiet = marks(text)
    changes: list[Change] = []
    for place in _places(errors, text, quiet, names):
        for rule in _RULES:
            changes += rule(place)
    return apart(changes)


def _places(errors: list[Node], text: bytes, quiet: Marks, names: Names) -> Iterator[_Place]:
    """The surroundings of errors, each byte in one of them."""
    reached = 0
    work = [MAX_WORK]
    for error in sorted(errors, key=lambda node: node.start_byte):
        start = max(text.rfind(b"\n", 0, max(error.start_byte - _NEAR, 0)) + 1, reached)
        end = min(error.end_byte + _NEAR, len(text))
        if end > start:
            yield _Place(text, start, end, quiet, names, error, work)
            reached = end


def _is_quiet(quiet: Marks, position: int) -> bool:
    from bisect import bisect_right

    index = bisect_right(quiet.quiet_starts, position) - 1
    return index >= 0 and position < quiet.quiet_ends[index]


def _blank(start: int, end: int) -> Edit:
    return Edit(start, end, b" " * (end - start))


_ARGUMENTS = rb"(?:\s*+<[^<>;{}()]*+(?:<[^<>;{}()]*+>[^<>;{}()]*+)*+>)?"

_TYPENAME: Final = re.compile(
    rb"\btypename(?=\s++(?:\w++" + _ARGUMENTS + rb"\s*+::\s*+)+(?:template\s++)?\w++"
    + _ARGUMENTS + rb"\s*+\()"
)  # fmt: skip


def _functional_casts(place: _Place) -> Iterator[Change]:
    """`typename K::Scan(tmp).Run(x)`: the keyword says nothing that the form does not."""
    for found in place.matches(_TYPENAME):
        yield (_blank(*found.span()),)


_LAMBDA: Final = re.compile(
    rb"\][ \t]*((?:__device__|__host__|__forceinline__)"
    rb"(?:\s+(?:__device__|__host__|__forceinline__))*)(?=\s*[({])"
)


def _lambda_qualifiers(place: _Place) -> Iterator[Change]:
    """`[=] __device__ (int i) {...}` (CUDA C++ Programming Guide, "Extended Lambdas")."""
    for found in place.matches(_LAMBDA):
        yield (_blank(*found.span(1)),)


_LAUNCH: Final = re.compile(rb"<<<([^;]{0,800}?)>>>")


def _launch_braces(place: _Place) -> Iterator[Change]:
    """`f<<<n, {x, y, 1}>>>(p)`: the braces make a `dim3`."""
    for found in place.matches(_LAUNCH):
        level = 0
        fresh = True
        for position in range(found.start(1), found.end(1)):
            character = place.text[position : position + 1]
            if character == b"{" and fresh and level == 0:
                yield (Edit(position, position, b"dim3"),)
            if not character.isspace():
                fresh = character == b"," and level == 0
            level += (character in b"({[") - (character in b")}]")


_BOUNDS: Final = re.compile(rb"__launch_bounds__\s*\(")


def _launch_bounds(place: _Place) -> Iterator[Change]:
    """A third argument, blocks in a cluster, which the grammar does not have."""
    for found in place.matches(_BOUNDS):
        end = place.closing(found.end() - 1)
        commas = top_commas(place.text, found.end(), end) if end is not None else []
        if end is not None and len(commas) > 1:
            yield (_blank(commas[1], end - 1),)


_INSTANTIATION: Final = re.compile(
    rb"^[ \t]*(?:extern\s+)?template\s+(?:class|struct)\s[^;{}()]*;", re.MULTILINE
)


def _class_instantiations(place: _Place) -> Iterator[Change]:
    """`template class C<float>;` makes nothing that a kernel could mean otherwise."""
    for found in place.matches(_INSTANTIATION):
        yield (_blank(*found.span()),)


_UNNAMED: Final = re.compile(rb"::type\s*\*(?=\s*=)")
_TRAIT: Final = re.compile(rb">\s*(\{\s*\})(?=\s*[>,])")


def _template_defaults(place: _Place) -> Iterator[Change]:
    """`typename enable_if<is_x<T>{}>::type* = nullptr`: a name, and the trait's value."""
    for found in place.matches(_UNNAMED):
        yield (Edit(found.end(), found.end(), b" unnamed"),)
    for found in place.matches(_TRAIT):
        yield (Edit(*found.span(1), b"::value".ljust(found.end(1) - found.start(1))),)


_LESS: Final = re.compile(rb"(?<![\w.:>])([A-Za-z_]\w*)(?=\s*<(?![<=]))")


def _comparisons(place: _Place) -> Iterator[Change]:
    """`f(a < b, c > d)` with a variable `a` is no type `a<b, c>`."""
    variables = place.names.locals_at(place.error.start_byte)
    for found in place.matches(_LESS):
        if found[1] in variables:
            yield parenthesized(*found.span(1))


_WORDS: Final = frozenset(
    b"if for while switch return sizeof catch alignas decltype defined do else asm"
    b" __launch_bounds__ static_assert".split()
)
_CALL: Final = re.compile(rb"(?<![\w.:>])([A-Za-z_]\w*+)[ \t]*+\(")


def _missing_semicolons(place: _Place) -> Iterator[Change]:
    """A macro that nobody gave, used as a statement: `CHECK(x)` and a new line."""
    text = place.text
    for found in place.matches(_CALL):
        if found[1] in _WORDS:
            continue
        before = _last_character(text, found.start(1), place.quiet)
        end = place.closing(found.end() - 1)
        if end is None or before not in (b";", b"{", b"}", b"", b")", b":"):
            continue
        line_end = text.find(b"\n", end)
        rest = text[end : line_end if line_end >= 0 else len(text)].strip()
        if rest and not rest.startswith((b"//", b"/*")):
            continue
        following = _next_character(text, end, place.quiet)
        if following in (b"}", b"", b"~") or following.isalpha() or following == b"_":
            yield (Edit(end, end, b";"),)


_MACRO: Final = re.compile(rb"\b([A-Z][A-Z0-9_]{2,})\s*\(")


def _statement_arguments(place: _Place) -> Iterator[Change]:
    """`DISPATCH(t, f<<<g, b>>>(p);)`: the statements stand alone behind the rest."""
    text = place.text
    for found in place.matches(_MACRO):
        end = place.closing(found.end() - 1)
        if end is None or b";" not in text[found.end() : end]:
            continue
        commas = top_commas(text, found.end(), end)
        first = text.find(b";", found.end(), end)
        before = [comma for comma in commas if comma < first]
        level = text.count(b"{", found.end(), first) - text.count(b"}", found.end(), first)
        if level or text[found.end() : first].count(b"(") != text[found.end() : first].count(b")"):
            continue
        closed = Edit(end - 1, end, b"}")
        if before:
            yield (Edit(before[-1], before[-1] + 1, b");{"), closed)
        else:
            yield (Edit(found.end(), found.end(), b");{"), closed)


_QUALIFIER: Final = re.compile(
    rb"(?<![\w.:>(,])(?P<name>[A-Z][A-Z0-9_]{3,})\s++"
    rb"(?=(?:(?:static|inline|constexpr|const|__device__|__host__|__global__|__forceinline__)\s++)*+"
    rb"[A-Za-z_][\w:]*+" + _ARGUMENTS + rb"(?:\s++(?:[*&]++\s*+)?|[*&]++\s*+)"
    rb"[A-Za-z_][\w:]*+\s*+\()"
)  # fmt: skip


def _unknown_qualifiers(place: _Place) -> Iterator[Change]:
    """`API_INLINE int f()` with a macro that nobody gave."""
    for found in place.matches(_QUALIFIER):
        before = _last_character(place.text, found.start(), place.quiet)
        if before in (b";", b"}", b"{", b">", b""):
            yield (_blank(*found.span("name")),)


_RULES: Final[tuple[Callable[[_Place], Iterator[Change]], ...]] = (
    _functional_casts,
    _lambda_qualifiers,
    _launch_braces,
    _launch_bounds,
    _class_instantiations,
    _template_defaults,
    _comparisons,
    _missing_semicolons,
    _statement_arguments,
    _unknown_qualifiers,
)

_BRACKETS: Final = re.compile(rb"[()\[\]{}\"',]")


_PARENTHESES: Final = re.compile(
    rb"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*+\"|'(?:\\.|[^'\\\n])++'|[()]", re.DOTALL
)


def top_commas(text: bytes, start: int, end: int) -> list[int]:
    """The commas between arguments that begin at `start`, all kinds of brackets heeded."""
    level = 0
    out: list[int] = []
    quoted = 0
    for found in _BRACKETS.finditer(text, start, end):
        character = found[0]
        if character in b"\"'":
            quoted ^= 1
        elif quoted:
            continue
        elif character in b"([{":
            level += 1
        elif character in b")]}":
            level -= 1
        elif level == 0:
            out.append(found.start())
    return out


def _last_character(text: bytes, position: int, quiet: Marks) -> bytes:
    """The last character of code before a place."""
    while True:
        before = text[max(position - 4000, 0) : position].rstrip()
        position = max(position - 4000, 0) + len(before)
        if not before:
            return b""
        if not _is_quiet(quiet, position - 1):
            return text[position - 1 : position]
        from bisect import bisect_right

        position = quiet.quiet_starts[bisect_right(quiet.quiet_starts, position - 1) - 1]


def _next_character(text: bytes, position: int, quiet: Marks) -> bytes:
    """The next character of code from a place on."""
    from bisect import bisect_right

    while position < len(text):
        if text[position : position + 1].isspace():
            position += 1
        elif _is_quiet(quiet, position) and text[position : position + 1] == b"/":
            position = quiet.quiet_ends[bisect_right(quiet.quiet_starts, position) - 1]
        else:
            return text[position : position + 1]
    return b""
