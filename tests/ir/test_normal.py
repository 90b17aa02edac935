"""Normal forms: what leaves no trace in them, and what does."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from migrate.ir import forms
from migrate.ir.evaluate import evaluate
from migrate.ir.normal import meaning, normalise
from migrate.ir.reals import Reals
from migrate.ir.validate import problems
from tests.ir import strategies as make


def close(left, right) -> bool:
    return np.allclose(left, right, rtol=1e-9, atol=1e-9, equal_nan=True)


def numbers(spec, given_):
    try:
        return make.values(spec, given_)
    except make.Wild:
        reject()


@given(make.specs(), make.schedules(), st.integers(0, 99))
def test_every_realisation_is_well_formed_and_computes_the_spec(spec, schedule, seed):
    shapes = make.tensors(spec)
    kernel = make.lower(spec, schedule, shapes)
    assert problems(kernel) == ()
    given_ = make.inputs(shapes, seed)
    wanted = numbers(spec, given_)
    found = evaluate(kernel, {}, Reals(given_))
    assert found.trouble == ()
    assert close(found.outputs["y"].reshape(spec.shape), wanted)


@given(make.specs(exact=True), make.schedules(), st.integers(0, 99))
def test_the_normal_form_has_the_values_of_the_kernel(spec, schedule, seed):
    shapes = make.tensors(spec)
    kernel = make.lower(spec, schedule, shapes)
    given_ = make.inputs(shapes, seed)
    wanted = numbers(spec, given_)
    form, _ = normalise(kernel, {})
    output = form.output("y")
    assert output is not None
    assert close(forms.value(output, given_), wanted)


@given(make.specs(), make.schedules(), make.schedules())
def test_the_way_a_kernel_is_realised_leaves_no_trace(spec, one, other):
    shapes = make.tensors(spec)
    first = meaning(make.lower(spec, one, shapes), {})
    second = meaning(make.lower(spec, other, shapes), {})
    assert first.form == second.form, f"{first.form}\n{second.form}"
    assert np.array_equal(first.terms["y"], second.terms["y"])


@given(st.data(), make.specs(), make.schedules(), make.schedules())
def test_a_change_of_what_is_computed_changes_the_normal_form(data, spec, one, other):
    changed = data.draw(make.mutations(spec))
    shapes = make.tensors(spec, changed)
    given_ = make.inputs(shapes, 7)
    assume(not close(numbers(spec, given_), numbers(changed, given_)))
    first = meaning(make.lower(spec, one, shapes), {})
    second = meaning(make.lower(changed, other, shapes), {})
    assert first.form != second.form
    assert not np.array_equal(first.terms["y"], second.terms["y"])
