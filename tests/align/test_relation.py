"""Proved, refuted or unknown: and never one of the first two without a reason."""

from __future__ import annotations

import numpy as np
import pytest

import migrate
from migrate.case import fills
from tests.pairs import (
    ADD,
    ADD_NKI,
    XY,
    case,
    combined,
    cuda,
    nki,
    outputs,
    relations,
    tensor,
    tiles,
)

OPAQUE = 'float s = x[i]; asm("mov %0, %1;" : "=f"(s) : "f"(s)); out[i] = s + y[i];'


def statuses(left: str, right: str, stated: str | None = None) -> list[str]:
    return [relation.status for relation in relations(left, right, stated)]


def test_the_same_expression_is_proved_at_every_size() -> None:
    assert statuses(ADD, ADD_NKI) == ["proved", "proved"]


def test_another_expression_is_refuted_by_an_element() -> None:
    (first, _) = relations(ADD, combined("subtract"))
    out = outputs(first)["out"]
    assert (out.status, out.agreeing) == ("refuted", 0.0)
    assert out.witness is not None
    assert out.witness.found_by == "evaluation"
    assert out.witness.sizes == {"n": 100}
    assert out.witness.cuda != out.witness.nki


def test_the_witness_is_what_both_compute() -> None:
    result = migrate.compare_text(
        cuda("out[i] = x[i] * y[i];"), combined("maximum"), case=case(), run="never"
    )
    (finding,) = result.findings
    witness = finding.witness
    assert witness is not None
    made = {}
    for name in ("x", "y"):
        made[name] = fills.make(
            witness.inputs.family, (100,), np.dtype("float32"), name=name, seed=0
        )  # type: ignore[arg-type]
    x, y = (float(made[name][witness.index]) for name in ("x", "y"))
    assert witness.cuda == pytest.approx(x * y)
    assert witness.nki == pytest.approx(max(x, y))


# -- what is not understood -------------------------------------------------------------


@pytest.mark.parametrize("right", [ADD_NKI, combined("subtract")], ids=["right", "wrong"])
def test_an_opaque_statement_in_cuda_decides_nothing(right: str) -> None:
    left = cuda(OPAQUE)
    for relation in relations(left, right):
        assert relation.status == "unknown"
        assert outputs(relation)["out"].witness is None


@pytest.mark.parametrize("left", [ADD, cuda("out[i] = 2.0f;")], ids=["right", "wrong"])
def test_an_opaque_instruction_in_nki_decides_nothing(left: str) -> None:
    right = tiles("nisa.not_an_instruction(dst=a, data1=a, data2=b)")
    for relation in relations(left, right):
        assert relation.status == "unknown"
        assert outputs(relation)["out"].witness is None


def test_what_a_statement_that_is_not_understood_assigns_is_not_known_after_it() -> None:
    left = cuda('float s = x[i]; asm("unheard.of %0, %1;" : "=f"(s) : "f"(s)); out[i] = s;')
    copied = tiles("nisa.tensor_copy(dst=a, src=a)")
    assert statuses(left, copied) == ["unknown", "unknown"]


def test_what_does_not_hang_on_it_is_decided_all_the_same() -> None:
    left = cuda("two[i] = x[i]; out[i] = x[i] + y[i];", f"{XY}, float* two")
    right = tiles(
        """
        q = nl.ndarray((1, size), dtype=x.dtype, buffer=nl.sbuf)
        nisa.not_an_instruction(dst=q)
        nisa.dma_copy(dst=two[start : start + size].reshape((1, size)), src=q)
        nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.subtract)
        """
    )
    two = "two = nl.ndarray((n,), dtype=x.dtype, buffer=nl.shared_hbm)\n    for start"
    right = right.replace("for start", two).replace("return out", "return out, two")
    stated = case(
        tensor("x"), tensor("y"), tensor("out", role="out"), tensor("two", role="out", nki_out=1)
    )
    for relation in relations(left, right, stated):
        found = outputs(relation)
        assert found["out"].status == "refuted"
        assert found["two"].status == "unknown"
        assert found["two"].witness is None


def test_an_argument_that_is_handed_back_stays_what_it_is() -> None:
    """Result 1 is x as it came; what is computed from x is computed from x."""
    left = cuda("two[i] = y[i]; out[i] = x[i] + y[i];", f"{XY}, float* two")
    right = ADD_NKI.replace("return out", "return out, x")
    stated = case(
        tensor("x"), tensor("y"), tensor("out", role="out"), tensor("two", role="out", nki_out=1)
    )
    for relation in relations(left, right, stated):
        found = outputs(relation)
        assert found["out"].status == "proved"
        assert found["two"].status != "proved"


def test_some_elements_not_understood_leave_the_others() -> None:
    left = cuda(
        """
        float s = x[i];
        if (i < 50) asm("mov %0, %1;" : "=f"(s) : "f"(s));
        out[i] = s + y[i];
        """
    )
    proved = relations(left, ADD_NKI)
    assert {relation.status for relation in proved} == {"unknown"}
    for relation in relations(left, combined("subtract")):
        out = outputs(relation)["out"]
        assert out.status in {"unknown", "refuted"}
        assert out.witness is None or out.witness.index[0] >= 50


# -- what the reference leaves open -----------------------------------------------------


def test_a_read_outside_a_tensor_refutes_nothing() -> None:
    left = cuda("out[i] = x[i] + (i > 0 ? y[i] : y[n]);")
    for relation in relations(left, ADD_NKI):
        out = outputs(relation)["out"]
        assert (out.status, out.undefined, out.mismatches) == ("unknown", 1, ())
        assert {trouble.kind for trouble in relation.cuda_trouble} >= {"out-of-range"}


def test_elements_that_are_defined_still_refute() -> None:
    left = cuda("out[i] = x[i] + (i > 0 ? y[i] : y[n]);")
    for relation in relations(left, combined("subtract")):
        out = outputs(relation)["out"]
        assert out.status == "refuted"
        assert out.witness is not None
        assert out.witness.index != (0,)
        assert all(0 not in mismatch.elements for mismatch in out.mismatches)


def test_a_write_outside_a_tensor_leaves_the_rest_proved() -> None:
    left = cuda("out[i] = x[i] + y[i];", guarded=False)
    for relation in relations(left, ADD_NKI):
        assert relation.status == "proved"
        assert any(trouble.kind == "out-of-range" for trouble in relation.cuda_trouble)


def test_a_race_for_some_elements_leaves_the_others() -> None:
    left = cuda("out[i < n / 2 ? i : n / 2] = x[i] + y[i];")
    right = tiles("nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.subtract)")
    for relation in relations(left, right, case(n=[100])):
        out = outputs(relation)["out"]
        assert out.undefined == 1
        assert all(50 not in mismatch.elements for mismatch in out.mismatches)


def test_a_race_in_shared_memory_leaves_everything_open() -> None:
    left = cuda(
        """
        __shared__ float s[1];
        s[0] = x[i];
        __syncthreads();
        out[i] = s[0] + y[i];
        """
    )
    for relation in relations(left, combined("subtract")):
        assert relation.status == "unknown"


def test_a_variable_without_a_value_refutes_nothing() -> None:
    for relation in relations(cuda("float s; out[i] = s + y[i];"), ADD_NKI):
        out = outputs(relation)["out"]
        assert (out.status, out.undefined) == ("unknown", out.shape[0])


def test_an_output_has_no_content_before() -> None:
    """`out` is not `inout`: what a kernel reads of it is not defined."""
    for relation in relations(cuda("out[i] += x[i] + y[i];"), ADD_NKI):
        assert relation.status == "unknown"
        assert any(trouble.kind == "unwritten-read" for trouble in relation.cuda_trouble)


# -- results that do not fit ------------------------------------------------------------


def test_a_result_that_is_not_there() -> None:
    left = cuda("out[i] = x[i] + y[i]; two[i] = x[i];", f"{XY}, float* two")
    stated = case(
        tensor("x"), tensor("y"), tensor("out", role="out"), tensor("two", role="out", nki_out=1)
    )
    for relation in relations(left, ADD_NKI, stated):
        found = outputs(relation)
        assert found["out"].status == "proved"
        assert (found["two"].status, found["two"].fits) == ("unknown", False)
        assert relation.status == "unknown"


@pytest.mark.parametrize("shape", ["(n + 1,)", "(n, 1)", "(1, n)", "((n + 511) // 512 * 512,)"])
def test_a_result_of_another_shape_is_never_proved(shape: str) -> None:
    flat = {"(n, 1)": ".reshape((n,))", "(1, n)": ".reshape((n,))"}.get(shape, "")
    right = ADD_NKI.replace("(n,), dtype", f"{shape}, dtype").replace(
        "dst=out[start", f"dst=out{flat}[start"
    )
    for relation in relations(ADD, right):
        out = outputs(relation)["out"]
        assert (out.status, out.fits) == ("unknown", False)


def test_one_wrong_output_of_two() -> None:
    left = cuda("out[i] = x[i] + y[i]; two[i] = x[i] * y[i];", f"{XY}, float* two")
    right = tiles(
        """
        nisa.dma_copy(dst=two[start : start + size].reshape((1, size)), src=a)
        nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
        """
    )
    two = "two = nl.ndarray((n,), dtype=x.dtype, buffer=nl.shared_hbm)\n    for start"
    right = right.replace("for start", two).replace("return out", "return out, two")
    stated = case(
        tensor("x"), tensor("y"), tensor("out", role="out"), tensor("two", role="out", nki_out=1)
    )
    for relation in relations(left, right, stated):
        found = outputs(relation)
        assert (found["out"].status, found["two"].status) == ("proved", "refuted")
        assert relation.status == "refuted"


# -- in place, integers, scalars --------------------------------------------------------

IN_PLACE = cuda("x[i] += y[i];", "float* x, const float* y, int n")
IN_PLACE_CASE = case(tensor("x", role="inout"), tensor("y"))


@pytest.mark.parametrize(("operator", "status"), [("add", "proved"), ("multiply", "refuted")])
def test_in_place(operator: str, status: str) -> None:
    right = tiles(f"nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.{operator})", into="x")
    assert set(statuses(IN_PLACE, right, IN_PLACE_CASE)) == {status}


def test_in_place_and_never_written() -> None:
    for relation in relations(IN_PLACE, nki("return x"), IN_PLACE_CASE):
        out = outputs(relation)["x"]
        assert out.status == "refuted"
        assert [d.what for m in out.mismatches for d in m.differences] == ["unwritten"]


def test_in_place_and_written_beyond() -> None:
    left = cuda("if (i % 2 == 0) x[i] += y[i];", "float* x, const float* y, int n")
    right = tiles("nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)", into="x")
    for relation in relations(left, right, IN_PLACE_CASE):
        out = outputs(relation)["x"]
        assert [d.what for m in out.mismatches for d in m.differences] == ["extra-write"]
        assert out.agreeing == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("expression", "operator", "status"),
    [
        ("x[i] + y[i]", "add", "proved"),
        ("x[i] - y[i]", "add", "refuted"),
        ("x[i] * y[i]", "multiply", "proved"),
    ],
)
def test_integers(expression: str, operator: str, status: str) -> None:
    left = cuda(f"out[i] = {expression};", "const int* x, const int* y, int* out, int n")
    stated = case(
        tensor("x", dtype="int32"),
        tensor("y", dtype="int32"),
        tensor("out", role="out", dtype="int32"),
    )
    assert set(statuses(left, combined(operator), stated)) == {status}


@pytest.mark.parametrize(("number", "status"), [("0.5", "proved"), ("0.25", "refuted")])
def test_a_scalar_that_the_nki_kernel_has_written_out(number: str, status: str) -> None:
    left = cuda("out[i] = a * x[i] + y[i];", f"{XY}, float a")
    right = tiles(
        f"nisa.scalar_tensor_tensor(dst=a, data=a, op0=nl.multiply, operand0={number},"
        " op1=nl.add, operand1=b)"
    )
    scalar = '[[scalar]]\nname = "a"\nvalue = 0.5\ndtype = "float32"\ncuda = "a"\n'
    assert set(statuses(left, right, case() + scalar)) == {status}


# -- layouts ----------------------------------------------------------------------------

MATRIX = """
__global__ void k(const float* x, float* out, int r, int c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < r * c) out[i] = 2.0f * x[i];
}
"""
MATRIX_NKI = nki(
    """
    rows, cols = x.shape
    out = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, 128):
        size = min(128, rows - start)
        t = nl.ndarray((size, cols), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[start : start + size, :])
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out[start : start + size, :], src=t)
    return out
    """,
    "x",
)


def matrix_case(layout_in: str | None, layout_out: str | None) -> str:
    def one(name: str, role: str, layout: str | None) -> str:
        given = {"nki_layout": layout} if layout else {}
        return tensor(name, role=role, shape=["R", "C"], **given)

    return (
        '[cuda]\ngrid = ["ceil_div(R * C, 128)"]\nblock = [128]\n'
        "[sizes]\nR = [10, 140]\nC = [24, 5]\n"
        + one("x", "in", layout_in)
        + one("out", "out", layout_out)
        + '[[scalar]]\nname = "r"\nvalue = "R"\ndtype = "int32"\ncuda = "r"\n'
        '[[scalar]]\nname = "c"\nvalue = "C"\ndtype = "int32"\ncuda = "c"\n'
    )


@pytest.mark.parametrize(
    ("layout_in", "layout_out", "status"),
    [
        (None, None, "proved"),
        ("transpose(1, 0)", "transpose(1, 0)", "proved"),
        ("pad(R + 3, C + 2)", "pad(R + 3, C + 2)", "proved"),
        ("reshape(R * C, 1)", "reshape(R * C, 1)", "proved"),
        ("transpose(1, 0) reshape(C, R)", "transpose(1, 0)", "proved"),
    ],
)
def test_layouts(layout_in: str | None, layout_out: str | None, status: str) -> None:
    stated = matrix_case(layout_in, layout_out)
    assert set(statuses(MATRIX, MATRIX_NKI, stated)) == {status}


def test_a_transpose_on_one_side_alone() -> None:
    """The result has the shape of the turned input: it is not what is asked for."""
    for relation in relations(MATRIX, MATRIX_NKI, matrix_case("transpose(1, 0)", None)):
        assert relation.status != "proved"
    right = MATRIX_NKI.replace("out = nl.ndarray((rows, cols)", "out = nl.ndarray((cols, rows)")
    right = right.replace("dst=out[start", "dst=out.reshape((rows, cols))[start")
    for relation in relations(MATRIX, right, matrix_case("transpose(1, 0)", None)):
        out = outputs(relation)["out"]
        assert out.status == "refuted"
        assert {d.what for m in out.mismatches for d in m.differences} == {"element"}


# -- mismatches -------------------------------------------------------------------------


def test_elements_that_differ_alike_are_one_mismatch() -> None:
    (_, second) = relations(ADD, combined("subtract"))
    out = outputs(second)["out"]
    (mismatch,) = out.mismatches
    assert mismatch.count == 700
    assert mismatch.nki_op is not None
    assert mismatch.cuda_op is not None
    assert not mismatch.overwritten


def test_what_was_right_before_it_was_overwritten() -> None:
    right = ADD_NKI.replace(
        "dst=out[start : start + size]", "dst=out[start // 2 : start // 2 + size]"
    )
    (relation,) = relations(ADD, right, case(n=[1024]))
    by_past = {m.overwritten: m for m in outputs(relation)["out"].mismatches if m.nki_op}
    assert (int(by_past[True].elements[0]), by_past[True].count) == (256, 256)
    assert (int(by_past[False].elements[0]), by_past[False].count) == (512, 256)


def test_the_share_that_agrees() -> None:
    right = ADD_NKI.replace("range(0, n, 512)", "range(0, n, 1024)")
    (relation,) = relations(ADD, right, case(n=[1024]))
    out = outputs(relation)["out"]
    assert (out.agreeing, out.status) == (0.5, "refuted")
    assert 0.5 <= out.alike < 1.0


CLAMPED = """
nisa.tensor_scalar(
    dst=a, data=a, op0=nl.minimum, operand0={high}, op1=nl.maximum, operand1=-{high}
)
"""


@pytest.mark.parametrize(
    ("expression", "compute"),
    [
        ("fmaxf(fminf(x[i], 1000.0f), -1000.0f)", CLAMPED.format(high=2000.0)),
        ("fminf(x[i], 1.0e6f)", ""),
        ("x[i] > 5.0e5f ? 0.0f : x[i]", ""),
        ("isnan(x[i]) ? 0.0f : x[i]", ""),
        ("isinf(x[i]) ? 7.0f : x[i]", ""),
        ("x[i] != x[i] ? 0.0f : x[i]", ""),
    ],
)
def test_what_usual_inputs_never_reach_is_refuted(expression: str, compute: str) -> None:
    assert statuses(cuda(f"out[i] = {expression};"), tiles(compute), case(n=[100])) == ["refuted"]


@pytest.mark.parametrize("sentinel", ["-1.0e9f", "-3.402823466e+38f"])
def test_a_number_that_stands_for_infinity_is_no_threshold(sentinel: str) -> None:
    left = cuda(f"out[i] = fmaxf(fmaxf({sentinel}, x[i]), y[i]);")
    right = tiles("nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.maximum)")
    assert "refuted" not in statuses(left, right, case(n=[100]))
