"""Results that tests of reports and of the command line start from."""

from __future__ import annotations

from typing import Any

import msgspec

from migrate.results import (
    Comparison,
    Construct,
    ConstructSide,
    Coverage,
    Finding,
    Inputs,
    OutputResult,
    Related,
    Run,
    Score,
    Subject,
    Tool,
    Witness,
)
from migrate.source import Frame, Source, Span

CUDA = Source.of("__global__ void k(float* x) {\n  x[threadIdx.x] += 1.0f;\n}\n", "kernel.cu")
NKI = Source.of("@nki.jit\ndef k(x):\n\treturn add(x, '→', 2.0)\n", "kernel.py")


def span(source: Source, text: str, *, via: tuple[Frame, ...] = ()) -> Span:
    """Where `text` stands in a source."""
    start = source.encoded.index(text.encode())
    found = source.span(start, start + len(text.encode()))
    return msgspec.structs.replace(found, via=via)


def construct(**changes: Any) -> Construct:
    """A matched construct."""
    made = Construct(
        id="c1",
        kind="elementwise",
        verdict="matched",
        mapping="elementwise.vector",
        reason="one instruction adds",
        cuda=(ConstructSide(summary="x + 1", span=span(CUDA, "x[threadIdx.x] += 1.0f")),),
        nki=(ConstructSide(summary="x + 1", span=span(NKI, "add(x, '→', 2.0)")),),
    )
    return msgspec.structs.replace(made, **changes)


def finding(**changes: Any) -> Finding:
    """An error with a witness and a related place."""
    frame = Frame(kind="call", name="add", file="kernel.py", line=3, column=9)
    made = Finding(
        id="f1",
        rule="MAP101",
        family="mapping",
        severity="error",
        effect="wrong",
        message="adds 2 where the CUDA kernel adds 1",
        side="nki",
        span=span(NKI, "2.0", via=(frame,)),
        related=(Related(side="cuda", span=span(CUDA, "1.0f"), note="added here"),),
        witness=Witness(
            found_by="evaluation",
            sizes={"n": 4},
            inputs=Inputs(family="normal"),
            output="x",
            index=(0, 2),
            cuda=1.0,
            nki="nan",
        ),
        points=-40.0,
    )
    return msgspec.structs.replace(made, **changes)


def run(**changes: Any) -> Run:
    """A run that failed."""
    output = OutputResult(
        name="x",
        status="fail",
        elements=2000,
        mismatched=1500,
        first_mismatch=(0, 2),
        max_abs=1.0,
        allowed=1e-7,
    )
    made = Run(
        sizes={"n": 4, "m": 2},
        inputs=Inputs(family="normal", seed=7),
        status="fail",
        outputs=(output,),
    )
    return msgspec.structs.replace(made, **changes)


def comparison(**changes: Any) -> Comparison:
    """A faithful pair without findings."""
    made = Comparison(
        tool=Tool(facts="0" * 16),
        deterministic=True,
        cuda=Subject(file="kernel.cu", kernel="k", digest=CUDA.digest),
        nki=Subject(file="kernel.py", kernel="k", digest=NKI.digest, target="trn2", version="0.6"),
        verdict="faithful",
        confidence=0.75,
        correspondence=1.0,
        score=Score(fidelity=100.0, mapping=100.0),
        coverage=Coverage(cuda=1.0, nki=0.999),
        constructs=(construct(),),
    )
    return msgspec.structs.replace(made, **changes)
