"""What all domains do alike: constants, structure, writes, reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from migrate.numerics.bounded import Bounded
from migrate.numerics.casts import Rule
from migrate.numerics.domain import Domain, Window
from migrate.numerics.dtypes import DType
from migrate.numerics.plain import Plain
from migrate.numerics.rounded import Rounded

DOMAINS = [Rounded(), Bounded(), Plain()]
every = pytest.mark.parametrize("domain", DOMAINS, ids=["rounded", "bounded", "plain"])


def elements(domain: Domain[Any], v: Any) -> list[Any]:
    return domain.to_array(v).astype(np.float64).tolist()


@every
def test_constants_are_rounded_and_wrap(domain: Domain[Any]) -> None:
    assert elements(domain, domain.constant(0.1, DType.FLOAT32)) == float(np.float32(0.1))
    narrow = [257.0] * 2 if isinstance(domain, Plain) else [256.0] * 2
    assert elements(domain, domain.constant(257.0, DType.BFLOAT16, (2,))) == narrow
    assert elements(domain, domain.constant(-1, DType.UINT8)) == 255
    assert elements(domain, domain.constant(2**31, DType.INT32)) == -(2**31)
    assert domain.dtype(domain.constant(True, DType.BOOL)) is DType.BOOL
    with pytest.raises(ValueError, match="not a value of int32"):
        domain.constant(0.5, DType.INT32)


@every
def test_structure(domain: Domain[Any]) -> None:
    x = domain.from_array(np.arange(6.0).reshape(2, 3), DType.FLOAT32)
    assert domain.shape(x) == (2, 3)
    assert elements(domain, domain.transpose(x, (1, 0))) == [[0, 3], [1, 4], [2, 5]]
    assert elements(domain, domain.reshape(x, (3, 2))) == [[0, 1], [2, 3], [4, 5]]
    assert elements(domain, domain.take(x, np.array([[5], [0]]))) == [[5], [0]]
    assert domain.shape(domain.broadcast(domain.take(x, np.array(1)), (4,))) == (4,)
    with pytest.raises(IndexError):
        domain.take(x, np.array([6]))


@every
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.BFLOAT16, DType.INT32])
def test_writes(domain: Domain[Any], dtype: DType) -> None:
    target = domain.constant(0, dtype, (2, 3))
    before = domain.copy(target)
    values = domain.from_array(np.array([1, 2, 3, 4]), dtype)
    mask = np.array([True, False, True, True])
    domain.put(target, np.array([0, 1, 5, 5]), values, mask)
    assert elements(domain, target) == [[1, 0, 0], [0, 0, 4]]
    assert elements(domain, before) == [[0, 0, 0], [0, 0, 0]]
    domain.put(target, np.array([1, 2]), domain.constant(7, dtype))
    assert elements(domain, target) == [[1, 7, 7], [0, 0, 4]]
    wrong = domain.constant(1, DType.UINT8)
    with pytest.raises(ValueError, match="uint8"):
        domain.put(target, np.array([0]), wrong)
    with pytest.raises(IndexError):
        domain.put(target, np.array([6]), domain.constant(7, dtype))


@every
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.BFLOAT16, DType.INT32, DType.BOOL])
def test_windows(domain: Domain[Any], dtype: DType) -> None:
    x = domain.copy(domain.from_array(np.arange(12) % 2, dtype))
    assert elements(domain, domain.window(x, Window(1, (2, 3), (6, 2)))) == [[1, 1, 1], [1, 1, 1]]
    assert elements(domain, domain.window(x, Window(3, (3,), (-1,)))) == [1, 0, 1]
    assert domain.shape(domain.window(x, Window(40, (0, 3), (3, 1)))) == (0, 3)
    domain.put_window(x, Window(1, (2, 3), (6, 2)), domain.constant(0, dtype))
    assert elements(domain, x) == [0] * 12
    for outside in (Window(10, (3,), (1,)), Window(1, (3,), (-1,)), Window(0, (4, 4), (4, 1))):
        with pytest.raises(ValueError, match="size of buffer"):
            domain.window(x, outside)
    assert Window(0, (3, 4), (4, 1)).distinct
    assert Window(3, (3, 4), (1, 3)).distinct
    assert not Window(0, (3, 4), (1, 1)).distinct


@every
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.BFLOAT16])
def test_sums_in_place_are_in_the_target_s_format(domain: Domain[Any], dtype: DType) -> None:
    x = domain.constant(1, dtype, (4,))
    domain.add_window(x, Window(1, (2,), (2,)), domain.from_array(np.array([2.0, 3.0]), dtype))
    assert elements(domain, x) == [1, 3, 1, 4]


def test_plain_arithmetic_knows_no_narrow_floats() -> None:
    domain = Plain()
    x = domain.from_array(np.array([1.0, 3.0], np.float32), DType.FLOAT32)
    third = domain.apply("divide", (x, domain.constant(3, DType.FLOAT32)), DType.BFLOAT16)
    assert domain.dtype(third) is DType.BFLOAT16
    assert elements(domain, third) == [float(np.float32(1 / 3)), 1.0]
    narrow = domain.cast(third, DType.FLOAT8_E4M3, Rule.NKI)
    assert elements(domain, narrow) == elements(domain, third)
    assert elements(domain, domain.cast(narrow, DType.INT8, Rule.NKI)) == [0, 1]
    assert elements(domain, domain.cast(third, DType.FLOAT8_E8M0FNU, Rule.NKI)) == [0.25, 1.0]
    bits = domain.bitcast(third, DType.UINT16)
    assert elements(domain, domain.bitcast(bits, DType.BFLOAT16)) == [0.333984375, 1.0]
    double = domain.cast(x, DType.FLOAT64, Rule.IEEE)
    assert domain.to_array(double).dtype == np.float64


def test_what_is_borrowed_keeps_its_numbers_and_its_memory() -> None:
    given = np.arange(4, dtype=np.float32)
    for domain in DOMAINS:
        assert elements(domain, domain.borrowed(given, DType.FLOAT32)) == [0, 1, 2, 3]
        # An argument is in its format, whatever is done with it.
        assert elements(domain, domain.borrowed(given + 1 / 3, DType.BFLOAT16))[1] == 1.3359375
    assert not Rounded().borrowed(given, DType.FLOAT32).flags.writeable
    assert given.flags.writeable


@pytest.mark.parametrize("shape", [(3, 40000), (40000, 3), (1, 70000), (70001,)])
@pytest.mark.parametrize("operator", ["exp", "sigmoid", "power"])
def test_large_arrays_are_evaluated_like_small_ones(shape: tuple[int, ...], operator: str) -> None:
    domain, drawn = Rounded(), np.random.default_rng(0)
    x = drawn.standard_normal(shape).astype(np.float32)
    args = (np.abs(x), np.full((1,), 1.7, np.float32)) if operator == "power" else (x,)
    for dtype in (DType.FLOAT32, DType.BFLOAT16):
        whole = domain.apply(operator, args, dtype)
        assert whole.shape == shape
        for start in range(0, shape[0], max(1, shape[0] // 5)):
            part = slice(start, start + 1), *(slice(7) for _ in shape[1:])
            small = domain.apply(operator, (args[0][part], *args[1:]), dtype)
            assert whole[part].tobytes() == small.tobytes()


@every
def test_combination_takes_equal_indices_in_turn(domain: Domain[Any]) -> None:
    index = np.array([0, 1, 0, 0, 2])
    for dtype in (DType.FLOAT32, DType.BFLOAT16, DType.INT32):
        target = domain.constant(10, dtype, (3,))
        values = domain.from_array(np.array([1, 2, 3, 4, 5]), dtype)
        domain.combine("add", target, index, values, np.array([1, 1, 1, 1, 0], bool))
        assert elements(domain, target) == [18, 12, 10]
        domain.combine("maximum", target, index, domain.constant(15, dtype))
        assert elements(domain, target) == [18, 15, 15]
        domain.combine("subtract", target, index, domain.constant(1, dtype))
        assert elements(domain, target) == [15, 14, 14]
    with pytest.raises(ValueError, match="divide"):
        domain.combine("divide", target, index, values)


def test_narrow_sums_stagnate_in_place() -> None:
    rounded = Rounded()
    total = rounded.constant(0.0, DType.BFLOAT16, (1,))
    ones = rounded.constant(1.0, DType.BFLOAT16, (3000,))
    rounded.combine("add", total, np.zeros(3000, np.int64), ones)
    assert elements(rounded, total) == [256.0]
    assert float(rounded.reduce("add", ones, 0, DType.BFLOAT16, "sequential")) == 256.0
    wide = rounded.reduce("add", ones, 0, DType.FLOAT32)
    assert float(rounded.cast(wide, DType.BFLOAT16, Rule.IEEE)) == 3008.0


@every
@pytest.mark.parametrize("order", ["blas", "sequential", "pairwise"])
def test_reductions(domain: Domain[Any], order: Any) -> None:
    x = domain.from_array(np.arange(1.0, 13.0).reshape(2, 3, 2), DType.FLOAT32)

    def found(name: str, axis: Any) -> list[Any]:
        return elements(domain, domain.reduce(name, x, axis, DType.FLOAT32, order))

    assert found("add", 1) == [[9, 12], [27, 30]]
    assert found("add", (0, 2)) == [18, 26, 34]
    assert found("add", (0, 1, 2)) == 78
    assert found("maximum", -1) == [[2, 4, 6], [8, 10, 12]]
    assert found("minimum", 0) == [[1, 2], [3, 4], [5, 6]]
    assert found("multiply", (1, 2)) == [720, 665280]
    counts = domain.from_array(np.array([[3, 5, 6]]), DType.INT32)
    assert elements(domain, domain.reduce("bitwise_xor", counts, 1, DType.INT32, order)) == [0]
    assert elements(domain, domain.reduce("bitwise_and", counts, 1, DType.INT32, order)) == [0]
    with pytest.raises(ValueError, match="not associative"):
        domain.reduce("subtract", x, 0, DType.FLOAT32, order)


@every
def test_reductions_of_nothing(domain: Domain[Any]) -> None:
    x = domain.constant(1.0, DType.FLOAT32, (2, 0))
    assert elements(domain, domain.reduce("add", x, 1, DType.FLOAT32)) == [0, 0]
    assert elements(domain, domain.reduce("maximum", x, 1, DType.FLOAT32)) == [-np.inf, -np.inf]


@every
def test_matrix_products(domain: Domain[Any]) -> None:
    a = domain.from_array(np.arange(6.0).reshape(2, 3), DType.BFLOAT16)
    b = domain.from_array(np.arange(12.0).reshape(3, 4), DType.BFLOAT16)
    expected = (np.arange(6.0).reshape(2, 3) @ np.arange(12.0).reshape(3, 4)).tolist()
    for order in ("blas", "sequential"):
        assert elements(domain, domain.matmul(a, b, DType.FLOAT32, order)) == expected
    assert elements(domain, domain.matmul(a, b, DType.BFLOAT16)) == expected


@every
def test_predicates_give_numbers_of_the_asked_format(domain: Domain[Any]) -> None:
    x = domain.from_array(np.array([1.0, np.nan, -2.0]), DType.FLOAT32)
    zero = domain.constant(0.0, DType.FLOAT32)
    positive = domain.apply("greater", (x, zero), DType.FLOAT32)
    assert elements(domain, positive) == [1, 0, 0]
    assert domain.dtype(positive) is DType.FLOAT32
    assert elements(domain, domain.apply("is_nan", (x,), DType.BOOL)) == [0, 1, 0]
    holds, open_ended = domain.truth(positive)
    assert holds.tolist() == [True, False, False]
    assert open_ended is None
    chosen = domain.apply("select", (positive, x, zero), DType.FLOAT32)
    assert elements(domain, chosen) == [1, 0, 0]
