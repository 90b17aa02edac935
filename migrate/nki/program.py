"""A kernel being lifted: its buffers, their versions, and names for values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from migrate.ir.nodes import Buffer, Value, Version
from migrate.nki.fold import AllocationNode
from migrate.numerics.dtypes import DType


@dataclass(slots=True)
class Program:
    """What lifting a kernel has made so far: buffers, versions, names."""

    sizes: Mapping[str, int]
    buffers: dict[str, Buffer] = field(default_factory=dict)
    names: dict[AllocationNode, str] = field(default_factory=dict)
    current: dict[str, int] = field(default_factory=dict)
    latest: dict[str, int] = field(default_factory=dict)
    reserved: set[str] = field(default_factory=set)
    values: int = 0

    def value(self, dtype: DType) -> Value:
        self.values += 1
        return Value(f"v{self.values}", dtype)

    def version(self, buffer: str) -> Version:
        return Version(buffer, self.current[buffer])

    def fresh(self, buffer: str) -> Version:
        """A number for the next version; not yet the current one."""
        self.latest[buffer] += 1
        return Version(buffer, self.latest[buffer])

    def declare(self, buffer: Buffer) -> None:
        self.buffers[buffer.name] = buffer
        self.current[buffer.name] = self.latest[buffer.name] = 0

    def unique(self, wanted: str) -> str:
        name, count = wanted, 1
        while name in self.buffers:
            count += 1
            name = f"{wanted}_{count}"
        return name
