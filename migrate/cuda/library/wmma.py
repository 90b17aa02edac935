"""Warp matrix functions (CUDA C++ Programming Guide, "Warp Matrix Functions").

A fragment is an array of a lane's elements, in the layout of `layout`.  NVIDIA leaves the layout
open, so `f.x[i]` is read only where it does not matter: in a loop whose variable does nothing but
index `.x` of fragments.  `load_matrix_sync`, `store_matrix_sync` and `fill_fragment` are loops of
plain loads and stores; `mma_sync` is a `WarpContract`.

For the lifter: calls of `wmma::load_matrix_sync` and so on (loops of constant length with index
arithmetic on the lane), arrays of elements, `WarpContract`.
"""

from __future__ import annotations

from tree_sitter import Node

from migrate.cuda.ast import Cast, Expression, Literal, Statement, WarpContract
from migrate.cuda.conversions import convert, decay
from migrate.cuda.library.build import element, lane
from migrate.cuda.library.layout import Role, layout, sound
from migrate.cuda.library.request import (
    Handler,
    Lowered,
    Parameters,
    Request,
    TypeMaker,
    unclear,
)
from migrate.cuda.library.text import Binding, inlined
from migrate.cuda.origins import Where
from migrate.cuda.scope import Scope
from migrate.cuda.types import (
    BFLOAT16,
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    SIGNED_CHAR,
    UNSIGNED_CHAR,
    Array,
    Library,
    Pointer,
    Scalar,
    Type,
)
from migrate.numerics.dtypes import DType

TF32 = Library("tf32")
TFLOAT32 = Scalar("tf32", DType.TFLOAT32)
"""What `cvt.rna.tf32.f32` converts to; nothing is declared of this type."""

_ROLES: dict[str, Role] = {"matrix_a": "a", "matrix_b": "b", "accumulator": "c"}

# What multiplies and what it is accumulated in (Programming Guide, "Element Types and Matrix
# Sizes"), with the shapes of each.
_HALVES = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
_SHAPES = {
    HALF: _HALVES,
    BFLOAT16: _HALVES,
    SIGNED_CHAR: _HALVES,
    UNSIGNED_CHAR: _HALVES,
    FLOAT: ((16, 16, 8),),
    DOUBLE: ((8, 8, 4),),
}


class Fragment(Array, frozen=True):
    """An array of a lane's elements; `precision` is `tf32` where floats are read as that."""

    role: Role = "c"
    shape: tuple[int, int, int] = (16, 16, 16)
    row_major: bool | None = None
    precision: str = ""

    @property
    def scalar(self) -> Scalar:
        assert isinstance(self.element, Scalar)
        return self.element


def _fragment_type(parameters: Parameters) -> Type | None:
    if not 5 <= len(parameters) <= 6:
        return None
    use, m, n, k, held = parameters[:5]
    role = _ROLES.get(use.name) if isinstance(use, Library) else None
    if role is None or not (isinstance(m, int) and isinstance(n, int) and isinstance(k, int)):
        return None
    shape = (m, n, k)
    scalar = FLOAT if held == TF32 else held
    if not isinstance(scalar, Scalar):
        return None
    if role == "c":
        if all(shape not in shapes for shapes in _SHAPES.values()):
            return None
        if scalar not in (HALF, FLOAT, DOUBLE, INT):
            return None
        count = layout("c", shape, scalar).elements
        return Fragment(scalar, count, "c", shape)
    if shape not in _SHAPES.get(scalar, ()) or not sound(shape, scalar):
        return None
    order = parameters[5] if len(parameters) > 5 else None
    if not isinstance(order, Library) or order.name not in ("row_major", "col_major"):
        return None
    count = layout(role, shape, scalar).elements
    precision = "tf32" if scalar == FLOAT else ""
    return Fragment(scalar, count, role, shape, order.name == "row_major", precision)


_TEXT = """
template <typename T, typename S, int DOWN, int WIDTH, int COUNT, bool ACROSS> __device__
void load(T* x, const S* from, int stride, int lane) {
  for (int i = 0; i < COUNT; ++i) {
    const int row = lane / 4 + i / WIDTH % DOWN * 8;
    const int column = lane % 4 * WIDTH + i % WIDTH + i / WIDTH / DOWN * (4 * WIDTH);
    x[i] = ACROSS ? from[row * stride + column] : from[column * stride + row];
  }
}
template <typename T, typename S, int DOWN, int WIDTH, int COUNT, bool ACROSS> __device__
void store(S* to, const T* x, int stride, int lane) {
  for (int i = 0; i < COUNT; ++i) {
    const int row = lane / 4 + i / WIDTH % DOWN * 8;
    const int column = lane % 4 * WIDTH + i % WIDTH + i / WIDTH / DOWN * (4 * WIDTH);
    if (ACROSS) to[row * stride + column] = x[i];
    else to[column * stride + row] = x[i];
  }
}
template <typename T, int COUNT> __device__ void fill(T* x, T value) {
  for (int i = 0; i < COUNT; ++i) x[i] = value;
}
"""


def _across(request: Request, position: int) -> bool | None:
    """Whether the layout that an argument names is by rows."""
    name = request.text(position).rsplit("::", 1)[-1]
    return {"mem_row_major": True, "mem_col_major": False}.get(name)


def _move(request: Request) -> Lowered:
    """`load_matrix_sync(f, p, stride, layout)` and `store_matrix_sync(p, f, stride, layout)`."""
    storing = request.name == "store_matrix_sync"
    count = len(request.arguments)
    if not 3 <= count <= 4:
        return None
    given = [request.value(position) for position in range(3)]
    bad = unclear(given)
    if bad is not None:
        return bad
    fragment, memory = (given[1], given[0]) if storing else (given[0], given[1])
    kind, pointer = fragment.type, decay(memory)
    if not isinstance(kind, Fragment) or not isinstance(pointer.type, Pointer):
        return request.opaque(f"{request.name} of {kind} is not understood")
    by_rows = _across(request, 3) if count == 4 else kind.row_major
    if by_rows is None or (count == 4) != (kind.role == "c"):
        return request.opaque(f"{request.name} needs a layout that is known here")
    made = layout(kind.role, kind.shape, kind.scalar)
    bindings: dict[str, Binding] = {
        "T": kind.element,
        "S": pointer.type.element,
        "DOWN": made.rows // 8,
        "WIDTH": made.width,
        "COUNT": made.elements,
        # Rows as stored are the columns of b.
        "ACROSS": by_rows != made.transposed,
    }
    both = [pointer, decay(fragment)] if storing else [decay(fragment), pointer]
    arguments = [*both, given[2], convert(lane(request.where), INT)]
    return _done(request, "store" if storing else "load", bindings, arguments)


def _done(
    request: Request, function: str, bindings: dict[str, Binding], arguments: list[Expression]
) -> Lowered:
    name = f"wmma::{request.name}"
    made = inlined(_TEXT, function, bindings, arguments, request.where, name)
    return request.opaque(made) if isinstance(made, str) else made


def _fill(request: Request) -> Lowered:
    if len(request.arguments) != 2:
        return None
    fragment, value = request.values()
    bad = unclear([fragment, value])
    if bad is not None:
        return bad
    kind = fragment.type
    if not isinstance(kind, Fragment):
        return None
    bindings: dict[str, Binding] = {"T": kind.element, "COUNT": kind.length or 0}
    return _done(request, "fill", bindings, [decay(fragment), value])


def registers(fragment: Expression) -> tuple[Expression, ...]:
    """A fragment's elements, one by one."""
    kind = fragment.type
    assert isinstance(kind, Fragment)
    return tuple(element(fragment, at, kind.element) for at in range(kind.length or 0))


def _multiply(request: Request) -> Lowered:
    """`mma_sync(d, a, b, c)`: d = a b + c."""
    if not 4 <= len(request.arguments) <= 5:
        return None
    given = [request.value(position) for position in range(4)]
    bad = unclear(given)
    if bad is not None:
        return bad
    kinds = [value.type for value in given]
    roles = [kind.role if isinstance(kind, Fragment) else None for kind in kinds]
    if len(request.arguments) == 5 or roles != ["c", "a", "b", "c"]:
        return request.opaque(f"{request.name} of these fragments is not understood")
    d, a, b, c = (kind for kind in kinds if isinstance(kind, Fragment))
    if not d.shape == a.shape == b.shape == c.shape or a.element != b.element:
        return request.opaque("the fragments of this product are not of one shape")
    rd, ra, rb, rc = (registers(value) for value in given)
    made: Statement = WarpContract(
        d=rd,
        a=ra,
        b=rb,
        c=rc,
        shape=a.shape,
        element=a.scalar,
        accumulator=c.scalar,
        result=d.scalar,
        precision=a.precision,
        where=request.where,
    )
    return (made,)


def _to_tf32(request: Request) -> Lowered:
    """`__float_to_tf32(x)`: to 10 bits of significand, to nearest with ties away from zero."""
    if len(request.arguments) != 1:
        return None
    return rounded_to_tf32(request.value(0), request.where)


def rounded_to_tf32(value: Expression, where: Where) -> Expression:
    """A float with the significand of tf32 (PTX ISA, cvt.rna.tf32.f32)."""
    return Cast(Cast(convert(value, FLOAT), TFLOAT32, where), FLOAT, where)


# Members


def member(base: Expression, name: str, node: Node, scope: Scope) -> Expression | None:
    """`f.x` and `f.num_elements`; `None` where the object is no fragment."""
    kind = base.type
    if not isinstance(kind, Fragment):
        return None
    match name:
        case "num_elements" | "num_storage_elements":
            return Literal(kind.length or 0, INT, scope.where(node))
        case "x":
            reason = _dependent(node, scope)
            return base if reason is None else scope.opaque(node, reason)
        case _:
            return scope.opaque(node, f"a fragment has no member {name}")


def _dependent(node: Node, scope: Scope) -> str | None:
    """Why an access to elements hangs on the layout, which NVIDIA leaves open; or it does not."""
    reason = "which element a lane's x[i] is, is not specified"
    around = node.parent
    if around is None or around.type != "subscript_expression":
        return reason
    listed = around.child_by_field_name("indices")
    index = listed.named_children[0] if listed is not None and listed.named_children else None
    if index is None or index.type != "identifier":
        return reason
    name = scope.text(index)
    loop: Node | None = around
    while loop is not None and not (loop.type == "for_statement" and _counts(loop, name, scope)):
        loop = loop.parent
    body = loop.child_by_field_name("body") if loop is not None else None
    if body is None:
        return reason
    pending = [body]
    while pending:
        scope.meter.step()
        here = pending.pop()
        if here.type == "identifier" and scope.text(here) == name and not _indexes(here):
            return reason
        pending += here.named_children
    return None


def _counts(loop: Node, name: str, scope: Scope) -> bool:
    start = loop.child_by_field_name("initializer")
    if start is None:
        return False
    pending = [start]
    while pending:
        here = pending.pop()
        if here.type == "identifier" and scope.text(here) == name:
            return True
        pending += here.named_children
    return False


def _indexes(name: Node) -> bool:
    """Whether a name is the index of `something.x[name]`."""
    listed = name.parent
    subscript = listed.parent if listed is not None else None
    if subscript is None or subscript.type != "subscript_expression":
        return False
    base = subscript.child_by_field_name("argument")
    field = base.child_by_field_name("field") if base is not None else None
    return field is not None and field.text == b"x"


def _tag(name: str) -> TypeMaker:
    return lambda _parameters: Library(name)


FUNCTIONS: dict[str, Handler] = {
    "load_matrix_sync": _move,
    "store_matrix_sync": _move,
    "fill_fragment": _fill,
    "mma_sync": _multiply,
    "__float_to_tf32": _to_tf32,
}

MEMBERS: dict[str, Handler] = {}

TYPES: dict[str, TypeMaker] = {
    "fragment": _fragment_type,
    **{name: _tag(name) for name in (*_ROLES, "row_major", "col_major", "tf32")},
}
