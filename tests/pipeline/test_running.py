"""`migrate.run`: a kernel is called as it is written, and gives what it returns."""

from __future__ import annotations

import textwrap
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import migrate
from migrate.api import ran_nki
from migrate.budget import Budget
from migrate.pipeline.running import Options, OverCapacity, Overwritten, UnwrittenRead

NKI = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def doubled(x, factor=2.0):
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=factor)
    nisa.dma_copy(dst=y, src=t)
    return y


@nki.jit
def in_place(x):
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=t, value=1.0)
    nisa.dma_copy(dst=x, src=t)


@nki.jit
def structured(x):
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    z = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=y, src=x)
    nisa.dma_copy(dst=z, src=x)
    return y, [z, (y,)]


@nki.jit
def per_program(x):
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((4, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x[nl.ds(nl.program_id(0) * 4, 4), :])
    nisa.dma_copy(dst=y[nl.ds(nl.program_id(0) * 4, 4), :], src=t)
    return y


@nki.jit
def past_nothing(x):
    return x


@nki.jit
def past_the_end(x):
    t = nl.ndarray((8, 8), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x[0:8, 1:9])
    return x


@nki.jit
def unwritten(x):
    t = nl.ndarray((8, 8), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=t)
"""

CUDA = """
extern "C" __global__ void scale(float* y, const float* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * factor;
}
extern "C" __global__ void beyond(float* y, int n) {
    y[threadIdx.x + n] = 1.0f;
}
"""


@pytest.fixture
def nki(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(textwrap.dedent(NKI))
    return str(path)


@pytest.fixture
def cuda(tmp_path):
    path = tmp_path / "kernels.cu"
    path.write_text(CUDA)
    return str(path)


def test_arguments_in_order_and_by_name(nki):
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    assert np.array_equal(migrate.run(nki, "doubled", x), x * 2)
    assert np.array_equal(migrate.run(nki, "doubled", x, 3.0), x * 3)
    assert np.array_equal(migrate.run(nki, "doubled", factor=np.float32(0.5), x=x), x / 2)


def test_arrays_that_are_written_to_change(nki):
    x = np.zeros((8, 8), np.float32)
    assert migrate.run(nki, "in_place", x) is None
    assert (x == 1).all()


def test_the_structure_of_what_is_returned(nki):
    x = np.ones((8, 8), np.float32)
    y, [z, (again,)] = migrate.run(nki, "structured", x)
    assert all(np.array_equal(found, x) for found in (y, z, again))


def test_programs_of_a_grid(nki):
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    assert np.array_equal(migrate.run(nki, "per_program", x, grid=2), x)
    assert np.array_equal(migrate.run(nki, "per_program", x, grid=(2,)), x)


def test_an_access_outside_is_an_index_error_with_its_place(nki, cuda):
    with pytest.raises(
        IndexError, match="index 8 is out of bounds for axis 0 with size 64"
    ) as caught:
        migrate.run(nki, "past_the_end", np.zeros((8, 8), np.float32))
    assert type(caught.value) is IndexError
    line = NKI.splitlines().index("    nisa.dma_copy(dst=t, src=x[0:8, 1:9])") + 1
    assert any(note.startswith(f"at {nki}:{line}:") for note in caught.value.__notes__)
    assert any("elements outside x are read" in note for note in caught.value.__notes__)
    with pytest.raises(
        IndexError, match="index 4 is out of bounds for axis 0 with size 4"
    ) as caught:
        migrate.run(cuda, "beyond", np.zeros(4, np.float32), 1, grid=1, block=4)
    assert any(f"{cuda}:7:" in note for note in caught.value.__notes__)


def test_reading_what_nothing_wrote_warns(nki):
    with pytest.warns(UnwrittenRead, match="before they are written"):
        migrate.run(nki, "unwritten", np.zeros((8, 8), np.float32))


def test_a_launch_changes_device_memory(cuda):
    x = np.arange(10, dtype=np.float32)
    y = np.zeros_like(x)
    assert migrate.run(cuda, "scale", y, x, 2.0, 10, grid=3, block=(4, 1)) is None
    assert np.array_equal(y, x * 2)


@pytest.mark.parametrize(
    ("args", "options", "words"),
    [
        ((1, 2, 3), {}, "takes 2 arguments, not 3"),
        ((), {}, "x"),
        ((np.zeros((2, 2), np.float32),), {"x": 1}, "given twice"),
        ((np.zeros((2, 2), np.float32),), {"y": 1}, "no parameter y"),
        ((object(),), {}, "cannot be a kernel argument"),
        ((np.zeros((2, 2), np.float32),), {"shared": 3}, "CUDA"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(nki, args, options, words):
    with pytest.raises(migrate.SourceError, match=words):
        migrate.run(nki, "doubled", *args, **options)


def test_launches_that_do_not_fit_are_refused(cuda):
    arrays = [np.zeros(4, np.float32)] * 2
    with pytest.raises(migrate.SourceError, match="needs grid and block"):
        migrate.run(cuda, "scale", *arrays, 1.0, 4)
    with pytest.raises(migrate.SourceError, match="one to three"):
        migrate.run(cuda, "scale", *arrays, 1.0, 4, grid=(1, 1, 1, 1), block=4)
    with pytest.raises(migrate.SourceError, match="takes 4 arguments, not 5"):
        migrate.run(cuda, "scale", *arrays, 1.0, 4, 5, grid=1, block=4)


@pytest.mark.parametrize(
    ("kernel", "budget", "words"),
    [
        ("forever_on_the_device", Budget(steps=50_000), "50,000 steps"),
        ("forever", Budget(steps=50_000), "50,000 steps"),
        ("forever", Budget(seconds=0.2), "0.2 seconds"),
        ("many", Budget(), "300,000 steps while unrolling"),
        ("huge", Budget(), "2,147,483,648 bytes"),
        ("wide_product", Budget(bytes=1 << 26), "67,108,864 bytes"),
        ("spread", Budget(), "2,147,483,648 bytes"),
    ],
)
def test_budgets_hold_while_running(tmp_path, kernel, budget, words):
    path = tmp_path / "hostile.py"
    path.write_text(textwrap.dedent(HOSTILE))
    with pytest.raises(migrate.SourceError, match=words) as caught:
        migrate.run(str(path), kernel, np.ones((128, 4), np.float32), budget=budget)
    assert caught.value.where is not None


HOSTILE = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def forever_on_the_device(x):
    t = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    on = nisa.register_alloc(1)
    while on:
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
    return x


@nki.jit
def forever(x):
    t = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    while True:
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)


@nki.jit
def many(x):
    t = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)
    for i in nl.affine_range(10**9):
        nisa.memset(dst=t, value=1.0)
    return x


@nki.jit
def huge(x):
    t = nl.ndarray((1 << 40,), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=t[0:4], src=x[0])
    return t


@nki.jit
def wide_product(x):
    w = nl.ndarray((128, 40000), dtype=nl.float32, buffer=nl.sbuf)
    p = nl.ndarray((40000, 40000), dtype=nl.float32, buffer=nl.psum)
    nisa.memset(dst=w, value=1.0)
    nisa.nc_matmul(dst=p, stationary=w, moving=w)
    return x


@nki.jit
def spread(x):
    t = nl.ndarray((128, 1 << 34), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=t, src=nl.broadcast_to(x[0:128, 0:1], (128, 1 << 34)))
    return x
"""


def test_how_a_kernel_is_run(nki):
    x = np.arange(64, dtype=np.float32).reshape(8, 8) / 3
    value, bound = migrate.run(nki, "doubled", x, precision="bounded")
    assert value.dtype == np.float64
    assert np.array_equal(value, x.astype(np.float64) * 2)
    assert (bound >= 0).all()
    assert np.array_equal(migrate.run(nki, "doubled", x, precision="single"), x * 2)
    assert np.array_equal(migrate.run(nki, "doubled", x, order="sequential"), x * 2)
    assert np.array_equal(migrate.run(nki, "doubled", x, nki_version="0.3"), x * 2)
    with pytest.raises(migrate.SourceError, match="cannot run with NKI"):
        migrate.run(nki, "doubled", x, nki_version="0.1")


def test_more_than_a_memory_holds_is_a_warning(tmp_path):
    path = tmp_path / "large.py"
    path.write_text(LARGE)
    with pytest.warns(OverCapacity, match="of PSUM are in use at once, which has 16,384"):
        migrate.run(str(path), "k", np.ones((128, 4096), np.float32), 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        migrate.run(str(path), "k", np.ones((128, 4096), np.float32), 1)


def test_a_tensor_read_after_another_took_its_addresses(tmp_path):
    path = tmp_path / "placed.py"
    x = np.ones((128, 64), np.float32)
    for second, late, told in (
        ("(0, 0)", "a", True),
        ("(0, 32)", "a", True),
        ("(0, 128)", "a", False),  # in bytes, not in elements
        ("(0, 256)", "a", False),
        ("(0, 0)", "b", False),
        ("None", "a", False),
    ):
        path.write_text(PLACED.format(second=second, late=late))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            migrate.run(str(path), "k", x)
        words = [str(each.message) for each in caught]
        assert [each.category for each in caught] == [Overwritten] * told, words
        if told:
            assert "a is read after b at the same addresses was written" in words[0]
            assert words[0].startswith(f"{path}:14:")


PLACED = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def k(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf, name="a", address=(0, 0))
    b = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf, name="b", address={second})
    nisa.dma_copy(dst=a, src=x)
    nisa.tensor_scalar(dst=b, data=a, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out, src={late})
    return out
"""


LARGE = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def k(x, count):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    tiles = []
    for i in range(count):
        p = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.psum)
        nisa.tensor_copy(dst=p, src=t)
        tiles.append(p)
    for p in tiles:
        nisa.tensor_copy(dst=t, src=p)
    nisa.dma_copy(dst=out, src=t)
    return out
"""


def test_results_are_the_caller_s(nki):
    x = np.ones((8, 8), np.float32)
    y = migrate.run(nki, "doubled", x)
    y[...] = 7
    assert (x == 1).all()
    assert migrate.run(nki, "past_nothing", x) is not x


def test_progress_is_told_in_instructions(tmp_path):
    path = tmp_path / "hostile.py"
    path.write_text(textwrap.dedent(HOSTILE))
    told: list[str] = []
    options = Options(budget=Budget(steps=100_000), progress=told.append)
    found = ran_nki(str(path), "forever", {"x": np.ones((128, 4), np.float32)}, options=options)
    assert found.document.outcome == "stopped"
    assert found.document.reason == "stopped after 100,000 steps while running forever"
    assert len(told) > 10
    assert all(text.startswith("running forever: ") for text in told)
    assert told[-1].endswith(" instructions")
    assert told[-1] != told[0]


CONFIGURED = """
from dataclasses import dataclass

import nki
import nki.isa as nisa
import nki.language as nl


@dataclass(frozen=True)
class Config:
    factor: float = 2.0
    rows: int = 4

    @property
    def double(self):
        return 2 * self.factor


@nki.jit
def scaled(x, config):
    out = nl.ndarray((config.rows, x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((config.rows, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x[0 : config.rows])
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=config.double)
    nisa.dma_copy(dst=out, src=t)
    return out
"""


def test_objects_of_a_class_of_the_kernel_s_file(tmp_path):
    @dataclass
    class Config:
        factor: float
        rows: np.int64

    @dataclass
    class Other:
        rows: int

    path = tmp_path / "configured.py"
    path.write_text(CONFIGURED)
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    found = migrate.run(str(path), "scaled", x, Config(1.5, np.int64(3)))
    assert np.array_equal(found, 3 * x[:3])
    with pytest.raises(migrate.SourceError, match="the name Other is not defined"):
        migrate.run(str(path), "scaled", x, Other(3))
