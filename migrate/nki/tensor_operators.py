"""Operators of Python on tensors, which only NKI 0.1 has."""

from __future__ import annotations

from typing import Final

from migrate.nki.frames import Frame
from migrate.nki.symbols import Origin
from migrate.nki.values import Problem, View

CODE: Final = "tensor-operator"


def tell(sign: str, frame: Frame, origin: Origin, *operands: object) -> None:
    """Record that an operand is a tensor, if one is."""
    run = frame.run
    view = next((operand for operand in operands if isinstance(operand, View)), None)
    if view is None or run.legacy:
        return
    run.problem(
        Problem(
            CODE,
            f"`{sign}` on the tensor {view.buffer.name}: tensors have no operators since NKI 0.2.0",
            run.reached(origin.span, frame.stack),
            sources=(view.buffer.site.span,),
        )
    )
