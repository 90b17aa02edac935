"""Which parts of a line of source are comments, strings, keywords: on demand, line by line.

A grammar-based highlighter reads a file from its start before it can colour a line in the
middle; on 4 MB that is seconds.  Here one scan looks only for what can cross a line's end
(comments, long strings), as far as the lines asked for; the rest is one expression a line.
Both are linear in the text, whatever it holds: repetitions are possessive, and what is left
open runs to the end of the text.
"""

from __future__ import annotations

import keyword
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from migrate.results import Side
from migrate.tui.ink import Ink


class Token(NamedTuple):
    """Columns of a line, from 0, end exclusive."""

    start: int
    end: int
    ink: Ink


_CUDA_SCAN: Final = re.compile(
    r"""
      (?P<comment> //(?:[^\n\\]|\\.)*+ | /\*(?:.*?\*/|.*) )
    | (?P<string> \bR"(?P<fence>[^()\\\s]{0,16})\((?:.*?\)(?P=fence)"|.*)
                | "(?:[^"\\\n]|\\.)*+"? | '(?:[^'\\\n]|\\.){1,8}+' )
    | (?P<number> \b[0-9](?:[\w.']|(?<=[eEpP])[+-])*+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_NKI_SCAN: Final = re.compile(
    r"""
      (?P<comment> \#[^\n]*+ )
    | (?P<string> \"{3}(?:[^\\]|\\.|\\\Z)*?(?:\"{3}|\Z) | '{3}(?:[^\\]|\\.|\\\Z)*?(?:'{3}|\Z)
                | "(?:[^"\\\n]|\\.)*+"? | '(?:[^'\\\n]|\\.)*+'? )
    | (?P<number> \b[0-9](?:[\w.]|(?<=[eE])[+-])*+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_CUDA_LINE: Final = re.compile(
    _CUDA_SCAN.pattern
    + r"| (?P<directive> ^[ \t]*\#[ \t]*\w+ (?:[ \t]*<[^>\n]*>)? ) | (?P<word> [A-Za-z_]\w*+ )",
    re.VERBOSE | re.DOTALL,
)
_NKI_LINE: Final = re.compile(
    _NKI_SCAN.pattern
    + r"""| (?P<directive> ^[ \t]*@[\w.]++ ) | (?P<api> \b(?:nki|nl|nisa|ncc)(?:\.\w+)++ )
          | (?P<word> [^\W\d]\w*+ )""",
    re.VERBOSE | re.DOTALL,
)


def _all(words: str, ink: Ink) -> dict[str, Ink]:
    return dict.fromkeys(words.split(), ink)


_CUDA_WORDS: Final[dict[str, Ink]] = {
    **_all(
        """alignas auto break case const const_cast constexpr continue default delete do
        dynamic_cast else enum extern false for goto if inline mutable namespace new noexcept
        nullptr operator private public reinterpret_cast return sizeof static static_assert
        static_cast struct switch template this true typedef typename union using virtual
        volatile while __global__ __device__ __host__ __shared__ __constant__ __restrict__
        __launch_bounds__ __forceinline__ __noinline__""",
        "keyword",
    ),
    **_all(
        """bool char double float half half2 int int2 int3 int4 long short signed size_t unsigned
        void uint uint2 uint3 uint4 float2 float3 float4 dim3 int8_t int16_t int32_t int64_t
        uint8_t uint16_t uint32_t uint64_t __half __half2 __nv_bfloat16 cudaStream_t""",
        "type",
    ),
    **_all("threadIdx blockIdx blockDim gridDim warpSize", "api"),
}
_NKI_WORDS: Final[dict[str, Ink]] = {
    **_all(" ".join(keyword.kwlist), "keyword"),
    **_all("bool float int list tuple dict str", "type"),
}
_GROUPS: Final[dict[str, Ink]] = {
    "comment": "comment",
    "string": "string",
    "number": "number",
    "directive": "directive",
    "api": "api",
}


class Colouring:
    """The tokens of one text.  Remembers how far it has scanned."""

    def __init__(self, text: str, side: Side) -> None:
        self._text = text
        self._cuda = side == "cuda"
        scan = _CUDA_SCAN if self._cuda else _NKI_SCAN
        self._matches: Iterator[re.Match[str]] | None = scan.finditer(text)
        self._starts: list[int] = []
        self._regions: list[Token] = []

    def line(self, start: int, line: str) -> tuple[Token, ...]:
        """The tokens of a line (or the first part of it) that begins at offset `start`."""
        end = start + len(line)
        self._scan(end)
        tokens: list[Token] = []
        position = start
        first = max(0, bisect_right(self._starts, start) - 1)
        for region in self._regions[first:]:
            if region.start >= end:
                break
            if region.end <= position:
                continue
            tokens += self._tokens(line[: max(0, region.start - start)], position - start)
            covered = Token(max(0, region.start - start), min(end, region.end) - start, region.ink)
            if covered.end > covered.start:
                tokens.append(covered)
            position = min(end, region.end)
        tokens += self._tokens(line, position - start)
        return tuple(tokens)

    def _scan(self, end: int) -> None:
        """Find what crosses a line's end, up to `end`."""
        while self._matches is not None:
            if self._regions and self._regions[-1].start >= end:
                return
            match = next(self._matches, None)
            if match is None:
                self._matches = None
                return
            reached = match.start() >= end
            # What stays within its line is found again when that line is asked for; the
            # first match behind `end` is kept as a mark of how far the scan has come.
            if reached or self._text.find("\n", match.start(), match.end()) != -1:
                self._starts.append(match.start())
                self._regions.append(Token(match.start(), match.end(), _ink(match)))

    def _tokens(self, line: str, start: int) -> Iterator[Token]:
        pattern, words = (_CUDA_LINE, _CUDA_WORDS) if self._cuda else (_NKI_LINE, _NKI_WORDS)
        for match in pattern.finditer(line, start):
            if match.lastgroup == "word":
                word = match.group()
                ink = words.get(word)
                if ink is None and self._cuda and word.startswith("__"):
                    ink = "api"
                if ink is not None:
                    yield Token(match.start(), match.end(), ink)
            else:
                yield Token(match.start(), match.end(), _ink(match))


def _ink(match: re.Match[str]) -> Ink:
    # `fence` closes before `string`, so that the last group is always the outer one.
    return _GROUPS[match.lastgroup or ""]
