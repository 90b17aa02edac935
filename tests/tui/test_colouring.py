"""Colours of a line: what crosses a line's end included."""

import pytest

from migrate.source import Source
from migrate.tui.colouring import Colouring


def inks(text, side, number, *, first=()):
    """The coloured parts of a line; `first` are lines asked for before it."""
    source = Source.of(text, "source")
    colouring = Colouring(source.text, side)
    for early in (*first, number):
        line = source.line(early)
        tokens = colouring.line(source.offset(early), line)
    return [(line[token.start : token.end], token.ink) for token in tokens]


CUDA = """\
#include <cuda_runtime.h>
/* one
   two */ int x = 1'000; // it's "fine"
const char* s = R"(a // b
c)"; float y = 1e-3f;
__global__ void k() { __syncthreads(); }
// on \\
and on
char c = '"'; int z;
"""
NKI = '''\
"""doc # not a comment
still 'doc'
"""
@nki.jit
def k(x):  # it's
    a = nl.load(x); s = "a\\"b"
    return 0x1F
'''


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1, [("#include <cuda_runtime.h>", "directive")]),
        (2, [("/* one", "comment")]),
        (
            3,
            [
                ("   two */", "comment"),
                ("int", "type"),
                ("1'000", "number"),
                ('// it\'s "fine"', "comment"),
            ],
        ),
        (4, [("const", "keyword"), ("char", "type"), ('R"(a // b', "string")]),
        (5, [('c)"', "string"), ("float", "type"), ("1e-3f", "number")]),
        (6, [("__global__", "keyword"), ("void", "type"), ("__syncthreads", "api")]),
        (7, [("// on \\", "comment")]),
        (8, [("and on", "comment")]),
        (9, [("char", "type"), ("'\"'", "string"), ("int", "type")]),
    ],
)
def test_cuda(number, expected):
    assert inks(CUDA, "cuda", number) == expected
    assert inks(CUDA, "cuda", number, first=(9, 1)) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1, [('"""doc # not a comment', "string")]),
        (2, [("still 'doc'", "string")]),
        (3, [('"""', "string")]),
        (4, [("@nki.jit", "directive")]),
        (5, [("def", "keyword"), ("# it's", "comment")]),
        (6, [("nl.load", "api"), ('"a\\"b"', "string")]),
        (7, [("return", "keyword"), ("0x1F", "number")]),
    ],
)
def test_nki(number, expected):
    assert inks(NKI, "nki", number) == expected
    assert inks(NKI, "nki", number, first=(7, 1)) == expected


@pytest.mark.parametrize("side", ["cuda", "nki"])
@pytest.mark.parametrize(
    "text", ["/* open\nx", 'R"(open\nx', '"""open\nx', "'''open\\\nx\\", '"open\nx', "'\nx"]
)
def test_what_is_left_open_ends_with_the_text(text, side):
    source = Source.of(text, "source")
    colouring = Colouring(text, side)
    for number in (1, 2):
        line = source.line(number)
        tokens = colouring.line(source.offset(number), line)
        assert all(0 <= token.start < token.end <= len(line) for token in tokens)
        assert list(tokens) == sorted(tokens)
