"""Softmax of every row in the style of NKI 0.1: index tensors, masks, tiles that are returned."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

ROWS = 128


@nki.jit
def softmax_masked(x):
    rows, cols = x.shape
    y = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)

    i_p = nl.arange(ROWS)[:, None]
    i_f = nl.arange(cols)[None, :]
    for t in nl.affine_range((rows + ROWS - 1) // ROWS):
        row = t * ROWS + i_p
        inside = row < rows
        tile = nl.load(x[row, i_f], mask=inside)
        largest = nl.max(tile, axis=1, keepdims=True, mask=inside)
        powers = nl.exp(nl.subtract(tile, largest, mask=inside), mask=inside)
        total = nl.sum(powers, axis=1, keepdims=True, mask=inside)
        nl.store(y[row, i_f], nl.divide(powers, total, mask=inside), mask=inside)
    return y
