"""How interpreting a kernel can end early."""

from __future__ import annotations

from typing import TypeAlias

from migrate.nki.symbols import Number, Origin
from migrate.source import Span

Wanted: TypeAlias = tuple[Number, str, Number]
"""A comparison of two numbers, the sign in the middle."""


class Unsupported(Exception):
    """Something this reader does not understand.  The kernel may well be right."""

    def __init__(self, reason: str, origin: Origin | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.origin = origin
        self.span: Span | None = None
        """The place with the calls that led to it, once that is known."""


class KernelFault(Exception):
    """Something that the compiler would refuse too: an error in the kernel.

    `kind` is `assert`, `name`, `type`, `index`, `key`, `value`, `attribute`, `division` or
    `raise`.  `wanted` is what numbers would have to be for the fault not to be there, where that
    can be said.  `value` is the exception object that the kernel raised.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        origin: Origin | None = None,
        wanted: tuple[Wanted, ...] = (),
    ) -> None:
        super().__init__(message)
        self.wanted = wanted
        self.kind = kind
        self.value: object = None
        self.span: Span | None = None
        self.message = message
        self.origin = origin
