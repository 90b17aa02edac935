"""Preprocessed text, and where each byte of it came from.

A span that lies in one macro's body points into that body.  One that mixes a body with
what surrounds it points at the macro's use.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple

import msgspec

from migrate.cuda.macros import Macro
from migrate.cuda.tokens import Expansion, Token
from migrate.source import Frame, Source, Span


class Segment(NamedTuple):
    """A piece of the text that came from `start` in `source`, up to `end`.

    Text that no macro made keeps its length.  `include` is where its file was included.
    """

    source: Source | None
    start: int
    end: int
    expansion: Expansion | None
    inside: Expansion | None
    include: tuple[Frame, ...]


class Made:
    """The text of a macro's use: its tokens, located only when somebody asks."""

    __slots__ = ("_offsets", "include", "tokens")

    def __init__(self, tokens: Sequence[Token], include: tuple[Frame, ...]) -> None:
        self.tokens = tokens
        self.include = include
        self._offsets: list[int] | None = None

    @property
    def text(self) -> bytes:
        """The tokens with the blanks between them that keep them apart."""
        spelled = [b" " + token.text if token.spaced else token.text for token in self.tokens]
        return b"".join([b" ", *spelled, b" "])

    def at(self, offset: int) -> tuple[Segment, int]:
        """The token that a byte of `text` belongs to and where it begins in `text`.

        A blank belongs to the token before it.
        """
        if self._offsets is None:
            self._offsets = []
            length = 1
            for token in self.tokens:
                length += token.spaced
                self._offsets.append(length)
                length += len(token.text)
        index = max(bisect_right(self._offsets, offset) - 1, 0)
        token = self.tokens[index]
        segment = Segment(
            token.source, token.start, token.end, token.expansion, token.inside, self.include
        )
        return segment, self._offsets[index]


class Edit(NamedTuple):
    """Text to put in place of `start` to `end`; it is at least as long as what it replaces."""

    start: int
    end: int
    text: bytes


class LeftOut(NamedTuple):
    """Bytes of the file that the configuration leaves out, and the directive that says so."""

    start: int
    end: int
    directive: str
    line: int


class _Inserted(NamedTuple):
    """Bytes put in: where they begin in the text after, how many, and how many up to here."""

    start: int
    length: int
    total: int


FAR = 1 << 62


class Place(msgspec.Struct, frozen=True, gc=False):
    """A byte range of an expanded text, located only when somebody asks.

    A typed tree has one for every node; few are ever shown.
    """

    text: Expanded
    start: int
    end: int

    @property
    def span(self) -> Span:
        """The place in reviewed text."""
        # An execution asks again for every step.
        known = self.text.found
        key = (self.start, self.end)
        span = known.get(key)
        if span is None:
            span = known[key] = self.text.span(self.start, self.end)
        return span


Where = Place | Span


def span_of(where: Where) -> Span:
    """The place in reviewed text."""
    return where if isinstance(where, Span) else where.span


class _Line(NamedTuple):
    """A part of a line of the text that came from one line of a file as it is.

    Of a place from `start` on, up to `end`, the column is the place less `shift`.  `number` is 0
    for a part whose columns cannot be counted like that.
    """

    start: int
    end: int
    number: int = 0
    shift: int = 0
    file: str = ""
    include: tuple[Frame, ...] = ()


class _Lines:
    """The lines of a text whose places were asked for."""

    __slots__ = ("_known", "_starts", "last")

    def __init__(self) -> None:
        self.last = _Line(0, 0)
        self._known: dict[int, list[_Line]] = {}
        self._starts: list[int] = []

    def at(self, place: int, expanded: Expanded) -> _Line:
        """The part of a line that a place is in; it becomes the last one."""
        if not self._starts:
            lines = expanded.text.splitlines(keepends=True)
            self._starts = [0, *accumulate(map(len, lines))]
        number = bisect_right(self._starts, place)
        parts = self._known.setdefault(number, [])
        for part in parts:
            if part.start <= place < part.end:
                break
        else:
            part = expanded.line_at(place)
            parts.append(part)
        self.last = part
        return part


@dataclass(frozen=True, slots=True, eq=False)
class Expanded:
    """Preprocessed text and the way back."""

    text: bytes
    source: Source
    macros: Mapping[bytes, Macro]
    missing_includes: tuple[str, ...]
    pragmas: tuple[tuple[int, str], ...]
    """Each `#pragma`, with the place in the text before edits where it stood."""
    left_out: tuple[LeftOut, ...]
    _segments: Sequence[Segment | Made] = field(repr=False)
    _starts: Sequence[int] = field(repr=False)
    """Where each piece begins, and at last a place beyond all."""
    _passes: tuple[tuple[_Inserted, ...], ...] = ()
    """What each round of edits put in."""
    _lines: _Lines = field(init=False, repr=False, default_factory=_Lines)
    _framed: dict[int, tuple[Frame, ...]] = field(init=False, repr=False, default_factory=dict)
    """The frames of the uses that were asked for, by identity."""
    found: dict[tuple[int, int], Span] = field(init=False, repr=False, default_factory=dict)
    """The spans of the `Place`s that were asked for."""

    def span(self, start: int, end: int) -> Span:
        """The place in reviewed text of a byte range of `text`."""
        # Every node of a tree is asked for its place, most after one of the same line.
        line = self._lines.last
        if not line.start <= start < line.end:
            line = self._lines.at(start, self)
        if end <= line.end and line.number:
            return Span(
                file=line.file,
                start_line=line.number,
                start_column=start - line.shift,
                end_line=line.number,
                end_column=end - line.shift,
                via=line.include,
            )
        if self._passes:
            start, end = self.before_edits(start), self.before_edits(end)
        starts = self._starts
        index = bisect_right(starts, start) - 1
        if index < 0:
            return self.source.whole()
        piece = self._segments[index]
        if end <= starts[index + 1] and piece.__class__ is Segment:
            moved = piece.start - starts[index]
            source = piece.source or self.source
            return source.span(start + moved, end + moved, piece.include)
        return self._spread(index, start, end)

    def line_at(self, place: int) -> _Line:
        """The part of a line around a place, as far as its columns can be counted in bytes."""
        begin, end, moved = 0, FAR, 0
        for inserted in reversed(self._passes):
            index = bisect_right(inserted, (place - moved, FAR, FAR)) - 1
            following = index + 1
            if following < len(inserted):
                end = min(end, inserted[following].start + moved)
            if index >= 0:
                start, length, total = inserted[index]
                begin = max(begin, start + length + moved)
                moved += total
        index = bisect_right(self._starts, place - moved) - 1
        if index < 0 or place < begin:
            return _Line(place, place + 1)
        piece = self._segments[index]
        begin = max(begin, self._starts[index] + moved)
        end = min(end, self._starts[index + 1] + moved)
        if not isinstance(piece, Segment):
            return _Line(begin, end)
        source = piece.source or self.source
        # From here on, `moved` leads from the file to the text.
        moved += self._starts[index] - piece.start
        found = source.plain_line(place - moved)
        if found is None:
            return _Line(begin, end)
        number, first, limit = found
        first += moved
        end = min(end, limit - 1 + moved)
        if place >= end:
            # The end of the line itself.
            return _Line(place, place + 1)
        return _Line(max(begin, first), end, number, first - 1, source.name, piece.include)

    def _spread(self, index: int, start: int, end: int) -> Span:
        """The place of a range that a macro made, or that reaches over several pieces."""
        final = end - 1 if end > start else start
        first, first_out = self._at(index, start)
        index = bisect_right(self._starts, final, index) - 1
        last, last_out = self._at(index, final)
        origin = _origin(first, first_out, start) if first.inside is None else first.start
        limit = _origin(last, last_out, end) if last.inside is None else last.end
        together = first.expansion is last.expansion and first.source is last.source
        if together and first.source is not None and origin <= limit:
            return first.source.span(origin, limit, first.include + self._frames(first.expansion))
        common = _common(first.inside, last.inside)
        if common is not None:
            return self._use(common, first.include)
        outer_first, outer_last = _outermost(first.inside), _outermost(last.inside)
        begin = outer_first.start if outer_first is not None else origin
        finish = outer_last.end if outer_last is not None else limit
        source = outer_first.source if outer_first is not None else first.source
        if source is None or finish < begin:
            source, begin, finish = self.source, 0, 0
        return source.span(begin, finish, first.include)

    def _at(self, index: int, position: int) -> tuple[Segment, int]:
        piece, out = self._segments[index], self._starts[index]
        if isinstance(piece, Segment):
            return piece, out
        segment, offset = piece.at(position - out)
        return segment, out + offset

    def edited(self, edits: Sequence[Edit]) -> Expanded:
        """The text with edits made (in order, apart from each other), places kept."""
        pieces: list[bytes] = []
        inserted: list[_Inserted] = []
        position = grown = 0
        for edit in edits:
            pieces += (self.text[position : edit.start], edit.text)
            position = edit.end
            more = len(edit.text) - (edit.end - edit.start)
            if more:
                inserted.append(_Inserted(edit.end + grown, more, grown + more))
                grown += more
        pieces.append(self.text[position:])
        passes = (*self._passes, tuple(inserted)) if inserted else self._passes
        return replace(self, text=b"".join(pieces), _passes=passes)

    def before_edits(self, position: int) -> int:
        """The place in the text before any edit."""
        for inserted in reversed(self._passes):
            index = bisect_right(inserted, (position, FAR, FAR)) - 1
            if index >= 0:
                start, length, total = inserted[index]
                # All that was put in stands where it was put.
                position = max(position - total, start + length - total)
        return position

    def _frames(self, expansion: Expansion | None) -> tuple[Frame, ...]:
        if expansion is None:
            return ()
        found = self._framed.get(id(expansion))
        if found is None:
            found = self._framed[id(expansion)] = _frames(expansion)
        return found

    def _use(self, use: Expansion | None, include: tuple[Frame, ...]) -> Span:
        while use is not None and use.source is None:
            use = use.parent
        if use is None or use.source is None:
            return self.source.span(0, 0, include)
        return use.source.span(use.start, use.end, include + self._frames(use.parent))


def _origin(segment: Segment, out: int, position: int) -> int:
    return min(segment.start + max(position - out, 0), segment.end)


def _frames(expansion: Expansion | None) -> tuple[Frame, ...]:
    frames: list[Frame] = []
    while expansion is not None:
        if expansion.source is not None:
            place = expansion.source.span(expansion.start, expansion.end)
            frames.append(
                Frame(
                    kind="macro",
                    name=expansion.name,
                    file=place.file,
                    line=place.start_line,
                    column=place.start_column,
                )
            )
        expansion = expansion.parent
    return tuple(reversed(frames))


def _chain(expansion: Expansion | None) -> list[Expansion]:
    out: list[Expansion] = []
    while expansion is not None:
        out.append(expansion)
        expansion = expansion.parent
    return out


def _common(first: Expansion | None, last: Expansion | None) -> Expansion | None:
    if first is None or last is None:
        return None
    others = {id(use) for use in _chain(last)}
    return next((use for use in _chain(first) if id(use) in others), None)


def _outermost(expansion: Expansion | None) -> Expansion | None:
    chain = _chain(expansion)
    return chain[-1] if chain else None
