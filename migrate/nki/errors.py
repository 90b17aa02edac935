"""How interpreting a kernel can end early."""

from __future__ import annotations

from migrate.nki.symbols import Origin


class Unsupported(Exception):
    """Something this reader does not understand.  The kernel may well be right."""

    def __init__(self, reason: str, origin: Origin | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.origin = origin


class KernelFault(Exception):
    """Something that the compiler would refuse too: an error in the kernel.

    `kind` is `assert`, `name`, `type`, `index`, `value` or `raise`.
    """

    def __init__(self, kind: str, message: str, origin: Origin | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.origin = origin
