"""Host code as words, brackets and statements.

Host code is what a parser of CUDA fails on: library macros, dispatch blocks as macro
arguments, `dim3 grid(a, b);` that reads as a prototype.  Launches need little of it, so that
they are read from the words themselves: a broken statement spoils no other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

from migrate.cuda.macros import Allowance, Macro, Table, TooLarge, expand
from migrate.cuda.tokens import Token, tokens

_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = {")": "(", "]": "[", "}": "{"}
_OPERATORS = frozenset(
    {
        "<<<", ">>>", "<<=", ">>=", "->", "::", "++", "--", "<<", ">>", "<=", ">=", "==", "!=",
        "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##",
    }
)  # fmt: skip
CONTROLS = frozenset({"if", "for", "while", "switch", "else", "do", "try", "catch"})


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text with their places, and how brackets pair.

    `partner` of a bracket is its other one (-1: it has none), `parent` of any word the
    innermost bracket that is open before it (-1: none).
    """

    words: tuple[str, ...]
    kinds: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    partner: tuple[int, ...]
    parent: tuple[int, ...]
    macros: Mapping[bytes, Macro] = field(default_factory=dict, repr=False)
    _places: Mapping[str, tuple[int, ...]] = field(default_factory=dict, repr=False)
    _begins: tuple[int, ...] = field(default=(), repr=False)

    @staticmethod
    def of(text: bytes, macros: Mapping[bytes, Macro] | None = None) -> Words:
        """Raises `SourceError` for what is no text of a program (`tokens`)."""
        return _words(_joined(tokens(None, text)), macros or {})

    def text(self, start: int, end: int) -> str:
        """Words in a row, with single blanks between names."""
        out: list[str] = []
        for at in range(start, end):
            word = self.words[at]
            if out and (word[0].isalnum() or word[0] == "_"):
                if out[-1][-1].isalnum() or out[-1][-1] == "_":
                    out.append(" ")
            out.append(word)
        return "".join(out)

    def places(self, name: str, start: int = 0, end: int | None = None) -> tuple[int, ...]:
        """Where a word stands, in order."""
        found = self._places.get(name, ())
        first = bisect_left(found, start)
        return found[first : len(found) if end is None else bisect_left(found, end)]

    def closing(self, opening: int, end: int) -> int:
        """The bracket that closes `opening`, `end` where nothing does before."""
        partner = self.partner[opening]
        return partner if opening < partner < end else end

    def split(self, start: int, end: int, separator: str = ",") -> list[tuple[int, int]]:
        """The parts between separators at one level; template arguments stay together."""
        if start >= end:
            return []
        parts: list[tuple[int, int]] = []
        begin = at = start
        while at < end:
            word = self.words[at]
            if word in _OPENING:
                at = self.closing(at, end)
            elif word == "<" and separator == "," and self.kinds[max(at - 1, 0)] == "name":
                at = (self.angle(at, end) or at + 1) - 1
            elif word == separator:
                parts.append((begin, at))
                begin = at + 1
            at += 1
        if begin < end or separator == ",":
            parts.append((begin, end))
        return parts

    def angle(self, opening: int, end: int) -> int | None:
        """The position after the `>` that closes template arguments; `None`: it is less-than.

        Arguments are names, numbers, types and arithmetic in parentheses; what follows them
        is a call, a launch, a member, an initialiser or a declared name.
        """
        level = 0
        at = opening
        while at < end:
            word = self.words[at]
            if word == "<":
                level += 1
            elif word in (">", ">>"):
                level -= len(word)
                if level <= 0:
                    following = self.words[at + 1] if at + 1 < end else ""
                    named = at + 1 < end and self.kinds[at + 1] == "name"
                    fits = named or following in _AFTER_ANGLE
                    return at + 1 if fits or at + 1 == end else None
            elif word in _OPENING:
                at = self.closing(at, end)
            elif word in _NO_ARGUMENT or self.kinds[at] == "string":
                return None
            at += 1
        return None

    def angles(self, opening: int, end: int) -> int:
        """The position after the `>` that closes what surely are template arguments."""
        level = 0
        at = opening
        while at < end:
            word = self.words[at]
            if word == "<":
                level += 1
            elif word in (">", ">>"):
                level -= len(word)
                if level <= 0:
                    return at + 1
            elif word in _OPENING:
                at = self.closing(at, end)
            at += 1
        return end

    def statement(self, at: int) -> int:
        """Where the statement (or the part in brackets) that `at` belongs to begins."""
        return self._begins[at]

    def enclosing(self, at: int) -> list[int]:
        """The brackets open at a word, the innermost first."""
        found: list[int] = []
        at = self.parent[at]
        while at >= 0:
            found.append(at)
            at = self.parent[at]
        return found

    def expanded(self, start: int, end: int) -> Words | None:
        """The words with the macros in them replaced; `None` where there is none."""
        if not any(word.encode() in self.macros for word in self.words[start:end]):
            return None
        table = Table(dict(self.macros))
        use = [
            Token(self.kinds[at], self.words[at].encode(), None, 0, 0) for at in range(start, end)
        ]
        try:
            made = expand(use, table, Allowance(_MAX_EXPANSION))
        except TooLarge:
            return None
        text = b" ".join(token.text for token in made if token.kind != "newline")
        return _words(_joined(tokens(None, text)), {})


_MAX_EXPANSION = 4000
_AFTER_ANGLE = frozenset({"(", "::", "{", "<<<", ")", ",", "&", "*", ";", ">", ">>", "&&", "..."})
_NO_ARGUMENT = frozenset({";", "{", "}", "&&", "||", "=", "?", "<<<", ">>>", "+=", "return"})


def _joined(found: list[Token]) -> list[Token]:
    """Without newlines and directives, adjacent punctuation made operators."""
    out: list[Token] = []
    directive = False
    fresh = True
    for token in found:
        if token.kind == "newline":
            directive, fresh = False, True
            continue
        if fresh and token.text == b"#":
            directive = True
        fresh = False
        if directive:
            continue
        if out and token.kind == "punctuation" and not token.spaced:
            last = out[-1]
            joined = last.text + token.text
            if last.end == token.start and joined.decode("utf-8", "replace") in _OPERATORS:
                out[-1] = last._replace(text=joined, end=token.end)
                continue
        out.append(token)
    return out


def _words(found: list[Token], macros: Mapping[bytes, Macro]) -> Words:
    words = tuple(token.text.decode("utf-8", "replace") for token in found)
    partner = [-1] * len(found)
    parent = [-1] * len(found)
    places: dict[str, list[int]] = {}
    stack: list[int] = []
    for at, word in enumerate(words):
        if word in _CLOSING:
            _close(word, at, words, stack, partner)
        parent[at] = stack[-1] if stack else -1
        if word in _OPENING:
            stack.append(at)
        elif found[at].kind == "name" or word == "<<<":
            places.setdefault(word, []).append(at)
    return Words(
        words=words,
        kinds=tuple(token.kind for token in found),
        starts=tuple(token.start for token in found),
        ends=tuple(token.end for token in found),
        partner=tuple(partner),
        parent=tuple(parent),
        macros=macros,
        _places={name: tuple(at) for name, at in places.items()},
        _begins=tuple(_begins(words, partner)),
    )


def _begins(words: tuple[str, ...], partner: list[int]) -> list[int]:
    """Where the statement of each word begins."""
    found = [0] * len(words)
    levels = [0]
    for at, word in enumerate(words):
        opening = partner[at]
        if word in _CLOSING and 0 <= opening < at and len(levels) > 1:
            levels.pop()
        found[at] = levels[-1]
        if word in _OPENING and opening > at:
            levels.append(at + 1)
        elif word == ";" or (word == "}" and not _continues(words, partner, at)):
            levels[-1] = at + 1
    return found


def _continues(words: tuple[str, ...], partner: list[int], close: int) -> bool:
    """Whether a statement goes on after a brace: it closes a value or a lambda."""
    opening = partner[close]
    following = words[close + 1] if close + 1 < len(words) else ""
    if following in (",", ")", ".", ";", "?", "[", ">>>"):
        return True
    before = words[opening - 1] if opening > 0 else ""
    if before == ")" and partner[opening - 1] > 0:
        before = words[partner[opening - 1] - 1]
    if following == "(":
        return before == "]"
    return before in ("=", "(", ",", "return")


def _close(
    word: str, at: int, words: tuple[str, ...], stack: list[int], partner: list[int]
) -> None:
    """Pair a closing bracket; one that was never opened stays alone."""
    wanted = _CLOSING[word]
    for depth in range(len(stack) - 1, -1, -1):
        if words[stack[depth]] == wanted:
            partner[stack[depth]], partner[at] = at, stack[depth]
            del stack[depth:]
            return
        # A stray parenthesis must not close what stands outside its block.
        if words[stack[depth]] == "{":
            return
