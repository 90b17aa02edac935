"""`migrate run`: arguments and arrays in, arrays out."""

import io
import sys
import zipfile
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from migrate.cli import OK, USAGE, main
from migrate.cli.arrays import npz
from migrate.pipeline.run_document import RunDocument
from migrate.pipeline.run_options import Ran


@pytest.fixture
def asked(monkeypatch):
    """Kernels that return what they were given, and the calls."""
    calls = []

    def ran_cuda(file, kernel, args, **launch):
        options = launch.pop("options")
        calls.append((file, kernel, args, launch, options))
        results = {name: array for name, array in args.items() if isinstance(array, np.ndarray)}
        return Ran(results, RunDocument(file=file, kernel=kernel or "k", side="cuda"))

    def ran_nki(file, kernel, args, *, options):
        calls.append((file, kernel, args, options))
        document = RunDocument(file=file, kernel=kernel or "k", side="nki")
        return Ran({"0": args["x"]}, document)

    api = SimpleNamespace(ran_cuda=ran_cuda, ran_nki=ran_nki)
    monkeypatch.setitem(sys.modules, "migrate.api", api)
    return calls


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arrays = {"x": np.arange(3, dtype=np.float32), "file": np.ones(2)}
    (tmp_path / "in.npz").write_bytes(npz(arrays))
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_cuda_launch(asked):
    arguments = ["run", "k.cu::k", "--inputs", "in.npz", "--arg", "n=3", "--arg", "eps=1e-5"]
    arguments += ["--arg", "flag=true", "--grid", "4,2", "--block", "256", "--shared", "1024"]
    arguments += ["--template", "T=float", "--template", "B=16", "-o", "out.npz"]
    assert main(arguments) == OK
    ((file, kernel, args, launch, _),) = asked
    assert (file, kernel) == ("k.cu", "k")
    assert [args[name] for name in ("n", "eps", "flag")] == [3, 1e-5, True]
    assert args["flag"] is True
    assert launch == {
        "grid": (4, 2, 1),
        "block": (256, 1, 1),
        "template": {"T": "float", "B": 16},
        "shared": 1024,
        "defines": {},
        "include": [],
    }
    with np.load("out.npz") as results:
        np.testing.assert_array_equal(results["x"], [0, 1, 2])
        np.testing.assert_array_equal(results["file"], [1, 1])


@pytest.mark.usefixtures("folder")
def test_an_nki_kernel_to_standard_output(asked, capfdbinary):
    assert main(["run", "k.py", "--inputs", "in.npz", "--target", "trn3"]) == OK
    assert asked[0][3].target == "trn3"
    with np.load(io.BytesIO(capfdbinary.readouterr().out)) as results:
        np.testing.assert_array_equal(results["0"], [0, 1, 2])


@pytest.mark.usefixtures("folder")
def test_narrow_floats_need_their_name(asked, capsys):
    np.savez("narrow.npz", x=np.arange(3).astype(ml_dtypes.bfloat16))
    base = ["run", "k.py", "--inputs", "narrow.npz", "-o", "out.npz"]
    assert main(base) == USAGE
    assert "say what with --dtype x=DTYPE" in capsys.readouterr().err
    assert main([*base, "--dtype", "x=flaot"]) == USAGE
    assert "unknown dtype 'flaot'" in capsys.readouterr().err
    assert main([*base, "--dtype", "x=bfloat16"]) == OK
    assert asked[0][2]["x"].dtype == ml_dtypes.bfloat16


@pytest.mark.usefixtures("asked")
def test_archives_that_cannot_be_read(folder, capsys):
    (folder / "text.npz").write_text("no archive")
    np.savez("pickled.npz", x=np.array([{}], object))
    np.savez("words.npz", x=np.array(["a"]))
    np.savez("cut.npz", x=np.ones(1000))
    _cut(folder / "cut.npz")
    for name, message in {
        "text.npz": "is not an .npz that can be read",
        "pickled.npz": "'x' holds Python objects (pickle), never loaded",
        "words.npz": "'x' holds <U1, which no kernel takes",
        "cut.npz": "'x' is cut short",
        ".": "cannot be read: Is a directory",
    }.items():
        assert main(["run", "k.py", "--inputs", name, "-o", "out.npz"]) == USAGE
        assert f"{name}: {message}" in capsys.readouterr().err


def _cut(path):
    """The same archive with fewer bytes in its array than the header says."""
    with zipfile.ZipFile(path) as archive:
        content = archive.read("x.npy")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", content[:-800])


@pytest.mark.usefixtures("asked")
def test_a_dtype_for_an_array_that_is_not_there(folder, capsys):
    arguments = ["run", "k.py", "--inputs", "in.npz", "--dtype", "z=int8", "-o", "out.npz"]
    assert main(arguments) == USAGE
    assert "in.npz: has no array 'z'" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["1,2,3,4", "x", "0", "1,,2", "-1"])
def test_extents_that_are_none(text, folder, capsys):
    arguments = ["run", "k.cu", f"--grid={text}", "--block", "1", "-o", "out.npz"]
    assert main(arguments) == USAGE
    assert f"--grid {text}" in capsys.readouterr().err


def test_equal_arrays_give_equal_bytes():
    arrays = {"x": np.arange(3), "file": np.ones(2)}
    assert npz(arrays) == npz(arrays)
    with zipfile.ZipFile(io.BytesIO(npz(arrays))) as archive:
        assert archive.namelist() == ["x.npy", "file.npy"]


@pytest.mark.usefixtures("folder")
def test_products_are_rounded_once_unless_asked(asked):
    base = ["run", "k.cu::k", "in.npz", "--grid", "1", "--block", "1", "-o", "out.npz"]
    assert main(base) == OK
    assert main([*base, "--fma", "off"]) == OK
    assert [options.fma for *_, options in asked] == [True, False]


@pytest.mark.usefixtures("folder", "asked")
def test_fused_products_are_of_cuda(capsys):
    assert main(["run", "k.py", "in.npz", "--fma", "off", "-o", "out.npz"]) == USAGE
    assert "--fma is for CUDA kernels" in capsys.readouterr().err
