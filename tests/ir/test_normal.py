"""Normal forms: what leaves no trace in them, and what does."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from migrate.ir import forms
from migrate.ir.evaluate import evaluate
from migrate.ir.normal import meaning, normalise
from migrate.ir.reals import Reals
from migrate.ir.validate import problems
from tests.ir import strategies as make


def close(left, right) -> bool:
    return np.allclose(left, right, rtol=1e-9, atol=1e-9, equal_nan=True)


@given(make.specs(), make.schedules(), st.integers(0, 99))
def test_every_realisation_is_well_formed_and_computes_the_spec(spec, schedule, seed):
    shapes = make.tensors(spec)
    kernel = make.lower(spec, schedule, shapes)
    assert problems(kernel) == ()
    given_ = make.inputs(shapes, seed)
    with np.errstate(all="ignore"):
        wanted = make.values(spec, given_)
    found = evaluate(kernel, {}, Reals(given_))
    assert found.trouble == ()
    assert close(found.outputs["y"].reshape(spec.shape), wanted)


@given(make.specs(), make.schedules(), st.integers(0, 99))
def test_the_normal_form_has_the_values_of_the_kernel(spec, schedule, seed):
    shapes = make.tensors(spec)
    kernel = make.lower(spec, schedule, shapes)
    given_ = make.inputs(shapes, seed)
    form, _ = normalise(kernel, {})
    output = form.output("y")
    assert output is not None
    found = evaluate(kernel, {}, Reals(given_)).outputs["y"].reshape(spec.shape)
    assert close(forms.value(output, given_), found)


@given(make.specs(), make.schedules(), make.schedules())
def test_the_way_a_kernel_is_realised_leaves_no_trace(spec, one, other):
    shapes = make.tensors(spec)
    first = meaning(make.lower(spec, one, shapes), {})
    second = meaning(make.lower(spec, other, shapes), {})
    assert first.form == second.form, f"{first.form}\n{second.form}"
    assert np.array_equal(first.terms["y"], second.terms["y"])
