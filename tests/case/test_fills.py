"""Fills: the values asked for, the same ones every time, and files read safely."""

import ml_dtypes
import numpy as np
import pytest

from migrate.case import fills
from migrate.case.fills import FillError

FLOAT = np.dtype(np.float32)
BFLOAT = np.dtype(ml_dtypes.bfloat16)


def make(fill, shape=(4, 5), dtype=FLOAT, **options):
    return fills.make(fills.parse(fill), shape, np.dtype(dtype), **options)


@pytest.mark.parametrize("dtype", [np.float32, BFLOAT, np.int8, np.uint8, np.bool_])
@pytest.mark.parametrize("fill", [*fills.KINDS, "int(0, 3)"])
def test_shape_dtype_and_repeatability(fill, dtype):
    first = make(fill, dtype=dtype, seed=3, name="x")
    assert (first.shape, first.dtype) == ((4, 5), np.dtype(dtype))
    assert first.flags.c_contiguous
    assert first.tobytes() == make(fill, dtype=dtype, seed=3, name="x").tobytes()


@pytest.mark.parametrize("fill", ["normal", "uniform", "int(0, 100)"])
def test_seed_and_name_change_the_values(fill):
    first = make(fill, (100,), seed=0, name="x")
    assert not np.array_equal(first, make(fill, (100,), seed=1, name="x"))
    assert not np.array_equal(first, make(fill, (100,), seed=0, name="y"))


def test_what_they_hold():
    assert (make("ones") == 1).all()
    assert not make("zeros").any()
    np.testing.assert_array_equal(make("arange"), np.arange(20).reshape(4, 5))
    normal = make("normal", (10_000,))
    assert abs(normal.mean()) < 0.05
    assert abs(normal.std() - 1) < 0.05
    uniform = make("uniform", (10_000,))
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert uniform.std() > 0.25


def test_special_numbers_are_strewn_in():
    values = make("special", (10_000,))
    for part in (np.isnan(values), values == np.inf, values == -np.inf):
        assert 0.01 < part.mean() < 0.2
    assert np.abs(values[np.isfinite(values)]).max() < 10
    assert np.isfinite(make("special", (100,), np.int32)).all()


def test_integers_are_half_open_over_sizes():
    values = make("int(-2, N)", (1000,), np.int32, sizes={"N": 3})
    assert set(values.tolist()) == {-2, -1, 0, 1, 2}


def test_unsigned_integers_are_not_negative():
    assert make("normal", (1000,), np.uint32).max() <= 100
    assert make("normal", (1000,), np.int32).min() < 0


def test_booleans_are_both():
    assert set(make("uniform", (100,), np.bool_).tolist()) == {True, False}
    assert make("arange", (4,), np.bool_).tolist() == [False, True, False, True]


@pytest.mark.parametrize("text", ["norml", "int(1)", "int(a b, 2)", "", "file.npz", "normal()"])
def test_unknown_fills(text):
    with pytest.raises(FillError):
        fills.parse(text)


def test_an_empty_range_of_integers():
    with pytest.raises(FillError, match="holds no number"):
        make("int(3, N)", sizes={"N": 3})


def test_too_many_elements():
    with pytest.raises(FillError, match="more than"):
        make("zeros", (2**31,))


@pytest.mark.parametrize("dtype", [np.float32, BFLOAT, np.int64])
def test_a_file_comes_back(tmp_path, dtype):
    stored = np.arange(20).reshape(4, 5).astype(dtype)
    np.save(tmp_path / "x.npy", stored)
    loaded = make("x.npy", dtype=dtype, folder=tmp_path)
    assert loaded.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(loaded, stored)


def test_files_that_do_not_fit(tmp_path):
    np.save(tmp_path / "ints.npy", np.arange(20).reshape(4, 5))
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    (tmp_path / "text.npy").write_text("not an array")
    (tmp_path / "empty.npy").touch()
    np.savez(tmp_path / "several.npz", a=np.ones(2))
    (tmp_path / "several.npz").rename(tmp_path / "several.npy")
    for name, message in {
        "ints": "has dtype int64, not float32",
        "objects": "'objects.npy' holds Python objects",
        "text": "'text.npy' is not an .npy file",
        "empty": "is not an .npy file",
        "several": "holds several arrays",
        "missing": "cannot be read",
    }.items():
        with pytest.raises(FillError, match=message):
            make(f"{name}.npy", folder=tmp_path)
    with pytest.raises(FillError, match=r"has shape \(4, 5\), not \(5, 4\)"):
        make("ints.npy", (5, 4), np.int32, folder=tmp_path)
