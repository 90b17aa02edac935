"""A reading is believed only where it gives what the run gave."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from migrate.budget import Budget, Meter
from migrate.ir.nodes import Kernel, Map, Parallel
from migrate.numerics.dtypes import DType
from migrate.numerics.errors import BoundedValue
from migrate.results import Inputs
from migrate.rules.rule import Reading
from migrate.verify.agreement import cuda_disagreement, disagreement, nki_disagreement
from migrate.verify.run import Ran
from tests.pairs import ADD, ADD_NKI, case, combined, cuda, read, tensor, tiles
from tests.verify.test_run import ran


def meter() -> Meter:
    return Meter(Budget(), "checking")


def kernels(left: str, right: str, stated: str | None = None) -> tuple[Kernel, Kernel, Reading]:
    reading = read(left, right, stated)[1].readings[0]
    assert reading.cuda is not None
    assert reading.nki is not None
    return reading.cuda, reading.nki, reading


def test_both_readings_agree_with_their_runs() -> None:
    for right in (ADD_NKI, combined("subtract")):
        left_ir, right_ir, reading = kernels(ADD, right)
        done = ran(ADD, right)
        assert cuda_disagreement(left_ir, reading.binding, done, meter()) is None
        assert nki_disagreement(right_ir, reading.binding, done, meter()) is None


def test_a_reading_of_another_kernel_does_not() -> None:
    left_ir, right_ir, reading = kernels(cuda("out[i] = x[i] - y[i];"), combined("subtract"))
    done = ran(ADD, ADD_NKI)
    for why in (
        cuda_disagreement(left_ir, reading.binding, done, meter()),
        nki_disagreement(right_ir, reading.binding, done, meter()),
    ):
        assert why is not None
        assert why.startswith("element 0 of out is ")
        assert " in its reading and " in why


def test_integers_agree_exactly() -> None:
    stated = case(
        tensor("x", dtype="int32"),
        tensor("y", dtype="int32"),
        tensor("out", role="out", dtype="int32"),
    )
    left = cuda("out[i] = x[i] * y[i];", "const int* x, const int* y, int* out, int n")
    left_ir, right_ir, reading = kernels(left, combined("multiply"), stated)
    done = ran(left, combined("multiply"), stated, inputs=Inputs(family="int"))
    assert cuda_disagreement(left_ir, reading.binding, done, meter()) is None
    assert nki_disagreement(right_ir, reading.binding, done, meter()) is None


def test_a_run_that_was_not_made_says_nothing() -> None:
    left_ir, right_ir, reading = kernels(ADD, ADD_NKI)
    nothing = Ran(ran(ADD, tiles("nisa.not_an_instruction(dst=a)")).run)
    assert cuda_disagreement(left_ir, reading.binding, nothing, meter()) is None
    assert nki_disagreement(right_ir, reading.binding, nothing, meter()) is None


def test_what_nobody_wrote_holds_anything() -> None:
    """The run finds some number where the reading has none: no contradiction."""
    left = cuda("float s; out[i] = s + x[i];")
    left_ir, _, reading = kernels(left, ADD_NKI)
    inputs = {"x": np.ones(100, np.float32), "y": np.ones(100, np.float32)}
    found = {"out": BoundedValue(DType.FLOAT32, np.full(100, 1.0))}
    sizes = reading.binding.sizes
    assert disagreement(left_ir, sizes, inputs, found, meter()) is not None
    assert disagreement(left_ir, sizes, inputs, found, meter(), undefined=True) is None


@pytest.mark.parametrize(("value", "agrees"), [(2.0, True), (2.0000001, True), (2.1, False)])
def test_the_bound_decides(value: float, agrees: bool) -> None:
    left_ir, _, reading = kernels(ADD, ADD_NKI)
    inputs = {"x": np.ones(100, np.float32), "y": np.ones(100, np.float32)}
    bound = np.full(100, 1e-6)
    found = BoundedValue(
        DType.FLOAT32,
        np.full(100, value),
        bound=bound,
        deviation=bound,
        coherent=bound,
        worst=bound,
    )
    why = disagreement(left_ir, reading.binding.sizes, inputs, {"out": found}, meter())
    assert (why is None) == agrees


def test_an_element_in_doubt_is_left_out() -> None:
    left_ir, _, reading = kernels(ADD, ADD_NKI)
    inputs = {"x": np.ones(100, np.float32), "y": np.ones(100, np.float32)}
    value = np.full(100, 2.0)
    value[7] = 5.0
    doubt = np.zeros(100, np.bool_)
    exact = {"out": BoundedValue(DType.FLOAT32, value)}
    why = disagreement(left_ir, reading.binding.sizes, inputs, exact, meter())
    assert why == "element 7 of out is 2 in its reading and 5 in its run"
    doubt[7] = True
    unsure = {"out": BoundedValue(DType.FLOAT32, value, ambiguous=doubt)}
    assert disagreement(left_ir, reading.binding.sizes, inputs, unsure, meter()) is None


def test_another_number_of_elements() -> None:
    left_ir, _, reading = kernels(ADD, ADD_NKI)
    inputs = {"x": np.ones(100, np.float32), "y": np.ones(100, np.float32)}
    found = {"out": BoundedValue(DType.FLOAT32, np.full(99, 2.0))}
    why = disagreement(left_ir, reading.binding.sizes, inputs, found, meter())
    assert why == "out has 100 elements in its reading, 99 in its run"


def test_a_wrong_reading_is_not_used() -> None:
    """A lifter's mistake, planted: the run contradicts it, and nothing is refuted by it."""
    left_ir, right_ir, reading = kernels(ADD, ADD_NKI)

    def spoiled(block: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(
            replace(op, operator="subtract")
            if isinstance(op, Map) and op.operator == "add"
            else replace(op, body=spoiled(op.body))
            if isinstance(op, Parallel)
            else op
            for op in block
        )

    wrong = replace(right_ir, body=spoiled(right_ir.body))
    assert wrong != right_ir
    assert nki_disagreement(wrong, reading.binding, ran(ADD, ADD_NKI), meter()) is not None
    assert cuda_disagreement(left_ir, reading.binding, ran(ADD, ADD_NKI), meter()) is None
