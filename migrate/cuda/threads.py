"""Statements on lanes: divergence is a mask.

Every statement runs for the lanes of a mask and gives back the mask of the lanes that go on
to the next one; the others have returned, or wait at the end of a loop they left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from migrate.budget import Exhausted
from migrate.cuda.ast import (
    Barrier,
    Block,
    Break,
    Call,
    Continue,
    Declare,
    Evaluate,
    Expression,
    Function,
    If,
    Loop,
    Opaque,
    Return,
    Statement,
    Switch,
    Variable,
)
from migrate.cuda.evaluate import Evaluator
from migrate.cuda.machine import Machine
from migrate.cuda.runtime import Buffer, Frame, Mask, Ref, Slot
from migrate.cuda.types import (
    VOID,
    Pointer,
    scalar_of,
    scalars_in,
)
from migrate.cuda.types import (
    Array as ArrayType,
)
from migrate.source import Frame as SpanFrame
from migrate.source import Span

MAX_CALLS = 48

MAX_GHOSTLY_ROUNDS = 64
"""Rounds of a loop that are run for the sake of lanes alone that may have stopped already."""


def _joined(first: Mask | None, second: Mask) -> Mask | None:
    if not second.any():
        return first
    return second if first is None else first | second


@dataclass(slots=True)
class _LoopExits:
    """Lanes that left the loop, and lanes that wait for its next round."""

    broken: Mask
    continued: Mask


class Threads:
    """Runs statements for the lanes of one slice."""

    def __init__(self, machine: Machine, file_scope: Frame, shared_bytes: int) -> None:
        self.machine = machine
        self.evaluator = Evaluator(machine, file_scope, self.invoke)
        self.shared_bytes = shared_bytes
        self.shared: dict[tuple[str, int], Ref] = {}
        self.dynamic: Buffer | None = None
        self.loops: list[_LoopExits] = []
        self.kernel_exits: Mask = np.zeros(machine.lanes.total, dtype=np.bool_)
        self.depth = 0
        # What a statement or a round of a loop costs beside its expressions (see `Evaluator`).
        self._steps = 32 + machine.lanes.total // 1024

    def run(self, kernel: Function, buffers: Mapping[str, Ref], scalars: Mapping[int, Any]) -> None:
        frame = Frame()
        for variable in kernel.parameters:
            frame.slots[variable.id] = Slot(scalars[variable.id])
        self.evaluator.frame = frame
        self.block(kernel.body, self.machine.lanes.everyone)

    def invoke(self, call: Call, mask: Mask) -> Any:
        """Run a device function inline; the value that its lanes return."""
        machine, evaluator = self.machine, self.evaluator
        if self.depth >= MAX_CALLS:
            raise machine.unsupported(f"calls nest deeper than {MAX_CALLS} levels", call.span)
        frame = Frame()
        for parameter, argument in zip(call.function.parameters, call.arguments, strict=True):
            if parameter.storage == "reference":
                frame.places[parameter.id] = evaluator.find(argument, mask)
            else:
                frame.slots[parameter.id] = Slot(evaluator.value(argument, mask))
        outer, loops = evaluator.frame, self.loops
        evaluator.frame, self.loops = frame, []
        machine.calls.append(
            SpanFrame(
                kind="call",
                name=call.function.name,
                file=call.span.file,
                line=call.span.start_line,
                column=call.span.start_column,
            )
        )
        self.depth += 1
        doubt, shadow = machine.doubt, machine.shadow
        try:
            self.block(call.function.body, mask)
        finally:
            machine.doubt, machine.shadow = doubt, shadow
            self.depth -= 1
            machine.calls.pop()
            evaluator.frame, self.loops = outer, loops
        if call.type == VOID:
            return None
        if frame.returned is None:
            return machine.nothing(call.type, call.span)
        return frame.returned

    # Statements

    def block(self, block: Block, mask: Mask) -> Mask:
        for statement in block.body:
            if not mask.any():
                return mask
            mask = self.statement(statement, mask)
        return mask

    def statement(self, statement: Statement, mask: Mask) -> Mask:
        """Run a statement; the lanes that go on."""
        try:
            self.machine.meter.step(self._steps)
            return self._statement(statement, mask)
        except Exhausted as stop:
            if stop.where is None:
                stop.where = statement.span
            raise

    def _statement(self, statement: Statement, mask: Mask) -> Mask:
        match statement:
            case Evaluate(expression=expression):
                self.evaluator.discard(expression, mask)
                return mask
            case Declare():
                self.declare(statement, mask)
                return mask
            case Block():
                return self.block(statement, mask)
            case If():
                return self.branch(statement, mask)
            case Loop():
                return self.loop(statement, mask)
            case Return(value=value):
                self.leave(value, mask, statement.span)
                return np.zeros_like(mask)
            case Break():
                self.loops[-1].broken = self.loops[-1].broken | self.machine.real(mask)
                return np.zeros_like(mask)
            case Continue():
                self.loops[-1].continued = self.loops[-1].continued | self.machine.real(mask)
                return np.zeros_like(mask)
            case Barrier():
                self.barrier(statement, mask)
                return mask
            case Switch():
                return self.switch(statement, mask)
            case Opaque(reason=reason, span=span):
                raise self.machine.unsupported(reason, span)

    def leave(self, value: Expression | None, mask: Mask, span: Span) -> None:
        machine, frame = self.machine, self.evaluator.frame
        real, unsure = machine.real(mask), machine.unsure(mask)
        if value is not None:
            result = self.evaluator.value(value, mask)
            if frame.returned is None or (unsure is None and mask.all()):
                frame.returned = result
            else:
                frame.returned = machine.chosen(
                    real, unsure, result, frame.returned, value.type, span
                )
        frame.gone = real if frame.gone is None else frame.gone | real
        if self.depth == 0:
            self.kernel_exits = self.kernel_exits | real

    def declare(self, statement: Declare, mask: Mask) -> None:
        variable, initial = statement.variable, statement.initial
        frame = self.evaluator.frame
        if variable.storage in ("shared", "dynamic-shared"):
            frame.buffers[variable.id] = self.shared_array(variable)
            return
        if variable.storage == "reference":
            assert initial is not None
            assert not isinstance(initial, tuple)
            frame.places[variable.id] = self.evaluator.find(initial, mask)
            return
        if isinstance(variable.type, ArrayType):
            self.local_array(variable, initial, mask, statement.span)
            return
        frame.buffers.pop(variable.id, None)
        if initial is None:
            # A new object each time round a loop: what it held before is gone.
            self._forget(frame, variable, mask)
            return
        assert not isinstance(initial, tuple)
        value = self.evaluator.value(initial, mask)
        self.evaluator.assign(frame, variable, value, mask, statement.span)

    def _forget(self, frame: Frame, variable: Variable, mask: Mask) -> None:
        slot = frame.slots.get(variable.id)
        if slot is None or slot.value is None:
            frame.slots[variable.id] = Slot(None, np.zeros_like(mask))
            if not isinstance(variable.type, Pointer):
                frame.slots[variable.id].value = self.machine.nothing(variable.type, variable.span)
            return
        before = np.ones_like(mask) if slot.defined is None else slot.defined
        slot.defined = before & ~mask

    def shared_array(self, variable: Variable) -> Ref:
        """One instance a block, the same each time its declaration is passed."""
        machine = self.machine
        key = (variable.name, hash((variable.span, tuple(machine.calls))))
        if key in self.shared:
            return self.shared[key]
        lanes = machine.lanes
        zero = np.asarray(0, dtype=np.int64)
        if variable.storage == "dynamic-shared":
            ref = Ref(self._dynamic(variable), zero)
        else:
            each = scalars_in(variable.type)
            base = lanes.slot * each
            buffer = machine.allocate(
                variable.name, variable.type, lanes.count, "shared", base, span=variable.span
            )
            ref = Ref(buffer, zero)
        self.shared[key] = ref
        return ref

    def _dynamic(self, variable: Variable) -> Buffer:
        """The launch's dynamic shared memory: all its declarations name the same bytes."""
        scalar = scalar_of(variable.type)
        if self.dynamic is not None:
            if scalar != self.dynamic.scalar:
                raise self.machine.unsupported(
                    "dynamic shared memory declared with two types", variable.span
                )
            return self.dynamic
        if scalar is None:
            raise self.machine.unsupported(f"shared memory of {variable.type}", variable.span)
        lanes = self.machine.lanes
        size = self.shared_bytes // scalar.size
        self.dynamic = self.machine.allocate(
            variable.name, scalar, lanes.count, "shared", lanes.slot * size, size,
            span=variable.span,
        )  # fmt: skip
        return self.dynamic

    def local_array(
        self,
        variable: Variable,
        initial: Expression | tuple[Expression, ...] | None,
        mask: Mask,
        span: Span,
    ) -> None:
        machine, frame = self.machine, self.evaluator.frame
        kind = variable.type
        ref = frame.buffers.get(variable.id)
        if ref is None:
            each = scalars_in(kind)
            base = np.arange(machine.lanes.total, dtype=np.int64) * each
            buffer = machine.allocate(
                variable.name, kind, machine.lanes.total, "private", base, span=variable.span
            )
            ref = frame.buffers[variable.id] = Ref(buffer, np.asarray(0, dtype=np.int64))
        assert ref.buffer is not None
        scalar = ref.buffer.scalar
        if not isinstance(initial, tuple):
            if initial is not None:
                raise machine.unsupported("an array initialised by one value", span)
            return
        offset = 0
        for value in initial:
            made = self.evaluator.value(value, mask)
            at = Ref(ref.buffer, np.asarray(offset, dtype=np.int64))
            machine.store(at, made, value.type, mask, span)
            offset += scalars_in(value.type)
        zero = machine.constant(0, scalar)
        for rest in range(offset, ref.buffer.size):
            at = Ref(ref.buffer, np.asarray(rest, dtype=np.int64))
            machine.store(at, zero, scalar, mask, span)

    # Control flow

    def branch(self, statement: If, mask: Mask) -> Mask:
        holds, doubt = self.evaluator.truth(statement.condition, mask)
        if doubt is not None:
            return self.doubtful_branch(statement, mask, holds, doubt)
        on = self.block(statement.then, holds) if holds.any() else holds
        fails = mask & ~holds
        if statement.otherwise is not None and fails.any():
            fails = self.block(statement.otherwise, fails)
        return on | fails

    def doubtful_branch(self, statement: If, mask: Mask, holds: Mask, doubt: Mask) -> Mask:
        """A branch on a comparison within the error bound: unsure lanes take both ways.

        What they write on the way that is not theirs only widens bounds.  One that leaves by
        its own way and would have stayed by the other goes along as a shadow.
        """
        machine = self.machine
        outer_doubt, outer_shadow = machine.doubt, machine.shadow
        machine.doubt = doubt if outer_doubt is None else outer_doubt | doubt
        fails = mask & ~holds
        with machine.shadowed(doubt & ~holds):
            on = self.block(statement.then, holds | doubt)
        off = fails | doubt
        if statement.otherwise is not None:
            with machine.shadowed(doubt & holds):
                off = self.block(statement.otherwise, off)
        stayed = (on & holds) | (off & fails)
        ghosts = doubt & ~stayed & (on | off)
        # Lanes that stayed and might have left go on in doubt.
        risky = doubt & stayed & ~(on & off)
        machine.doubt = _joined(outer_doubt, risky)
        machine.shadow = _joined(outer_shadow, ghosts)
        return stayed | ghosts

    def loop(self, statement: Loop, mask: Mask) -> Mask:
        machine, evaluator = self.machine, self.evaluator
        for start in statement.initial:
            mask = self.statement(start, mask)
        none = np.zeros_like(mask)
        exits = _LoopExits(none, none)
        self.loops.append(exits)
        doubt, shadow = machine.doubt, machine.shadow
        active, done = mask, none
        first = True
        ghostly = 0
        try:
            while True:
                machine.meter.step(self._steps)
                skip = statement.kind == "do" and first
                first = False
                if statement.condition is not None and not skip:
                    goes, unsure = evaluator.truth(statement.condition, active)
                    done = done | (active & ~goes)
                    if unsure is not None:
                        # Those that stop and might not have go along for a while.
                        machine.doubt = _joined(machine.doubt, unsure)
                        machine.shadow = _joined(machine.shadow, unsure & ~goes)
                        goes = goes | unsure
                    active = goes
                if machine.shadow is not None and not machine.real(active).any():
                    ghostly += 1
                    if ghostly > MAX_GHOSTLY_ROUNDS:
                        done, active = done | active, none
                if not active.any():
                    break
                exits.continued = none
                active = self.block(statement.body, active)
                if machine.shadow is not None:
                    machine.shadow = machine.shadow & ~exits.continued
                active = active | exits.continued
                if statement.step is not None and active.any():
                    evaluator.value(statement.step, active)
        finally:
            self.loops.pop()
            machine.doubt, machine.shadow = doubt, shadow
        after = done | exits.broken
        gone = evaluator.frame.gone
        if gone is not None and (after & gone).any():
            machine.shadow = _joined(shadow, after & gone)
        return after

    def switch(self, statement: Switch, mask: Mask) -> Mask:
        evaluator = self.evaluator
        subject = np.broadcast_to(evaluator.value(statement.subject, mask), mask.shape)
        none = np.zeros_like(mask)
        exits = _LoopExits(none, none)
        entry: list[Mask] = []
        left = mask
        for case in statement.cases:
            if case.value is None:
                entry.append(none)
                continue
            here = left & (subject == evaluator.value(case.value, mask))
            entry.append(here)
            left = left & ~here
        for position, case in enumerate(statement.cases):
            if case.value is None:
                entry[position] = left
        defaults = any(case.value is None for case in statement.cases)
        # `continue` inside a switch belongs to the loop around it.
        around = self.loops[-1] if self.loops else None
        self.loops.append(exits)
        active = none
        try:
            for position, case in enumerate(statement.cases):
                active = active | entry[position]
                for inner in case.body:
                    if not active.any():
                        break
                    active = self.statement(inner, active)
        finally:
            self.loops.pop()
        if around is not None:
            around.continued = around.continued | exits.continued
        return active | exits.broken | (none if defaults else left)

    def barrier(self, statement: Barrier, mask: Mask) -> None:
        """Every thread of a block that has not exited must arrive, or none."""
        if statement.scope != "block":
            return
        lanes = self.machine.lanes
        alive = ~self.kernel_exits
        arrived = self.machine.real(mask).reshape(lanes.count, lanes.threads).sum(axis=1)
        living = alive.reshape(lanes.count, lanes.threads).sum(axis=1)
        split = (arrived > 0) & (arrived < living)
        if split.any():
            self.machine.report(
                "divergent-barrier",
                "__syncthreads is reached by a part of the block's threads only",
                statement.span,
                int(np.argmax(split)) * lanes.threads,
            )
