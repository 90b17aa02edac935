"""Finding included files: in the folders that were given, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.cuda.includes import finder
from migrate.cuda.parse import parse
from migrate.source import Source, SourceError, read


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "secret.h": "int secret;",
        "repo/src/a.cu": "int a;",
        "repo/src/near.h": '#include "deep/inner.h"\nint near_;',
        "repo/src/deep/inner.h": "int inner;",
        "repo/include/lib/api.h": "int api;",
        "repo/other/near.h": "int other;",
        "repo/one/twin.h": "int one;",
        "repo/two/twin.h": "int two;",
        "repo/src/latin.h": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "repo/src/latin.h").write_bytes(b"// \xe9\n")
    (tmp_path / "repo/src/link.h").symlink_to(tmp_path / "secret.h")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("near.h", "int near_;"),
        ("deep/inner.h", "int inner;"),
        ("../other/near.h", "int other;"),
        ("include/lib/api.h", "int api;"),
        ("lib/api.h", "int api;"),
        ("api.h", "int api;"),
        ("twin.h", None),
        ("one/twin.h", "int one;"),
        ("missing.h", None),
        ("latin.h", "// \xe9"),
        ("../../secret.h", None),
        ("link.h", None),
        ("", None),
        ("x" * 2000, None),
        ("a\0b", None),
    ],
)
def test_where_a_name_leads(tree: Path, name: str, expected: str | None) -> None:
    find = finder([tree / "repo"])
    found = find(name, read(tree / "repo/src/a.cu"))
    assert (found is None) if expected is None else (found is not None and expected in found.text)


def test_an_absolute_name_leads_nowhere_else(tree: Path) -> None:
    find = finder([tree / "repo"])
    assert find(str(tree / "secret.h"), read(tree / "repo/src/a.cu")) is None


def test_a_header_looks_beside_itself(tree: Path) -> None:
    source = Source.of('#include "near.h"\n', str(tree / "repo/src/a.cu"))
    program = parse(source, include=finder([tree / "repo"]))
    assert b"inner" in program.expanded.text
    at = program.expanded.text.index(b"inner")
    span = program.expanded.span(at, at + 5)
    assert span.file.endswith("inner.h")
    assert [frame.name for frame in span.via] == ["near.h", "deep/inner.h"]


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no folder"):
        finder([tmp_path / "missing"])


def test_a_file_that_includes_itself_has_its_kernels_once(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text('#include "k.cu"\n__global__ void k(float* x) {}\n')
    (kernel,) = parse(read(path), include=finder([tmp_path])).kernels
    assert kernel.span.via == ()
    assert kernel.span.start_line == 2


def test_a_text_that_is_included_with_other_macros_is_another_one(tmp_path: Path) -> None:
    (tmp_path / "body.h").write_text("__global__ void k(T* x) {}\n")
    path = tmp_path / "k.cu"
    twice = "".join(f'#define T {t}\n#include "body.h"\n#undef T\n' for t in ("int", "float"))
    path.write_text(twice)
    assert len(parse(read(path), include=finder([tmp_path])).kernels) == 2


def test_bytes_that_are_no_utf8_are_columns(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_bytes(b"/* \xe9\x81\xff */ __global__ void k(float* x) {}\n")
    source = read(path)
    (kernel,) = parse(source).kernels
    assert kernel.span.start_column == 11
    assert source.excerpt(kernel.span) == "__global__ void k(float* x) {}"
