"""Copies, fills and transfers."""

from __future__ import annotations

from migrate.nki import bounds, checks, cores, gathering, limits, semantics
from migrate.nki.opcodes.spec import (
    DMA,
    ENGINE,
    LATER,
    NAME,
    ONCHIP,
    REQUIRED,
    SBUF,
    Enumerated,
    Parameter,
    Spec,
    column,
    op,
    out,
    tile,
    value,
)

_OOB = value("oob_mode", Enumerated("oob_mode", "error"))
_DGE = value("dge_mode", Enumerated("dge_mode", "unknown"))
_PRIORITY = value("priority", None)

SPECS = (
    Spec(
        "dma_copy",
        (out(memories=DMA), tile("src", DMA), _PRIORITY, _OOB, _DGE, ENGINE, NAME),
        ("dma",),
        semantics.copy,
        (
            checks.same_count("dst", "src"),
            limits.hardware_descriptors,
            bounds.between("priority", 0, 3),
        ),
    ),
    Spec(
        "dma_transpose",
        (
            out(memories=DMA), tile("src", DMA), value("axes", None), _PRIORITY, _DGE, _OOB, NAME,
        ),
        ("dma",),
        semantics.dma_transpose,
        (checks.same_count("dst", "src"), checks.same_dtype("dst", "src")),
    ),
    Spec(
        "dma_compute",
        (
            out(memories=DMA), Parameter("srcs", "tiles", REQUIRED, DMA), op("reduce_op"),
            value("scales", None), value("unique_indices", True), _OOB, NAME,
        ),
        ("dma",),
        semantics.dma_compute,
        (
            bounds.source_count("srcs", 16),
            checks.only_operator("reduce_op", "add"),
            bounds.unit_scales("scales"),
        ),
    ),
    Spec(
        "tensor_copy",
        (out(), tile("src"), ENGINE, NAME),
        ("vector", "scalar", "gpsimd"),
        semantics.copy,
        (
            checks.same_tile("dst", "src"),
            checks.gpsimd_not_psum("dst", "src"),
            bounds.not_on("scalar", "trn1"),
        ),
    ),
    Spec(
        "memset",
        (out(), column("value"), ENGINE, NAME),
        ("vector", "gpsimd"),
        semantics.memset,
        (checks.literal_fits("value"), checks.gpsimd_not_psum("dst")),
    ),
    Spec(
        "core_barrier",
        (
            tile("data", ("shared_hbm",)), value("cores"),
            value("engine", Enumerated("engine", "gpsimd")), NAME,
        ),
        ("sequencer",),
        cores.core_barrier,
        (limits.both_cores("cores"),),
        LATER,
    ),
    Spec(
        "sendrecv",
        (
            tile("src", SBUF), out(memories=SBUF), value("send_to_rank"), value("recv_from_rank"),
            value("pipe_id"), value("dma_engine", Enumerated("dma_engine", "dma")), NAME,
        ),
        ("dma", "gpsimd"),
        cores.sendrecv,
        (
            checks.same_tile("dst", "src"),
            checks.same_dtype("dst", "src"),
            bounds.between("send_to_rank", 0, 1),
            bounds.between("recv_from_rank", 0, 1),
            limits.exchanged_bytes,
        ),
        LATER,
    ),
    Spec(
        "nc_stream_shuffle",
        (Parameter("dst", "tile", REQUIRED, ONCHIP, "inout"), tile("src"), value("shuffle_mask"),
         NAME),
        ("vector",),
        gathering.nc_stream_shuffle,
        (
            checks.same_dtype("dst", "src"),
            bounds.same_free("dst", "src"),
            limits.shuffle_mask("shuffle_mask"),
        ),
    ),
)  # fmt: skip
