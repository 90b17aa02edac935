"""Finding the place by repair: an edit is named only if both kernels then agree."""

from __future__ import annotations

import msgspec
import pytest

from migrate.pipeline.repair import repaired
from migrate.source import Span
from tests.pairs import ADD, ADD_NKI, case, combined, read


def place(text: str, piece: str) -> Span:
    """Where a piece stands, the first time."""
    start = text.index(piece)
    line = text.count("\n", 0, start) + 1
    column = start - text.rfind("\n", 0, start)
    return Span(
        file="kernel.py",
        start_line=line,
        start_column=column,
        end_line=line,
        end_column=column + len(piece),
    )


def tried(right: str, *pieces: str, n: object = (100, 700)) -> tuple[str, str] | None:
    """The text and the change of the suspect that was found."""
    pair, positions = read(ADD, right, case(n=n))
    found = repaired(pair, positions.readings, [place(right, piece) for piece in pieces])
    if found is None:
        return None
    span, change = found
    return pair.nki_source.excerpt(span), change


LOOP = "range(0, n, 512)"


@pytest.mark.parametrize(
    ("find", "replace", "suspect", "change"),
    [
        (LOOP, "range(0, n - 1, 512)", "n - 1", "`n` in place of `n - 1`"),
        (
            LOOP,
            "range(0, n // 512 * 512, 512)",
            "n // 512 * 512",
            "`n` in place of `n // 512 * 512`",
        ),
        (LOOP, "range(0, n, 2 * 512)", "2 * 512", "`512` in place of `2 * 512`"),
        ("min(512, n - start)", "min(512, n - start - 1)", "n - start - 1", "`n - start` in place"),
        (
            "    for start",
            "    m = (n + n - 2) // 2\n    for start",
            "(n + n - 2) // 2",
            "`(n + n - 2) // 2` + 1",
        ),
    ],
)
def test_the_edit_that_makes_both_agree(find: str, replace: str, suspect: str, change: str) -> None:
    right = ADD_NKI.replace(find, replace)
    if "m = " in replace:
        right = right.replace("range(0, n, 512)", "range(0, m, 512)").replace(
            "n - start", "m - start"
        )
    found = tried(right, suspect, n=[100, 1024, 1025])
    assert found is not None
    assert found[0] == suspect
    assert found[1].startswith(change)


def test_a_branch_that_should_be_taken() -> None:
    right = ADD_NKI.replace("    for start", "    if n > 200:\n     for start").replace(
        "\n        ", "\n         "
    )
    assert tried(right, "n > 200") == ("n > 200", "`n > 200` always taken")


def test_of_several_suspects_the_cause() -> None:
    right = ADD_NKI.replace(LOOP, "range(0, n - 1, 512)")
    found = tried(right, "min(512, n - start)", "x.shape[0]", "n - 1", n=[513])
    assert found == ("n - 1", "`n` in place of `n - 1`")


def test_what_no_small_edit_repairs_has_no_cause() -> None:
    right = combined("subtract")
    assert tried(right, "512", "n - start", "x.shape[0]") is None


def test_an_edit_must_hold_at_every_size() -> None:
    """One more element is right at n = 100 and one too many at n = 99."""
    right = ADD_NKI.replace("n = x.shape[0]", "n = x.shape[0]\n    m = n // 2 * 2 - 1")
    right = right.replace(LOOP, "range(0, m, 512)").replace("n - start", "m - start")
    found = tried(right, "n // 2 * 2 - 1", n=[99, 100])
    assert found is None or found[1] != "`n // 2 * 2 - 1` + 1"


def test_kernels_that_agree_need_no_repair() -> None:
    assert tried(ADD_NKI, "n - start") is None


@pytest.mark.parametrize("piece", ["nisa.dma_copy", "import nki", "@nki.jit", "(1, size)"])
def test_what_is_no_number_is_no_suspect(piece: str) -> None:
    assert tried(combined("subtract"), piece) is None


def test_places_of_another_file_are_left_alone() -> None:
    right = ADD_NKI.replace(LOOP, "range(0, n - 1, 512)")
    pair, positions = read(ADD, right, case(n=[513]))
    elsewhere = msgspec.structs.replace(place(right, "n - 1"), file="helper.py")
    found = repaired(pair, positions.readings, [elsewhere])
    assert found is not None
    assert found[0].file == "kernel.py"


def test_bounds_that_nothing_suspects_come_last() -> None:
    right = ADD_NKI.replace(LOOP, "range(0, n - 1, 512)")
    found = tried(right, "x.shape[0]", n=[513])
    assert found == ("n - 1", "`n` in place of `n - 1`")
    assert tried(right, n=[513]) is None


def test_a_slice_that_does_not_move_with_the_loop() -> None:
    right = ADD_NKI.replace("x[start : start + size]", "x[0:size]")
    assert right != ADD_NKI
    found = tried(right, "x.shape[0]", n=[700])
    assert found == ("0:size", "`start : start + size` in place of `0:size`")


def test_what_a_tile_was_filled_with() -> None:
    add = "nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)"
    begin = ADD_NKI.index(add)
    indent = " " * (begin - ADD_NKI.rfind("\n", 0, begin) - 1)
    right = ADD_NKI.replace(
        add,
        f"c = nl.ndarray((1, size), dtype=nl.float32, buffer=nl.sbuf)\n{indent}"
        f"nisa.memset(dst=c, value=1.0)\n{indent}"
        f"nisa.tensor_tensor(dst=b, data1=b, data2=c, op=nl.add)\n{indent}{add}",
    )
    pair, positions = read(ADD, right, case(n=(100,)))
    found = repaired(pair, positions.readings, [])
    assert found is not None
    assert pair.nki_source.excerpt(found[0]) == "1.0"
    assert found[1] == "`0.0` in place of `1.0`"
