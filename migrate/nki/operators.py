"""The operators of `nki.language`: what each means, where it may be used, how exact it is.

One line an operator.  `operator` is the name in `numerics.operators`, the only place that
says what it computes; `None` where it is composed of others (`formulas`), or stands for no
function at all.

Sources: the operator and activation tables of the NKI API reference
(nki/api/nki.api.shared.rst) for engines, uses and valid input ranges.  AWS publishes no
error figures; the relative and absolute allowances of activation functions are about
twice what third-party measurements on trn2 imply.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from migrate.numerics.domain import OperatorError, ulps

Use: TypeAlias = Literal["binary", "scalar", "unary", "activation", "reduce"]
Engine: TypeAlias = Literal["tensor", "vector", "scalar", "gpsimd", "dma", "sequencer"]


@dataclass(frozen=True, slots=True)
class NkiOperator:
    """An operator of `nki.language`.

    `uses`: `binary` in `tensor_tensor`, `scalar` in `tensor_scalar` and its relatives,
    `unary` there with an ignored operand, `activation` in `activation`, `reduce` in
    reductions.  `bitvec` operators work on bit patterns of integers.  `table_error` is
    that of the Scalar engine's tables, with the inputs they are valid for, `error` that
    of the other engines; `magnitude` bounds |x| where a table is valid on both sides of 0.
    """

    name: str
    operator: str | None
    uses: frozenset[Use]
    engines: tuple[Engine, ...]
    bitvec: bool = False
    error: OperatorError | None = None
    table_error: OperatorError | None = None
    magnitude: tuple[float, float] | None = None
    targets: tuple[str, ...] = ("trn1", "trn2", "trn3")
    unary_targets: tuple[str, ...] = ("trn1", "trn2", "trn3")
    """Where the `unary` use exists."""


def _table(
    relative: float = 1e-5,
    absolute: float = 1e-7,
    valid: tuple[float, float] | None = None,
) -> OperatorError:
    return OperatorError(relative, absolute, valid)


_ALU: frozenset[Use] = frozenset({"binary", "scalar"})
_ALU_REDUCE: frozenset[Use] = frozenset({"binary", "scalar", "reduce"})
_TABLE: frozenset[Use] = frozenset({"activation"})
_UNARY: frozenset[Use] = frozenset({"activation", "unary"})
_NOWHERE: frozenset[Use] = frozenset()

_V: tuple[Engine, ...] = ("vector",)
_VG: tuple[Engine, ...] = ("vector", "gpsimd")
_VGS: tuple[Engine, ...] = ("vector", "gpsimd", "scalar")
_S: tuple[Engine, ...] = ("scalar",)
_G: tuple[Engine, ...] = ("gpsimd",)
_VS: tuple[Engine, ...] = ("vector", "scalar")

_ENTRIES = (
    # arithmetic
    NkiOperator("add", "add", _ALU_REDUCE, _VGS),
    NkiOperator("subtract", "subtract", _ALU_REDUCE, _VG),
    NkiOperator("multiply", "multiply", _ALU_REDUCE, _VGS),
    NkiOperator("maximum", "maximum", _ALU_REDUCE, _V),
    NkiOperator("minimum", "minimum", _ALU_REDUCE, _V),
    NkiOperator("power", "power", _ALU, _G, error=ulps(8)),
    NkiOperator("abs_max", None, _ALU, _V, targets=("trn3",)),
    NkiOperator("abs_min", None, _ALU, _V, targets=("trn3",)),
    NkiOperator("divide", "divide", _NOWHERE, ()),
    NkiOperator("mod", "mod", _NOWHERE, ()),
    NkiOperator("fmod", "fmod", _NOWHERE, ()),
    # comparisons and logic: 1.0 and 0.0
    NkiOperator("equal", "equal", _ALU, _V),
    NkiOperator("not_equal", "not_equal", _ALU, _V),
    NkiOperator("less", "less", _ALU, _V),
    NkiOperator("less_equal", "less_equal", _ALU, _V),
    NkiOperator("greater", "greater", _ALU, _V),
    NkiOperator("greater_equal", "greater_equal", _ALU, _V),
    NkiOperator("logical_and", "logical_and", _ALU_REDUCE, _V),
    NkiOperator("logical_or", "logical_or", _ALU_REDUCE, _V),
    NkiOperator("logical_xor", "logical_xor", _ALU_REDUCE, _V),
    NkiOperator("logical_not", "logical_not", frozenset({"unary"}), _V),
    # bit patterns; there is no arithmetic right shift
    NkiOperator("bitwise_and", "bitwise_and", _ALU_REDUCE, _V, bitvec=True),
    NkiOperator("bitwise_or", "bitwise_or", _ALU_REDUCE, _V, bitvec=True),
    NkiOperator("bitwise_xor", "bitwise_xor", _ALU_REDUCE, _V, bitvec=True),
    NkiOperator("invert", "bitwise_not", frozenset({"unary"}), _V, bitvec=True),
    NkiOperator("left_shift", "left_shift", _ALU, _V, bitvec=True),
    NkiOperator("right_shift", "right_shift_logical", _ALU, _V, bitvec=True),
    # functions of one operand
    NkiOperator("copy", "copy", _TABLE, _S),
    NkiOperator("abs", "abs", _UNARY, _VS),
    NkiOperator("square", "square", _UNARY, _VS, unary_targets=("trn3",)),
    NkiOperator("relu", "relu", _UNARY, _VS, unary_targets=("trn3",)),
    NkiOperator("sign", "sign", _TABLE, _S),
    NkiOperator("exp", "exp", _TABLE, _S, table_error=_table(4e-6, 0.0)),
    NkiOperator("log", "log", _TABLE, _S, table_error=_table(valid=(2.0**-64, 2.0**64))),
    NkiOperator("sqrt", "sqrt", _TABLE, _S, table_error=_table(valid=(2.0**-116, 2.0**118))),
    NkiOperator(
        "rsqrt", "rsqrt", _UNARY, ("gpsimd", "scalar"),
        error=ulps(2), table_error=_table(3e-5, 0.0, (2.0**-87, 2.0**97)),
    ),
    NkiOperator(
        "reciprocal", "reciprocal", _UNARY, _VS,
        error=ulps(1), table_error=_table(1e-5, 0.0), magnitude=(2.0**-42, 2.0**42),
    ),
    NkiOperator("sin", "sin", _TABLE, _S, table_error=_table(valid=(-math.pi, math.pi))),
    NkiOperator(
        "arctan", "atan", _TABLE, _S, table_error=_table(valid=(-math.pi / 2, math.pi / 2))
    ),
    NkiOperator("tanh", "tanh", _TABLE, _S, table_error=_table()),
    NkiOperator("sigmoid", "sigmoid", _TABLE, _S, table_error=_table()),
    NkiOperator("silu", "silu", _TABLE, _S, table_error=_table()),
    NkiOperator("gelu", "gelu", _TABLE, _S, table_error=_table()),
    NkiOperator("gelu_apprx_tanh", "gelu_tanh", _TABLE, _S, table_error=_table()),
    NkiOperator("gelu_apprx_sigmoid", "gelu_sigmoid", _TABLE, _S, table_error=_table()),
    NkiOperator("softplus", "softplus", _TABLE, _S, table_error=_table()),
    NkiOperator("mish", "mish", _TABLE, _S, table_error=_table()),
    NkiOperator("erf", "erf", _TABLE, _S, table_error=_table()),
    NkiOperator("gelu_dx", None, _TABLE, _S, table_error=_table()),
    NkiOperator("gelu_apprx_sigmoid_dx", None, _TABLE, _S, table_error=_table()),
    NkiOperator("silu_dx", None, _TABLE, _S, table_error=_table()),
    NkiOperator("erf_dx", None, _TABLE, _S, table_error=_table()),
    NkiOperator("prelu", None, _TABLE, _S),
    NkiOperator("bypass", None, _NOWHERE, ()),
    NkiOperator("average", None, _NOWHERE, _G),
)  # fmt: skip

OPERATORS: dict[str, NkiOperator] = {entry.name: entry for entry in _ENTRIES}

COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
"""Operators that the selecting instructions take."""

PARTITION_REDUCTIONS = ("add", "average", "maximum", "bitwise_or", "bitwise_and")
"""Operators of `nki.isa.tensor_partition_reduce`."""

# NumPy's spellings, which NKI 0.1 took and code still carries.
NUMPY_NAMES: dict[str, str] = {
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "maximum": "maximum",
    "minimum": "minimum",
    "power": "power",
    "copy": "copy",
    "exp": "exp",
    "log": "log",
    "sqrt": "sqrt",
    "tanh": "tanh",
    "square": "square",
    "abs": "abs",
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "less",
    "less_equal": "less_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
}
