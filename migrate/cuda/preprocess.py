"""The preprocessor: conditionals, macro expansion, includes, and where everything came from.

The parser needs expanded text (a macro that is a loop head reads as a function otherwise),
and a reviewer needs places in the text as written.  `preprocess` gives both: `Expanded.text`
for the parser, `Expanded.span` from its byte ranges to `Span`s whose `via` are the macro
uses and includes on the way.

A span that lies in one macro's body points into that body.  One that mixes a body with
what surrounds it points at the macro's use.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from migrate.budget import Meter
from migrate.cuda.constants import evaluate_condition
from migrate.cuda.macros import Allowance, Macro, Table, TooLarge, expand, parse_define
from migrate.cuda.tokens import Expansion, Token, tokens
from migrate.source import MAX_BYTES, Frame, Source, SourceError, Span

Include = Callable[[str], Source | None]
MAX_INCLUDE_DEPTH = 32

MAX_EXPANDED = 2 * MAX_BYTES
"""Bytes after preprocessing."""

# What nvcc defines (CUDA Compiler Driver NVCC, "NVCC Identification Macros"; an
# architecture that has everything this tool understands), and function-like words of
# compilers and well-known libraries that say nothing about a kernel's meaning or stand for a
# loop head or a qualifier.  A file's own definition replaces them.
PREDEFINED: tuple[str, ...] = (
    "__CUDACC__ 1",
    "__NVCC__ 1",
    "__CUDA_ARCH__ 900",
    "__cplusplus 201703L",
    "__CUDACC_VER_MAJOR__ 12",
    "__CUDACC_VER_MINOR__ 4",
    "CUDART_VERSION 12040",
    "CUDA_VERSION 12040",
    "__align__(n)",
    "__attribute__(x)",
    "__declspec(x)",
    "__restrict __restrict__",
    "__extension__",
    "C10_LAUNCH_BOUNDS_0 __launch_bounds__(1024)",
    "C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)",
    "C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)",
    "C10_HOST_DEVICE __host__ __device__",
    "C10_DEVICE __device__",
    "HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];",
    # The grid-stride loop head of Caffe's device_alternate.hpp and its descendants.
    (
        "CUDA_KERNEL_LOOP(index, count) for (int index = blockIdx.x * blockDim.x + threadIdx.x;"
        " index < (count); index += blockDim.x * gridDim.x)"
    ),
    # sys/param.h
    "MIN(a, b) (((a) < (b)) ? (a) : (b))",
    "MAX(a, b) (((a) > (b)) ? (a) : (b))",
)


@dataclass(frozen=True, slots=True)
class _Segment:
    """`Expanded.text` from `out` on, up to the next segment, came from `start` in `source`.

    Verbatim text keeps its length; `end` is where its origin ends.
    """

    out: int
    source: Source | None
    start: int
    end: int
    expansion: Expansion | None
    inside: Expansion | None
    include: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Expanded:
    """Preprocessed text and the way back."""

    text: bytes
    source: Source
    macros: Mapping[str, Macro]
    missing_includes: tuple[str, ...]
    pragmas: tuple[tuple[int, str], ...]
    _segments: tuple[_Segment, ...] = field(repr=False)
    _starts: tuple[int, ...] = field(repr=False)

    def span(self, start: int, end: int) -> Span:
        """The place in reviewed text of a byte range of `text`."""
        if not self._segments:
            return self.source.whole()
        first = self._at(start)
        last = self._at(max(end - 1, start))
        origin = _origin(first, start) if first.inside is None else first.start
        limit = _origin(last, end) if last.inside is None else last.end
        together = first.expansion is last.expansion and first.source is last.source
        if together and first.source is not None:
            if origin <= limit:
                via = first.include + _frames(first.expansion)
                return _with_via(first.source.span(origin, limit), via)
        common = _common(first.inside, last.inside)
        if common is not None:
            return self._use(common, first.include)
        outer_first, outer_last = _outermost(first.inside), _outermost(last.inside)
        begin = outer_first.start if outer_first is not None else origin
        finish = outer_last.end if outer_last is not None else limit
        source = outer_first.source if outer_first is not None else first.source
        if source is None or finish < begin:
            source, begin, finish = self.source, 0, 0
        return _with_via(source.span(begin, finish), first.include)

    def _use(self, use: Expansion | None, include: tuple[Frame, ...]) -> Span:
        while use is not None and use.source is None:
            use = use.parent
        if use is None or use.source is None:
            return _with_via(self.source.span(0, 0), include)
        return _with_via(use.source.span(use.start, use.end), include + _frames(use.parent))

    def _at(self, position: int) -> _Segment:
        return self._segments[max(bisect_right(self._starts, position) - 1, 0)]


def _origin(segment: _Segment, position: int) -> int:
    return min(segment.start + max(position - segment.out, 0), segment.end)


def _with_via(span: Span, via: tuple[Frame, ...]) -> Span:
    if not via:
        return span
    return Span(
        file=span.file,
        start_line=span.start_line,
        start_column=span.start_column,
        end_line=span.end_line,
        end_column=span.end_column,
        via=via,
    )


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
    others = {id(use) for use in _chain(last)}
    return next((use for use in _chain(first) if id(use) in others), None)


def _outermost(expansion: Expansion | None) -> Expansion | None:
    chain = _chain(expansion)
    return chain[-1] if chain else None


@dataclass(slots=True)
class _Conditional:
    outer_active: bool
    active: bool
    taken: bool


@dataclass(slots=True)
class _State:
    meter: Meter
    include: Include | None
    table: Table
    allowance: Allowance = field(default_factory=Allowance)
    pieces: list[bytes] = field(default_factory=list)
    segments: list[_Segment] = field(default_factory=list)
    length: int = 0
    missing: list[str] = field(default_factory=list)
    pragmas: list[tuple[int, str]] = field(default_factory=list)
    once: set[str] = field(default_factory=set)

    def write(
        self,
        text: bytes,
        token: Token | None,
        include: tuple[Frame, ...],
        *,
        source: Source | None = None,
        start: int = 0,
        end: int = 0,
    ) -> None:
        if not text:
            return
        if token is not None:
            segment = _Segment(
                self.length, token.source, token.start, token.end,
                token.expansion, token.inside, include,
            )  # fmt: skip
        else:
            segment = _Segment(self.length, source, start, end, None, None, include)
        self.segments.append(segment)
        self.meter.step()
        self.pieces.append(text)
        self.length += len(text)
        if self.length > MAX_EXPANDED:
            shown = segment.source.name if segment.source is not None else "a definition"
            raise SourceError("expands to more text than is read", file=shown)


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
    state = _State(meter if meter is not None else Meter(), include, Table())
    for line in PREDEFINED:
        state.table.define(parse_define(tokens(None, line.encode())))
    for name, value in (defines or {}).items():
        state.table.define(parse_define(tokens(None, f"{name} {value}".encode())))
    _file(source, state, (), 0)
    return Expanded(
        text=b"".join(state.pieces),
        source=source,
        macros={name.decode(): macro for name, macro in state.table.items()},
        missing_includes=tuple(dict.fromkeys(state.missing)),
        pragmas=tuple(state.pragmas),
        _segments=tuple(state.segments),
        _starts=tuple(segment.out for segment in state.segments),
    )


def _file(source: Source, state: _State, frames: tuple[Frame, ...], depth: int) -> None:
    text = source.encoded
    stream = tokens(source, text)
    conditionals: list[_Conditional] = []
    # Verbatim text is copied in runs, from `run` up to the next macro use or directive.
    run = 0
    position = 0
    line_start = True
    while position < len(stream):
        token = stream[position]
        if token.kind == "newline":
            line_start = True
            position += 1
            continue
        if line_start and token.text == b"#":
            _flush(state, source, run, token.start, frames, conditionals)
            end = position + 1
            while end < len(stream) and stream[end].kind != "newline":
                end += 1
            _directive(stream[position + 1 : end], state, source, frames, conditionals, depth)
            run = stream[end].start if end < len(stream) else len(text)
            position = end
            continue
        line_start = False
        if token.kind == "name" and _active(conditionals):
            macro = state.table.get(token.text)
            if macro is not None:
                try:
                    used = _expand_use(stream, position, macro, state)
                except TooLarge as refusal:
                    raise _refused(refusal, token) from None
                if used is not None:
                    expanded, following = used
                    _flush(state, source, run, token.start, frames, conditionals)
                    for index, piece in enumerate(expanded):
                        blank = b" " if piece.spaced or index == 0 else b""
                        if blank:
                            state.write(blank, piece, frames)
                        state.write(piece.text, piece, frames)
                    last = stream[following - 1]
                    if expanded:
                        state.write(b" ", expanded[-1], frames)
                    run = last.end
                    position = following
                    continue
        position += 1
    _flush(state, source, run, len(text), frames, conditionals)


def _refused(refusal: TooLarge, token: Token) -> SourceError:
    if token.source is None:
        return SourceError(str(refusal), file="a definition")
    where = token.source.span(token.start, token.end)
    return SourceError(str(refusal), file=token.source.name, where=where)


def _active(conditionals: list[_Conditional]) -> bool:
    return not conditionals or conditionals[-1].active


def _flush(
    state: _State,
    source: Source,
    start: int,
    end: int,
    frames: tuple[Frame, ...],
    conditionals: list[_Conditional],
) -> None:
    if end > start and _active(conditionals):
        text = source.encoded[start:end]
        state.write(text, None, frames, source=source, start=start, end=end)


def _expand_use(
    stream: list[Token], position: int, macro: Macro, state: _State
) -> tuple[list[Token], int] | None:
    """The tokens that a macro use stands for, and the position after it."""
    following = position + 1
    use = [stream[position]]
    while True:
        if macro.parameters is not None:
            end = _call_end(stream, following)
            state.allowance.use(((end or len(stream)) - following) // 8)
            if end is None:
                return None if len(use) == 1 and following == position + 1 else (use, following)
            use += [token for token in stream[following:end] if token.kind != "newline"]
            following = end
        expanded = expand(use, state.table, state.allowance)
        # A macro may expand to the name of a function-like one whose arguments follow.
        last = expanded[-1] if expanded else None
        again = state.table.get(last.text) if last is not None and last.kind == "name" else None
        if (
            again is None
            or last is None
            or again.parameters is None
            or last.text in last.hidden
            or _call_end(stream, following) is None
        ):
            return expanded, following
        use, macro = expanded, again


def _call_end(stream: list[Token], position: int) -> int | None:
    """The position after the closing parenthesis of arguments that start at `position`."""
    while position < len(stream) and stream[position].kind == "newline":
        position += 1
    if position >= len(stream) or stream[position].text != b"(":
        return None
    level = 0
    for index in range(position, len(stream)):
        text = stream[index].text
        if text == b"(":
            level += 1
        elif text == b")":
            level -= 1
            if level == 0:
                return index + 1
    return None


def _directive(
    line: list[Token],
    state: _State,
    source: Source,
    frames: tuple[Frame, ...],
    conditionals: list[_Conditional],
    depth: int,
) -> None:
    if not line:
        return
    rest = line[1:]
    match line[0].text:
        case b"if" | b"ifdef" | b"ifndef" as word:
            active = _active(conditionals)
            truth = active and _truth(word, rest, state)
            conditionals.append(_Conditional(active, truth, truth))
        case b"elif" if conditionals:
            top = conditionals[-1]
            top.active = top.outer_active and not top.taken and _truth(b"if", rest, state)
            top.taken = top.taken or top.active
        case b"else" if conditionals:
            top = conditionals[-1]
            top.active = top.outer_active and not top.taken
            top.taken = True
        case b"endif" if conditionals:
            conditionals.pop()
        case b"define" if _active(conditionals) and rest:
            state.table.define(parse_define(rest))
        case b"undef" if _active(conditionals) and rest:
            state.table.remove(rest[0].text)
        case b"pragma" if _active(conditionals):
            words = b" ".join(token.text for token in rest).decode("utf-8", "replace")
            if words == "once":
                state.once.add(source.digest)
            state.pragmas.append((state.length, words))
        case b"include" if _active(conditionals) and rest:
            _include(rest, state, source, frames, depth)
        case _:
            return


def _truth(word: bytes, rest: list[Token], state: _State) -> bool:
    if word != b"if":
        defined = bool(rest) and state.table.get(rest[0].text) is not None
        return defined if word == b"ifdef" else not defined
    try:
        return evaluate_condition(rest, state.table, state.allowance)
    except TooLarge as refusal:
        raise _refused(refusal, rest[0]) from None


def _include(
    rest: list[Token],
    state: _State,
    source: Source,
    frames: tuple[Frame, ...],
    depth: int,
) -> None:
    written = source.encoded[rest[0].start : rest[-1].end].decode("utf-8", "replace").strip()
    name = written.strip('"<>')
    found = state.include(name) if state.include is not None else None
    if found is None:
        state.missing.append(name)
        return
    if found.digest in state.once or depth >= MAX_INCLUDE_DEPTH:
        return
    place = source.span(rest[0].start, rest[-1].end)
    frame = Frame(
        kind="include",
        name=name,
        file=place.file,
        line=place.start_line,
        column=place.start_column,
    )
    state.write(b"\n", None, frames, source=source, start=rest[0].start, end=rest[0].start)
    _file(found, state, (*frames, frame), depth + 1)
    state.write(b"\n", None, frames, source=source, start=rest[-1].end, end=rest[-1].end)
