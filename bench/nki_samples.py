"""The kernels of aws-neuron/nki-samples run on the CPU, against the repository's own references.

    python bench/nki_samples.py CHECKOUT [--only TEXT] [--docs FILE]

Each kernel is run on inputs of the sizes and kinds that the repository checks it with, and its
results are held to what the repository computes beside it, with the repository's tolerances.
Nothing of the checkout is executed by Python: kernels are interpreted by `migrate.run`, and what
the repository computes with NumPy, PyTorch or JAX is written here anew, by the operation's name.
`--docs` writes the table as Markdown.  Exits 1 where a kernel does not agree.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import migrate
from migrate.budget import Budget
from migrate.nki.parse import parse
from migrate.numerics.dtypes import DType
from migrate.source import SourceError, read

BF16 = ml_dtypes.bfloat16
BUDGET = Budget(steps=400_000_000, bytes=6 * 1024**3, seconds=1800.0)
TUTORIALS = "src/nki_samples/tutorials"


@dataclass(frozen=True, slots=True)
class Sample:
    """A kernel, arguments, what it must give, and how closely (`numpy.allclose`)."""

    file: str
    kernel: str
    args: Callable[[], tuple[Any, ...]]
    reference: Callable[..., Any]
    against: str
    atol: float = 1e-8
    rtol: float = 1e-5
    exact: bool = False
    options: dict[str, Any] = field(default_factory=dict)


def drawn(shape: tuple[int, ...], dtype: Any = np.float32, low: float = 0.0) -> Any:
    """Uniform numbers below 1."""
    numbers = np.random.default_rng(0).random(shape) * (1 - low) + low
    return numbers.astype(dtype)


def two(shape: tuple[int, ...], dtype: Any) -> Callable[[], tuple[Any, ...]]:
    return lambda: (drawn(shape, dtype), drawn(shape, dtype)[::-1].copy())


def product(left: Any, right: Any, *_: Any) -> Any:
    """`left.T @ right` in float32, rounded to the operands' format."""
    return (left.astype(np.float32).T @ right.astype(np.float32)).astype(left.dtype)


def transposed(x: Any, shape: tuple[int, int]) -> Any:
    return x.reshape(-1, *shape).transpose(0, 2, 1).reshape(x.shape)


def average_pool(x: Any, size: int) -> Any:
    channels, height, width = x.shape
    return np.nanmean(
        x.reshape(channels, height // size, size, width // size, size), axis=(2, 4)
    ).astype(x.dtype)


def max_pool(x: Any, size: int) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size))
    return windows.max(axis=(2, 3))


def doubled(x: Any, axis: int) -> Any:
    """Linear interpolation to twice the size along an axis, corners not aligned."""
    x = np.moveaxis(x, axis, -1)
    first, last = x[..., :1], x[..., -1:]
    before = np.concatenate([first, x[..., :-1]], axis=-1)
    after = np.concatenate([x[..., 1:], last], axis=-1)
    even, odd = 0.75 * x + 0.25 * before, 0.75 * x + 0.25 * after
    return np.moveaxis(np.stack([even, odd], axis=-1).reshape(*x.shape[:-1], -1), -1, axis)


def interpolated(x: Any) -> Any:
    """Twice the size along every axis but the first two."""
    for axis in range(2, x.ndim):
        x = doubled(x, axis)
    return x


def attention(q: Any, k: Any, v: Any) -> Any:
    """Softmax of `q.T @ k` by rows, times `v.T`."""
    scores = q.astype(np.float32).T @ k.astype(np.float32)
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (scores / scores.sum(axis=1, keepdims=True)) @ v.astype(np.float32).T


def flash(q: Any, k: Any, v: Any) -> Any:
    """Attention with scores scaled by 1/8 and kept in bfloat16, some rows at a time."""
    rows = (q[0] * BF16(0.125)).astype(np.float32).T
    keys, values = k[0].astype(np.float32), v[0].astype(np.float32)
    out = np.empty((1, q.shape[2], q.shape[1]), BF16)
    for first in range(0, len(rows), 512):
        scores = (rows[first : first + 512] @ keys).astype(BF16).astype(np.float32)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
        out[0, first : first + 512] = (scores.astype(BF16).astype(np.float32) @ values).astype(BF16)
    return out


def mamba(delta: Any, u: Any, a: Any, b: Any, c: Any) -> Any:
    """The state space layer, step by step along the sequence."""
    decay = np.exp(delta[:, :, None, :] * a[None, :, :, None])
    inputs = delta[:, :, None, :] * b[:, None, :, :] * u[:, :, None, :]
    state = np.zeros(decay.shape[:3], np.float32)
    out = np.empty(delta.shape, np.float32)
    for step in range(delta.shape[-1]):
        state = decay[..., step] * state + inputs[..., step]
        out[..., step] = (c[:, None, :, step] * state).sum(axis=-1)
    return out


def states(length: int) -> Callable[[], tuple[Any, ...]]:
    def made() -> tuple[Any, ...]:
        one = np.ones((1, 256, length), np.float32)
        state = np.ones((1, 16, length), np.float32)
        return one, one, -np.ones((256, 16), np.float32), state, state

    return made


def qkv(length: int) -> Callable[[], tuple[Any, ...]]:
    def made() -> tuple[Any, ...]:
        return tuple(
            (np.random.default_rng(k).random((128, length)) * 2 - 1).astype(np.float32)
            for k in range(3)
        )

    return made


PACKED = {
    ml_dtypes.float8_e5m2: (DType.FLOAT8_E5M2_X4, 15, 57344.0),
    ml_dtypes.float4_e2m1fn: (DType.FLOAT4_E2M1FN_X4, 2, 6.0),
}


def stable(kind: Any, shape: tuple[int, int], seed: int) -> tuple[Any, Any, Any]:
    """Numbers that a microscaling format holds without loss, packed, and their scales.

    In each 8 x 4 numbers one has the format's largest exponent, so that the scale is what it was
    when they are quantised anew.
    """
    random = np.random.default_rng(seed)
    _, exponent, largest = PACKED[kind]
    numbers = (random.random(shape) * 2 - 1) * largest
    blocks = numbers.reshape(shape[0] // 8, 8, shape[1] // 4, 4)
    top = random.choice([-1, 1], (shape[0] // 8, shape[1] // 4)) * 2.0**exponent
    blocks[:, 2, :, 1] = top * (1 + random.random(top.shape) * 0.5)
    narrow = blocks.reshape(shape).astype(kind)
    upper = int(np.log2(1 / largest) + 127)
    scales = random.integers(upper - 10, upper + 1, top.shape).astype(np.uint8)
    spread = np.repeat(np.repeat(2.0 ** (scales.astype(int) - 127), 8, axis=0), 4, axis=1)
    bits = narrow.view(np.uint8)
    if kind is ml_dtypes.float4_e2m1fn:
        packed = (bits[:, 0::2] & 15) | (bits[:, 1::2] & 15) << 4
    else:
        packed = np.ascontiguousarray(bits).view(np.uint32)
    return narrow.astype(np.float64) * spread, packed, scales


def quad_product(left: Any, right: Any) -> Any:
    """Contraction over rows and the four numbers of each element."""
    (rows, columns), width = left.shape, right.shape[1]
    return np.einsum(
        "kmq,knq->mn",
        left.reshape(rows, columns // 4, 4),
        right.reshape(rows, width // 4, 4),
        optimize=True,
    )


def offline(kind: Any) -> Sample:
    left, right = stable(kind, (128, 512), 0), stable(kind, (128, 2048), 1)
    return Sample(
        f"{TUTORIALS}/mxfp-matmul/mx_kernels.py",
        "kernel_offline_quantized_mx_matmul",
        lambda: (left[1], left[2], right[1], right[2], PACKED[kind][0]),
        lambda *_: quad_product(left[0], right[0]),
        f"the product of what is packed ({np.dtype(kind).name})",
        5e-2,
        5e-2,
        options={"target": "trn3"},
    )


def on_device(kind: Any) -> Sample:
    left, right = stable(kind, (128, 512), 2), stable(ml_dtypes.float8_e5m2, (128, 2048), 3)
    return Sample(
        f"{TUTORIALS}/mxfp-matmul/mx_kernels.py",
        "kernel_on_device_quantize_matmul_mx",
        lambda: (
            left[1], left[2], right[0].astype(BF16),
            PACKED[kind][0], DType.FLOAT8_E5M2_X4,
        ),
        lambda *_: quad_product(left[0], right[0]),
        f"the product with what is quantised ({np.dtype(kind).name})",
        5e-2,
        5e-2,
        options={"target": "trn3"},
    )  # fmt: skip


def strided(copies: bool) -> Sample:
    kind = ml_dtypes.float8_e5m2
    left, right = stable(kind, (512, 128), 4)[0], stable(kind, (512, 512), 5)[0]
    return Sample(
        f"{TUTORIALS}/mxfp-matmul/mx_kernels.py",
        "kernel_copy_strided_quantize_matmul_mx",
        lambda: (left.astype(BF16), right.astype(BF16), DType.FLOAT8_E5M2_X4, copies),
        lambda *_: left.T @ right,
        f"the product, layout by {'tensor_copy' if copies else 'DMA'}",
        5e-2,
        5e-2,
        options={"target": "trn3"},
    )


def samples() -> Iterator[Sample]:
    """Every self-contained kernel, with the checks of the repository."""
    close = {"atol": 1e-4, "rtol": 1e-2}
    add = f"{TUTORIALS}/tensor_addition"
    for file, shape, grid in (
        ("tensor_addition", (256, 1024), (2, 2)),
        ("spmd_tensor_addition", (256, 1024), (2, 2)),
        ("spmd_tensor_addition", (512, 2048), (4, 4)),
    ):
        yield Sample(
            f"{add}/{file}_nki_kernels.py", "nki_tensor_add_kernel_", two(shape, np.float16),
            np.add, "a + b", **close, options={"grid": grid},
        )  # fmt: skip
    for shape, dtype in (((3, 4), np.int8), ((37, 44), np.float32)):
        yield Sample(
            f"{TUTORIALS}/transpose2d/transpose2d_nki_kernels.py", "tensor_transpose2D_kernel_",
            lambda shape=shape, dtype=dtype: (
                np.arange(5 * shape[0] * shape[1]).astype(dtype).reshape(5, -1), shape,
            ),
            transposed, "transpose",
        )  # fmt: skip
    yield Sample(
        f"{TUTORIALS}/average_pool2d/average_pool2d_nki_kernels.py", "tensor_avgpool_kernel",
        lambda: (np.arange(72, dtype=np.float16).reshape(2, 6, 6), 2),
        average_pool, "nanmean of windows", exact=True,
    )  # fmt: skip
    matmul = f"{TUTORIALS}/matrix_multiplication/matrix_multiplication_nki_kernels.py"
    for name, shapes in (
        ("basic_", ((128, 64), (128, 512))),
        *((f"{kind}_", ((1024, 4096), (1024, 2048))) for kind in (
            "tiled", "hoist_load", "block_free_dimension", "fully_optimized",
        )),
    ):  # fmt: skip
        yield Sample(
            matmul, f"nki_matmul_{name}",
            lambda shapes=shapes: tuple(drawn(shape, BF16) for shape in shapes),
            product, "matmul", **close,
        )  # fmt: skip
    yield Sample(
        "contributed/matmul.py", "matmul",
        lambda: (drawn((1024, 4096), np.float16), drawn((1024, 2048), np.float16)),
        product, "A.T @ B", **close,
    )  # fmt: skip
    yield Sample(
        "contributed/maxpooling.py", "max_pooling_2d_stride_1",
        lambda: (drawn((448, 448)), 3),
        max_pool, "max_pool2d, stride 1", atol=1e-5, rtol=1.3e-6,
    )  # fmt: skip
    yield Sample(
        "contributed/interpolate_bilinear_fwd.py", "interpolate_bilinear_2x_fwd",
        lambda: (drawn((2, 64, 128, 128)),), interpolated, "bilinear interpolation", **close,
    )  # fmt: skip
    yield Sample(
        "contributed/interpolate_trilinear_fwd.py", "interpolate_trilinear_2x_fwd",
        lambda: (drawn((2, 64, 23, 23, 23)),), interpolated, "trilinear interpolation", **close,
    )  # fmt: skip
    versions = f"{TUTORIALS}/fused_mamba/mamba_nki_kernels.py"
    for version, length in (("v1", 512), ("v1", 2048), ("v2", 2048), ("v3", 2048)):
        yield Sample(
            versions, f"mamba_{version}", states(length), mamba, "the scan, step by step",
            atol=1e-2, rtol=1e-2,
        )  # fmt: skip
    file = f"{TUTORIALS}/attention_fwd_performance/attention_kernels.py"
    for version in ("1", "2", "3", "4", "5", "6", "7", "8", "8a", "9", "10", "11"):
        yield Sample(
            file, f"attn_fwd_v{version}", qkv(128 if version in "12" else 4096),
            attention, "attention", atol=1e-2,
        )  # fmt: skip
    yield Sample(
        "contributed/pipelined_attention.py",
        "flash_fwd",
        lambda: tuple(drawn(shape, BF16) for shape in (*[(1, 128, 16384)] * 2, (1, 16384, 128))),
        flash,
        "attention, 16384 rows",
        atol=1e-2,
        rtol=1e-7,
        options={"softmax_scale": 0.125, "use_causal_mask": False, "mixed_precision": True},
    )
    yield offline(ml_dtypes.float8_e5m2)
    yield offline(ml_dtypes.float4_e2m1fn)
    yield on_device(ml_dtypes.float4_e2m1fn)
    yield on_device(ml_dtypes.float8_e5m2)
    yield strided(copies=True)
    yield strided(copies=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a sample; `reason` is empty where it agrees."""

    sample: Sample
    reason: str
    worst: float
    seconds: float
    warned: str = ""
    """What the run warns of, without the places."""


def outcome(sample: Sample, checkout: Path) -> Outcome:
    """Run a kernel and hold it to its reference."""
    args = sample.args()
    began = time.monotonic()
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = migrate.run(
                str(checkout / sample.file), sample.kernel, *args, budget=BUDGET, **sample.options
            )
    except (SourceError, IndexError) as error:
        return Outcome(sample, str(error).splitlines()[0], float("nan"), time.monotonic() - began)
    seconds = time.monotonic() - began
    warned = str(told[0].message).split(": ", 1)[-1].partition(" (allocated")[0] if told else ""
    got = np.asarray(found).astype(np.float64)
    wanted = np.asarray(sample.reference(*args)).astype(np.float64)
    if got.shape != wanted.shape:
        reason = f"{got.shape} instead of {wanted.shape}"
        return Outcome(sample, reason, float("nan"), seconds, warned)
    worst = float(np.abs(got - wanted).max())
    if sample.exact:
        agrees = bool((got == wanted).all())
    else:
        agrees = bool(np.allclose(got, wanted, rtol=sample.rtol, atol=sample.atol))
    reason = "" if agrees else f"off by up to {worst:.3g}"
    return Outcome(sample, reason, worst, seconds, warned)


def unlisted(checkout: Path) -> Iterator[tuple[str, str]]:
    """Decorated kernels of the checkout that no sample runs."""
    listed = {(sample.file, sample.kernel) for sample in samples()}
    for path in sorted(checkout.rglob("*.py")):
        file = str(path.relative_to(checkout))
        try:
            module = parse(read(str(path)))
        except SourceError:
            continue
        for kernel in module.kernels:
            if kernel.decorated and (file, kernel.name) not in listed:
                yield file, kernel.name


def main() -> int:
    """Print a line a kernel."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", default="", help="kernels with this in file or name")
    parser.add_argument("--docs", type=Path, help="write the table as Markdown")
    options = parser.parse_args()
    found: list[Outcome] = []
    for sample in samples():
        if options.only not in f"{sample.file}::{sample.kernel}":
            continue
        made = outcome(sample, options.checkout)
        found.append(made)
        told = made.reason or f"agrees (off by up to {made.worst:.3g})"
        warned = f" ({made.warned})" if made.warned else ""
        print(f"{sample.file}::{sample.kernel}: {told}, {made.seconds:.1f} s{warned}", flush=True)
    agreeing = sum(not made.reason for made in found)
    print(f"{agreeing} of {len(found)} runs agree")
    others = list(unlisted(options.checkout))
    for file, name in others:
        print(f"not run: {file}::{name}")
    if options.docs is not None:
        options.docs.write_text("\n".join(table(found)) + "\n", encoding="utf-8")
    return 0 if agreeing == len(found) else 1


def table(found: list[Outcome]) -> Iterator[str]:
    """The table of the document."""
    yield "| File | Kernel | Against | Tolerance | Result |"
    yield "| --- | --- | --- | --- | --- |"
    for made in found:
        sample = made.sample
        within = "equal" if sample.exact else f"atol {sample.atol:g}, rtol {sample.rtol:g}"
        file = sample.file.removeprefix(f"{TUTORIALS}/")
        result = made.reason or f"agrees, off by at most {made.worst:.2g}"
        if made.warned:
            result += f"; {made.warned}"
        yield f"| {file} | `{sample.kernel}` | {sample.against} | {within} | {result} |"


if __name__ == "__main__":
    sys.exit(main())
