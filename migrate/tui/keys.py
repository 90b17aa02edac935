"""Every key of the review: the one table behind bindings, footer, palette and help.

`id` is stable, so that a user's key map can name it.  `where` says which part of the screen
has the key; an action of `app` is also offered by the command palette.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Where: TypeAlias = Literal["app", "list", "source", "detail", "filter", "dialog"]


@dataclass(frozen=True, slots=True)
class Key:
    """One action with its keys, as Textual names them.

    `label` is what the footer says; without one the key is not in the footer.
    """

    id: str
    keys: tuple[str, ...]
    action: str
    help: str
    where: Where = "app"
    label: str = ""
    priority: bool = False
    """Whether it also holds where something else has the keys."""


KEYS: Final[tuple[Key, ...]] = (
    Key("finding.next", ("n",), "next_finding", "next finding", label="Finding"),
    Key("finding.previous", ("N",), "previous_finding", "previous finding"),
    Key("construct.next", ("j",), "next_construct", "next construct", label="Construct"),
    Key("construct.previous", ("k",), "previous_construct", "previous construct"),
    Key(
        "construct.mismapped",
        ("m",),
        "next_mismapped",
        "next construct that is mismapped",
    ),
    Key(
        "construct.unmatched",
        ("u",),
        "next_unmatched",
        "next construct without a partner: missing, extra or unknown",
    ),
    Key(
        "partner",
        ("enter",),
        "partner",
        "into the source; there, to the partner on the other side, back, to its next place",
        label="Partner",
    ),
    Key("overview", ("o",), "overview", "the verdict, its reasons, the score and the runs"),
    Key("side", ("s",), "other_side", "show, or go to, the other source", label="Side"),
    Key("link", ("l",), "link", "tie the scrolling of the two sources, or untie it", label="Link"),
    Key("line", ("g",), "line", "go to a line of the source in front", label="Line"),
    Key("filter", ("f",), "filter", "choose which verdicts are listed", label="Filter"),
    Key("theme", ("t",), "theme", "light or dark"),
    Key("focus.next", ("tab",), "next_part", "next part of the screen"),
    Key("focus.previous", ("shift+tab",), "previous_part", "previous part of the screen"),
    Key("palette", ("ctrl+p",), "command_palette", "every action by name"),
    Key("help", ("question_mark", "f1"), "help", "this page", label="Help"),
    Key("quit", ("q",), "quit", "leave", label="Quit"),
    Key("quit.always", ("ctrl+c", "ctrl+q"), "quit", "leave, also from a dialog", priority=True),
    Key("list.up", ("up",), "step(-1)", "one up", "list"),
    Key("list.down", ("down",), "step(1)", "one down", "list"),
    Key("list.page_up", ("pageup",), "page(-1)", "a page up", "list"),
    Key("list.page_down", ("pagedown",), "page(1)", "a page down", "list"),
    Key("list.first", ("home",), "first", "the first", "list"),
    Key("list.last", ("end",), "last", "the last", "list"),
    Key("source.up", ("up",), "step(-1)", "a line up", "source"),
    Key("source.down", ("down",), "step(1)", "a line down", "source"),
    Key("source.page_up", ("pageup",), "page(-1)", "a page up", "source"),
    Key("source.page_down", ("pagedown",), "page(1)", "a page down", "source"),
    Key("source.first", ("home",), "first", "the first line", "source"),
    Key("source.last", ("end",), "last", "the last line", "source"),
    Key("source.left", ("left",), "sideways(-1)", "scroll to the left", "source"),
    Key("source.right", ("right",), "sideways(1)", "scroll to the right", "source"),
    Key("detail.up", ("up",), "scroll_up", "scroll up", "detail"),
    Key("detail.down", ("down",), "scroll_down", "scroll down", "detail"),
    Key("detail.page_up", ("pageup",), "page_up", "a page up", "detail"),
    Key("detail.page_down", ("pagedown",), "page_down", "a page down", "detail"),
    Key("detail.first", ("home",), "scroll_home", "to the top", "detail"),
    Key("detail.last", ("end",), "scroll_end", "to the end", "detail"),
    Key("filter.up", ("up",), "step(-1)", "one up", "filter"),
    Key("filter.down", ("down",), "step(1)", "one down", "filter"),
    Key("filter.choose", ("space",), "choose", "list this verdict, or not", "filter"),
    Key("filter.all", ("a",), "all", "list all verdicts", "filter"),
    Key("filter.problems", ("p",), "problems", "list only what needs a look", "filter"),
    Key("dialog.accept", ("enter",), "accept", "done", "dialog"),
    Key("dialog.close", ("escape",), "close", "close", "dialog"),
)

HEADINGS: Final[dict[Where, str]] = {
    "app": "In the review",
    "list": "In the list of constructs",
    "source": "In a source",
    "detail": "In the detail, and on this page",
    "filter": "In the choice of verdicts",
    "dialog": "In every dialog",
}

_SHOWN: Final = {
    "enter": "enter",
    "question_mark": "?",
    "pageup": "page up",
    "pagedown": "page down",
    "escape": "esc",
    "shift+tab": "shift tab",
}


def shown(key: Key) -> str:
    """The key's names as people write them."""
    return ", ".join(_SHOWN.get(name, name.replace("ctrl+", "ctrl ")) for name in key.keys)


def of(*where: Where) -> tuple[Key, ...]:
    """The keys of some parts of the screen."""
    return tuple(key for key in KEYS if key.where in where)
