"""Mean, variance and reductions over partitions, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.nki.running import agreeing, on_tiles, run, troubles

RNG = np.random.default_rng(23)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


STATS = on_tiles("nisa.bn_stats(dst=r, data=x_t)", "x", r="(x.shape[0], 6), dtype=nl.float32")
AGGREGATE = on_tiles("nisa.bn_aggr(dst=r, data=x_t)", "x", r="(x.shape[0], 2), dtype=nl.float32")
BOTH = on_tiles(
    """
    s = nl.ndarray((x.shape[0], 6 * ((x.shape[1] + 511) // 512)), dtype=nl.float32, buffer=nl.sbuf)
    for i in range((x.shape[1] + 511) // 512):
        n = min(512, x.shape[1] - i * 512)
        nisa.bn_stats(dst=s[:, i * 6 : i * 6 + 6], data=x_t[:, i * 512 : i * 512 + n])
    nisa.bn_aggr(dst=r, data=s)
    """,
    "x",
    r="(x.shape[0], 2), dtype=nl.float32",
)


@pytest.mark.parametrize("width", [2, 7, 512])
def test_count_mean_and_squares_of_even_and_odd_elements(width: int) -> None:
    x = normal(3, width)
    wanted = np.concatenate(
        [
            np.stack(
                [
                    np.full(3, half.shape[1]),
                    half.mean(1, dtype=np.float64),
                    half.var(1, dtype=np.float64) * half.shape[1],
                ],
                axis=1,
            )
            for half in (x[:, ::2], x[:, 1::2])
        ],
        axis=1,
    )
    np.testing.assert_allclose(run(STATS, x).outputs[0], wanted, rtol=1e-4, atol=1e-5)
    agreeing(STATS, x=x)


def test_groups_are_put_together() -> None:
    x = normal(2, 12)
    x[:, ::3] = RNG.integers(1, 9, size=(2, 4))
    counts, means, squares = (x[:, k::3].astype(np.float64) for k in range(3))
    total = counts.sum(1)
    mean = (counts * means).sum(1) / total
    variance = (squares + counts * (means - mean[:, None]) ** 2).sum(1) / total
    found = run(AGGREGATE, x).outputs[0]
    np.testing.assert_allclose(found, np.stack([mean, variance], 1), rtol=1e-4, atol=1e-5)
    agreeing(AGGREGATE, x=x)


@pytest.mark.parametrize("width", [6, 511, 1300])
def test_mean_and_variance_of_all_elements(width: int) -> None:
    x = normal(2, width) + 2
    found = run(BOTH, x).outputs[0]
    wanted = np.stack([x.mean(1, dtype=np.float64), x.var(1, dtype=np.float64)], 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_what_statistics_refuse() -> None:
    assert "size" in troubles(STATS, normal(2, 513))
    assert "size" in troubles(AGGREGATE, normal(2, 7))


def reduced(op: str, dtype: str = "nl.float32") -> str:
    return on_tiles(
        f"nisa.tensor_partition_reduce(dst=r, op=nl.{op}, data=x_t)",
        "x",
        r=f"(1, x.shape[1]), dtype={dtype}",
    )


@pytest.mark.parametrize(
    ("op", "reference"), [("add", np.sum), ("maximum", np.max), ("average", np.mean)]
)
def test_partitions_are_combined(op: str, reference: Any) -> None:
    x = normal(40, 5)
    found = run(reduced(op), x).outputs[0]
    np.testing.assert_allclose(found, reference(x, axis=0, keepdims=True), rtol=1e-5, atol=1e-6)
    agreeing(reduced(op), x=x)


@pytest.mark.parametrize(
    ("op", "reference"), [("bitwise_or", np.bitwise_or), ("bitwise_and", np.bitwise_and)]
)
def test_bits_of_partitions_are_combined(op: str, reference: Any) -> None:
    x = RNG.integers(0, 2**31 - 1, size=(9, 4)).astype(np.int32)
    found = run(reduced(op, "nl.int32"), x).outputs[0]
    np.testing.assert_array_equal(found, reference.reduce(x, axis=0, keepdims=True))


def test_other_operators_do_not_reduce_partitions() -> None:
    assert "operator" in troubles(reduced("multiply"), normal(4, 3))
