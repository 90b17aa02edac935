"""`targets/*.toml`: what one generation of the accelerator has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

from migrate.facts.base import Fact, read

Engine = Literal["tensor", "vector", "scalar", "gpsimd"]
TargetName = Literal["trn1", "trn2", "trn3"]


class Whole(Fact, frozen=True, kw_only=True):
    """A whole number with its unit and where it is stated."""

    value: int
    unit: str
    source: str
    derived: bool = False
    """Whether it is computed from stated figures rather than stated."""


class Real(Fact, frozen=True, kw_only=True):
    """A measured or rated figure with its unit and where it is stated."""

    value: float
    unit: str
    source: str
    derived: bool = False


class Choices(Fact, frozen=True, kw_only=True):
    """The numbers that are possible, with their unit and where they are stated."""

    value: tuple[int, ...]
    unit: str
    source: str


class StartPartitions(Fact, frozen=True, kw_only=True):
    """Where an operand of up to `most` partitions may begin."""

    most: int
    allowed: tuple[int, ...]
    source: str


class Target(Fact, frozen=True, kw_only=True):
    """One generation of the accelerator; sizes are per core where the name says nothing."""

    name: str
    title: str
    core: str
    also: tuple[str, ...]
    """Other names of it, and of chips with the same core."""
    cores_per_chip: Whole
    partitions: Whole
    sbuf_bytes_per_partition: Whole
    sbuf_usable_bytes_per_partition: Whole | None = None
    """What the compiler leaves to kernels, where that is stated."""
    psum_bytes_per_partition: Whole
    psum_banks: Whole
    psum_bank_bytes: Whole
    matmul_stationary_free: Whole
    matmul_moving_free: Whole
    dma_engines: Whole
    dma_engine_rate: Real
    hbm_bytes: Whole
    hbm_rate: Real
    logical_cores: Choices
    """Cores that one program may span."""
    engine_free_sbuf: Whole
    engine_free_psum: Whole
    """Elements a partition that one instruction of an engine may work on, by memory."""
    bn_stats_free: Whole
    matmul_tile_rows: Choices
    dma_queues_per_engine: Whole
    dma_bytes_per_partition: Whole
    """Contiguous bytes from which on a transfer runs near the peak; advice."""
    dma_start: Real
    """From the signal of another engine to the first byte."""
    sequencer_registers: Whole
    """32-bit registers of each engine's sequencer."""
    instruction_cycles: Whole
    """The least that an instruction takes."""
    clock: dict[Engine, Real]
    width: dict[str, Whole]
    """Elements that an engine takes and gives in a cycle; by width of the dtype where it
    matters."""
    peak: dict[str, Real]
    """The tensor engine's peak by dtype."""
    start_partitions: tuple[StartPartitions, ...]


def target(name: str) -> Target:
    """A target's figures; raises `KeyError` for an unknown one."""
    return targets()[name]


@cache
def targets() -> Mapping[str, Target]:
    """All targets by name."""
    return read("targets.json", dict[str, Target])
