"""The type traits and numeric limits of the standard library."""

from __future__ import annotations

from collections.abc import Sequence

from migrate.cuda.types import (
    INT,
    LONG,
    LONG_LONG,
    SHORT,
    SIGNED_CHAR,
    UNSIGNED,
    UNSIGNED_CHAR,
    UNSIGNED_LONG,
    UNSIGNED_LONG_LONG,
    UNSIGNED_SHORT,
    VOID,
    Array,
    Layout,
    Member,
    Pointer,
    Scalar,
    Struct,
    Type,
    Unknown,
    common,
)

Binding = Type | int | float | bool

_SAME = frozenset(
    [
        "remove_cv",
        "remove_const",
        "remove_volatile",
        "remove_reference",
        "remove_cvref",
        "decay",
        "add_const",
    ]
)
_UNSIGNED = {
    SIGNED_CHAR: UNSIGNED_CHAR,
    SHORT: UNSIGNED_SHORT,
    INT: UNSIGNED,
    LONG: UNSIGNED_LONG,
    LONG_LONG: UNSIGNED_LONG_LONG,
}
_SIGNED = {unsigned: signed for signed, unsigned in _UNSIGNED.items()}


def _is_type(value: Binding) -> bool:
    return not isinstance(value, bool | int | float | Unknown)


def type_trait(name: str, arguments: Sequence[Binding]) -> Type | None:
    """`std::conditional`, `std::remove_cv` and their like; `None` for what is none."""
    plain = name.removesuffix("_t")
    match plain, tuple(arguments):
        case "conditional", (bool() | int() as chosen, first, second):
            found = first if chosen else second
            return found if not isinstance(found, bool | int | float) else None
        case "enable_if", (bool() | int() as holds, *rest):
            kind = rest[0] if rest else VOID
            if holds and not isinstance(kind, bool | int | float):
                return kind
            return None
        case _, (kind,) if plain in _SAME:
            return kind if not isinstance(kind, bool | int | float) else None
        case "remove_pointer", (Pointer(element=element),):
            return element
        case "add_pointer", (kind,) if not isinstance(kind, bool | int | float):
            return Pointer(kind)
        case "make_unsigned", (Scalar() as kind,):
            return _UNSIGNED.get(kind, kind)
        case "make_signed", (Scalar() as kind,):
            return _SIGNED.get(kind, kind)
        case "common_type", (Scalar() as first, Scalar() as second):
            return common(first, second)
        case "pair", (first, second) if _is_type(first) and _is_type(second):
            return _pair(first, second)  # type: ignore[arg-type]
        case "aligned_storage", (int() as length, int() as align):
            return _bytes(length, align)
        case "array", (kind, int() as length) if not isinstance(kind, bool | int | float):
            return standard_array(kind, length)
        case _:
            return None


def _pair(first: Type, second: Type) -> Type:
    """`std::pair`."""
    at = -(-first.size // second.align) * second.align
    align = max(first.align, second.align)
    members = (Member("first", first, 0), Member("second", second, at))
    layout = Layout(members, -(-(at + second.size) // align) * align, align)
    return Struct(
        f"pair<{first}, {second}>", f"std::pair:{first}:{second}", layout, "pair", (first, second)
    )


def _bytes(length: int, align: int) -> Type:
    """`std::aligned_storage`: bytes that something else is put into."""
    size = -(-max(length, 1) // max(align, 1)) * max(align, 1)
    layout = Layout((Member("_bytes", Array(UNSIGNED_CHAR, size), 0),), size, max(align, 1))
    return Struct(f"aligned_storage<{length}, {align}>", f"std::storage:{length}:{align}", layout)


def standard_array(element: Type, length: int) -> Type:
    """`std::array`: a struct with one array."""
    layout = Layout(
        (Member("_elements", Array(element, length), 0),),
        element.size * max(length, 1),
        element.align,
    )
    return Struct(
        f"array<{element}, {length}>", f"std::array:{element}:{length}", layout,
        "array", (element, length),
    )  # fmt: skip


def value_trait(name: str, arguments: Sequence[Binding]) -> bool | int | None:
    """`std::is_same_v` and its like (also of the structs' `::value`); `None` for what is none."""
    plain = name.removesuffix("_v")
    if any(isinstance(value, Unknown) for value in arguments):
        return None
    match plain, tuple(arguments):
        case "is_same", (first, second):
            return _unqualified(first) == _unqualified(second)
        case "is_integral", (kind,) if _is_type(kind):
            return isinstance(kind, Scalar) and kind.is_integer
        case "is_floating_point", (kind,) if _is_type(kind):
            return isinstance(kind, Scalar) and kind.name in ("float", "double")
        case "is_arithmetic", (kind,) if _is_type(kind):
            return isinstance(kind, Scalar) and (
                kind.is_integer or kind.name in ("float", "double")
            )
        case "is_signed", (kind,) if _is_type(kind):
            return isinstance(kind, Scalar) and not kind.is_unsigned
        case "is_unsigned", (kind,) if _is_type(kind):
            return isinstance(kind, Scalar) and kind.is_unsigned
        case "is_pointer", (kind,) if _is_type(kind):
            return isinstance(kind, Pointer)
        case "is_class", (kind,) if _is_type(kind):
            return isinstance(kind, Struct)
        case "alignment_of", (kind,) if not isinstance(kind, bool | int | float):
            return kind.align
        case _:
            return None


def _unqualified(value: Binding) -> Binding:
    return value


def limit(kind: Binding, name: str) -> tuple[int | float | bool, Scalar] | None:
    """A member of `std::numeric_limits<kind>`: its value and type."""
    if not isinstance(kind, Scalar):
        return None
    if kind.is_integer:
        low, high = (0, 1) if kind.is_bool else kind.dtype.range
        whole = {"max": int(high), "min": int(low), "lowest": int(low)}
        if name in whole:
            return whole[name], kind
        facts: dict[str, tuple[int | bool, Scalar]] = {
            "digits": (kind.dtype.bits - (0 if kind.is_unsigned else 1), INT),
        }
        return facts.get(name)
    bits = {
        "__half": (65504.0, 2.0**-14, 2.0**-10),
        "__nv_bfloat16": (3.3895313892515355e38, 2.0**-126, 2.0**-7),
        "float": (3.4028234663852886e38, 2.0**-126, 2.0**-23),
        "double": (1.7976931348623157e308, 2.0**-1022, 2.0**-52),
    }.get(kind.name)
    if bits is None:
        return None
    largest, tiny, epsilon = bits
    values = {
        "max": largest,
        "lowest": -largest,
        "min": tiny,
        "epsilon": epsilon,
        "infinity": float("inf"),
        "quiet_NaN": float("nan"),
    }
    return (values[name], kind) if name in values else None
