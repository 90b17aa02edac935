"""Checks of one figure: sizes, formats, operators and numbers that an instruction takes.

Figures are those of the NKI API reference, nki.isa; they stand in the instruction tables.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.nki.checks import Check, Given
from migrate.nki.operators import OPERATORS
from migrate.nki.symbols import Number
from migrate.nki.values import Member, OperatorName, Problem, View
from migrate.numerics.dtypes import DType


def integer(value: object) -> int | None:
    """The integer that an argument is."""
    return int(value.value) if isinstance(value, Number) and value.integral else None


def _listed(values: tuple[object, ...]) -> str:
    return ", ".join(map(str, values[:-1])) + (" or " if values[1:] else "") + str(values[-1])


def _size(
    given: Given,
    name: str,
    what: str,
    count: int,
    number: Number | None,
    least: int,
    most: int | None,
    multiple: int,
    one_of: tuple[int, ...],
) -> Iterator[Problem]:
    """A size that must be within bounds, a multiple, or one of a few."""
    wanted = ""
    if one_of and count not in one_of:
        wanted = f"{_listed(one_of)} needed"
    elif most is not None and count > most:
        wanted = f"{most} at most"
    elif count < least:
        wanted = f"{least} at least"
    elif count % multiple:
        wanted = f"a multiple of {multiple} is needed"
    if wanted:
        yield given.problem(
            "size",
            f"{name} has {count} {what}, {wanted}",
            name,
            (what, count),
            of=number,
            limit=most if most is not None and count > most else None,
        )


def free(
    name: str,
    *,
    least: int = 0,
    most: int | None = None,
    multiple: int = 1,
    one_of: tuple[int, ...] = (),
) -> Check:
    """A number of elements a partition within the instruction's limits."""

    def check(given: Given) -> Iterator[Problem]:
        view = given.view(name)
        if view is not None and view.shape:
            yield from _size(
                given, name, "elements a partition", view.free_elements, view.shape[-1],
                least, most, multiple, one_of,
            )  # fmt: skip

    return check


def partition_count(name: str, *, multiple: int) -> Check:
    """A multiple of so many partitions."""

    def check(given: Given) -> Iterator[Problem]:
        view = given.view(name)
        if view is not None and view.shape:
            yield from _size(
                given, name, "partitions", view.sizes[0], view.shape[0], 0, None, multiple, ()
            )

    return check


def one_partition(name: str) -> Check:
    """A tile of one partition."""

    def check(given: Given) -> Iterator[Problem]:
        view = given.view(name)
        if view is not None and view.shape:
            yield from _size(
                given, name, "partitions", view.sizes[0], view.shape[0], 0, None, 1, (1,)
            )

    return check


def rank(name: str, most: int) -> Check:
    """At most so many axes."""

    def check(given: Given) -> Iterator[Problem]:
        view = given.view(name)
        if view is not None:
            yield from _size(given, name, "axes", len(view.shape), None, 0, most, 1, ())

    return check


def single(name: str) -> Check:
    """A tensor of one element."""

    def check(given: Given) -> Iterator[Problem]:
        view = given.view(name)
        if view is not None:
            yield from _size(given, name, "elements", view.elements, None, 0, None, 1, (1,))

    return check


def same_partitions(*names: str) -> Check:
    """Equal numbers of partitions."""

    def check(given: Given) -> Iterator[Problem]:
        first = given.view(names[0])
        for name in names[1:]:
            other = given.view(name)
            if first is None or other is None or not first.shape or not other.shape:
                continue
            a, b = first.sizes[0], other.sizes[0]
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

    return check


def same_free(first: str, second: str) -> Check:
    """Equal numbers of elements a partition."""

    def check(given: Given) -> Iterator[Problem]:
        yield from _free_difference(given, first, second, 0)

    return check


def one_more(first: str, second: str) -> Check:
    """One element a partition more in the first than in the second."""

    def check(given: Given) -> Iterator[Problem]:
        yield from _free_difference(given, first, second, 1)

    return check


def _free_difference(given: Given, first: str, second: str, more: int) -> Iterator[Problem]:
    left, right = given.view(first), given.view(second)
    if left is None or right is None:
        return
    a, b = left.free_elements, right.free_elements
    if a != b + more:
        needed = f", {b + more} are needed" if more else ""
        yield given.problem(
            "size-mismatch",
            f"{first} has {a} elements a partition, {second} has {b}{needed}",
            first,
            (first, a),
            (second, b),
            against=(second,),
        )


def dtypes(name: str, *allowed: str) -> Check:
    """A tensor of one of these formats."""

    def check(given: Given) -> Iterator[Problem]:
        view = given.view(name)
        if view is not None and str(view.dtype) not in allowed:
            yield given.problem(
                "dtype", f"{name} is {view.dtype}, {_listed(allowed)} is needed", name
            )

    return check


def not_dtype(name: str, *refused: str) -> Check:
    """A tensor of none of these formats."""

    def check(given: Given) -> Iterator[Problem]:
        view = given.view(name)
        if view is not None and str(view.dtype) in refused:
            yield given.problem("dtype", f"{name} is {view.dtype}, which is not supported", name)

    return check


def element_bytes(name: str, size: int) -> Check:
    """Elements of so many bytes."""

    def check(given: Given) -> Iterator[Problem]:
        view = given.view(name)
        if view is not None and view.dtype.bytes != size:
            yield given.problem(
                "dtype", f"{name} is {view.dtype}, {size} bytes an element are needed", name
            )

    return check


def one_operator_of(name: str, *allowed: str) -> Check:
    """One of these operators."""

    def check(given: Given) -> Iterator[Problem]:
        value = given.values.get(name)
        if isinstance(value, OperatorName) and value.name not in allowed:
            wanted = _listed(tuple(f"nl.{other}" for other in allowed))
            yield given.problem("operator", f"{name} is nl.{value.name}, not {wanted}", name)

    return check


def arithmetic(name: str) -> Check:
    """No operator on bit patterns."""

    def check(given: Given) -> Iterator[Problem]:
        value = given.values.get(name)
        if isinstance(value, OperatorName) and OPERATORS[value.name].bitvec:
            yield given.problem("operator", f"nl.{value.name} works on bit patterns", name)

    return check


def negated_arithmetic(flag: str, name: str) -> Check:
    """Only results of arithmetic can be negated."""

    def check(given: Given) -> Iterator[Problem]:
        if given.values.get(flag) is True:
            yield from arithmetic(name)(given)

    return check


def one_number_of(name: str, *allowed: int) -> Check:
    """One of these numbers."""

    def check(given: Given) -> Iterator[Problem]:
        number = integer(given.values.get(name))
        if number is not None and number not in allowed:
            yield given.problem(
                "argument", f"{name} is {number}, {_listed(allowed)} is needed", name
            )

    return check


def between(name: str, least: int, most: int) -> Check:
    """A number within these bounds."""

    def check(given: Given) -> Iterator[Problem]:
        value = given.values.get(name)
        number = integer(value)
        if number is not None and not least <= number <= most:
            yield given.problem(
                "argument", f"{name} is {number}, {least} to {most} is possible", name, of=value
            )

    return check


def below(low: str, high: str) -> Check:
    """The first number is less than the second."""

    def check(given: Given) -> Iterator[Problem]:
        a, b = given.values.get(low), given.values.get(high)
        if isinstance(a, Number) and isinstance(b, Number) and not a.value < b.value:
            yield given.problem("argument", f"{low} is {a.value}, {high} is {b.value}", low, of=a)

    return check


def must_be_false(name: str) -> Check:
    """A flag that is not supported."""

    def check(given: Given) -> Iterator[Problem]:
        if given.values.get(name) is True:
            yield given.problem("argument", f"{name} is not supported", name)

    return check


def initial_only_with(name: str, command: str) -> Check:
    """A start value is read with one command only, and needed there."""

    def check(given: Given) -> Iterator[Problem]:
        chosen, value = given.values.get("reduce_cmd"), given.values.get(name)
        if not isinstance(chosen, Member):
            return
        unset = value is None or (isinstance(value, Number) and value.value == 0)
        if chosen.name != command and not unset:
            yield given.problem("argument", f"{name} without reduce_cmd.{command}", name)
        elif chosen.name == command and value is None:
            yield given.problem("argument", f"reduce_cmd.{command} without {name}", name)

    return check


def not_on(engine: str, target: str) -> Check:
    """Not this engine on that target."""

    def check(given: Given) -> Iterator[Problem]:
        chosen = given.values.get("engine")
        if given.target == target and isinstance(chosen, Member) and chosen.name == engine:
            yield given.problem("engine", f"not on the {engine} engine of {target}", "engine")

    return check


def source_count(name: str, most: int) -> Check:
    """At most so many tensors, each with as many elements as the destination."""

    def check(given: Given) -> Iterator[Problem]:
        value, dst = given.values.get(name), given.view("dst")
        if not isinstance(value, tuple | list):
            return
        if not 1 <= len(value) <= most:
            yield given.problem(
                "argument", f"{len(value)} tensors as {name}, 1 to {most} are possible", name
            )
        for position, view in enumerate(value):
            if isinstance(view, View) and dst is not None and view.elements != dst.elements:
                yield given.problem(
                    "size-mismatch",
                    f"dst has {dst.elements} elements, {name}[{position}] has {view.elements}",
                    "dst",
                    ("dst", dst.elements),
                    (name, view.elements),
                )

    return check


def unit_scales(name: str) -> Check:
    """Factors that are all 1."""

    def check(given: Given) -> Iterator[Problem]:
        value = given.values.get(name)
        for item in value if isinstance(value, tuple | list) else ():
            if isinstance(item, Number) and item.value != 1:
                yield given.problem(
                    "argument", f"{name} has {item.value}, only 1.0 is possible", name, of=item
                )

    return check


def is_format(view: View | None, *allowed: DType) -> bool:
    """Whether a tensor is there and of one of these formats."""
    return view is not None and view.dtype in allowed
