"""# NUM303: overflows

## What
The two kernels agree on small inputs.  On large ones an exponential or a power of the NKI kernel
is infinite, and the result with it, where the CUDA kernel gives a number.

## Why
float32 holds exp(x) up to x = 88.7 only.  A softmax or a log-sum-exp therefore subtracts the
maximum of the row first, which changes nothing over the reals: a kernel without it, or with the
maximum of a part of the row, passes every test with small inputs.

## Example
```python
nisa.activation(dst=e, op=nl.exp, data=x)                       # CUDA: expf(x[i] - row_max)
```

## Use instead
```python
nisa.tensor_reduce(dst=m, op=nl.maximum, data=x, axis=1, negate=True)
nisa.activation(dst=e, op=nl.exp, data=x, bias=m)
```

## Sources
IEEE 754 binary32 (largest finite number 3.4e38); Neuron SDK documentation, nki.isa.activation and
nki.isa.exponential (exp of the difference to the maximum); Higham, Accuracy and Stability of
Numerical Algorithms (overflow in norms).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.align.difference import Difference
from migrate.align.mismatch import Mismatch
from migrate.align.relation import OutputRelation, spans_of
from migrate.ir.forms import Hashed
from migrate.ir.wording import said
from migrate.rules.places import at, related, shown
from migrate.rules.rule import Draft, Evidence, Rule
from migrate.source import Span


def check(evidence: Evidence) -> Iterator[Draft]:
    for relation in evidence.relations:
        for output in relation.outputs:
            overflow, witness = output.overflow, output.witness
            if overflow is None or witness is None:
                continue
            parted = _parted(output)
            words, span = "", overflow.span
            around: tuple[Span, ...] = (overflow.span,)
            if parted is not None:
                words = f"; it has {said(parted.nki)} where the CUDA kernel has {said(parted.cuda)}"
                span = parted.nki_span or span
                around = (*around, *spans_of(parted.nki))
            place = ", ".join(map(str, witness.index))
            yield Draft(
                message=(
                    f"{overflow.operator}({overflow.operand:.4g}) is infinite: with large inputs"
                    f" {output.name}[{place}] becomes {shown(witness.nki)}, in CUDA it is"
                    f" {shown(witness.cuda)},"
                    f" at {at(relation.sizes.items())}{words}"
                ),
                side="nki",
                span=span,
                related=(
                    *related("nki", (s for s in around if s != span)),
                    *related("cuda", [parted.cuda_span if parted is not None else None]),
                ),
                witness=witness,
            )


def _parted(output: OutputRelation) -> Difference | None:
    """The first difference that can be put in words."""
    mismatches: tuple[Mismatch, ...] = output.mismatches
    for mismatch in mismatches:
        for difference in mismatch.differences:
            if not isinstance(difference.nki, Hashed) and not isinstance(difference.cuda, Hashed):
                return difference
    return None


RULE = Rule(
    "NUM303",
    "overflows",
    "numerics",
    "error",
    "wrong",
    check,
    about=("elementwise", "reduction", "special-function", "stage-in"),
)
