"""C++ types as a device kernel has them: exact widths, LP64, CUDA's vector types, structs.

Widths follow the platform nvcc targets (LP64: `long` is 64 bits, plain `char` is signed).
Every arithmetic type has one `DType`, which is what arithmetic and storage use; distinct
C++ types may share one (`long` and `long long`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import msgspec

from migrate.numerics.dtypes import DType


class Plain(msgspec.Struct, frozen=True):
    """A type without anything of the program's own in it but other types."""


class Scalar(Plain, frozen=True):
    """An arithmetic type.  `rank` is the integer conversion rank, 0 for floats."""

    name: str
    dtype: DType
    rank: int = 0

    @property
    def is_float(self) -> bool:
        return self.rank == 0

    @property
    def is_integer(self) -> bool:
        return self.rank > 0

    @property
    def is_bool(self) -> bool:
        return self.rank == 1

    @property
    def is_unsigned(self) -> bool:
        return self.rank > 0 and self.dtype.kind in ("uint", "bool")

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return max(self.dtype.bits // 8, 1)

    @property
    def align(self) -> int:
        return self.size

    def __str__(self) -> str:
        return self.name


class Vector(Plain, frozen=True):
    """A short vector of CUDA (`float4`, `uint3`), or `dim3`: `lanes` components x, y, z, w."""

    name: str
    element: Scalar
    lanes: int

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.element.size * self.lanes

    @property
    def align(self) -> int:
        """Bytes (vector_types.h: `__builtin_align__`); of three lanes that of one."""
        if self.name == "dim3" or self.lanes == 3:
            return self.element.size
        return min(self.size, 16)

    def __str__(self) -> str:
        return self.name


class Pointer(Plain, frozen=True):
    """A pointer or a reference to array storage."""

    element: Type
    const: bool = False
    restrict: bool = False
    volatile: bool = False

    @property
    def size(self) -> int:
        return 8

    @property
    def align(self) -> int:
        return 8

    def __str__(self) -> str:
        return f"{'const ' if self.const else ''}{self.element}*"


class Array(Plain, frozen=True):
    """An array; `length` is `None` for `extern __shared__ T s[]`."""

    element: Type
    length: int | None

    @property
    def size(self) -> int:
        """Bytes in memory; 0 while the length is open."""
        return self.element.size * (self.length or 0)

    @property
    def align(self) -> int:
        return self.element.align

    def __str__(self) -> str:
        inner: Type = self
        lengths = ""
        while isinstance(inner, Array):
            lengths += f"[{'' if inner.length is None else inner.length}]"
            inner = inner.element
        return f"{inner}{lengths}"


@dataclass(frozen=True, slots=True)
class Member:
    """A data member; `offset` in bytes from the start of the object."""

    name: str
    type: Type
    offset: int


@dataclass(slots=True)
class Layout:
    """Where the members of a struct are; members of bases and anonymous unions included.

    Filled in once, after the `Struct` that it belongs to was made, since a struct may hold
    pointers to itself.  `overlaid`: members share bytes (a union is inside).  `parts` counts
    the members of members too, `depth` how deep they nest.
    """

    members: tuple[Member, ...] = ()
    size: int = 1
    align: int = 1
    overlaid: bool = False
    parts: int = 0
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct, class, union or closure of the program, its template arguments replaced.

    `key` tells two of the same name apart.  `template` and `arguments` are what a template
    was instantiated from.
    """

    name: str
    key: str
    layout: Layout = field(compare=False, repr=False)
    template: str = field(default="", compare=False)
    arguments: tuple[Type | int | float | bool, ...] = field(default=(), compare=False)

    @property
    def members(self) -> tuple[Member, ...]:
        return self.layout.members

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.layout.size

    @property
    def align(self) -> int:
        return self.layout.align

    def index(self, name: str) -> int | None:
        """The position of a member; one of a derived class hides that of its base."""
        for position in reversed(range(len(self.layout.members))):
            if self.layout.members[position].name == name:
                return position
        return None

    def __str__(self) -> str:
        return self.name


class Routine(Plain, frozen=True):
    """The type of a function used as a value: the function itself, by name."""

    name: str

    @property
    def size(self) -> int:
        return 8

    @property
    def align(self) -> int:
        return 8

    def __str__(self) -> str:
        return f"function {self.name}"


class Void(Plain, frozen=True):
    """No value."""

    @property
    def size(self) -> int:
        return 1

    @property
    def align(self) -> int:
        return 1

    def __str__(self) -> str:
        return "void"


class Unknown(Plain, frozen=True):
    """A type that is not understood; `name` is its text."""

    name: str

    @property
    def size(self) -> int:
        return 1

    @property
    def align(self) -> int:
        return 1

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Library:
    """A class of CUDA's device libraries, such as `cg::thread_block_tile<32>`.

    Its objects have no storage of their own: `migrate.cuda.library` turns what is done with
    them into ordinary expressions and statements.
    """

    name: str
    parameters: tuple[object, ...] = ()

    @property
    def align(self) -> int:
        return 1

    @property
    def size(self) -> int:
        return 1

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}<{', '.join(str(one) for one in self.parameters)}>"


Type = Scalar | Vector | Pointer | Array | Struct | Routine | Void | Unknown | Library

VOID = Void()
BOOL = Scalar("bool", DType.named("bool"), 1)
CHAR = Scalar("char", DType.named("int8"), 2)
SIGNED_CHAR = Scalar("signed char", DType.named("int8"), 2)
UNSIGNED_CHAR = Scalar("unsigned char", DType.named("uint8"), 2)
SHORT = Scalar("short", DType.named("int16"), 3)
UNSIGNED_SHORT = Scalar("unsigned short", DType.named("uint16"), 3)
INT = Scalar("int", DType.named("int32"), 4)
UNSIGNED = Scalar("unsigned int", DType.named("uint32"), 4)
LONG = Scalar("long", DType.named("int64"), 5)
UNSIGNED_LONG = Scalar("unsigned long", DType.named("uint64"), 5)
LONG_LONG = Scalar("long long", DType.named("int64"), 6)
UNSIGNED_LONG_LONG = Scalar("unsigned long long", DType.named("uint64"), 6)
HALF = Scalar("__half", DType.named("float16"))
BFLOAT16 = Scalar("__nv_bfloat16", DType.named("bfloat16"))
FLOAT = Scalar("float", DType.named("float32"))
DOUBLE = Scalar("double", DType.named("float64"))
DIM3 = Vector("dim3", UNSIGNED, 3)
FLOAT_REGISTER = Scalar("float in an integer", DType.named("float32"))
"""What a 32-bit integer holds that a matrix instruction reads as a float."""
ADDRESS = Pointer(Scalar("byte of shared memory", DType.named("uint8"), 2))
"""An address in shared memory, which C++ holds as an integer (`__cvta_generic_to_shared`)."""

_SCALARS = (
    BOOL, CHAR, SIGNED_CHAR, UNSIGNED_CHAR, SHORT, UNSIGNED_SHORT, INT, UNSIGNED,
    LONG, UNSIGNED_LONG, LONG_LONG, UNSIGNED_LONG_LONG, HALF, BFLOAT16, FLOAT, DOUBLE,
)  # fmt: skip

# Other spellings of the same type: <cstdint>, <cstddef>, POSIX, cuda_fp16.h, cuda_bf16.h.
_ALIASES: dict[str, Type] = {
    "int8_t": SIGNED_CHAR,
    "uint8_t": UNSIGNED_CHAR,
    "int16_t": SHORT,
    "uint16_t": UNSIGNED_SHORT,
    "int32_t": INT,
    "uint32_t": UNSIGNED,
    "int64_t": LONG,
    "uint64_t": UNSIGNED_LONG,
    "size_t": UNSIGNED_LONG,
    "ssize_t": LONG,
    "ptrdiff_t": LONG,
    "intptr_t": LONG,
    "uintptr_t": UNSIGNED_LONG,
    "clock_t": LONG,
    "uchar": UNSIGNED_CHAR,
    "ushort": UNSIGNED_SHORT,
    "uint": UNSIGNED,
    "ulong": UNSIGNED_LONG,
    "half": HALF,
    "__half": HALF,
    "nv_half": HALF,
    "__nv_bfloat16": BFLOAT16,
    "nv_bfloat16": BFLOAT16,
    # c10/util/Half.h and BFloat16.h
    "Half": HALF,
    "BFloat16": BFLOAT16,
    "dim3": DIM3,
    "void": VOID,
}

# vector_types.h: the element's short name and the lane counts.
_VECTOR_ELEMENTS = {
    "char": SIGNED_CHAR,
    "uchar": UNSIGNED_CHAR,
    "short": SHORT,
    "ushort": UNSIGNED_SHORT,
    "int": INT,
    "uint": UNSIGNED,
    "long": LONG,
    "ulong": UNSIGNED_LONG,
    "longlong": LONG_LONG,
    "ulonglong": UNSIGNED_LONG_LONG,
    "float": FLOAT,
    "double": DOUBLE,
}

NAMED: dict[str, Type] = {scalar.name: scalar for scalar in _SCALARS}
NAMED.update(_ALIASES)
for _short, _element in _VECTOR_ELEMENTS.items():
    for _lanes in (1, 2, 3, 4):
        NAMED[f"{_short}{_lanes}"] = Vector(f"{_short}{_lanes}", _element, _lanes)
NAMED["half2"] = NAMED["__half2"] = Vector("__half2", HALF, 2)
NAMED["nv_bfloat162"] = NAMED["__nv_bfloat162"] = Vector("__nv_bfloat162", BFLOAT16, 2)

COMPONENTS = "xyzw"


def named(name: str) -> Type | None:
    """The type of a name that the language or CUDA's headers define, by any spelling.

    Qualifiers of a namespace (`std::`, `::`) are ignored; the words of a built-in type may
    come in any order (`long unsigned int`).  `None` for a name of the program's own.
    """
    plain = name.rsplit("::", 1)[-1].strip()
    found = NAMED.get(plain)
    return found if found is not None else _from_words(plain.split())


def _from_words(words: list[str]) -> Type | None:
    if not words or not set(words) <= {"unsigned", "signed", "char", "short", "int", "long"}:
        return None
    unsigned = "unsigned" in words
    if "char" in words:
        return UNSIGNED_CHAR if unsigned else SIGNED_CHAR if "signed" in words else CHAR
    if "short" in words:
        return UNSIGNED_SHORT if unsigned else SHORT
    match words.count("long"):
        case 0:
            return UNSIGNED if unsigned else INT
        case 1:
            return UNSIGNED_LONG if unsigned else LONG
        case _:
            return UNSIGNED_LONG_LONG if unsigned else LONG_LONG


def promote(scalar: Scalar) -> Scalar:
    """Integral promotion: everything narrower than `int` becomes `int` (it always fits)."""
    return INT if scalar.is_integer and scalar.rank < INT.rank else scalar


_FLOAT_ORDER = {
    "__nv_bfloat16": 1,
    "__half": 1,
    FLOAT_REGISTER.name: 2,
    "float": 2,
    "double": 3,
}


@cache
def common(left: Scalar, right: Scalar) -> Scalar | None:
    """The type in which a binary arithmetic operator works (usual arithmetic conversions).

    `None` where C++ has none: `__half` with `__nv_bfloat16`.
    """
    if left.is_float or right.is_float:
        if not right.is_float:
            return left
        if not left.is_float:
            return right
        if left == right:
            return left
        a, b = _FLOAT_ORDER[left.name], _FLOAT_ORDER[right.name]
        return None if a == b else left if a > b else right
    left, right = promote(left), promote(right)
    if left.is_unsigned == right.is_unsigned:
        return left if left.rank >= right.rank else right
    unsigned, signed = (left, right) if left.is_unsigned else (right, left)
    if unsigned.rank >= signed.rank:
        return unsigned
    if signed.size > unsigned.size:
        return signed
    return {LONG: UNSIGNED_LONG, LONG_LONG: UNSIGNED_LONG_LONG}.get(signed, UNSIGNED)


def scalar_of(kind: Type) -> Scalar | None:
    """The one scalar that storage of this type consists of; `None` where there is none."""
    while isinstance(kind, Array):
        kind = kind.element
    match kind:
        case Scalar():
            return kind
        case Vector(element=element):
            return element
        case Struct(layout=layout):
            found = {scalar_of(member.type) for member in layout.members}
            only = found.pop() if len(found) == 1 else None
            filled = sum(member.type.size for member in layout.members)
            return only if layout.overlaid or filled == layout.size else None
        case _:
            return None


def scalars_in(kind: Type) -> int:
    """How many of `scalar_of` a value of this type holds; 0 for an open array."""
    match kind:
        case Array(element=element, length=length):
            return scalars_in(element) * (length or 0)
        case Vector(lanes=lanes):
            return lanes
        case Struct():
            scalar = scalar_of(kind)
            return kind.size // scalar.size if scalar is not None else 1
        case _:
            return 1


def parts_of(kind: Type) -> tuple[Member, ...]:
    """What an aggregate consists of, in order: a vector's components, a struct's members.

    Empty for anything else.
    """
    match kind:
        case Vector(element=element, lanes=lanes):
            return tuple(
                Member(COMPONENTS[lane], element, lane * element.size) for lane in range(lanes)
            )
        case Struct(layout=layout):
            return layout.members
        case _:
            return ()


def all_parts(kind: Type) -> tuple[Member, ...]:
    """What an aggregate consists of: as `parts_of`, and the elements of an array."""
    if isinstance(kind, Array):
        element = kind.element
        return tuple(
            Member(str(index), element, index * element.size) for index in range(kind.length or 0)
        )
    return parts_of(kind)


def part_types(kind: Type) -> tuple[Type, ...]:
    """The types of `all_parts`."""
    match kind:
        case Array(element=element, length=length):
            return (element,) * (length or 0)
        case Vector(element=element, lanes=lanes):
            return (element,) * lanes
        case _:
            return tuple(part.type for part in parts_of(kind))


def in_memory(kind: Type) -> bool:
    """Whether variables of this type live in memory: arrays, and what holds or overlays them."""
    match kind:
        case Array():
            return True
        case Struct(layout=layout):
            return layout.overlaid or any(in_memory(member.type) for member in layout.members)
        case _:
            return False


def understood(kind: Type, depth: int = 0) -> bool:
    """Whether storage of this type is; one that contains itself is not."""
    while isinstance(kind, Array):
        kind = kind.element
    match kind:
        case Unknown() | Void():
            return False
        case Struct(layout=layout):
            return depth < MAX_NESTED and all(
                isinstance(member.type, Pointer) or understood(member.type, depth + 1)
                for member in layout.members
            )
        case _:
            return True


MAX_NESTED = 64
"""Structs as members of structs."""
