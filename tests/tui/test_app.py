"""The running application: layouts, scrolling, mouse, loading, hostile text."""

import asyncio

import msgspec
import pytest

from migrate.source import Source
from migrate.tui.app import LoadError, ReviewApp
from migrate.tui.model import SIDES, OnConstruct, OnFinding, Overview, Review
from migrate.tui.panes import Bar, ConstructList, Detail, SourceView
from tests.tui.pairs import CONSTRUCTS, CUDA, FINDINGS, NKI, SOURCES, comparison, line
from tests.tui.test_keys import opened, part

PARTS = {"cuda": SourceView, "nki": SourceView, "list": ConstructList, "detail": Detail}


def visible(app):
    """The parts that have some room on the screen."""
    return {name for name, kind in PARTS.items() if part(app, kind, name).region.area}


def text(app, name):
    """What a bar says."""
    return str(part(app, Bar, name).content)


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        ((200, 60), {"cuda", "nki", "list", "detail"}),
        ((110, 30), {"cuda", "nki", "list", "detail"}),
        ((100, 30), {"cuda", "list", "detail"}),
        ((80, 24), {"cuda", "list", "detail"}),
        ((79, 24), {"list", "detail"}),
        ((40, 15), {"list", "detail"}),
    ],
)
async def test_the_parts_shown_follow_the_width(size, shown):
    async with opened(size) as (app, _):
        assert visible(app) == shown


async def test_the_layout_follows_the_size_while_running():
    async with opened((120, 40)) as (app, pilot):
        await pilot.press("s")
        await pilot.resize_terminal(90, 30)
        await pilot.pause()
        assert visible(app) == {"nki", "list", "detail"}
        assert app.focused is part(app, SourceView, "nki")
        await pilot.resize_terminal(60, 30)
        await pilot.pause()
        await pilot.resize_terminal(150, 40)
        await pilot.pause()
        assert visible(app) == set(PARTS)


async def test_one_source_at_a_time_is_flipped():
    async with opened((90, 30)) as (app, pilot):
        await pilot.press("s")
        await pilot.pause()
        assert visible(app) == {"nki", "list", "detail"}
        await pilot.press("n")
        await pilot.press("enter")
        await pilot.pause()
        assert visible(app) == {"cuda", "list", "detail"}


async def test_on_a_narrow_screen_the_sources_open_in_turn():
    async with opened((70, 24)) as (app, pilot):
        seen = []
        for _ in range(3):
            await pilot.press("s")
            await pilot.pause()
            seen.append((visible(app), app.focused.id))
        assert seen == [
            ({"cuda"}, "cuda"),
            ({"nki"}, "nki"),
            ({"list", "detail"}, "list"),
        ]


async def test_the_detail_quotes_the_sources_only_where_they_do_not_stand_beside_it():
    quoted = "  20 │ "
    for size, expected in (((120, 40), False), ((80, 24), True), ((70, 24), True)):
        async with opened(size) as (app, pilot):
            await pilot.press("n")
            shown = str(app.screen.query_one("#detail-text").content)
            assert (quoted in shown) == expected


async def test_title_list_and_detail_follow_the_selection():
    async with opened() as (app, pilot):
        assert "4 findings" in text(app, "title")
        await pilot.press("n")
        assert "finding 1 of 4" in text(app, "title")
        assert part(app, ConstructList).cursor == 2
        assert "error MAP104" in str(app.screen.query_one("#detail-text").content)
        await pilot.press("f", "p", "escape", "j", "j")
        assert "listed construct 3 of 4" in text(app, "title")


def long_pair():
    """Two long texts of which lines 1000 and 4000 are tied."""
    cuda = Source.of("".join(f"int line_{n};\n" for n in range(1, 5001)), "kernel.cu")
    nki = Source.of("".join(f"line_{n} = 0\n" for n in range(1, 9001)), "kernel.py")
    first, second = cuda.line(1000), nki.line(4000)
    tied = msgspec.structs.replace(
        CONSTRUCTS[4],
        cuda=(
            msgspec.structs.replace(
                CONSTRUCTS[4].cuda[0],
                span=cuda.span(cuda.text.index(first), cuda.text.index(first) + len(first)),
            ),
        ),
        nki=(
            msgspec.structs.replace(
                CONSTRUCTS[4].nki[0],
                span=nki.span(nki.text.index(second), nki.text.index(second) + len(second)),
            ),
        ),
    )
    result = comparison(constructs=(tied,), findings=())
    return Review.of(result, {"kernel.cu": cuda, "kernel.py": nki})


async def test_scrolling_one_source_scrolls_the_other_by_construct():
    app = ReviewApp(long_pair())
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        cuda, nki = part(app, SourceView, "cuda"), part(app, SourceView, "nki")
        middle = cuda.size.height // 3
        cuda.scroll_to(y=999 - middle, animate=False)
        await pilot.pause()
        assert nki.scroll_offset.y == 3999 - middle
        nki.scroll_to(y=1999 - middle, animate=False)
        await pilot.pause()
        assert abs(cuda.scroll_offset.y - (500 - middle)) <= 1
        await pilot.press("l")
        before = nki.scroll_offset.y
        cuda.scroll_to(y=3000, animate=False)
        await pilot.pause()
        assert nki.scroll_offset.y == before


async def test_linked_cursors_stand_at_one_height():
    app = ReviewApp(long_pair())
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("g", *"3000", "enter")
        await pilot.pause()
        heights = [
            app.review.line(side) - 1 - part(app, SourceView, side).scroll_offset.y
            for side in ("cuda", "nki")
        ]
        assert heights[0] == heights[1]
        assert 0 <= heights[0] < part(app, SourceView, "cuda").size.height


async def test_the_mouse_selects_lines_and_rows():
    async with opened() as (app, pilot):
        nki = part(app, SourceView, "nki")
        number = line(NKI, "nisa.tensor_scalar")
        await pilot.click(nki, offset=(20, number - 1 - nki.scroll_offset.y))
        await pilot.pause()
        assert app.review.selection == OnConstruct(6)
        assert app.review.side == "nki"
        await pilot.click(part(app, ConstructList), offset=(6, 3))
        await pilot.pause()
        assert app.review.selection == OnConstruct(2)
        await pilot.click(part(app, ConstructList), offset=(6, 0))
        await pilot.pause()
        assert app.review.selection == Overview()


async def test_the_mouse_chooses_verdicts():
    async with opened() as (app, pilot):
        await pilot.press("f")
        await pilot.click("FilterList", offset=(3, 2))
        await pilot.pause()
        assert "mismapped" not in app.review.filter.verdicts


async def test_an_empty_or_odd_line_number_changes_nothing():
    async with opened() as (app, pilot):
        before = app.review.lines
        await pilot.press("g", "enter")
        await pilot.press("g", "x", "minus", "enter")
        assert app.review.lines == before
        assert len(app.screen_stack) == 1


async def test_a_text_that_changed_is_said_to_be_another():
    app = ReviewApp(Review.of(comparison(), {"kernel.cu": CUDA}))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("n", "n")
        await pilot.pause()
        assert "not the one that was compared" in part(app, SourceView, "nki").render_line(0).text


async def test_hostile_text_is_painted_as_text():
    hostile = "[bold red]x[/] \x1b[2J\u202e[@click=app.quit]y[/]"
    cuda = Source.of(f"// {hostile}\n{CUDA.text}", "kernel.cu")
    construct = msgspec.structs.replace(CONSTRUCTS[2], reason=hostile, id="[red]")
    finding = msgspec.structs.replace(FINDINGS[1], message=hostile)
    result = comparison(constructs=(construct,), findings=(finding,), reasons=(hostile,))
    app = ReviewApp(Review.of(result, {"kernel.cu": cuda, "kernel.py": NKI}))
    shown = "[bold red]x[/] \\x1b[2J\\u202e[@click=app.quit]y[/]"
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert shown in str(app.screen.query_one("#detail-text").content)
        await pilot.press("n")
        await pilot.pause()
        assert shown in str(app.screen.query_one("#detail-text").content)
        await pilot.press("s", "home")
        await pilot.pause()
        assert shown[:30] in part(app, SourceView, "cuda").render_line(0).text


async def test_the_sources_are_there_before_the_result():
    done = asyncio.Event()

    async def load():
        await done.wait()
        return comparison(), SOURCES

    app = ReviewApp(Review.reading(CUDA, NKI), load)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert "Each row is divided" in part(app, SourceView, "cuda").render_line(0).text
        assert "comparing" in text(app, "title")
        assert "being compared" in str(app.screen.query_one("#detail-text").content)
        done.set()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "not-faithful" in text(app, "title")
        await pilot.press("n")
        assert app.review.selection == OnFinding(0)


async def test_without_a_result_the_error_is_what_the_application_returns():
    async def load():
        raise LoadError("migrate: kernel.cu: no kernel", 2)

    app = ReviewApp(Review.reading(CUDA, NKI), load)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
    assert app.return_value.message == "migrate: kernel.cu: no kernel"
    assert app.return_value.code == 2


async def test_leaving_cancels_the_comparison():
    cancelled = asyncio.Event()

    async def load():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return comparison(), SOURCES

    app = ReviewApp(Review.reading(CUDA, NKI), load)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("q")
    assert cancelled.is_set()
    assert app.return_value is None


@pytest.mark.parametrize("presses", [(), ("t",)], ids=["dark", "light"])
async def test_text_stands_out_from_its_background(presses):
    async with opened() as (app, pilot):
        await pilot.press("n", *presses)
        await pilot.pause()
        lines = [
            *(part(app, ConstructList).render_line(row) for row in range(9)),
            *(part(app, SourceView, side).render_line(y) for side in SIDES for y in range(20)),
        ]
        for segment in (segment for line in lines for segment in line):
            if segment.text.strip():
                colours = segment.style.color, segment.style.bgcolor
                text, ground = (sum(colour.get_truecolor()) / 3 for colour in colours)
                assert abs(text - ground) > 40, segment


async def test_without_colours_the_selection_still_shows(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened() as (app, pilot):
        await pilot.press("j", "t")
        await pilot.pause()
        assert "NO_COLOR is set" in text(app, "title")
        styles = [segment.style for segment in part(app, ConstructList).render_line(1)]
        assert any(style is not None and style.reverse for style in styles)
        view = part(app, SourceView, "cuda")
        row = app.review.line("cuda") - 1 - view.scroll_offset.y
        assert any(segment.style.underline for segment in view.render_line(row) if segment.style)
