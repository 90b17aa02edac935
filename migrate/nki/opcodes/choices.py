"""Positions, choices by a condition, and gathers."""

from __future__ import annotations

from migrate.nki import bounds, checks, gathering, limits, selection
from migrate.nki.opcodes.spec import (
    LATER,
    NAME,
    ONCHIP,
    REDUCE_CMD,
    REQUIRED,
    RESET_REDUCE,
    RESULT,
    SBUF,
    Parameter,
    Spec,
    column,
    op,
    out,
    tile,
    value,
)
from migrate.nki.values import OperatorName

SPECS = (
    Spec(
        "iota",
        (
            out(memories=SBUF), value("pattern"), value("offset", 0),
            value("channel_multiplier", 0), NAME,
        ),
        ("gpsimd",),
        selection.iota,
        (checks.pattern_count("dst", "pattern"),),
    ),
    Spec(
        "affine_select",
        (
            out(memories=SBUF), value("pattern"), value("channel_multiplier"),
            tile("on_true_tile", SBUF), column("on_false_value"),
            op("cmp_op", OperatorName("equal")), value("offset", 0), NAME,
        ),
        ("gpsimd",),
        selection.affine_select,
        (
            checks.same_tile("dst", "on_true_tile"),
            checks.pattern_count("dst", "pattern"),
            checks.comparison("cmp_op"),
        ),
    ),
    Spec(
        "range_select",
        (
            out(), tile("on_true_tile"), op("comp_op0"), op("comp_op1"), column("bound0"),
            column("bound1"), RESET_REDUCE, RESULT, op("reduce_op", OperatorName("maximum")),
            value("range_start", 0), value("on_false_value", None), NAME,
        ),
        ("vector",),
        selection.range_select,
        (
            checks.same_tile("dst", "on_true_tile"),
            checks.column("bound0", "on_true_tile"),
            checks.column("bound1", "on_true_tile"),
            checks.column("reduce_res", "on_true_tile"),
            checks.comparison("comp_op0", "comp_op1"),
            checks.only_number("on_false_value", selection.FP32_MIN),
            checks.only_operator("reduce_op", "maximum"),
        ),
        LATER,
        accumulator="vector",
    ),
    Spec(
        "select_reduce",
        (
            out(), tile("predicate"), tile("on_true"), column("on_false"), RESULT, REDUCE_CMD,
            op("reduce_op", OperatorName("maximum")), value("reverse_pred", False), NAME,
        ),
        ("vector",),
        selection.select_reduce,
        (
            checks.same_tile("dst", "predicate", "on_true"),
            checks.column("on_false", "on_true"),
            checks.column("reduce_res", "on_true"),
            checks.not_both_psum("on_true", "predicate"),
            checks.only_operator("reduce_op", "maximum"),
        ),
        accumulator="vector",
    ),
    Spec(
        "tensor_copy_predicated",
        (
            Parameter("dst", "tile", REQUIRED, ONCHIP, "inout"), column("src"),
            tile("predicate"), value("reverse_pred", False), NAME,
        ),
        ("vector",),
        selection.tensor_copy_predicated,
        (
            checks.same_tile("dst", "src", "predicate"),
            checks.not_both_psum("src", "predicate"),
            checks.same_dtype("dst", "src"),
        ),
    ),
    Spec(
        "nc_n_gather",
        (out(memories=SBUF), tile("data", SBUF), tile("indices", SBUF), NAME),
        ("gpsimd",),
        gathering.nc_n_gather,
        (
            checks.same_tile("dst", "indices"),
            bounds.same_partitions("data", "indices"),
            checks.same_dtype("dst", "data"),
            bounds.dtypes("indices", "uint32"),
        ),
    ),
    Spec(
        "local_gather",
        (
            out(memories=SBUF), tile("src_buffer", SBUF), tile("index", SBUF),
            value("num_elem_per_idx", 1), value("num_valid_indices", None), NAME,
        ),
        ("gpsimd",),
        gathering.local_gather,
        (
            bounds.same_partitions("src_buffer", "index"),
            bounds.partition_count("src_buffer", multiple=16),
            bounds.one_number_of("num_elem_per_idx", 1, 2, 4, 8, 16, 32),
            limits.core_indices("index", "num_valid_indices"),
            bounds.dtypes("index", "uint16"),
            checks.same_dtype("dst", "src_buffer"),
        ),
    ),
)  # fmt: skip
