"""Specialising a kernel: concrete sizes in, a stream of instructions out.

As the compiler does it: the kernel's Python is a program that writes the program.  With
shapes known, loops unroll, helpers are inlined and conditions resolve.  Instructions go
to a callback as they come; nothing keeps them all.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, product
from math import prod
from typing import TypeAlias

from migrate.budget import Exhausted, Meter
from migrate.nki import imports, views
from migrate.nki.calls import bind, call
from migrate.nki.device_loops import DeviceLoop
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import (
    Assertion,
    Event,
    Frame,
    Instruction,
    LoopStep,
    ModuleScope,
    Run,
)
from migrate.nki.modules import Modules, interpret, module_names
from migrate.nki.objects import Instance
from migrate.nki.operations import MAX_NESTING
from migrate.nki.parse import Kernel, Module, is_jit
from migrate.nki.scoping import lookup
from migrate.nki.statements import Compiler, compiler_of
from migrate.nki.styles import returns_tiles
from migrate.nki.symbols import Number, Origin, constant
from migrate.nki.values import (
    Buffer,
    Function,
    LoopValue,
    Made,
    Memory,
    Problem,
    TensorSpec,
    Unknown,
    View,
)
from migrate.source import SourceError, Span

Structure: TypeAlias = "int | tuple[Structure, ...] | list[Structure] | dict[str, Structure] | None"
"""A return value: the number of a tensor, or containers of such."""


@dataclass(frozen=True, slots=True)
class Specialization:
    """What specialising a kernel found.

    `returned` are the tensors of the return value in order, `structure` that value with their
    numbers in place of them, `parameters` the tensor arguments
    by name, `problems` those of instructions and allocations,
    `functions` the functions of the file that were inlined.
    `complete` is false where something was not understood or the run ended early:
    then nothing may be concluded from what is missing.
    """

    kernel: Kernel
    returned: tuple[View, ...]
    parameters: tuple[tuple[str, View], ...]
    instructions: int
    assertions: tuple[Assertion, ...]
    events: tuple[Event, ...]
    problems: tuple[Problem, ...]
    opaque_statements: frozenset[Span]
    functions: tuple[ast.FunctionDef, ...]
    untaken: tuple[Span, ...]
    complete: bool
    structure: Structure = None
    legacy: bool = False
    """Whether it is of NKI 0.1."""


def specialize(
    module: Module,
    kernel_name: str,
    args: Mapping[str, object],
    *,
    meter: Meter | None = None,
    on_instruction: Callable[[Instruction], None] | None = None,
    on_allocation: Callable[[Buffer], None] | None = None,
    on_comparison: Callable[[str, object, object], None] | None = None,
    on_idle_loop: Callable[[Number], None] | None = None,
    on_loop: Callable[[DeviceLoop, LoopStep], None] | None = None,
    target: str = "trn2",
    grid: tuple[int, ...] = (),
    accumulators: bool = False,
) -> Specialization:
    """Specialise one kernel of a module.

    `args` maps parameters to `TensorSpec` or plain values (numbers, strings, booleans,
    `None`, dtypes, tuples, lists and dictionaries of those).  Parameters with a default
    may be left out.  A `grid` of several programs (`nl.program_id`) is a loop around the
    kernel: its programs are specialised one after the other, with the tensor arguments and
    what they allocate in `nl.shared_hbm` in common.  With `accumulators`, instructions have the
    accumulation registers that they use as an operand (`lanes`).  Raises `SourceError` for an
    unknown kernel or arguments that do not fit it; everything found in the kernel itself is in
    the result.
    """
    kernel = module.kernel(kernel_name)
    scope = ModuleScope(module_names("kernel"))
    run = Run(
        source=module.source,
        meter=meter if meter is not None else Meter(doing=f"specialising {kernel_name}"),
        on_instruction=on_instruction if on_instruction is not None else lambda _: None,
        on_allocation=on_allocation,
        on_comparison=on_comparison,
        on_idle_loop=on_idle_loop,
        on_loop=on_loop,
        target=target,
        scope=scope,
        grid=grid,
        accumulators={} if accumulators else None,
        legacy=returns_tiles(module, kernel),
    )
    project = module.project
    file = project.file if project is not None else None
    compiler = compiler_of(module.tree, module.source, file)
    if project is not None:
        run.modules = Modules(project, run)
    parameters: list[tuple[str, View]] = []
    result: object = None
    finished = False
    try:
        _load_module(module, compiler, run)
        tensors = _tensors(kernel, args, run, compiler)
        parameters.extend(tensors.items())
        run.open = True
        result = _programs(kernel, args, tensors, run, compiler)
        finished = True
    except Unsupported as gap:
        place = gap.origin.span if gap.origin else kernel.span
        run.event("unsupported", gap.reason, gap.span or place)
    except KernelFault as fault:
        failed_assertion = fault.kind == "assert"
        run.event(
            "assert" if failed_assertion else "error",
            fault.message,
            fault.span or (fault.origin.span if fault.origin else kernel.span),
            fault.wanted,
        )
    except (Exhausted, RecursionError) as stop:
        reason = str(stop) if isinstance(stop, Exhausted) else "the kernel is nested too deeply"
        run.event("stopped", reason, run.stopped_at or kernel.span)
    returned: list[View] = []
    if finished and not _collect(result, returned):
        run.event("unsupported", "the kernel returns something that is no tensor", kernel.span)
    failed = any(event.kind != "print" for event in run.events)
    return Specialization(
        kernel,
        tuple(returned),
        tuple(parameters),
        run.instructions,
        tuple(run.assertions),
        tuple(run.events),
        tuple(run.problems.values()),
        frozenset(run.opaque_statements),
        tuple(run.functions),
        _untaken(run),
        finished and not failed,
        _structure(result, count()),
        run.legacy,
    )


def _untaken(run: Run) -> tuple[Span, ...]:
    """Conditions of which one branch, with calls in it, never ran."""
    found: list[Span] = []
    for node, (origin, held, failed) in run.branches.items():
        for ran, body in ((held, node.body), (failed, node.orelse)):
            calls = (isinstance(inner, ast.Call) for part in body for inner in ast.walk(part))
            if not ran and any(calls):
                found.append(origin.span)
    return tuple(dict.fromkeys(found))


def _load_module(module: Module, compiler: Compiler, run: Run) -> None:
    """Bind the module's names.  What fails here fails only where it is used."""
    if module.generation is None:
        # A text that is put into a file with imports; the names are everyone's.
        run.scope.names.update((name, imports.module(path)) for name, path in imports.CONVENTIONAL)
    interpret(module.tree, compiler, module.source, run.scope, run)


def _tensors(
    kernel: Kernel, args: Mapping[str, object], run: Run, compiler: Compiler
) -> dict[str, View]:
    """The tensor arguments; refuses arguments that the kernel does not have."""
    node = kernel.node
    by_name = {
        arg.arg: arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    }
    for name in args:
        if name not in by_name and node.args.kwarg is None:
            raise SourceError(
                f"the kernel {kernel.name} has no parameter {name}",
                file=run.source.name,
                where=kernel.span,
            )
    found: dict[str, View] = {}
    for name, value in args.items():
        if isinstance(value, Number):
            run.reserve(value)
        if isinstance(value, TensorSpec):
            origin = compiler.origin(by_name[name]) if name in by_name else compiler.origin(node)
            site = run.site(origin, None)
            for extent in value.shape:
                run.reserve(extent)
            buffer = run.buffer(name, Memory.HBM, value.shape, value.dtype, site, "parameter")
            found[name] = views.whole(buffer)
    return found


def lifted(value: object, depth: int = 0) -> object:
    """A plain Python value as an interpreted one.  Raises `TypeError` for others."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int | float):
        return constant(value)
    if isinstance(value, tuple | list) and depth < MAX_NESTING:
        items = [lifted(item, depth + 1) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict) and depth < MAX_NESTING:
        return {key: lifted(item, depth + 1) for key, item in value.items()}
    if isinstance(value, Number | View) or type(value).__module__.startswith("migrate."):
        return value
    raise TypeError(f"{type(value).__name__} cannot be a kernel argument")


def _programs(
    kernel: Kernel,
    args: Mapping[str, object],
    tensors: Mapping[str, View],
    run: Run,
    compiler: Compiler,
) -> object:
    """The kernel's result, after all programs of the grid have run in order."""
    if prod(run.grid) == 1:
        return _call(kernel, args, tensors, run, compiler)
    if prod(run.grid) < 1:
        raise Unsupported("a grid without programs")
    node = kernel.node
    column = node.col_offset
    header = Origin(
        run.source,
        node,
        run.source.span_of_lines(
            node.lineno, column, node.lineno, column + len(f"def {node.name}".encode())
        ),
    )
    names = ("program",) if len(run.grid) == 1 else (f"program_{k}" for k in range(len(run.grid)))
    loops = [run.axis_loop(name, "grid", header.span) for name in names]
    trips = [constant(programs) for programs in run.grid]
    results: list[object] = []
    for place in product(*(range(programs) for programs in run.grid)):
        run.step()
        run.programs = run.loops = tuple(map(LoopValue, loops, place, trips))
        run.shared_used = 0
        results.append(_call(kernel, args, tensors, run, compiler))
        if not _alike(results[0], results[-1]):
            raise Unsupported("programs of the grid that return different tensors", header)
        del results[1:]
    run.loops = run.programs = ()
    return results[0]


def _alike(left: object, right: object) -> bool:
    """Whether two programs return the same tensors."""
    found: tuple[list[View], list[View]] = ([], [])
    same = _collect(left, found[0]) == _collect(right, found[1])
    return same and [_window(v) for v in found[0]] == [_window(v) for v in found[1]]


def _window(view: View) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
    return view.buffer.ordinal, view.offset, view.strides, view.sizes


def _call(
    kernel: Kernel,
    args: Mapping[str, object],
    tensors: Mapping[str, View],
    run: Run,
    compiler: Compiler,
) -> object:
    function = _kernel_function(kernel, run)
    values = {name: tensors.get(name, value) for name, value in args.items()}
    values = {name: lifted(value) for name, value in values.items()}
    origin = Origin(run.source, kernel.node, kernel.span)
    frame = Frame(run, function.code, function.scope, None, function.code.depth)
    values = {name: _made(value, frame, origin) for name, value in values.items()}
    bind(function, (), values, frame, origin)
    outer, run.frame = run.frame, frame
    try:
        return function.code.body(frame)
    finally:
        run.frame = outer


def _made(value: object, frame: Frame, origin: Origin) -> object:
    """An argument that is an object of a class of the file, as the file makes it."""
    if not isinstance(value, Made):
        return value
    fields = {name: _made(lifted(field), frame, origin) for name, field in value.fields}
    return call(lookup(frame, value.cls, origin), (), fields, frame, origin)


def _kernel_function(kernel: Kernel, run: Run) -> Function:
    """The function of a kernel; decorators outside `nki.jit` are not its business."""
    bound = run.scope.names.get(kernel.name)
    if isinstance(bound, Function) and bound.node is kernel.node:
        return bound
    plain = run.functions_of.get(kernel.node)
    decorators = kernel.node.decorator_list
    alone = not decorators or is_jit(decorators[-1]) or not any(map(is_jit, decorators))
    ours = isinstance(bound, Unknown) or (isinstance(bound, Function) and bool(decorators))
    if isinstance(plain, Function) and alone and ours and decorators:
        return plain
    if isinstance(bound, Unknown):
        raise Unsupported(f"{kernel.name}: {bound.reason}")
    raise Unsupported(f"the name {kernel.name} is bound to something else at the end")


def _collect(value: object, found: list[View], depth: int = 0) -> bool:
    """The tensors of a return value in order; whether there is nothing else in it."""
    match value:
        case None:
            return depth == 0
        case View():
            found.append(value)
            return True
        case tuple() | list() if depth < MAX_NESTING:
            # Every tensor is wanted, whatever stands beside it.
            kinds = [_collect(item, found, depth + 1) for item in value]
            return all(kinds)
        case dict():
            return _collect(tuple(value.values()), found, depth)
        case Instance() if value.cls.kind == "tuple":
            return _collect(tuple(value.names.values()), found, depth)
        case _:
            return False


def _structure(value: object, numbers: Iterator[int], depth: int = 0) -> Structure:
    """A return value with numbers in place of its tensors, counted as `_collect` finds them."""
    match value:
        case View():
            return next(numbers)
        case tuple() if depth < MAX_NESTING:
            return tuple(_structure(item, numbers, depth + 1) for item in value)
        case list() if depth < MAX_NESTING:
            return [_structure(item, numbers, depth + 1) for item in value]
        case dict() if depth < MAX_NESTING:
            return {str(key): _structure(item, numbers, depth + 1) for key, item in value.items()}
        case Instance() if value.cls.kind == "tuple":
            return tuple(_structure(item, numbers, depth + 1) for item in value.names.values())
        case _:
            return None
