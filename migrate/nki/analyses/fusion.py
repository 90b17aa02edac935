"""Two instructions that one does, where nothing else reads what is between them.

`tensor_scalar` takes two operators, `activation` a scale and a sum of its results,
`scalar_tensor_tensor` a scalar and a tensor operator (nki.isa, each instruction).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.nki.analyses import Base
from migrate.nki.values import Member, OperatorName, Problem, View

if TYPE_CHECKING:
    from migrate.nki.frames import Instruction
    from migrate.nki.specialize import Specialization
    from migrate.nki.values import Site

MANY = 8
"""Pairs at one place before they are told."""

_Window = tuple[int, int, tuple[int, ...], tuple[int, ...]]


@dataclass(slots=True)
class _Made:
    """What an instruction made, until it is made anew: by whom it was read."""

    maker: Instruction
    reads: int = 0
    reader: Instruction | None = None


@dataclass(slots=True)
class _Pair:
    first: Site
    second: Site
    advice: str
    count: int = 0
    broken: bool = False
    """Whether in some iteration something else reads what is between."""


class Fusion(Base):
    """Code `unfused`, at the second instruction."""

    codes = frozenset({"unfused"})

    def __init__(self, target: str, guessed: frozenset[str] = frozenset()) -> None:
        super().__init__(target, guessed)
        self._made: dict[int, dict[_Window, _Made]] = {}
        self._pairs: dict[tuple[int, int], _Pair] = {}

    def execute(self, instruction: Instruction) -> None:
        written: list[View] = []
        for name, operand in instruction.operands:
            if not isinstance(operand, View) or not operand.buffer.memory.on_chip:
                continue
            if name in ("dst", "reduce_res"):
                written.append(operand)
            if name != "dst" or instruction.opcode in _READ_BEFORE:
                self._read(operand, instruction)
        for view in written:
            self._write(view, instruction)

    def _read(self, view: View, by: Instruction) -> None:
        made = self._made.get(view.buffer.ordinal)
        if not made:
            return
        window = _window(view)
        for other, entry in made.items():
            if other == window or _overlap(other, window):
                entry.reads += 1
                entry.reader = by if other == window else None

    def _write(self, view: View, by: Instruction) -> None:
        made = self._made.setdefault(view.buffer.ordinal, {})
        window = _window(view)
        for other in [w for w in made if w == window or _overlap(w, window)]:
            self._close(made.pop(other))
        made[window] = _Made(by)

    def _close(self, made: _Made) -> None:
        """Nothing reads any more what an instruction made."""
        first, second = made.maker, made.reader
        if second is None:
            return
        # The body of a loop on the device comes once; its next turn may read as well.
        if any(turn.loop.on_device for turn in first.loops):
            return
        advice = _advice(first, second)
        if advice is None:
            return
        key = (first.site.key, second.site.key)
        pair = self._pairs.get(key)
        if pair is None:
            pair = self._pairs[key] = _Pair(first.site, second.site, advice)
        pair.count += 1
        pair.broken = pair.broken or made.reads != 1

    def problems(self, found: Specialization) -> Iterator[Problem]:
        if not found.complete:
            return
        kept = {view.buffer.ordinal for view in found.returned}
        for ordinal, made in self._made.items():
            if ordinal not in kept:
                for entry in made.values():
                    self._close(entry)
        for pair in self._pairs.values():
            if pair.count >= MANY and not pair.broken:
                yield Problem(
                    "unfused",
                    f"{pair.advice} ({pair.count:,} times); nothing else reads what is between",
                    pair.second.span,
                    numbers=(("pairs", pair.count),),
                    sources=(pair.first.span,),
                )


_READ_BEFORE = frozenset({"nc_matmul", "tensor_copy_predicated"})
"""Instructions that may read what they write to."""


def _window(view: View) -> _Window:
    """Offset, identity where these do not say where elements are, sizes and strides."""
    placed = view.strided and view.dtype.bytes == view.buffer.dtype.bytes
    return (view.offset, 0 if placed else id(view), view.sizes, view.strides)


def _overlap(left: _Window, right: _Window) -> bool:
    """Whether two windows of one buffer may have elements in common, by their first and last.

    Those of views without strides, or in elements of another size, may be anywhere.
    """
    if left[1] or right[1]:
        return True
    return _first(left) <= _last(right) and _first(right) <= _last(left)


def _first(window: _Window) -> int:
    return window[0]


def _last(window: _Window) -> int:
    return window[0] + sum(
        (size - 1) * stride for size, stride in zip(window[2], window[3], strict=True)
    )


def _advice(first: Instruction, second: Instruction) -> str | None:
    """What one instruction does both, as the beginning of a sentence."""
    data = second.view("data")
    dst = first.view("dst")
    if dst is None:
        return None
    single = first.opcode == "tensor_scalar" and first.attribute("op1") is None
    through = data is not None and _window(data) == _window(dst)
    if single and through and second.opcode == "tensor_scalar":
        if second.attribute("op1") is None:
            return "two tensor_scalar that one does with op0 and op1"
        return None
    if single and through and second.opcode == "activation" and _scales(first):
        if getattr(second.operand("scale"), "value", None) == 1.0:
            return "a tensor_scalar and an activation that its scale does"
        return None
    if single and second.opcode == "tensor_tensor" and _arithmetic(second):
        operands = [second.view("data1"), second.view("data2")]
        ours = [v is not None and _window(v) == _window(dst) for v in operands]
        same = [v is not None and v.buffer is dst.buffer for v in operands]
        if sum(ours) == 1 and sum(same) == 1:
            return "a tensor_scalar and a tensor_tensor that one scalar_tensor_tensor does"
    if (
        first.opcode == "activation"
        and through
        and second.opcode == "tensor_reduce"
        and _operator(second, "op") == "add"
        and (total := second.view("dst")) is not None
        and total.free_elements == 1
        and first.view("reduce_res") is None
        and _idle(first)
    ):
        return "an activation and a sum of it that activation does with reduce_res"
    return None


def _scales(instruction: Instruction) -> bool:
    """Whether it multiplies in arithmetic that a scale does too."""
    return _operator(instruction, "op0") == "multiply"


def _arithmetic(instruction: Instruction) -> bool:
    return _operator(instruction, "op") in {"add", "subtract", "multiply", "maximum", "minimum"}


def _operator(instruction: Instruction, name: str) -> str | None:
    value = instruction.attribute(name)
    return value.name if isinstance(value, OperatorName) else None


def _idle(instruction: Instruction) -> bool:
    command = instruction.attribute("reduce_cmd")
    return not isinstance(command, Member) or command.name == "idle"
