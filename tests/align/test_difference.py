"""Where two expressions part, and what that is called."""

from __future__ import annotations

import pytest

from migrate.align.difference import Difference, differences, similarity
from migrate.align.relation import Relation
from migrate.ir.forms import Affine, Combine, Element, Form, Number, Part, walk
from migrate.ir.normal import meaning
from migrate.ir.wording import said
from tests.pairs import ADD_NKI, XY, case, cuda, outputs, read, relations, tensor, tiles


def parted(expression: str, compute: str) -> list[Difference]:
    """The differences of a CUDA expression and NKI instructions, at n = 100."""
    relation = related(expression, compute)
    return [d for m in outputs(relation)["out"].mismatches for d in m.differences]


def related(expression: str, compute: str) -> Relation:
    (relation,) = relations(cuda(f"out[i] = {expression};"), tiles(compute), case(n=[100]))
    return relation


def binary(operator: str, left: str = "a", right: str = "b") -> str:
    return f"nisa.tensor_tensor(dst=a, data1={left}, data2={right}, op=nl.{operator})"


def scalar(operator: str, number: float) -> str:
    return f"nisa.tensor_scalar(dst=a, data=a, op0=nl.{operator}, operand0={number})"


@pytest.mark.parametrize(
    ("expression", "compute", "what", "cuda_text", "nki_text"),
    [
        ("x[i] * y[i]", binary("maximum"), "operator", "x[i0] * y[i0]", "max(x[i0], y[i0])"),
        ("x[i] + y[i]", binary("subtract"), "sign", "y[i0]", "-y[i0]"),
        ("x[i] + y[i]", binary("add", right="a"), "tensor", "y[i0]", "x[i0]"),
        ("2.0f * x[i]", scalar("multiply", 3.0), "constant", "2", "3"),
        ("x[i] + 1.0f", scalar("add", 2.0), "constant", "1", "2"),
        ("expf(x[i])", binary("add"), "operator", "exp(x[i0])", "x[i0] + y[i0]"),
    ],
)
def test_what_it_is_called(
    expression: str, compute: str, what: str, cuda_text: str, nki_text: str
) -> None:
    (difference,) = parted(expression, compute)
    assert (difference.what, said(difference.cuda), said(difference.nki)) == (
        what,
        cuda_text,
        nki_text,
    )


def test_the_smallest_piece_is_named() -> None:
    """One wrong operand deep inside an expression, and not the whole of it."""
    (difference,) = parted(
        "expf(fmaxf(x[i] + y[i], 3.0f))",
        "\n".join(
            (
                binary("subtract"),
                scalar("maximum", 3.0),
                "nisa.activation(dst=a, op=nl.exp, data=a)",
            )
        ),
    )
    assert (difference.what, said(difference.nki)) == ("sign", "-y[i0]")


def test_two_mistakes_are_two_differences() -> None:
    found = parted(
        "fmaxf(2.0f * x[i], 1.0f) ",
        "\n".join((scalar("multiply", 3.0), scalar("maximum", 5.0))),
    )
    assert sorted((d.what, said(d.cuda), said(d.nki)) for d in found) == [
        ("constant", "1", "5"),
        ("constant", "2", "3"),
    ]


def test_an_element_of_the_same_tensor() -> None:
    left = cuda("out[i] = x[n - 1 - i];")
    right = tiles("nisa.tensor_copy(dst=a, src=a)")
    (relation,) = relations(left, right, case(n=[100]))
    found = [d for m in outputs(relation)["out"].mismatches for d in m.differences]
    assert {d.what for d in found} == {"element"}
    assert (said(found[0].cuda), said(found[0].nki)) == ("x[-i0 + 99]", "x[i0]")


def test_fewer_elements_in_a_reduction() -> None:
    left = """
    __global__ void k(const float* x, float* out, int n) {
      float s = 0.0f;
      for (int i = 0; i < n; ++i) s += x[i];
      if (threadIdx.x == 0) out[0] = s;
    }
    """
    right = tiles("").split("    for start")[0].replace("x, y", "x").replace("(n,)", "(1,)") + (
        "    t = nl.ndarray((1, n), dtype=x.dtype, buffer=nl.sbuf)\n"
        "    r = nl.ndarray((1, 1), dtype=x.dtype, buffer=nl.sbuf)\n"
        "    nisa.dma_copy(dst=t, src=x.reshape((1, n)))\n"
        "    nisa.tensor_reduce(dst=r, op=nl.add, data=t[:, 0 : n - 1], axis=1)\n"
        "    nisa.dma_copy(dst=out.reshape((1, 1)), src=r)\n"
        "    return out\n"
    )
    stated = case(tensor("x"), tensor("out", role="out", shape=[1]), n=[60])
    (relation,) = relations(left, right, stated)
    ((difference,),) = [m.differences for m in outputs(relation)["out"].mismatches]
    assert difference.what == "extent"
    assert said(difference.cuda) == "sum of 60 (x[k0])"
    assert said(difference.nki) == "sum of 59 (x[k0])"


def test_places_are_those_of_the_nearest_operator() -> None:
    (difference,) = parted("fminf(x[i], y[i])", binary("maximum"))
    assert difference.cuda_span is not None
    assert difference.nki_span is not None
    assert (difference.cuda_span.file, difference.nki_span.file) == ("kernel.cu", "kernel.py")
    text = tiles(binary("maximum")).splitlines()
    assert "nl.maximum" in text[difference.nki_span.start_line - 1]


def test_a_missing_number_is_missing_where_the_value_is_used() -> None:
    compute = "\n".join((binary("add"), "nisa.activation(dst=a, op=nl.exp, data=a)"))
    (difference,) = parted("expf(2.0f * (x[i] + y[i]))", compute)
    assert difference.nki_span is not None
    assert "nl.exp" in tiles(compute).splitlines()[difference.nki_span.start_line - 1]


def test_a_missing_function_is_missing_where_the_value_is_made() -> None:
    compute = "\n".join((binary("add"), binary("multiply", "a", "b")))
    (difference,) = parted("expf(x[i] + y[i]) * y[i]", compute)
    assert difference.nki_span is not None
    assert "nl.add" in tiles(compute).splitlines()[difference.nki_span.start_line - 1]


def test_what_is_the_same_has_no_difference() -> None:
    relation = related("x[i] + y[i]", binary("add", "b", "a"))
    assert outputs(relation)["out"].mismatches == ()


# -- on forms alone ---------------------------------------------------------------------


def form(expression: str, *, more: str = "") -> Form:
    """The CUDA side's form of an expression."""
    _, positions = read(cuda(f"{more}out[i] = {expression};", XY), ADD_NKI, case(n=[100]))
    kernel = positions.readings[0].cuda
    assert kernel is not None
    found = meaning(kernel, {"n": 100}).form.output("out")
    assert found is not None
    (piece,) = found.pieces
    return piece.form


def test_a_form_is_like_itself_and_differs_in_nothing() -> None:
    same = form("expf(x[i]) * (y[i] + 2.0f)")
    assert differences(same, same) == ()
    assert similarity(same, same) == 1.0


def test_likeness_grows_with_what_corresponds() -> None:
    wanted = form("expf(x[i]) * (y[i] + 2.0f)")
    one_off = form("expf(x[i]) * (y[i] + 3.0f)")
    far_off = form("x[i]")
    assert 0.0 <= similarity(wanted, far_off) < similarity(wanted, one_off) < 1.0
    assert similarity(wanted, one_off) == similarity(one_off, wanted)


def test_differences_are_the_same_both_ways() -> None:
    left, right = form("x[i] + 2.0f"), form("x[i] + 3.0f")
    (there,), (back,) = differences(left, right), differences(right, left)
    assert (there.what, back.what) == ("constant", "constant")
    assert (there.cuda, there.nki) == (back.nki, back.cuda)


def test_every_difference_is_a_piece_of_both_forms() -> None:
    left, right = form("fmaxf(x[i], 2.0f) * y[i]"), form("fmaxf(x[i], 3.0f) * y[i]")
    (difference,) = differences(left, right)
    assert difference.cuda in list(walk(left))
    assert difference.nki in list(walk(right))


def summed(count: int, first: int = 0, tensor: str = "x") -> Combine:
    """The sum of some elements in a row."""
    return Combine("add", (Part(Element(tensor, (Affine((), (1,), first),)), 1, count),))


def element(place: int, tensor: str = "x") -> Form:
    return Element(tensor, (Affine((), (), place),))


@pytest.mark.parametrize(
    ("nki", "what"),
    [
        (summed(33, 256), "extent"),
        (element(256), "extent"),
        (Number(0.0), "extent"),
        (Combine("add", (*summed(223, 33).parts, *summed(33).parts)), "extent"),
        (Combine("maximum", summed(289).parts), "operator"),
        (Number(1.0), "expression"),
        (summed(289, tensor="y"), "tensor"),
        (summed(289, 1), "element"),
    ],
)
def test_a_sum_of_other_elements(nki: Form, what: str) -> None:
    (difference,) = differences(summed(289), nki)
    assert difference.what == what


def test_another_formula_for_the_same_value_is_no_difference() -> None:
    """x^2 - y^2 where CUDA has (x + y)(x - y), and a wrong number after it."""
    steps = [
        "nisa.tensor_tensor(dst=a, data1=a, data2=a, op=nl.multiply)",
        "nisa.tensor_tensor(dst=b, data1=b, data2=b, op=nl.multiply)",
        binary("subtract"),
        "nisa.activation(dst=a, op=nl.exp, data=a)",
    ]
    expression = "expf((x[i] + y[i]) * (x[i] - y[i])) + 1.0f"
    right = related(expression, "\n".join([*steps, scalar("add", 1.0)]))
    assert outputs(right)["out"].status == "proved"
    found = parted(expression, "\n".join([*steps, scalar("add", 2.0)]))
    assert [(d.what, said(d.cuda), said(d.nki)) for d in found] == [("constant", "1", "2")]
