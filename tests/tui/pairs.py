"""A pair with one of everything: what the tests of the review look at."""

from __future__ import annotations

from typing import Any

import msgspec

from migrate.results import (
    Comparison,
    Construct,
    ConstructSide,
    Coverage,
    Finding,
    Inputs,
    OutputResult,
    Related,
    Run,
    Score,
    Subject,
    Tool,
    Witness,
)
from migrate.source import Frame, Source
from migrate.tui.model import Review
from tests.examples import span

CUDA = Source.of(
    """\
// Each row is divided by its largest element.
#include <cuda_runtime.h>

#define WARP 32

__global__ void row_scale(const float* x, float* y, int cols) {
  extern __shared__ float partial[];
  const float* row = x + blockIdx.x * cols;
  float top = -INFINITY;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    top = fmaxf(top, row[c]);
  }
  for (int step = WARP / 2; step > 0; step /= 2) {
    top = fmaxf(top, __shfl_down_sync(0xffffffffu, top, step));
  }
  if (threadIdx.x % WARP == 0) {
    partial[threadIdx.x / WARP] = top;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < blockDim.x / WARP; ++w) {
      top = fmaxf(top, partial[w]);
    }
    partial[0] = top;
  }
  __syncthreads();
  /* the same
     value for all */
  top = partial[0];
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    y[blockIdx.x * cols + c] = row[c] / top;
  }
}

void run_row_scale(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
  row_scale<<<rows, 256, 8 * sizeof(float), stream>>>(x, y, cols);
}
""",
    "kernel.cu",
)

NKI = Source.of(
    '''\
"""Each row is divided by its largest element.

A row to a partition.
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def row_scale(x):
    rows, cols = x.shape
    y = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
    for first in range(0, rows, nl.tile_size.pmax):
        count = min(nl.tile_size.pmax, rows - first)
        tile = nl.ndarray((count, cols), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[first : first + count, :])
        top = nl.ndarray((count, 1), dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=top, data=tile, op=nl.add, axis=1)
        scaled = nl.ndarray((count, cols), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=scaled, src=tile)
        nisa.tensor_scalar(dst=scaled, data=tile, op0=nl.divide, operand0=top)
        nisa.dma_copy(dst=y[first : first + count, :], src=scaled)
    return y
''',
    "kernel.py",
)

SOURCES = {"kernel.cu": CUDA, "kernel.py": NKI}


def on(source: Source, *texts: tuple[str, str]) -> tuple[ConstructSide, ...]:
    """Places by their text, each with a summary."""
    return tuple(ConstructSide(summary=summary, span=span(source, text)) for text, summary in texts)


CONSTRUCTS = (
    Construct(
        id="c1",
        kind="tile-axis",
        verdict="transformed",
        mapping="axis.block-to-partition",
        reason="a block's row becomes a partition of a tile",
        cuda=on(CUDA, ("blockIdx.x * cols;", "grid rows")),
        nki=on(
            NKI,
            ("for first in range(0, rows, nl.tile_size.pmax)", "tiles of 128 rows"),
            ("min(nl.tile_size.pmax, rows - first)", "the last tile"),
        ),
    ),
    Construct(
        id="c2",
        kind="initial-value",
        verdict="missing",
        reason="nothing starts at minus infinity",
        cuda=on(CUDA, ("float top = -INFINITY;", "-inf")),
        findings=("f1",),
    ),
    Construct(
        id="c3",
        kind="reduction",
        verdict="mismapped",
        mapping="reduction.block",
        reason="the operators differ",
        cuda=on(
            CUDA,
            (CUDA.text[CUDA.text.index("for (int c") : CUDA.text.index("  __syncthreads")], "max"),
        ),
        nki=on(NKI, ("nisa.tensor_reduce(dst=top, data=tile, op=nl.add, axis=1)", "sum over cols")),
        findings=("f1", "f2"),
    ),
    Construct(
        id="c4",
        kind="barrier",
        verdict="not-needed",
        reason="the engines wait for what they read",
        cuda=on(CUDA, ("__syncthreads();", "block barrier")),
    ),
    Construct(
        id="c5",
        kind="stage-in",
        verdict="matched",
        mapping="memory.stage-in",
        reason="the row is read once",
        cuda=on(CUDA, ("row[c])", "load x")),
        nki=on(NKI, ("nisa.dma_copy(dst=tile, src=x[first : first + count, :])", "load x")),
    ),
    Construct(
        id="c6",
        kind="elementwise",
        verdict="extra",
        reason="nothing in the CUDA kernel copies the tile",
        nki=on(NKI, ("nisa.tensor_copy(dst=scaled, src=tile)", "copy")),
        findings=("f4",),
    ),
    Construct(
        id="c7",
        kind="elementwise",
        verdict="matched",
        mapping="elementwise.scalar",
        reason="one instruction divides each row by its own scalar",
        cuda=on(CUDA, ("row[c] / top", "divide")),
        nki=on(
            NKI, ("nisa.tensor_scalar(dst=scaled, data=tile, op0=nl.divide, operand0=top)", "÷")
        ),
    ),
    Construct(
        id="c8",
        kind="opaque",
        verdict="unknown",
        reason="a macro that is not followed",
        cuda=on(CUDA, ("__shfl_down_sync(0xffffffffu, top, step)", "not understood")),
    ),
)

FINDINGS = (
    Finding(
        id="f3",
        rule="API401",
        family="api",
        severity="note",
        effect="style",
        message="the import is not used under its own name",
        side="nki",
        span=span(NKI, "import nki.isa as nisa"),
    ),
    Finding(
        id="f1",
        rule="MAP104",
        family="mapping",
        severity="error",
        effect="wrong",
        message="reduces with add where the CUDA kernel takes the maximum",
        side="nki",
        span=msgspec.structs.replace(
            span(NKI, "op=nl.add"),
            via=(Frame(kind="call", name="row_scale", file="kernel.py", line=12, column=1),),
        ),
        related=(Related(side="cuda", span=span(CUDA, "fmaxf(top, row[c])"), note="the maximum"),),
        witness=Witness(
            found_by="evaluation",
            sizes={"rows": 2, "cols": 3},
            inputs=Inputs(family="normal", seed=1),
            output="y",
            index=(0, 2),
            cuda=1.0,
            nki=-0.25,
        ),
        points=-40.0,
    ),
    Finding(
        id="f2",
        rule="NUM301",
        family="numerics",
        severity="warning",
        effect="inaccurate",
        message="the result is kept in bfloat16",
        side="nki",
        span=span(NKI, "dtype=nl.bfloat16"),
        points=-4.0,
    ),
    Finding(
        id="f4",
        rule="MAP107",
        family="mapping",
        severity="warning",
        effect="slow",
        message="copies a tile that is overwritten at once",
        side="nki",
        span=span(NKI, "nisa.tensor_copy(dst=scaled, src=tile)"),
        suppressed="kept for a trace",
    ),
)

RUNS = (
    Run(
        sizes={"rows": 128, "cols": 512},
        inputs=Inputs(family="normal"),
        status="fail",
        outputs=(
            OutputResult(
                name="y",
                status="fail",
                elements=65536,
                mismatched=65000,
                first_mismatch=(0, 0),
                max_abs=0.7,
                allowed=1.2e-6,
            ),
        ),
    ),
    Run(
        sizes={"rows": 1, "cols": 1},
        inputs=Inputs(family="ones"),
        status="pass",
        outputs=(OutputResult(name="y", status="pass", elements=1, max_abs=0.0, allowed=1e-7),),
    ),
    Run(
        sizes={"rows": 10**6, "cols": 512},
        inputs=Inputs(family="normal"),
        status="not-run",
        reason="needs more memory than the budget allows",
    ),
)


def comparison(**changes: Any) -> Comparison:
    """The result."""
    made = Comparison(
        tool=Tool(facts="0" * 16),
        deterministic=True,
        cuda=Subject(file="kernel.cu", kernel="row_scale", digest=CUDA.digest),
        nki=Subject(
            file="kernel.py", kernel="row_scale", digest=NKI.digest, target="trn2", version="0.6"
        ),
        verdict="not-faithful",
        confidence=0.93,
        correspondence=0.8,
        score=Score(fidelity=38.0, mapping=60.0, hardware=100.0, numerics=85.0),
        coverage=Coverage(cuda=0.96, nki=1.0),
        reasons=("y differs at [0, 2]",),
        inferred=("the grid, from the launch in run_row_scale",),
        constructs=CONSTRUCTS,
        findings=FINDINGS,
        runs=RUNS,
    )
    return msgspec.structs.replace(made, **changes)


def review(**changes: Any) -> Review:
    """A review that begins."""
    return Review.of(comparison(**changes), SOURCES)


def line(source: Source, text: str) -> int:
    """The line on which a text begins."""
    return span(source, text).start_line
