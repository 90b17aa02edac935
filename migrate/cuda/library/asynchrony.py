"""Executing `AsyncCopy` and `AsyncGroup`: what was copied, and whether it was waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from migrate.cuda.ast import AsyncCopy, AsyncGroup
from migrate.cuda.runtime import Array, Arriving, Mask

if TYPE_CHECKING:
    from migrate.cuda.evaluate import Evaluator
    from migrate.cuda.machine import Machine


class Asynchronous:
    """The groups of copies of each lane (PTX ISA, "Data Movement: Asynchronous Copy").

    `committed` counts a lane's groups, `arrived` those it has waited for; a copy belongs to
    group `committed + 1`.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._committed: Array | None = None
        self._arrived: Array | None = None

    def _counts(self) -> tuple[Array, Array]:
        if self._committed is None or self._arrived is None:
            self._committed = np.zeros(self._machine.lanes.total, np.int32)
            self._arrived = np.zeros(self._machine.lanes.total, np.int32)
        return self._committed, self._arrived

    def copied(self, node: AsyncCopy, evaluator: Evaluator, mask: Mask) -> None:
        """Note what a copy that has been done has written."""
        ref = evaluator.value(node.target, mask)
        machine, buffer = self._machine, ref.buffer
        if buffer is None or buffer.space != "shared":
            return
        committed, arrived = self._counts()
        if buffer.arriving is None:
            size = -(-buffer.total // 4)
            machine.meter.take(12 * size)
            buffer.arriving = Arriving(np.zeros(size, np.int32), np.zeros(size, np.int64), arrived)
        count = node.bytes // 4
        _, position = machine.flat(ref, node.bytes, mask, node.span)
        lanes = np.flatnonzero(mask)
        first = np.broadcast_to(position, mask.shape)[lanes] >> 2
        for part in range(count):
            buffer.arriving.group[first + part] = committed[lanes] + 1
            buffer.arriving.owner[first + part] = lanes

    def grouped(self, node: AsyncGroup, mask: Mask) -> None:
        committed, arrived = self._counts()
        if node.action == "commit":
            committed[mask] += 1
            return
        reached = committed + 1 if node.all else committed - node.pending
        arrived[mask] = np.maximum(arrived, reached)[mask]
        if node.all:
            # What comes now is a new group, even where nothing was committed.
            committed[mask] += 1
