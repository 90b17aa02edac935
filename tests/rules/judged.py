"""Small pairs for the tests of rules: a CUDA kernel, an NKI kernel, and what is found."""

from __future__ import annotations

import migrate
from migrate.results import Comparison, Finding

HEADER = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def k(x):
    rows, cols = x.shape
    y = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
"""

CASE = """\
[cuda]
kernel = "k"
grid = ["R"]
block = [1]
[nki]
kernel = "k"
target = "trn2"
[sizes]
R = {rows}
C = {cols}
[[tensor]]
name = "x"
shape = ["R", "C"]
dtype = "float32"
role = "in"
cuda = "x_all"
nki = "x"
[[tensor]]
name = "y"
shape = ["R", "C"]
dtype = "float32"
role = "out"
cuda = "y_all"
nki_out = 0
[[scalar]]
name = "cols"
value = "C"
cuda = "cols"
dtype = "int32"
"""


def compared(cuda: str, nki: str, rows: int, cols: int) -> Comparison:
    """A kernel over the rows of x: `cuda` with `x`, `y` of the row, `nki` after `HEADER`."""
    lines = "".join(f"    {line}\n" for line in nki.strip("\n").split("\n"))
    text = f"""
    __global__ void k(const float* x_all, float* y_all, int cols) {{
      const float* x = x_all + blockIdx.x * cols;
      float* y = y_all + blockIdx.x * cols;
      {cuda}
    }}
    """
    case = CASE.format(rows=rows, cols=cols)
    nki_text = f"{HEADER}{lines}    return y\n"
    return migrate.compare_text(text, nki_text, case=case, run="never")


def by(result: Comparison, rule: str) -> list[Finding]:
    """The findings of one rule."""
    return [finding for finding in result.findings if finding.rule == rule]


def line(finding: Finding) -> int:
    """The line of a finding, counted from 1 after `HEADER`."""
    return finding.span.start_line - HEADER.count("\n")
