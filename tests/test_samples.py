"""The sample pairs are whole: their cases load, their faults can be planted."""

import tomllib
from pathlib import Path

import pytest

from migrate.case import load

SAMPLES = sorted((Path(__file__).resolve().parent.parent / "samples").glob("*/case.toml"))
FAMILIES = {"mapping", "hardware", "numerics", "performance", "api", "cheat"}
EFFECTS = {"rejects", "wrong", "inaccurate", "slow", "style"}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.parent.name)
def test_a_sample_is_whole(path):
    case = load(path)
    assert case.cuda.file
    assert case.nki.file
    assert case.cuda.launch[0].kernel in case.path(case.cuda.file).read_text()
    assert case.sizes
    assert (path.parent / "README.md").is_file()


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.parent.name)
def test_its_faults_can_be_planted(path):
    kernel = (path.parent / "kernel.py").read_text()
    faults = tomllib.loads((path.parent / "faults.toml").read_text())["fault"]
    assert len({fault["id"] for fault in faults}) == len(faults) >= 5
    for fault in faults:
        assert set(fault) - {"all"} == {"id", "what", "find", "replace", "family", "effect"}
        assert fault["family"] in FAMILIES
        assert fault["effect"] in EFFECTS
        count = kernel.count(fault["find"])
        assert count == 1 or (fault.get("all") and count > 1), fault["id"]
        # Planted, it is still Python.
        compile(kernel.replace(fault["find"], fault["replace"]), "kernel.py", "exec")


def test_there_are_samples():
    assert "vector_add" in {path.parent.name for path in SAMPLES}
