"""`migrate run` of NKI kernels: options, statistics, traces, runs that end early."""

import json
import signal
import textwrap
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from migrate.cli import INTERRUPTED, OK, USAGE, main
from migrate.cli.arrays import npz
from migrate.cli.run import Interrupts

KERNELS = """\
    import nki
    import nki.isa as nisa
    import nki.language as nl


    @nki.jit
    def thirds(x):
        out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
        t = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
        u = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=u, src=x)
        nisa.tensor_scalar(dst=t, data=u, op0=nl.multiply, operand0=1 / 3)
        nisa.tensor_copy(dst=u, src=t)
        nisa.dma_copy(dst=out, src=u)
        return out


    @nki.jit
    def sums(x):
        out = nl.ndarray((4, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        t = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
        s = nl.ndarray((4, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x)
        nisa.tensor_reduce(dst=s, op=nl.add, data=t, axis=1)
        nisa.dma_copy(dst=out, src=s)
        return out


    @nki.jit
    def programs(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        t = nl.ndarray((1, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        row = nl.program_id(0)
        nisa.dma_copy(dst=t, src=x[nl.ds(row, 1), :])
        nisa.dma_copy(dst=out[nl.ds(row, 1), :], src=t)
        return out


    @nki.jit
    def endless(x):
        kept = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x)
        nisa.dma_copy(dst=kept, src=t)
        while True:
            nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
        return kept


    @nki.jit
    def unwritten(x):
        t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x, src=t)
"""


@pytest.fixture
def x(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    array = np.arange(32, dtype=np.float32).reshape(4, 8) + 0.5
    (tmp_path / "k.py").write_text(textwrap.dedent(KERNELS))
    (tmp_path / "in.npz").write_bytes(npz({"x": array}))
    return array


def results():
    with np.load("out.npz") as found:
        return dict(found)


def test_inputs_and_kernel_by_position_and_name(x, capsys):
    assert main(["run", "k.py", "--kernel", "thirds", "in.npz", "-o", "out.npz"]) == OK
    third = (x * np.float32(1 / 3)).astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(results()["out0"], third)
    out, err = capsys.readouterr()
    assert "k.py::thirds, trn2: ran to its end, 4 instructions" in out
    assert "out0  float32[4, 8]" in out
    assert err == ""
    for twice in (["k.py::thirds", "--kernel", "sums"], ["k.py::sums", "--inputs", "in.npz"]):
        assert main(["run", *twice, "in.npz", "-o", "out.npz"]) == USAGE
        assert "named twice" in capsys.readouterr().err


def test_precisions(x):
    base = ["run", "k.py::thirds", "in.npz", "-o", "out.npz", "--precision"]
    assert main([*base, "single"]) == OK
    np.testing.assert_array_equal(results()["out0"], x * np.float32(1 / 3))
    assert main([*base, "bounded"]) == OK
    found = results()
    assert found["out0"].dtype == np.float64
    np.testing.assert_allclose(found["out0"], x.astype(np.float64) / 3, rtol=1e-12)
    rounded = (x * np.float32(1 / 3)).astype(ml_dtypes.bfloat16).astype(np.float64)
    off = np.abs(rounded - found["out0"])
    assert (off <= found["out0_bound"]).all()
    assert (found["out0_bound"] < 0.01 * x).all()


def test_the_order_of_sums(x):
    drawn = np.random.default_rng(0).standard_normal((4, 4096)).astype(np.float32)
    Path("wide.npz").write_bytes(npz({"x": drawn}))
    base = ["run", "k.py::sums", "wide.npz", "-o", "out.npz"]
    assert main([*base, "--order", "sequential"]) == OK
    np.testing.assert_array_equal(results()["out0"][:, 0], np.cumsum(drawn, axis=1)[:, -1])
    assert main(base) == OK
    np.testing.assert_array_equal(results()["out0"][:, 0], drawn.sum(axis=1))


def test_programs_of_a_grid(x):
    base = ["run", "k.py::programs", "in.npz", "-o", "out.npz", "--grid", "4"]
    assert main(base) == OK
    np.testing.assert_array_equal(results()["out0"], x)


def test_statistics_and_a_trace_as_json(x, capsys):
    assert main(["run", "k.py::thirds", "in.npz", "--json", "--stats", "--trace"]) == OK
    told = json.loads(capsys.readouterr().out)
    assert told["instructions"] == 4
    assert told["statistics"]["engines"] == {"dma": 2, "vector": 2}
    assert told["statistics"]["opcodes"] == {"dma_copy": 2, "tensor_scalar": 1, "tensor_copy": 1}
    moved = {(m["source"], m["destination"]): m["bytes"] for m in told["statistics"]["moved"]}
    assert moved == {("hbm", "sbuf"): 128, ("sbuf", "sbuf"): 64, ("sbuf", "hbm"): 128}
    assert [step["opcode"] for step in told["trace"]] == [
        "dma_copy", "tensor_scalar", "tensor_copy", "dma_copy",
    ]  # fmt: skip
    first, second = told["trace"][:2]
    assert first["span"]["start_line"] == 11
    dst, src = first["operands"]
    assert (dst["name"], dst["memory"], dst["dtype"]) == ("dst", "sbuf", "float32")
    assert (dst["shape"], dst["values"]) == ([4, 8], [0.5, 1.5, 2.5, 3.5])
    assert (src["tensor"], src["values"]) == ("x", None)
    assert second["attributes"]["op0"] == "multiply"
    (result,) = told["results"]
    assert (result["name"], result["shape"], result["nan"]) == ("out0", [4, 8], 0)


def test_statistics_and_a_trace_as_text(x, capsys):
    arguments = ["run", "k.py::thirds", "in.npz", "-o", "out.npz", "--stats", "--trace"]
    assert main([*arguments, "--trace-limit", "1"]) == OK
    out = capsys.readouterr().out
    assert "#0 k.py:11:5 dma_copy (dma)\n" in out
    assert "dst: u sbuf float32[4, 8] = 0.5, 1.5, 2.5, 3.5, ...\n" in out
    assert "#1" not in out
    assert "  sbuf to hbm   128\n" in out
    assert main(["run", "k.py::thirds", "in.npz", "--trace", "--trace-limit", "0"]) == USAGE


def test_a_version_that_the_kernel_does_not_go_with(x, capsys):
    base = ["run", "k.py::thirds", "in.npz", "-o", "out.npz", "--nki-version"]
    assert main([*base, "0.3"]) == OK
    assert main([*base, "0.1"]) == USAGE
    assert "k.py:1:1: cannot run with NKI 0.1.0" in capsys.readouterr().err
    assert main([*base, "9.9"]) == USAGE


def test_reading_what_nothing_wrote_is_a_warning_with_both_lines(x, capsys):
    assert main(["run", "k.py::unwritten", "in.npz", "-o", "out.npz"]) == OK
    err = capsys.readouterr().err
    assert err.startswith("migrate: warning: k.py:")
    assert "32 elements of t are read before they are written (allocated at k.py:" in err


def test_what_hardware_would_not_take_is_a_warning(x, capsys):
    Path("wide.npz").write_bytes(npz({"x": np.ones((130, 4), np.float32)}))
    assert main(["run", "k.py::thirds", "wide.npz", "-o", "out.npz"]) == OK
    err = capsys.readouterr().err
    assert "migrate: warning: k.py:11:5: dma_copy: dst has 130 partitions, 128 at most" in err


def test_operands_that_do_not_fit_are_refused_in_words(x, capsys):
    text = Path("k.py").read_text()
    Path("k.py").write_text(text.replace("(1, x.shape[1])", "(2, x.shape[1])"))
    assert main(["run", "k.py::programs", "in.npz", "-o", "out.npz", "--grid", "4"]) == USAGE
    assert capsys.readouterr().err == (
        "migrate: k.py:34:5: dma_copy: dst has 16 elements (2, 8), src has 8 (1, 8)\n"
    )


def test_a_bound_leaves_what_is_computed(x, capsys):
    assert main(["run", "k.py::endless", "in.npz", "-o", "out.npz"]) == USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert "stopped after" in err
    assert "out.npz holds the tensors in HBM as they were" in err
    np.testing.assert_array_equal(results()["kept"], x)


def test_ctrl_c_leaves_what_is_computed(x, capsys, monkeypatch):
    looked = []

    def entered(self):
        looked.append(self)
        self.asked = True
        return self

    monkeypatch.setattr(Interrupts, "__enter__", entered)
    assert main(["run", "k.py::endless", "in.npz", "-o", "out.npz"]) == INTERRUPTED
    assert looked
    assert "cancelled while running endless" in capsys.readouterr().err


def test_the_second_ctrl_c_ends_at_once():
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        assert interrupts.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("option", [["--stats"], ["--order", "blas"], ["--target", "trn1"]])
def test_what_is_for_nki_kernels_only(option, x, capsys):
    Path("k.cu").write_text('extern "C" __global__ void k(float* x) { x[0] = 1.0f; }')
    base = ["run", "k.cu", "in.npz", "--grid", "1", "--block", "1", "-o", "out.npz"]
    assert main(base) == OK
    assert main([*base, *option]) == USAGE
    assert "is for NKI kernels" in capsys.readouterr().err
