"""`nki.compiler` of NKI 0.1: allocation by hand, and decorators that steer the compiler.

Where a tensor lies does not change what is computed: the allocators stand for their memory.
"""

from __future__ import annotations

from migrate.nki.errors import KernelFault
from migrate.nki.frames import Frame
from migrate.nki.imports import Annotation
from migrate.nki.objects import Inert
from migrate.nki.symbols import Origin
from migrate.nki.values import Builtin, Function, Member, Memory, Namespace

_DECORATORS = frozenset(
    {"enable_stack_allocator", "force_auto_alloc", "skip_middle_end_transformations"}
)
_ALLOCATORS = frozenset({"alloc", "auto_alloc", "mod_alloc"})
_VERSIONS = {"trn1": "gen2", "trn2": "gen3", "trn3": "gen4"}


def resolve(path: str, name: str) -> object:
    """A name of `nki.compiler` or of its memories; `None` where it is not read."""
    memory = {"nki.compiler.sbuf": Memory.SBUF, "nki.compiler.psum": Memory.PSUM}.get(path)
    if memory is not None:
        return Builtin(name, lambda *_: memory) if name in _ALLOCATORS else None
    if name in ("sbuf", "psum"):
        return Namespace(f"{path}.{name}")
    if name in _DECORATORS:
        return Builtin(name, _decorate)
    if name == "no_reorder":
        return Builtin(name, lambda *_: Annotation(name))
    if name in ("allocation_scope", "multi_buffer"):
        return Inert(f"{path}.{name}")
    return None


def _decorate(_: Frame, args: tuple[object, ...], __: dict[str, object], ___: Origin) -> object:
    """The function, with or without options."""
    if args and isinstance(args[0], Function):
        return args[0]
    return Builtin("decorator", _decorate)


def version(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nisa.get_nc_version()`: the generation of the target's cores."""
    if args or keywords:
        raise KernelFault("type", "get_nc_version takes no arguments", origin)
    return Member("nc_version", _VERSIONS[frame.run.target])
