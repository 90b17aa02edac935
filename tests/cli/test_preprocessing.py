"""`-D` and `-I`, and their keys in a case."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.cli import main

KERNEL = """#include "sizes.h"
__global__ void fill(float* out) {
#ifdef TWICE
  out[threadIdx.x] = 2.0f * VALUE;
#else
  out[threadIdx.x] = VALUE;
#endif
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "include").mkdir()
    (tmp_path / "include/sizes.h").write_text("#define VALUE 3.0f\n")
    path = tmp_path / "kernel.cu"
    path.write_text(KERNEL)
    return path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    main(["ir", *arguments])
    return capsys.readouterr().out


def test_a_macro_of_the_command_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "opaque" in shown(capsys, str(file))
    assert "opaque" not in shown(capsys, str(file), "-D", "VALUE=3.0f")
    assert "mul" not in shown(capsys, str(file), "-D", "VALUE=3.0f")
    assert "mul" in shown(capsys, str(file), "-DVALUE=out[0]", "-DTWICE")


def test_a_folder_to_include_from(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "opaque" not in shown(capsys, str(file), "-I", str(file.parent / "include"))


def test_the_keys_of_a_case(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = file.parent / "case.toml"
    case.write_text('[cuda]\nfile = "kernel.cu"\ninclude = ["include"]\n')
    assert "opaque" not in shown(capsys, str(file), "--case", str(case))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('include = ["missing"]', "no such file"),
        ('include = ["kernel.cu"]', "no folder"),
        ('include = [".."]', "leaves the folder"),
    ],
)
def test_folders_of_a_case_are_in_its_folder(
    file: Path, text: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    case = file.parent / "case.toml"
    case.write_text(f'[cuda]\nfile = "kernel.cu"\n{text}\n')
    assert main(["ir", str(file), "--case", str(case)]) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize("option", ["-D4=1", "-D=1", "-DA B=1", "-Ia/folder/that/is/none"])
def test_what_is_no_macro_and_no_folder(
    file: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["ir", str(file), option])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    assert code == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_kernel_that_is_left_out_is_named(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("#ifdef WIDE\n__global__ void wide(float* p) { p[0] = 1; }\n#endif\n" + KERNEL)
    assert main(["ir", f"{file}::wide"]) == 2
    assert f"{file}:2:21: wide is left out by '#ifdef WIDE' in line 1" in capsys.readouterr().err
    assert main(["ir", f"{file}::wide", "-DWIDE"]) == 0
