"""Results: JSON that comes back equal, stable bytes, and the schema of both."""

import json

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.results import (
    AxisInfo,
    Comparison,
    Construct,
    ConstructSide,
    Coverage,
    Finding,
    Inputs,
    IrDocument,
    IrOp,
    LiftedConstruct,
    LiftedKernel,
    OutputResult,
    Parameter,
    Related,
    Run,
    Score,
    Subject,
    Tool,
    Witness,
    schema,
    schemas,
    value,
)
from migrate.source import Frame, Span


def span(line=1, file="kernel.py", via=()):
    return Span(
        file=file, start_line=line, start_column=1, end_line=line, end_column=5, via=tuple(via)
    )


def full():
    """A result with every field in use."""
    frame = Frame(kind="call", name="add_block", file="kernel.py", line=30, column=9)
    witness = Witness(
        found_by="run",
        sizes={"n": 100, "m": 1},
        inputs=Inputs(family="normal", seed=3),
        output="out",
        index=(3, 4),
        cuda=1.5,
        nki="uninitialised",
    )
    finding = Finding(
        id="f1",
        rule="MAP101",
        family="mapping",
        severity="error",
        effect="wrong",
        message="subtracts where the CUDA kernel adds",
        side="nki",
        span=span(22, via=[frame]),
        related=(Related(side="cuda", span=span(9, "kernel.cu"), note="added here"),),
        witness=witness,
        points=-40.0,
        suppressed="known",
    )
    construct = Construct(
        id="c1",
        kind="elementwise",
        verdict="mismapped",
        mapping="elementwise.vector",
        reason="another operator",
        cuda=(ConstructSide(summary="x + y", span=span(9, "kernel.cu")),),
        nki=(ConstructSide(summary="x - y", span=span(22)),),
        findings=("f1",),
    )
    output = OutputResult(
        name="out",
        status="fail",
        elements=100,
        mismatched=99,
        first_mismatch=(0, 1),
        max_abs=0.5,
        max_ulp=12,
        allowed=1e-6,
        ambiguous=1,
    )
    return Comparison(
        tool=Tool(facts="0123456789abcdef"),
        deterministic=True,
        cuda=Subject(file="kernel.cu", kernel="k", digest="a" * 64),
        nki=Subject(file="kernel.py", kernel="k", digest="b" * 64, target="trn2", version="0.6"),
        verdict="not-faithful",
        confidence=0.9,
        correspondence=0.5,
        score=Score(fidelity=38.0, mapping=71.0),
        coverage=Coverage(cuda=1.0, nki=0.75),
        reasons=("a run fails",),
        inferred=("grid from the launch",),
        constructs=(construct,),
        findings=(finding,),
        runs=(
            Run(
                sizes={"n": 100},
                inputs=Inputs(family="normal"),
                status="fail",
                reason="differs",
                outputs=(output,),
            ),
        ),
    )


def lifted():
    kernel = LiftedKernel(
        name="k",
        span=span(),
        coverage=1.0,
        computes="elementwise",
        work_mapping="thread per element, 1-D",
        parameters=(Parameter(name="x", type="float*", role="in", shape=("n",)),),
        axes=(AxisInfo(name="i", kind="block", extent="256"),),
        constructs=(
            LiftedConstruct(
                id="c1",
                kind="mask",
                summary="i < n",
                span=span(8),
                attributes={"bound": "n"},
                after=("c0",),
            ),
        ),
        ir=(IrOp(text="%0 = load x.0[i]", depth=1, span=span(9)),),
    )
    return IrDocument(side="cuda", kernels=(kernel,))


def test_a_comparison_comes_back_equal():
    result = full()
    assert Comparison.from_json(result.to_json()) == result
    assert Comparison.from_json(result.to_json(indent=2)) == result
    assert Comparison.from_json(result.to_json()).to_json() == result.to_json()


def test_an_ir_document_comes_back_equal():
    assert IrDocument.from_json(lifted().to_json()) == lifted()


def test_equal_results_give_equal_bytes():
    first, second = full(), full()
    turned = msgspec.structs.replace(second.runs[0], sizes={"m": 1, "n": 100})
    straight = msgspec.structs.replace(first.runs[0], sizes={"n": 100, "m": 1})
    first = msgspec.structs.replace(first, runs=(straight,))
    second = msgspec.structs.replace(second, runs=(turned,))
    assert first.to_json() == second.to_json()


def test_results_fit_their_schemas():
    for name, result in {"comparison": full(), "ir": lifted()}.items():
        checker = jsonschema.Draft202012Validator(schemas()[f"{name}.schema.json"])
        checker.check_schema(checker.schema)
        checker.validate(json.loads(result.to_json()))


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "fine"},
        {"confidence": 1.5},
        {"schema_version": "2"},
        {"unheard_of": 1},
        {"findings": [{"id": "f1"}]},
        {"coverage": {"cuda": 1.0}},
    ],
)
def test_what_is_no_result_is_refused(change):
    data = {**json.loads(full().to_json()), **change}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema())
    with pytest.raises(msgspec.ValidationError):
        Comparison.from_json(json.dumps(data))


@given(st.floats(allow_nan=True, allow_infinity=True) | st.integers(-(2**53), 2**53))
def test_values_keep_what_json_cannot_say(number):
    shown = value(number)
    witness = msgspec.structs.replace(full().findings[0].witness, cuda=shown, nki=shown)
    assert msgspec.json.decode(msgspec.json.encode(witness), type=Witness) == witness
    if isinstance(shown, str):
        assert str(float(shown)) == str(float(number))
    else:
        assert shown == number


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_magnitudes_that_are_not_finite_are_left_out(number):
    output = OutputResult(
        name="y", status="fail", elements=1, max_abs=number, allowed=number, mismatched=1
    )
    assert output.max_abs is None or output.max_abs == number
    assert msgspec.json.decode(msgspec.json.encode(output), type=OutputResult) == output
