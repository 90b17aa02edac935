"""One step of AdamW on n parameters: new parameters and moments are returned.

The hyper-parameters are known when the kernel is built, so that each becomes an immediate
operand of an instruction.
"""

import nki
import nki.isa as nisa
import nki.language as nl

COLS = 512


def load(vector, start, rows, cols):
    tile = nl.ndarray((rows, cols), dtype=vector.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=vector[start : start + rows * cols].reshape((rows, cols)))
    return tile


def store(vector, tile, start):
    rows, cols = tile.shape
    nisa.dma_copy(dst=vector[start : start + rows * cols].reshape((rows, cols)), src=tile)


def moving_average(old, new, beta):
    """beta * old + (1 - beta) * new."""
    part = nl.ndarray(new.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=part, data=new, op0=nl.multiply, operand0=1.0 - beta)
    average = nl.ndarray(new.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.scalar_tensor_tensor(
        dst=average, data=old, op0=nl.multiply, operand0=beta, op1=nl.add, operand1=part
    )
    return average


@nki.jit
def adamw(p, m, v, g, rate, beta1, beta2, epsilon, decay, correction1, correction2):
    n = p.shape[0]
    p_new = nl.ndarray((n,), dtype=p.dtype, buffer=nl.shared_hbm)
    m_new = nl.ndarray((n,), dtype=m.dtype, buffer=nl.shared_hbm)
    v_new = nl.ndarray((n,), dtype=v.dtype, buffer=nl.shared_hbm)

    def step(start, rows, cols):
        """Elements from `start` on, `cols` of them on each partition."""
        shape = (rows, cols)
        gradient = load(g, start, rows, cols)
        squared = nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=squared, data1=gradient, data2=gradient, op=nl.multiply)
        mean = moving_average(load(m, start, rows, cols), gradient, beta1)
        variance = moving_average(load(v, start, rows, cols), squared, beta2)

        root = nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=root, op=nl.sqrt, data=variance, scale=correction2)
        bounded = nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=bounded, data=root, op0=nl.add, operand0=epsilon)
        share = nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(dst=share, data=bounded)
        change = nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(
            dst=change,
            data=mean,
            op0=nl.multiply,
            operand0=rate * correction1,
            op1=nl.multiply,
            operand1=share,
        )

        # p * (1 - rate * decay) - change
        result = nl.ndarray(shape, dtype=p.dtype, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(
            dst=result,
            data=load(p, start, rows, cols),
            op0=nl.multiply,
            operand0=1.0 - rate * decay,
            op1=nl.subtract,
            operand1=change,
        )
        store(p_new, result, start)
        store(m_new, mean, start)
        store(v_new, variance, start)

    rows = n // COLS
    for row in range(0, rows, nl.tile_size.pmax):
        step(row * COLS, min(nl.tile_size.pmax, rows - row), COLS)
    rest = n % COLS
    if rest > 0:
        step(n - rest, 1, rest)
    return p_new, m_new, v_new
