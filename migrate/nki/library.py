"""The library modules that kernels import, as tables of names.

`nki`, `nki.isa`, `nki.language`, and the few constants and functions of `numpy` and
`math` that kernels use on the host side.  A name that is not here is reported as not
understood.
"""

from __future__ import annotations

import math

from migrate.nki import allocation, allocators, builtins, device_loops, indices, registers
from migrate.nki.definitions import OBJECT
from migrate.nki.errors import KernelFault
from migrate.nki.frames import Frame
from migrate.nki.imports import KNOWN_MODULES, STDLIB, Annotation
from migrate.nki.instructions import INSTRUCTIONS
from migrate.nki.language import arrays, loops, moves, norms, products, reductions
from migrate.nki.operators import NUMPY_NAMES, OPERATORS
from migrate.nki.standard import standard
from migrate.nki.symbols import Number, Origin, constant
from migrate.nki.values import (
    Builtin,
    Instructive,
    Member,
    Memory,
    Namespace,
    OperatorName,
    Unknown,
    describe,
)
from migrate.numerics.dtypes import DType

ENUMS: dict[str, tuple[str, ...]] = {
    "engine": ("unknown", "tensor", "vector", "scalar", "gpsimd", "dma", "sync"),
    "reduce_cmd": ("idle", "reset", "reduce", "reset_reduce", "load_reduce"),
    "dge_mode": ("unknown", "none", "swdge", "hwdge"),
    "oob_mode": ("error", "skip"),
    "matmul_perf_mode": (
        "none",
        "double_row",
        "double_row_sw_interleave",
        "double_column",
        "double_pixel",
    ),
    "nc_version": ("gen2", "gen3", "gen4"),
    "dma_engine": ("dma", "gpsimd_dma"),
}
"""Enums of `nki.isa` (NKI API reference)."""

_MEMORIES = {
    "sbuf": Memory.SBUF,
    "psum": Memory.PSUM,
    "hbm": Memory.HBM,
    "private_hbm": Memory.HBM,
    "shared_hbm": Memory.SHARED_HBM,
}

_DTYPES = {
    name: DType.named(name)
    for name in (
        "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32", "bfloat16",
        "tfloat32", "float8_e4m3", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "bool_",
        "float8_e5m2_x4", "float8_e4m3fn_x4", "float4_e2m1fn_x4",
    )
}  # fmt: skip

TILE_SIZE = {
    "pmax": 128,
    "psum_bank_fmax": 512,
    "psum_fmax": 512,
    "psum_bank_fmax_bytes": 2048,
    "psum_num_banks": 8,
    "gemm_stationary_fmax": 128,
    "gemm_moving_fmax": 512,
    "bn_stats_fmax": 512,
}
"""`nl.tile_size` (nki/api/nki.language.tile_size); the same on every target."""

_LANGUAGE: dict[str, object] = {
    "NKIObject": OBJECT,
    **_MEMORIES,
    **_DTYPES,
    **{name: OperatorName(name) for name in OPERATORS},
    "tile_size": Namespace("nki.language.tile_size"),
    "ds": Builtin("ds", builtins.dynamic_slice),
    "arange": Builtin("arange", indices.arange),
    "mgrid": indices.GRID,
    "par_dim": Builtin("par_dim", indices.partition_extent),
    "affine_range": Builtin("affine_range", builtins.ranged("affine_range")),
    "sequential_range": Builtin("sequential_range", builtins.ranged("sequential_range")),
    "static_range": Builtin("static_range", builtins.ranged("static_range")),
    "range": Builtin("range", builtins.ranged("range")),
    "dynamic_range": Builtin("dynamic_range", builtins.ranged("dynamic_range")),
    "fori_loop": Builtin("fori_loop", device_loops.fori_loop),
    "while_loop": Builtin("while_loop", device_loops.while_loop),
    "ndarray": Builtin("ndarray", allocation.ndarray),
    "zeros": Builtin("zeros", allocation.zeros),
    "full": Builtin("full", allocation.full),
    "ones": Builtin("ones", allocation.ones),
    **moves.FUNCTIONS,
    **reductions.FUNCTIONS,
    **products.FUNCTIONS,
    **norms.FUNCTIONS,
    **loops.FUNCTIONS,
    "program_id": Builtin("program_id", builtins.program_id),
    "num_programs": Builtin("num_programs", builtins.num_programs),
    "program_ndim": Builtin("program_ndim", builtins.program_ndim),
    "no_reorder": Builtin("no_reorder", lambda *_: Annotation("no_reorder")),
    "device_print": Builtin("device_print", lambda *_: None),
    "is_hbm": Builtin("is_hbm", builtins.memory_test("hbm", "shared_hbm")),
    "is_sbuf": Builtin("is_sbuf", builtins.memory_test("sbuf")),
    "is_psum": Builtin("is_psum", builtins.memory_test("psum")),
    "is_on_chip": Builtin("is_on_chip", builtins.memory_test("sbuf", "psum")),
}

_FLOATS: dict[str, float] = {
    "pi": math.pi,
    "e": math.e,
    "inf": math.inf,
    "nan": math.nan,
}

_NUMPY: dict[str, object] = {
    **arrays.FUNCTIONS,
    **{name: OperatorName(operator) for name, operator in reductions.REDUCTIONS.items()},
    **{name: DType.named(name) for name in (*_DTYPES, "float64", "int64", "uint64")},
    **{name: OperatorName(target) for name, target in NUMPY_NAMES.items()},
    "prod": Builtin("prod", builtins.product),
    "arange": Builtin("arange", indices.arange),
    "mgrid": indices.GRID,
}

_MATH: dict[str, object] = {
    "ceil": Builtin("ceil", builtins.rounded("ceil")),
    "floor": Builtin("floor", builtins.rounded("floor")),
    "prod": Builtin("prod", builtins.product),
    "sqrt": Builtin("sqrt", builtins.floating(math.sqrt)),
    "exp": Builtin("exp", builtins.floating(math.exp)),
    "log": Builtin("log", builtins.floating(math.log)),
    "log2": Builtin("log2", builtins.floating(math.log2)),
    "gcd": Builtin("gcd", builtins.common_divisor),
}

_NKI: dict[str, object] = {
    "jit": Builtin("jit", builtins.jit),
    "isa": Namespace("nki.isa"),
    "language": Namespace("nki.language"),
    "typing": Namespace("nki.typing"),
    "collectives": Namespace("nki.collectives"),
    "compiler": Namespace("nki.compiler"),
    "trace": Builtin("trace", builtins.jit),
    "baremetal": Builtin("baremetal", builtins.jit),
    "benchmark": Builtin("benchmark", builtins.jit),
    "profile": Builtin("profile", builtins.jit),
}


def _limits(
    _: Frame, args: tuple[object, ...], words: dict[str, object], origin: Origin
) -> Namespace:
    """`nl.finfo(dtype)`, `np.finfo(dtype)`."""
    (dtype,) = builtins.positional("finfo", args, words, origin, 1)
    if not isinstance(dtype, DType) or not dtype.is_float:
        raise KernelFault("value", f"finfo of {describe(dtype)}", origin)
    return Namespace(f"finfo.{dtype}")


_LANGUAGE["finfo"] = _NUMPY["finfo"] = Builtin("finfo", _limits)


def _limit(dtype: DType, name: str) -> Number | None:
    """A member of a `finfo`."""
    found = {
        "min": -dtype.max,
        "max": dtype.max,
        "eps": 2.0 ** (1 - dtype.precision),
        "tiny": dtype.min_normal,
        "smallest_normal": dtype.min_normal,
    }.get(name)
    return constant(found) if found is not None else None


_FP32 = {
    "min": constant(-3.4028234663852886e38),
    "max": constant(3.4028234663852886e38),
    "eps": constant(2.0**-23),
    "tiny": constant(2.0**-126),
}
"""`nl.fp32`, the `finfo` of float32."""


def resolve(path: str, name: str) -> object:
    """A name of a library module; `Unknown` where it is not read."""
    found: object = None
    match path:
        case "neuronxcc":
            found = Namespace("nki") if name == "nki" else None
        case "nki":
            found = _NKI.get(name)
        case "nki.compiler" | "nki.compiler.sbuf" | "nki.compiler.psum":
            found = allocators.resolve(path, name)
        case "nki.isa":
            if name in registers.CALLS:
                return registers.CALLS[name]
            if name == "get_nc_version":
                return Builtin(name, allocators.version)
            if name in INSTRUCTIONS:
                return Instructive(name)
            if name == "constants":
                return Namespace("nki.isa")
            if name in ENUMS:
                return Namespace(f"nki.isa.{name}")
            if name.endswith("_engine") and name.removesuffix("_engine") in ENUMS["engine"]:
                return Member("engine", name.removesuffix("_engine"))
        case "nki.language":
            found = _LANGUAGE.get(name)
            if name == "constants":
                return Namespace("nki.language")
            if name == "sizeinbytes":  # of `nki.language.constants`
                return Builtin(name, builtins.bytes_of)
            if name == "fp32":
                return Namespace("nki.language.fp32")
        case "nki.collectives":
            from migrate.nki.collectives import FUNCTIONS

            found = FUNCTIONS.get(name)
        case "nki.language.fp32":
            found = _FP32.get(name)
        case _ if path.startswith("finfo."):
            found = _limit(DType.named(path.removeprefix("finfo.")), name)
        case "nki.language.tile_size":
            size = TILE_SIZE.get(name)
            found = constant(size) if size is not None else None
        case "numpy" | "ml_dtypes":
            if name in _FLOATS:
                return constant(_FLOATS[name])
            found = _NUMPY.get(name)
        case "math":
            if name in _FLOATS:
                return constant(_FLOATS[name])
            found = _MATH.get(name)
        case _ if path in STDLIB:
            found = standard(path, name)
        case _ if path.startswith("nki.isa."):
            enum = path.removeprefix("nki.isa.")
            if name in ENUMS.get(enum, ()):
                return Member(enum, name)
    if found is not None:
        return found
    inner = f"{path}.{name}"
    if inner in KNOWN_MODULES:
        return Namespace(inner)
    return Unknown(inner, "not read", None)
