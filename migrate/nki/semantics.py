"""What each instruction computes, said once.

Semantics are written against a `Machine`, which either computes with arrays (the
simulator) or builds IR (the lifter): what is simulated and what is lifted are therefore
the same thing.  A machine's values `V` have a shape; elements keep the format they have,
and conversions are explicit.

Vector, Scalar and GpSimd engines take operands to fp32, compute in fp32 and convert the
result at the store, rounding to nearest even (NKI API reference, nki.isa); bit-vector
operators and GpSimd's 32-bit integers are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from migrate.nki.errors import Unsupported
from migrate.nki.formulas import composed
from migrate.nki.operators import OPERATORS, NkiOperator
from migrate.nki.parts import Part
from migrate.nki.symbols import Number
from migrate.nki.values import Member, Memory, OperatorName, View
from migrate.numerics.domain import OperatorError
from migrate.numerics.dtypes import DType
from migrate.numerics.operators import OPERATORS as MEANINGS

if TYPE_CHECKING:
    from migrate.nki.frames import Instruction

V = TypeVar("V")


class Machine(Protocol[V]):
    """What instructions are made of."""

    def read(self, view: View, shape: Sequence[Number] | None = None) -> V:
        """Elements of a view, in row-major order under `shape` (its own if `None`)."""
        ...

    def dtype(self, value: V) -> DType: ...

    def convert(self, value: V, dtype: DType) -> V:
        """Conversion by NKI's rule (round to nearest even; integers saturate)."""
        ...

    def number(self, value: Number | float, dtype: DType) -> V:
        """A scalar that broadcasts."""
        ...

    def apply(
        self,
        operator: str,
        args: Sequence[V],
        dtype: DType,
        error: OperatorError | None = None,
        mapping: str = "",
    ) -> V:
        """An operator of `numerics.operators`, elementwise, broadcasting."""
        ...

    def select(self, condition: V, then: V, otherwise: V) -> V: ...

    def where_index(
        self,
        comparison: str,
        shape: Sequence[Number],
        offset: Number,
        steps: Sequence[Number],
        then: V,
        otherwise: V,
    ) -> V:
        """`then` where offset + sum of step * index compares so with 0, else `otherwise`."""
        ...

    def reduce(self, operator: str, value: V, axes: Sequence[int], dtype: DType) -> V:
        """Combine along axes, which stay with size 1."""
        ...

    def scan(
        self,
        step: Callable[[V, V, V], V],
        initial: V,
        left: V,
        right: V,
        shape: tuple[Number, Number],
    ) -> V:
        """All states of `state = step(state, left[:, k], right[:, k])`, in fp32.

        `left` and `right` are of `shape`; `initial` is a number or a column of its rows.
        """
        ...

    def contract(self, stationary: V, moving: V) -> V:
        """[K, M] and [K, N] to [M, N], sums in fp32."""
        ...

    def transpose(self, value: V, order: Sequence[int]) -> V: ...

    def reshape(self, value: V, shape: Sequence[Number]) -> V: ...

    def position(self, shape: Sequence[Number], offset: Number, steps: Sequence[Number]) -> V:
        """offset + sum of step * index, an int32."""
        ...

    def keep(self, value: V, shape: Sequence[Number]) -> V:
        """A value of that shape that is used more than once."""
        ...

    def rearrange(self, value: V, shape: Sequence[Number], where: Rearrangement) -> V:
        """Elements of a value in another order, some left out or repeated.

        `where(place, sizes)` is the place in the value, whose sizes are given, of the element
        at a place of the result; it adds, multiplies, divides (floor) and takes remainders.
        """
        ...

    def gather(self, view: View, indices: V, shape: tuple[Number, Number]) -> V:
        """Of each row of a view, its free axes counted as one, the elements at `indices`.

        `indices` are integers of that shape, one row for each row of the view.
        """
        ...

    def largest(self, value: V, shape: tuple[Number, Number], count: Number) -> tuple[V, V]:
        """The `count` largest fp32 numbers of each row, largest first, and where they stand.

        Of equal numbers the first comes first; positions are int32.
        """
        ...

    def part(self, view: View, parts: Sequence[Part]) -> View:
        """A part of an operand, which can be read and written as the operand can."""
        ...

    def random(self, distribution: str, shape: Sequence[Number], dtype: DType) -> V:
        """Numbers that the generator of an engine makes."""
        ...

    def bits(self, value: V, dtype: DType) -> V:
        """The same bits as a format of the same width."""
        ...

    def quantize(self, value: V, dtype: DType) -> tuple[V, Sequence[V]]:
        """fp32 numbers, [rows, 4 columns], as elements of a packed format, [rows, columns].

        Beside them the bits of their scales, for each 32 rows.
        """
        ...

    def dequantize(self, packed: V, dtype: DType, scales: Sequence[V]) -> V:
        """Numbers of a packed format times their scales, fp32 of [4 rows, columns]."""
        ...

    def write(self, view: View, value: V) -> None:
        """Convert to the view's dtype and store."""
        ...

    def accumulate(self, view: View, value: V, mode: bool | None) -> None:
        """Store a matmul's result in PSUM.

        `True` adds to what is there, `False` overwrites, `None` overwrites what no
        matmul wrote since the allocation and adds elsewhere (nki.isa.nc_matmul, 0.3).
        """
        ...


Semantics: TypeAlias = Callable[["Machine[Any]", "Instruction"], None]

Rearrangement: TypeAlias = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
"""From a place in the result and the sizes of the value to a place in the value."""

F32 = DType.FLOAT32
_EXACT_INTEGERS = frozenset({DType.INT32, DType.UINT32})


def operator_of(instruction: Instruction, name: str) -> NkiOperator | None:
    """The operator given as an attribute."""
    value = instruction.attribute(name)
    return OPERATORS[value.name] if isinstance(value, OperatorName) else None


def engine_of(instruction: Instruction) -> str:
    """The engine asked for; "unknown" leaves the choice to the compiler."""
    value = instruction.attribute("engine")
    return value.name if isinstance(value, Member) else "unknown"


def meaning(operator: NkiOperator, operands: int | None = None) -> str:
    """The operator of `numerics.operators`, which must take that many operands."""
    name = operator.operator
    if name is None:
        raise Unsupported(f"the operator nl.{operator.name}")
    if operands is not None and MEANINGS[name].arity != operands:
        raise Unsupported(f"nl.{operator.name} on {operands} operand{'s' * (operands != 1)}")
    return name


def required_view(instruction: Instruction, name: str) -> View:
    view = instruction.view(name)
    if view is None:
        raise Unsupported(f"{instruction.opcode} without a tensor as {name}")
    return view


def is_exact_integer(instruction: Instruction) -> bool:
    """Whether `tensor_tensor` goes to GpSimd's native 32-bit integers.

    By default for add, subtract and multiply with every tile int32 or uint32 in SBUF
    (nki.isa.tensor_tensor, since 0.3.0).
    """
    operator = operator_of(instruction, "op")
    if operator is None or operator.name not in {"add", "subtract", "multiply"}:
        return False
    if engine_of(instruction) not in {"unknown", "gpsimd"}:
        return False
    tiles = [required_view(instruction, name) for name in ("dst", "data1", "data2")]
    return all(
        tile.dtype in _EXACT_INTEGERS and tile.buffer.memory is not Memory.PSUM for tile in tiles
    )


def copy(m: Machine[V], i: Instruction) -> None:
    """`tensor_copy`, `dma_copy`: bit for bit where dtypes agree, else through fp32."""
    dst, src = required_view(i, "dst"), required_view(i, "src")
    value = m.read(src, dst.shape)
    if src.dtype is not dst.dtype:
        value = m.convert(value, F32)
    m.write(dst, value)


def register_move(m: Machine[V], i: Instruction) -> None:
    """An integer into a register, or between a register and memory."""
    dst, src = required_view(i, "dst"), i.operand("src")
    if isinstance(src, View):
        m.write(dst, m.read(src, dst.shape))
    elif isinstance(src, Number):
        m.write(dst, m.number(src, dst.dtype))
    else:
        raise Unsupported(f"{i.opcode} without an integer")


def memset(m: Machine[V], i: Instruction) -> None:
    dst = required_view(i, "dst")
    value = i.operand("value")
    if not isinstance(value, Number):
        raise Unsupported("memset without a number")
    m.write(dst, m.number(value, dst.dtype))


def tensor_tensor(m: Machine[V], i: Instruction) -> None:
    dst = required_view(i, "dst")
    operator = required_operator(i, "op")
    left = m.read(required_view(i, "data1"), dst.shape)
    right = m.read(required_view(i, "data2"), dst.shape)
    if operator.bitvec or is_exact_integer(i):
        m.write(dst, integer_arithmetic(m, operator, (left, right), dst.dtype))
        return
    m.write(dst, arithmetic(m, operator, (m.convert(left, F32), m.convert(right, F32))))


def tensor_scalar(m: Machine[V], i: Instruction) -> None:
    """`(data op0 operand0) op1 operand1`, in fp32 throughout."""
    dst = required_view(i, "dst")
    value = m.read(required_view(i, "data"), dst.shape)
    first = required_operator(i, "op0")
    integers = first.bitvec
    if not integers:
        value = m.convert(value, F32)
    for operator, operand, reverse in (
        (first, "operand0", "reverse0"),
        (operator_of(i, "op1"), "operand1", "reverse1"),
    ):
        if operator is None:
            continue
        if "unary" in operator.uses and i.operand(operand) is None:
            args: tuple[V, ...] = (value,)
        elif "unary" in operator.uses and "scalar" not in operator.uses:
            args = (value,)  # the operand of a unary operator is ignored
        else:
            other = column(m, i, operand, dst, dst.dtype if integers else F32)
            args = (other, value) if i.attribute(reverse) is True else (value, other)
        if integers:
            value = integer_arithmetic(m, operator, args, dst.dtype)
        else:
            value = arithmetic(m, operator, args)
    m.write(dst, value)


def reciprocal(m: Machine[V], i: Instruction) -> None:
    dst = required_view(i, "dst")
    value = m.convert(m.read(required_view(i, "data"), dst.shape), F32)
    m.write(dst, arithmetic(m, OPERATORS["reciprocal"], (value,)))


def tensor_reduce(m: Machine[V], i: Instruction) -> None:
    """Combine along trailing free axes."""
    dst, data = required_view(i, "dst"), required_view(i, "data")
    operator = required_operator(i, "op")
    if "reduce" not in operator.uses:
        raise Unsupported(f"a reduction by nl.{operator.name}")
    axes = _axes(i.attribute("axis"), len(data.shape))
    value = m.read(data)
    if operator.bitvec:
        total = m.reduce(meaning(operator), value, axes, data.dtype)
    else:
        total = m.reduce(meaning(operator), m.convert(value, F32), axes, F32)
        if i.attribute("negate") is True:
            total = m.apply("negate", (total,), F32)
    m.write(dst, m.reshape(total, dst.shape))


def dma_transpose(m: Machine[V], i: Instruction) -> None:
    """Axes in the order `axes`; by default reversed, (3, 1, 2, 0) for four of them."""
    dst, src = required_view(i, "dst"), required_view(i, "src")
    given = i.attribute("axes")
    rank = len(src.shape)
    order = (3, 1, 2, 0) if rank == 4 else tuple(reversed(range(rank)))
    if isinstance(given, tuple | list):
        order = tuple(int(n.value) for n in given if isinstance(n, Number))
    if sorted(order) != list(range(rank)):
        raise Unsupported("dma_transpose with axes that are no order of the source's")
    value = m.transpose(m.read(src), order)
    if src.dtype is not dst.dtype:
        value = m.convert(value, F32)
    m.write(dst, m.reshape(value, dst.shape))


def nc_matmul(m: Machine[V], i: Instruction) -> None:
    """`stationary.T @ moving`, accumulated in PSUM.

    Which part of the array does it (`tile_position`, `tile_size`) does not change the product.
    With `double_row` the second axis, of 2, is contracted together with the partitions.
    """
    dst = required_view(i, "dst")
    stationary, moving = required_view(i, "stationary"), required_view(i, "moving")
    performance = i.attribute("perf_mode")
    mode = performance.name if isinstance(performance, Member) else "none"
    if mode not in ("none", "double_row"):
        raise Unsupported(f"nc_matmul with perf_mode {mode}")
    accumulate = i.attribute("accumulate")
    if mode == "double_row":
        product = m.contract(_rows_doubled(m, stationary), _rows_doubled(m, moving))
    else:
        product = m.contract(m.read(stationary), m.read(moving))
    if i.attribute("is_transpose") is True:
        accumulate = False
    adds = accumulate if isinstance(accumulate, bool) else None
    m.accumulate(dst, m.reshape(product, dst.shape), adds)


def _rows_doubled(m: Machine[V], view: View) -> V:
    if len(view.shape) < 3 or view.sizes[1] != 2:
        raise Unsupported("double_row without a second axis of 2")
    from migrate.nki.views import product

    return m.read(view, (product(view.shape[:2]), product(view.shape[2:])))


def nc_transpose(m: Machine[V], i: Instruction) -> None:
    """Partition and free axes swapped; several free axes count as one."""
    dst, data = required_view(i, "dst"), required_view(i, "data")
    value = m.read(data, (data.shape[0], flat_free(data)))
    m.write(dst, m.reshape(m.transpose(value, (1, 0)), dst.shape))


def flat_free(view: View) -> Number:
    from migrate.nki.views import product

    return product(view.shape[1:])


def scalar_tensor_tensor(m: Machine[V], i: Instruction) -> None:
    """`(data op0 operand0) op1 operand1` with a tensor as the second operand."""
    dst = required_view(i, "dst")
    value = m.convert(m.read(required_view(i, "data"), dst.shape), F32)
    other = column(m, i, "operand0", dst, F32)
    args = (other, value) if i.attribute("reverse0") is True else (value, other)
    value = arithmetic(m, required_operator(i, "op0"), args)
    other = m.convert(m.read(required_view(i, "operand1"), dst.shape), F32)
    args = (other, value) if i.attribute("reverse1") is True else (value, other)
    m.write(dst, arithmetic(m, required_operator(i, "op1"), args))


def required_operator(i: Instruction, name: str) -> NkiOperator:
    operator = operator_of(i, name)
    if operator is None:
        raise Unsupported(f"{i.opcode} without an operator as {name}")
    return operator


def arithmetic(m: Machine[V], operator: NkiOperator, args: tuple[V, ...]) -> V:
    if operator.operator is None:
        return composed(m, operator, args)
    return m.apply(meaning(operator, len(args)), args, F32, operator.error, f"nl.{operator.name}")


def integer_arithmetic(
    m: Machine[V], operator: NkiOperator, args: tuple[V, ...], dtype: DType
) -> V:
    """Exact integer arithmetic on operands of integer formats."""
    if not dtype.is_integer or not all(m.dtype(arg).is_integer for arg in args):
        raise Unsupported(f"nl.{operator.name} on formats that are not integers")
    return m.apply(meaning(operator, len(args)), args, dtype, None, f"nl.{operator.name}")


def column(m: Machine[V], i: Instruction, name: str, dst: View, dtype: DType) -> V:
    """An immediate, or a (P, 1) tile repeated along the free axes."""
    value = i.operand(name)
    if isinstance(value, Number):
        return m.number(value, dtype)
    if isinstance(value, View):
        one = Number(1)
        shape = (value.shape[0], *(one for _ in dst.shape[1:]))
        return m.convert(m.read(value, shape), dtype)
    raise Unsupported(f"{i.opcode} without {name}")


def _axes(value: object, rank: int) -> tuple[int, ...]:
    given = value if isinstance(value, tuple | list) else (value,)
    axes: list[int] = []
    for item in given:
        if not isinstance(item, Number) or not item.integral:
            raise Unsupported("a reduction whose axes are not integers")
        axes.append(int(item.value) % rank if rank else 0)
    return tuple(sorted(axes))


def dma_compute(m: Machine[V], i: Instruction) -> None:
    """The sum of tensors, element by element, in fp32."""
    dst = required_view(i, "dst")
    operator = operator_of(i, "reduce_op")
    if operator is None or operator.name != "add":
        raise Unsupported("dma_compute with something other than nl.add")
    for scale in _items(i.attribute("scales")):
        if not isinstance(scale, Number) or scale.value != 1:
            raise Unsupported("dma_compute with scales that are not 1.0")
    total: V | None = None
    for name, operand in i.operands:
        # `srcs.0:0` is the tile that says where `srcs.0` is.
        if name.startswith("srcs.") and ":" not in name and isinstance(operand, View):
            value = m.convert(m.read(operand, dst.shape), F32)
            total = value if total is None else m.apply("add", (total, value), F32)
    if total is None:
        raise Unsupported("dma_compute without a tensor")
    m.write(dst, total)


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, tuple | list) else ()


def dropout(m: Machine[V], i: Instruction) -> None:
    """Zeros with probability `prob`; nothing is rescaled."""
    dst = required_view(i, "dst")
    value = m.read(required_view(i, "data"), dst.shape)
    probability = i.operand("prob")
    zero = m.number(0.0, dst.dtype)
    if isinstance(probability, Number) and probability.value <= 0:
        m.write(dst, value)
        return
    if isinstance(probability, Number) and probability.value >= 1:
        m.write(dst, zero)
        return
    drawn = m.random("uniform", dst.shape, F32)
    dropped = m.apply("less", (drawn, column(m, i, "prob", dst, F32)), F32)
    m.write(dst, m.select(dropped, zero, value))


def random_bits(m: Machine[V], i: Instruction) -> None:
    """Random bits, the low ones of 32; or the state of a generator."""
    dst = required_view(i, "dst")
    kind = "state" if i.opcode == "rand_get_state" else "bits"
    m.write(dst, m.random(kind, dst.shape, dst.dtype))


def random_uniform(m: Machine[V], i: Instruction) -> None:
    """Uniform numbers from `min` to `max`."""
    dst = required_view(i, "dst")
    low, high = (column(m, i, name, dst, F32) for name in ("min", "max"))
    width = m.apply("subtract", (high, low), F32)
    drawn = m.random("uniform", dst.shape, F32)
    m.write(dst, m.apply("add", (m.apply("multiply", (drawn, width), F32), low), F32))


def seed(m: Machine[V], i: Instruction) -> None:
    """Sets the state of a generator, which no tensor holds."""
    m.read(required_view(i, "src_seeds"))
