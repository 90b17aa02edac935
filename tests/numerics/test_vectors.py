"""Known answers: conversions, integers, fused products, sums, special functions."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrate.nki.operators import OPERATORS as NKI_OPERATORS
from migrate.numerics.bounded import Bounded
from migrate.numerics.casts import Rule, cast
from migrate.numerics.dtypes import DType
from migrate.numerics.rounded import Rounded

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("vectors.json").read_text(encoding="utf-8")
)
ROUNDED = Rounded()


def section(name: str) -> pytest.MarkDecorator:
    rows = VECTORS[name]
    assert rows
    return pytest.mark.parametrize("row", rows, ids=[f"{name}{k}" for k in range(len(rows))])


def f32(text: str) -> np.ndarray:
    return np.array([int(text, 16)], np.uint32).view(np.float32)


def bits(array: np.ndarray) -> int:
    return int(np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(-1)[0])


@section("formats")
def test_formats(row: dict[str, Any]) -> None:
    dtype = DType.named(row["fmt"])
    assert dtype.precision == row["p"]
    assert dtype.unit_roundoff == row["u"]
    assert dtype.max == row["max"]
    assert dtype.min_normal == row["min_normal"]
    assert dtype.min_subnormal == row["min_subnormal"]
    assert dtype.overflow == {"sat": "saturate"}.get(row["overflow"], row["overflow"])


@section("bf16")
def test_bf16(row: dict[str, Any]) -> None:
    x = f32(row["f32"])
    for rule in (Rule.IEEE, Rule.CUDA, Rule.NKI):
        assert bits(cast(x, DType.BFLOAT16, rule)) == int(row["bf16_rne"], 16)
    truncated = cast(x, DType.BFLOAT16, Rule.TRUNCATE)
    if np.isnan(x[0]):
        assert np.isnan(truncated.astype(np.float32))[0]
    else:
        assert bits(truncated) == int(row["bf16_trunc"], 16)
    # The shift idiom takes the upper half of the bits whatever they mean.
    pattern = ROUNDED.bitcast(x, DType.UINT32)
    shift = ROUNDED.constant(16, DType.UINT32)
    upper = ROUNDED.apply("right_shift_logical", (pattern, shift), DType.UINT32)
    assert int(upper[0]) == int(row["bf16_trunc"], 16)


@section("fp16")
def test_fp16(row: dict[str, Any]) -> None:
    for rule in (Rule.IEEE, Rule.CUDA, Rule.NKI):
        found = cast(f32(row["f32"]), DType.FLOAT16, rule)
        assert bits(found) == int(row["fp16"], 16)
        assert float(found[0]) == row["value"]


@section("fp8")
def test_fp8(row: dict[str, Any]) -> None:
    x = f32(row["f32"])
    assert float(x[0]) == row["x"] or math.isnan(row["x"])
    assert bits(cast(x, DType.FLOAT8_E4M3, Rule.NKI)) == int(row["e4m3"], 16)
    found = cast(x, DType.FLOAT8_E4M3FN, Rule.IEEE)
    assert bits(found) & 0x7F == int(row["e4m3fn"], 16) & 0x7F
    if not math.isnan(row["e4m3fn_val"]):
        assert bits(found) == int(row["e4m3fn"], 16)
    found = cast(x, DType.FLOAT8_E4M3FN, Rule.CUDA)
    assert bits(found) == int(row["e4m3fn_satfinite"], 16)
    assert bits(cast(x, DType.FLOAT8_E5M2, Rule.NKI)) == int(row["e5m2"], 16)
    low = ROUNDED.constant(-240.0, DType.FLOAT32)
    high = ROUNDED.constant(240.0, DType.FLOAT32)
    clipped = ROUNDED.apply("maximum", (x, low), DType.FLOAT32)
    clipped = ROUNDED.apply("minimum", (clipped, high), DType.FLOAT32)
    assert bits(cast(clipped, DType.FLOAT8_E4M3, Rule.NKI)) == int(row["e4m3_clip240"], 16)


@section("fp8_reinterpret")
def test_fp8_reinterpret(row: dict[str, Any]) -> None:
    byte = np.array([int(row["byte"], 16)], np.uint8)
    for dtype, key in ((DType.FLOAT8_E4M3FN, "as_e4m3fn"), (DType.FLOAT8_E4M3, "as_e4m3")):
        found = float(cast(ROUNDED.bitcast(byte, dtype), DType.FLOAT64, Rule.IEEE)[0])
        assert found == row[key] or (math.isnan(found) and math.isnan(row[key]))


@section("double_rounding")
def test_double_rounding(row: dict[str, Any]) -> None:
    if row["case"].startswith("int32"):
        n = np.array([row["n"]], np.int32)
        assert float(cast(n, DType.BFLOAT16, Rule.NKI)[0]) == row["two_step"]
        assert float(cast(n, DType.BFLOAT16, Rule.CUDA)[0]) == row["direct"]
        return
    _, middle, last = (DType.named(part) for part in row["case"].split("->"))
    x = f32(row["f32"])
    assert bits(cast(x, last, Rule.NKI)) == int(row["direct"], 16)
    twice = cast(cast(x, middle, Rule.NKI), last, Rule.NKI)
    assert bits(twice) == int(row["two_step"], 16)


@section("tf32")
def test_tf32(row: dict[str, Any]) -> None:
    x = f32(row["f32"])
    for rule, key in ((Rule.TRUNCATE, "rz"), (Rule.NEAREST_AWAY, "rna"), (Rule.IEEE, "rne")):
        assert bits(cast(x, DType.TFLOAT32, rule)) == int(row[key], 16)


@section("f2i")
def test_float_to_integer(row: dict[str, Any]) -> None:
    x = np.array([row["x"]], np.float32)
    assert cast(x, DType.INT32, Rule.CUDA)[0] == row["cuda_i32"]
    assert cast(x, DType.INT8, Rule.CUDA)[0] == row["cuda_i8_via_i32"]
    for dtype, key in (
        (DType.INT32, "nki_i32"),
        (DType.INT8, "nki_i8"),
        (DType.UINT8, "nki_u8"),
    ):
        if row[key] is not None:
            assert cast(x, dtype, Rule.NKI)[0] == row[key]


OPERATIONS = {"add": "add", "mul": "multiply", "sub": "subtract"}


@section("int_via_f32")
def test_integers_by_way_of_fp32(row: dict[str, Any]) -> None:
    a, b = (np.array([row[key]], np.int32) for key in "ab")
    float_a, float_b = (cast(n, DType.FLOAT32, Rule.NKI) for n in (a, b))
    if row["op"] == "copy":
        exact, through = a, float_a
    elif row["op"] in OPERATIONS:
        name = OPERATIONS[row["op"]]
        exact = ROUNDED.apply(name, (a, b), DType.INT32)
        through = ROUNDED.apply(name, (float_a, float_b), DType.FLOAT32)
    else:
        three = np.array([3], np.int32)
        exact = ROUNDED.apply("fma", (a, b, three), DType.INT32)
        through = ROUNDED.apply("multiply", (float_a, float_b), DType.FLOAT32)
        through = ROUNDED.apply(
            "add", (through, cast(three, DType.FLOAT32, Rule.NKI)), DType.FLOAT32
        )
    assert exact[0] == row["exact_wrap_int32"]
    assert cast(through, DType.INT32, Rule.NKI)[0] == row["via_f32"]


@section("fma")
def test_fma(row: dict[str, Any]) -> None:
    a, b, c = (f32(row[key]) for key in "abc")
    fused = ROUNDED.apply("fma", (a, b, c), DType.FLOAT32)
    product = ROUNDED.apply("multiply", (a, b), DType.FLOAT32)
    apart = ROUNDED.apply("add", (product, c), DType.FLOAT32)
    for found, key in ((fused, "fma"), (apart, "mul_add")):
        if np.isnan(f32(row[key])[0]):
            assert np.isnan(found[0])
        else:
            assert bits(found) == int(row[key], 16)


SETS = {
    "harmonic 1/(i+1)": lambda i: 1.0 / (i + 1.0),
    "0.1 repeated": lambda i: np.full(i.shape, np.float32(0.1), np.float64),
    "alternating (-1)^i * sqrt(i+1)": lambda i: (-1.0) ** i * np.sqrt(i + 1.0),
    "1e8,1,-1e8,1 repeated": lambda i: np.array([1e8, 1.0, -1e8, 1.0])[i % 4],
    "i^3 mod 97 - 48 (ints)": lambda i: (i**3 % 97 - 48).astype(np.float64),
}


@section("sum_orders")
def test_sum_orders(row: dict[str, Any]) -> None:
    terms = SETS[row["set"]](np.arange(1024)).astype(np.float32)

    def total(x: np.ndarray, order: Any) -> int:
        return bits(ROUNDED.reduce("add", x, 0, DType.FLOAT32, order))

    assert total(terms, "sequential") == int(row["seq"], 16)
    assert total(terms[::-1], "sequential") == int(row["rev"], 16)
    assert total(terms, "pairwise") == int(row["pairwise"], 16)
    blocks = ROUNDED.reduce("add", terms.reshape(8, 128), 1, DType.FLOAT32, "sequential")
    assert total(blocks, "sequential") == int(row["blocked128"], 16)
    free = ROUNDED.reduce("add", terms.reshape(128, 8), 1, DType.FLOAT32, "sequential")
    assert total(free, "sequential") == int(row["nki_free_then_partition"], 16)


@section("functions")
def test_functions(row: dict[str, Any]) -> None:
    name = {"recip": "reciprocal"}.get(row["fn"], row["fn"])
    found = ROUNDED.apply(name, (f32(row["x"]),), DType.FLOAT32)
    assert bits(found) == int(row["y"], 16)


@section("div")
def test_division(row: dict[str, Any]) -> None:
    a, b = (ROUNDED.constant(row[key], DType.FLOAT32, (1,)) for key in "ab")
    assert bits(ROUNDED.apply("divide", (a, b), DType.FLOAT32)) == int(row["div"], 16)
    inverse = ROUNDED.apply("reciprocal", (b,), DType.FLOAT32)
    product = ROUNDED.apply("multiply", (a, inverse), DType.FLOAT32)
    assert bits(product) == int(row["mul_recip"], 16)


PAIRS = {
    "gelu erf vs tanh": ("gelu", "gelu_tanh"),
    "gelu erf vs sigmoid(1.702x)": ("gelu", "gelu_sigmoid"),
    "gelu tanh vs sigmoid(1.702x)": ("gelu_tanh", "gelu_sigmoid"),
    "silu vs sigmoid-gelu": ("silu", "gelu_sigmoid"),
}


@section("gelu_variants")
def test_gelu_variants_differ(row: dict[str, Any]) -> None:
    x = np.array([row["x"]], np.float64)
    one, other = (ROUNDED.apply(name, (x,), DType.FLOAT64) for name in PAIRS[row["pair"]])
    assert abs(one[0] - other[0]) == pytest.approx(row["max"], rel=1e-9)


@section("atomic_envelope")
def test_every_order_of_a_sum_is_within_its_bound(row: dict[str, Any]) -> None:
    terms = SETS[row["set"]](np.arange(1024)).astype(np.float32)
    bounded = Bounded()
    total = bounded.reduce("add", bounded.from_array(terms, DType.FLOAT32), 0, DType.FLOAT32)
    assert float(total.value) == pytest.approx(row["exact"], rel=1e-15)
    for extreme in (row["min"], row["max"]):
        assert abs(extreme - row["exact"]) <= float(total.limit())
    if row["distinct"] == 1:
        target = ROUNDED.constant(0, DType.FLOAT32, (1,))
        ROUNDED.combine("add", target, np.zeros(1024, np.int64), terms)
        assert float(target[0]) == row["min"] == row["max"]


CHAINS = {
    "c=1, 4 x 2^-25": (1.0, [2.0**-25] * 4),
    "c=1, 4 x 2^-24": (1.0, [2.0**-24] * 4),
    "c=1, 8 x 2^-23": (1.0, [2.0**-23] * 8),
    "c=-1, 4 x -2^-24": (-1.0, [-(2.0**-24)] * 4),
    "c=1, 16 x 2^-14": (1.0, [2.0**-14] * 16),
    "c=2^24, 4 x 1": (2.0**24, [1.0] * 4),
    "c=-1, 1 + 2^-26": (-1.0, [1.0, 2.0**-26]),
    "c=1, 4 x -2^-25": (1.0, [-(2.0**-25)] * 4),
}


@section("tensor_core")
def test_products_in_a_chain(row: dict[str, Any]) -> None:
    start, terms = CHAINS[row["case"]]
    left = np.array([[start, *terms]], np.float32)
    ones = np.ones((left.shape[1], 1), np.float32)
    chain = ROUNDED.matmul(left, ones, DType.FLOAT32, "sequential")
    assert bits(chain) == int(row["rne_chain"], 16)
    exact = np.array([math.fsum([start, *terms])], np.float64)
    assert exact[0] == row["exact"]
    assert bits(cast(exact, DType.FLOAT32, Rule.IEEE)) == int(row["exact_rne"], 16)
    # Whatever a tensor core keeps of a product lies within the bound of a fp32 sum that truncates.
    bounded = Bounded()
    product = bounded.matmul(
        *(bounded.from_array(side, DType.FLOAT32) for side in (left, ones)), DType.FLOAT32
    )
    reach = 2 * float(product.limit()[0, 0]) + 2.0**-23 * float(np.abs(left).sum())
    for keeps in ("volta_F23", "ampere_F24", "hopper_F25"):
        assert abs(float(f32(row[keeps])[0]) - row["exact"]) <= reach


@section("act_ranges")
def test_where_the_tables_of_the_scalar_engine_are_valid(row: dict[str, Any]) -> None:
    operator = NKI_OPERATORS[row["fn"]]
    assert operator.table_error is not None
    valid = operator.magnitude or operator.table_error.valid_range
    assert valid is not None
    given = tuple(bits(np.array([edge], np.float32)) for edge in valid)
    assert given == (int(row["lo"], 16), int(row["hi"], 16))


def test_a_scan_is_sequential() -> None:
    # The second row is of a generator that is not told.
    terms = np.full(1024, 0.1, np.float32)
    row = VECTORS["scan"][0]
    assert bits(ROUNDED.reduce("add", terms, 0, DType.FLOAT32, "sequential")) == int(row["seq"], 16)
    assert bits(cast(np.array([math.fsum(terms)]), DType.FLOAT32, Rule.IEEE)) == int(
        row["exact"], 16
    )
    assert bits(ROUNDED.reduce("add", terms, 0, DType.FLOAT32, "pairwise")) == int(
        row["hillis_steele"], 16
    )


TOLD_ELSEWHERE = {
    "mx": "tests/nki/test_microscaling.py",
    "rng": "tests/cuda/library/test_random.py",
}
WITHOUT_INPUTS = {"variance", "online_softmax"}
"""Sections whose numbers come from inputs that are not told."""


def test_every_section_is_a_test() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    for name in VECTORS.keys() - WITHOUT_INPUTS - TOLD_ELSEWHERE.keys():
        assert f'@section("{name}")' in here or f'VECTORS["{name}"]' in here
    for file in TOLD_ELSEWHERE.values():
        assert (Path(__file__).parents[2] / file).is_file()
