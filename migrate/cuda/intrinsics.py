"""Functions that CUDA defines for device code: one line each.

An elementwise function is added by one line in `_TABLE`: its name, the operator of
`migrate.numerics.operators` that it computes, what it is computed in, and its published
error.  Nothing else has to know it.

Errors are the maximum errors in ulp of the CUDA C++ Programming Guide, appendix
"Mathematical Functions" (single precision, default flags, and double precision), counted
from the correctly rounded result; functions with 0 there are correctly rounded.  Half and
bfloat16 functions (CUDA Math API, cuda_fp16.h and cuda_bf16.h) are computed in float and
rounded once, as on hardware without a native form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from migrate.cuda.types import (
    BFLOAT16,
    BOOL,
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    LONG,
    LONG_LONG,
    UNSIGNED,
    UNSIGNED_LONG_LONG,
    UNSIGNED_SHORT,
    Scalar,
)

Operands = Scalar | Literal["floating", "common", "own"]
"""What arguments are converted to.

A fixed type; `floating`: the overload for float, double or (integers) double, with half and
bfloat16 in float; `common`: the usual arithmetic conversions over all arguments; `own`: the
first argument's type as it is.
"""


@dataclass(frozen=True, slots=True)
class IntrinsicEntry:
    """One elementwise function.

    `operator` is `None` for a plain conversion from `operands` to `result`.  `result` is
    `None` where it is the operand type.  `ulp` is the published maximum error, `ulp_slope` its
    growth per unit of the first argument's magnitude, `absolute` an absolute error.
    """

    name: str
    operator: str | None
    arity: int
    operands: Operands
    result: Scalar | None = None
    ulp: float = 0.0
    ulp_slope: float = 0.0
    absolute: float = 0.0


@dataclass(frozen=True, slots=True)
class AtomicEntry:
    """An atomic; `operator` combines the old value with the argument.

    `exchange` stores the argument, `compare_exchange` stores the second where the old value
    equals the first, `increment` and `decrement` wrap at the argument.
    """

    name: str
    operator: str
    arguments: int = 1


@dataclass(frozen=True, slots=True)
class ShuffleEntry:
    """A warp exchange or vote.  `masked`: the first argument names the participants."""

    name: str
    kind: Literal[
        "index",
        "up",
        "down",
        "xor",
        "any",
        "all",
        "ballot",
        "active",
        "match",
        "sum",
        "minimum",
        "maximum",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
    ]
    masked: bool = True


def _family(
    base: str,
    operator: str,
    arity: int = 1,
    *,
    ulp: float = 0.0,
    ulp_double: float = 0.0,
) -> tuple[IntrinsicEntry, ...]:
    """`base` overloaded over the floating types, and `basef`."""
    return (
        IntrinsicEntry(base, operator, arity, "floating", ulp=max(ulp, ulp_double)),
        IntrinsicEntry(f"{base}f", operator, arity, FLOAT, ulp=ulp),
    )


def _both_halves(
    name: str, operator: str, arity: int, result: Scalar | None = None, *, ulp: float = 0.0
) -> IntrinsicEntry:
    """A function of cuda_fp16.h and cuda_bf16.h, in the type of its arguments."""
    return IntrinsicEntry(name, operator, arity, "own", result, ulp=ulp)


_E = IntrinsicEntry

_TABLE: tuple[IntrinsicEntry, ...] = (
    *_family("exp", "exp", ulp=2, ulp_double=1),
    *_family("exp2", "exp2", ulp=2, ulp_double=1),
    *_family("exp10", "exp10", ulp=2, ulp_double=1),
    *_family("expm1", "expm1", ulp=1, ulp_double=1),
    *_family("log", "log", ulp=1, ulp_double=1),
    *_family("log2", "log2", ulp=1, ulp_double=1),
    *_family("log10", "log10", ulp=2, ulp_double=1),
    *_family("log1p", "log1p", ulp=1, ulp_double=1),
    *_family("sqrt", "sqrt"),
    *_family("rsqrt", "rsqrt", ulp=2, ulp_double=1),
    *_family("sin", "sin", ulp=2, ulp_double=2),
    *_family("cos", "cos", ulp=2, ulp_double=2),
    *_family("tan", "tan", ulp=4, ulp_double=2),
    *_family("sinh", "sinh", ulp=3, ulp_double=2),
    *_family("cosh", "cosh", ulp=2, ulp_double=1),
    *_family("tanh", "tanh", ulp=2, ulp_double=1),
    *_family("asin", "asin", ulp=2, ulp_double=2),
    *_family("acos", "acos", ulp=2, ulp_double=2),
    *_family("atan", "atan", ulp=2, ulp_double=2),
    *_family("atan2", "atan2", 2, ulp=3, ulp_double=2),
    *_family("erf", "erf", ulp=2, ulp_double=2),
    *_family("erfc", "erfc", ulp=4, ulp_double=5),
    *_family("pow", "power", 2, ulp=8, ulp_double=2),
    *_family("fmod", "fmod", 2),
    *_family("remainder", "remainder", 2),
    *_family("floor", "floor"),
    *_family("ceil", "ceil"),
    *_family("trunc", "trunc"),
    *_family("rint", "round_even"),
    *_family("nearbyint", "round_even"),
    *_family("round", "round_away"),
    *_family("fabs", "abs"),
    *_family("fmax", "maximum_number", 2),
    *_family("fmin", "minimum_number", 2),
    *_family("copysign", "copysign", 2),
    *_family("fma", "fma", 3),
    _E("abs", "abs", 1, "common"),
    _E("labs", "abs", 1, LONG),
    _E("llabs", "abs", 1, LONG_LONG),
    # max and min: integers by the usual conversions, floats as fmaxf and fminf.
    _E("max", "maximum_number", 2, "common"),
    _E("min", "minimum_number", 2, "common"),
    _E("umax", "maximum_number", 2, UNSIGNED),
    _E("umin", "minimum_number", 2, UNSIGNED),
    _E("isnan", "is_nan", 1, "floating", BOOL),
    _E("isinf", "is_inf", 1, "floating", BOOL),
    # Fast forms: Programming Guide, "Intrinsic Functions".  __expf: 2 + floor(abs(1.173 x)) ulp;
    # __sinf and __cosf: 2^-21.41 and 2^-21.19 on [-pi, pi]; __logf: 2^-21.41 on [0.5, 2].
    _E("__expf", "exp", 1, FLOAT, ulp=2, ulp_slope=1.173),
    _E("__exp10f", "exp10", 1, FLOAT, ulp=2, ulp_slope=2.97),
    _E("__logf", "log", 1, FLOAT, ulp=3, absolute=2.0**-21.41),
    _E("__log2f", "log2", 1, FLOAT, ulp=2, absolute=2.0**-22),
    _E("__log10f", "log10", 1, FLOAT, ulp=3, absolute=2.0**-24),
    _E("__sinf", "sin", 1, FLOAT, absolute=2.0**-21.41),
    _E("__cosf", "cos", 1, FLOAT, absolute=2.0**-21.19),
    _E("__tanf", "tan", 1, FLOAT, ulp=4, absolute=2.0**-21),
    _E("__powf", "power", 2, FLOAT, ulp=16, ulp_slope=1.173),
    _E("__fdividef", "divide", 2, FLOAT, ulp=2),
    _E("fdividef", "divide", 2, FLOAT),
    # Rounding-mode forms, round to nearest even: correctly rounded and never contracted.
    _E("__fadd_rn", "add", 2, FLOAT),
    _E("__fsub_rn", "subtract", 2, FLOAT),
    _E("__fmul_rn", "multiply", 2, FLOAT),
    _E("__fmaf_rn", "fma", 3, FLOAT),
    _E("__fdiv_rn", "divide", 2, FLOAT),
    _E("__frcp_rn", "reciprocal", 1, FLOAT),
    _E("__fsqrt_rn", "sqrt", 1, FLOAT),
    _E("__frsqrt_rn", "rsqrt", 1, FLOAT),
    _E("__drcp_rn", "reciprocal", 1, DOUBLE),
    _E("__dsqrt_rn", "sqrt", 1, DOUBLE),
    _E("__dsub_rn", "subtract", 2, DOUBLE),
    _E("__dadd_rn", "add", 2, DOUBLE),
    _E("__dmul_rn", "multiply", 2, DOUBLE),
    _E("__fma_rn", "fma", 3, DOUBLE),
    _E("__ddiv_rn", "divide", 2, DOUBLE),
    # Conversions by name.
    _E("__float2int_rn", "round_even", 1, FLOAT, INT),
    _E("__float2int_rz", None, 1, FLOAT, INT),
    _E("__float2int_rd", "floor", 1, FLOAT, INT),
    _E("__float2int_ru", "ceil", 1, FLOAT, INT),
    _E("__float2uint_rn", "round_even", 1, FLOAT, UNSIGNED),
    _E("__float2uint_rz", None, 1, FLOAT, UNSIGNED),
    _E("__float2ll_rn", "round_even", 1, FLOAT, LONG_LONG),
    _E("__double2int_rn", "round_even", 1, DOUBLE, INT),
    _E("__double2int_rz", None, 1, DOUBLE, INT),
    _E("__int2float_rn", None, 1, INT, FLOAT),
    _E("__uint2float_rn", None, 1, UNSIGNED, FLOAT),
    _E("__ll2float_rn", None, 1, LONG_LONG, FLOAT),
    _E("__ull2float_rn", None, 1, UNSIGNED_LONG_LONG, FLOAT),
    _E("__int2double_rn", None, 1, INT, DOUBLE),
    _E("__double2float_rn", None, 1, DOUBLE, FLOAT),
    _E("lrintf", "round_even", 1, FLOAT, LONG),
    _E("lrint", "round_even", 1, DOUBLE, LONG),
    _E("lroundf", "round_away", 1, FLOAT, LONG),
    _E("__half2float", None, 1, HALF, FLOAT),
    _E("__float2half", None, 1, FLOAT, HALF),
    _E("__float2half_rn", None, 1, FLOAT, HALF),
    _E("__double2half", None, 1, DOUBLE, HALF),
    _E("__int2half_rn", None, 1, INT, HALF),
    _E("__half2int_rn", "round_even", 1, HALF, INT),
    _E("__half2int_rz", None, 1, HALF, INT),
    _E("__ushort2half_rn", None, 1, UNSIGNED_SHORT, HALF),
    _E("__bfloat162float", None, 1, BFLOAT16, FLOAT),
    _E("__float2bfloat16", None, 1, FLOAT, BFLOAT16),
    _E("__float2bfloat16_rn", None, 1, FLOAT, BFLOAT16),
    _E("__double2bfloat16", None, 1, DOUBLE, BFLOAT16),
    _both_halves("__hadd", "add", 2),
    _both_halves("__hadd_rn", "add", 2),
    _both_halves("__hsub", "subtract", 2),
    _both_halves("__hmul", "multiply", 2),
    _both_halves("__hmul_rn", "multiply", 2),
    _both_halves("__hdiv", "divide", 2),
    _both_halves("__hfma", "fma", 3),
    _both_halves("__hneg", "negate", 1),
    _both_halves("__habs", "abs", 1),
    _both_halves("__hmax", "maximum_number", 2),
    _both_halves("__hmin", "minimum_number", 2),
    _both_halves("hexp", "exp", 1, ulp=1),
    _both_halves("hexp2", "exp2", 1, ulp=1),
    _both_halves("hlog", "log", 1, ulp=1),
    _both_halves("hlog2", "log2", 1, ulp=1),
    _both_halves("hsqrt", "sqrt", 1),
    _both_halves("hrsqrt", "rsqrt", 1, ulp=1),
    _both_halves("hrcp", "reciprocal", 1, ulp=1),
    _both_halves("hsin", "sin", 1, ulp=1),
    _both_halves("hcos", "cos", 1, ulp=1),
    _both_halves("htanh", "tanh", 1, ulp=1),
    _both_halves("hfloor", "floor", 1),
    _both_halves("hceil", "ceil", 1),
    _both_halves("htrunc", "trunc", 1),
    _both_halves("hrint", "round_even", 1),
    _both_halves("__hgt", "greater", 2, BOOL),
    _both_halves("__hge", "greater_equal", 2, BOOL),
    _both_halves("__hlt", "less", 2, BOOL),
    _both_halves("__hle", "less_equal", 2, BOOL),
    _both_halves("__heq", "equal", 2, BOOL),
    _both_halves("__hne", "not_equal", 2, BOOL),
    _both_halves("__hisnan", "is_nan", 1, BOOL),
)

ELEMENTWISE: dict[str, IntrinsicEntry] = {entry.name: entry for entry in _TABLE}

# The scopes `_block` and `_system`, and what PyTorch calls it (ATen/cuda/Atomic.cuh).
_ATOMIC_ALIASES = {"gpuAtomicAdd": "atomicAdd", "gpuAtomicAddNoReturn": "atomicAdd"}

ATOMICS: dict[str, AtomicEntry] = {
    entry.name: entry
    for entry in (
        AtomicEntry("atomicAdd", "add"),
        AtomicEntry("atomicSub", "subtract"),
        AtomicEntry("atomicMax", "maximum_number"),
        AtomicEntry("atomicMin", "minimum_number"),
        AtomicEntry("atomicAnd", "bitwise_and"),
        AtomicEntry("atomicOr", "bitwise_or"),
        AtomicEntry("atomicXor", "bitwise_xor"),
        AtomicEntry("atomicExch", "exchange"),
        AtomicEntry("atomicInc", "increment"),
        AtomicEntry("atomicDec", "decrement"),
        AtomicEntry("atomicCAS", "compare_exchange", 2),
    )
}
for _name, _entry in tuple(ATOMICS.items()):
    ATOMICS.update({f"{_name}{scope}": _entry for scope in ("_block", "_system")})
ATOMICS.update({_alias: ATOMICS[_name] for _alias, _name in _ATOMIC_ALIASES.items()})

SHUFFLES: dict[str, ShuffleEntry] = {
    entry.name: entry
    for entry in (
        ShuffleEntry("__shfl_sync", "index"),
        ShuffleEntry("__shfl_up_sync", "up"),
        ShuffleEntry("__shfl_down_sync", "down"),
        ShuffleEntry("__shfl_xor_sync", "xor"),
        ShuffleEntry("__shfl", "index", masked=False),
        ShuffleEntry("__shfl_up", "up", masked=False),
        ShuffleEntry("__shfl_down", "down", masked=False),
        ShuffleEntry("__shfl_xor", "xor", masked=False),
        ShuffleEntry("__any", "any", masked=False),
        ShuffleEntry("__all", "all", masked=False),
        ShuffleEntry("__ballot", "ballot", masked=False),
        ShuffleEntry("__any_sync", "any"),
        ShuffleEntry("__all_sync", "all"),
        ShuffleEntry("__ballot_sync", "ballot"),
        ShuffleEntry("__match_any_sync", "match"),
        ShuffleEntry("__reduce_add_sync", "sum"),
        ShuffleEntry("__reduce_min_sync", "minimum"),
        ShuffleEntry("__reduce_max_sync", "maximum"),
        ShuffleEntry("__reduce_and_sync", "bitwise_and"),
        ShuffleEntry("__reduce_or_sync", "bitwise_or"),
        ShuffleEntry("__reduce_xor_sync", "bitwise_xor"),
    )
}

WARP_REDUCTIONS: dict[str, str] = {
    "sum": "add",
    "minimum": "minimum_number",
    "maximum": "maximum_number",
    "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor",
}
"""Kinds of `ShuffleEntry` that combine the values of a warp, and the operator they do it with."""

BARRIERS: dict[str, Literal["block", "warp", "fence"]] = {
    "__syncthreads": "block",
    "__syncwarp": "warp",
    "__threadfence": "fence",
    "__threadfence_block": "fence",
    "__threadfence_system": "fence",
}

# Loads that are a plain dereference with a caching hint (Programming Guide, "Read-Only Data
# Cache Load Function" and "Load Functions Using Cache Hints"), and the stores beside them.
LOADS = frozenset({"__ldg", "__ldcg", "__ldca", "__ldcs", "__ldlu", "__ldcv"})
STORES = frozenset({"__stcg", "__stcs", "__stwb", "__stwt"})

# Named constants of <climits>, <cfloat>, <cmath> and math_constants.h.
CONSTANTS: dict[str, tuple[float | int, Scalar]] = {
    "C10_WARP_SIZE": (32, INT),
    "INT_MAX": (2**31 - 1, INT),
    "INT_MIN": (-(2**31), INT),
    "UINT_MAX": (2**32 - 1, UNSIGNED),
    "INT32_MAX": (2**31 - 1, INT),
    "LLONG_MAX": (2**63 - 1, LONG_LONG),
    "FLT_MAX": (3.4028234663852886e38, FLOAT),
    "FLT_MIN": (1.1754943508222875e-38, FLOAT),
    "FLT_EPSILON": (1.1920928955078125e-07, FLOAT),
    "DBL_MAX": (1.7976931348623157e308, DOUBLE),
    "DBL_EPSILON": (2.220446049250313e-16, DOUBLE),
    "INFINITY": (float("inf"), FLOAT),
    "NAN": (float("nan"), FLOAT),
    "CUDART_INF_F": (float("inf"), FLOAT),
    "CUDART_NAN_F": (float("nan"), FLOAT),
    "CUDART_PI_F": (3.1415927410125732, FLOAT),
    "M_PI": (3.141592653589793, DOUBLE),
    "M_E": (2.718281828459045, DOUBLE),
    "M_LOG2E": (1.4426950408889634, DOUBLE),
    "M_LN2": (0.6931471805599453, DOUBLE),
    "M_SQRT2": (1.4142135623730951, DOUBLE),
    "M_SQRT1_2": (0.7071067811865476, DOUBLE),
    "M_2_SQRTPI": (1.1283791670955126, DOUBLE),
    "M_2_PI": (0.6366197723675814, DOUBLE),
    "M_1_PI": (0.3183098861837907, DOUBLE),
}
