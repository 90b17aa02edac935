"""CUDA in Python strings: which texts are found, and where their places point."""

from __future__ import annotations

import pytest

from migrate.cuda.embedded import Texts, embedded
from migrate.cuda.parse import parse
from migrate.source import Source, SourceError

KERNEL = "__global__ void scale(float* x) { x[threadIdx.x] *= 2.0f; }"


def texts(python: str) -> Texts:
    return embedded(Source.of(python, "a.py"))


def only(python: str) -> str:
    (text,) = texts(python).texts
    return text.text


@pytest.mark.parametrize(
    ("python", "text"),
    [
        (f'"""{KERNEL}"""', KERNEL),
        (f"SRC = r'''{KERNEL}'''", KERNEL),
        (f'k = cp.RawKernel("{KERNEL}", "scale")', KERNEL),
        (f'mod = SourceModule(dedent("""{KERNEL}"""))', KERNEL),
        (f'f(cuda_sources=["int a;", "{KERNEL}"])', f"int a;\n{KERNEL}\n"),
        (f'A = "int a;"\nB = "{KERNEL}"\nf(cuda_sources=[A, B])', f"int a;\n{KERNEL}\n"),
        (f'A = "int a;"\nB = "{KERNEL}"\nC = A + B', f"int a;{KERNEL}"),
        (f's = ("int a;\\n"  # first\n   "{KERNEL}")', f"int a;\n{KERNEL}"),
        (f's = f"{KERNEL.replace("{", "{{").replace("}", "}}")}"', KERNEL),
        ('s = "/* \\u00e9\\t\\x41 */' + KERNEL + '"', f"/* é\tA */{KERNEL}"),
        ('s = "int \\\n a;' + KERNEL + '"', f"int  a;{KERNEL}"),
        (
            f'def f():\n    """Stands for:\n\n    {KERNEL}\n    """',
            f"Stands for:\n\n    {KERNEL}\n    ",
        ),
    ],
)
def test_found(python: str, text: str) -> None:
    assert only(python) == text


@pytest.mark.parametrize(
    "python",
    [
        "x = 1",
        '"""Speaks of __global__ functions."""',
        '"__global__ void declared(int n);"',
        "__global__ = 2",
        f"# {KERNEL}",
    ],
)
def test_nothing(python: str) -> None:
    assert texts(python) == Texts((), ())


@pytest.mark.parametrize(
    ("python", "reason"),
    [
        (f's = f"{KERNEL.replace("{", "{{").replace("}", "}}")} int a[{{n}}];"', "f-string"),
        (f's = "{KERNEL}" % n', "`%`"),
        (f'S = "{KERNEL}"\nt = S % n', "S is a pattern"),
        (f'S = "{KERNEL}"\nt = S.replace("x", "y")', "S is a pattern"),
        (f's = "{KERNEL}".format(n)', ".format()"),
        (f'A = "int a;"\nA = "int b;{KERNEL}"\ns = A + "{KERNEL}"', "more than once"),
    ],
)
def test_what_the_program_fills_in_is_refused(python: str, reason: str) -> None:
    found = texts(python)
    refused = found.refused[-1]
    assert reason in refused.reason
    assert refused.kernels == ("scale",)
    assert refused.span.file == "a.py"


PYTHON = """import cupy

NAME = "é"
SRC = (
    "// é first\\n"
    'extern "C" '
    r'''
__global__ void twice(float *x, int n) {
  int i = threadIdx.x; /* ü */ if (i < n) x[i] = x[i] * 2.0f;
}
'''
    "__global__ void\\tthrice(float *x)\\x20{ x[0] *= 3.0f; }"
)
"""


def test_places_are_those_of_the_python_file() -> None:
    source = Source.of(PYTHON, "k.py")
    (text,) = embedded(source).texts
    program = parse(text)
    twice, thrice = program.kernels
    assert (twice.name, thrice.name) == ("twice", "thrice")
    assert source.excerpt(twice.span).startswith("__global__ void twice")
    assert source.excerpt(twice.span).endswith("}")
    assert source.excerpt(thrice.span) == "__global__ void\\tthrice(float *x)\\x20{ x[0] *= 3.0f; }"
    assert (twice.span.start_line, twice.span.start_column) == (8, 1)
    statement = program.source.encoded.index(b"x[i] = ")
    span = program.source.span(statement, statement + 6)
    assert (span.start_line, source.excerpt(span)) == (9, "x[i] =")
    escaped = program.source.encoded.index(b"\t")
    assert source.excerpt(program.source.span(escaped, escaped + 1)) == "\\t"


def test_windows_lines() -> None:
    source = Source.of(f'a = 1\r\nS = """int a;\r\n{KERNEL}"""\r\n', "k.py")
    (text,) = embedded(source).texts
    assert text.text == f"int a;\n{KERNEL}"
    (kernel,) = parse(text).kernels
    assert source.excerpt(kernel.span) == KERNEL


def test_macros_of_the_compiling_call() -> None:
    python = f'S = "{KERNEL}"\nm = cp.RawModule(code=S, options=("-DN=4", "-DFAST", "-O3"))'
    (text,) = texts(python).texts
    assert text.defines == {"N": "4", "FAST": "1"}


def test_broken_python_is_refused_with_its_place() -> None:
    with pytest.raises(SourceError, match="not Python"):
        texts(f'"""{KERNEL}"""\nx = (')


def test_long_sums_are_read_and_endless_ones_refused() -> None:
    lines = " + ".join([f'"{KERNEL}"', *(f'"int a{i};\\n"' for i in range(90))])
    assert only(f"S = {lines}").endswith("int a89;\n")
    grown = "\n".join(f"a{i} = a{i - 1} + a{i - 1} + a{i - 1}" for i in range(1, 60))
    found = texts(f'a0 = "{KERNEL}"\n{grown}')
    assert sum(len(text.text) for text in found.texts) < 50_000_000
