"""`migrate map`: advice for the kernels of a file, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrate.cli import OK, UNDETERMINED, USAGE, main

KERNEL = """
__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * 2.0f;
}
void run(const float* x, float* y, int n) { twice<<<(n + 255) / 256, 256>>>(x, y, n); }
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.cu").write_text(KERNEL)
    return "k.cu"


def test_text(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["map", file]) == OK
    shown = capsys.readouterr().out
    assert shown.startswith("k.cu:2:1: cuda kernel twice on trn2\n")
    assert "inferred      block [256] from the launch at k.cu:6" in shown
    assert "with dma_copy on dma" in shown
    assert "[elementwise.vector: Neuron SDK" in shown


def test_json_and_markdown(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["map", f"{file}::twice", "--format", "json", "--target", "trn1"]) == OK
    document = json.loads(capsys.readouterr().out)
    assert (document["schema_version"], document["target"]) == ("1", "trn1")
    (kernel,) = document["kernels"]
    kinds = [construct["kind"] for construct in kernel["constructs"]]
    assert kinds[0] == "tile-axis"
    assert kinds[-1] == "output-store"
    assert main(["map", file, "--format", "md", "-o", "advice.md"]) == OK
    assert Path("advice.md").read_text().startswith("# `k.cu` on trn2\n")


def test_nothing_understood(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_ = tmp_path / "open.cu"
    open_.write_text("template <int N> __global__ void k(float* x) { x[0] = N; }")
    assert main(["map", str(open_)]) == UNDETERMINED
    assert "template parameter N" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.cu"], "no such file"),
        (["k.cu::other"], "no kernel called other (there are: twice)"),
        (["case.toml"], "a case goes to --case"),
        (["k.txt"], "neither CUDA"),
        (["k.cu", "--target", "h100"], "invalid choice"),
        ([], "required: FILE"),
    ],
)
@pytest.mark.usefixtures("file")
def test_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["map", *arguments]) == USAGE
    assert message in capsys.readouterr().err
