"""# MAP113: result-of-other-shape

## What
A result of the NKI kernel does not have the shape that the case states for it.

## Why
A CUDA kernel writes flat memory, whose shape is what the caller makes of it.  An NKI kernel
returns an array: one that is padded to whole tiles, transposed or reshaped is another array to
its caller, even where the numbers are all there.

## Example
```python
out = nl.ndarray((tiles * 512,), dtype=x.dtype, buffer=nl.shared_hbm)   # n elements are asked for
```

## Use instead
An output of the stated shape.  Where the caller does undo a padding or a transpose, the case says
so: `nki_layout = "pad(ceil_div(n, 512) * 512)"`.

## Sources
Neuron SDK documentation, language guide (kernels return tensors in `nl.shared_hbm`); the case's
`shape` and `nki_layout`.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate.align.binding import given_shape
from migrate.rules.places import at
from migrate.rules.rule import Draft, Evidence, Rule


def check(evidence: Evidence) -> Iterator[Draft]:
    for reading in evidence.readings:
        kernel = reading.nki
        if kernel is None:
            continue
        sizes = {**reading.binding.sizes, **dict(kernel.computed_at or ())}
        for tensor in reading.binding.outputs:
            given = given_shape(reading.binding, kernel, tensor, sizes)
            wanted = reading.binding.nki_shape(tensor)
            if given is None or given == wanted:
                continue
            buffers = {o.position: o.version.buffer for o in kernel.outputs}
            buffer = buffers.get(tensor.nki_out, tensor.nki)
            assert buffer is not None
            yield Draft(
                message=(
                    f"{tensor.name} comes out with shape {_shown(given)}, and"
                    f" {_shown(wanted)} is asked for, at {at(reading.binding.sizes.items())}"
                ),
                side="nki",
                span=kernel.buffer(buffer).span,
            )


def _shown(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


RULE = Rule(
    "MAP113",
    "result-of-other-shape",
    "mapping",
    "error",
    "wrong",
    check,
    about=("output-store",),
)
