"""Functions that yield.

A loop over a generator runs the generator's body with the loop's own body in the place of every
`yield`: things happen in the order in which Python does them, and what is emitted stands in the
loops of the generator.  Where a generator is used otherwise (`list`, `zip`, `next`), its body
runs whole first; one that emits instructions is then not understood.
"""

from __future__ import annotations

from collections.abc import Callable

from migrate.nki import classes
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.objects import MISSING, Cursor, Generator, Instance
from migrate.nki.symbols import Origin, constant
from migrate.nki.values import MAX_ITEMS


class Stop(Exception):
    """The loop over a generator ends before the generator does."""


def drive(generator: Generator, sink: Callable[[object, Origin], None], origin: Origin) -> object:
    """Run a generator's body, handing what it yields to `sink`.

    Whatever `sink` raises ends the body (its `finally` blocks run) and is raised here.
    """
    if generator.rest is not None:
        for value in remaining(generator, origin):
            sink(value, origin)
        return None
    if generator.started:
        raise Unsupported("a generator used twice", origin)
    generator.started = True
    failures: list[BaseException] = []

    def guarded(value: object, place: Origin) -> None:
        inner, run.frame = run.frame, outer
        try:
            sink(value, place)
        except BaseException as failure:
            failures.append(failure)
            raise Stop from failure
        finally:
            run.frame = inner

    frame = generator.frame
    run = frame.run
    frame.sink = guarded
    outer, run.frame = run.frame, frame
    loops = run.loops
    try:
        return generator.code.body(frame)
    except Stop:
        if not failures:
            raise
        raise failures[0] from None
    finally:
        run.frame = outer
        run.loops = loops
        generator.rest = []


def remaining(value: Generator | Cursor, origin: Origin) -> list[object]:
    """All that is left of a generator or an iterator, which is then at its end."""
    if isinstance(value, Cursor):
        found = value.items[value.position :]
        value.position = len(value.items)
        return found
    if value.rest is None:
        value.rest = _all(value, origin)
    found, value.rest = value.rest, []
    return found


def following(value: object, origin: Origin) -> object:
    """`next(value)`; `MISSING` at the end."""
    match value:
        case Generator():
            if value.rest is None:
                value.rest = _all(value, origin)
            return value.rest.pop(0) if value.rest else MISSING
        case Cursor():
            if value.position >= len(value.items):
                return MISSING
            value.position += 1
            return value.items[value.position - 1]
        case Instance():
            try:
                return classes.invoke(value, "__next__", (), origin)
            except KernelFault as fault:
                if ends(fault):
                    return MISSING
                raise
    raise KernelFault("type", "next of something that is no iterator", origin)


def ends(fault: KernelFault) -> bool:
    """Whether a fault is a `StopIteration`."""
    return isinstance(fault.value, Instance) and any(
        cls.name == "StopIteration" and cls.run is None for cls in fault.value.cls.mro
    )


def _all(generator: Generator, origin: Origin) -> list[object]:
    found: list[object] = []
    run = generator.frame.run
    before = run.instructions

    def keep(value: object, _: Origin) -> None:
        if len(found) >= MAX_ITEMS:
            raise Unsupported("a very long generator", origin)
        run.step()
        found.append(value)

    drive(generator, keep, origin)
    if run.instructions != before:
        raise Unsupported("a generator that emits instructions, not in a loop", origin)
    return found


def stepped(value: Instance, origin: Origin) -> tuple[object, ...]:
    """What an object that is its own iterator (`__next__`) gives."""
    found: list[object] = []
    while True:
        item = following(value, origin)
        if item is MISSING:
            return tuple(found)
        if len(found) >= MAX_ITEMS:
            raise Unsupported("a very long iterator", origin)
        found.append(item)


def indexed(value: Instance, origin: Origin) -> tuple[object, ...]:
    """What an object gives that has `__getitem__` only: positions until an IndexError."""
    found: list[object] = []
    while len(found) < MAX_ITEMS:
        try:
            item = classes.invoke(value, "__getitem__", (constant(len(found), origin),), origin)
        except KernelFault as fault:
            if fault.kind == "index" or (
                isinstance(fault.value, Instance)
                and any(cls.name == "IndexError" for cls in fault.value.cls.mro)
            ):
                return tuple(found)
            raise
        found.append(item)
    raise Unsupported("a very long sequence", origin)


def sink_of(frame: Frame, origin: Origin) -> Callable[[object, Origin], None]:
    """Where a `yield` in this frame hands its value."""
    if frame.sink is None:
        raise Unsupported("yield outside a function", origin)
    return frame.sink
