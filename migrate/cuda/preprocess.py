"""The preprocessor: conditionals, macro expansion, includes.

The parser needs expanded text (a macro that is a loop head reads as a function otherwise),
and a reviewer needs places in the text as written: `Expanded` has both.

One branch of every conditional is kept, for a stated configuration: nvcc compiling for
compute capability 8.0 (`configuration`), and what `-D` adds.  Text in which no macro is named
is copied as it is, whatever its size; only uses of macros are split into tokens.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from migrate.budget import Meter
from migrate.cuda.configuration import predefined
from migrate.cuda.constants import evaluate_condition
from migrate.cuda.macros import Allowance, Macro, Table, TooLarge, expand, given, parse_define
from migrate.cuda.origins import FAR, Edit, Expanded, LeftOut, Made, Segment
from migrate.cuda.tokens import Marks, Token, check_size, marks, refused, tokens
from migrate.source import MAX_BYTES, MAX_NAME, Frame, Source, SourceError

__all__ = ["Edit", "Expanded", "Include", "LeftOut", "preprocess"]

Include = Callable[[str, Source], Source | None]
"""From the name between the quotes or brackets and the file that includes it to its text."""

MAX_INCLUDE_DEPTH: Final = 32

MAX_EXPANDED: Final = 2 * MAX_BYTES
"""Bytes after preprocessing."""

_NAME = re.compile(rb"[A-Za-z_$][\w$]*")
_BLANKED = bytes(
    byte if byte < 128 and (chr(byte).isalnum() or byte in b"_$") else 32 for byte in range(256)
)
"""For `translate`: what is in no name becomes a blank, which splits a text faster than `_NAME`."""
_WORD = re.compile(rb"(?:[ \t]|\\\r?\n|/\*.*?\*/)*+([a-z_]+)", re.DOTALL)


@dataclass(slots=True)
class _Conditional:
    outer_active: bool
    active: bool
    taken: bool


@dataclass(slots=True)
class _Pending:
    """A macro use whose arguments go on behind a directive."""

    macro: Macro
    use: list[Token]
    level: int
    runs: list[tuple[int, int]]


@dataclass(slots=True)
class _State:
    name: str
    meter: Meter
    include: Include | None
    table: Table
    allowance: Allowance = field(default_factory=Allowance)
    pieces: list[bytes] = field(default_factory=list)
    segments: list[Segment | Made] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    length: int = 0
    included: int = 0
    missing: list[str] = field(default_factory=list)
    pragmas: list[tuple[int, str]] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    once: set[str] = field(default_factory=set)

    def write(self, text: bytes, segment: Segment | Made) -> None:
        if text:
            self.starts.append(self.length)
            self.segments.append(segment)
            self.pieces.append(text)
            self.length += len(text)
            if self.length > MAX_EXPANDED:
                raise SourceError("expands to more text than is read", file=self.name)


def preprocess(
    source: Source,
    *,
    defines: Mapping[str, str] | None = None,
    include: Include | None = None,
    meter: Meter | None = None,
) -> Expanded:
    """Preprocess a file.

    `defines` are `-D` definitions: a macro's name (with parameters, `F(x)`) to its text.
    `include` finds the text of a quoted or bracketed include; what it does not find is
    skipped and listed.  Macros that are used but defined nowhere stay as they are.
    Raises `SourceError` where the macros expand to more than is read.
    """
    check_size(source)
    meter = meter if meter is not None else Meter()
    state = _State(source.name, meter, include, Table(dict(predefined())))
    for name, value in (defines or {}).items():
        macro = given(name, value)
        if macro is None:
            raise SourceError(f"'{name}' is not a macro's name", file="a definition")
        state.table.define(macro)
    _File(source, state, (), 0).read()
    return Expanded(
        text=b"".join(state.pieces),
        source=source,
        macros=state.table.macros,
        missing_includes=tuple(dict.fromkeys(state.missing)),
        pragmas=tuple(state.pragmas),
        left_out=tuple(state.left_out),
        _segments=state.segments,
        _starts=[*state.starts, FAR],
    )


class _File:
    """One file on its way through the preprocessor."""

    def __init__(
        self, source: Source, state: _State, frames: tuple[Frame, ...], depth: int
    ) -> None:
        self.source = source
        self.text = source.encoded
        self.state = state
        self.frames = frames
        self.depth = depth
        self.conditionals: list[_Conditional] = []
        self.active = True
        self.pending: _Pending | None = None
        self.excluded: tuple[str, int] = ("", 0)

    def read(self) -> None:
        found = marks(self.text)
        run = 0
        for start, end in found.directives:
            self._run(run, start, found)
            self._directive(start, end)
            run = end
        self._run(run, len(self.text), found)
        self._give_up(found)

    # -- text -------------------------------------------------------------------------

    def _run(self, start: int, end: int, found: Marks) -> None:
        if start == end:
            return
        if not self.active:
            if self.depth == 0:
                self.state.left_out.append(LeftOut(start, end, *self.excluded))
            return
        self.state.meter.step()
        if self.pending is not None:
            start = self._resume(start, end)
        words = set(self.text[start:end].translate(_BLANKED).split())
        if words and max(map(len, words)) > MAX_NAME:
            tokens(self.source, self.text, start, end)
        used = words & self.state.table.names()
        if used:
            start = self._expanded_run(start, end, used, found)
        self._verbatim(start, end)

    def _verbatim(self, start: int, end: int) -> None:
        if end > start:
            segment = Segment(self.source, start, end, None, None, self.frames)
            self.state.write(self.text[start:end], segment)

    def _expanded_run(self, start: int, end: int, used: set[bytes], found: Marks) -> int:
        """Write a run up to where it is verbatim again; that place."""
        text = self.text
        macros = self.state.table.macros
        written = start
        for at, name in _places(text, start, end, used):
            after = at + len(name)
            if at < written or self._is_no_name(at, found):
                continue
            macro = macros[name]
            if macro.parameters is not None and not _opens(text, after, end):
                continue
            self.state.meter.step()
            use = [Token("name", name, self.source, at, after)]
            try:
                taken = self._use(macro, use, after, end)
            except TooLarge as refusal:
                raise refused(self.source, (at, after), str(refusal)) from None
            if taken is None:
                continue
            expanded, following = taken
            self._verbatim(written, at)
            if self.pending is not None:
                self.pending.runs.append((at, end))
                return end
            self._emit(expanded)
            written = following
        return written

    def _is_no_name(self, at: int, found: Marks) -> bool:
        """Whether a place lies in a comment or a literal, or ends a number."""
        index = bisect_right(found.quiet_starts, at) - 1
        if index >= 0 and at < found.quiet_ends[index]:
            return True
        before = self.text[max(at - 2, 0) : at]
        return before[-1:].isdigit() or (before[-1:] == b"." and before[:1].isdigit())

    def _emit(self, expanded: list[Token]) -> None:
        state = self.state
        state.meter.step(1 + len(expanded))
        if expanded:
            piece = Made(expanded, self.frames)
            state.write(piece.text, piece)

    # -- uses of macros ---------------------------------------------------------------

    def _use(
        self, macro: Macro, use: list[Token], following: int, end: int
    ) -> tuple[list[Token], int] | None:
        """The tokens that a use stands for, and the place after it; `None` for no use."""
        while True:
            if macro.parameters is not None:
                arguments, closed, level = self._arguments(following, end)
                if not closed:
                    if len(use) == 1 and level > 0:
                        self.pending = _Pending(macro, use + arguments, level, [])
                        return use, end
                    return None if len(use) == 1 else (use, following)
                use = use + arguments
                following = arguments[-1].end
            expanded = expand(use, self.state.table, self.state.allowance)
            # A macro may expand to the name of a function-like one whose arguments follow.
            last = expanded[-1] if expanded else None
            again = self.state.table.get(last.text) if last is not None else None
            if (
                again is None
                or last is None
                or again.parameters is None
                or last.text in last.hidden
                or not _opens(self.text, following, end)
            ):
                return expanded, following
            use, macro = expanded, again

    def _arguments(self, start: int, end: int) -> tuple[list[Token], bool, int]:
        """The tokens of parenthesised arguments, whether they close, else how many are open."""
        closing = _closing(self.text, start, end)
        found = tokens(self.source, self.text, start, end if closing is None else closing)
        if closing is None:
            self.state.allowance.use(len(found))
        level = 0
        taken: list[Token] = []
        for token in found:
            if token.kind == "newline":
                continue
            taken.append(token)
            if token.text == b"(":
                level += 1
            elif token.text == b")":
                level -= 1
                if level == 0:
                    return taken, True, 0
        if closing is not None:
            # A parenthesis in a literal or a comment misled the quick search.
            return self._slow_arguments(start, end)
        return taken, False, level

    def _slow_arguments(self, start: int, end: int) -> tuple[list[Token], bool, int]:
        level = 0
        taken: list[Token] = []
        for token in tokens(self.source, self.text, start, end):
            if token.kind != "newline":
                taken.append(token)
            level += (token.text == b"(") - (token.text == b")")
            if level == 0 and taken:
                return taken, True, 0
        self.state.allowance.use(len(taken))
        return taken, False, level

    def _resume(self, start: int, end: int) -> int:
        """Go on with arguments that a directive interrupted; the place after them."""
        pending = self.pending
        assert pending is not None
        for token in tokens(self.source, self.text, start, end):
            if token.kind == "newline":
                continue
            pending.use.append(token)
            pending.level += (token.text == b"(") - (token.text == b")")
            if pending.level == 0:
                self.pending = None
                with self._bounded(pending.use[0]):
                    self._emit(expand(pending.use, self.state.table, self.state.allowance))
                return token.end
        with self._bounded(pending.use[0]):
            self.state.allowance.use((end - start) // 8)
        pending.runs.append((start, end))
        return end

    @contextmanager
    def _bounded(self, name: Token) -> Iterator[None]:
        """What grows too large is refused at a name."""
        try:
            yield
        except TooLarge as refusal:
            raise refused(self.source, (name.start, name.end), str(refusal)) from None

    def _give_up(self, found: Marks) -> None:
        """Arguments that never close are none: only the macro's name stays as it is."""
        self.active = True
        while self.pending is not None:
            pending, self.pending = self.pending, None
            name = pending.use[0]
            self._verbatim(name.start, name.end)
            runs = [(name.end, pending.runs[0][1]), *pending.runs[1:]]
            for start, end in runs:
                self._run(start, end, found)

    # -- directives -------------------------------------------------------------------

    def _directive(self, start: int, end: int) -> None:
        word = _WORD.match(self.text, start + 1, end)
        if word is None:
            return
        conditionals = self.conditionals
        match word[1]:
            case b"if" | b"ifdef" | b"ifndef":
                truth = self.active and self._truth(word[1], word.end(), end)
                conditionals.append(_Conditional(self.active, truth, truth))
                self._switch(start, end)
            case b"elif" if conditionals:
                top = conditionals[-1]
                top.active = (
                    top.outer_active and not top.taken and self._truth(b"if", word.end(), end)
                )
                top.taken = top.taken or top.active
                self._switch(start, end)
            case b"else" if conditionals:
                top = conditionals[-1]
                top.active = top.outer_active and not top.taken
                top.taken = True
                self._switch(start, end)
            case b"endif" if conditionals:
                conditionals.pop()
                self._switch(start, end)
            case _ if not self.active:
                return
            case b"define":
                macro = parse_define(self.source, self.text, word.end(), end)
                if macro is not None:
                    self.state.table.define(macro)
            case b"undef":
                name = _NAME.search(self.text, word.end(), end)
                if name is not None:
                    self.state.table.remove(name[0])
            case b"pragma":
                self._pragma(word.end(), end)
            case b"include":
                self._include(word.end(), end)
            case _:
                return

    def _switch(self, start: int, end: int) -> None:
        self.active = not self.conditionals or self.conditionals[-1].active
        if not self.active and self.depth == 0:
            directive = " ".join(self.text[start:end].decode("utf-8", "replace").split())
            self.excluded = (directive, self.source.span(start, start).start_line)

    def _truth(self, word: bytes, start: int, end: int) -> bool:
        if word != b"if":
            name = _NAME.search(self.text, start, end)
            defined = name is not None and self.state.table.get(name[0]) is not None
            return defined if word == b"ifdef" else not defined
        line = [t for t in tokens(self.source, self.text, start, end) if t.kind != "newline"]
        if not line:
            return False
        with self._bounded(line[0]):
            return evaluate_condition(line, self.state.table, self.state.allowance)

    def _pragma(self, start: int, end: int) -> None:
        found = tokens(self.source, self.text, start, end)
        words = b" ".join(token.text for token in found).decode("utf-8", "replace")
        if words == "once":
            self.state.once.add(self.source.digest)
        self.state.pragmas.append((self.state.length, words))

    def _include(self, start: int, end: int) -> None:
        line = self.text[start:end]
        quoted = _INCLUDED.match(line)
        if quoted is None:
            return
        name = (quoted[1] or quoted[2]).decode("utf-8", "replace").strip()
        state = self.state
        found = state.include(name, self.source) if state.include is not None else None
        if found is None:
            state.missing.append(name)
            return
        if found.digest in state.once or self.depth >= MAX_INCLUDE_DEPTH:
            return
        place = self.source.span(start + quoted.start(quoted.lastindex or 1) - 1, end)
        state.included += len(found.encoded)
        if state.included > MAX_EXPANDED:
            message = f"includes more than {MAX_EXPANDED // 2**20} MiB of text"
            raise SourceError(message, file=place.file, where=place)
        state.meter.step(1 + len(found.encoded) // 64)
        frame = Frame(
            kind="include",
            name=name,
            file=place.file,
            line=place.start_line,
            column=place.start_column,
        )
        state.write(b"\n", Segment(self.source, start, start, None, None, self.frames))
        _File(found, state, (*self.frames, frame), self.depth + 1).read()
        state.write(b"\n", Segment(self.source, end, end, None, None, self.frames))


def _places(text: bytes, start: int, end: int, names: set[bytes]) -> list[tuple[int, bytes]]:
    """Where words of a text stand that are one of some names, in order."""
    if len(names) > MAX_SEARCHES:
        every = _NAME.finditer(text, start, end)
        return [(found.start(), found[0]) for found in every if found[0] in names]
    places: list[tuple[int, bytes]] = []
    for name in names:
        at = text.find(name, start, end)
        while at >= 0:
            after = at + len(name)
            # A run begins and ends beside no name, so its words are whole.
            if not (_is_in_name(text, at - 1) or _is_in_name(text, after)):
                places.append((at, name))
            at = text.find(name, after, end)
    places.sort()
    return places


MAX_SEARCHES: Final = 12
"""Names that are searched for one by one, faster than a look at every word of the text."""


def _is_in_name(text: bytes, at: int) -> bool:
    return 0 <= at < len(text) and _BLANKED[text[at]] != 32


_INCLUDED = re.compile(rb"[^\n\"<]*?(?:\"([^\"\n]+)\"|<([^>\n]+)>)")
_PARENTHESIS = re.compile(rb"[()]")
_OPENS = re.compile(rb"(?:\s|\\\r?\n|//[^\n]*|/\*.*?\*/)*+\(", re.DOTALL)


def _opens(text: bytes, start: int, end: int) -> bool:
    """Whether arguments begin here."""
    return _OPENS.match(text, start, end) is not None


def _closing(text: bytes, start: int, end: int) -> int | None:
    """The place after the parenthesis that closes the first one, literals not looked at."""
    level = 0
    for found in _PARENTHESIS.finditer(text, start, end):
        level += 1 if found[0] == b"(" else -1
        if level <= 0:
            return found.end()
    return None
