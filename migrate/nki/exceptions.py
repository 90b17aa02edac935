"""Python's exceptions as classes of the interpreter, and which one a fault is."""

from __future__ import annotations

from migrate.nki.errors import KernelFault
from migrate.nki.frames import Frame
from migrate.nki.objects import Class, Instance
from migrate.nki.symbols import Origin
from migrate.nki.values import Builtin


def _initialise(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    if args and isinstance(args[0], Instance):
        args[0].names["args"] = args[1:]
    return None


def _made() -> dict[str, Class]:
    root = Class("BaseException", (), {"__init__": Builtin("__init__", _initialise)}, "exception")
    root.mro = (root,)
    found = {"BaseException": root}
    for name, base in _BASES:
        made = Class(name, (found[base],), {}, "exception")
        made.mro = (made, *found[base].mro)
        found[name] = made
    return found


_BASES = (
    ("SystemExit", "BaseException"),
    ("KeyboardInterrupt", "BaseException"),
    ("Exception", "BaseException"),
    ("ArithmeticError", "Exception"),
    ("ZeroDivisionError", "ArithmeticError"),
    ("OverflowError", "ArithmeticError"),
    ("AssertionError", "Exception"),
    ("AttributeError", "Exception"),
    ("ImportError", "Exception"),
    ("ModuleNotFoundError", "ImportError"),
    ("LookupError", "Exception"),
    ("IndexError", "LookupError"),
    ("KeyError", "LookupError"),
    ("NameError", "Exception"),
    ("UnboundLocalError", "NameError"),
    ("OSError", "Exception"),
    ("FileNotFoundError", "OSError"),
    ("RuntimeError", "Exception"),
    ("NotImplementedError", "RuntimeError"),
    ("RecursionError", "RuntimeError"),
    ("StopIteration", "Exception"),
    ("TypeError", "Exception"),
    ("ValueError", "Exception"),
    ("MemoryError", "Exception"),
    ("Warning", "Exception"),
    ("UserWarning", "Warning"),
    ("DeprecationWarning", "Warning"),
    ("RuntimeWarning", "Warning"),
)
EXCEPTIONS = _made()
"""By name; the standard library's."""

_KINDS = {
    "assert": "AssertionError",
    "attribute": "AttributeError",
    "division": "ZeroDivisionError",
    "index": "IndexError",
    "key": "KeyError",
    "name": "NameError",
    "type": "TypeError",
    "value": "ValueError",
    "raise": "Exception",
}


def caught(fault: KernelFault) -> Instance:
    """The exception object of a fault, as `except ... as name` binds it."""
    if isinstance(fault.value, Instance):
        return fault.value
    made = Instance(EXCEPTIONS[_KINDS.get(fault.kind, "Exception")], {"args": (fault.message,)})
    fault.value = made
    return made
