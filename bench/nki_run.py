"""How long NKI kernels take on the CPU, against the same tiles written in plain NumPy.

    python bench/nki_run.py [--repeat N] [--only NAME] [--check]

A matrix product of 512 x 512 x 512 and a softmax of 4096 x 2048, both in float32.  The kernel is
parsed once; what is measured is `simulate` in the default order, from its arguments to its
results, so with specialising.  Kernel and NumPy run in turn in one process, one thread a library;
seconds are the processor's, and the fastest of the repeats counts for both.  Results must agree.
`--check` ends with exit code 1 where a kernel takes more than `LIMIT` times as long.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from migrate.nki.parse import parse  # noqa: E402
from migrate.nki.simulate import simulate  # noqa: E402
from migrate.numerics.rounded import Rounded  # noqa: E402
from migrate.source import Source  # noqa: E402

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

LIMIT = 3.0

MATMUL = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(lhs_t, rhs):
    k, m = lhs_t.shape
    _, n = rhs.shape
    out = nl.ndarray((m, n), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(m // 128):
        for j in nl.affine_range(n // 512):
            product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for c in nl.affine_range(k // 128):
                left = nl.ndarray((128, 128), dtype=lhs_t.dtype, buffer=nl.sbuf)
                right = nl.ndarray((128, 512), dtype=rhs.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=left, src=lhs_t[nl.ds(c * 128, 128), nl.ds(i * 128, 128)])
                nisa.dma_copy(dst=right, src=rhs[nl.ds(c * 128, 128), nl.ds(j * 512, 512)])
                nisa.nc_matmul(dst=product, stationary=left, moving=right)
            result = nl.ndarray((128, 512), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=product)
            nisa.dma_copy(dst=out[nl.ds(i * 128, 128), nl.ds(j * 512, 512)], src=result)
    return out
"""

SOFTMAX = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(x):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(rows // 128):
        tile = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
        low = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[nl.ds(i * 128, 128), :])
        nisa.tensor_reduce(dst=low, op=nl.maximum, data=tile, axis=1, negate=True)
        nisa.activation(dst=tile, op=nl.exp, data=tile, bias=low)
        nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1)
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=out[nl.ds(i * 128, 128), :], src=tile)
    return out
"""


def matmul(lhs_t: Array, rhs: Array) -> Array:
    """The product, tile by tile as the kernel computes it."""
    k, m = lhs_t.shape
    _, n = rhs.shape
    out = np.empty((m, n), np.float32)
    for i in range(0, m, 128):
        for j in range(0, n, 512):
            product = np.zeros((128, 512), np.float32)
            for c in range(0, k, 128):
                left = lhs_t[c : c + 128, i : i + 128].copy()
                right = rhs[c : c + 128, j : j + 512].copy()
                product += left.T @ right
            out[i : i + 128, j : j + 512] = product.copy()
    return out


def softmax(x: Array) -> Array:
    """The softmax, tile by tile as the kernel computes it."""
    out = np.empty_like(x)
    for i in range(0, len(x), 128):
        tile = x[i : i + 128].copy()
        low = -tile.max(axis=1, keepdims=True)
        tile = np.exp(tile + low)
        total = tile.sum(axis=1, keepdims=True)
        tile = tile * (1 / total)
        out[i : i + 128] = tile
    return out


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel, the same in NumPy, and arguments for both."""

    name: str
    kernel: str
    plain: Callable[..., Array]
    args: tuple[Array, ...]


def subjects() -> tuple[Subject, ...]:
    """Both kernels with inputs of a fixed seed."""
    drawn = np.random.default_rng(0)

    def normal(*shape: int) -> Array:
        return drawn.standard_normal(shape, np.float32)

    return (
        Subject("matmul 512x512x512", MATMUL, matmul, (normal(512, 512), normal(512, 512))),
        Subject("softmax 4096x2048", SOFTMAX, softmax, (normal(4096, 2048),)),
    )


def measured(subject: Subject, repeat: int) -> tuple[float, float]:
    """Seconds of the kernel and of NumPy, the fastest of each."""
    module = parse(Source.of(subject.kernel, f"{subject.plain.__name__}.py"))
    plain = kernel = float("inf")
    for _ in range(repeat):
        wanted, seconds = timed(lambda: subject.plain(*subject.args))
        plain = min(plain, seconds)
        # Memory that the system hands out anew is slow: both find that of the last repeat.
        total = float(wanted.sum())
        del wanted
        found, seconds = timed(lambda: simulate(module, "kernel", subject.args, domain=Rounded()))
        kernel = min(kernel, seconds)
        if not found.complete or found.happenings:
            raise SystemExit(f"{subject.name}: {found.happenings} {found.specialization.events}")
        np.testing.assert_allclose(float(found.outputs[0].sum()), total, rtol=1e-3)
        del found
    np.testing.assert_allclose(
        simulate(module, "kernel", subject.args, domain=Rounded()).outputs[0],
        subject.plain(*subject.args),
        rtol=1e-4,
        atol=1e-4,
    )
    return kernel, plain


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call gives, and the seconds it takes of a processor."""
    began = time.process_time()
    found = call()
    return found, time.process_time() - began


def main() -> int:
    """Print a line a kernel."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=25)
    parser.add_argument("--only", default="", help="kernels with this in their name")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    late = False
    for subject in subjects():
        if options.only not in subject.name:
            continue
        kernel, plain = measured(subject, options.repeat)
        late = late or kernel > LIMIT * plain
        print(
            f"{subject.name:20} {1e3 * kernel:8.2f} ms, NumPy {1e3 * plain:8.2f} ms:"
            f" {kernel / plain:5.2f} times as long"
        )
    return 1 if options.check and late else 0


if __name__ == "__main__":
    sys.exit(main())
