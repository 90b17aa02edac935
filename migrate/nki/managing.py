"""`with` statements."""

from __future__ import annotations

from collections.abc import Callable

from migrate.nki import classes, generators
from migrate.nki.calls import call
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.exceptions import caught
from migrate.nki.flow import Execute, Flow
from migrate.nki.frames import Evaluate, Frame
from migrate.nki.imports import Annotation
from migrate.nki.objects import Inert, Instance, Managed, Without
from migrate.nki.operations import truth
from migrate.nki.symbols import Origin
from migrate.nki.values import describe


def compiled(
    context: Evaluate,
    target: Callable[[Frame, object], None] | None,
    body: Execute,
    origin: Origin,
) -> Execute:
    """`with context as target: body`.

    Scheduling annotations of `nki.language` do not change what is computed.
    """

    def enter(frame: Frame, value: object) -> Flow:
        if target is not None:
            target(frame, value)
        return body(frame)

    def execute(frame: Frame) -> Flow:
        value = context(frame)
        match value:
            case Annotation() | Inert():
                return enter(frame, value)
            case Without():
                return enter(frame, value.value)
            case Managed():
                return _managed(value, frame, enter, origin)
            case Instance() if classes.special(value, "__exit__") is not None:
                return _entered(value, frame, enter, origin)
        raise Unsupported(f"with {describe(value)}", origin)

    return execute


def _managed(
    value: Managed, frame: Frame, enter: Callable[[Frame, object], Flow], origin: Origin
) -> Flow:
    """The body stands in the place of the one `yield`."""
    flows: list[Flow] = []

    def turn(given: object, _: Origin) -> None:
        if flows:
            raise KernelFault("raise", "a context manager that yields twice", origin)
        flows.append(enter(frame, given))

    generators.drive(value.generator, turn, origin)
    if not flows:
        raise KernelFault("raise", "a context manager that does not yield", origin)
    return flows[0]


def _entered(
    value: Instance, frame: Frame, enter: Callable[[Frame, object], Flow], origin: Origin
) -> Flow:
    start, end = classes.special(value, "__enter__"), classes.special(value, "__exit__")
    if start is None or end is None:
        raise KernelFault("attribute", f"{value.cls.name} has no __enter__", origin)
    run = frame.run
    loops = run.loops
    given = call(start, (), {}, frame, origin)
    try:
        flow = enter(frame, given)
    except KernelFault as fault:
        run.loops = loops
        error = caught(fault)
        if truth(call(end, (error.cls, error, None), {}, frame, origin), origin):
            return None
        raise
    call(end, (None, None, None), {}, frame, origin)
    return flow
