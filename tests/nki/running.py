"""Kernels run on arrays, and lifted to an IR that is compared with the run."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

from migrate.ir.evaluate import evaluate
from migrate.ir.nodes import Kernel, Opaque, walk
from migrate.ir.reals import Reals
from migrate.ir.validate import problems
from migrate.nki.lift import lift
from migrate.nki.simulate import Execution, simulate
from migrate.numerics.bounded import Bounded
from migrate.numerics.dtypes import DType
from migrate.numerics.rounded import Rounded
from tests.nki.kernels import kernel, module, tensor


def run(text: str, *args: Any, name: str = "k", **options: Any) -> Execution[Any]:
    """What a kernel leaves behind, to the end and without anything to complain about."""
    found = simulate(module(text), name, args, domain=Rounded(), **options)
    assert found.complete, (found.happenings, found.specialization.events)
    assert found.happenings == ()
    assert found.specialization.problems == ()
    return found


def lifted(text: str, name: str = "k", target: str = "trn2", **args: Any) -> Kernel:
    """The IR of a kernel, well formed."""
    found = lift(module(text), name, _specs(args), target=target)
    assert found.kernel is not None, found.specialization.events
    assert problems(found.kernel) == ()
    return found.kernel


def opaque(kernel: Kernel) -> list[str]:
    """Why parts of a kernel have no meaning in the IR."""
    return [op.reason for op in walk(kernel.body) if isinstance(op, Opaque)]


def agreeing(text: str, name: str = "k", target: str = "trn2", **args: Any) -> Kernel:
    """The IR of a kernel, checked to compute on reals what a run computes."""
    kernel = lifted(text, name, target, **args)
    assert opaque(kernel) == []
    domain = Bounded()
    found = simulate(module(text), name, args, domain=domain, target=target)
    assert found.complete, (found.happenings, found.specialization.events)
    arrays = {n: a for n, a in args.items() if isinstance(a, np.ndarray)}
    sizes = {f"{n}{k}": size for n, a in arrays.items() for k, size in enumerate(a.shape)}
    values = evaluate(kernel, sizes, Reals({n: a.astype(float) for n, a in arrays.items()}))
    assert values.trouble == ()
    assert kernel.outputs
    for output in kernel.outputs:
        if output.position is not None:
            wanted = found.outputs[output.position]
        else:
            wanted = found.inputs_after[output.version.buffer]
        got = values.outputs[output.version.buffer]
        np.testing.assert_allclose(got, domain.to_array(wanted).reshape(-1), rtol=1e-9, atol=1e-9)
    return kernel


def on_tiles(line: str, parameters: str, **results: str) -> str:
    """A kernel around instructions: its parameters are tiles `<name>_t`, so are its results.

    A result is given as the arguments of its allocation: a shape and a format.
    """
    names = parameters.split(", ")
    body = [
        text
        for name in names
        for text in (
            f"{name}_t = nl.ndarray({name}.shape, dtype={name}.dtype, buffer=nl.sbuf)",
            f"nisa.dma_copy(dst={name}_t, src={name})",
        )
    ]
    body += [f"{name} = nl.ndarray({form}, buffer=nl.sbuf)" for name, form in results.items()]
    body.append(textwrap.dedent(line).strip("\n"))
    for name, form in results.items():
        body += [
            f"{name}_h = nl.ndarray({form}, buffer=nl.shared_hbm)",
            f"nisa.dma_copy(dst={name}_h, src={name})",
        ]
    body.append("return " + ", ".join(f"{name}_h" for name in results))
    return kernel("\n".join(body), parameters)


def troubles(text: str, *args: Any, **options: Any) -> list[str]:
    """What is wrong with the instructions of a kernel, by code."""
    found = simulate(module(text), "k", args, domain=Rounded(), **options)
    return [problem.code for problem in found.specialization.problems]


def _specs(args: Mapping[str, Any]) -> dict[str, object]:
    return {
        n: tensor(n, *a.shape, dtype=DType.of(a.dtype)) if isinstance(a, np.ndarray) else a
        for n, a in args.items()
    }
