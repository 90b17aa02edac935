"""Reductions that are written out: running values in loops, exchanges between threads.

A block's reduction is a loop of each thread, then steps in which a value is combined with
the same value of another thread, through shuffles or a shared array.  All of it is one
reduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from migrate.ir.finder import Finder
from migrate.ir.nodes import (
    Carried,
    Cast,
    Fill,
    Fold,
    Guard,
    Load,
    Map,
    Op,
    Select,
    Space,
    State,
    Store,
    Value,
    operands,
)
from migrate.ir.scene import Kind
from migrate.numerics.operators import OPERATORS

_FAR = 256
"""Values followed backwards to find the reduction that one continues."""


def recurrences(finder: Finder) -> None:
    """Add the reductions of a kernel to what was found of it."""
    found = _Recurrences(finder)
    for op in finder.scene.ops:
        match op:
            case Fold(state=state):
                for carried in state:
                    found.carried(op, carried)
            case Store(into=into, value=value):
                found.updated(op, value)
                if not finder.scene.outside(into):
                    found.taken(op, value)
            case _:
                pass
    for op in finder.scene.ops:
        if isinstance(op, Map):
            found.exchanged(op)


class _Recurrences:
    def __init__(self, finder: Finder) -> None:
        self.finder = finder
        self.scene = finder.scene

    def carried(self, fold: Fold, state: State) -> None:
        """A loop that carries a running sum (product, maximum, ...)."""
        made = self.scene.through_casts(state.next)
        if isinstance(made, Map):
            others = [arg for arg in made.args if not self.comes_from(arg, state.inner)]
            self.accumulate(made, others, (fold,))
        elif isinstance(made, Select):
            self.chosen(made, made.then, made.otherwise, state, fold)
        elif isinstance(made, Guard):
            for merge in made.merges:
                if isinstance(merge.then, Value) and isinstance(merge.otherwise, Value):
                    if merge.result == state.next:
                        self.chosen(made, merge.then, merge.otherwise, state, fold)

    def chosen(
        self, made: Select | Guard, then: Value, otherwise: Value, state: State, fold: Fold
    ) -> None:
        """`if (x > most) most = x`: a maximum that is written out."""
        test = (
            self.scene.through_casts(made.condition) if isinstance(made.condition, Value) else None
        )
        if id(made) in self.finder.draft_of or not isinstance(test, Map):
            return
        if test.operator not in ("greater", "greater_equal", "less", "less_equal"):
            return
        kept = [self.comes_from(x, state.inner) for x in (then, otherwise)]
        asked = [self.comes_from(arg, state.inner) for arg in test.args]
        if sum(kept) != 1 or sum(asked) != 1:
            return
        new = otherwise if kept[0] else then
        beside = test.args[0] if asked[1] else test.args[1]
        if self.origin(new) != self.origin(beside):
            return
        # The new one is taken where it is the larger, however that is asked.
        larger = test.operator.startswith("greater") == asked[1]
        operator = "maximum" if larger != kept[0] else "minimum"
        self.finder.reduction("reduction", made, operator, fold.axes)
        self.finder.join(test, len(self.finder.drafts) - 1)

    def taken(self, store: Store, value: Value) -> None:
        """`if (theirs < mine) mine = theirs` on cells that threads share."""
        around = self.scene.inside[id(store)]
        region = around[-1] if around else None
        if not isinstance(region, Guard) or not isinstance(region.condition, Value):
            return
        test = self.scene.through_casts(region.condition)
        if not isinstance(test, Map) or id(test) in self.finder.draft_of:
            return
        if test.operator not in ("greater", "greater_equal", "less", "less_equal"):
            return
        loads = [self.scene.through_casts(arg) for arg in test.args]
        if not all(
            isinstance(load, Load) and load.source.buffer == store.into.buffer for load in loads
        ):
            return
        asked = [self.origin(arg) == self.origin(value) for arg in test.args]
        if sum(asked) != 1:
            return
        larger = test.operator.startswith("greater") == asked[0]
        operator = "maximum" if larger else "minimum"
        self.finder.reduction("reduction", test, operator, ())
        number = len(self.finder.drafts) - 1
        self.widen(number, self.scene.spaces[store.into.buffer])

    def origin(self, value: Value) -> object:
        """What makes a value; of loads the place, so that one loaded twice is the same."""
        made = self.scene.through_casts(value)
        return (made.source, made.index) if isinstance(made, Load) else id(made)

    def comes_from(self, value: Carried, wanted: Carried) -> bool:
        while value != wanted:
            op = self.scene.maker.get(value)
            if not isinstance(op, Cast):
                return False
            value = op.arg
        return True

    def updated(self, store: Store, value: Value) -> None:
        """`buffer[i] = buffer[i] + something` in a loop."""
        loops = [op for op in self.scene.inside[id(store)] if isinstance(op, Fold)]
        made = self.scene.through_casts(value)
        if not loops or not isinstance(made, Map):
            return
        others: list[Value] = []
        for arg in made.args:
            source = self.scene.through_casts(arg)
            same = isinstance(source, Load) and source.source.buffer == store.into.buffer
            if not (same and isinstance(source, Load) and source.index == store.index):
                others.append(arg)
        # A loop whose axis names the cell gives each cell once: no recurrence.
        named = {name for part in store.index for name in part.axes()}
        turning = tuple(
            loop
            for loop in loops
            if not named & {a.name for a in loop.axes} and not self.starts_over(store, loop)
        )
        if self.scene.outside(store.into):
            # Doing the same again and again is no sum over anything.
            turning = tuple(loop for loop in turning if self.varies(others, loop))
        if turning:
            self.accumulate(made, others, turning)

    def varies(self, values: Sequence[Value], loop: Fold) -> bool:
        """Whether values come from elements that a loop goes through."""
        axes = {axis.name for axis in loop.axes}
        pending: list[Carried] = list(values)
        seen: set[Carried] = set()
        while pending and len(seen) < _FAR:
            current = pending.pop()
            made = self.scene.maker.get(current)
            if current in seen or made is None:
                continue
            seen.add(current)
            if isinstance(made, Load) and any(part.axes() & axes for part in made.index):
                return True
            pending += [used for used in operands(made) if isinstance(used, Value)]
        return False

    def starts_over(self, store: Store, loop: Fold) -> bool:
        """Whether each round of a loop sets the cells anew, before they are added to."""
        for other in self.scene.writes_of.get(store.into.buffer, ()):
            around = self.scene.inside[id(other)]
            if other is store or not any(region is loop for region in around):
                continue
            made = self.scene.through_casts(other.value)
            args = made.args if isinstance(made, Map) else (other.value,)
            sources = [self.scene.through_casts(arg) for arg in args]
            if not any(
                isinstance(source, Load) and source.source.buffer == store.into.buffer
                for source in sources
            ):
                return True
        return False

    def accumulate(self, made: Map, others: list[Value], loops: tuple[Fold, ...]) -> None:
        """`made` combines what the loops carry with `others`."""
        finder = self.finder
        if id(made) in finder.draft_of:
            return
        axes = tuple(axis for loop in loops for axis in loop.axes)
        if made.operator == "fma" and made.args[:2] == tuple(others):
            kind: Kind = "contraction" if self.apart(others) else "reduction"
            finder.reduction(kind, made, "add", axes)
            return
        if not OPERATORS[made.operator].associative or len(others) != 1:
            return
        inner = self.scene.through_casts(others[0])
        number = finder.draft_of.get(id(inner)) if inner is not None else None
        if number is not None and self.continues(number, made.operator):
            finder.join(made, number)
            return
        product = isinstance(inner, Map) and inner.operator == "multiply"
        if made.operator == "add" and product and isinstance(inner, Map) and self.apart(inner.args):
            finder.reduction("contraction", made, "add", axes)
            finder.join(inner, len(finder.drafts) - 1)
        else:
            finder.reduction("reduction", made, made.operator, axes)

    def apart(self, factors: Sequence[Value]) -> bool:
        """Whether two factors are elements that vary over different axes."""
        sources = [self.scene.through_casts(arg) for arg in factors]
        axes = [
            frozenset(name for part in source.index for name in part.axes())
            for source in sources
            if isinstance(source, Load)
        ]
        return len(axes) == 2 and axes[0] != axes[1]

    def continues(self, number: int, operator: str) -> bool:
        return ("operator", operator) in self.finder.drafts[number].attributes

    # -- between threads ----------------------------------------------------------------

    def exchanged(self, op: Map) -> None:
        """A value combined with what another thread has of it."""
        if id(op) in self.finder.draft_of or len(op.args) != 2:
            return
        if not OPERATORS[op.operator].associative:
            return
        for own, other in (op.args, op.args[::-1]):
            source = self.scene.through_casts(other)
            if not isinstance(source, Load) or self.scene.outside(source.source):
                continue
            stored = [s.value for s in self.scene.writes_of.get(source.source.buffer, ())]
            if own not in stored:
                continue
            number, between, shared = self.reduction_of(own, op.operator)
            if number is None:
                self.finder.reduction("reduction", op, op.operator, ())
                number = len(self.finder.drafts) - 1
            else:
                for part in (*between, op):
                    self.finder.join(part, number)
            self.widen(number, self.scene.spaces[source.source.buffer])
            if shared:
                self.widen(number, Space.ONCHIP)
            return

    def reduction_of(self, value: Value, operator: str) -> tuple[int | None, tuple[Op, ...], bool]:
        """The reduction whose result a value is, and the choices at its edge in between.

        The last says whether it comes through memory that a block shares.
        """
        shared = False
        pending: list[Carried] = [value]
        seen: set[Carried] = set()
        between: list[Op] = []
        while pending and len(seen) < _FAR:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            op = self.scene.maker.get(current)
            number = self.finder.draft_of.get(id(op)) if op is not None else None
            if number is not None and self.finder.drafts[number].kind == "reduction":
                if self.continues(number, operator):
                    return number, tuple(between), shared
                continue
            match op:
                case Cast(arg=arg):
                    pending.append(arg)
                case Fold(state=state):
                    pending.extend(s.next for s in state if s.result == current)
                case Load(source=source) if not self.scene.outside(source):
                    stores = self.scene.writes_of.get(source.buffer, ())
                    shared |= self.scene.spaces[source.buffer] is Space.ONCHIP
                    pending.extend(store.value for store in stores)
                case Select(then=then, otherwise=otherwise) if id(op) not in self.finder.draft_of:
                    branches = {x: self.scene.through_casts(x) for x in (then, otherwise)}
                    kept = [x for x, made in branches.items() if not isinstance(made, Fill)]
                    if len(kept) == 1:
                        between.append(op)
                        pending.append(kept[0])
                case _:
                    pass
        return None, (), shared

    def widen(self, number: int, space: Space) -> None:
        """Note that a reduction goes over the threads that exchange values in a memory."""
        draft = self.finder.drafts[number]
        word = "warp" if space is Space.PRIVATE else "block"
        scopes = [
            part for key, part in draft.attributes if key == "scope" for part in part.split("+")
        ]
        if word in scopes:
            return
        kept = [part for part in scopes if part]
        others = tuple(item for item in draft.attributes if item[0] != "scope")
        self.finder.drafts[number] = replace(
            draft, attributes=(*others, ("scope", "+".join((*kept, word))))
        )
