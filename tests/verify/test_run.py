"""Both kernels on the same inputs: what passes, what fails, and what cannot be told."""

from __future__ import annotations

import numpy as np
import pytest

from migrate.budget import Budget
from migrate.pipeline.launches import launch_at
from migrate.results import Inputs
from migrate.verify.run import Pair, Ran, run
from tests.pairs import ADD, ADD_NKI, XY, case, combined, cuda, nki, read, tensor, tiles

NORMAL, WHOLE = Inputs(family="normal"), Inputs(family="int")
INTEGERS = case(
    tensor("x", dtype="int32"), tensor("y", dtype="int32"), tensor("out", role="out", dtype="int32")
)


def ran(
    left: str,
    right: str,
    stated: str | None = None,
    *,
    inputs: Inputs = NORMAL,
    position: int = 0,
    budget: Budget | None = None,
) -> Ran:
    opened, positions = read(left, right, stated)
    pair = Pair(
        program=opened.program,
        module=opened.module,
        nki_kernel=opened.nki.name,
        target="trn2",
        args={},
        folder=None,
    )
    binding = positions.readings[position].binding
    return run(pair, launch_at(opened, binding), binding, inputs, budget or Budget())


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("inputs", [NORMAL, WHOLE], ids=["normal", "int"])
def test_the_same_function_passes(position: int, inputs: Inputs) -> None:
    done = ran(ADD, ADD_NKI, inputs=inputs, position=position)
    assert (done.run.status, done.run.reason) == ("pass", None)
    (out,) = done.run.outputs
    assert (out.mismatched, out.elements) == (0, (100, 700)[position])
    assert done.run.sizes == {"n": (100, 700)[position]}


def test_another_function_fails_with_its_first_element() -> None:
    done = ran(ADD, combined("subtract"))
    (out,) = done.run.outputs
    assert (done.run.status, out.status) == ("fail", "fail")
    assert out.mismatched == 100
    assert out.first_mismatch == (0,)
    assert out.max_abs is not None
    assert out.allowed is not None
    assert out.max_abs > out.allowed


def test_one_wrong_output_of_two_fails_the_run() -> None:
    left = cuda("out[i] = x[i] + y[i]; two[i] = x[i];", f"{XY}, float* two")
    right = tiles(
        """
        nisa.dma_copy(dst=two[start : start + size].reshape((1, size)), src=b)
        nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
        """
    )
    two = "two = nl.ndarray((n,), dtype=x.dtype, buffer=nl.shared_hbm)\n    for start"
    right = right.replace("for start", two).replace("return out", "return out, two")
    stated = case(
        tensor("x"), tensor("y"), tensor("out", role="out"), tensor("two", role="out", nki_out=1)
    )
    done = ran(left, right, stated)
    assert [(o.name, o.status) for o in done.run.outputs] == [("out", "pass"), ("two", "fail")]
    assert done.run.status == "fail"


def test_another_order_of_rounding_passes() -> None:
    left = cuda("out[i] = x[i] * 3.0f + y[i] * 3.0f;")
    right = tiles(
        "nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)\n"
        "nisa.tensor_scalar(dst=a, data=a, op0=nl.multiply, operand0=3.0)"
    )
    assert ran(left, right).run.status == "pass"


# -- integers ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "operator", "status"),
    [("x[i] * y[i]", "multiply", "pass"), ("x[i] * y[i]", "add", "fail")],
)
def test_integers_are_compared_exactly(expression: str, operator: str, status: str) -> None:
    left = cuda(f"out[i] = {expression};", "const int* x, const int* y, int* out, int n")
    done = ran(left, combined(operator), INTEGERS)
    assert done.run.status == status


def test_integers_that_float32_does_not_hold_fail() -> None:
    left = cuda("out[i] = x[i] + 16777217;", "const int* x, const int* y, int* out, int n")
    right = tiles("nisa.tensor_scalar(dst=a, data=a, op0=nl.add, operand0=16777217)")
    assert ran(left, right, INTEGERS).run.status == "fail"


# -- in place, and what is left alone ---------------------------------------------------

IN_PLACE = cuda("if (i % 2 == 0) x[i] += y[i];", "float* x, const float* y, int n")
IN_PLACE_CASE = case(tensor("x", role="inout"), tensor("y"))
EVEN = """
n = x.shape[0]
half = (n + 1) // 2
a = nl.ndarray((1, half), dtype=x.dtype, buffer=nl.sbuf)
b = nl.ndarray((1, half), dtype=y.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:n:2].reshape((1, half)))
nisa.dma_copy(dst=b, src=y[0:n:2].reshape((1, half)))
nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
nisa.dma_copy(dst=RESULT[0:n:2].reshape((1, half)), src=a)
return RESULT
"""


def test_in_place_what_is_not_updated_stays() -> None:
    assert ran(IN_PLACE, nki(EVEN.replace("RESULT", "x")), IN_PLACE_CASE).run.status == "pass"
    whole = tiles("nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)", into="x")
    assert ran(IN_PLACE, whole, IN_PLACE_CASE).run.status == "fail"


def test_elements_that_neither_writes_are_not_held_against_it() -> None:
    left = cuda("if (i % 2 == 0) out[i] = x[i] + y[i];")
    allocated = "out = nl.ndarray((n,), dtype=x.dtype, buffer=nl.shared_hbm)\nhalf ="
    right = nki(EVEN.replace("RESULT", "out").replace("half =", allocated, 1))
    assert ran(left, right).run.status == "pass"


def test_elements_that_cuda_alone_writes_are() -> None:
    allocated = "out = nl.ndarray((n,), dtype=x.dtype, buffer=nl.shared_hbm)\nhalf ="
    right = nki(EVEN.replace("RESULT", "out").replace("half =", allocated, 1))
    done = ran(ADD, right)
    assert done.run.outputs[0].mismatched == 50


# -- results that do not fit ------------------------------------------------------------


def test_a_result_that_is_not_there_fails() -> None:
    left = cuda("out[i] = x[i] + y[i]; two[i] = x[i];", f"{XY}, float* two")
    stated = case(
        tensor("x"), tensor("y"), tensor("out", role="out"), tensor("two", role="out", nki_out=1)
    )
    done = ran(left, ADD_NKI, stated)
    assert [(o.name, o.status, o.mismatched) for o in done.run.outputs] == [
        ("out", "pass", 0),
        ("two", "fail", 100),
    ]


@pytest.mark.parametrize("shape", ["(n + 1,)", "(n, 1)"])
def test_a_result_of_another_shape_fails(shape: str) -> None:
    flat = ".reshape((n,))" if shape == "(n, 1)" else ""
    right = ADD_NKI.replace("(n,), dtype", f"{shape}, dtype")
    done = ran(ADD, right.replace("dst=out[start", f"dst=out{flat}[start"))
    assert done.run.status == "fail"
    assert done.run.outputs[0].first_mismatch is None


# -- what cannot be run, or not judged --------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
def test_a_result_in_another_format_is_judged_by_its_numbers(dtype: str) -> None:
    right = ADD_NKI.replace("(n,), dtype=x.dtype", f"(n,), dtype=nl.{dtype}")
    whole = ran(ADD, right, inputs=WHOLE)
    assert (whole.run.status, whole.run.reason) == ("pass", None)
    done = ran(ADD, right)
    (out,) = done.run.outputs
    assert done.run.reason is None
    assert out.elements == 100
    assert out.max_abs is not None
    assert out.max_abs > 1e-5
    assert done.run.status == ("fail" if dtype == "int32" else "pass")


def test_a_stated_number_is_meant_as_it_is_stated() -> None:
    # 1.0f - 0.9f is 0.10000002 and 1.0 - 0.9 rounds to 0.1: both stand for a tenth.
    left = cuda("out[i] = a * x[i] + (1.0f - a) * y[i];", f"{XY}, float a")
    right = tiles(
        """
        nisa.tensor_scalar(dst=b, data=b, op0=nl.multiply, operand0=1.0 - a_)
        nisa.scalar_tensor_tensor(
            dst=a, data=a, op0=nl.multiply, operand0=a_, op1=nl.add, operand1=b
        )
        """,
        parameters="x, y, a_",
    )
    scalar = '[[scalar]]\nname = "a"\nvalue = 0.9\ndtype = "float32"\ncuda = "a"\nnki = "a_"\n'
    stated = case(tensor("x"), tensor("y"), tensor("out", role="out"), scalar)
    assert ran(left, right, stated).run.status == "pass"
    assert ran(left, right.replace("1.0 - a_", "1.000001 - a_"), stated).run.status == "fail"


def test_what_is_not_understood_is_not_run() -> None:
    done = ran(ADD, tiles("nisa.not_an_instruction(dst=a)"))
    assert done.run.status == "not-run"
    assert "not_an_instruction" in (done.run.reason or "")
    assert (done.inputs, done.cuda, done.faults) == (None, None, ())


def test_a_reference_that_stops_is_its_own_fault() -> None:
    done = ran(cuda("out[i] = x[i] + y[i];", guarded=False), ADD_NKI)
    assert done.run.status == "not-run"
    assert [fault.kind for fault in done.faults] == ["out-of-bounds"]
    assert "the CUDA kernel is at fault" in (done.run.reason or "")


def test_a_reference_that_races_is_no_measure() -> None:
    racing = cuda("out[i < 10 ? i : 10] = x[i] + y[i];")
    for right in (ADD_NKI, combined("subtract")):
        done = ran(racing, right)
        assert done.run.status == "not-run"
        assert [fault.kind for fault in done.faults] == ["conflicting-stores"]


def test_one_number_from_every_thread_is_no_race() -> None:
    left = cuda("out[i] = x[i]; out[0] = x[0];")
    done = ran(left, tiles("nisa.tensor_copy(dst=a, src=a)"))
    assert (done.run.status, done.faults) == ("pass", ())


def test_one_sum_in_several_orders_is_no_race() -> None:
    """Each thread adds up all elements, starting at its own, and writes the same cell."""
    left = cuda(
        """
        float s = 0.0f;
        for (int c = 0; c < n; ++c) s += x[(i + c) % n];
        out[0] = s;
        """
    )
    right = nki(
        """
        n = x.shape[0]
        out = nl.ndarray((1,), dtype=x.dtype, buffer=nl.shared_hbm)
        t = nl.ndarray((1, n), dtype=x.dtype, buffer=nl.sbuf)
        r = nl.ndarray((1, 1), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x.reshape((1, n)))
        nisa.tensor_reduce(dst=r, op=nl.add, data=t, axis=1)
        nisa.dma_copy(dst=out.reshape((1, 1)), src=r)
        return out
        """
    )
    stated = case(tensor("x"), tensor("y"), tensor("out", role="out", shape=[1]), n=[50])
    assert ran(left, right, stated).run.status == "pass"


def test_an_unset_variable_that_matters_is_no_measure() -> None:
    done = ran(cuda("float s; out[i] = s + x[i];"), combined("subtract"))
    assert done.run.status == "not-run"
    assert [fault.kind for fault in done.faults] == ["uninitialised"]


def test_a_budget_ends_a_run() -> None:
    done = ran(ADD, ADD_NKI, budget=Budget(steps=10))
    assert done.run.status == "not-run"
    assert not done.cut_short
    assert done.run.reason


def test_equal_inputs_give_equal_runs() -> None:
    left, right = ran(ADD, combined("subtract")), ran(ADD, combined("subtract"))
    assert left.run == right.run
    assert left.inputs is not None
    assert right.inputs is not None
    assert all(np.array_equal(left.inputs[name], right.inputs[name]) for name in left.inputs)
