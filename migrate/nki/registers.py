"""Registers of the engines' sequencers, which hold integers that are known on the device only.

A register is a tensor of one int32 in a memory of its own, so that whatever reads instructions
sees what goes into it and out of it.  Where an integer was put into it that is known when the
kernel is specialised, the register stands for that integer.  In a loop whose trips are known on
the device only no such integer holds: each iteration may have left another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from migrate.nki import views
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame, Operand, Run
from migrate.nki.operations import integer
from migrate.nki.symbols import Number, Origin, constant
from migrate.nki.values import Builtin, Memory, View, describe
from migrate.numerics.dtypes import DType


@dataclass(slots=True, eq=False)
class Register:
    """A register: where its integer is, and which one that is as far as it is known.

    `epoch` counts the loops on the device that had begun or ended when `known` was put in;
    a `frozen` register may not be written.
    """

    view: View
    known: Number | None = None
    epoch: int = -1
    frozen: bool = False

    def value(self, run: Run) -> Number | None:
        """The integer that it certainly holds now, if one is known."""
        return self.known if self.epoch == run.epoch else None


Bound: TypeAlias = Number | Register


@dataclass(frozen=True, slots=True, eq=False)
class DeviceRange:
    """`start, start + step, ...` below `stop`, one of which only the device knows."""

    iterator: str
    start: Bound
    stop: Bound
    step: Number


@dataclass(frozen=True, slots=True, eq=False)
class DeviceSlice:
    """`nl.ds(start, size)` from where a register, or a tile of one element, says."""

    start: View | Register
    size: Number


def created(run: Run, origin: Origin, frame: Frame, name: str = "", part: int = 0) -> Register:
    """A new register with nothing in it."""
    name = name or run.hint or "register"
    site = run.site(origin, frame.stack, part)
    buffer = run.buffer(name, Memory.REGISTER, (constant(1, origin),), DType.INT32, site)
    return Register(views.whole(buffer))


def put(
    run: Run, register: Register, value: Bound, origin: Origin, frame: Frame, part: int
) -> None:
    """Emit the move of an integer, or of another register's, into a register."""
    source: Operand = value.view if isinstance(value, Register) else value
    site = run.site(origin, frame.stack, part)
    run.emit("register_move", [("dst", register.view), ("src", source)], [], site)
    known = value.value(run) if isinstance(value, Register) else value
    register.known, register.epoch = known, run.epoch


def settled(run: Run, value: object) -> object:
    """The integer that a register is known to hold in place of the register."""
    known = value.value(run) if isinstance(value, Register) else None
    return value if known is None else known


def _given(
    name: str,
    parameters: tuple[str, ...],
    required: int,
    args: tuple[object, ...],
    keywords: dict[str, object],
    frame: Frame,
    origin: Origin,
) -> list[object]:
    if not frame.run.open:
        raise Unsupported("an instruction outside a kernel", origin)
    given = dict(zip(parameters, args, strict=False)) | keywords
    wrong = len(args) > len(parameters) or not given.keys() <= set(parameters)
    if wrong or any(parameter not in given for parameter in parameters[:required]):
        raise KernelFault("type", f"{name} is called with the wrong arguments", origin)
    return [given.get(parameter) for parameter in parameters]


def _writable(value: object, name: str, origin: Origin) -> Register:
    if not isinstance(value, Register):
        raise KernelFault("type", f"{name}: dst is {describe(value)}, no register", origin)
    if value.frozen:
        raise KernelFault("value", f"{name} into the register of a loop", origin)
    return value


def _loaded(
    register: Register, src: object, name: str, origin: Origin, frame: Frame, part: int
) -> None:
    if not isinstance(src, View):
        raise KernelFault("type", f"{name}: src is {describe(src)}, no tensor", origin)
    if src.elements != 1:
        raise KernelFault("value", f"{name} of {src.elements} elements, one is needed", origin)
    if not src.dtype.is_integer:
        raise Unsupported(f"a register that holds a {src.dtype}", origin)
    site = frame.run.site(origin, frame.stack, part)
    operands: list[tuple[str, Operand]] = [("dst", register.view), ("src", src)]
    frame.run.emit("register_load", operands, [], site)
    register.known = None


def allocate(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nisa.register_alloc(x=None)`: empty, or with an integer or a tensor's element in it."""
    (value,) = _given("register_alloc", ("x",), 0, args, keywords, frame, origin)
    register = created(frame.run, origin, frame)
    if isinstance(value, View):
        _loaded(register, value, "register_alloc", origin, frame, 1)
    elif isinstance(value, Register):
        put(frame.run, register, value, origin, frame, 1)
    elif value is not None:
        put(frame.run, register, integer(value, origin), origin, frame, 1)
    return register


def move(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nisa.register_move(dst, src)`; the source was called `imm` in NKI 0.2."""
    if "imm" in keywords:
        keywords = {("src" if name == "imm" else name): v for name, v in keywords.items()}
    dst, src = _given("register_move", ("dst", "src"), 2, args, keywords, frame, origin)
    register = _writable(dst, "register_move", origin)
    value = src if isinstance(src, Register) else integer(src, origin)
    put(frame.run, register, value, origin, frame, 0)
    return None


def load(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nisa.register_load(dst, src)`: the one element of a tensor into a register."""
    dst, src = _given("register_load", ("dst", "src"), 2, args, keywords, frame, origin)
    register = _writable(dst, "register_load", origin)
    _loaded(register, src, "register_load", origin, frame, 0)
    return None


def store(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> object:
    """`nisa.register_store(dst, src)`: a register into the one element of a tensor."""
    dst, src = _given("register_store", ("dst", "src"), 2, args, keywords, frame, origin)
    if not isinstance(dst, View) or dst.elements != 1:
        raise KernelFault("type", "register_store: dst is no tensor of one element", origin)
    source: Operand
    if isinstance(src, Register):
        source = src.view
    elif isinstance(src, Number):
        source = integer(src, origin)  # the position of a loop whose trips are known
    else:
        raise KernelFault("type", f"register_store: src is {describe(src)}", origin)
    site = frame.run.site(origin, frame.stack)
    frame.run.emit("register_store", [("dst", dst), ("src", source)], [], site)
    return None


CALLS = {
    "register_alloc": Builtin("register_alloc", allocate),
    "register_move": Builtin("register_move", move),
    "register_load": Builtin("register_load", load),
    "register_store": Builtin("register_store", store),
}
"""The functions of `nki.isa` on registers, by name."""
