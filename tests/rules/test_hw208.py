"""How grave a read of what nothing wrote is: by whether a result is made of it."""

from __future__ import annotations

import textwrap

import pytest

import migrate

HEAD = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(x, w):
    out = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
    u = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
    v = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
    column = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    p = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    q = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.psum)
    nisa.memset(dst=u, value=0.0)
    nisa.memset(dst=v, value=0.0)
    nisa.dma_copy(dst=out, src=u)
"""

CASE = "\n".join(
    f'[[tensor]]\nname = "{name}"\nshape = [128, 128]\ndtype = "bfloat16"\nrole = "in"\n'
    f'nki = "{name}"\n'
    for name in ("x", "w")
)

ROWS = "nisa.dma_copy(dst=t[0:72, :], src=x[0:72, :])\n"
SUM = "nisa.nc_matmul(dst=p, stationary=u, moving=v, accumulate=True)\n"
COLUMNS = "nisa.dma_copy(dst=t[:, 0:72], src=x[:, 0:72])\n"


def severities(body: str) -> list[str]:
    text = HEAD + textwrap.indent(body, "    ") + "    return out\n"
    document = migrate.lint_text(text, case=CASE)
    (kernel,) = document.kernels
    assert kernel.complete, kernel.reasons
    return [finding.severity for finding in kernel.findings if finding.rule == "HW208"]


@pytest.mark.parametrize(
    "body",
    [
        ROWS
        + "nisa.tensor_tensor(dst=u, data1=t, data2=t, op=nl.multiply)\n"
        + "nisa.dma_copy(dst=out[0:72, :], src=u[0:72, :])\n",
        ROWS
        + "nisa.tensor_reduce(dst=column, op=nl.add, data=t, axis=1)\n"
        + "nisa.tensor_scalar(dst=u, data=v, op0=nl.multiply, operand0=column)\n"
        + "nisa.dma_copy(dst=out[0:72, :], src=u[0:72, :])\n",
        COLUMNS
        + "nisa.activation(dst=u, op=nl.exp, data=t)\n"
        + "nisa.dma_copy(dst=out[:, 0:72], src=u[:, 0:72])\n",
        COLUMNS
        + "nisa.nc_matmul(dst=p, stationary=t, moving=v)\n"
        + "nisa.tensor_copy(dst=u, src=p)\n"
        + "nisa.dma_copy(dst=out[0:72, :], src=u[0:72, :])\n",
        COLUMNS
        + "nisa.nc_matmul(dst=p, stationary=v, moving=t)\n"
        + "nisa.tensor_copy(dst=u, src=p)\n"
        + "nisa.dma_copy(dst=out[:, 0:72], src=u[:, 0:72])\n",
        ROWS
        + "nisa.nc_transpose(dst=q, data=t)\n"
        + "nisa.tensor_copy(dst=u, src=q)\n"
        + "nisa.dma_copy(dst=out[:, 0:72], src=u[:, 0:72])\n",
        ROWS
        + "nisa.tensor_copy(dst=u, src=t)\n"
        + "nisa.memset(dst=u, value=1.0)\n"
        + "nisa.dma_copy(dst=out, src=u)\n",
    ],
)
def test_what_is_not_stored_is_a_note(body: str) -> None:
    assert severities(body) == ["note"]


@pytest.mark.parametrize(
    "body",
    [
        ROWS
        + "nisa.tensor_tensor(dst=u, data1=t, data2=t, op=nl.multiply)\n"
        + "nisa.dma_copy(dst=out[0:73, :], src=u[0:73, :])\n",
        COLUMNS
        + "nisa.tensor_reduce(dst=column, op=nl.add, data=t, axis=1)\n"
        + "nisa.tensor_scalar(dst=u, data=v, op0=nl.multiply, operand0=column)\n"
        + "nisa.dma_copy(dst=out[0:72, :], src=u[0:72, :])\n",
        ROWS
        + "nisa.nc_matmul(dst=p, stationary=t, moving=v)\n"
        + "nisa.tensor_copy(dst=u, src=p)\n"
        + "nisa.dma_copy(dst=out[0:72, :], src=u[0:72, :])\n",
        ROWS
        + "nisa.nc_transpose(dst=q, data=t)\n"
        + "nisa.tensor_copy(dst=u, src=q)\n"
        + "nisa.dma_copy(dst=out[0:72, :], src=u[0:72, :])\n",
        SUM + "nisa.tensor_copy(dst=u, src=p)\n" + "nisa.dma_copy(dst=out, src=u)\n",
        ROWS
        + "nisa.tensor_copy(dst=u, src=t)\n"
        + "nisa.memset(dst=u[0:96, :], value=1.0)\n"
        + "nisa.dma_copy(dst=out, src=u)\n",
        ROWS
        + "scratch = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.hbm)\n"
        + "nisa.dma_copy(dst=scratch, src=t)\n"
        + "nisa.dma_copy(dst=v, src=scratch)\n"
        + "nisa.dma_copy(dst=out, src=v)\n",
    ],
)
def test_what_is_stored_is_an_error(body: str) -> None:
    assert severities(body) == ["error"]


def test_two_places_of_which_one_is_stored() -> None:
    body = (
        ROWS
        + "nisa.tensor_copy(dst=u, src=t)\n"
        + "s = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)\n"
        + "nisa.tensor_copy(dst=v, src=s)\n"
        + "nisa.dma_copy(dst=out[0:72, :], src=u[0:72, :])\n"
        + "nisa.dma_copy(dst=out[72:128, :], src=v[72:128, :])\n"
    )
    assert severities(body) == ["error", "note"]


def test_two_places_that_become_one() -> None:
    body = (
        ROWS
        + "s = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)\n"
        + "nisa.tensor_copy(dst=v, src=s)\n"
        + "nisa.tensor_tensor(dst=u, data1=t, data2=v, op=nl.add)\n"
        + "nisa.dma_copy(dst=out, src=u)\n"
    )
    assert severities(body) == ["error", "error"]
