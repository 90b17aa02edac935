"""What a name of host code means at a place: its declaration, what is assigned to it, and when."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Literal

from migrate.cuda.launches.declare import (
    Body,
    Control,
    Declared,
    body,
    controls,
    declarations,
    parameters,
)
from migrate.cuda.launches.text import Words

MAX_EVENTS = 400
"""Assignments of one name that are looked at."""

_COMPOUND = frozenset({"+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^="})
_BEFORE_ADDRESS = frozenset({"(", ",", "=", "{", ")", "return"})
_BY_REFERENCE = frozenset({"swap", "tie", "ref", "exchange"})


@dataclass(frozen=True, slots=True)
class Event:
    """Something that changes a variable, or one of its fields.

    `operator` is `=`, a compound assignment, `++`, `--`, or `lost` for what may write it in a
    way that is not followed (its address is taken, it is passed by reference).
    """

    at: int
    fields: tuple[str, ...]
    operator: str
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """What stands between a place and the start of its function: a branch, a loop, a body.

    For a branch, `start` to `end` is the condition and `taken` whether it holds there.
    """

    kind: Literal["if", "loop", "body"]
    at: int
    taken: bool = True
    start: int = 0
    end: int = 0


@dataclass(slots=True)
class Names:
    """The names of one text."""

    text: Words
    functions: dict[str, list[tuple[int, Body]]] = field(default_factory=dict)
    _bodies: dict[int, Body] = field(default_factory=dict)
    _statements: dict[int, list[Declared]] = field(default_factory=dict)
    _by_level: dict[tuple[str, int], list[Declared]] = field(default_factory=dict)
    _events: dict[int, list[Event] | None] = field(default_factory=dict)
    _far: dict[str, Declared | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for at, word in enumerate(self.text.words):
            if word == "{":
                made = self.body(at)
                if made.kind == "function":
                    self.functions.setdefault(made.name, []).append((at, made))

    def body(self, opening: int) -> Body:
        """What a brace begins."""
        found = self._bodies.get(opening)
        if found is None:
            found = self._bodies[opening] = body(self.text, opening)
        return found

    def enclosing_function(self, at: int) -> Body | None:
        """The function around a place."""
        for opening in self.text.enclosing(at):
            if self.text.words[opening] == "{":
                made = self.body(opening)
                if made.kind == "function":
                    return made
        return None

    # -- declarations -----------------------------------------------------------------

    def lookup(self, name: str, at: int) -> Declared | None:
        """The declaration that a name at a place refers to; `None` for one of another file."""
        text = self.text
        place = at
        while True:
            begin = text.statement(place)
            for control in reversed(controls(text, begin, place)[0]):
                if text.places(name, control.start, min(control.end, at)):
                    for found in reversed(declarations(text, control.start, control.end)):
                        if text.words[found.at] == name:
                            return found
            inside = text.parent[place]
            known = self._declarations(name, inside)
            before = bisect_left(known, begin, key=_place)
            if before:
                return known[before - 1]
            if inside < 0:
                break
            if text.words[inside] == "{":
                within = self._within(name, inside, place)
                if within is not None:
                    return within
            place = inside
        return self._elsewhere(name)

    def _within(self, name: str, opening: int, place: int) -> Declared | None:
        """A parameter of the body that `opening` begins, or a later member of it."""
        text = self.text
        made = self.body(opening)
        for (start, end), template in ((made.parameters, False), (made.template, True)):
            if text.places(name, start, end):
                for found in parameters(text, start, end, template):
                    if text.words[found.at] == name:
                        return found
        if made.kind in ("record", "namespace"):
            later = [d for d in self._declarations(name, opening) if d.at >= place]
            return later[0] if later else None
        return None

    def _declarations(self, name: str, inside: int) -> list[Declared]:
        """The declarations of a name directly within a bracket (-1: the file), in order."""
        key = (name, inside)
        known = self._by_level.get(key)
        if known is None:
            text = self.text
            end = len(text.words) if inside < 0 else text.closing(inside, len(text.words))
            places = (at for at in text.places(name, inside + 1, end) if text.parent[at] == inside)
            found = map(self.declared_at, places)
            known = self._by_level[key] = [declared for declared in found if declared is not None]
        return known

    def _elsewhere(self, name: str) -> Declared | None:
        """A constant of a namespace or class, or an enumerator, if only one has the name."""
        if name not in self._far:
            self._far[name] = self._searched(name)
        return self._far[name]

    def _searched(self, name: str) -> Declared | None:
        found: list[Declared] = []
        for other in self.text.places(name):
            inside = self.text.parent[other]
            if inside < 0 or self.text.words[inside] != "{":
                continue
            begin = self.text.statement(inside)
            if "enum" in self.text.words[begin:inside]:
                found += self._enumerator(inside, other)
            elif self.body(inside).kind in ("record", "namespace"):
                declared = self.declared_at(other)
                if declared is not None:
                    found.append(declared)
        return found[0] if len(found) == 1 else None

    def _enumerator(self, opening: int, at: int) -> list[Declared]:
        """An enumerator: its own number, or how far it is from the last that has one."""
        if self.text.words[at - 1] not in ("{", ","):
            return []
        parts = self.text.split(opening + 1, self.text.closing(opening, len(self.text.words)))
        behind = 0
        for begin, end in reversed([part for part in parts if part[0] <= at]):
            if begin + 1 < end and self.text.words[begin + 1] == "=":
                kind = f"enum+{behind}"
                return [Declared(at, kind, "enumerator", begin + 2, end)]
            behind += 1
        return [Declared(at, f"enum+{behind - 1}", "enumerator")]

    def declared_at(self, at: int) -> Declared | None:
        """The declaration that the name at a place is, if it is one."""
        begin = self.text.statement(at)
        known = self._statements.get(begin)
        if known is None:
            inside = self.text.parent[at]
            end = len(self.text.words)
            stop = end if inside < 0 else self.text.closing(inside, end)
            known = self._statements[begin] = declarations(self.text, begin, stop)
        return next((found for found in known if found.at == at), None)

    def alias(self, name: str, at: int) -> str:
        """The type that a `using` or `typedef` around a place names so, empty for none."""
        text = self.text
        around = {*text.enclosing(at), -1}
        for place in reversed(text.places(name, 0, at)):
            if text.parent[place] not in around or place + 1 >= len(text.words):
                continue
            begin = text.statement(place)
            following = text.words[place + 1]
            if text.words[begin] == "using" and place == begin + 1 and following == "=":
                end = place + 2
                while end < len(text.words) and text.words[end] != ";":
                    end += 1
                return text.text(place + 2, end).removeprefix("typename ")
            if text.words[begin] == "typedef" and following == ";":
                return text.text(begin + 1, place)
        return ""

    # -- what changes a variable --------------------------------------------------------

    def events(self, declared: Declared) -> list[Event] | None:
        """What changes the variable, in the order of the text; `None`: too much does."""
        if declared.at not in self._events:
            self._events[declared.at] = self._found_events(declared)
        return self._events[declared.at]

    def _found_events(self, declared: Declared) -> list[Event] | None:
        text = self.text
        name = text.words[declared.at]
        end = len(text.words)
        inside = text.parent[declared.at]
        if declared.form in ("parameter", "template"):
            opening = next(
                (
                    at
                    for at in range(declared.end, end)
                    if text.words[at] == "{" and self._has(self.body(at), declared.at)
                ),
                declared.end,
            )
            start, stop = opening, text.closing(opening, end) if opening < end else opening
        elif inside >= 0 and text.words[inside] == "(":
            # The variable of a loop's head is that of its body.
            start, stop = declared.at + 1, self._after(text.closing(inside, end) + 1)
        else:
            start = declared.at + 1
            stop = end if inside < 0 else text.closing(inside, end)
        places = text.places(name, start, stop)
        if len(places) > MAX_EVENTS:
            return None
        found = []
        for at in places:
            event = self._event(at)
            if event is not None and self.lookup(name, at) == declared:
                found.append(event)
        return found

    @staticmethod
    def _has(made: Body, at: int) -> bool:
        return any(start <= at < end for start, end in (made.parameters, made.template))

    def _after(self, at: int) -> int:
        """Where the statement that begins at `at` ends."""
        text = self.text
        end = len(text.words)
        at = controls(text, at, end)[1]
        while at < end and text.words[at] != ";":
            if text.words[at] == "{":
                return text.closing(at, end)
            if text.words[at] in ("(", "["):
                at = text.closing(at, end)
            at += 1
        return at

    def _event(self, at: int) -> Event | None:
        text = self.text
        before = text.words[at - 1] if at else ""
        if before in (".", "->", "::"):
            return None
        if before in ("++", "--"):
            return Event(at, (), before)
        after = at + 1
        fields: list[str] = []
        while after + 1 < len(text.words) and text.words[after] in (".", "->"):
            fields.append(text.words[after + 1])
            after += 2
        following = text.words[after] if after < len(text.words) else ""
        if following == "=" or following in _COMPOUND:
            return Event(at, tuple(fields), following, after + 1, self._value_end(after + 1))
        if following in ("++", "--"):
            return Event(at, tuple(fields), following)
        earlier = text.words[at - 2] if at > 1 else ""
        if before == "&" and earlier in _BEFORE_ADDRESS:
            return Event(at, (), "lost")
        if before == ">>" and "=" not in text.words[text.statement(at) : at]:
            return Event(at, (), "lost")
        if not fields and self._by_reference(at):
            return Event(at, (), "lost")
        return None

    def _value_end(self, at: int) -> int:
        text = self.text
        end = len(text.words)
        while at < end and text.words[at] not in (";", ",", ")", "}", "]"):
            if text.words[at] in ("(", "[", "{"):
                at = text.closing(at, end)
            elif text.words[at] == "<" and text.kinds[at - 1] == "name":
                at = (text.angle(at, end) or at + 1) - 1
            at += 1
        return min(at, end)

    def _by_reference(self, at: int) -> bool:
        """Whether a name is an argument that the function called takes by reference."""
        text = self.text
        opening = text.parent[at]
        if opening < 1 or text.words[opening] != "(":
            return False
        alone = text.words[at - 1] in ("(", ",") and text.words[at + 1 : at + 2] in (
            (",",), (")",),
        )  # fmt: skip
        called = text.words[opening - 1]
        if not alone or text.kinds[opening - 1] != "name":
            return False
        if called in _BY_REFERENCE:
            return True
        position = sum(
            1
            for begin, _ in text.split(opening + 1, text.closing(opening, len(text.words)))
            if begin <= at
        )
        for _, made in self.functions.get(called, ()):
            taken = text.split(*made.parameters)
            if position - 1 < len(taken):
                words = text.words[slice(*taken[position - 1])]
                if "&" in words and "const" not in words:
                    return True
        return False

    # -- control flow --------------------------------------------------------------------

    def marks(self, at: int) -> list[Mark]:
        """The branches, loops and bodies around a place, the innermost first."""
        text = self.text
        found: list[Mark] = []
        place = at
        while True:
            begin = text.statement(place)
            for control in reversed(controls(text, begin, place)[0]):
                found += self._control(control, place)
            inside = text.parent[place]
            if inside < 0:
                return found
            if text.words[inside] == "{" and self.body(inside).kind in ("function", "lambda"):
                found.append(Mark("body", inside))
            elif text.words[inside] == "(" and text.words[inside - 1] == "for":
                if text.statement(place) != inside + 1:
                    found.append(Mark("loop", inside - 1))
            place = inside

    def _control(self, control: Control, place: int) -> list[Mark]:
        within = control.end >= place
        match control.word:
            case "if" if not within:
                return [Mark("if", control.at, True, control.start, control.end)]
            case "else":
                return self._otherwise(control.at)
            case "for" if within:
                return []  # its first part runs once, the others are marked by their place
            case "for" | "while" | "do" | "switch" | "catch":
                return [Mark("loop", control.at)]
            case _:
                return []

    def _otherwise(self, at: int) -> list[Mark]:
        """The conditions that do not hold in an `else`."""
        found: list[Mark] = []
        text = self.text
        while at > 0:
            last = at - 1
            if text.words[last] == "}":
                last = text.partner[last]
            if last < 0:
                return found
            chain = controls(text, text.statement(last), at)[0]
            branch = next((c for c in reversed(chain) if c.word == "if"), None)
            if branch is None:
                return found
            found.append(Mark("if", branch.at, False, branch.start, branch.end))
            if chain[0].word != "else":
                return found
            at = chain[0].at
        return found


def _place(declared: Declared) -> int:
    return declared.at
