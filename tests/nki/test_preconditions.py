"""What docstrings demand of sizes."""

from __future__ import annotations

import pytest

from migrate.nki.preconditions import multiples


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("where both K and M are\n    multiples of 128", {"K": 128, "M": 128}),
        ("M, K, and N must all be multiples of 128.", {"M": 128, "K": 128, "N": 128}),
        ("`rows` must be divisible by `P_MAX`", {"rows": 0}),
        ("K is a multiple of 128 * BLOCK", {"K": 0}),
        ("width must be ≤ 4096 and divisible by 64", {"width": 64}),
        ("rows: the number of tokens (must be a multiple of 32)", {"rows": 32}),
        ("needs cols % 512 == 0", {"cols": 512}),
    ],
)
def test_multiples_are_read(text: str, found: dict[str, int]) -> None:
    read = multiples(text)
    assert {name: read.get(name) for name in found} == found


@pytest.mark.parametrize(
    "text",
    ["rows need not be a multiple of 128", "works where rows is not divisible by 128", "", "% ==0"],
)
def test_what_is_denied_is_no_demand(text: str) -> None:
    assert "rows" not in multiples(text)


def test_long_texts_end() -> None:
    assert multiples("a and " * 30_000) == {}
    assert multiples("x(" * 30_000 + " multiple of 3") == {}
