"""PTX instructions of one thread: loads, stores, arithmetic, exchanges, atomics (PTX ISA).

Flushing of subnormals (`.ftz`) is not modelled.
"""

from __future__ import annotations

from collections.abc import Callable

from migrate.cuda.ast import (
    Atomic,
    Barrier,
    Binary,
    Element,
    Evaluate,
    Expression,
    Intrinsic,
    MakeVector,
    Shuffle,
    Statement,
)
from migrate.cuda.conversions import convert, packed
from migrate.cuda.intrinsics import ATOMICS, SHUFFLES, IntrinsicEntry
from migrate.cuda.library.assembly import Instruction, listed
from migrate.cuda.library.build import by_component, integer
from migrate.cuda.library.operands import Operands, Refused
from migrate.cuda.types import (
    BFLOAT16,
    BOOL,
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    LONG_LONG,
    NAMED,
    SHORT,
    UNSIGNED,
    UNSIGNED_LONG_LONG,
    UNSIGNED_SHORT,
    Scalar,
    Type,
    Vector,
)

_TYPES: dict[str, Scalar] = {
    "f32": FLOAT,
    "f64": DOUBLE,
    "f16": HALF,
    "bf16": BFLOAT16,
    "s16": SHORT,
    "u16": UNSIGNED_SHORT,
    "s32": INT,
    "u32": UNSIGNED,
    "s64": LONG_LONG,
    "u64": UNSIGNED_LONG_LONG,
}
_PAIRS: dict[str, Type] = {"f16x2": NAMED["__half2"], "bf16x2": NAMED["__nv_bfloat162"]}
_BITS = {"b16": 2, "b32": 4, "b64": 8}

# Words of loads and stores that do not change what is moved: state space, cache operator, eviction
# and prefetch, ordering.
_HINTS = frozenset(
    {
        "global", "shared", "shared::cta", "const", "nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt",
        "volatile", "weak", "relaxed", "acquire", "release", "cta", "gpu", "sys",
        "L1::no_allocate", "L1::evict_last", "L1::evict_first", "L1::evict_normal",
        "L2::64B", "L2::128B", "L2::256B",
    }
)  # fmt: skip


def _refused(instruction: Instruction) -> Refused:
    return Refused(f"the PTX instruction {instruction.opcode} is not understood")


def _target(instruction: Instruction, operands: Operands) -> Expression:
    """The one register that an instruction writes."""
    found = (
        operands.registers(instruction.operands[0], written=True) if instruction.operands else ()
    )
    if len(found) != 1:
        raise _refused(instruction)
    return found[0]


def _moves(instruction: Instruction) -> tuple[int, str]:
    """How many registers a load or store moves, and the word of their type."""
    count, kind = 1, ""
    for word in instruction.modifiers:
        if word in ("v2", "v4"):
            count = int(word[1:])
        elif word in _TYPES or word in _BITS:
            kind = word
        elif word not in _HINTS:
            raise _refused(instruction)
    if not kind:
        raise _refused(instruction)
    return count, kind


def _cells(
    instruction: Instruction, operands: Operands, registers: str, memory: str, *, written: bool
) -> list[tuple[Expression, Element]]:
    """Each register with the memory it is loaded from or stored to."""
    count, word = _moves(instruction)
    held = operands.registers(registers, written=written)
    if len(held) != count:
        raise _refused(instruction)
    made: list[tuple[Expression, Element]] = []
    for at, register in enumerate(held):
        kind: Type | None = _TYPES.get(word)
        if kind is None:
            kind = register.type if register.type.size == _BITS[word] else None
        if kind is None or not isinstance(kind, Scalar | Vector):
            raise _refused(instruction)
        pointer = operands.pointer(memory, kind)
        made.append((register, operands.cell(pointer, integer(at, operands.where), kind)))
    return made


def _load(instruction: Instruction, operands: Operands) -> list[Statement]:
    if len(instruction.operands) != 2:
        raise _refused(instruction)
    registers, memory = instruction.operands
    cells = _cells(instruction, operands, registers, memory, written=True)
    return [operands.assign(register, cell) for register, cell in cells]


def _store(instruction: Instruction, operands: Operands) -> list[Statement]:
    if len(instruction.operands) != 2:
        raise _refused(instruction)
    memory, registers = instruction.operands
    cells = _cells(instruction, operands, registers, memory, written=False)
    return [operands.assign(cell, register) for register, cell in cells]


_E = IntrinsicEntry

# By opcode without `.ftz`: the operator and the error that PTX ISA gives (relative ones in ulp of
# single precision: 2^-22 is 2, 2^-11 is 4096).
_FUNCTIONS: dict[str, IntrinsicEntry] = {
    "ex2.approx.f32": _E("ex2.approx", "exp2", 1, FLOAT, ulp=2),
    "lg2.approx.f32": _E("lg2.approx", "log2", 1, FLOAT, ulp=2, absolute=2.0**-22),
    "rcp.approx.f32": _E("rcp.approx", "reciprocal", 1, FLOAT, ulp=1),
    "rcp.rn.f32": _E("rcp.rn", "reciprocal", 1, FLOAT),
    "rsqrt.approx.f32": _E("rsqrt.approx", "rsqrt", 1, FLOAT, ulp=2),
    "sqrt.approx.f32": _E("sqrt.approx", "sqrt", 1, FLOAT, ulp=1),
    "sqrt.rn.f32": _E("sqrt.rn", "sqrt", 1, FLOAT),
    "tanh.approx.f32": _E("tanh.approx", "tanh", 1, FLOAT, ulp=4096),
    "tanh.approx.f16": _E("tanh.approx", "tanh", 1, HALF, ulp=2),
    "tanh.approx.bf16": _E("tanh.approx", "tanh", 1, BFLOAT16, ulp=2),
    "ex2.approx.f16": _E("ex2.approx", "exp2", 1, HALF, ulp=2),
    "ex2.approx.bf16": _E("ex2.approx", "exp2", 1, BFLOAT16, ulp=2),
    "sin.approx.f32": _E("sin.approx", "sin", 1, FLOAT, absolute=2.0**-20.5),
    "cos.approx.f32": _E("cos.approx", "cos", 1, FLOAT, absolute=2.0**-20.5),
    "div.approx.f32": _E("div.approx", "divide", 2, FLOAT, ulp=2),
    "div.full.f32": _E("div.full", "divide", 2, FLOAT, ulp=2),
    "div.rn.f32": _E("div.rn", "divide", 2, FLOAT),
    **{
        f"fma.rn.{word}": _E("fma.rn", "fma", 3, kind)
        for word, kind in (("f32", FLOAT), ("f64", DOUBLE), ("f16", HALF), ("bf16", BFLOAT16))
    },
    **{
        f"{name}{mode}.{word}": _E(name, operator, 2, kind)
        for name, operator in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"))
        for mode in ("", ".rn")
        for word, kind in (("f32", FLOAT), ("f64", DOUBLE), ("f16", HALF), ("bf16", BFLOAT16))
    },
    **{
        f"{name}.{word}": _E(name, operator, 2, _TYPES[word])
        for name, operator in (("max", "maximum_number"), ("min", "minimum_number"))
        for word in ("f32", "f64", "f16", "bf16", "s32", "u32")
    },
    **{
        f"{name}.{word}": _E(name, operator, 1, _TYPES[word])
        for name, operator in (("neg", "negate"), ("abs", "abs"))
        for word in ("f32", "f64", "f16", "bf16", "s32")
    },
}

_INTEGER: dict[str, str] = {
    "add": "add",
    "sub": "subtract",
    "mul.lo": "multiply",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
_WORDS = {"s32": INT, "u32": UNSIGNED, "b32": UNSIGNED, "s64": LONG_LONG, "u64": UNSIGNED_LONG_LONG}


def _arithmetic(instruction: Instruction, operands: Operands) -> list[Statement]:
    words = tuple(word for word in instruction.modifiers if word != "ftz")
    opcode = ".".join((instruction.name, *words))
    pair = _PAIRS.get(words[-1]) if words else None
    if pair is not None:
        opcode = opcode.removesuffix("x2")
    entry = _FUNCTIONS.get(opcode)
    target = _target(instruction, operands)
    values = [operands.value(operand) for operand in instruction.operands[1:]]
    if entry is not None and len(values) == entry.arity:
        kind = entry.operands
        assert isinstance(kind, Scalar)
        if pair is not None:
            return [operands.assign(target, _by_pairs(entry, values, pair, operands))]
        given = tuple(operands.as_type(value, kind) for value in values)
        return [operands.assign(target, Intrinsic(entry, given, kind, operands.where))]
    operator = _INTEGER.get(opcode.rsplit(".", 1)[0])
    integer_kind = _WORDS.get(words[-1]) if words else None
    if operator is None or integer_kind is None or len(values) != 2:
        raise _refused(instruction)
    left, right = (operands.as_type(value, integer_kind) for value in values)
    made = Binary(operator, left, right, integer_kind, operands.where)
    return [operands.assign(target, made)]


def _by_pairs(
    entry: IntrinsicEntry, values: list[Expression], pair: Type, operands: Operands
) -> Expression:
    assert isinstance(pair, Vector)
    values = [packed(value, pair) for value in values]
    if any(value.type != pair for value in values):
        raise Refused("what these registers hold is not known to be pairs")
    return by_component(
        entry.name,
        values,
        lambda given: Intrinsic(entry, tuple(given), pair.element, operands.where),
        pair,
        operands.where,
    )


def _move(instruction: Instruction, operands: Operands) -> list[Statement]:
    if len(instruction.operands) != 2 or len(instruction.modifiers) != 1:
        raise _refused(instruction)
    if len(listed(instruction.operands[0])) != 1 or len(listed(instruction.operands[1])) != 1:
        raise _refused(instruction)
    target = _target(instruction, operands)
    return [operands.assign(target, operands.value(instruction.operands[1]))]


def _convert(instruction: Instruction, operands: Operands) -> list[Statement]:
    from migrate.cuda.library.wmma import rounded_to_tf32

    words = tuple(word for word in instruction.modifiers if word != "ftz")
    target = _target(instruction, operands)
    values = [operands.value(operand) for operand in instruction.operands[1:]]
    where = operands.where
    match words, values:
        case (("rna", "tf32", "f32"), [value]):
            made = rounded_to_tf32(operands.as_type(value, FLOAT), where)
            return [operands.assign(target, made)]
        case (("rn", ("f16x2" | "bf16x2") as word, "f32"), [high, low]):
            kind = _PAIRS[word]
            assert isinstance(kind, Vector)
            parts = tuple(
                convert(operands.as_type(value, FLOAT), kind.element, written=True)
                for value in (low, high)
            )
            return [operands.assign(target, MakeVector(parts, kind, where))]
        case (("rn", to, "f32"), [value]) if to in ("f16", "bf16"):
            made = convert(operands.as_type(value, FLOAT), _TYPES[to], written=True)
            return [operands.assign(target, made)]
        case (("f32", frm), [value]) if frm in ("f16", "bf16"):
            made = convert(operands.as_type(value, _TYPES[frm]), FLOAT, written=True)
            return [operands.assign(target, made)]
        case _:
            raise _refused(instruction)


_COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}


def _set_predicate(instruction: Instruction, operands: Operands) -> list[Statement]:
    words = instruction.modifiers
    kind = (_TYPES.get(words[1]) or _WORDS.get(words[1])) if len(words) == 2 else None
    if kind is None or words[0] not in _COMPARISONS or len(instruction.operands) != 3:
        raise _refused(instruction)
    target = _target(instruction, operands)
    left, right = (
        operands.as_type(operands.value(operand), kind) for operand in instruction.operands[1:]
    )
    made = Binary(_COMPARISONS[words[0]], left, right, BOOL, operands.where)
    return [operands.assign(target, made)]


_EXCHANGES = {
    "bfly": "__shfl_xor_sync",
    "up": "__shfl_up_sync",
    "down": "__shfl_down_sync",
    "idx": "__shfl_sync",
}


def _shuffle(instruction: Instruction, operands: Operands) -> list[Statement]:
    """`shfl.sync.bfly.b32 d, a, b, c, mask` over the whole warp."""
    words = instruction.modifiers
    if len(words) != 3 or words[0] != "sync" or words[1] not in _EXCHANGES or words[2] != "b32":
        raise _refused(instruction)
    if len(instruction.operands) != 5 or "|" in instruction.operands[0]:
        raise _refused(instruction)
    whole = 0 if words[1] == "up" else 0x1F
    if operands.constant(instruction.operands[3]) != whole:
        raise Refused("an exchange within a part of a warp is not understood in assembly")
    target = _target(instruction, operands)
    value, distance, _, mask = (operands.value(one) for one in instruction.operands[1:])
    kind = value.type
    if not isinstance(kind, Scalar):
        raise _refused(instruction)
    entry = SHUFFLES[_EXCHANGES[words[1]]]
    made = Shuffle(
        entry, convert(mask, UNSIGNED), value, convert(distance, INT), None, kind, operands.where
    )
    return [operands.assign(target, made)]


_ATOMICS = {
    "add": "atomicAdd",
    "min": "atomicMin",
    "max": "atomicMax",
    "and": "atomicAnd",
    "or": "atomicOr",
    "xor": "atomicXor",
    "exch": "atomicExch",
    "inc": "atomicInc",
    "dec": "atomicDec",
}


def _atomic(instruction: Instruction, operands: Operands) -> list[Statement]:
    """`red` and `atom`: the second gives what was there before."""
    words = [word for word in instruction.modifiers if word not in _HINTS]
    returns = instruction.name == "atom"
    if len(words) != 2 or words[0] not in _ATOMICS or len(instruction.operands) != 2 + returns:
        raise _refused(instruction)
    kind = _TYPES.get(words[1]) or _WORDS.get(words[1])
    if kind is None:
        raise _refused(instruction)
    pointer = operands.pointer(instruction.operands[returns], kind)
    value = operands.as_type(operands.value(instruction.operands[1 + returns]), kind)
    made = Atomic(ATOMICS[_ATOMICS[words[0]]], pointer, (value,), kind, operands.where)
    if not returns:
        return [Evaluate(made, operands.where)]
    target = _target(instruction, operands)
    return [operands.assign(target, made)]


def _barrier(instruction: Instruction, operands: Operands) -> list[Statement]:
    words = tuple(word for word in instruction.modifiers if word not in ("cta", "aligned"))
    if words != ("sync",) or len(instruction.operands) != 1:
        raise _refused(instruction)
    if operands.constant(instruction.operands[0]) != 0:
        raise Refused("a barrier of a part of the block is not understood")
    return [Barrier("block", operands.where)]


def _fence(_instruction: Instruction, operands: Operands) -> list[Statement]:
    return [Barrier("fence", operands.where)]


SCALAR: dict[str, Callable[[Instruction, Operands], list[Statement]]] = {
    "ld": _load,
    "st": _store,
    "mov": _move,
    "cvt": _convert,
    "setp": _set_predicate,
    "shfl": _shuffle,
    "red": _atomic,
    "atom": _atomic,
    "bar": _barrier,
    "barrier": _barrier,
    "membar": _fence,
    "fence": _fence,
    **dict.fromkeys({name.split(".")[0] for name in (*_FUNCTIONS, *_INTEGER)}, _arithmetic),
}
