"""Names, subscripts and loops of interpreted code, by Python's rules."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from migrate.nki import classes, indexing, indices, indirect, views
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame, ModuleScope
from migrate.nki.objects import MISSING, Class, Cursor, Deferred, Instance
from migrate.nki.operations import integer, iteration, key_of, text_of
from migrate.nki.symbols import Number, Origin, axis, constant
from migrate.nki.values import (
    Builtin,
    Function,
    Iteration,
    LoopValue,
    Namespace,
    Range,
    Slice,
    Unknown,
    View,
    describe,
)


def name_of(target: ast.expr) -> str:
    """The name a loop's axis is shown under."""
    match target:
        case ast.Name(id=name):
            return name
        case ast.Tuple(elts=[ast.Name(id=name), *_]):
            return name
        case _:
            return "i"


def lookup(frame: Frame, name: str, origin: Origin) -> object:
    """A name by Python's scoping.  Raises `KernelFault` where it is not bound."""
    here: Frame | ModuleScope = frame
    while isinstance(here, Frame):
        if name in here.names:
            return _known(here.names[name], origin)
        code = here.code
        if code is not None and name in code.local_names and name not in code.nonlocal_names:
            raise KernelFault("name", f"{name} is used before it is assigned", origin)
        here = here.outer
    if name in here.names:
        return _known(here.names[name], origin)
    for module in here.stars:
        found = _starred(module, name, origin)
        if found is not None:
            return found
    from migrate.nki.object_builtins import BUILTINS

    builtin = BUILTINS.get(name)
    if builtin is None:
        if name in _PYTHON_NAMES:
            raise Unsupported(f"the Python function {name}", origin)
        raise KernelFault("name", f"the name {name} is not defined", origin)
    return builtin


def _starred(module: object, name: str, origin: Origin) -> object:
    """A name that `from module import *` may have bound."""
    if isinstance(module, Namespace) and not name.startswith("_"):
        from migrate.nki.library import resolve

        found = resolve(module.path, name)
        return None if isinstance(found, Unknown) else found
    if isinstance(module, Unknown) and name not in _PYTHON_NAMES:
        raise Unsupported(f"{name} may come from {module.text}: {module.reason}", origin)
    return None


def _known(value: object, origin: Origin) -> object:
    if isinstance(value, Deferred):
        value = value.get()
    if isinstance(value, Unknown):
        raise Unsupported(f"{value.text} is not understood: {value.reason}", origin)
    return value


def store(frame: Frame, name: str, value: object) -> None:
    """Bind a name in the frame it belongs to."""
    code = frame.code
    if code is not None and name in code.nonlocal_names:
        outer: Frame | ModuleScope = frame.outer
        while isinstance(outer, Frame):
            if name in outer.names and name not in code.global_names:
                outer.names[name] = value
                return
            outer = outer.outer
        outer.names[name] = value
        return
    frame.names[name] = value


def subscript(value: object, key: object, origin: Origin) -> object:
    """`value[key]`."""
    match value:
        case View() | indices.Masked() if isinstance(key, indices.Condition | bool):
            return indexing.masked(value, key, origin)
        case indices.Masked():
            raise Unsupported("indexing what a mask is on already", origin)
        case View():
            keys = key if isinstance(key, tuple) else (key,)
            if indirect.is_dynamic(keys):
                return indirect.subscript(value, keys, origin)
            if indexing.is_indexed(keys):
                return indexing.subscript(value, keys, origin)
            return views.subscript(value, keys, origin)
        case indices.IndexTensor():
            return indices.subscript(value, key, origin)
        case indices.GridMaker():
            return indices.grid(key, origin)
        case indices.IndexGrid():
            return subscript(value.items, key, origin)
        case tuple() | list() | str():
            if isinstance(key, Slice):
                if key.step is not None and key.step.value == 0:
                    raise KernelFault("value", "a slice with step 0", origin)
                return value[_python_slice(key)]
            position = int(integer(key, origin).value)
            if not -len(value) <= position < len(value):
                raise KernelFault("index", f"index {position} in {describe(value)}", origin)
            return value[position]
        case dict():
            plain = key_of(key, origin)
            if plain not in value:
                raise KernelFault("key", f"no key {text_of(key, 1)} in a dictionary", origin)
            return value[plain]
        case Range() if isinstance(key, Number):
            position = int(integer(key, origin).value)
            trips = int(value.trips.value)
            if not -trips <= position < trips:
                raise KernelFault("index", f"index {position} in a range", origin)
            return value.element(key if position >= 0 else constant(position + trips, origin))
        case Function():
            raise Unsupported("launching a kernel on a grid", origin)
        case Instance() | Class() | Cursor() | Iteration():
            return _of_object(value, key, origin)
        case Builtin(name="list" | "dict" | "tuple" | "set" | "frozenset" | "type"):
            # `list[int]` makes what `list` makes.
            return value
        case Namespace() | Number() | bool() | None:
            raise KernelFault("type", f"indexing {describe(value)}", origin)
    raise Unsupported(f"indexing {describe(value)}", origin)


def _of_object(value: object, key: object, origin: Origin) -> object:
    """`value[key]` of an object, of an enum by name, of a generic type."""
    match value:
        case Instance():
            found = classes.items(value)
            if found is not None:
                return subscript(found, key, origin)
            result = classes.invoke(value, "__getitem__", (key,), origin)
            if result is not MISSING:
                return result
            if value.cls.stranger is not None:
                raise Unsupported(f"indexing an object of {value.cls.name}", origin)
        case Class() if value.kind == "enum":
            if isinstance(key, str) and key in value.members:
                return value.members[key]
            raise KernelFault("key", f"{describe(key)} is no member of {value.name}", origin)
        case Class():
            return value
        case _:
            raise Unsupported("indexing an iterator", origin)
    raise KernelFault("type", f"indexing {describe(value)}", origin)


def _python_slice(key: Slice) -> slice:
    def plain(part: Number | None) -> int | None:
        return None if part is None else int(part.value)

    return slice(plain(key.start), plain(key.stop), plain(key.step))


def looped(value: object, frame: Frame, origin: Origin, variable: str) -> Iterator[object]:
    """The elements a loop runs over, with the loop's position set while each is used."""
    run = frame.run
    if not isinstance(value, Range | Iteration):
        run.touch(value)
    over = iteration(value, origin)
    loop = run.loop(origin, frame.stack, variable, over.iterator, over.counted)
    outer = run.loops
    if over.trips.value <= 0 and run.on_idle_loop is not None:
        run.on_idle_loop(over.trips)
    for position in range(int(over.trips.value)):
        run.step()
        run.loops = (*outer, LoopValue(loop, position, over.trips))
        yield over.element(axis(loop, position, origin))
        if isinstance(value, list | dict) and len(value) != over.trips.value:
            run.loops = outer
            raise Unsupported(f"a loop over {describe(value)} that the loop changes", origin)
    run.loops = outer


_PYTHON_NAMES = frozenset(dir(builtins))
