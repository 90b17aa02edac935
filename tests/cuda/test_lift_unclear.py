"""What is not understood changes what it may, and no more; sizes may choose an index."""

from __future__ import annotations

import numpy as np
import pytest

from migrate.ir.nodes import Opaque, walk
from tests.cuda.lifting import agrees, lifted


@pytest.mark.parametrize(
    "statement",
    [
        "reinterpret_cast<unheard_of*>(y)[i] = x[i];",
        "reinterpret_cast<unheard_of*>(y)[i] += x[i];",
        "y[i] += *reinterpret_cast<const unheard_of*>(x);",
        "++reinterpret_cast<unheard_of*>(y)[i];",
        "atomicAdd(&y[i], *reinterpret_cast<const unheard_of*>(x));",
        "unheard_of(&y[i], x[i]);",
    ],
)
def test_a_store_that_is_not_understood_changes_the_array(statement: str) -> None:
    text = f"""
__global__ void k(const float* x, float* y, int n) {{
  const int i = threadIdx.x;
  if (i < n) {{
    {statement}
  }}
}}
"""
    made = lifted(text, (1,), (32,))
    changed = {
        version.buffer for op in walk(made.body) if isinstance(op, Opaque) for version in op.results
    }
    assert changed == {"y"}
    assert [output.version.buffer for output in made.outputs] == ["y"]
    assert made.statements.opaque == 1


@pytest.mark.parametrize("n", [64, 66, 3, 4])
@pytest.mark.parametrize(
    "choice",
    [
        "n % 4 == 0 ? n / 4 : 0",
        "n % 4 != 0 ? 0 : n / 4",
        "n >= 64 && n % 4 == 0 ? n / 4 : 0",
        "n < 5 || n == 66 ? 0 : n / 4",
    ],
)
def test_sizes_choose_how_often_a_loop_runs(n: int, choice: str) -> None:
    text = f"""
__global__ void k(const float* x, float* y, int n) {{
  const int fours = {choice};
  for (int i = threadIdx.x; i < fours; i += blockDim.x) {{
    for (int j = 0; j < 4; ++j) {{
      y[4 * i + j] = 2.0f * x[4 * i + j];
    }}
  }}
  for (int i = 4 * fours + threadIdx.x; i < n; i += blockDim.x) {{
    y[i] = 2.0f * x[i];
  }}
}}
"""
    x = np.arange(80, dtype=np.float32)
    made = agrees(text, x=x, y=np.zeros(80, np.float32), n=n, block=8)
    assert made.statements.opaque == 0


def test_shared_memory_whose_elements_have_no_size() -> None:
    made = lifted(
        """
__global__ void k(const float* x, float* y, int n) {
  extern __shared__ unsigned char extra[][][];
  const int i = threadIdx.x;
  if (i < n) {
    y[i] = x[i];
    extra[0][0][i] = 1;
  }
}
""",
        (1,),
        (32,),
    )
    reasons = [op.reason for op in walk(made.body) if isinstance(op, Opaque)]
    assert any("no size" in reason for reason in reasons)
    assert made.statements.coverage < 1.0
