"""How often a loop runs, and the variables that move evenly with its rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from migrate.cuda import ast
from migrate.cuda.lifting.scan import assigned, flattened, leaves, names, nodes
from migrate.cuda.lifting.symbolic import NotLifted, Number, Pointer, merged
from migrate.cuda.types import Pointer as PointerType
from migrate.cuda.types import Scalar
from migrate.ir.index import Index, Monomial, Symbol, ceil_div, maximum, minimum
from migrate.ir.predicate import All, AtLeast, Predicate, at_least, less
from migrate.source import Span

if TYPE_CHECKING:
    from migrate.cuda.lifting.loops import Loops

Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Update:
    """A variable that every round moves by the same amount."""

    initial: Number | Pointer
    delta: Index
    sources: tuple[Span, ...]

    def at(self, rounds: Index) -> Number | Pointer:
        """The variable's value after so many rounds."""
        moved = self.delta * rounds
        match self.initial:
            case Number(index=index, sources=sources):
                return Number(index + moved, merged(sources, self.sources))
            case Pointer(buffer=buffer, offset=Number() as offset):
                number = Number(offset.index + moved, merged(offset.sources, self.sources))
                return Pointer(buffer, number)
            case _:
                raise AssertionError(self.initial)

    def after(self, extent: Index) -> Number | Pointer:
        """The variable's value after the loop; a loop may run no round at all."""
        constant = extent.constant
        rounds = Index.of(max(constant, 0)) if constant is not None else maximum(extent, 0)
        return self.at(rounds)


@dataclass(frozen=True, slots=True)
class Trip:
    """A counted loop: `extent` rounds, which `name` numbers.

    In round `t` each `base + slope * t` of `held` is not negative.
    """

    name: str
    extent: Index
    updates: dict[Key, Update]
    held: tuple[tuple[Index, Index], ...]
    sources: tuple[Span, ...]

    def facts(self, axis: Index) -> tuple[Predicate, ...]:
        """What holds in every round: the loop's condition."""
        conditions = (at_least(base + slope * axis) for base, slope in self.held)
        return (*conditions, less(axis, self.extent))


def trip_of(lifter: Loops, statement: ast.Loop) -> Trip | str:
    """The loop as a counted one, or why it is none."""
    changed = assigned(statement.body, statement.step)
    test = statement.condition
    if test is None:
        return "a loop without a condition"
    updates = _updates(lifter, statement, changed)
    bare = _bare(test)
    why = "the rounds of this loop are not counted"
    if isinstance(bare, ast.Binary) and bare.operator in _MIRRORED:
        for counter, bound, operator in (
            (bare.left, bare.right, bare.operator),
            (bare.right, bare.left, _MIRRORED[bare.operator]),
        ):
            name = _bare(counter)
            if not isinstance(name, ast.Name):
                continue
            key = lifter.key(name.variable)
            if key not in updates or names(bound) & set(changed):
                continue
            found = _counted(lifter, statement, name, key, bound, operator, updates)
            if isinstance(found, Trip):
                return found
            why = found
            break
    if statement.kind == "do":
        return why
    solved = _solved(lifter, statement, test, changed, updates)
    return solved if solved is not None else why


_ROUND = "round?"
"""A name for the number of the round while the condition is solved for it."""


def _solved(
    lifter: Loops,
    statement: ast.Loop,
    test: ast.Expression,
    changed: Counter[int],
    updates: dict[Key, Update],
) -> Trip | None:
    """A condition that is linear in the round's number, or several that must hold together."""
    condition = lifter.at_round(
        lambda: lifter.truth(test),
        {key: update.at(Index.axis(_ROUND)) for key, update in updates.items()},
        [(lifter.frame, identity) for identity in changed],
        _ROUND,
    )
    parts = condition.items if isinstance(condition, All) else (condition,)
    extent: Index | None = None
    held: list[tuple[Index, Index]] = []
    for part in parts:
        if not isinstance(part, AtLeast):
            return None
        split = _linear_in(part.index, _ROUND)
        if split is None:
            return None
        base, slope = split
        down = slope.constant
        if not (down < 0 if down is not None else lifter.known.natural(-slope)):
            return None
        rounds = base // -slope + 1
        extent = rounds if extent is None else minimum(extent, rounds)
        held.append((base, slope))
    if extent is None:
        return None
    moving = [node.variable.name for node in nodes(test) if _moves(lifter, node, updates)]
    sources = (update.sources for update in updates.values())
    return Trip(
        moving[0] if moving else "round",
        extent.simplify(lifter.known.ranges),
        updates,
        tuple(held),
        merged((lifter.at(statement.head),), *sources),
    )


def _moves(lifter: Loops, node: Any, updates: dict[Key, Update]) -> bool:
    return isinstance(node, ast.Name) and lifter.key(node.variable) in updates


def _linear_in(index: Index, name: str) -> tuple[Index, Index] | None:
    """An index as `base + slope * axis`; `None` where it is not that."""
    base: list[tuple[Monomial, int]] = []
    slope: list[tuple[Monomial, int]] = []
    for monomial, coefficient in index.terms:
        rest = tuple(a for a in monomial if not (isinstance(a, Symbol) and a.name == name))
        if name in Index([(rest, 1)]).axes() or len(rest) < len(monomial) - 1:
            return None
        (base if len(rest) == len(monomial) else slope).append((rest, coefficient))
    return Index(base), Index(slope)


_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "not_equal": "not_equal",
}


def _counted(
    lifter: Loops,
    statement: ast.Loop,
    name: ast.Name,
    key: Key,
    bound: ast.Expression,
    operator: str,
    updates: dict[Key, Update],
) -> Trip | str:
    before = len(lifter.ops)
    limit = lifter.lift(bound)
    if not isinstance(limit, Number):
        del lifter.ops[before:]
        return "the rounds of this loop depend on data"
    update = updates[key]
    if not isinstance(update.initial, Number) or not isinstance(bound.type, Scalar):
        return "a loop over pointers"
    if not lifter.known.exact(limit.index, bound.type):
        return f"{limit.index} may wrap as {bound.type}"
    start, delta = update.initial.index, update.delta
    step = delta.constant
    upward = step > 0 if step is not None else lifter.known.natural(delta)
    downward = step is not None and step < 0
    match operator:
        case "less" | "less_equal" if upward:
            gap = limit.index - start
            extent = ceil_div(gap + (operator == "less_equal"), delta)
        case "greater" | "greater_equal" if downward:
            gap = start - limit.index
            extent = ceil_div(gap + (operator == "greater_equal"), -delta)
        case "not_equal" if step == 1:
            extent = limit.index - start
        case "not_equal" if step == -1:
            extent = start - limit.index
        case _:
            return "the direction of this loop is not known"
    if statement.kind == "do":
        extent = maximum(extent, 1)
    extent = extent.simplify(lifter.known.ranges)
    sources = merged(
        (lifter.at(statement.head),), limit.sources, update.initial.sources, update.sources
    )
    inclusive = operator.endswith("equal") and operator != "not_equal"
    gap, slope = (limit.index - start, -delta) if upward else (start - limit.index, delta)
    # Nobody asks before the first round of a `do`.
    held = () if statement.kind == "do" else ((gap - (0 if inclusive else 1), slope),)
    return Trip(name.variable.name, extent, updates, held, sources)


def _updates(lifter: Loops, statement: ast.Loop, changed: Counter[int]) -> dict[Key, Update]:
    """Variables with exactly one assignment in the loop, which adds an invariant."""
    found: dict[Key, Update] = {}
    for variable, delta, subtract, span in _steps(statement):
        key = lifter.key(variable)
        if changed[variable.id] != 1 or key in lifter.places or key in lifter.references:
            continue
        if isinstance(delta, ast.Expression) and names(delta) & set(changed):
            continue
        initial = lifter.state.variables.get(key)
        if not isinstance(initial, Number | Pointer):
            continue
        if isinstance(initial, Pointer) and not isinstance(initial.offset, Number):
            continue
        before = len(lifter.ops)
        try:
            amount = Number(Index.of(delta)) if isinstance(delta, int) else lifter.lift(delta)
        except NotLifted:
            amount = None
        del lifter.ops[before:]
        if not isinstance(amount, Number):
            continue
        index = -amount.index if subtract else amount.index
        if isinstance(variable.type, PointerType):
            assert isinstance(initial, Pointer)
            if initial.buffer is None:
                continue
            unit = lifter.scalars[initial.buffer].size
            index = index * (variable.type.element.size // unit)
        found[key] = Update(initial, index, merged((lifter.at(span),), amount.sources))
    return found


def _steps(
    statement: ast.Loop,
) -> Iterator[tuple[ast.Variable, Any, bool, Span]]:
    """Additions to a variable that every round does once."""
    always: list[Any] = list(flattened(statement.step))
    skipping = leaves(statement.body, (ast.Continue,))
    if not skipping:
        for inner in statement.body.body:
            if isinstance(inner, ast.Evaluate):
                always += flattened(inner.expression)
    for node in always:
        match node:
            case ast.Step(target=ast.Name(variable=variable), delta=delta, span=span):
                yield variable, delta, False, span
            case ast.Assign(
                target=ast.Name(variable=variable),
                operator="add" | "subtract" as operator,
                value=value,
                span=span,
            ):
                yield variable, value, operator == "subtract", span
            case ast.Assign(
                target=ast.Name(variable=variable),
                operator=None,
                value=ast.Binary(operator="add" | "subtract" as operator, left=left, right=right),
                span=span,
            ):
                # i = i + step
                if _is(left, variable):
                    yield variable, right, operator == "subtract", span
                elif _is(right, variable) and operator == "add":
                    yield variable, left, False, span


def _is(expression: ast.Expression, variable: ast.Variable) -> bool:
    bare = _bare(expression)
    return isinstance(bare, ast.Name) and bare.variable.id == variable.id


def _bare(expression: ast.Expression) -> ast.Expression:
    """Without conversions between integers, which keep the number."""
    while isinstance(expression, ast.Cast) and not expression.written:
        inner = expression.operand.type
        if not (isinstance(inner, Scalar) and inner.is_integer):
            break
        if not (isinstance(expression.type, Scalar) and expression.type.is_integer):
            break
        if expression.type.is_bool and not inner.is_bool:
            break
        expression = expression.operand
    return expression
