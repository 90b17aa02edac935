"""What opens above the review: help, the choice of verdicts, go to line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widgets import Input

from migrate.results import Side
from migrate.tui import keys
from migrate.tui.ink import SEVERITY_INKS, SEVERITY_LETTERS, Line, Piece
from migrate.tui.listing import verdict
from migrate.tui.model import NAMES, VERDICTS, Filter, Review
from migrate.tui.panes import Bar, Change, Detail, Lines, bindings

_MEANINGS = {
    "matched": "the same on both sides",
    "transformed": "another form, the same meaning",
    "mismapped": "paired, but a requirement fails",
    "missing": "in CUDA only",
    "extra": "in NKI only, unexplained",
    "not-needed": "rightly gone",
    "unknown": "not understood",
}


class Dialog(ModalScreen[None], inherit_bindings=False):
    """A window over the review that enter or escape closes."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("dialog")

    def action_accept(self) -> None:
        self.action_close()

    def action_close(self) -> None:
        self.dismiss()


class HelpDialog(Dialog):
    """Every key and every sign."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="window tall"):
            yield Bar(classes="heading")
            yield Detail("help")

    def on_mount(self) -> None:
        self.query_one(Bar).show(
            (Piece("Keys and signs", "strong"), Piece("  esc closes", "muted"))
        )
        detail = self.query_one(Detail)
        detail.show(tuple(help_lines()))
        detail.focus()


def help_lines() -> Iterator[Line]:
    """The help page: the table of keys, then the signs."""
    width = max(len(keys.shown(key)) for key in keys.KEYS)
    for where, heading in keys.HEADINGS.items():
        yield (Piece(heading, "strong"),)
        for key in keys.of(where):
            yield (Piece(f"  {keys.shown(key):<{width}}  ", "keyword"), Piece(key.help))
        yield ()
    yield (Piece("Verdicts on a construct", "strong"),)
    for word in VERDICTS:
        yield (Piece("  "), *verdict(word), Piece(_MEANINGS[word]))
    yield ()
    yield (Piece("Findings, at the left of a line", "strong"),)
    for severity, letter in SEVERITY_LETTERS.items():
        yield (Piece(f"  {letter}  ", SEVERITY_INKS[severity]), Piece(severity))


class FilterDialog(Dialog):
    """Which verdicts the list shows; every change shows at once."""

    def __init__(self, review: Review, change: Change) -> None:
        super().__init__()
        self._review = review
        self._change = change

    def compose(self) -> ComposeResult:
        with Vertical(classes="window"):
            yield Bar(classes="heading")
            yield FilterList(self._review, self._change)

    def on_mount(self) -> None:
        hint = "  space chooses, a all, p problems"
        self.query_one(Bar).show((Piece("Listed verdicts", "strong"), Piece(hint, "muted")))
        self.query_one(FilterList).focus()


class FilterList(Lines):
    """The verdicts with their counts, each chosen or not."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("filter")

    def __init__(self, review: Review, change: Change) -> None:
        super().__init__(id="verdicts")
        self._counts = review.counts()
        self._change = change
        self.chosen = review.filter
        self.cursor = 0

    def on_mount(self) -> None:
        self.virtual_size = Size(40, len(VERDICTS))

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        row = self.scroll_offset.y + y
        if row >= len(VERDICTS):
            return Strip.blank(width, self.ground)
        word = VERDICTS[row]
        box = "[x] " if word in self.chosen.verdicts else "[ ] "
        line = (Piece(box), *verdict(word), Piece(f"{self._counts[word]:>5}", "muted"))
        over = self.line_style("cursor") if row == self.cursor else Style()
        strip = Strip(self.segments(line, over)).crop(0, width)
        return strip.adjust_cell_length(width, self.ground + over)

    def on_click(self, event: events.Click) -> None:
        row = self.scroll_offset.y + event.y
        if row < len(VERDICTS):
            self.cursor = row
            self.action_choose()

    def action_step(self, count: int) -> None:
        self.cursor = max(0, min(self.cursor + count, len(VERDICTS) - 1))
        self.reveal(self.cursor)
        self.refresh()

    def action_choose(self) -> None:
        self._choose(self.chosen.toggled(VERDICTS[self.cursor]))

    def action_all(self) -> None:
        self._choose(Filter())

    def action_problems(self) -> None:
        self._choose(Filter.problems())

    def _choose(self, chosen: Filter) -> None:
        self.chosen = chosen
        self.refresh()
        self._change(lambda review: review.filtered(chosen))


class LineDialog(Dialog):
    """Asks for a line of the source in front."""

    def __init__(self, side: Side, count: int, change: Change) -> None:
        super().__init__()
        self._side: Side = side
        self._count = count
        self._change = change

    def compose(self) -> ComposeResult:
        with Vertical(classes="window"):
            yield Bar(classes="heading")
            yield Input(type="integer", max_length=9, id="number")

    def on_mount(self) -> None:
        question = f"Line of the {NAMES[self._side]} source, 1 to {self._count}"
        self.query_one(Bar).show((Piece(question, "strong"),))
        self.query_one(Input).focus()

    def on_input_submitted(self) -> None:
        self.action_accept()

    def action_accept(self) -> None:
        given = self.query_one(Input).value
        self.dismiss()
        if given.isascii() and given.isdigit():
            self._change(lambda review: review.go(self._side, int(given)))
