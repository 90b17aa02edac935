"""Kernels that somebody broke: read without surprises, and only ever as they run.

Sample kernels are changed at random places, the way slips of the pen and careless
migrations change them.  Whatever comes out is refused, reported as not understood, or
read as exactly what running it gives.
"""

from __future__ import annotations

import ast
import copy
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from migrate.budget import Budget, Exhausted, Meter
from migrate.ir.evaluate import Unevaluable, evaluate
from migrate.ir.nodes import Opaque, walk
from migrate.ir.reals import Reals
from migrate.ir.validate import problems
from migrate.nki.errors import Unsupported
from migrate.nki.lift import lift
from migrate.nki.parse import parse
from migrate.nki.simulate import simulate
from migrate.numerics.bounded import Bounded
from migrate.numerics.errors import BoundedValue
from migrate.source import Source, SourceError
from migrate.verify.agreement import disagreement
from tests.nki.kernels import TILED_MATMUL, tensor

SAMPLES = Path(__file__).parents[2] / "samples"
BUDGET = Budget(steps=300_000, bytes=64 * 1024**2, seconds=30)
SMALL = {"pmax": 8, "gemm_stationary_fmax": 6, "gemm_moving_fmax": 10}
MUTANTS = 40

Shapes = dict[str, tuple[int, ...]]


def sample(name: str) -> str:
    text = (SAMPLES / name / "kernel.py").read_text()
    for limit, value in SMALL.items():
        text = text.replace(f"nl.tile_size.{limit}", str(value))
    return text.replace("cols = 512", "cols = 4")


KERNELS: dict[str, tuple[str, list[Shapes]]] = {
    "matmul_tiled": (
        sample("matmul_tiled"),
        [{"a_t": (20, 15), "b": (20, 25)}, {"a_t": (16, 12), "b": (16, 10)}],
    ),
    "softmax_rows": (sample("softmax_rows"), [{"x": (19, 7)}]),
    "vector_add": (
        sample("vector_add"),
        [{"x": (77,), "y": (77,)}, {"x": (64,), "y": (64,)}],
    ),
    "k": (
        TILED_MATMUL.replace("tm=128, tn=512, tk=128", "tm=16, tn=32, tk=8"),
        [{"lhs": (20, 40), "rhs": (20, 70)}, {"lhs": (8, 16), "rhs": (8, 33)}],
    ),
}
LIBRARY = (
    *(f"nl.{name}" for name in ("add", "multiply", "exp", "int32", "bfloat16", "psum", "sbuf")),
    *(f"nisa.{name}" for name in ("tensor_copy", "activation", "nc_transpose", "dma_transpose")),
)


def changed(text: str, rng: random.Random) -> str:
    """The text with one to three changes to its syntax tree."""
    tree = ast.parse(text)
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = [(node, field, k) for node, field, k in _places(tree)]
        node, field, position = rng.choice(places)
        items = getattr(node, field)
        old = items if position is None else items[position]
        new = _replacement(old, tree, rng)
        if isinstance(old, ast.stmt):
            _move(items, position or 0, rng)
        elif position is None:
            setattr(node, field, new)
        else:
            items[position] = new
    return ast.unparse(ast.fix_missing_locations(tree))


def _places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.Module):
            continue
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and field not in {"targets", "target", "optional_vars"}:
                yield node, field, None
            elif isinstance(value, list) and field in {"body", "args", "keywords", "elts"}:
                yield from ((node, field, k) for k in range(len(value)))


def _replacement(old: object, tree: ast.AST, rng: random.Random) -> ast.AST:
    names = sorted({n.id for n in ast.walk(tree) if isinstance(n, ast.Name)})
    match old:
        case ast.Constant(value=int(value)):
            return ast.Constant(rng.choice((value + 1, max(value - 1, 0), value * 2, 0, 1)))
        case ast.Name(id=name):
            sign = rng.choice(("+ 1", "- 1", "* 2", "// 2", "% 2"))
            other = rng.choice((rng.choice(names), f"{name} {sign}", "0"))
            return ast.parse(other, mode="eval").body
        case ast.BinOp(left=left, right=right):
            sign = rng.choice("+-*%")
            given = f"({ast.unparse(left)}) {sign} ({ast.unparse(right)})"
            return ast.parse(given, mode="eval").body
        case ast.Attribute():
            return ast.parse(rng.choice(LIBRARY), mode="eval").body
        case ast.Slice(lower=lower, upper=upper, step=step):
            return ast.Slice(rng.choice((lower, None)), rng.choice((upper, None)), step)
        case ast.Call(func=func, args=args, keywords=keywords) if keywords:
            kept = [word for word in keywords if rng.random() < 0.8]
            return ast.Call(func, args, kept)
        case ast.AST():
            return copy.deepcopy(old)
    raise AssertionError(old)


def _move(body: list[ast.stmt], position: int, rng: random.Random) -> None:
    """A statement dropped, done twice, or done elsewhere in its block."""
    match rng.choice(("drop", "twice", "move")):
        case "drop" if len(body) > 1:
            del body[position]
        case "twice":
            body.insert(rng.randrange(len(body) + 1), copy.deepcopy(body[position]))
        case _:
            body.insert(rng.randrange(len(body)), body.pop(position))


def outcome(text: str, name: str, shapes: Shapes) -> str:
    """How far a kernel can be read; fails where its reading is not what it does."""
    rng = np.random.default_rng(3)
    arrays = {n: rng.normal(size=shape).astype(np.float32) for n, shape in shapes.items()}
    specs = {n: tensor(n, *shape) for n, shape in shapes.items()}
    sizes = {f"{n}{k}": size for n, shape in shapes.items() for k, size in enumerate(shape)}
    try:
        module = parse(Source.of(text, "kernel.py"))
        found = lift(module, name, specs, meter=Meter(BUDGET))
        run = simulate(module, name, arrays, domain=Bounded(), meter=Meter(BUDGET))
    except (SourceError, Unsupported, Exhausted) as reason:
        return type(reason).__name__
    if found.kernel is None:
        return "refused"
    assert problems(found.kernel) == ()
    executed: dict[str, BoundedValue] = {
        output.version.buffer: run.outputs[output.position]
        if output.position is not None
        else run.inputs_after[output.version.buffer]
        for output in found.kernel.outputs
        if output.position is None or output.position < len(run.outputs)
    }
    reals = {n: array.astype(np.float64) for n, array in arrays.items()}
    if any(isinstance(op, Opaque) for op in walk(found.kernel.body)) or not run.complete:
        try:
            evaluate(found.kernel, sizes, Reals(reals), meter=Meter(BUDGET))
        except (Unevaluable, Exhausted) as reason:
            return type(reason).__name__
        return "incomplete"
    reason = disagreement(found.kernel, sizes, reals, executed, Meter(BUDGET))
    assert reason is None or "cannot be evaluated" in reason, reason
    return "agrees" if reason is None else "unevaluable"


@pytest.mark.parametrize("name", KERNELS)
def test_broken_kernels_are_refused_or_read_as_they_run(name: str) -> None:
    text, sizes = KERNELS[name]
    seen: Counter[str] = Counter()
    for seed in range(MUTANTS):
        rng = random.Random(f"{name} {seed}")
        mutant = changed(text, rng)
        try:
            seen[outcome(mutant, name, rng.choice(sizes))] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}\n{mutant}") from error
    assert seen["agrees"] >= MUTANTS // 10
    assert seen["refused"] + seen["incomplete"] >= MUTANTS // 10
