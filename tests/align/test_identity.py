"""Outputs that are equal though they are computed from other terms."""

from __future__ import annotations

import pytest

from tests.pairs import cuda, outputs, relations, tiles

NAME = "identity-over-finite-fields"

FACTORED = cuda("out[i] = x[i] * (x[i] + y[i]);")


def expanded(last: str) -> str:
    return tiles(
        f"""
        squared = nl.ndarray((1, size), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=squared, data1=a, data2=a, op=nl.multiply)
        nisa.tensor_tensor(dst=b, data1=a, data2=b, op=nl.multiply)
        nisa.tensor_tensor(dst=a, data1=squared, data2=b, op=nl.{last})
        """
    )


def test_what_is_equal_by_other_laws_than_those_of_terms_is_proved() -> None:
    for relation in relations(FACTORED, expanded("add")):
        found = outputs(relation)["out"]
        assert (found.status, found.agreeing, found.mismatches) == ("proved", 1.0, ())
        assert NAME in relation.rewrites


def test_what_is_not_equal_is_refuted() -> None:
    for relation in relations(FACTORED, expanded("subtract")):
        assert outputs(relation)["out"].status == "refuted"
        assert NAME not in relation.rewrites


@pytest.mark.parametrize("body", ["sqrtf(x[i] * x[i])", "x[i] > 0.0f ? x[i] : -x[i]"])
def test_what_only_evaluates_alike_stays_unknown(body: str) -> None:
    right = tiles("nisa.activation(dst=a, op=nl.abs, data=a)")
    for relation in relations(cuda(f"out[i] = {body} + 0.0f * y[i];"), right):
        found = outputs(relation)["out"]
        assert (found.status, found.witness) == ("unknown", None)
        assert found.mismatches
        assert NAME not in relation.rewrites
