"""`del` statements."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from migrate.nki import classes
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.operations import integer, key_of, list_part
from migrate.nki.symbols import Number
from migrate.nki.values import Slice, describe

if TYPE_CHECKING:
    from migrate.nki.expressions import Expressions


def compiled(compiler: Expressions, target: ast.expr) -> Callable[[Frame], None]:
    """`del target`."""
    origin = compiler.origin(target)
    match target:
        case ast.Name(id=name):

            def forget(frame: Frame) -> None:
                frame.names.pop(name, None)

            return forget
        case ast.Attribute(value=value, attr=name):
            holder = compiler.expression(value)
            return lambda frame: classes.delete(holder(frame), name, origin)
        case ast.Subscript(value=value, slice=key):
            return _item(compiler.expression(value), compiler.expression(key), compiler, target)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            parts = [compiled(compiler, item) for item in items]

            def each(frame: Frame) -> None:
                for part in parts:
                    part(frame)

            return each

    def fail(_: Frame) -> None:
        raise Unsupported("this use of del", origin)

    return fail


def _item(
    container: Callable[[Frame], object],
    key: Callable[[Frame], object],
    compiler: Expressions,
    target: ast.Subscript,
) -> Callable[[Frame], None]:
    origin = compiler.origin(target)

    def delete(frame: Frame) -> None:
        holder, wanted = container(frame), key(frame)
        match holder:
            case dict():
                plain = key_of(wanted, origin)
                if plain not in holder:
                    raise KernelFault("key", "del of a key that is not there", origin)
                del holder[plain]
            case list() if isinstance(wanted, Number | bool):
                position = int(integer(wanted, origin).value)
                if not -len(holder) <= position < len(holder):
                    raise KernelFault("index", f"index {position} in {describe(holder)}", origin)
                del holder[position]
            case list() if isinstance(wanted, Slice):
                del holder[list_part(wanted, origin)]
            case _:
                raise Unsupported(f"del of an item of {describe(holder)}", origin)

    return delete
