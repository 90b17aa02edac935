"""Every key does what the help says, in the running application."""

from contextlib import asynccontextmanager

import pytest
from textual.command import CommandPalette

from migrate.tui import keys
from migrate.tui.app import DARK, LIGHT, ReviewApp
from migrate.tui.dialogs import FilterDialog, FilterList, HelpDialog, LineDialog, help_lines
from migrate.tui.ink import plain
from migrate.tui.keys import KEYS
from migrate.tui.model import Filter, OnConstruct, OnFinding, Overview
from migrate.tui.panes import ConstructList, Detail, SourceView
from tests.tui.pairs import NKI, line, review

WIDE = (120, 40)


@asynccontextmanager
async def opened(size=WIDE, **changes):
    """The application on a screen of a size, ready for keys."""
    app = ReviewApp(review(**changes))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield app, pilot


def part(app, kind, name=None):
    """A part of the review's screen."""
    return app.screen_stack[0].query_one(f"#{name}" if name else kind.__name__, kind)


async def focused(app, pilot, kind, name=None):
    widget = part(app, kind, name)
    widget.focus()
    await pilot.pause()
    return widget


# Each check prepares the screen, presses the key, and looks at what came of it.


async def next_finding(app, pilot, key):
    await pilot.press(key)
    assert app.review.selection == OnFinding(0)
    await pilot.press(key)
    assert app.review.selection == OnFinding(1)


async def previous_finding(app, pilot, key):
    await pilot.press(key)
    assert app.review.selection == OnFinding(3)


async def next_construct(app, pilot, key):
    await pilot.press(key, key)
    assert app.review.selection == OnConstruct(1)


async def previous_construct(app, pilot, key):
    await pilot.press("j", "j", key)
    assert app.review.selection == OnConstruct(0)


async def next_mismapped(app, pilot, key):
    await pilot.press(key)
    assert app.review.selection == OnConstruct(2)


async def next_unmatched(app, pilot, key):
    await pilot.press(key, key)
    assert app.review.selection == OnConstruct(5)


async def partner(app, pilot, key):
    await pilot.press("j", key)
    assert app.focused is part(app, SourceView, "cuda")
    await pilot.press(key)
    assert app.focused is part(app, SourceView, "nki")
    assert app.review.line("nki") == line(NKI, "for first in range")
    await pilot.press(key, key)
    assert app.review.line("nki") == line(NKI, "min(nl.tile_size.pmax, rows")


async def overview(app, pilot, key):
    await pilot.press("n", key)
    assert app.review.selection == Overview()


async def other_side(app, pilot, key):
    await pilot.press(key)
    assert app.review.side == "nki"
    assert app.focused is part(app, SourceView, "nki")
    await pilot.press(key)
    assert app.focused is part(app, SourceView, "cuda")


async def link(app, pilot, key):
    await pilot.press(key)
    assert not app.review.linked
    await pilot.press(key)
    assert app.review.linked


async def go_to_line(app, pilot, key):
    await pilot.press(key)
    assert isinstance(app.screen, LineDialog)
    await pilot.press("3", "0", "enter")
    assert not isinstance(app.screen, LineDialog)
    assert app.review.line("cuda") == 30


async def choose_verdicts(app, pilot, key):
    await pilot.press(key)
    assert isinstance(app.screen, FilterDialog)


async def theme(app, pilot, key):
    assert app.theme == DARK
    await pilot.press(key)
    assert app.theme == LIGHT
    await pilot.press(key)
    assert app.theme == DARK


ORDER = (("cuda", SourceView), ("nki", SourceView), ("list", ConstructList), ("detail", Detail))


async def next_part(app, pilot, key):
    await focused(app, pilot, SourceView, "cuda")
    for name, kind in (*ORDER[1:], ORDER[0]):
        await pilot.press(key)
        assert app.focused is part(app, kind, name)


async def previous_part(app, pilot, key):
    await focused(app, pilot, SourceView, "cuda")
    for name, kind in reversed(ORDER):
        await pilot.press(key)
        assert app.focused is part(app, kind, name)


async def palette(app, pilot, key):
    await pilot.press(key)
    assert isinstance(app.screen, CommandPalette)
    await pilot.press("escape")


async def help_page(app, pilot, key):
    await pilot.press(key)
    assert isinstance(app.screen, HelpDialog)


async def quit_review(app, pilot, key):
    await pilot.press(key)
    assert app._exit


async def quit_from_a_dialog(app, pilot, key):
    await pilot.press("g", key)
    assert app._exit


async def list_up(app, pilot, key):
    await focused(app, pilot, ConstructList)
    await pilot.press("end", key)
    assert app.review.selection == OnConstruct(6)


async def list_down(app, pilot, key):
    await focused(app, pilot, ConstructList)
    await pilot.press(key)
    assert app.review.selection == OnConstruct(0)


async def list_page_up(app, pilot, key):
    view = await focused(app, pilot, ConstructList)
    await pilot.press("end", key)
    assert app.review.selection == (
        OnConstruct(7 - view.page_rows()) if view.page_rows() < 8 else Overview()
    )


async def list_page_down(app, pilot, key):
    view = await focused(app, pilot, ConstructList)
    await pilot.press(key)
    assert app.review.selection == OnConstruct(min(view.page_rows() - 1, 7))


async def list_first(app, pilot, key):
    await focused(app, pilot, ConstructList)
    await pilot.press("down", "down", key)
    assert app.review.selection == Overview()


async def list_last(app, pilot, key):
    await focused(app, pilot, ConstructList)
    await pilot.press(key)
    assert app.review.selection == OnConstruct(7)


async def source_up(app, pilot, key):
    await focused(app, pilot, SourceView, "nki")
    before = app.review.line("nki")
    await pilot.press(key)
    assert app.review.line("nki") == before - 1


async def source_down(app, pilot, key):
    await focused(app, pilot, SourceView, "nki")
    before = app.review.line("nki")
    await pilot.press(key)
    assert app.review.line("nki") == before + 1


async def source_page_up(app, pilot, key):
    view = await focused(app, pilot, SourceView, "cuda")
    await pilot.press("end", key)
    assert app.review.line("cuda") == 37 - view.page_rows()


async def source_page_down(app, pilot, key):
    view = await focused(app, pilot, SourceView, "cuda")
    await pilot.press("home", key)
    assert app.review.line("cuda") == 1 + view.page_rows()


async def source_first(app, pilot, key):
    await focused(app, pilot, SourceView, "cuda")
    await pilot.press(key)
    assert app.review.line("cuda") == 1


async def source_last(app, pilot, key):
    view = await focused(app, pilot, SourceView, "cuda")
    await pilot.press(key)
    assert app.review.line("cuda") == 37
    assert view.scroll_offset.y > 0


async def source_left(app, pilot, key):
    view = await focused(app, pilot, SourceView, "nki")
    await pilot.press("right", "right", key)
    assert view.scroll_offset.x == 8


async def source_right(app, pilot, key):
    view = await focused(app, pilot, SourceView, "nki")
    await pilot.press(key)
    assert view.scroll_offset.x == 8


def scrolls(prepare, compare):
    """A key of the detail pane, which the help page has as well."""

    async def check(app, pilot, key):
        await pilot.press("question_mark")
        view = app.screen.query_one(Detail)
        await pilot.press(*prepare)
        await pilot.pause()
        before = view.scroll_offset.y
        await pilot.press(key)
        await pilot.pause()
        await pilot.wait_for_animation()
        assert compare(view.scroll_target_y - before, view), (before, view.scroll_target_y)

    return check


async def filter_dialog(pilot, app):
    await pilot.press("f")
    return app.screen.query_one(FilterList)


async def filter_up(app, pilot, key):
    view = await filter_dialog(pilot, app)
    await pilot.press("down", "down", key)
    assert view.cursor == 1


async def filter_down(app, pilot, key):
    view = await filter_dialog(pilot, app)
    await pilot.press(key)
    assert view.cursor == 1


async def filter_choose(app, pilot, key):
    await filter_dialog(pilot, app)
    await pilot.press(key)
    assert app.review.filter == Filter().toggled("matched")
    await pilot.press(key)
    assert app.review.filter.open


async def filter_all(app, pilot, key):
    await filter_dialog(pilot, app)
    await pilot.press("space", key)
    assert app.review.filter.open


async def filter_problems(app, pilot, key):
    await filter_dialog(pilot, app)
    await pilot.press(key)
    assert app.review.filter == Filter.problems()
    assert part(app, ConstructList).virtual_size.height == 5


async def dialog_accept(app, pilot, key):
    for opens in ("f", "question_mark"):
        await pilot.press(opens)
        assert len(app.screen_stack) == 2
        await pilot.press(key)
        assert len(app.screen_stack) == 1
    await pilot.press("g", "7", key)
    assert app.review.line("cuda") == 7


async def dialog_close(app, pilot, key):
    for opens in ("f", "question_mark", "g"):
        await pilot.press(opens)
        assert len(app.screen_stack) == 2
        await pilot.press(key)
        assert len(app.screen_stack) == 1


CHECKS = {
    "finding.next": next_finding,
    "finding.previous": previous_finding,
    "construct.next": next_construct,
    "construct.previous": previous_construct,
    "construct.mismapped": next_mismapped,
    "construct.unmatched": next_unmatched,
    "partner": partner,
    "overview": overview,
    "side": other_side,
    "link": link,
    "line": go_to_line,
    "filter": choose_verdicts,
    "theme": theme,
    "focus.next": next_part,
    "focus.previous": previous_part,
    "palette": palette,
    "help": help_page,
    "quit": quit_review,
    "quit.always": quit_from_a_dialog,
    "list.up": list_up,
    "list.down": list_down,
    "list.page_up": list_page_up,
    "list.page_down": list_page_down,
    "list.first": list_first,
    "list.last": list_last,
    "source.up": source_up,
    "source.down": source_down,
    "source.page_up": source_page_up,
    "source.page_down": source_page_down,
    "source.first": source_first,
    "source.last": source_last,
    "source.left": source_left,
    "source.right": source_right,
    "detail.up": scrolls(("end",), lambda moved, view: moved == -1),
    "detail.down": scrolls((), lambda moved, view: moved == 1),
    "detail.page_up": scrolls(("end",), lambda moved, view: moved < -5),
    "detail.page_down": scrolls((), lambda moved, view: moved > 5),
    "detail.first": scrolls(("end",), lambda moved, view: view.scroll_target_y == 0 > moved),
    "detail.last": scrolls((), lambda moved, view: moved == view.max_scroll_y > 0),
    "filter.up": filter_up,
    "filter.down": filter_down,
    "filter.choose": filter_choose,
    "filter.all": filter_all,
    "filter.problems": filter_problems,
    "dialog.accept": dialog_accept,
    "dialog.close": dialog_close,
}


@pytest.mark.parametrize(("key", "press"), [(key, press) for key in KEYS for press in key.keys])
async def test_every_key_does_what_the_help_says(key, press):
    async with opened() as (app, pilot):
        await CHECKS[key.id](app, pilot, press)


def test_the_help_lists_every_key():
    page = plain(help_lines())
    for key in KEYS:
        assert f"{keys.shown(key)} " in page
        assert key.help in page


def test_ids_and_keys_are_unique_where_they_hold():
    assert len({key.id for key in KEYS}) == len(KEYS)
    everywhere = [press for key in keys.of("app") for press in key.keys]
    for where in keys.HEADINGS:
        pressed = [press for key in keys.of(where) for press in key.keys]
        if where in ("list", "source", "detail"):
            pressed += everywhere
        assert len(set(pressed)) == len(pressed)


async def test_no_key_works_that_the_help_does_not_name():
    known = {press for key in KEYS for press in key.keys}
    async with opened() as (app, pilot):
        for name, kind in ORDER:
            await focused(app, pilot, kind, name)
            assert set(app.screen.active_bindings) <= known
        for opens in ("f", "question_mark"):
            await pilot.press(opens)
            assert set(app.screen.active_bindings) <= known
            await pilot.press("escape")


async def test_the_palette_offers_every_action_and_runs_it():
    async with opened() as (app, pilot):
        offered = {command.title: command for command in app.get_system_commands(app.screen)}
        assert {title.lower() for title in offered} == {
            key.help.lower() for key in keys.of("app") if key.id not in ("palette", "quit.always")
        }
        await offered["Next finding"].callback()
        await pilot.pause()
        assert app.review.selection == OnFinding(0)


async def test_the_footer_names_its_keys():
    async with opened() as (app, _):
        shown = {
            active.binding.id
            for active in app.screen.active_bindings.values()
            if active.binding.show
        }
        assert shown == {key.id for key in KEYS if key.label and key.where == "app"}
