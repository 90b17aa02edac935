"""Matrix products by a warp in the IR, and the addresses its threads pass to each other.

The registers of an operand are written to a scratch buffer by every lane, as in an exchange
(`lifting.warp`); each element of the result is then a `Contract` over the elements of its row and
column, which `library.layout` finds in the buffer.  An address that comes from another lane is the
same expression with that lane's thread index in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from migrate.cuda import ast
from migrate.cuda.library.layout import Layout, Role, layout
from migrate.cuda.lifting.symbolic import Data, Number, Parts, Pointer, Symbolic
from migrate.cuda.lifting.warp import WARP
from migrate.cuda.types import INT, Scalar, Vector
from migrate.ir.index import Index
from migrate.ir.nodes import (
    Axis,
    AxisKind,
    Barrier,
    Cast,
    Contract,
    Load,
    Map,
    Rounding,
    Space,
    Store,
    Value,
    Version,
)
from migrate.numerics.dtypes import DType

if TYPE_CHECKING:
    from migrate.cuda.lifting.lifter import Lifter


def contracted(lifter: Lifter, node: ast.WarpContract) -> None:
    """`d = a b + c`, element by element; raises `NotLifted` for registers of unknown content."""
    if node.element.is_integer:
        raise lifter.not_lifted("a matrix product of integers", node.span)
    depth = node.shape[2]
    thread = lifter.linear_thread(node.span)
    lane = (thread % WARP).simplify(lifter.known.ranges)
    first = thread - lane
    left = _written(lifter, node, "a", node.a)
    right = _written(lifter, node, "b", node.b)
    addends = _elements(lifter, node, node.c, node.accumulator)
    lifter.emit(Barrier("warp", lifter.at(node.span)))
    made = layout("c", node.shape, node.element)
    if len(addends) != made.elements:
        raise lifter.not_lifted("registers that do not hold a matrix", node.span)
    span = lifter.at(node.span)
    wide = DType.FLOAT64 if node.element.dtype is DType.FLOAT64 else DType.FLOAT32
    results: list[Symbolic] = []
    for position in range(made.elements):
        row, column = made.place(lane, position)
        axis = Axis(lifter.loop_name("k"), Index.of(depth), AxisKind.PARALLEL, span)
        inner = Index.axis(axis.name)
        with lifter.block() as body:
            lifter.known.ranges[axis.name] = (0, depth - 1)
            a = _read(
                lifter, node, left, (row, inner), layout("a", node.shape, node.element), first
            )
            b = _read(
                lifter, node, right, (inner, column), layout("b", node.shape, node.element), first
            )
            a, b = _cast(lifter, node, a, wide), _cast(lifter, node, b, wide)
        product = lifter.fresh(wide)
        lifter.emit(Contract(product, (axis,), tuple(body), a, b, span))
        total = lifter.fresh(wide)
        addend = _cast(lifter, node, addends[position], wide)
        lifter.emit(Map(total, "add", (product, addend), span))
        results.append(Data(_cast(lifter, node, total, node.result.dtype)))
    _assign(lifter, node, results)


def _cast(lifter: Lifter, node: ast.WarpContract, value: Value, to: DType) -> Value:
    if value.dtype is to:
        return value
    result = lifter.fresh(to)
    lifter.emit(Cast(result, value, lifter.at(node.span), Rounding.NEAREST_EVEN))
    return result


def _written(
    lifter: Lifter, node: ast.WarpContract, role: Role, registers: Sequence[ast.Expression]
) -> Version:
    """A scratch buffer [thread * elements + position] with the registers of all threads."""
    values = _elements(lifter, node, registers, node.element)
    made = layout(role, node.shape, node.element)
    if len(values) != made.elements:
        raise lifter.not_lifted("registers that do not hold a matrix", node.span)
    name = lifter.storage(
        f"fragment_{role}",
        node.element,
        Space.PRIVATE,
        lifter.grid_axes,
        node.span,
        lifter.block_size * made.elements,
    )
    lifter.exchanges.add(name)
    thread = lifter.linear_thread(node.span)
    for position, value in enumerate(values):
        into = lifter.state.versions[name]
        stored = lifter.next_version(name)
        index = (*lifter.leading[name], thread * made.elements + position)
        lifter.emit(Store(stored, into, index, value, lifter.at(node.span)))
    return lifter.state.versions[name]


def _read(
    lifter: Lifter,
    node: ast.WarpContract,
    source: Version,
    at: tuple[Index, Index],
    made: Layout,
    first: Index,
) -> Value:
    holder = first + made.lane(*at)
    cell = holder * made.elements + made.position(*at)
    result = lifter.fresh(node.element.dtype)
    index = (*lifter.leading[source.buffer], cell.simplify(lifter.known.ranges))
    lifter.emit(Load(result, source, index, lifter.at(node.span)))
    return result


def _elements(
    lifter: Lifter, node: ast.WarpContract, registers: Sequence[ast.Expression], element: Scalar
) -> list[Value]:
    """What registers hold, element by element."""
    found: list[Value] = []
    for register in registers:
        symbolic = lifter.lift(register)
        kind = register.type
        if isinstance(kind, Vector) and isinstance(symbolic, Parts) and kind.element == element:
            found += [lifter.value(item, element, node.span) for item in symbolic.items]
        elif isinstance(kind, Scalar) and kind.dtype is element.dtype:
            found.append(lifter.value(symbolic, element, node.span))
        else:
            raise lifter.not_lifted(f"a register of {kind} that holds {element}", node.span)
    return found


def _assign(lifter: Lifter, node: ast.WarpContract, results: Sequence[Symbolic]) -> None:
    each = len(results) // len(node.d)
    for number, register in enumerate(node.d):
        mine = tuple(results[number * each : (number + 1) * each])
        kind = register.type
        if isinstance(kind, Vector) and kind.element == node.result and kind.lanes == each:
            lifter.write(register, Parts(mine), node.span)
        elif isinstance(kind, Scalar) and kind.dtype is node.result.dtype and each == 1:
            lifter.write(register, mine[0], node.span)
        else:
            raise lifter.not_lifted(f"a register of {kind} that holds {node.result}", node.span)


def address_of(lifter: Lifter, node: ast.Shuffle, source: Index) -> Symbolic:
    """The address that another thread passes; `source` is that thread's number in the block."""
    pointer = lifter.lift(node.value)
    if not isinstance(pointer, Pointer) or pointer.buffer is None:
        raise lifter.not_lifted("an address from another thread that is not known", node.span)
    values = _threads(lifter, source)
    leading = lifter.leading[pointer.buffer]
    if any(index.axes() & values.keys() for index in leading):
        raise lifter.not_lifted("the address of another thread's own memory", node.span)
    if not isinstance(pointer.offset, Number):
        return Pointer(pointer.buffer, _passed(lifter, node, pointer.offset, source))
    offset = pointer.offset.index.substitute(values).simplify(lifter.known.ranges)
    return Pointer(pointer.buffer, Number(offset, pointer.offset.sources))


def _passed(lifter: Lifter, node: ast.Shuffle, offset: Data, source: Index) -> Data:
    """An offset that depends on data, as another thread has it: exchanged like any number."""
    span = lifter.at(node.span)
    name = lifter.storage(
        "exchange", INT, Space.PRIVATE, lifter.grid_axes, node.span, lifter.block_size
    )
    lifter.exchanges.add(name)
    into = lifter.state.versions[name]
    stored = lifter.next_version(name)
    leading = lifter.leading[name]
    thread = lifter.linear_thread(node.span)
    value = lifter.value(offset, INT, node.span)
    lifter.emit(Store(stored, into, (*leading, thread), value, span))
    lifter.emit(Barrier("warp", span))
    result = lifter.fresh(INT.dtype)
    index = (*leading, source.simplify(lifter.known.ranges))
    lifter.emit(Load(result, stored, index, span))
    return Data(result)


def _threads(lifter: Lifter, source: Index) -> dict[str, Index]:
    """What the thread axes are in a thread of a given number."""
    values: dict[str, Index] = {}
    rest = source
    last = max((axis for axis in range(3) if lifter.axes[("threadIdx", axis)].axes()), default=0)
    for axis in range(last + 1):
        extent = lifter.dimensions[("blockDim", axis)]
        here = rest if axis == last else rest % extent
        for name in lifter.axes[("threadIdx", axis)].axes():
            values[name] = here
        rest = rest // extent if axis < last else rest
    return values
