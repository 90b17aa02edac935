"""Issuing an instruction: arguments bound to parameters, checked, and emitted."""

from __future__ import annotations

from migrate.nki import lanes, limits, masks, views
from migrate.nki.checks import Given
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame, Operand
from migrate.nki.instructions import (
    INSTRUCTIONS,
    REQUIRED,
    Enumerated,
    Parameter,
    Spec,
)
from migrate.nki.symbols import Number, Origin, constant
from migrate.nki.values import (
    Issued,
    Mask,
    Member,
    OperatorName,
    Problem,
    Site,
    Unknown,
    View,
    describe,
)


def issue(
    opcode: str,
    args: tuple[object, ...],
    keywords: dict[str, object],
    frame: Frame,
    origin: Origin,
    part: int = 0,
    *,
    on_every_target: bool = False,
) -> Issued:
    """Emit `nisa.<opcode>(*args, **keywords)`, destination first.

    `part` tells instructions of one call apart.  `on_every_target`: the call exists where the
    instruction that stands for it does not.  Raises `KernelFault` for what is no call of it
    at all, `Unsupported` for instructions and operands that are not read.
    """
    run = frame.run
    if not run.open:
        raise Unsupported("an instruction outside a kernel", origin)
    spec = INSTRUCTIONS.get(opcode)
    if spec is None:
        raise KernelFault("name", f"nki.isa has no {opcode}", origin)
    site = run.site(origin, frame.stack, part)
    problems: list[Problem] = []
    mask: object = None
    if "mask" in keywords and spec.parameter("mask") is None:
        mask = keywords["mask"]
        keywords = {name: value for name, value in keywords.items() if name != "mask"}
    values = _bound(spec, args, keywords, site, problems, origin)
    left: Mask | None = None
    if masks.is_masked(mask, values):
        narrowed = masks.narrow(opcode, values, mask, origin, run.step)
        if narrowed is None:
            return Issued(opcode)
        values, left = narrowed
    if not opcode.startswith("dma_"):
        values = _tiles(values, left, origin)
    given = Given(opcode, values, site.span, run.target)
    operands: list[tuple[str, Operand]] = []
    attributes: list[tuple[str, object]] = []
    for parameter in spec.parameters:
        value = values[parameter.name]
        if parameter.kind in ("tile", "column"):
            operand = _operand(spec, parameter, value, origin)
            operands.append((parameter.name, operand))
            if isinstance(operand, View):
                problems.extend(_faults(operand, values.get("oob_mode")))
                memories = limits.memories(spec.opcode, parameter, legacy=run.legacy)
                problems.extend(limits.memory(given, parameter.name, memories))
                problems.extend(limits.partitions(given, parameter.name))
        elif parameter.kind == "tiles":
            several = _several(spec, parameter, value, origin)
            operands.extend(several)
            for _, operand in several:
                if isinstance(operand, View):
                    problems.extend(_faults(operand, values.get("oob_mode")))
        else:
            if parameter.kind == "operator":
                _check_operator(spec, parameter, value, origin)
            attributes.append((parameter.name, value))
    for check in spec.checks:
        problems.extend(check(given))
    if not run.legacy:
        problems.extend(limits.float_columns(given))
    accumulators = lanes.registers(run, spec, operands, attributes, site.span)
    if accumulators is not None:
        operands.append(("registers", accumulators))
    if run.target not in spec.targets and not on_every_target:
        problems.append(Problem("target", f"{opcode} does not exist on {run.target}", site.span))
    run.emit(opcode, operands, attributes, site, tuple(problems), mask=left)
    return Issued(opcode)


def _faults(view: View, mode: object) -> tuple[Problem, ...]:
    """What is wrong with a view: where the instruction leaves out what data place outside, no
    element of such a view is outside.
    """
    if view.indirect and isinstance(mode, Member) and mode.name == "skip":
        return tuple(fault for fault in view.faults if fault.code != "out-of-bounds")
    return view.faults


def _bound(
    spec: Spec,
    args: tuple[object, ...],
    keywords: dict[str, object],
    site: Site,
    problems: list[Problem],
    origin: Origin,
) -> dict[str, object]:
    values: dict[str, object] = {}
    if len(args) > len(spec.parameters):
        raise KernelFault(
            "type", f"{spec.opcode} takes {len(spec.parameters)} arguments, not {len(args)}", origin
        )
    for parameter, value in zip(spec.parameters, args, strict=False):
        values[parameter.name] = value
    for name, value in keywords.items():
        if spec.parameter(name) is None:
            problems.append(
                Problem("argument", f"{spec.opcode} has no parameter {name}", site.span, name)
            )
        elif name in values:
            raise KernelFault("type", f"{spec.opcode} is given {name} twice", origin)
        else:
            values[name] = value
    for parameter in spec.parameters:
        if parameter.name in values:
            continue
        if parameter.default is REQUIRED:
            if parameter.name == "dst":
                raise Unsupported(
                    f"{spec.opcode} without dst (the value-returning style of NKI 0.1)", origin
                )
            raise KernelFault("type", f"{spec.opcode} is not given {parameter.name}", origin)
        values[parameter.name] = _DEFAULTS[spec.opcode][parameter.name]
    return values


def _tiles(values: dict[str, object], mask: Mask | None, origin: Origin) -> dict[str, object]:
    """The arguments with the partition axis of every tile first."""
    blocks: dict[str, View] = {}
    for name, value in values.items():
        if not isinstance(value, View) or not value.buffer.memory.on_chip:
            continue
        if value.buffer.partition and views.block_axes(value):
            blocks[name] = value
        elif not views.partitions_first(value):
            raise Unsupported(f"{name} whose first axis does not go over the partitions", origin)
    if not blocks:
        return values
    if mask is not None:
        raise Unsupported("a mask on several axes of tiles with blocks", origin)
    return values | {name: views.tile(value, origin) for name, value in blocks.items()}


def _default(value: object) -> object:
    if isinstance(value, Enumerated):
        return Member(value.enum, value.name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return constant(value)
    return value


_DEFAULTS = {
    spec.opcode: {parameter.name: _default(parameter.default) for parameter in spec.parameters}
    for spec in INSTRUCTIONS.values()
}


def _operand(spec: Spec, parameter: Parameter, value: object, origin: Origin) -> Operand:
    match value:
        case View():
            return value
        case Number() if parameter.kind == "column":
            return value
        case bool() if parameter.kind == "column":
            return constant(int(value), origin)
        case None if parameter.default is None or parameter.kind == "column":
            return None
        case Unknown():
            raise Unsupported(f"{value.text}: {value.reason}", origin)
    wanted = "a tensor" if parameter.kind == "tile" else "a tensor or a number"
    raise KernelFault(
        "type", f"{spec.opcode}: {parameter.name} is {describe(value)}, {wanted} is needed", origin
    )


def _several(
    spec: Spec, parameter: Parameter, value: object, origin: Origin
) -> list[tuple[str, Operand]]:
    """The tensors of a sequence as operands of their own."""
    if not isinstance(value, tuple | list):
        raise KernelFault(
            "type",
            f"{spec.opcode}: {parameter.name} is {describe(value)}, tensors are needed",
            origin,
        )
    single = Parameter(parameter.name, "tile", memories=parameter.memories)
    return [
        (f"{parameter.name}.{position}", _operand(spec, single, item, origin))
        for position, item in enumerate(value)
    ]


def _check_operator(spec: Spec, parameter: Parameter, value: object, origin: Origin) -> None:
    if isinstance(value, OperatorName) or (value is None and parameter.default is None):
        return
    raise KernelFault(
        "type",
        f"{spec.opcode}: {parameter.name} is {describe(value)}, an operator is needed",
        origin,
    )
