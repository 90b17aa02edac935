"""The review's application: a screen of panes on one `Review`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import ClassVar, Final, TypeAlias

from textual import events
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Footer

from migrate.results import Comparison, Side
from migrate.source import Source
from migrate.tui import keys, listing
from migrate.tui.detail import detail
from migrate.tui.dialogs import FilterDialog, HelpDialog, LineDialog
from migrate.tui.model import SIDES, UNMATCHED, Review, Transition, layout, other
from migrate.tui.panes import Bar, ConstructList, Detail, SourceView, bindings

Loaded: TypeAlias = tuple[Comparison, Mapping[str, Source]]
Load: TypeAlias = Callable[[], Awaitable[Loaded]]

DARK: Final = "textual-dark"
LIGHT: Final = "textual-light"
_WITHOUT_COLOUR: Final = "ansi-dark"


class LoadError(Exception):
    """There is no result: one sentence, and the exit code it amounts to."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class ReviewScreen(Screen[None], inherit_bindings=False):
    """The review itself."""

    @property
    def owner(self) -> ReviewApp:
        """The application, with its own type."""
        assert isinstance(self.app, ReviewApp)
        return self.app

    def compose(self) -> ComposeResult:
        app = self.owner
        yield Bar(id="title")
        with Horizontal(id="sources"):
            for side in SIDES:
                with Vertical(classes="pane", id=f"{side}-pane"):
                    yield Bar(classes="heading", id=f"{side}-heading")
                    yield SourceView(side, app.review, app.change)
        with Horizontal(id="lower"):
            with Vertical(classes="pane", id="list-pane"):
                yield Bar(classes="heading", id="tally")
                yield ConstructList(app.review, app.change)
            yield Detail("detail")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        app = self.owner
        for side in SIDES:
            self.source(side).scrolled = app.follow
        self.query_one(ConstructList).focus()
        app.redraw()
        self.call_after_refresh(app.begin)

    def source(self, side: Side) -> SourceView:
        """The view of a side."""
        return self.query_one(f"#{side}", SourceView)

    def on_resize(self, event: events.Resize) -> None:
        app = self.owner
        app.arrange(event.size.width)
        self.call_after_refresh(app.redraw)


class ReviewApp(App["LoadError | None"], inherit_bindings=False):
    """Shows a review; with `load`, compares first while both sources can be read.

    Returns `None`, or the error that left it without a result.
    """

    CSS_PATH = "review.tcss"
    TITLE = "migrate review"
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = bindings("app")

    def __init__(self, review: Review, load: Load | None = None, *, light: bool = False) -> None:
        without_colour = bool(os.environ.get("NO_COLOR"))
        super().__init__(ansi_color=True if without_colour else None)
        self.review = review
        self._load = load
        self._without_colour = without_colour
        self._shape = layout(80)
        self._main = ReviewScreen()
        if without_colour:
            self.theme = _WITHOUT_COLOUR
        else:
            self.theme = LIGHT if light else DARK

    def get_default_screen(self) -> Screen[None]:
        return self._main

    def on_mount(self) -> None:
        self.theme_changed_signal.subscribe(self, lambda _: self.redraw(again=True))

    def begin(self) -> None:
        """The first screen stands: compare, if there is no result yet."""
        if self._load is not None:
            self.run_worker(self._compare(self._load), exit_on_error=True)

    async def _compare(self, load: Load) -> None:
        clock = self.set_interval(1.0, lambda: self.change(Review.waiting))
        try:
            result, sources = await load()
        except LoadError as error:
            self.exit(error)
            return
        finally:
            clock.stop()
        self.change(lambda review: review.with_result(result, sources))

    # -- painting -----------------------------------------------------------------------

    def change(self, transition: Transition) -> None:
        """Move to another state and paint it."""
        before = self.review
        self.review = transition(before)
        self.redraw(before=before)

    def redraw(self, *, before: Review | None = None, again: bool = False) -> None:
        """Paint the state; `again` also what has not changed."""
        main, review = self._main, self.review
        if not main.is_mounted:
            return
        self._arrange()
        main.query_one("#title", Bar).show(listing.title(review))
        main.query_one("#tally", Bar).show(listing.tally(review))
        main.query_one(ConstructList).show(review)
        for side in SIDES:
            main.query_one(f"#{side}-heading", Bar).show(listing.heading(review, side))
            main.source(side).show(review)
        self._reveal(before)
        lines = detail(review, excerpts=self._shape != "wide")
        main.query_one(Detail).show(lines, again=again)

    def _reveal(self, before: Review | None) -> None:
        """Bring the cursors into view, at one height where the sources are linked."""
        review = self.review
        front = self._main.source(review.side)
        back = self._main.source(other(review.side))
        if before is not None and before.lines == review.lines and before.pair is review.pair:
            return
        front.reveal(review.line(front.side) - 1)
        if review.linked:
            height = review.line(front.side) - 1 - front.scroll_offset.y
            back.scroll_row(review.line(back.side) - 1 - height)
        else:
            back.reveal(review.line(back.side) - 1)

    def follow(self, side: Side, top: int) -> None:
        """A source was scrolled to a first row: the other one goes along."""
        if not self.review.linked:
            return
        view, back = self._main.source(side), self._main.source(other(side))
        middle = view.scrollable_content_region.height // 3
        back.scroll_row(self.review.across(side, top + middle + 1) - 1 - middle)

    def arrange(self, width: int) -> None:
        """Choose the layout for a width in cells."""
        self._shape = layout(width)
        self._arrange()

    def _arrange(self) -> None:
        main, review = self._main, self.review
        for shape in ("wide", "single", "narrow"):
            main.set_class(self._shape == shape, f"-{shape}")
        for side in SIDES:
            main.set_class(review.side == side, f"-{side}")
        main.set_class(review.source_open, "-open")
        self._keep_focus()

    def _keep_focus(self) -> None:
        """Focus stays on what is shown."""
        main, focused = self._main, self._main.focused
        if isinstance(focused, SourceView):
            if self._shape == "narrow" and not self.review.source_open:
                main.query_one(ConstructList).focus()
            elif self._shape != "wide" and focused.side != self.review.side:
                main.source(self.review.side).focus()
        elif self._shape == "narrow" and self.review.source_open:
            main.source(self.review.side).focus()

    # -- actions ------------------------------------------------------------------------

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        for key in keys.of("app"):
            if key.id not in ("palette", "quit.always"):
                title = key.help[0].upper() + key.help[1:]
                run = partial(self.run_action, key.action)
                yield SystemCommand(title, f"Key: {keys.shown(key)}", run)

    def action_next_finding(self) -> None:
        self.change(Review.next_finding)

    def action_previous_finding(self) -> None:
        self.change(Review.previous_finding)

    def action_next_construct(self) -> None:
        self.change(Review.next_construct)

    def action_previous_construct(self) -> None:
        self.change(Review.previous_construct)

    def action_next_mismapped(self) -> None:
        self.change(lambda review: review.next_with(("mismapped",)))

    def action_next_unmatched(self) -> None:
        self.change(lambda review: review.next_with(UNMATCHED))

    def action_overview(self) -> None:
        self.change(Review.overview)

    def action_partner(self) -> None:
        if isinstance(self._main.focused, SourceView):
            self.change(Review.partner)
        else:
            self.change(lambda review: review.front(review.side))
        self._main.source(self.review.side).focus()

    def action_other_side(self) -> None:
        self.change(lambda review: review.other_side(self._shape))
        if self._shape != "narrow" or self.review.source_open:
            self._main.source(self.review.side).focus()

    def action_link(self) -> None:
        self.change(Review.toggle_link)

    def action_line(self) -> None:
        side = self.review.side
        self.push_screen(LineDialog(side, self.review.pair.line_count(side), self.change))

    def action_filter(self) -> None:
        self.push_screen(FilterDialog(self.review, self.change))

    def action_help(self) -> None:
        self.push_screen(HelpDialog())

    def action_theme(self) -> None:
        if self._without_colour:
            self.change(lambda review: review.noting("NO_COLOR is set"))
        else:
            self.theme = LIGHT if self.theme == DARK else DARK

    def action_next_part(self) -> None:
        self._main.focus_next()

    def action_previous_part(self) -> None:
        self._main.focus_previous()
