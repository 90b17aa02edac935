"""cuda_fp16.h and cuda_bf16.h (CUDA Math API): pairs, conversions, and what is left of the scalars.

`__half2` and `__nv_bfloat162` are vectors of two; a function of pairs is the function of scalars on
each component, so it has that one's operator, rounding and published error
(`migrate.cuda.intrinsics`).  A function is added by one line in a table below.

Conversions that round in another direction than to nearest are refused: there is no operator for
them.

For the lifter: `MakeVector` of `Intrinsic`, `Cast` and `Component`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from migrate.cuda.ast import Expression, Literal, Logical, MakeVector
from migrate.cuda.conversions import convert
from migrate.cuda.intrinsics import ELEMENTWISE, IntrinsicEntry
from migrate.cuda.library.build import by_component, component, let
from migrate.cuda.library.request import Handler, Lowered, Request, TypeMaker, unclear
from migrate.cuda.types import (
    BFLOAT16,
    BOOL,
    FLOAT,
    HALF,
    INT,
    LONG_LONG,
    NAMED,
    SHORT,
    SIGNED_CHAR,
    UNSIGNED,
    UNSIGNED_CHAR,
    UNSIGNED_LONG_LONG,
    UNSIGNED_SHORT,
    Scalar,
    Type,
    Vector,
)

# Functions of scalars that `intrinsics` has no line for.  Errors: the approximate tanh of PTX
# (tanh.approx.f16: 2^-10.987 relative; .bf16: 2^-8), the others are rounded once.
_E = IntrinsicEntry
_SCALARS: tuple[IntrinsicEntry, ...] = (
    _E("hexp10", "exp10", 1, "own", ulp=1),
    _E("hlog10", "log10", 1, "own", ulp=1),
    _E("htanh_approx", "tanh", 1, "own", ulp=2),
    _E("__hmax_nan", "maximum", 2, "own"),
    _E("__hmin_nan", "minimum", 2, "own"),
    _E("__hisinf", "is_inf", 1, "own", BOOL),
    _E("__hsub_rn", "subtract", 2, "own"),
)

# A function of pairs: the function of scalars that each component goes through.
_PAIRS = {
    "__hadd2": "__hadd",
    "__hadd2_rn": "__hadd_rn",
    "__hsub2": "__hsub",
    "__hsub2_rn": "__hsub_rn",
    "__hmul2": "__hmul",
    "__hmul2_rn": "__hmul_rn",
    "__h2div": "__hdiv",
    "__hfma2": "__hfma",
    "__hneg2": "__hneg",
    "__habs2": "__habs",
    "__hmax2": "__hmax",
    "__hmin2": "__hmin",
    "__hmax2_nan": "__hmax_nan",
    "__hmin2_nan": "__hmin_nan",
    "h2exp": "hexp",
    "h2exp2": "hexp2",
    "h2exp10": "hexp10",
    "h2log": "hlog",
    "h2log2": "hlog2",
    "h2log10": "hlog10",
    "h2sqrt": "hsqrt",
    "h2rsqrt": "hrsqrt",
    "h2rcp": "hrcp",
    "h2sin": "hsin",
    "h2cos": "hcos",
    "h2tanh": "htanh",
    "h2tanh_approx": "htanh_approx",
    "h2floor": "hfloor",
    "h2ceil": "hceil",
    "h2trunc": "htrunc",
    "h2rint": "hrint",
    "__heq2": "__heq",
    "__hne2": "__hne",
    "__hlt2": "__hlt",
    "__hle2": "__hle",
    "__hgt2": "__hgt",
    "__hge2": "__hge",
    "__hisnan2": "__hisnan",
}

# Comparisons of pairs that hold where they hold for both components.
_BOTH = {
    "__hbeq2": "__heq",
    "__hbne2": "__hne",
    "__hblt2": "__hlt",
    "__hble2": "__hle",
    "__hbgt2": "__hgt",
    "__hbge2": "__hge",
}

_INTEGERS = {
    "char": SIGNED_CHAR,
    "uchar": UNSIGNED_CHAR,
    "short": SHORT,
    "ushort": UNSIGNED_SHORT,
    "int": INT,
    "uint": UNSIGNED,
    "ll": LONG_LONG,
    "ull": UNSIGNED_LONG_LONG,
}
_ROUNDINGS = {"rn": "round_even", "rz": None, "rd": "floor", "ru": "ceil"}
_FORMATS = {"half": HALF, "bfloat16": BFLOAT16}


def _conversions() -> tuple[IntrinsicEntry, ...]:
    """Conversions between the two formats and integers, by their systematic names."""
    made: list[IntrinsicEntry] = []
    for name, half in _FORMATS.items():
        for word, kind in _INTEGERS.items():
            made.append(_E(f"__{word}2{name}_rn", None, 1, kind, half))
            for rounding, operator in _ROUNDINGS.items():
                made.append(_E(f"__{name}2{word}_{rounding}", operator, 1, half, kind))
        made.append(_E(f"__float2{name}_rn", None, 1, FLOAT, half))
        made.append(_E(f"__float2{name}", None, 1, FLOAT, half))
        made.append(_E(f"__{name}2float", None, 1, half, FLOAT))
    return tuple(made)


_MORE = {entry.name: entry for entry in (*_conversions(), *_SCALARS)}


def _scalar(name: str, values: Sequence[Expression], request: Request) -> Expression:
    from migrate.cuda.calls import elementwise

    entry = ELEMENTWISE.get(name) or _MORE[name]
    return elementwise(entry, list(values), request.node, request.scope)


def _one(request: Request) -> Lowered:
    values = request.values()
    return unclear(values) or _scalar(request.name, values, request)


def _is_pair(kind: Type) -> bool:
    return isinstance(kind, Vector) and kind.lanes == 2 and kind.element in (HALF, BFLOAT16)


def _pairs(request: Request) -> tuple[list[Expression], Vector] | Expression:
    """The arguments, all of them pairs of one kind."""
    values = request.values()
    bad = unclear(values)
    if bad is not None:
        return bad
    kind = values[0].type if values else None
    if not isinstance(kind, Vector) or any(v.type != kind or not _is_pair(v.type) for v in values):
        found = ", ".join(str(value.type) for value in values)
        return request.opaque(f"{request.name} of {found} is not understood", kind)
    return values, kind


def _pair(request: Request) -> Lowered:
    found = _pairs(request)
    if not isinstance(found, tuple):
        return found
    values, kind = found
    scalar = _PAIRS[request.name]

    def make(given: Sequence[Expression]) -> Expression:
        return convert(_scalar(scalar, given, request), kind.element)

    return by_component(request.name, values, make, kind, request.where)


def _both(request: Request) -> Lowered:
    found = _pairs(request)
    if not isinstance(found, tuple):
        return found
    scalar = _BOTH[request.name]

    def make(given: Sequence[Expression]) -> Expression:
        low, high = (
            _scalar(scalar, [component(value, at) for value in given], request) for at in (0, 1)
        )
        return Logical("and", low, high, BOOL, request.where)

    return let(request.name, found[0], make, request.where)


def _clamped(scalar: str, ceiling: bool) -> Handler:
    """`_sat`: to [0, 1], NaN to 0; `_relu`: to at least 0, NaN stays."""

    def each(given: Sequence[Expression], request: Request) -> Expression:
        value = _scalar(scalar, given, request)
        if not isinstance(value.type, Scalar):
            return value
        zero = Literal(0.0, value.type, request.where)
        if not ceiling:
            return _scalar("__hmax_nan", [value, zero], request)
        one = Literal(1.0, value.type, request.where)
        return _scalar("__hmin", [_scalar("__hmax", [value, zero], request), one], request)

    def handler(request: Request) -> Lowered:
        values = request.values()
        bad = unclear(values)
        if bad is not None:
            return bad
        kind = values[0].type if values else None
        if not isinstance(kind, Vector):
            return each(values, request)
        found = _pairs(request)
        if not isinstance(found, tuple):
            return found
        return by_component(
            request.name, values, lambda given: each(given, request), kind, request.where
        )

    return handler


def _assembled(
    result: str, shapes: tuple[Type, ...], parts: Callable[[Sequence[Expression]], list[Expression]]
) -> Handler:
    """A function that takes its result together from (components of) its arguments."""

    def handler(request: Request) -> Lowered:
        values = request.values()
        bad = unclear(values)
        if bad is not None:
            return bad
        if len(values) != len(shapes):
            return request.opaque(f"{request.name} takes {len(shapes)} arguments", NAMED[result])
        given = []
        for value, shape in zip(values, shapes, strict=True):
            converted = convert(value, shape)
            if converted.type != shape or _foreign(value.type, shape):
                reason = f"{request.name} of {value.type} is not understood"
                return request.opaque(reason, NAMED[result])
            given.append(converted)
        kind = NAMED[result]

        def make(arguments: Sequence[Expression]) -> Expression:
            found = parts(arguments)
            if isinstance(kind, Vector):
                made = tuple(convert(part, kind.element, written=True) for part in found)
                return MakeVector(made, kind, request.where)
            return convert(found[0], kind, written=True)

        return let(request.name, given, make, request.where)

    return handler


def _foreign(given: Type, shape: Type) -> bool:
    return given != shape and not (isinstance(given, Scalar) and isinstance(shape, Scalar))


def _assemblies() -> dict[str, Handler]:
    """Making pairs, taking them apart, and conversions of pairs."""
    made: dict[str, Handler] = {}
    float2 = NAMED["float2"]
    spellings = (
        # half, pair, "<x>2float2", "float2<pair>", scalar's letters in names of pairs
        (HALF, "__half2", "half2", "half"),
        (BFLOAT16, "__nv_bfloat162", "bfloat162", "bfloat16"),
    )
    for half, pair, word, scalar in spellings:
        two = NAMED[pair]
        rows: tuple[
            tuple[str, str, tuple[Type, ...], Callable[[Sequence[Expression]], list[Expression]]],
            ...,
        ] = (
            (f"__float2{word}_rn", pair, (FLOAT,), lambda v: [v[0], v[0]]),
            (f"__floats2{word}_rn", pair, (FLOAT, FLOAT), list),
            (f"__float22{word}_rn", pair, (float2,), _two),
            (f"__{word}2float2", "float2", (two,), _two),
            (f"__halves2{word}", pair, (half, half), list),
            (f"make_{word}", pair, (half, half), list),
            (f"__{scalar}2{word}", pair, (half,), lambda v: [v[0], v[0]]),
            (f"__low2{scalar}", half.name, (two,), lambda v: [component(v[0], 0)]),
            (f"__high2{scalar}", half.name, (two,), lambda v: [component(v[0], 1)]),
            (f"__low2{word}", pair, (two,), lambda v: [component(v[0], 0)] * 2),
            (f"__high2{word}", pair, (two,), lambda v: [component(v[0], 1)] * 2),
            (f"__lows2{word}", pair, (two, two), lambda v: [component(x, 0) for x in v]),
            (f"__highs2{word}", pair, (two, two), lambda v: [component(x, 1) for x in v]),
        )
        for name, result, shapes, parts in rows:
            made[name] = _assembled(result, shapes, parts)
    for name, at in (("__low2float", 0), ("__high2float", 1)):
        made[name] = _either("float", at)
    made["__lowhigh2highlow"] = _either("", 0)
    return made


def _two(values: Sequence[Expression]) -> list[Expression]:
    return [component(values[0], 0), component(values[0], 1)]


def _either(result: str, at: int) -> Handler:
    """Functions that both headers overload: `__low2float`, `__lowhigh2highlow`."""

    def handler(request: Request) -> Lowered:
        found = _pairs(request)
        if not isinstance(found, tuple):
            return found
        values, kind = found
        if result:
            taken = _assembled(result, (kind,), lambda v: [component(v[0], at)])
        else:
            taken = _assembled(kind.name, (kind,), lambda v: _two(v)[::-1])
        return taken(request) if len(values) == 1 else None

    return handler


def _directed(request: Request) -> Lowered:
    return request.opaque(f"{request.name} rounds in one direction, which is not understood")


FUNCTIONS: dict[str, Handler] = {
    **{name: _one for name in _MORE if name not in ELEMENTWISE},
    **dict.fromkeys(_PAIRS, _pair),
    **dict.fromkeys(_BOTH, _both),
    **_assemblies(),
    **{
        f"{name}{pair}_{suffix}": _clamped(name, suffix == "sat")
        for name in ("__hadd", "__hsub", "__hmul", "__hfma")
        for pair in ("", "2")
        for suffix in ("sat", "relu")
        if suffix == "sat" or name == "__hfma"
    },
    **{
        f"__{source}2{name}_{rounding}": _directed
        for source in ("float", *_INTEGERS)
        for name in _FORMATS
        for rounding in ("rz", "rd", "ru")
    },
}

MEMBERS: dict[str, Handler] = {}

TYPES: dict[str, TypeMaker] = {}
