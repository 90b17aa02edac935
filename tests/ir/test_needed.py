"""The part of a log that some terms need reads back as the whole log does."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from migrate.budget import Budget, Meter
from migrate.ir.evaluate import evaluate
from migrate.ir.needed import needed
from migrate.ir.reader import Reader
from migrate.ir.terms import Terms
from tests.ir import strategies as make


@given(make.specs(), make.schedules(), st.data())
def test_expressions_read_from_the_needed_part_are_those_of_the_log(spec, schedule, data):
    shapes = make.tensors(spec)
    kernel = make.lower(spec, schedule, shapes)
    meter = Meter(Budget(), "test")
    terms = Terms({name: (name, None) for name in shapes}, meter)
    ids = evaluate(kernel, {}, terms).outputs["y"].reshape(-1)
    chosen = data.draw(st.sets(st.integers(0, ids.size - 1), min_size=1))
    elements = np.array(sorted(chosen), np.int64)
    part = needed(terms.log, ids[elements], meter)
    assert sum(made.ids.size for made in part) <= sum(made.ids.size for made in terms.log)
    assert read(part, ids, elements, shapes, spec.shape) == read(
        terms.log, ids, elements, shapes, spec.shape
    )


def read(log, ids, elements, shapes, shape):
    reader = Reader(log, shapes, Meter(Budget(), "test"))
    reader.read(ids[elements])
    return reader.pieces(ids, shape, elements)


def test_what_is_not_needed_is_left_out():
    terms = Terms({}, Meter(Budget(), "test"))
    before = len(terms.log)
    one, two = terms.constant(1.5, None), terms.constant(2.5, None)
    found = needed(terms.log, one.reshape(1), Meter(Budget(), "test"))
    assert [made.numbers.tolist() for made in found] == [[1.5]]
    assert len(terms.log) == before + 2
    assert two.size == 1
