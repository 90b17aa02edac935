"""Kernels as programs: what is computed (a `Spec`) and how it is realised (a `Schedule`).

A spec is an expression over the coordinates of one output.  `values` computes it
directly with NumPy, `lower` writes a kernel for it the way a schedule says: tiles,
loops, staging buffers, split reductions, operand order, names.  Every schedule of a spec
computes the same.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeAlias

import numpy as np
from hypothesis import strategies as st

from migrate.ir.index import Index, ceil_div, minimum
from migrate.ir.nodes import (
    Axis,
    AxisKind,
    Barrier,
    Buffer,
    Contract,
    Fill,
    Fold,
    Guard,
    Kernel,
    Load,
    Map,
    Merge,
    Op,
    Output,
    Parallel,
    Position,
    Reduce,
    Select,
    Space,
    State,
    Statements,
    Store,
    Value,
    Version,
)
from migrate.ir.predicate import TRUE, Predicate, at_least, both, less, negate
from migrate.numerics.dtypes import DType
from migrate.numerics.operators import OPERATORS
from migrate.source import Span

F32, BOOL = DType.FLOAT32, DType.BOOL
SPAN = Span(file="k.py", start_line=1, start_column=1, end_line=1, end_column=2)


# -- what is computed -------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """`constant + sum of coefficient * coordinate`."""

    terms: tuple[tuple[str, int], ...]
    constant: int

    def at(self, coordinates):
        return self.constant + sum(c * coordinates[name] for name, c in self.terms)


@dataclass(frozen=True)
class In:
    tensor: str
    index: tuple[Line, ...]


@dataclass(frozen=True)
class Num:
    value: float


@dataclass(frozen=True)
class At:
    """A coordinate used as data."""

    line: Line


@dataclass(frozen=True)
class Apply:
    operator: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Where:
    """By position: `then` where the line is not negative."""

    line: Line
    then: Expr
    otherwise: Expr


@dataclass(frozen=True)
class Choose:
    """By data: `then` where left > right."""

    left: Expr
    right: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True)
class Red:
    """`operator` over `counter` in 0 .. extent-1, starting from a number if there is one."""

    operator: str
    counter: str
    extent: int
    body: Expr
    initial: float | None = None


Expr: TypeAlias = In | Num | At | Apply | Where | Choose | Red


@dataclass(frozen=True)
class Spec:
    """`y[i0, ...] = expr` where `written` is not negative; other cells stay unwritten."""

    shape: tuple[int, ...]
    expr: Expr
    written: Line | None = None


def parts(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Apply(args=args):
            return args
        case Where(then=then, otherwise=otherwise):
            return (then, otherwise)
        case Choose(left=left, right=right, then=then, otherwise=otherwise):
            return (left, right, then, otherwise)
        case Red(body=body):
            return (body,)
    return ()


def rebuilt(expr: Expr, inner: tuple[Expr, ...]) -> Expr:
    match expr:
        case Apply():
            return replace(expr, args=inner)
        case Where():
            return replace(expr, then=inner[0], otherwise=inner[1])
        case Choose():
            return Choose(*inner)
        case Red():
            return replace(expr, body=inner[0])
    return expr


def walk(expr: Expr) -> list[Expr]:
    found = [expr]
    for part in parts(expr):
        found += walk(part)
    return found


def extents(spec: Spec) -> dict[str, int]:
    """The extent of every coordinate and counter."""
    found = {f"i{n}": extent for n, extent in enumerate(spec.shape)}
    found.update({e.counter: e.extent for e in walk(spec.expr) if isinstance(e, Red)})
    return found


def tensors(*specs: Spec) -> dict[str, tuple[int, ...]]:
    """Input tensors, just large enough for every access of all the specs."""
    shapes: dict[str, tuple[int, ...]] = {}
    for spec in specs:
        limits = extents(spec)
        for expr in walk(spec.expr):
            if isinstance(expr, In):
                needed = tuple(
                    1 + line.constant + sum(max(0, c * (limits[n] - 1)) for n, c in line.terms)
                    for line in expr.index
                )
                before = shapes.get(expr.tensor, (1,) * len(needed))
                shapes[expr.tensor] = tuple(map(max, needed, before))
    return shapes


def inputs(shapes: dict[str, tuple[int, ...]], seed: int) -> dict[str, np.ndarray]:
    """Positive numbers away from 0, so that every operator used is defined and tame."""
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(0.5, 2.0, shape) for name, shape in sorted(shapes.items())}


class Wild(Exception):
    """The numbers of a spec leave the range in which evaluations can be compared."""


def values(spec: Spec, given: dict[str, np.ndarray]) -> np.ndarray:
    """The output, NaN where unwritten.  Raises `Wild`."""
    result = np.full(spec.shape, np.nan)
    with np.errstate(all="ignore"):
        for cell in product(*map(range, spec.shape)):
            at = {f"i{n}": c for n, c in enumerate(cell)}
            if spec.written is None or spec.written.at(at) >= 0:
                result[cell] = _value(spec.expr, at, given)
    return result


def _value(expr: Expr, at: dict[str, int], given: dict[str, np.ndarray]) -> float:
    number = _number(expr, at, given)
    if not abs(number) < 1e5:
        raise Wild
    return number


def _number(expr: Expr, at: dict[str, int], given: dict[str, np.ndarray]) -> float:
    match expr:
        case In(tensor, index):
            return float(given[tensor][tuple(line.at(at) for line in index)])
        case Num(value):
            return value
        case At(line):
            return float(line.at(at))
        case Apply(operator, args):
            inner = [np.float64(_value(arg, at, given)) for arg in args]
            return float(OPERATORS[operator].reals(*inner))
        case Where(line, then, otherwise):
            return _value(then if line.at(at) >= 0 else otherwise, at, given)
        case Choose(left, right, then, otherwise):
            difference = _value(left, at, given) - _value(right, at, given)
            if 0 < abs(difference) < 1e-6:
                raise Wild
            return _value(then if difference > 0 else otherwise, at, given)
        case Red(operator, counter, extent, body, initial):
            entry = OPERATORS[operator]
            total = np.float64(entry.identity if initial is None else initial)
            for k in range(extent):
                total = entry.reals(total, np.float64(_value(body, {**at, counter: k}, given)))
            return float(total)


# -- strategies for specs ---------------------------------------------------------------

UNARY = ("negate", "exp", "sqrt", "tanh", "abs", "square", "sigmoid", "silu", "relu", "reciprocal")
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
EXACT = frozenset({"negate", "abs", "square", "relu", *BINARY}) - {"divide"}
REDUCTIONS = ("add", "multiply", "maximum", "minimum")
NUMBERS = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0, -1.0, -0.5)


@st.composite
def lines(draw, limits: dict[str, int], *, index: bool) -> Line:
    """An affine function; as an index it is never negative."""
    names = draw(st.lists(st.sampled_from(sorted(limits)), unique=True, max_size=2))
    terms = tuple((name, draw(st.sampled_from((1, 1, 1, 2, -1)))) for name in sorted(names))
    if not index:
        return Line(terms, draw(st.integers(-3, 3)))
    low = sum(min(0, c * (limits[name] - 1)) for name, c in terms)
    return Line(terms, draw(st.integers(0, 2)) - low)


@st.composite
def expressions(draw, limits: dict[str, int], depth: int, *, numbers=True, exact=False) -> Expr:
    """`exact`: nothing that rounds is computed from numbers alone (x / x is the number 1)."""
    kinds = ["in", "in", "in"]
    if numbers:
        kinds += ["number", "at"]
    if depth > 0:
        kinds += ["unary", "binary", "binary", "where", "choose", "reduction", "reduction"]
    kind = draw(st.sampled_from(kinds))
    smaller = expressions(limits, depth - 1, numbers=numbers, exact=exact)
    rounding = expressions(limits, depth - 1, numbers=numbers and not exact, exact=exact)
    match kind:
        case "number":
            return Num(draw(st.sampled_from(NUMBERS)))
        case "at":
            return At(draw(lines(limits, index=True)))
        case "unary":
            operator = draw(st.sampled_from([o for o in UNARY if not exact or o != "reciprocal"]))
            return Apply(operator, (draw(smaller if operator in EXACT else rounding),))
        case "binary":
            operator = draw(st.sampled_from([o for o in BINARY if not exact or o != "divide"]))
            given = smaller if operator in EXACT else rounding
            return Apply(operator, (draw(given), draw(given)))
        case "where":
            line = draw(lines(limits, index=False))
            return Where(line, draw(smaller), draw(smaller))
        case "choose":
            return Choose(draw(smaller), draw(smaller), draw(smaller), draw(smaller))
        case "reduction":
            counter = f"k{sum(name.startswith('k') for name in limits)}"
            if counter in ("k2", "k3"):
                return In("a", (draw(lines(limits, index=True)),))
            extent = draw(st.integers(1, 7))
            operator = draw(st.sampled_from(REDUCTIONS))
            inner = {**limits, counter: extent}
            # Products and extrema of numbers keep no trace of how often they were combined.
            plain = numbers and operator == "add"
            body = draw(expressions(inner, depth - 1, numbers=plain, exact=exact))
            initial = draw(st.sampled_from((None, None, 0.0, 1.0, 2.0)))
            return Red(operator, counter, extent, body, initial if operator == "add" else None)
    rank = draw(st.integers(1, 2))
    name = draw(st.sampled_from(("a", "b") if rank == 1 else ("m", "w")))
    return In(name, tuple(draw(lines(limits, index=True)) for _ in range(rank)))


def distinct(expr: Expr, used: list[int], renamed: dict[str, str] | None = None) -> Expr:
    """The expression with a counter of its own for every reduction."""
    renamed = renamed or {}

    def line(given: Line) -> Line:
        names = ((renamed.get(name, name), c) for name, c in given.terms)
        return Line(tuple(sorted(names)), given.constant)

    match expr:
        case In(tensor, index):
            return In(tensor, tuple(map(line, index)))
        case At(given):
            return At(line(given))
        case Where(given, then, otherwise):
            inner = (distinct(then, used, renamed), distinct(otherwise, used, renamed))
            return Where(line(given), *inner)
        case Red():
            name = f"k{len(used)}"
            used.append(0)
            body = distinct(expr.body, used, {**renamed, expr.counter: name})
            return replace(expr, counter=name, body=body)
    return rebuilt(expr, tuple(distinct(part, used, renamed) for part in parts(expr)))


@st.composite
def specs(draw, *, depth: int = 3, exact: bool = False) -> Spec:
    rank = draw(st.integers(1, 2))
    shape = tuple(draw(st.integers(1, 9 if rank == 1 else 5)) for _ in range(rank))
    limits = {f"i{n}": extent for n, extent in enumerate(shape)}
    expr = distinct(draw(expressions(limits, depth, exact=exact)), [])
    written = draw(st.none() | lines(limits, index=False))
    return Spec(shape, expr, written)


# -- changes of what is computed ---------------------------------------------------------


@st.composite
def mutations(draw, spec: Spec) -> Spec:
    """The spec with one thing changed: an operator, a tensor, a place, a number, an extent."""
    nodes = walk(spec.expr)
    position = draw(st.integers(0, len(nodes) - 1))
    changed = draw(_changes(nodes[position], extents(spec)))
    return replace(spec, expr=_replaced(spec.expr, position, changed))


@st.composite
def _changes(draw, expr: Expr, limits: dict[str, int]) -> Expr:
    match expr:
        case In(tensor, index):
            if draw(st.booleans()):
                other = {"a": "b", "b": "a", "m": "w", "w": "m"}[tensor]
                return In(other, index)
            dim = draw(st.integers(0, len(index) - 1))
            return In(tensor, (*index[:dim], draw(_moved(index[dim], limits)), *index[dim + 1 :]))
        case Num(value):
            return Num(value + draw(st.sampled_from((0.125, 1.0, -value * 2 or 4.0))))
        case At(line):
            return At(draw(_moved(line, limits)))
        case Where(line=line):
            if draw(st.booleans()):
                return Where(line, expr.otherwise, expr.then)
            return replace(expr, line=Line(line.terms, line.constant + 1))
        case Choose(left, right, then, otherwise):
            return Choose(right, left, then, otherwise)
        case Apply(operator, args):
            if len(args) == 2 and draw(st.booleans()):
                return Apply(operator, args[::-1])
            others = UNARY if len(args) == 1 else BINARY
            return Apply(draw(st.sampled_from([o for o in others if o != operator])), args)
        case Red(operator, extent=extent, initial=initial):
            match draw(st.integers(0, 2)):
                case 0:
                    others = [o for o in REDUCTIONS if o != operator]
                    return replace(expr, operator=draw(st.sampled_from(others)), initial=None)
                case 1:
                    return replace(expr, extent=extent + 1)
            return replace(expr, initial=4.0 if initial is None else None)


@st.composite
def _moved(draw, line: Line, limits: dict[str, int]) -> Line:
    if line.terms and draw(st.booleans()):
        (name, coefficient), *rest = line.terms
        turned = Line(((name, -coefficient), *rest), line.constant)
        return Line(turned.terms, line.constant + coefficient * (limits[name] - 1))
    return Line(line.terms, line.constant + 1)


def _replaced(expr: Expr, position: int, new: Expr) -> Expr:
    """The expression with its node number `position`, in the order of `walk`, replaced."""
    if position == 0:
        return new
    position -= 1
    inner = list(parts(expr))
    for number, part in enumerate(inner):
        count = len(walk(part))
        if position < count:
            inner[number] = _replaced(part, position, new)
            return rebuilt(expr, tuple(inner))
        position -= count
    raise AssertionError


# -- how it is realised -----------------------------------------------------------------


@dataclass(frozen=True)
class Schedule:
    """Where the choices of a realisation come from."""

    seed: int


def schedules() -> st.SearchStrategy[Schedule]:
    return st.builds(Schedule, st.integers(0, 2**32 - 1))


PLAIN = Schedule(-1)
"""Everything in one parallel region, every reduction in one go."""


def lower(spec: Spec, schedule: Schedule, shapes: dict[str, tuple[int, ...]]) -> Kernel:
    """A kernel that computes the spec; `shapes` are those of the input tensors."""
    return _Lowering(spec, schedule, shapes).kernel()


@dataclass
class _Block:
    """Ops under construction, and where coordinates are in terms of axes."""

    at: dict[str, Index]
    mask: Predicate = TRUE
    ops: list[Op] = field(default_factory=list)

    def inside(self, **counters: Index) -> _Block:
        return _Block({**self.at, **counters}, self.mask)


class _Lowering:
    def __init__(self, spec: Spec, schedule: Schedule, shapes) -> None:
        self.spec = spec
        self.plain = schedule == PLAIN
        self.random = random.Random(schedule.seed)
        self.shapes = shapes
        self.limits = extents(spec)
        self.count = 0
        self.prefix = "" if self.plain else self.random.choice(("", "t", "zz"))
        self.buffers: list[Buffer] = []
        self.current: dict[str, Version] = {}
        self.staged: dict[str, str] = {}
        self.ready: dict[Expr, str] = {}

    def pick(self, *choices):
        """One of the choices; the first for the plain schedule."""
        return choices[0] if self.plain else self.random.choice(choices)

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{self.prefix}{stem}{self.count}"

    def value(self, dtype: DType = F32) -> Value:
        return Value(self.name("v"), dtype)

    def axis(self, extent: int | Index, kind: AxisKind = AxisKind.PARALLEL) -> Axis:
        return Axis(self.name("x"), Index.of(extent), kind, SPAN)

    def buffer(self, name: str, shape, space: Space, role) -> None:
        extent = tuple(map(Index.of, shape))
        self.buffers.append(Buffer(name, extent, F32, space, role, SPAN))
        self.current[name] = Version(name, 0)

    def next(self, buffer: str) -> Version:
        highest = self.current[buffer].number
        self.current[buffer] = Version(buffer, highest + 1)
        return self.current[buffer]

    # -- the whole ----------------------------------------------------------------------

    def kernel(self) -> Kernel:
        for name in self.pick(sorted(self.shapes), sorted(self.shapes, reverse=True)):
            self.buffer(name, self.shapes[name], Space.HBM, "in")
        self.buffer("y", self.spec.shape, Space.HBM, "out")
        body: list[Op] = []
        for name in sorted(self.shapes):
            if self.pick(False, False, True):
                body += self.stage_tensor(name)
        for expr in self.stageable():
            if self.pick(False, False, False, True):
                body += self.stage_expression(expr)
        body += self.over_output("y", self.spec.expr, self.spec.written)
        return Kernel(
            name=self.pick("k", "other"),
            side=self.pick("cuda", "nki"),
            span=SPAN,
            sizes=(),
            buffers=tuple(self.buffers),
            body=tuple(body),
            outputs=(Output(self.current["y"]),),
            statements=Statements(1),
        )

    def stageable(self) -> list[Expr]:
        """Subexpressions of the output's coordinates alone."""
        found = [e for e in walk(self.spec.expr) if isinstance(e, Apply | Red | Choose)]
        return [e for e in found if not _counters(e)]

    def stage_tensor(self, name: str) -> list[Op]:
        scratch = self.name("s")
        self.buffer(scratch, self.shapes[name], Space.ONCHIP, "scratch")
        ops = self.over(
            self.shapes[name],
            scratch,
            lambda block, cell: self.load(block, name, cell),
            None,
        )
        self.staged[name] = scratch
        return [*ops, Barrier("block", SPAN)]

    def stage_expression(self, expr: Expr) -> list[Op]:
        scratch = self.name("s")
        self.buffer(scratch, self.spec.shape, Space.ONCHIP, "scratch")
        ops = self.over_output(scratch, expr, None)
        self.ready[expr] = scratch
        return [*ops, Barrier("block", SPAN)]

    def over_output(self, target: str, expr: Expr, written: Line | None) -> list[Op]:
        return self.over(
            self.spec.shape,
            target,
            lambda block, cell: self.emit(block, expr),
            written,
        )

    # -- loops over cells ---------------------------------------------------------------

    def over(self, shape, target: str, make, written: Line | None) -> list[Op]:
        """Store `make(block, cell)` into every cell, in some order of loops and tiles."""
        split = self.pick(None, None, *range(len(shape)))
        ranges = [[(0, extent)] for extent in shape]
        if split is not None and shape[split] > 1:
            cut = self.random.randint(1, shape[split] - 1)
            ranges[split] = [(0, cut), (cut, shape[split] - cut)]
            self.random.shuffle(ranges[split])
        ops: list[Op] = []
        for box in product(*ranges):
            ops += self.box(box, target, make, written)
        return ops

    def box(self, box, target: str, make, written: Line | None) -> list[Op]:
        order = list(range(len(box)))
        if not self.plain:
            self.random.shuffle(order)
        return self.dimension(order, box, {}, (), target, make, written)

    def dimension(self, order, box, cell, conditions, target, make, written) -> list[Op]:
        if not order:
            return self.cell(box, cell, conditions, target, make, written)
        dim, *rest = order
        first, extent = box[dim]

        def inner(place: Index, *more: Predicate) -> list[Op]:
            known = {**cell, dim: first + place}
            return self.dimension(rest, box, known, (*conditions, *more), target, make, written)

        tile = self.pick(extent, *range(1, extent + 2))
        how = self.pick("whole", "whole", "guarded", "ragged", "loop")
        match how:
            case "whole":
                axis = self.axis(extent)
                return [Parallel((axis,), tuple(inner(Index.axis(axis.name))), SPAN)]
            case "guarded":
                outer = self.axis(ceil_div(extent, tile), AxisKind.GRID)
                lane = self.axis(tile, AxisKind.BLOCK)
                place = Index.axis(outer.name) * tile + Index.axis(lane.name)
                inside = less(place, extent)
                if self.pick(False, True):
                    return [Parallel((outer, lane), tuple(inner(place)), SPAN, where=inside)]
                return [Parallel((outer, lane), tuple(inner(place, inside)), SPAN)]
            case "ragged":
                outer = self.axis(ceil_div(extent, tile), AxisKind.TILE)
                start = Index.axis(outer.name) * tile
                lane = self.axis(minimum(tile, extent - start))
                place = start + Index.axis(lane.name)
                return [Parallel((outer, lane), tuple(inner(place)), SPAN)]
            case _:
                outer = self.axis(ceil_div(extent, tile), AxisKind.SEQUENTIAL)
                start = Index.axis(outer.name) * tile
                lane = self.axis(minimum(tile, extent - start))
                entry, carried = self.current[target], self.next(target)
                body = [Parallel((lane,), tuple(inner(start + Index.axis(lane.name))), SPAN)]
                last = self.current[target]
                state = State(self.next(target), entry, carried, last)
                return [Fold((outer,), (state,), tuple(body), SPAN)]

    def cell(self, box, cell, conditions, target, make, written) -> list[Op]:
        place = tuple(cell[dim] for dim in range(len(box)))
        block = _Block({f"i{dim}": index for dim, index in enumerate(place)})
        wanted = both(*conditions)
        if written is not None:
            wanted = both(wanted, at_least(self.index(block, written)))
        how = self.pick("store", "guard", "early", "else")
        if how in ("store", "early"):
            # Points past the end are in the region and must not load either.
            block.mask = both(*conditions)
        if how == "store":
            result = make(block, place)
            entry = self.current[target]
            block.ops.append(Store(self.next(target), entry, place, result, SPAN, where=wanted))
            return block.ops
        if how == "early":
            result = make(block, place)
        inner = block.inside()
        entry = self.current[target]
        if how != "early":
            result = make(inner, place)
        stored = self.next(target)
        inner.ops.append(Store(stored, entry, place, result, SPAN))
        merged = self.next(target)
        if how == "else":
            merge = Merge(merged, entry, stored)
            guard = Guard(negate(wanted), (), SPAN, tuple(inner.ops), (merge,))
        else:
            guard = Guard(wanted, tuple(inner.ops), SPAN, (), (Merge(merged, stored, entry),))
        return [*block.ops, guard]

    # -- expressions --------------------------------------------------------------------

    def index(self, block: _Block, line: Line) -> Index:
        total = Index.of(line.constant)
        for name, coefficient in line.terms:
            total = total + block.at[name] * coefficient
        return total

    def load(self, block: _Block, name: str, place) -> Value:
        result = self.value()
        source = self.current[self.staged.get(name, name)]
        block.ops.append(Load(result, source, tuple(place), SPAN, where=block.mask))
        return result

    def number(self, block: _Block, number: float) -> Value:
        result = self.value()
        block.ops.append(Fill(result, number, SPAN))
        return result

    def map(self, block: _Block, operator: str, *args: Value, dtype: DType = F32) -> Value:
        result = self.value(dtype)
        block.ops.append(Map(result, operator, args, SPAN))
        return result

    def several(self, block: _Block, exprs) -> list[Value]:
        """Independent expressions, in some order."""
        made: dict[int, Value] = {}
        order = list(range(len(exprs)))
        if not self.plain:
            self.random.shuffle(order)
        for position in order:
            made[position] = self.emit(block, exprs[position])
        return [made[position] for position in range(len(exprs))]

    def emit(self, block: _Block, expr: Expr) -> Value:
        if expr in self.ready:
            result = self.value()
            place = tuple(block.at[f"i{n}"] for n in range(len(self.spec.shape)))
            source = self.current[self.ready[expr]]
            block.ops.append(Load(result, source, place, SPAN, where=block.mask))
            return result
        match expr:
            case In(tensor, index):
                return self.load(block, tensor, [self.index(block, line) for line in index])
            case Num(value):
                return self.number(block, value)
            case At(line):
                result = self.value()
                block.ops.append(Position(result, self.index(block, line), SPAN))
                return result
            case Apply(operator, args):
                return self.apply(block, operator, self.several(block, args))
            case Where(line, then, otherwise):
                condition = at_least(self.index(block, line))
                if self.pick(False, True):
                    return self.branch(block, condition, then, otherwise)
                one, other = self.several(block, (then, otherwise))
                result = self.value()
                block.ops.append(Select(result, condition, one, other, SPAN))
                return result
            case Choose(left, right, then, otherwise):
                a, b, one, other = self.several(block, (left, right, then, otherwise))
                greater = self.pick(("greater", a, b), ("less", b, a))
                condition = self.map(block, *greater, dtype=BOOL)
                result = self.value()
                block.ops.append(Select(result, condition, one, other, SPAN))
                return result
            case Red():
                return self.reduction(block, expr)

    def branch(self, block: _Block, condition: Predicate, then: Expr, otherwise: Expr) -> Value:
        one, other = block.inside(), block.inside()
        first = self.emit(one, then)
        second = self.emit(other, otherwise)
        result = self.value()
        merge = Merge(result, first, second)
        block.ops.append(Guard(condition, tuple(one.ops), SPAN, tuple(other.ops), (merge,)))
        return result

    def apply(self, block: _Block, operator: str, args: list[Value]) -> Value:
        if OPERATORS[operator].commutative and self.pick(False, True):
            args = [args[1], args[0]]
        if self.pick(True, False):
            return self.map(block, operator, *args)
        match operator:
            case "subtract":
                return self.map(block, "add", args[0], self.map(block, "negate", args[1]))
            case "divide":
                return self.map(block, "multiply", self.map(block, "reciprocal", args[1]), args[0])
            case "square":
                return self.map(block, "multiply", args[0], args[0])
            case "negate":
                return self.map(block, "multiply", args[0], self.number(block, -1.0))
            case "multiply":
                return self.scaled(block, *args)
            case "relu":
                return self.map(block, "maximum", self.number(block, 0.0), args[0])
            case "silu":
                return self.map(block, "multiply", self.map(block, "sigmoid", args[0]), args[0])
            case "sigmoid":
                decay = self.map(block, "exp", self.map(block, "negate", args[0]))
                below = self.map(block, "add", decay, self.number(block, 1.0))
                return self.map(block, "divide", self.number(block, 1.0), below)
            case "maximum" | "minimum":
                return self.map(block, f"{operator}_number", *args)
        return self.map(block, operator, *args)

    def scaled(self, block: _Block, one: Value, other: Value) -> Value:
        """A product with signs and numbers put in and taken out again."""
        number = self.pick(-1.0, -2.0, 0.5, 4.0)
        one = self.map(block, "multiply", one, self.number(block, number))
        other = self.map(block, "multiply", self.number(block, 1.0 / number), other)
        if self.pick(False, True):
            negated = self.map(block, "multiply", self.map(block, "negate", one), other)
            return self.map(block, "negate", negated)
        return self.map(block, "multiply", one, other)

    # -- reductions ---------------------------------------------------------------------

    def reduction(self, block: _Block, expr: Red) -> Value:
        how = self.pick("reduce", "reduce", "loop", "tiles", "lanes", "halves")
        identity = OPERATORS[expr.operator].identity
        start = expr.initial
        match how:
            case "reduce":
                return self.reduce(block, expr, 0, Index.of(expr.extent), start)
            case "loop":
                axis = self.axis(expr.extent, AxisKind.SEQUENTIAL)
                initial = self.number(block, identity if start is None else start)
                inner = block.inside(**{expr.counter: Index.axis(axis.name)})
                return self.carry(block, axis, initial, inner, expr)
            case "tiles":
                tile = self.random.randint(1, expr.extent + 1)
                axis = self.axis(ceil_div(expr.extent, tile), AxisKind.SEQUENTIAL)
                initial = self.number(block, identity if start is None else start)
                begin = Index.axis(axis.name) * tile
                inner = block.inside()
                count = minimum(tile, expr.extent - begin)
                return self.carry(block, axis, initial, inner, expr, (begin, count))
            case "halves":
                cut = self.random.randint(0, expr.extent)
                low = self.reduce(block, expr, 0, Index.of(cut), None)
                high = self.reduce(block, expr, cut, Index.of(expr.extent - cut), start)
                return self.map(block, expr.operator, *self.pick((low, high), (high, low)))
            case _:
                return self.lanes(block, expr)

    def reduce(
        self, block: _Block, expr: Red, begin: int | Index, count: Index, start: float | None
    ) -> Value:
        axis = self.axis(count)
        inner = block.inside(**{expr.counter: begin + Index.axis(axis.name)})
        initial = None if start is None else self.number(block, start)
        result = self.value()
        product = isinstance(expr.body, Apply) and expr.body.operator == "multiply"
        if product and expr.operator == "add" and expr.body not in self.ready:
            left, right = self.several(inner, expr.body.args)
            op: Op = Contract(result, (axis,), tuple(inner.ops), left, right, SPAN, initial=initial)
        else:
            arg = self.emit(inner, expr.body)
            op = Reduce(
                result, expr.operator, (axis,), tuple(inner.ops), arg, SPAN, initial=initial
            )
        block.ops.append(op)
        return result

    def carry(self, block, axis, initial, inner, expr: Red, tile=None) -> Value:
        carried, result = self.value(), self.value()
        if tile is None:
            now = self.emit(inner, expr.body)
        else:
            now = self.reduce(inner, expr, *tile, None)
        total = self.map(inner, expr.operator, *self.pick((carried, now), (now, carried)))
        state = State(result, initial, carried, total)
        block.ops.append(Fold((axis,), (state,), tuple(inner.ops), SPAN))
        return result

    def lanes(self, block: _Block, expr: Red) -> Value:
        """Every lane sums what is its own, strided; then the lanes are combined."""
        lanes = self.random.randint(1, expr.extent + 1)
        lane = self.axis(lanes, AxisKind.LANE)
        step = self.axis(ceil_div(expr.extent, lanes), AxisKind.SEQUENTIAL)
        place = Index.axis(step.name) * lanes + Index.axis(lane.name)
        outer = block.inside()
        initial = self.number(outer, OPERATORS[expr.operator].identity)
        inner = block.inside(**{expr.counter: place})
        now = self.emit(inner, expr.body)
        carried, partial, result = self.value(), self.value(), self.value()
        total = self.map(inner, expr.operator, carried, now)
        state = State(partial, initial, carried, total)
        inside = less(place, expr.extent)
        outer.ops.append(Fold((step,), (state,), tuple(inner.ops), SPAN, where=inside))
        start = None if expr.initial is None else self.number(block, expr.initial)
        block.ops.append(
            Reduce(result, expr.operator, (lane,), tuple(outer.ops), partial, SPAN, initial=start)
        )
        return result


def _counters(expr: Expr) -> set[str]:
    """The counters an expression takes from outside of it."""
    own = {e.counter for e in walk(expr) if isinstance(e, Red)}
    used: set[str] = set()
    for e in walk(expr):
        match e:
            case In(_, index):
                used |= {name for line in index for name, _ in line.terms}
            case At(line) | Where(line=line):
                used |= {name for name, _ in line.terms}
    return {name for name in used if name.startswith("k")} - own
