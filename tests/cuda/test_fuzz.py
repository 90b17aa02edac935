"""A short, fixed run of the fuzz target; `python -m tests.fuzz_cuda` runs on."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from tests.fuzz_cuda import check, inputs, long_lines, nested, seeds

INPUTS = 40


def test_mutated_kernels_are_read_or_refused(tmp_path: Path) -> None:
    for data in islice(inputs(2024), INPUTS):
        check(data, tmp_path)


@pytest.mark.parametrize("position", [0, 2, 9, 14, 20])
def test_long_lines(position: int, tmp_path: Path) -> None:
    check(next(islice(long_lines(), position, None)), tmp_path)


def test_the_same_seed_gives_the_same_inputs() -> None:
    assert list(islice(inputs(7), 10)) == list(islice(inputs(7), 10))
    assert list(islice(inputs(7), 10)) != list(islice(inputs(8), 10))


def test_the_seeds_are_read() -> None:
    """Mutations of what is not read to begin with would reach little."""
    from migrate.cuda.check import function
    from migrate.cuda.parse import parse
    from migrate.source import Source

    count = 0
    for text in seeds():
        program = parse(Source.of(b"".join(text).decode(), "seed.cu"))
        assert not program.disagreements
        for definition in program.kernels:
            values = {
                p.name: "float" if p.kind == "type" else 256
                for p in definition.template
                if p.name != "Op"
            }
            if len(values) == len(definition.template):
                count += not function(program, definition.name, values).issues
    assert count >= 5


def test_nesting_reaches_ten_thousand_levels() -> None:
    import random

    longest = max(b"".join(nested([b";"], random.Random(n))).count(b"(") for n in range(200))
    assert longest >= 10_000
