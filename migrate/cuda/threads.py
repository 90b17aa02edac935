"""Statements on lanes: divergence is a mask.

Every statement runs for the lanes of a mask and gives back the mask of the lanes that go on
to the next one; the others have returned, or wait at the end of a loop they left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from migrate.budget import Exhausted
from migrate.cuda.ast import (
    Assert,
    AsyncCopy,
    AsyncGroup,
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
    WarpContract,
)
from migrate.cuda.evaluate import Evaluator
from migrate.cuda.library.asynchrony import Asynchronous
from migrate.cuda.library.contraction import contract
from migrate.cuda.machine import Machine
from migrate.cuda.memory import Buffer
from migrate.cuda.runtime import Frame, Mask, Ref, Slot
from migrate.cuda.types import (
    VOID,
    Type,
    in_memory,
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
        self.asynchronous = Asynchronous(machine)
        # What a statement or a round of a loop costs beside its expressions (see `Evaluator`).
        self._steps = 32 + machine.lanes.total // 1024

    def run(self, kernel: Function, buffers: Mapping[str, Ref], scalars: Mapping[int, Any]) -> None:
        frame = Frame()
        for variable in kernel.parameters:
            given = scalars[variable.id]
            if in_memory(variable.type):
                frame.buffers[variable.id] = given
            else:
                frame.slots[variable.id] = Slot(given)
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
                given = evaluator.value(argument, mask)
                if in_memory(parameter.type):
                    ref = self.private(parameter)
                    machine.store(ref, given, parameter.type, mask, call.span)
                    frame.buffers[parameter.id] = ref
                else:
                    frame.slots[parameter.id] = Slot(given)
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
            case WarpContract():
                self.contract(statement, mask)
                return mask
            case AsyncCopy(body=body):
                self.block(body, mask)
                self.asynchronous.copied(statement, self.evaluator, mask)
                return mask
            case AsyncGroup():
                self.asynchronous.grouped(statement, mask)
                return mask
            case Assert():
                self.check(statement, mask)
                return mask
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
        if in_memory(variable.type):
            self.local_memory(variable, initial, mask, statement.span)
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
            nothing = self.machine.nothing(variable.type, variable.span)
            frame.slots[variable.id] = Slot(nothing, np.zeros_like(mask))
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
            buffer = machine.allocate(
                variable.name, variable.type, lanes.count, "shared", lanes.slot
            )
            ref = Ref(buffer, zero)
        self.shared[key] = ref
        return ref

    def _dynamic(self, variable: Variable) -> Buffer:
        """The launch's dynamic shared memory: all its declarations name the same bytes."""
        if self.dynamic is None:
            lanes = self.machine.lanes
            self.dynamic = self.machine.allocate(
                variable.name, variable.type, lanes.count, "shared", lanes.slot, self.shared_bytes
            )
        return self.dynamic

    def private(self, variable: Variable) -> Ref:
        """Memory of each lane for a variable."""
        lanes = np.arange(self.machine.lanes.total, dtype=np.int64)
        name = variable.name or "a temporary"
        buffer = self.machine.allocate(name, variable.type, len(lanes), "private", lanes)
        return Ref(buffer, np.asarray(0, dtype=np.int64))

    def local_memory(
        self,
        variable: Variable,
        initial: Expression | tuple[Expression, ...] | None,
        mask: Mask,
        span: Span,
    ) -> None:
        machine, frame = self.machine, self.evaluator.frame
        kind = variable.type
        value = None
        if initial is not None and not isinstance(initial, tuple):
            value = self.evaluator.value(initial, mask)
        ref = frame.buffers.get(variable.id)
        if ref is None:
            ref = frame.buffers[variable.id] = self.private(variable)
        if not isinstance(initial, tuple):
            if value is not None:
                machine.store(ref, value, kind, mask, span)
            return
        leaf: Type = kind
        while isinstance(leaf, ArrayType):
            leaf = leaf.element
        offset = 0
        for item in initial:
            made = self.evaluator.value(item, mask)
            at = machine.shifted(ref, np.asarray(offset, dtype=np.int64), leaf.align)
            machine.store(at, made, leaf, mask, span)
            offset += leaf.size
        zero = machine.nothing(leaf, span)
        for rest in range(offset, kind.size, leaf.size):
            at = machine.shifted(ref, np.asarray(rest, dtype=np.int64), leaf.align)
            machine.store(at, zero, leaf, mask, span)

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
        given = evaluator.value(statement.subject, mask)
        given = self.machine.opened(given, statement.subject.type, statement.span)
        subject = np.broadcast_to(given, mask.shape)
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

    def contract(self, statement: WarpContract, mask: Mask) -> None:
        evaluator = self.evaluator
        a, b, c = (
            [evaluator.value(register, mask) for register in registers]
            for registers in (statement.a, statement.b, statement.c)
        )
        self.machine.meter.step(64 * self._steps)
        made = contract(self.machine, statement, a, b, c, mask)
        for register, value in zip(statement.d, made, strict=True):
            evaluator.write(evaluator.find(register, mask), value, mask, statement.span)

    def check(self, statement: Assert, mask: Mask) -> None:
        """Report an assertion that fails, which ends the launch on the device."""
        holds, doubt = self.evaluator.truth(statement.condition, mask)
        failing = self.machine.real(mask) & ~holds
        if doubt is not None:
            failing = failing & ~doubt
        if failing.any():
            self.machine.report(
                "assertion",
                f"the assertion {statement.text} fails",
                statement.span,
                int(np.argmax(failing)),
            )

    def barrier(self, statement: Barrier, mask: Mask) -> None:
        """Every thread of a block that has not exited must arrive, or none."""
        lanes = self.machine.lanes
        if statement.scope == "grid" and lanes.count < math.prod(lanes.grid):
            raise self.machine.unsupported(
                "a barrier of a grid whose blocks do not run together", statement.span
            )
        if statement.scope not in ("block", "grid"):
            if statement.scope == "fence":
                self.machine.races.give_up()
            return
        alive = ~self.kernel_exits
        arrived = self.machine.real(mask).reshape(lanes.count, lanes.threads).sum(axis=1)
        living = alive.reshape(lanes.count, lanes.threads).sum(axis=1)
        split = (arrived > 0) & (arrived < living)
        self.machine.races.barrier(arrived > 0)
        if split.any():
            self.machine.report(
                "divergent-barrier",
                "__syncthreads is reached by a part of the block's threads only",
                statement.span,
                int(np.argmax(split)) * lanes.threads,
            )
