"""Sums in PSUM that are added to what was no product.

On trn1 and trn2 the tensor engine adds to a PSUM location with `accumulate=True` only where it
began the sum itself: onto what another engine put there the result is undefined
(nki/api/nki/isa/__init__.py, nc_matmul).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from migrate.nki.analyses import Base
from migrate.nki.instructions import INSTRUCTIONS
from migrate.nki.values import Memory, Problem, View

if TYPE_CHECKING:
    from migrate.nki.frames import Instruction
    from migrate.nki.specialize import Specialization

_UNDEFINED_ON = frozenset({"trn1", "trn2"})

_Window = tuple[int, tuple[int, ...], tuple[int, ...]]


class Sums(Base):
    """Code `psum-prefilled`, at the product."""

    codes = frozenset({"psum-prefilled"})

    def __init__(self, target: str, guessed: frozenset[str] = frozenset()) -> None:
        super().__init__(target, guessed)
        self._last: dict[int, dict[_Window, Instruction | None]] = {}
        """By buffer and window: what wrote it last, `None` for a product."""
        self._found: dict[int, Problem] = {}

    def execute(self, instruction: Instruction) -> None:
        if self.target not in _UNDEFINED_ON:
            return
        spec = INSTRUCTIONS.get(instruction.opcode)
        for name, view in instruction.operands:
            if not isinstance(view, View) or view.buffer.memory is not Memory.PSUM:
                continue
            parameter = spec.parameter(name) if spec is not None else None
            if parameter is None:
                self._last.pop(view.buffer.ordinal, None)  # not understood: may write anything
            elif parameter.role != "in":
                self._written(view, instruction)

    def _written(self, view: View, by: Instruction) -> None:
        windows = self._last.setdefault(view.buffer.ordinal, {})
        if not view.strided or view.dtype is not view.buffer.dtype:
            windows.clear()
            return
        window = (view.offset, view.sizes, view.strides)
        product = by.opcode.startswith("nc_matmul")
        maker = windows.get(window)
        if maker is None and window not in windows:
            maker = self._whole(view, windows)
        if product and by.attribute("accumulate") is True and maker is not None:
            self._found.setdefault(
                by.site.key,
                Problem(
                    "psum-prefilled",
                    f"{by.opcode}: dst is added to what {maker.opcode} put into PSUM, which is"
                    f" undefined on {self.target}",
                    by.span,
                    "dst",
                    sources=(maker.span,),
                ),
            )
        if len(windows) > 1 and _elements(view) >= view.buffer.elements:
            windows.clear()
        windows[window] = None if product else by

    def _whole(self, view: View, windows: dict[_Window, Instruction | None]) -> Instruction | None:
        """What filled the whole tensor, where nothing has written to a part of it since."""
        if len(windows) != 1:
            return None
        ((_, sizes, _), maker) = next(iter(windows.items()))
        count = 1
        for size in sizes:
            count *= size
        return maker if count >= view.buffer.elements else None

    def problems(self, found: Specialization) -> Iterator[Problem]:
        # `+=` of NKI 0.1 begins the sum itself, whatever is there before.
        if not found.legacy:
            yield from self._found.values()


def _elements(view: View) -> int:
    return view.elements if 0 not in view.strides else 0
