"""Loops whose trips only the device knows.

The body is specialised once, as the compiler does it: the position of the loop is a register,
and what is between the begin and the end of the loop is done as often as the data say.
Consumers are told of both (`Run.on_loop`): the simulator repeats the instructions, the lifter
says that it cannot.  Where the trips are known the loop is unrolled like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from migrate.nki.calls import call
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame, LoopStep
from migrate.nki.operations import integer
from migrate.nki.registers import Bound, DeviceRange, Register, created, put, settled
from migrate.nki.scoping import looped
from migrate.nki.symbols import Loop, Number, Origin, constant
from migrate.nki.values import LoopValue, Range, View

MAX_NESTED = 6
"""Loops on the device in one another."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceLoop:
    """One loop: it turns while `counter` is below `stop`, or while `condition` is not 0.

    Of a counted loop the counter starts at `start`; it grows by `step` after each turn.
    `programs` says which program of the grid the loop is in.
    """

    loop: Loop
    programs: tuple[LoopValue, ...] = ()
    counter: View | None = None
    start: View | Number | None = None
    stop: View | Number | None = None
    step: int = 1
    condition: View | None = None


def run_range(
    over: DeviceRange,
    frame: Frame,
    origin: Origin,
    variable: str,
    body: Callable[[object], object],
) -> None:
    """Specialise the body of a counted loop once; it is given the loop's register."""
    run = frame.run
    counter = created(run, origin, frame, variable)
    # What the body of `fori_loop` puts into its register has no effect on the loop.
    counter.frozen = over.iterator != "fori_loop"
    loop = run.loop(origin, frame.stack, variable, over.iterator, False)
    device = DeviceLoop(
        loop, run.programs, counter.view, _side(over.start), _side(over.stop), int(over.step.value)
    )
    _turned(device, frame, origin, lambda: body(counter))


def run_while(
    register: Register,
    frame: Frame,
    origin: Origin,
    body: Callable[[], object],
    iterator: str = "register_while",
) -> None:
    """Specialise the body of a loop once that goes on while a register is not 0."""
    loop = frame.run.loop(origin, frame.stack, "turn", iterator, False)
    _turned(DeviceLoop(loop, frame.run.programs, condition=register.view), frame, origin, body)


def _side(bound: Bound) -> View | Number:
    return bound.view if isinstance(bound, Register) else bound


def _turned(device: DeviceLoop, frame: Frame, origin: Origin, body: Callable[[], object]) -> None:
    run = frame.run
    if not run.open:
        raise Unsupported("a loop on the device outside a kernel", origin)
    if sum(value.trips is None and value.loop.on_device for value in run.loops) >= MAX_NESTED:
        raise Unsupported(f"more than {MAX_NESTED} nested loops on the device", origin)
    outer = run.loops
    # What registers hold at the begin of a turn depends on the turn before.
    run.epoch += 1
    if run.on_loop is not None:
        run.on_loop(device, "begin")
    run.loops = (*outer, LoopValue(device.loop, 0, None))
    step: LoopStep = "given up"
    try:
        flow = body()
        step = "end"
    finally:
        run.loops = outer
        run.epoch += 1
        if run.on_loop is not None:
            run.on_loop(device, step)
    if flow is not None:
        raise Unsupported("leaving a loop on the device before its end", origin)


def fori_loop(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nl.fori_loop(lower, upper, body_fun, step=1)`."""
    names = ("lower", "upper", "body_fun", "step")
    given = dict(zip(names, args, strict=False)) | keywords
    if len(args) > 4 or not set(names[:3]) <= given.keys() <= set(names):
        raise KernelFault("type", "fori_loop is called with the wrong arguments", origin)
    over = ranged(
        frame, "fori_loop", given["lower"], given["upper"], given.get("step", constant(1)), origin
    )
    function = given["body_fun"]

    def body(position: object) -> object:
        if call(function, (position,), {}, frame, origin) is not None:
            raise Unsupported("a body of fori_loop that returns something", origin)
        return None

    if isinstance(over, DeviceRange):
        run_range(over, frame, origin, "i", body)
        return None
    for position in looped(over, frame, origin, "i"):
        body(position)
    return None


def while_loop(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nl.while_loop(init, body_fun)`: the body returns the next condition."""
    given = dict(zip(("init", "body_fun"), args, strict=False)) | keywords
    if len(args) > 2 or given.keys() != {"init", "body_fun"}:
        raise KernelFault("type", "while_loop is called with the wrong arguments", origin)
    init = given["init"]
    if not isinstance(init, Register):
        raise KernelFault("type", "while_loop: init is no register", origin)
    # The body gets the condition by value: what it does to the register it is given is seen
    # only through the register that it returns.
    condition = created(frame.run, origin, frame, "condition")
    put(frame.run, condition, init, origin, frame, 1)

    def body() -> object:
        found = call(given["body_fun"], (condition,), {}, frame, origin)
        if not isinstance(found, Register):
            raise KernelFault("type", "the body of while_loop returns no register", origin)
        if found is not condition:
            put(frame.run, condition, found, origin, frame, 2)
        return None

    run_while(condition, frame, origin, body, "while_loop")
    return None


def ranged(
    frame: Frame, iterator: str, start: object, stop: object, step: object, origin: Origin
) -> Range | DeviceRange:
    """A range with bounds that may be registers.  Raises `KernelFault` for other values."""
    from migrate.nki.builtins import trips

    by = integer(step, origin)
    if by.value <= 0:
        raise KernelFault("value", f"{iterator} with step {by.value}", origin)
    first, last = (settled(frame.run, bound) for bound in (start, stop))
    if isinstance(first, Register) or isinstance(last, Register):
        ends = [
            bound if isinstance(bound, Register) else integer(bound, origin)
            for bound in (first, last)
        ]
        return DeviceRange(iterator, ends[0], ends[1], by)
    low, high = integer(first, origin), integer(last, origin)
    return Range(iterator, low, by, trips(low, high, by, origin))
