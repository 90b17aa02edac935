"""Branches as guards, and what is known where their two sides meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from migrate.cuda import ast
from migrate.cuda.lifting.base import RETURNED, State
from migrate.cuda.lifting.expressions import PURE, Expressions
from migrate.cuda.lifting.symbolic import (
    Data,
    NotLifted,
    Number,
    Parts,
    Pointer,
    Symbolic,
    Truth,
    Unknown,
    Unset,
)
from migrate.cuda.types import Scalar
from migrate.ir.nodes import (
    Condition,
    Guard,
    Merge,
    Op,
    Select,
    Value,
    Version,
)
from migrate.ir.predicate import FALSE, TRUE, Predicate, negate
from migrate.source import Span


class Branches(Expressions):
    """Lifts a condition with its two sides."""

    def sequence(self, body: Sequence[ast.Statement]) -> bool:
        """Lift statements in order; whether all threads have left at the end."""
        raise NotImplementedError

    def _either(
        self,
        statement: ast.If,
        then: Sequence[ast.Statement],
        otherwise: Sequence[ast.Statement],
    ) -> None:
        span = self.at(statement.span)
        conditions = self._conditions(statement.condition, bool(otherwise))
        if FALSE in conditions:
            self.sequence(otherwise)
            return
        conditions = [condition for condition in conditions if condition != TRUE]
        if not conditions:
            self.sequence(then)
            return
        self._guarded(conditions, lambda: self._run(then), lambda: self._run(otherwise), span)

    def _conditions(self, condition: ast.Expression, has_else: bool) -> list[Condition]:
        """The condition; without an else, a conjunction of an index part and a data part."""
        lifted = self.truth(condition) if has_else or not _mixed(condition) else None
        if lifted is not None:
            return [lifted]
        parts: list[Condition] = []
        # The data part is lifted inside the guard of the index part, see `_guarded`.
        assert isinstance(condition, ast.Logical)
        left = self.truth(condition.left)
        if isinstance(left, Value):
            return [self.truth(condition)]
        before = len(self.ops)
        with self.under(left):
            right = self.truth(condition.right)
        if isinstance(right, Value):
            parts = [left, right]
        else:
            del before
            from migrate.ir.predicate import both

            parts = [both(left, right)]
        return parts

    def _guarded(
        self,
        conditions: list[Condition],
        then: Callable[[], None],
        otherwise: Callable[[], None],
        span: Span,
    ) -> None:
        """Lift `then` where all conditions hold, `otherwise` where the first does not.

        With several conditions there is nothing to do otherwise.
        """
        condition, *inner = conditions
        start = self.state.copy()
        body, after_then = self._region(
            condition, (lambda: self._guarded(inner, then, _nothing, span)) if inner else then
        )
        self.state = start.copy()
        opposite: Condition | None = None
        if not isinstance(condition, Value):
            opposite = negate(condition)
        other, after_other = self._region(opposite, otherwise)
        merges = self._merges(start, body, after_then, other, after_other, span)
        if not body and not other and not merges:
            return
        if all(isinstance(op, PURE) for op in (*body, *other)):
            # Nothing but values: they can be computed everywhere and chosen from.
            self.ops += [*body, *other]
            for merge in merges:
                assert isinstance(merge.result, Value)
                assert isinstance(merge.then, Value)
                assert isinstance(merge.otherwise, Value)
                chosen = Select(merge.result, condition, merge.then, merge.otherwise, span)
                self.emit(chosen)
            return
        if not body and opposite is not None:
            flipped = tuple(Merge(m.result, m.otherwise, m.then) for m in merges)
            self.emit(Guard(opposite, tuple(other), span, (), flipped))
        else:
            self.emit(Guard(condition, tuple(body), span, tuple(other), merges))

    def _run(self, body: Sequence[ast.Statement]) -> None:
        self.sequence(body)

    def _region(
        self, condition: Condition | None, action: Callable[[], None]
    ) -> tuple[list[Op], State]:
        """Lift inside a guard; its operations and what is known at its end."""
        facts: tuple[Predicate, ...] = ()
        if condition is not None and not isinstance(condition, Value):
            facts = (condition,)
        guarded = self.guarded
        with self.block() as ops, self.under(*facts):
            self.guarded = len(self.known.facts)
            try:
                action()
            finally:
                self.guarded = guarded
        return ops, self.state

    def _merges(
        self,
        start: State,
        body: list[Op],
        then: State,
        other: list[Op],
        otherwise: State,
        span: Span,
    ) -> tuple[Merge, ...]:
        """Bring together what the two branches know; the state becomes the merged one."""
        merges: list[Merge] = []
        state = start.copy()
        kept = {*start.variables, (self.frame, RETURNED)}
        for key in kept:
            a = then.variables.get(key, Unset())
            b = otherwise.variables.get(key, Unset())
            if key not in then.variables and key not in otherwise.variables:
                continue
            state.variables[key] = self._merged(a, b, body, other, merges, span)
        for name in start.versions:
            a_version, b_version = then.versions[name], otherwise.versions[name]
            if a_version == b_version:
                state.versions[name] = a_version
                continue
            self.counts[name] += 1
            version = Version(name, self.counts[name])
            merges.append(Merge(version, a_version, b_version))
            state.versions[name] = version
        for name in {*then.versions, *otherwise.versions} - set(start.versions):
            # Storage made inside lives on, so that a later passage finds it.
            state.versions[name] = Version(name, 0)
            self.counts[name] = max(self.counts[name], 0)
        self.state = state
        return tuple(merges)

    def _merged(
        self,
        a: Symbolic,
        b: Symbolic,
        body: list[Op],
        other: list[Op],
        merges: list[Merge],
        span: Span,
    ) -> Symbolic:
        if a == b or _same(a, b):
            return a
        if isinstance(a, Unknown) or isinstance(b, Unknown):
            return a if isinstance(a, Unknown) else b
        if isinstance(a, Parts) and isinstance(b, Parts):
            pairs = zip(a.items, b.items, strict=True)
            return Parts(tuple(self._merged(x, y, body, other, merges, span) for x, y in pairs))
        if isinstance(a, Unset) and isinstance(b, Unset):
            return a
        if isinstance(a, Pointer) and isinstance(b, Pointer) and a.buffer == b.buffer is not None:
            offset = self._merged(a.offset, b.offset, body, other, merges, span)
            if isinstance(offset, Number | Data):
                return Pointer(a.buffer, offset)
        kind = _scalar_type(a) or _scalar_type(b)
        if kind is None or isinstance(a, Pointer) or isinstance(b, Pointer):
            return Unknown("a pointer that depends on a branch")
        try:
            first = self._in(body, lambda: self.value(a, kind, span))
            second = self._in(other, lambda: self.value(b, kind, span))
        except NotLifted as error:
            return Unknown(error.reason)
        result = self.fresh(kind.dtype)
        merges.append(Merge(result, first, second))
        return Data(result)

    def _in(self, ops: list[Op], action: Callable[[], Value]) -> Value:
        outer, self.ops = self.ops, ops
        try:
            return action()
        finally:
            self.ops = outer


def _nothing() -> None:
    return


def _mixed(condition: ast.Expression) -> bool:
    return isinstance(condition, ast.Logical) and condition.operator == "and"


def _same(a: Symbolic, b: Symbolic) -> bool:
    """Equal but for the places that decided them."""
    match a, b:
        case Number(index=x), Number(index=y):
            return x == y
        case Truth(predicate=p), Truth(predicate=q):
            return p == q
        case Pointer(buffer=m, offset=x), Pointer(buffer=n, offset=y):
            return m == n and _same(x, y)
        case _:
            return False


def _scalar_type(symbolic: Symbolic) -> Scalar | None:
    from migrate.cuda.types import BOOL, INT, NAMED

    match symbolic:
        case Number():
            return INT
        case Truth():
            return BOOL
        case Data(value=value):
            for kind in NAMED.values():
                if isinstance(kind, Scalar) and kind.dtype is value.dtype:
                    return kind
            return None
        case _:
            return None
