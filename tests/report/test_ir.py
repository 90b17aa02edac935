"""The text form of `migrate ir`."""

from migrate.report import ir
from migrate.results import IrDocument, IrOp, LiftedKernel, Parameter
from tests import examples


def test_each_kernel_is_a_paragraph_and_harmless():
    where = examples.span(examples.CUDA, "x[threadIdx.x]")
    kernels = tuple(
        LiftedKernel(
            name=name,
            span=where,
            coverage=0.5,
            computes="elementwise",
            work_mapping="thread per element, 1-D",
            parameters=(Parameter(name="x", type="float*", role="inout", shape=("n", "4")),),
            ir=(IrOp(text="%0 = load x.0[i]", depth=1, span=where),),
        )
        for name in ("k", "other\x1b[2J")
    )
    first, second = ir.render(IrDocument(side="cuda", kernels=kernels)).split("\n\n")
    assert first.splitlines()[0] == "kernel.cu:2:3: cuda kernel k"
    assert "  understood    50% of the statements" in first
    assert "    inout    x: float* ('n', '4')" not in first
    assert "    inout    x: float* [n, 4]" in first
    assert "    2:3        %0 = load x.0[i]" in first
    assert "other\\x1b[2J" in second
