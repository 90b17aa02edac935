"""What the compiler and the hardware refuse, instruction by instruction.

Checks record `Problem`s; they never stop the reading, and they say nothing about what
they cannot decide.  Limits are those of the NKI API reference and the architecture
guides for Trainium 1, 2 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from migrate.nki.operators import COMPARISONS, OPERATORS
from migrate.nki.symbols import Number, over
from migrate.nki.values import Member, Memory, OperatorName, Problem, View
from migrate.source import Span

PSUM_BYTES = 16384

SBUF_BYTES = {"trn1": 192 * 1024, "trn2": 224 * 1024, "trn3": 256 * 1024}
"""Physical bytes of an SBUF partition; the compiler keeps some of them."""

PARTITIONS = 128
"""Partitions of SBUF and PSUM on every generation."""


@dataclass(frozen=True, slots=True)
class Given:
    """An instruction's arguments as a check sees them."""

    opcode: str
    values: Mapping[str, object]
    span: Span
    target: str

    def view(self, name: str) -> View | None:
        value = self.values.get(name)
        return value if isinstance(value, View) else None

    def problem(
        self,
        code: str,
        message: str,
        operand: str,
        *numbers: tuple[str, int | float],
        of: object = None,
        limit: int | None = None,
        against: tuple[str, ...] = (),
    ) -> Problem:
        """A problem with an operand; `of` is the number at fault, `limit` what it exceeds.

        Its sources are the places of that number, then where the operand's tensor and
        those of `against`, which it does not fit, were made.
        """
        deciding: tuple[Span, ...] = ()
        if isinstance(of, Number):
            deciding = of.sources() if limit is None else over(of, limit)
        places = dict.fromkeys(deciding)
        for name in (operand, *against):
            view = self.view(name)
            if view is not None:
                places.setdefault(view.buffer.site.span)
        return Problem(
            code, f"{self.opcode}: {message}", self.span, operand, numbers, tuple(places)
        )


Check: TypeAlias = Callable[[Given], Iterator[Problem]]


def same_tile(*names: str) -> Check:
    """Equal partitions and equal elements a partition."""

    def check(given: Given) -> Iterator[Problem]:
        first = given.view(names[0])
        if first is None or not first.shape:
            return
        for name in names[1:]:
            other = given.view(name)
            if other is None or not other.shape:
                continue
            a, b = int(first.shape[0].value), int(other.shape[0].value)
            if a != b:
                yield given.problem(
                    "partition-mismatch",
                    f"{names[0]} has {a} partitions, {name} has {b}",
                    name,
                    (names[0], a),
                    (name, b),
                    of=other.shape[0],
                    against=names[:1],
                )
            elif first.free_elements != other.free_elements:
                yield given.problem(
                    "size-mismatch",
                    f"{names[0]} has {first.free_elements} elements a partition, "
                    f"{name} has {other.free_elements}",
                    name,
                    (names[0], first.free_elements),
                    (name, other.free_elements),
                    of=other.shape[-1],
                    against=names[:1],
                )

    return check


def same_count(*names: str) -> Check:
    """Equal numbers of elements."""

    def check(given: Given) -> Iterator[Problem]:
        first = given.view(names[0])
        for name in names[1:]:
            other = given.view(name)
            if first is not None and other is not None and first.elements != other.elements:
                yield given.problem(
                    "size-mismatch",
                    f"{names[0]} has {first.elements} elements {first.sizes}, "
                    f"{name} has {other.elements} {other.sizes}",
                    name,
                    (names[0], first.elements),
                    (name, other.elements),
                    against=names[:1],
                )

    return check


def not_both_psum(first: str, second: str) -> Check:
    """Not both in PSUM."""

    def check(given: Given) -> Iterator[Problem]:
        a, b = given.view(first), given.view(second)
        if a is not None and b is not None and a.buffer.memory is b.buffer.memory is Memory.PSUM:
            yield given.problem(
                "both-psum", f"{first} and {second} are both in PSUM", second, against=(first,)
            )

    return check


def gpsimd_not_psum(*names: str) -> Check:
    """GpSimd cannot reach PSUM."""

    def check(given: Given) -> Iterator[Problem]:
        engine = given.values.get("engine")
        operator = given.values.get("op")
        on_gpsimd = isinstance(engine, Member) and engine.name == "gpsimd"
        if isinstance(operator, OperatorName) and OPERATORS[operator.name].engines == ("gpsimd",):
            on_gpsimd = True
        if not on_gpsimd:
            return
        for name in names:
            view = given.view(name)
            if view is not None and view.buffer.memory is Memory.PSUM:
                yield given.problem("gpsimd-psum", f"GpSimd cannot reach {name} in PSUM", name)

    return check


def column(name: str, data: str) -> Check:
    """A tensor here has one element a partition and the partitions of the data."""

    def check(given: Given) -> Iterator[Problem]:
        view, tile = given.view(name), given.view(data)
        if view is None or tile is None or not view.shape or not tile.shape:
            return
        rows, wanted = int(view.shape[0].value), int(tile.shape[0].value)
        if view.free_elements != 1 or rows != wanted:
            yield given.problem(
                "not-a-column",
                f"{name} has shape {view.sizes}, ({wanted}, 1) is needed",
                name,
                ("partitions", rows),
                ("elements", view.free_elements),
                of=view.shape[-1],
                against=(data,),
            )

    return check


def operator_use(name: str, *uses: str) -> Check:
    """An operator that the instruction has in this place, on the target."""

    def check(given: Given) -> Iterator[Problem]:
        value = given.values.get(name)
        if not isinstance(value, OperatorName):
            return
        operator = OPERATORS[value.name]
        found = operator.uses.intersection(uses)
        targets = operator.unary_targets if found == {"unary"} else operator.targets
        if not found:
            yield given.problem("operator", f"nl.{operator.name} cannot be used as {name}", name)
        elif given.target not in targets:
            yield given.problem(
                "operator-target", f"nl.{operator.name} does not exist on {given.target}", name
            )

    return check


def one_kind(first: str, second: str) -> Check:
    """Both operators on bit patterns, or both arithmetic."""

    def check(given: Given) -> Iterator[Problem]:
        a, b = given.values.get(first), given.values.get(second)
        if (
            isinstance(a, OperatorName)
            and isinstance(b, OperatorName)
            and OPERATORS[a.name].bitvec != OPERATORS[b.name].bitvec
        ):
            yield given.problem(
                "mixed-operators",
                f"nl.{a.name} and nl.{b.name} mix bit patterns and arithmetic",
                second,
            )

    return check


def together(first: str, second: str) -> Check:
    """Given both or neither."""

    def check(given: Given) -> Iterator[Problem]:
        a, b = given.values.get(first), given.values.get(second)
        if a is None and b is not None:
            yield given.problem("argument", f"{second} without {first}", second)
        unary = isinstance(a, OperatorName) and "unary" in OPERATORS[a.name].uses
        if a is not None and b is None and not unary:
            yield given.problem("argument", f"{first} without {second}", first)

    return check


def bitvec_integers(name: str, *tiles: str) -> Check:
    """Bit-vector operators take integer tiles."""

    def check(given: Given) -> Iterator[Problem]:
        value = given.values.get(name)
        if not isinstance(value, OperatorName) or not OPERATORS[value.name].bitvec:
            return
        for tile in tiles:
            view = given.view(tile)
            if view is not None and not view.dtype.is_integer:
                yield given.problem(
                    "dtype", f"nl.{value.name} on {tile}, which is {view.dtype}", tile
                )

    return check


def only_operator(name: str, allowed: str) -> Check:
    """The operator can only be this one."""

    def check(given: Given) -> Iterator[Problem]:
        value = given.values.get(name)
        if isinstance(value, OperatorName) and value.name != allowed:
            yield given.problem("operator", f"{name} can only be nl.{allowed}", name)

    return check


def comparison(*names: str) -> Check:
    """Operators that compare."""

    def check(given: Given) -> Iterator[Problem]:
        for name in names:
            value = given.values.get(name)
            if isinstance(value, OperatorName) and value.name not in COMPARISONS:
                yield given.problem("operator", f"nl.{value.name} does not compare", name)

    return check


def only_number(name: str, allowed: float) -> Check:
    """The number can only be the one that the hardware has."""

    def check(given: Given) -> Iterator[Problem]:
        value = given.values.get(name)
        if isinstance(value, Number) and not math.isclose(value.value, allowed, rel_tol=1e-7):
            yield given.problem(
                "argument",
                f"{name} is {value.value}, only {allowed:.8g} is possible",
                name,
                of=value,
            )

    return check


def same_dtype(*names: str) -> Check:
    """Equal formats."""

    def check(given: Given) -> Iterator[Problem]:
        first = given.view(names[0])
        for name in names[1:]:
            other = given.view(name)
            if first is not None and other is not None and first.dtype is not other.dtype:
                yield given.problem(
                    "dtype",
                    f"{names[0]} is {first.dtype}, {name} is {other.dtype}",
                    name,
                    against=names[:1],
                )

    return check


def bias_is_tile(name: str) -> Check:
    """On trn1 a bias is a tensor; a number is taken from trn2 on."""

    def check(given: Given) -> Iterator[Problem]:
        if given.target == "trn1" and isinstance(given.values.get(name), Number):
            yield given.problem("immediate", f"{name} must be a (P, 1) tile on trn1", name)

    return check


def literal_fits(name: str) -> Check:
    """A float literal does not go into an integer tile (NKI 0.3)."""

    def check(given: Given) -> Iterator[Problem]:
        value, view = given.values.get(name), given.view("dst")
        if view is None or not isinstance(value, Number):
            return
        if view.dtype.is_integer and not value.integral:
            yield given.problem(
                "literal-dtype",
                f"the float {value.value} into {view.dtype}",
                name,
                of=value,
                against=("dst",),
            )

    return check


def reduced_axes(dst: str, data: str, axis: str) -> Check:
    """Trailing free axes only, and a destination of what remains."""

    def check(given: Given) -> Iterator[Problem]:
        view, out, value = given.view(data), given.view(dst), given.values.get(axis)
        if view is None or out is None:
            return
        items = value if isinstance(value, tuple | list) else (value,)
        rank = len(view.shape)
        axes: list[int] = []
        for item in items:
            if not isinstance(item, Number) or not item.integral:
                return
            position = int(item.value)
            if not -rank <= position < rank:
                yield given.problem(
                    "axis", f"axis {position} of a tile of rank {rank}", axis, of=item
                )
                return
            axes.append(position % rank)
        axes.sort()
        if 0 in axes:
            yield given.problem("partition-axis", "the partition axis cannot be reduced", axis)
            return
        if axes != list(range(rank - len(axes), rank)):
            yield given.problem("axis", f"axes {axes} are not the last ones", axis)
            return
        kept = 1
        for position in range(1, rank):
            if position not in axes:
                kept *= int(view.shape[position].value)
        if out.shape and out.shape[0].value != view.shape[0].value:
            yield given.problem(
                "partition-mismatch",
                f"{dst} has {out.shape[0].value} partitions, {data} has {view.shape[0].value}",
                dst,
                against=(data,),
            )
        elif out.free_elements != kept:
            yield given.problem(
                "size-mismatch",
                f"{dst} has {out.free_elements} elements a partition, {kept} remain",
                dst,
                (dst, out.free_elements),
                ("remaining", kept),
                against=(data,),
            )

    return check


def pattern_count(dst: str, pattern: str) -> Check:
    """The pattern has an index for each element."""

    def check(given: Given) -> Iterator[Problem]:
        view, value = given.view(dst), given.values.get(pattern)
        if view is None or not isinstance(value, tuple | list):
            return
        count = 1
        for pair in value:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                return
            number = pair[1]
            if not isinstance(number, Number):
                return
            count *= int(number.value)
        if count != view.free_elements:
            yield given.problem(
                "size-mismatch",
                f"the pattern has {count} elements, {dst} has {view.free_elements} a partition",
                pattern,
                ("pattern", count),
                (dst, view.free_elements),
                against=(dst,),
            )
        if len(value) > 4:
            yield given.problem("pattern", f"a pattern of {len(value)} axes, 4 at most", pattern)

    return check
