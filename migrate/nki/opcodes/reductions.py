"""Reductions, scans, statistics and searches."""

from __future__ import annotations

from migrate.nki import bounds, checks, limits, scanning, searching, semantics, statistics
from migrate.nki.opcodes.spec import (
    LATER,
    NAME,
    SBUF,
    Parameter,
    Spec,
    column,
    op,
    out,
    tile,
    value,
)
from migrate.nki.operators import PARTITION_REDUCTIONS

SPECS = (
    Spec(
        "tensor_reduce",
        (
            out(), op("op"), tile("data"), value("axis"), value("negate", False),
            value("keepdims", False), NAME,
        ),
        ("vector",),
        semantics.tensor_reduce,
        (
            checks.operator_use("op", "reduce"),
            checks.reduced_axes("dst", "data", "axis"),
            bounds.negated_arithmetic("negate", "op"),
        ),
    ),
    Spec(
        "tensor_partition_reduce",
        (out(memories=SBUF), op("op"), tile("data", SBUF), NAME),
        ("gpsimd",),
        statistics.tensor_partition_reduce,
        (
            bounds.one_operator_of("op", *PARTITION_REDUCTIONS),
            bounds.same_free("dst", "data"),
        ),
    ),
    Spec(
        "tensor_tensor_scan",
        (
            out(), tile("data0"), tile("data1"), column("initial"), op("op0"), op("op1"),
            value("reverse0", False), value("reverse1", False), NAME,
        ),
        ("vector",),
        scanning.tensor_tensor_scan,
        (
            checks.same_tile("dst", "data0", "data1"),
            checks.not_both_psum("data0", "data1"),
            checks.column("initial", "data0"),
            checks.operator_use("op0", "binary"),
            checks.operator_use("op1", "binary"),
        ),
    ),
    Spec(
        "bn_stats",
        (out(), tile("data"), NAME),
        ("vector",),
        statistics.bn_stats,
        (
            bounds.free("data", most=512),
            bounds.free("dst", one_of=(6,)),
            bounds.same_partitions("dst", "data"),
        ),
    ),
    Spec(
        "bn_aggr",
        (out(), tile("data"), NAME),
        ("vector",),
        statistics.bn_aggr,
        (
            bounds.free("data", multiple=3),
            bounds.free("dst", one_of=(2,)),
            bounds.same_partitions("dst", "data"),
        ),
    ),
    Spec(
        "max8",
        (out(memories=()), tile("src", ()), NAME),
        ("vector",),
        searching.max8,
        (
            bounds.free("src", least=8, most=16384),
            bounds.free("dst", one_of=(8,)),
            bounds.rank("src", 3),
            bounds.same_partitions("dst", "src"),
        ),
    ),
    Spec(
        "nc_find_index8",
        (out(memories=()), tile("data", ()), tile("vals", ()), NAME),
        ("vector",),
        searching.nc_find_index8,
        (
            bounds.free("data", least=8, most=16384),
            bounds.free("vals", one_of=(8,)),
            bounds.free("dst", one_of=(8,)),
            bounds.rank("data", 3),
            bounds.rank("vals", 3),
            bounds.dtypes("dst", "uint16", "uint32"),
            bounds.same_partitions("dst", "data", "vals"),
        ),
    ),
    Spec(
        "nc_match_replace8",
        (
            out(memories=()), tile("data", ()), tile("vals", ()), value("imm"),
            Parameter("dst_idx", "tile", None, (), "out"), NAME,
        ),
        ("vector",),
        searching.nc_match_replace8,
        (
            checks.same_tile("dst", "data"),
            bounds.free("vals", one_of=(8,)),
            bounds.free("dst_idx", one_of=(8,)),
            bounds.same_partitions("data", "vals"),
        ),
    ),
    Spec(
        "topk",
        (
            out("val_dst", SBUF), out("idx_dst", SBUF), tile("src", SBUF), value("n"), NAME,
        ),
        ("gpsimd",),
        None,
        (
            bounds.between("n", 8, 65535),
            bounds.partition_count("src", multiple=16),
            bounds.dtypes("src", "bfloat16"),
            bounds.dtypes("val_dst", "bfloat16"),
            bounds.dtypes("idx_dst", "uint32"),
            bounds.free("val_dst", most=32767),
            limits.snake("src", "val_dst", "n"),
            checks.same_tile("val_dst", "idx_dst"),
        ),
        gap="which of equal elements it takes is not documented",
    ),
    Spec(
        "nonzero_with_count",
        (
            out(memories=SBUF), tile("src", SBUF), value("index_offset", 0),
            value("padding_val", -1), NAME,
        ),
        ("gpsimd",),
        searching.nonzero_with_count,
        (
            bounds.one_more("dst", "src"),
            bounds.same_partitions("dst", "src"),
            bounds.dtypes("src", "float32", "int32"),
            bounds.dtypes("dst", "int32"),
        ),
        LATER,
    ),
    Spec(
        "sequence_bounds",
        (out(memories=SBUF), tile("segment_ids", SBUF), NAME),
        ("gpsimd",),
        searching.sequence_bounds,
        (
            bounds.one_partition("segment_ids"),
            bounds.dtypes("segment_ids", "float32", "int32"),
            bounds.dtypes("dst", "float32", "int32"),
            limits.bounds_shape("dst", "segment_ids"),
        ),
    ),
)  # fmt: skip
