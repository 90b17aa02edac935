"""C's expression grammar over the words of host code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from migrate.cuda.launches.calls import call
from migrate.cuda.launches.host import Constant, Operation, Symbol
from migrate.cuda.launches.terms import (
    BUILT_IN,
    MAX_SYMBOL,
    Term,
    Unread,
    binary,
    cast,
    is_extent,
    literal,
    number_type,
)
from migrate.cuda.launches.text import Words

if TYPE_CHECKING:
    from migrate.cuda.launches.reader import Reader

_BINARY: Final[Mapping[str, int]] = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip


@dataclass(slots=True)
class Parser:
    """C's expression grammar, as far as extents need it."""

    reader: Reader
    at: int
    end: int
    begin: int = 0

    def __post_init__(self) -> None:
        self.begin = self.at

    @property
    def text(self) -> Words:
        return self.reader.text

    def word(self) -> str:
        return self.text.words[self.at] if self.at < self.end else ""

    def _deeper(self, part: Callable[[], Term]) -> Term:
        """A part of an expression, one level deeper; raises `Unread` where that is too deep."""
        around, self.reader = self.reader, self.reader.inner()
        found = part()
        self.reader = around
        return found

    def ternary(self) -> Term:
        condition = self.binary(1)
        if self.word() != "?":
            return condition
        self.at += 1
        then = self._deeper(self.ternary)
        if self.word() != ":":
            raise Unread
        self.at += 1
        otherwise = self._deeper(self.ternary)
        args = (condition.value, then.value, otherwise.value)
        return Term(Operation("?:", args), then.real or otherwise.real)

    def binary(self, least: int) -> Term:
        left = self.unary()
        while (precedence := _BINARY.get(self.word(), 0)) >= least:
            operator = self.word()
            self.at += 1
            left = binary(operator, left, self.binary(precedence + 1))
        return left

    def unary(self) -> Term:
        self.reader.step()
        word = self.word()
        if word in ("-", "+", "!", "~"):
            self.at += 1
            inner = self._deeper(self.unary)
            if word == "+":
                return inner
            if word == "~" and inner.real:
                raise Unread
            return Term(Operation(word, (inner.value,)), inner.real and word == "-")
        if word == "(":
            close = self.text.closing(self.at, self.end)
            if close >= self.end:
                raise Unread
            kind = number_type(self.text.words[self.at + 1 : close])
            if kind is not None and close + 1 < self.end and self._operand(close + 1):
                self.at = close + 1
                return cast(kind, self._deeper(self.unary))
            inner = self.reader.inner().term(self.at + 1, close)
            self.at = close + 1
            return self.postfix(inner, close)
        return self.primary()

    def _operand(self, at: int) -> bool:
        """Whether a cast may stand before a word: it cannot be a binary operator."""
        return self.text.kinds[at] in ("name", "number") or self.text.words[at] in ("(", "-", "~")

    def primary(self) -> Term:
        if self.at >= self.end:
            raise Unread
        word, kind = self.word(), self.text.kinds[self.at]
        if kind == "number":
            self.at += 1
            return literal(word)
        if kind == "string" and len(word) == 3 and word[0] == "'":
            self.at += 1
            return Term(Constant(ord(word[1])))
        if kind != "name":
            if word != "::" or self.at + 1 >= self.end:
                raise Unread
            self.at += 1
            return self._deeper(self.primary)
        if word == "sizeof":
            return self._sizeof()
        start = self.at
        return self.postfix(self._named(start), start)

    def _named(self, start: int) -> Term:
        """A name, a member, a call or a cast by a type's name."""
        text = self.text
        words = [self.word()]
        at = start + 1
        template = (0, 0)
        while at < self.end:
            if text.words[at] == "<":
                closed = text.angle(at, self.end)
                if closed is None:
                    break
                template = (at + 1, closed - 1)
                at = closed
            elif text.words[at] == "::" and at + 1 < self.end and text.kinds[at + 1] == "name":
                words.append(text.words[at + 1])
                at += 2
            elif text.words[at] in BUILT_IN and words[-1] in BUILT_IN:
                words[-1] = f"{words[-1]} {text.words[at]}"
                at += 1
            else:
                break
        if at < self.end and text.words[at] in ("(", "{"):
            close = text.closing(at, self.end)
            if close >= self.end:
                raise Unread
            self.at = close + 1
            return call(self.reader, words, template, start, (at + 1, close))
        if template != (0, 0):
            self.at = at
            return Term(self.symbol(start, at))
        self.at = at
        if len(words) == 1 or words[0] == "std":
            return self._plain(words[-1], start)
        found = self.reader.names.lookup(words[-1], start)
        if found is not None and found.form in ("=", "{", "(", "enumerator"):
            return self.reader.name(words[-1], (), start)
        return Term(self.symbol(start, at))

    def _plain(self, name: str, start: int) -> Term:
        fields: list[str] = []
        while (
            self.word() in (".", "->")
            and self.at + 1 < self.end
            and self.text.kinds[self.at + 1] == "name"
            and not self._goes_on(self.at + 2)
        ):
            fields.append(self.text.words[self.at + 1])
            self.at += 2
        if self.word() in (".", "->", "["):
            return Term(Symbol(name, "result"))
        if not fields and self.reader.names.lookup(name, start) is None:
            expanded = self._macro(start)
            if expanded is not None:
                return expanded
        return self.reader.name(name, tuple(fields), start)

    def _goes_on(self, at: int) -> bool:
        """Whether a member is called or indexed, so that its value is not a field's."""
        word = self.text.words[at] if at < self.end else ""
        return word in ("(", "[") or (word == "<" and self.text.angle(at, self.end) is not None)

    def _macro(self, start: int) -> Term | None:
        expanded = self.text.expanded(start, self.at)
        if expanded is None:
            return None
        return self.reader.within(expanded, start).term(0, len(expanded.words))

    def postfix(self, found: Term, start: int) -> Term:
        """Members, calls and subscripts of a value: kept as a name."""
        begin = self.at
        text = self.text
        while self.at < self.end:
            word = self.word()
            if word in (".", "->") and self.at + 1 < self.end:
                self.at += 2
                if self.word() == "<" and (closed := text.angle(self.at, self.end)) is not None:
                    self.at = closed
            elif word in ("[", "("):
                self.at = text.closing(self.at, self.end) + 1
            else:
                break
        if self.at == begin:
            return found
        if self.at > self.end:
            raise Unread
        return Term(self.symbol(start, self.at))

    def symbol(self, start: int, end: int) -> Symbol:
        """Words as a name of their own; the extents of a tensor are the caller's."""
        shown = self.text.text(start, end)
        if len(shown) > MAX_SYMBOL:
            raise Unread
        return Symbol(shown, "given" if is_extent(shown) else "result")

    def _sizeof(self) -> Term:
        start = self.at
        opening = self.at + 1
        if opening >= self.end or self.text.words[opening] != "(":
            raise Unread
        close = self.text.closing(opening, self.end)
        if close >= self.end:
            raise Unread
        self.at = close + 1
        inside = self.text.words[opening + 1 : close]
        kind = number_type(inside)
        if kind is None and len(inside) == 1:
            kind = number_type(tuple(self.reader.kind(inside[0], start).split()))
        if kind is not None:
            return Term(Constant(kind.size))
        return Term(self.symbol(start, self.at))
