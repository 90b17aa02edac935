"""The same inputs give the same bytes, whatever the process and the order of its hashes."""

import pytest

from migrate.cli import OK
from tests.cli import limited

MODES = ("never", "auto")
RUN = ("matmul_tiled", "softmax_rows", "vector_add")
"""Samples that are also run."""


@pytest.fixture(scope="module")
def twice(checkout):
    """Reports of every sample in two processes, by sample and mode."""
    samples = sorted(path.parent for path in checkout.glob("samples/*/case.toml"))
    asked = {
        (sample.name, mode): (sample, ["diff", "case.toml", "--format", "json", "--run", mode])
        for sample in samples
        for mode in (MODES if sample.name in RUN else ("never",))
    }
    made = [limited.run(list(asked.values()), PYTHONHASHSEED=seed) for seed in ("1", "20")]
    return {key: pair for key, *pair in zip(asked, *made, strict=True)}


@pytest.mark.parametrize("mode", MODES)
def test_a_comparison_gives_the_same_bytes_again(mode, twice):
    compared = {name: pair for (name, run), pair in twice.items() if run == mode}
    assert len(compared) >= 3
    for name, (first, second) in compared.items():
        assert first.code == second.code == OK, (name, first.err)
        assert first.out == second.out, name
        assert '"deterministic": true' in first.out
