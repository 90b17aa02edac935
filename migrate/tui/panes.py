"""The parts of the screen: sources and the list by Textual's line API, the detail as text.

A pane paints what the model says of its part, and hands keys back as transitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, TypeAlias

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from migrate.results import Side
from migrate.tui import keys, listing
from migrate.tui.ink import INKS, Line, Piece
from migrate.tui.model import Review, Transition

Change: TypeAlias = Callable[[Transition], None]

_SIDEWAYS = 8
_INK_CLASSES = {f"ink--{ink}" for ink in INKS}


def bindings(*where: keys.Where) -> list[BindingType]:
    """Textual's bindings for some parts of the screen."""
    return [
        Binding(
            ",".join(key.keys),
            key.action,
            key.label or key.help,
            show=bool(key.label),
            priority=key.priority,
            id=key.id,
        )
        for key in keys.of(*where)
    ]


def text(widget: Widget, lines: Iterable[Line]) -> Text:
    """Lines in the inks of a widget; a `Text` is not read as markup."""
    made = Text()
    for number, line in enumerate(lines):
        if number:
            made.append("\n")
        for piece in line:
            made.append(piece.text, widget.get_component_rich_style(f"ink--{piece.ink}"))
    return made


class Lines(ScrollView, can_focus=True, inherit_bindings=False):
    """Lines that are rendered when they are shown, one of them with the cursor."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *_INK_CLASSES,
        "line--cursor",
        "line--marked",
        "line--gutter",
    }

    def line_style(self, name: str) -> Style:
        """The background and weight of a part, over whatever ink."""
        # The whole style, since only that blends a translucent background with what is below.
        style = self.get_component_rich_style(f"line--{name}")
        return style.without_color + Style(bgcolor=style.bgcolor)

    @property
    def ground(self) -> Style:
        """What is behind the text."""
        return self.get_component_rich_style("ink--text")

    def segments(self, line: Iterable[Piece], over: Style) -> list[Segment]:
        """A line's pieces in their inks."""
        return [
            Segment(piece.text, self.get_component_rich_style(f"ink--{piece.ink}") + over)
            for piece in line
        ]

    def reveal(self, row: int) -> None:
        """Scroll so that a row (from 0) is in view, with some lines before it."""
        height = self.scrollable_content_region.height
        top = self.scroll_offset.y
        margin = min(2, max(0, (height - 1) // 2))
        if not top + margin <= row < top + height - margin:
            self.scroll_row(row - height // 3)

    def scroll_row(self, top: int) -> None:
        """Scroll so that a row is the first one shown."""
        self.scroll_to(y=max(0, top), animate=False, force=True)

    def page_rows(self) -> int:
        """The rows of a page, less one for the eye to hold on to."""
        return max(1, self.scrollable_content_region.height - 1)


class SourceView(Lines):
    """One source with its gutter.

    Scrolling by wheel or bar is told to `scrolled`, so that the other source can follow.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("source")

    def __init__(self, side: Side, review: Review, change: Change) -> None:
        super().__init__(id=side)
        self.side: Side = side
        self.review = review
        self._change = change
        self.scrolled: Callable[[Side, int], None] | None = None
        self._quiet = False

    def show(self, review: Review) -> None:
        """Paint a state."""
        if review.pair is not self.review.pair or not self.virtual_size.area:
            document = review.pair.document(self.side)
            width = listing.gutter_width(review.pair, self.side)
            width += document.width + 1 if document is not None else 60
            self.virtual_size = Size(width, review.pair.line_count(self.side))
        self.review = review
        self.refresh()

    def on_mount(self) -> None:
        self.show(self.review)

    def scroll_row(self, top: int) -> None:
        self._quiet = True
        try:
            super().scroll_row(top)
        finally:
            self._quiet = False

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if not self._quiet and self.scrolled is not None and round(old_value) != round(new_value):
            self.scrolled(self.side, round(new_value))

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        number = self.scroll_offset.y + y + 1
        line = listing.source_line(self.review, self.side, number)
        if line is None:
            if number == 1:
                note = Piece("This text is not the one that was compared, or is gone.", "warning")
                return Strip(self.segments((note,), Style())).adjust_cell_length(width, self.ground)
            return Strip.blank(width, self.ground)
        cursor = self.line_style("cursor") if line.cursor else Style()
        gutter = Strip(self.segments(line.gutter, self.line_style("gutter") + cursor))
        marked = self.line_style("marked")
        code = Strip(
            [
                Segment(
                    part.text,
                    self.get_component_rich_style(f"ink--{part.ink}")
                    + cursor
                    + (marked if part.marked else Style()),
                )
                for part in line.code
            ]
        )
        room = max(0, width - gutter.cell_length)
        left = self.scroll_offset.x
        shown = code.crop(left, left + room).adjust_cell_length(room, self.ground + cursor)
        return Strip.join([gutter, shown]).adjust_cell_length(width, self.ground)

    def on_focus(self) -> None:
        if self.review.side != self.side:
            self._change(lambda review: review.front(self.side))

    def on_click(self, event: events.Click) -> None:
        line = self.scroll_offset.y + event.y + 1
        self._change(lambda review: review.go(self.side, line))

    def action_step(self, count: int) -> None:
        self._change(lambda review: review.move(self.side, count))

    def action_page(self, count: int) -> None:
        self.action_step(count * self.page_rows())

    def action_first(self) -> None:
        self._change(lambda review: review.go(self.side, 1))

    def action_last(self) -> None:
        self._change(lambda review: review.go(self.side, review.pair.line_count(self.side)))

    def action_sideways(self, count: int) -> None:
        self.scroll_to(x=self.scroll_offset.x + count * _SIDEWAYS, animate=False, force=True)


class ConstructList(Lines):
    """The verdict on the pair, then the constructs that the filter admits."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list")

    def __init__(self, review: Review, change: Change) -> None:
        super().__init__(id="list")
        self.review = review
        self._listed = review.listed
        self._change = change

    def show(self, review: Review) -> None:
        """Paint a state and keep what is selected in view."""
        self.review = review
        self._listed = review.listed
        self.virtual_size = Size(60, len(self._listed) + 1)
        row = self.cursor
        if row is not None:
            self.reveal(row)
        self.refresh()

    def on_mount(self) -> None:
        self.show(self.review)

    @property
    def cursor(self) -> int | None:
        """The row of what is selected; `None` where it is not listed."""
        if self.review.construct in self._listed:
            return self._listed.index(self.review.construct) + 1
        return 0 if self.review.finding is None and self.review.construct is None else None

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        row = self.scroll_offset.y + y
        if row > len(self._listed):
            return Strip.blank(width, self.ground)
        line = (
            listing.overview_row(self.review)
            if row == 0
            else listing.row(self.review.pair, self._listed[row - 1])
        )
        over = self.line_style("cursor") if row == self.cursor else Style()
        left = self.scroll_offset.x
        strip = Strip(self.segments(line, over)).crop(left, left + width)
        return strip.adjust_cell_length(width, self.ground + over)

    def on_click(self, event: events.Click) -> None:
        row = self.scroll_offset.y + event.y
        if row == 0:
            self._change(Review.overview)
        elif row <= len(self._listed):
            index = self._listed[row - 1]
            self._change(lambda review: review.select(index))

    def action_step(self, count: int) -> None:
        self._change(lambda review: review.step_listed(count))

    def action_page(self, count: int) -> None:
        self.action_step(count * self.page_rows())

    def action_first(self) -> None:
        self._change(Review.overview)

    def action_last(self) -> None:
        self.action_step(len(self._listed) + 1)


class Detail(VerticalScroll, can_focus=True, inherit_bindings=False):
    """What there is to say about the selection."""

    COMPONENT_CLASSES: ClassVar[set[str]] = _INK_CLASSES
    BINDINGS: ClassVar[list[BindingType]] = bindings("detail")

    def __init__(self, part: str) -> None:
        super().__init__(id=part)
        self._shown: tuple[Line, ...] = ()

    def compose(self) -> ComposeResult:
        yield Static(id=f"{self.id}-text")

    def show(self, lines: tuple[Line, ...], *, again: bool = False) -> None:
        """Show lines from their beginning; `again` paints the same ones anew."""
        if lines == self._shown and not again:
            return
        if not again:
            self.scroll_home(animate=False)
        self._shown = lines
        self.query_one(Static).update(text(self, lines))


class Bar(Static):
    """One line of text: a title, a heading."""

    COMPONENT_CLASSES: ClassVar[set[str]] = _INK_CLASSES

    def show(self, line: Line) -> None:
        """Paint a line."""
        self.update(text(self, (line,)))
