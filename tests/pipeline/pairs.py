"""Small pairs of kernels, written out as text, and comparing them without any file."""

from __future__ import annotations

from migrate.budget import Budget
from migrate.pipeline.compare import judged
from migrate.pipeline.completion import completed
from migrate.pipeline.kernels import Pair, pair_of_text
from migrate.results import Comparison

HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n"

VECTOR = """
__global__ void combine(const float* x, const float* y, float* z, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) z[i] = x[i] - y[i];
}
"""

LAUNCH = """
void run(const float* a, const float* b, float* c, int n) {
  dim3 block(128);
  dim3 grid((n + block.x - 1) / block.x);
  combine<<<grid, block>>>(a, b, c, n);
}
"""

VECTOR_NKI = """
@nki.jit
def combine(x, y):
    n = x.shape[0]
    out = nl.ndarray((n,), dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, n, 512):
        size = min(512, n - start)
        left = nl.ndarray((1, size), dtype=x.dtype, buffer=nl.sbuf)
        right = nl.ndarray((1, size), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=x[start : start + size].reshape((1, size)))
        nisa.dma_copy(dst=right, src=y[start : start + size].reshape((1, size)))
        nisa.tensor_tensor(dst=left, data1=left, data2=right, op=nl.subtract)
        nisa.dma_copy(dst=out[start : start + size].reshape((1, size)), src=left)
    return out
"""

SAXPY = """
__global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
void run(int n, float a, float* dx, float* dy) { saxpy<<<(n + 255) / 256, 256>>>(n, a, dx, dy); }
"""

SAXPY_NKI = """
@nki.jit
def saxpy(a, x, y):
    n = x.shape[0]
    out = nl.ndarray((n,), dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, n, 512):
        size = min(512, n - start)
        left = nl.ndarray((1, size), dtype=x.dtype, buffer=nl.sbuf)
        right = nl.ndarray((1, size), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=x[start : start + size].reshape((1, size)))
        nisa.dma_copy(dst=right, src=y[start : start + size].reshape((1, size)))
        nisa.tensor_scalar(dst=left, data=left, op0=nl.multiply, operand0=a)
        nisa.tensor_tensor(dst=left, data1=left, data2=right, op=nl.add)
        nisa.dma_copy(dst=out[start : start + size].reshape((1, size)), src=left)
    return out
"""

MATRIX = """
__global__ void add(const float* a, const float* b, float* c, int rows, int cols) {
  int r = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows && col < cols) c[r * cols + col] = a[r * cols + col] + b[r * cols + col];
}
void run(const float* a, const float* b, float* c, int rows, int cols) {
  dim3 block(32, 8);
  dim3 grid((cols + block.x - 1) / block.x, (rows + block.y - 1) / block.y);
  add<<<grid, block>>>(a, b, c, rows, cols);
}
"""

MATRIX_NKI = """
@nki.jit
def add(a, b):
    rows, cols = a.shape
    out = nl.ndarray((rows, cols), dtype=a.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, 128):
        size = min(128, rows - start)
        left = nl.ndarray((size, cols), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((size, cols), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a[start : start + size, :])
        nisa.dma_copy(dst=right, src=b[start : start + size, :])
        nisa.tensor_tensor(dst=left, data1=left, data2=right, op=nl.add)
        nisa.dma_copy(dst=out[start : start + size, :], src=left)
    return out
"""

ROWS = """
template <typename T, int THREADS>
__global__ void scale_rows(const T* x, const T* gamma, T* y, int D, float shift) {
  for (int i = threadIdx.x; i < D; i += THREADS)
    y[blockIdx.x * D + i] = x[blockIdx.x * D + i] * gamma[i] + shift;
}
void run(const float* x, const float* g, float* y, int batch, int seq, int D) {
  scale_rows<float, 256><<<batch * seq, 256>>>(x, g, y, D, 0.125f);
}
"""

ROWS_NKI = """
@nki.jit
def scale_rows(x, gamma):
    rows, D = x.shape
    _, width = gamma.shape
    y = nl.ndarray((rows, D), dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, 128):
        size = min(128, rows - start)
        tile = nl.ndarray((size, D), dtype=x.dtype, buffer=nl.sbuf)
        scale = nl.ndarray((size, D), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[start : start + size, :])
        for r in range(size):
            nisa.dma_copy(dst=scale[r : r + 1, :], src=gamma)
        nisa.tensor_tensor(dst=tile, data1=tile, data2=scale, op=nl.multiply)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=0.125)
        nisa.dma_copy(dst=y[start : start + size, :], src=tile)
    return y
"""

TRANSPOSE = """
__global__ void turn(const float* in, float* out, int rows, int cols) {
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  if (c < cols && r < rows) out[c * rows + r] = in[r * cols + c];
}
"""

COPY_NKI = """
@nki.jit
def turn(x):
    rows, cols = x.shape
    out = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, 128):
        size = min(128, rows - start)
        tile = nl.ndarray((size, cols), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[start : start + size, :])
        nisa.dma_copy(dst=out[start : start + size, :], src=tile)
    return out
"""

PRODUCT = """
__global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
  int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  if (row >= m || col >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
  c[row * n + col] = sum;
}
"""

PRODUCT_NKI = """
@nki.jit
def product(lhs, rhs):
    k, m = lhs.shape
    _, n = rhs.shape
    out = nl.ndarray((m, n), dtype=lhs.dtype, buffer=nl.shared_hbm)
    left = nl.ndarray((k, m), dtype=lhs.dtype, buffer=nl.sbuf)
    right = nl.ndarray((k, n), dtype=lhs.dtype, buffer=nl.sbuf)
    total = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.psum)
    tile = nl.ndarray((m, n), dtype=lhs.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=lhs)
    nisa.dma_copy(dst=right, src=rhs)
    nisa.nc_matmul(dst=total, stationary=left, moving=right)
    nisa.tensor_copy(dst=tile, src=total)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""


def inferred(cuda: str, nki: str, case: str | None = None) -> Pair:
    """The pair with its case completed."""
    return completed(pair_of_text(cuda, HEAD + nki, case))


def compared(cuda: str, nki: str, case: str | None = None) -> Comparison:
    """The comparison by reading alone."""
    return judged(inferred(cuda, nki, case), run="never", budget=Budget())
