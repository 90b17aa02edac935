"""# MAP112: result-missing

## What
The NKI kernel does not return a result that the CUDA kernel writes.

## Why
A CUDA kernel writes through as many pointers as it is given; an NKI kernel hands back what it
returns.  A result that is computed and not returned is lost.

## Example
```python
    return out                  # CUDA writes out and row_max
```

## Use instead
```python
    return out, row_max
```

## Sources
Neuron SDK documentation, language guide (kernels return tensors in `nl.shared_hbm`).
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.align.binding import given_shape
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    for reading in evidence.readings:
        kernel = reading.nki
        if kernel is None:
            continue
        sizes = {**reading.binding.sizes, **dict(kernel.computed_at or ())}
        results = sum(output.position is not None for output in kernel.outputs)
        for tensor in reading.binding.outputs:
            if tensor.nki_out is None:
                continue
            if given_shape(reading.binding, kernel, tensor, sizes) is None:
                noun = "result" if results == 1 else "results"
                yield Draft(
                    message=(
                        f"{tensor.name} is to be result {tensor.nki_out} (from 0), and the kernel"
                        f" returns {results} {noun}"
                    ),
                    side="nki",
                    span=kernel.span,
                )


RULE = Rule(
    "MAP112",
    "result-missing",
    "mapping",
    "error",
    "wrong",
    check,
    about=("output-store",),
)
