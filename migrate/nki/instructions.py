"""The instructions of `nki.isa`: parameters, operand memories, checks and semantics.

One entry an instruction.  Parameters and limits are those of the NKI API reference
(nki/api/nki/isa) for NKI 0.2 to 0.6, destination first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from migrate.nki import checks, limits, scanning, selection, semantics
from migrate.nki.checks import Check
from migrate.nki.operators import Engine
from migrate.nki.semantics import Semantics
from migrate.nki.values import OperatorName

Kind: TypeAlias = Literal["tile", "column", "operator", "value"]


class _Required:
    __slots__ = ()

    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an instruction.

    `tile`: a tensor; `column`: a number or a (P, 1) tensor; `operator`: an operator of
    `nki.language`; `value`: anything else.  `memories` are where a tensor may live.
    """

    name: str
    kind: Kind
    default: object = REQUIRED
    memories: tuple[str, ...] = ()
    role: Literal["in", "out", "inout"] = "in"


@dataclass(frozen=True, slots=True)
class Enumerated:
    """A default that is a member of one of the library's enums."""

    enum: str
    name: str


@dataclass(frozen=True, slots=True)
class Spec:
    """One instruction.

    `semantics` is `None` for instructions that are known but not understood yet.
    """

    opcode: str
    parameters: tuple[Parameter, ...]
    engines: tuple[Engine, ...]
    semantics: Semantics | None = None
    checks: tuple[Check, ...] = ()
    targets: tuple[str, ...] = ("trn1", "trn2", "trn3")

    def parameter(self, name: str) -> Parameter | None:
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        return None


_ONCHIP = ("sbuf", "psum")
_DMA = ("hbm", "sbuf")
_SBUF = ("sbuf",)
_PSUM = ("psum",)


def _out(name: str = "dst", memories: tuple[str, ...] = _ONCHIP) -> Parameter:
    return Parameter(name, "tile", REQUIRED, memories, "out")


def _in(name: str, memories: tuple[str, ...] = _ONCHIP) -> Parameter:
    return Parameter(name, "tile", REQUIRED, memories)


def _column(name: str, default: object = REQUIRED) -> Parameter:
    return Parameter(name, "column", default, _ONCHIP)


def _op(name: str, default: object = REQUIRED) -> Parameter:
    return Parameter(name, "operator", default)


def _value(name: str, default: object = REQUIRED) -> Parameter:
    return Parameter(name, "value", default)


_ENGINE = _value("engine", Enumerated("engine", "unknown"))
_NAME = _value("name", None)
_REDUCE_CMD = _value("reduce_cmd", Enumerated("reduce_cmd", "idle"))
_RESULT = Parameter("reduce_res", "tile", None, _ONCHIP, "out")

_ENTRIES = (
    Spec(
        "dma_copy",
        (
            _out(memories=_DMA), _in("src", _DMA), _value("priority", None),
            _value("oob_mode", Enumerated("oob_mode", "error")),
            _value("dge_mode", Enumerated("dge_mode", "unknown")), _ENGINE, _NAME,
        ),
        ("dma",),
        semantics.copy,
        (checks.same_count("dst", "src"),),
    ),
    Spec(
        "tensor_copy",
        (_out(), _in("src"), _ENGINE, _NAME),
        ("vector", "scalar", "gpsimd"),
        semantics.copy,
        (checks.same_tile("dst", "src"), checks.gpsimd_not_psum("dst", "src")),
    ),
    Spec(
        "memset",
        (_out(), _column("value"), _ENGINE, _NAME),
        ("vector", "gpsimd"),
        semantics.memset,
        (checks.literal_fits("value"), checks.gpsimd_not_psum("dst")),
    ),
    Spec(
        "tensor_tensor",
        (_out(), _in("data1"), _in("data2"), _op("op"), _ENGINE, _NAME),
        ("vector", "gpsimd"),
        semantics.tensor_tensor,
        (
            checks.same_tile("dst", "data1", "data2"),
            checks.not_both_psum("data1", "data2"),
            checks.operator_use("op", "binary"),
            checks.bitvec_integers("op", "dst", "data1", "data2"),
            checks.gpsimd_not_psum("dst", "data1", "data2"),
        ),
    ),
    Spec(
        "tensor_scalar",
        (
            _out(), _in("data"), _op("op0"), _column("operand0"), _value("reverse0", False),
            _op("op1", None), _column("operand1", None), _value("reverse1", False),
            _ENGINE, _NAME,
        ),
        ("vector", "scalar", "gpsimd"),
        semantics.tensor_scalar,
        (
            checks.same_tile("dst", "data"),
            checks.column("operand0", "data"),
            checks.column("operand1", "data"),
            checks.operator_use("op0", "scalar", "unary"),
            checks.operator_use("op1", "scalar", "unary"),
            checks.one_kind("op0", "op1"),
            checks.together("op1", "operand1"),
            checks.bitvec_integers("op0", "dst", "data"),
        ),
    ),
    Spec(
        "scalar_tensor_tensor",
        (
            _out(), _in("data"), _op("op0"), _column("operand0"), _op("op1"), _in("operand1"),
            _value("reverse0", False), _value("reverse1", False), _NAME,
        ),
        ("vector",),
        semantics.scalar_tensor_tensor,
        (
            checks.same_tile("dst", "data", "operand1"),
            checks.not_both_psum("data", "operand1"),
            checks.column("operand0", "data"),
            checks.operator_use("op0", "scalar", "unary"),
            checks.operator_use("op1", "binary"),
        ),
    ),
    Spec(
        "activation",
        (
            _out(), _op("op"), _in("data"), _column("bias", None), _column("scale", 1.0),
            _op("reduce_op", None), _RESULT, _REDUCE_CMD, _NAME,
        ),
        ("scalar",),
        semantics.activation,
        (
            checks.same_tile("dst", "data"),
            checks.column("bias", "data"),
            checks.column("scale", "data"),
            checks.column("reduce_res", "data"),
            checks.operator_use("op", "activation"),
            checks.bias_is_tile("bias"),
            checks.only_operator("reduce_op", "add"),
        ),
    ),
    Spec(
        "activation_reduce",
        (
            _out(), _op("op"), _in("data"), _op("reduce_op"),
            Parameter("reduce_res", "tile", REQUIRED, _ONCHIP, "out"),
            _column("bias", None), _column("scale", 1.0), _NAME,
        ),
        ("scalar",),
        semantics.activation_reduce,
        (
            checks.same_tile("dst", "data"),
            checks.column("bias", "data"),
            checks.column("scale", "data"),
            checks.column("reduce_res", "data"),
            checks.operator_use("op", "activation"),
            checks.bias_is_tile("bias"),
            checks.only_operator("reduce_op", "add"),
        ),
    ),
    Spec(
        "reciprocal",
        (_out(), _in("data"), _NAME),
        ("vector",),
        semantics.reciprocal,
        (checks.same_tile("dst", "data"),),
    ),
    Spec(
        "tensor_reduce",
        (
            _out(), _op("op"), _in("data"), _value("axis"), _value("negate", False),
            _value("keepdims", False), _NAME,
        ),
        ("vector",),
        semantics.tensor_reduce,
        (checks.operator_use("op", "reduce"), checks.reduced_axes("dst", "data", "axis")),
    ),
    Spec(
        "tensor_tensor_scan",
        (
            _out(), _in("data0"), _in("data1"), _column("initial"), _op("op0"), _op("op1"),
            _value("reverse0", False), _value("reverse1", False), _NAME,
        ),
        ("vector",),
        scanning.tensor_tensor_scan,
        (
            checks.same_tile("dst", "data0", "data1"),
            checks.not_both_psum("data0", "data1"),
            checks.column("initial", "data0"),
            checks.operator_use("op0", "binary"),
            checks.operator_use("op1", "binary"),
        ),
    ),
    Spec(
        "iota",
        (
            _out(memories=_SBUF), _value("pattern"), _value("offset", 0),
            _value("channel_multiplier", 0), _NAME,
        ),
        ("gpsimd",),
        selection.iota,
        (checks.pattern_count("dst", "pattern"),),
    ),
    Spec(
        "affine_select",
        (
            _out(memories=_SBUF), _value("pattern"), _value("channel_multiplier"),
            _in("on_true_tile", _SBUF), _column("on_false_value"),
            _op("cmp_op", OperatorName("equal")), _value("offset", 0), _NAME,
        ),
        ("gpsimd",),
        selection.affine_select,
        (
            checks.same_tile("dst", "on_true_tile"),
            checks.pattern_count("dst", "pattern"),
            checks.comparison("cmp_op"),
        ),
    ),
    Spec(
        "range_select",
        (
            _out(), _in("on_true_tile"), _op("comp_op0"), _op("comp_op1"), _column("bound0"),
            _column("bound1"), _value("reduce_cmd", Enumerated("reduce_cmd", "reset_reduce")),
            _RESULT, _op("reduce_op", OperatorName("maximum")), _value("range_start", 0),
            _value("on_false_value", None), _NAME,
        ),
        ("vector",),
        selection.range_select,
        (
            checks.same_tile("dst", "on_true_tile"),
            checks.column("bound0", "on_true_tile"),
            checks.column("bound1", "on_true_tile"),
            checks.column("reduce_res", "on_true_tile"),
            checks.comparison("comp_op0", "comp_op1"),
            checks.only_number("on_false_value", selection.FP32_MIN),
            checks.only_operator("reduce_op", "maximum"),
        ),
        ("trn2", "trn3"),
    ),
    Spec(
        "select_reduce",
        (
            _out(), _in("predicate"), _in("on_true"), _column("on_false"), _RESULT, _REDUCE_CMD,
            _op("reduce_op", OperatorName("maximum")), _value("reverse_pred", False), _NAME,
        ),
        ("vector",),
        selection.select_reduce,
        (
            checks.same_tile("dst", "predicate", "on_true"),
            checks.column("on_false", "on_true"),
            checks.column("reduce_res", "on_true"),
            checks.not_both_psum("on_true", "predicate"),
            checks.only_operator("reduce_op", "maximum"),
        ),
    ),
    Spec(
        "tensor_copy_predicated",
        (
            Parameter("dst", "tile", REQUIRED, _ONCHIP, "inout"), _column("src"),
            _in("predicate"), _value("reverse_pred", False), _NAME,
        ),
        ("vector",),
        selection.tensor_copy_predicated,
        (
            checks.same_tile("dst", "src", "predicate"),
            checks.not_both_psum("src", "predicate"),
            checks.same_dtype("dst", "src"),
        ),
    ),
    Spec(
        "dma_transpose",
        (
            _out(memories=_DMA), _in("src", _DMA), _value("axes", None), _value("priority", None),
            _value("dge_mode", Enumerated("dge_mode", "unknown")),
            _value("oob_mode", Enumerated("oob_mode", "error")), _NAME,
        ),
        ("dma",),
        semantics.dma_transpose,
        (checks.same_count("dst", "src"), checks.same_dtype("dst", "src")),
    ),
    Spec(
        "nc_matmul",
        (
            _out(memories=_PSUM), _in("stationary", _SBUF), _in("moving", _SBUF),
            _value("is_stationary_onezero", False), _value("is_moving_onezero", False),
            _value("is_transpose", False), _value("accumulate", None),
            _value("tile_position", ()), _value("tile_size", ()),
            _value("perf_mode", Enumerated("matmul_perf_mode", "none")), _NAME,
        ),
        ("tensor",),
        semantics.nc_matmul,
        (limits.matmul_shapes, limits.matmul_dtypes),
    ),
    Spec(
        "nc_transpose",
        (_out(), _in("data"), _ENGINE, _NAME),
        ("tensor", "vector"),
        semantics.nc_transpose,
        (limits.transpose_shapes,),
    ),
)  # fmt: skip

INSTRUCTIONS: dict[str, Spec] = {entry.opcode: entry for entry in _ENTRIES}

# Known names without an entry: calling one is an instruction not understood, not an error.
OTHER_OPCODES = frozenset(
    {
        "activate2", "bn_aggr", "bn_stats", "core_barrier", "dma_compute",
        "dropout", "exponential", "local_gather", "max8", "nc_find_index8",
        "nc_match_replace8", "nc_matmul_mx", "nc_n_gather", "nc_stream_shuffle",
        "nonzero_with_count", "quantize_mx", "rand2", "rand_get_state", "rand_set_state",
        "register_alloc", "register_load", "register_move", "register_store",
        "rng", "sendrecv", "sequence_bounds", "set_rng_seed",
        "tensor_partition_reduce", "tensor_scalar_cumulative",
        "tensor_scalar_reduce", "topk",
    }
)  # fmt: skip
