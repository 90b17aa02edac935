"""Kernels run on arrays, and lifted to an IR that is compared with the run."""

from __future__ import annotations

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
from tests.nki.kernels import module, tensor


def run(text: str, *args: Any, name: str = "k", **options: Any) -> Execution[Any]:
    """What a kernel leaves behind, to the end and without anything to complain about."""
    found = simulate(module(text), name, args, domain=Rounded(), **options)
    assert found.complete, (found.happenings, found.specialization.events)
    assert found.happenings == ()
    assert found.specialization.problems == ()
    return found


def lifted(text: str, name: str = "k", **args: Any) -> Kernel:
    """The IR of a kernel, well formed."""
    found = lift(module(text), name, _specs(args))
    assert found.kernel is not None, found.specialization.events
    assert problems(found.kernel) == ()
    return found.kernel


def opaque(kernel: Kernel) -> list[str]:
    """Why parts of a kernel have no meaning in the IR."""
    return [op.reason for op in walk(kernel.body) if isinstance(op, Opaque)]


def agreeing(text: str, name: str = "k", **args: Any) -> Kernel:
    """The IR of a kernel, checked to compute on reals what a run computes."""
    kernel = lifted(text, name, **args)
    assert opaque(kernel) == []
    domain = Bounded()
    found = simulate(module(text), name, args, domain=domain)
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


def _specs(args: Mapping[str, Any]) -> dict[str, object]:
    return {
        n: tensor(n, *a.shape, dtype=DType.of(a.dtype)) if isinstance(a, np.ndarray) else a
        for n, a in args.items()
    }
