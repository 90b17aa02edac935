"""The Tensor engine."""

from __future__ import annotations

from migrate.nki import bounds, matmul_limits, microscaling, semantics
from migrate.nki.opcodes.spec import (
    ENGINE,
    NAME,
    PSUM,
    SBUF,
    Enumerated,
    Spec,
    out,
    tile,
    value,
)

PACKED = ("float8_e5m2_x4", "float8_e4m3fn_x4", "float4_e2m1fn_x4")

SPECS = (
    Spec(
        "nc_matmul",
        (
            out(memories=PSUM), tile("stationary", SBUF), tile("moving", SBUF),
            value("is_stationary_onezero", False), value("is_moving_onezero", False),
            value("is_transpose", False), value("accumulate", None), value("tile_position", ()),
            value("tile_size", ()), value("perf_mode", Enumerated("matmul_perf_mode", "none")),
            NAME,
        ),
        ("tensor",),
        semantics.nc_matmul,
        (
            matmul_limits.matmul_shapes,
            matmul_limits.matmul_dtypes,
            matmul_limits.matmul_tiles,
            matmul_limits.matmul_mode,
        ),
    ),
    Spec(
        "nc_matmul_mx",
        (
            out(memories=PSUM), tile("stationary", SBUF), tile("moving", SBUF),
            tile("stationary_scale", SBUF), tile("moving_scale", SBUF),
            value("tile_position", None), value("tile_size", None), value("accumulate", None),
            NAME,
        ),
        ("tensor",),
        microscaling.nc_matmul_mx,
        (
            bounds.partition_count("stationary", multiple=32),
            bounds.same_partitions("stationary", "moving"),
            bounds.free("stationary", most=128, multiple=2),
            matmul_limits.matmul_tiles,
            bounds.dtypes("stationary", *PACKED),
            bounds.dtypes("moving", *PACKED),
            bounds.dtypes("stationary_scale", "float8_e8m0fnu", "uint8"),
            bounds.dtypes("moving_scale", "float8_e8m0fnu", "uint8"),
            bounds.dtypes("dst", "float32", "bfloat16"),
        ),
        ("trn3",),
    ),
    Spec(
        "nc_transpose",
        (out(), tile("data"), ENGINE, NAME),
        ("tensor", "vector"),
        semantics.nc_transpose,
        (matmul_limits.transpose_shapes,),
    ),
)  # fmt: skip
