"""From the instruction stream to the semantic IR.

The kernel is specialised at the given sizes, the stream folded (`fold`), each site's
integers resolved to expressions (`resolve`), and its semantics built as IR (`build`)
inside the loops it belongs to.  Loops whose iterations are independent become
`Parallel`, others `Fold`.  What does not fold is unrolled, and what cannot be built is
`Opaque`.

Tensors allocated in a loop get a leading axis for it: each iteration has its own, as the
compiler has it.  A matmul that overwrites in the first iteration of some loops and adds
in the others is a sum that starts from zeros: stored before those loops where that
changes nothing else, otherwise before the matmul, in the iterations that overwrite.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from migrate.budget import Meter
from migrate.ir.index import Range, TooComplex
from migrate.ir.nodes import (
    Axis,
    AxisKind,
    Block,
    Fold,
    Guard,
    Kernel,
    Merge,
    Op,
    Opaque,
    Parallel,
    State,
    Statements,
    Version,
)
from migrate.ir.predicate import TRUE, Predicate
from migrate.nki.access import Accesses
from migrate.nki.accumulation import ADDS, EITHER, OVERWRITES
from migrate.nki.accumulators import continues
from migrate.nki.build_search import InstructionBuilder
from migrate.nki.declare import declare, outputs, writes
from migrate.nki.dependence import independent
from migrate.nki.errors import Unsupported
from migrate.nki.fold import Folder, FoldFailure, LoopNode, SiteNode, numbers_of_view
from migrate.nki.frames import Event
from migrate.nki.instructions import INSTRUCTIONS
from migrate.nki.parse import Module
from migrate.nki.program import Program
from migrate.nki.reinterpret import check_packed
from migrate.nki.resolve import ResolvedSite, condition, resolve
from migrate.nki.specialize import Specialization, specialize
from migrate.nki.symbols import Number
from migrate.nki.values import TensorSpec
from migrate.source import Span

if TYPE_CHECKING:
    from migrate.nki.resolve import Column

MAX_ATTEMPTS = 16
"""Specialisations of a kernel whose loops have to be unrolled one set after the other."""


@dataclass(frozen=True, slots=True)
class LiftedKernel:
    """A kernel as IR, with the specialisation it was read from.

    `kernel` is `None` where the kernel could not be read to its end; the events of the
    specialisation say why.
    """

    kernel: Kernel | None
    specialization: Specialization


def lift(
    module: Module,
    kernel_name: str,
    args: Mapping[str, object],
    *,
    target: str = "trn2",
    grid: tuple[int, ...] = (),
    meter: Meter | None = None,
) -> LiftedKernel:
    """Read a kernel at the sizes in `args` and a grid (see `specialize`) as IR.

    Raises `SourceError` as `specialize` does, `budget.Exhausted` when the meter ends it, and
    `Unsupported` for a kernel whose loops would all have to be unrolled.
    """
    meter = meter if meter is not None else Meter(doing=f"reading {kernel_name}")
    unrolled: frozenset[str] = frozenset()
    sizes = sizes_of(args)
    accumulators = False
    for attempt in range(MAX_ATTEMPTS):
        folder = Folder(unrolled)
        try:
            found = specialize(
                module,
                kernel_name,
                args,
                meter=meter,
                on_instruction=folder.execute,
                on_allocation=folder.allocated,
                target=target,
                grid=grid,
                accumulators=accumulators,
            )
            if not accumulators and any(map(_chained, folder.root.sites())):
                accumulators = True
                continue
            if any(event.kind in {"assert", "error", "stopped"} for event in found.events):
                return LiftedKernel(None, found)
            sites = {
                id(node): resolve(node, sizes)
                for node in folder.root.sites()
                if node.first.opcode != "opaque"
            }
        except FoldFailure as failure:
            more = unrolled | frozenset(failure.axes[-1:])
            if more == unrolled or attempt == MAX_ATTEMPTS - 1:
                raise Unsupported(f"the kernel does not fold: {failure.reason}") from None
            unrolled = more
            continue
        found = replace(found, events=(*found.events, *_ambiguities(folder)))
        kernel = _Lifter(module, folder, sites, sizes, found).kernel()
        return LiftedKernel(kernel, found)
    raise AssertionError("the loop above always returns or raises")


def _chained(node: SiteNode) -> bool:
    """Whether an instruction goes on with what others left in the accumulation registers."""
    spec = INSTRUCTIONS.get(node.first.opcode)
    return spec is not None and spec.accumulator is not None and continues(node.first)


def _ambiguities(folder: Folder) -> Iterator[Event]:
    """Sums that are read and then go on, which the documentation does not settle."""
    for instruction in folder.accumulation.ambiguous.values():
        view = instruction.view("dst")
        assert view is not None
        yield Event(
            "ambiguous",
            f"ambiguous accumulation group: the matmul adds to a sum in {view.buffer.name} that"
            " was already read, and hardware may start it anew",
            instruction.span,
        )


def sizes_of(args: Mapping[str, object]) -> dict[str, int]:
    """The named integers in kernel arguments, also those that only a product has in it."""
    found: dict[str, int] = {}
    pending: list[object] = list(args.values())
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        match value:
            case TensorSpec():
                pending.extend(value.shape)
            case Number():
                if value.symbol and isinstance(value.value, int):
                    found[value.symbol] = value.value
                pending.extend(value.args)
            case tuple() | list():
                pending.extend(value)
            case dict():
                pending.extend(value.values())
            case _:
                pass
    return found


class _Lifter:
    def __init__(
        self,
        module: Module,
        folder: Folder,
        sites: Mapping[int, ResolvedSite],
        sizes: Mapping[str, int],
        found: Specialization,
    ) -> None:
        self.module = module
        self.folder = folder
        self.sites = sites
        self.sizes = dict(sizes)
        self.found = found
        self.program = Program(self.sizes)
        self.ranges: dict[str, Range] = {name: (n, n) for name, n in sizes.items()}
        self.loops: list[Axis] = []
        self.opaque: set[Span] = set(found.opaque_statements)
        self.preambles: dict[int, list[SiteNode]] = {}
        self.from_zero: dict[int, Predicate | None] = {}
        """Matmuls that add to zeros: when those are stored, `None` before the loops."""
        self.accesses = Accesses(self.program, sites, self.ranges)

    def kernel(self) -> Kernel:
        self.program.reserved.update(self.sizes)
        for site in self.sites.values():
            self.program.reserved.update(loop.axis for loop in site.node.loops)
        declare(self.program, self.folder, self.found)
        self._sums()
        body = self._children(self.folder.root)
        results, copies = outputs(self.program, self.folder, self.found, self.ranges)
        return Kernel(
            name=self.found.kernel.name,
            side="nki",
            span=self.found.kernel.span,
            sizes=tuple(sorted(self.sizes)),
            buffers=tuple(self.program.buffers.values()),
            body=(*body, *copies),
            outputs=tuple(results),
            statements=self._statements(),
            computed_at=tuple(sorted(self.sizes.items())),
            untaken=self.found.untaken,
        )

    # Sums that start in a loop

    def _sums(self) -> None:
        """Find matmuls that overwrite in some iterations only."""
        pending: list[tuple[LoopNode, tuple[LoopNode, ...]]] = [(self.folder.root, ())]
        while pending:
            node, path = pending.pop()
            for child in node.children.values():
                if isinstance(child, LoopNode):
                    pending.append((child, (*path, child)))
                elif id(child) in self.sites:
                    self._sum(child, path)

    def _sum(self, node: SiteNode, path: tuple[LoopNode, ...]) -> None:
        site = self.sites[id(node)]
        kinds = set(site.adds.tolist()) - {EITHER}
        if kinds != {ADDS, OVERWRITES} or site.instruction.view("dst") is None:
            return
        overwrites, either = site.adds == OVERWRITES, site.adds == EITHER
        before = self._loop_of_sum(node, site, path, overwrites, either)
        if before is not None:
            self.preambles.setdefault(id(before), []).append(node)
            self.from_zero[id(node)] = None
            return
        starts = condition(site, overwrites, either, self.sizes)
        if starts is not None:
            self.from_zero[id(node)] = starts

    def _loop_of_sum(
        self,
        node: SiteNode,
        site: ResolvedSite,
        path: tuple[LoopNode, ...],
        overwrites: Column,
        either: Column,
    ) -> LoopNode | None:
        """The loop whose first iteration overwrites, if its zeros can be stored before it.

        They can if they are the same in every iteration, the matmul always runs, and
        nothing in the loop touches the sum before the matmul does.
        """
        used = set(_axes_of(site))
        turning = [step for step in path if not step.unrolled]
        if site.where != TRUE:
            return None
        for first in range(len(turning) - 1, -1, -1):
            axes = [step.loop.axis for step in turning[first:] if step.loop is not None]
            extents = site.extents[first:]
            if used.intersection(axes) or any(extent.axes() for extent in extents):
                return None
            starts = site.axes[axes[0]] == 0
            for axis in axes[1:]:
                starts = starts & (site.axes[axis] == 0)
            if bool(((overwrites == starts) | either).all()):
                target = dict(node.allocations)["dst"]
                for other in turning[first].sites():
                    if other is node:
                        return turning[first]
                    if any(allocation is target for _, allocation in other.allocations):
                        return None
        return None

    # Regions

    def _children(self, parent: LoopNode) -> list[Op]:
        ops: list[Op] = []
        guarded: list[SiteNode] = []
        for child in parent.ordered():
            where = self._where(child)
            if guarded and where != self._where(guarded[0]):
                ops.extend(self._guarded(guarded))
                guarded = []
            if where != TRUE:
                assert isinstance(child, SiteNode)
                guarded.append(child)
            elif isinstance(child, SiteNode):
                ops.extend(self._site(child))
            else:
                for node in self.preambles.get(id(child), ()):
                    ops.extend(self._cleared(node))
                ops.extend(self._loop(child))
        if guarded:
            ops.extend(self._guarded(guarded))
        return ops

    def _where(self, child: SiteNode | LoopNode) -> Predicate:
        site = self.sites.get(id(child))
        return site.where if site is not None else TRUE

    def _guarded(self, nodes: Sequence[SiteNode]) -> list[Op]:
        """Sites that run in some iterations only."""
        before = dict(self.program.current)
        allocated = set(self.program.names.values())
        body: list[Op] = []
        for node in nodes:
            body.extend(self._site(node))
        merges: list[Merge] = []
        for name, number in before.items():
            now = self.program.current[name]
            if now != number and name in allocated:
                result = self.program.fresh(name)
                merges.append(Merge(result, Version(name, now), Version(name, number)))
                self.program.current[name] = result.number
        where = self._where(nodes[0])
        return [Guard(where, tuple(body), nodes[0].first.span, (), tuple(merges))]

    def _loop(self, node: LoopNode) -> list[Op]:
        if node.unrolled and node.loop is not None and node.loop.on_device:
            return [self._device_loop(node, node.loop.span)]
        if node.unrolled:
            return self._children(node)
        axis = self._axis(node)
        if axis is None:
            return [self._opaque(site, "a loop without bounds") for site in node.sites()]
        sites = list(node.sites())
        accesses = [access for site in sites for access in self.accesses.of(site)]
        outer = frozenset(loop.name for loop in self.loops)
        parallel = independent(axis.name, accesses, self.ranges, outer)
        if parallel:
            self.loops.append(axis)
            body = tuple(self._children(node))
            self.loops.pop()
            return [Parallel((axis,), body, axis.span)] if body else []
        sequential = Axis(axis.name, axis.extent, AxisKind.SEQUENTIAL, axis.span, axis.sources)
        return self._fold(node, sequential, {a.buffer for a in accesses if a.writes})

    def _fold(self, node: LoopNode, axis: Axis, written: set[str]) -> list[Op]:
        program = self.program
        initial = {name: program.version(name) for name in sorted(written)}
        inner = {name: program.fresh(name) for name in initial}
        for name, version in inner.items():
            program.current[name] = version.number
        self.loops.append(axis)
        body: Block = tuple(self._children(node))
        self.loops.pop()
        states: list[State] = []
        for name, version in initial.items():
            following = program.version(name)
            result = program.fresh(name)
            program.current[name] = result.number
            states.append(State(result, version, inner[name], following))
        return [Fold((axis,), tuple(states), body, axis.span)]

    def _axis(self, node: LoopNode) -> Axis | None:
        """The loop's axis, with the extent that its sites agreed on."""
        assert node.loop is not None
        for site_node in node.sites():
            site = self.sites.get(id(site_node))
            if site is None:
                continue
            position = site_node.loops.index(node.loop)
            extent = site.extents[position]
            trips = next(v.trips for v in site.instruction.loops if v.loop is node.loop)
            _, high = extent.bounds(self.ranges)
            self.ranges[node.loop.axis] = (0, None if high is None else max(high - 1, 0))
            sources = trips.sources() if trips is not None else ()
            kind = AxisKind.GRID if node.loop.iterator == "grid" else AxisKind.TILE
            return Axis(node.loop.axis, extent, kind, node.loop.span, sources)
        return None

    # Sites

    def _site(self, node: SiteNode) -> list[Op]:
        site = self.sites.get(id(node))
        spec = INSTRUCTIONS.get(node.first.opcode)
        if site is None or spec is None or spec.semantics is None:
            known = f"the instruction {node.first.opcode}" if spec is None else spec.refusal
            return [self._opaque(node, node.first.reason or known)]
        current, values = dict(self.program.current), self.program.values
        cleared = self._cleared_here(node)
        builder = InstructionBuilder(self.program, site, tuple(self.loops), self.ranges)
        builder.starts_at_zero = id(node) in self.from_zero
        try:
            check_packed(site.instruction)
            spec.semantics(builder, site.instruction)
        except (Unsupported, TooComplex, ZeroDivisionError) as gap:
            self.program.current.update(current)
            self.program.values = values
            reason = gap.reason if isinstance(gap, Unsupported) else str(gap)
            if isinstance(gap, ZeroDivisionError):
                reason = "a tile with no elements along an axis"
            return [self._opaque(node, reason)]
        return [*cleared, *builder.block]

    def _cleared_here(self, node: SiteNode) -> list[Op]:
        """The zeros of a sum in the iterations that start it."""
        starts = self.from_zero.get(id(node))
        if starts is None:
            return []
        buffer = self.program.names[dict(node.allocations)["dst"]]
        before = self.program.version(buffer)
        body = tuple(self._cleared(node))
        after, result = self.program.version(buffer), self.program.fresh(buffer)
        self.program.current[buffer] = result.number
        return [Guard(starts, body, node.first.span, (), (Merge(result, after, before),))]

    def _cleared(self, node: SiteNode) -> list[Op]:
        site = self.sites[id(node)]
        view = site.instruction.view("dst")
        assert view is not None
        builder = InstructionBuilder(self.program, site, tuple(self.loops), self.ranges)
        builder.clear(view)
        return builder.block

    def _opaque(self, node: SiteNode, reason: str) -> Opaque:
        return self._not_built([node], reason, node.first.span)

    def _device_loop(self, node: LoopNode, span: Span) -> Opaque:
        """A loop whose body was specialised once: how often it runs is in the data."""
        return self._not_built(list(node.sites()), "a loop whose trips depend on data", span)

    def _not_built(self, nodes: Sequence[SiteNode], reason: str, span: Span) -> Opaque:
        args: list[Version] = []
        results: list[Version] = []
        for node in nodes:
            self.opaque.add(node.first.span)
            for name, allocation in node.allocations:
                buffer = self.program.names[allocation]
                version = self.program.version(buffer)
                if version not in args:
                    args.append(version)
                if writes(node, name) and all(r.buffer != buffer for r in results):
                    results.append(self.program.fresh(buffer))
        for result in results:
            self.program.current[result.buffer] = result.number
        text = self.module.source.excerpt(span)
        return Opaque(tuple(results), tuple(args), text, reason, span)

    def _statements(self) -> Statements:
        """Statements of the kernel and of the functions of the file it calls."""
        counted: set[ast.stmt] = set()
        for function in (self.found.kernel.node, *self.found.functions):
            for node in ast.walk(function):
                if isinstance(node, ast.stmt) and node is not function:
                    counted.add(node)
        total = sum(1 for node in counted if not _is_docstring(node))
        places = {(span.start_line, span.start_column) for span in self.opaque}
        return Statements(total, min(len(places), total))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _axes_of(site: ResolvedSite) -> Iterator[str]:
    """The axes that decide where a matmul's result goes and how large it is."""
    view = site.instruction.view("dst")
    assert view is not None
    for number in numbers_of_view(view):
        yield from number.index().axes()
    for part in site.leading["dst"]:
        yield from part.axes()
