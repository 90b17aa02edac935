"""What names of host code stand for, followed through assignments where control flow is clear."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from migrate.cuda.launches.declare import Declared, parameters
from migrate.cuda.launches.expressions import Parser
from migrate.cuda.launches.extents import dimensions, listed
from migrate.cuda.launches.host import Constant, HostExpression, NotRead, Operation, Symbol
from migrate.cuda.launches.host import evaluate as number_of
from migrate.cuda.launches.names import Event, Mark, Names
from migrate.cuda.launches.terms import (
    AXES,
    ONE,
    Term,
    Triple,
    Unread,
    binary,
    component,
    of_triple,
    whole,
)
from migrate.cuda.launches.text import Words
from migrate.cuda.types import Scalar, named

MAX_STEPS = 4000
"""Words that the expressions of one launch may go through."""

MAX_NESTING = 60
"""Names within the values of names, and brackets within brackets."""

_NAMES = re.compile(r"[A-Za-z_]\w*")
_STRINGS = re.compile(r'"(?:\\.|[^"\\])*"')
_WORDS = {"true": 1, "false": 0, "NULL": 0, "nullptr": 0, "INT_MAX": 2**31 - 1, "warpSize": 32}


@dataclass(slots=True)
class Reader:
    """Expressions over one text; `bound` are parameters of helpers that are read inline.

    `outer` is where the words of an expanded macro stand.
    """

    names: Names
    bound: Mapping[int, Triple] = field(default_factory=dict)
    outer: tuple[Reader, int] | None = None
    depth: int = 0
    steps: list[int] = field(default_factory=lambda: [MAX_STEPS])

    @property
    def text(self) -> Words:
        return self.names.text

    def expression(self, start: int, end: int) -> HostExpression:
        """The words from `start` to `end` as an integer (a real number is cut off, as by C)."""
        try:
            return whole(self.term(start, end))
        except Unread:
            return NotRead(self.text.text(start, end))

    def term(self, start: int, end: int) -> Term:
        """Raises `Unread`."""
        if start >= end:
            raise Unread
        parser = Parser(self, start, end)
        found = parser.ternary()
        if parser.at != end:
            raise Unread
        return found

    def inner(self, **changes: object) -> Reader:
        """A reader for what lies one name deeper; raises `Unread` where that is too deep."""
        if self.depth >= MAX_NESTING:
            raise Unread
        fields = {"bound": self.bound, "outer": self.outer, "names": self.names, **changes}
        return Reader(depth=self.depth + 1, steps=self.steps, **fields)  # type: ignore[arg-type]

    # -- names --------------------------------------------------------------------------

    def name(self, name: str, fields: tuple[str, ...], at: int) -> Term:
        """The value of a variable, or of a field of one, at a place.  Raises `Unread`."""
        declared = self.names.lookup(name, at)
        if declared is None and self.outer is not None:
            outer, place = self.outer
            return self.outside(outer).name(name, fields, place)
        shown = ".".join((name, *fields))
        if declared is None:
            if name in _WORDS and not fields:
                return Term(Constant(_WORDS[name]))
            return Term(Symbol(shown, "result" if fields else "given"))
        if declared.at in self.bound:
            return Term(component(self.bound[declared.at], fields, shown))
        found = self.inner().variable(declared, fields, at)
        if found is not None:
            kind = self.number(declared)
            if kind is not None and kind.is_integer and _free(found.value):
                return Term(Symbol(shown, "variable"))
            value = found.value if fields else _called(name, found.value)
            return Term(value, found.real)
        given = declared.form in ("parameter", "template")
        return Term(Symbol(shown, "given" if given else "variable"))

    def variable(self, declared: Declared, fields: tuple[str, ...], at: int) -> Term | None:
        """What a declared variable holds at a place; `None` where that is not followed."""
        if declared.form == "opaque":
            return None
        if declared.form == "enumerator":
            return self._enumerator(declared)
        found = self.names.events(declared)
        if found is None:
            return None
        relevant = [
            event
            for event in found
            if event.fields == fields[: len(event.fields)] or event.operator == "lost"
        ]
        here = self.names.marks(at)
        outside = self.names.marks(declared.at)
        loops = [mark for mark in here if mark.kind == "loop" and mark not in outside]
        bodies = [mark for mark in here if mark.kind == "body"]
        needed: list[Mark] = []
        for event in relevant:
            around = self.names.marks(event.at)
            needed += [mark for mark in loops if mark in around]
            if any(mark.kind == "body" and mark not in bodies for mark in around):
                return None  # another function or a lambda writes it, whenever that runs
        # What is assigned is worked out before.
        earlier = [e for e in relevant if e.at < at and not e.start <= at < e.end]
        return self._latest(declared, fields, earlier, here, needed)

    def _latest(
        self,
        declared: Declared,
        fields: tuple[str, ...],
        events: list[Event],
        here: list[Mark],
        needed: list[Mark],
    ) -> Term | None:
        """The value after `events`; loops of `needed` must be around what decides it."""
        self.step()
        if not events:
            return None if needed else self._initial(declared, fields)
        *before, event = events
        around = self.names.marks(event.at)
        beyond = [mark for mark in around if mark not in here]
        for mark in beyond:
            opposite = Mark(mark.kind, mark.at, not mark.taken, mark.start, mark.end)
            if opposite in here:
                return self._latest(declared, fields, before, here, needed)
        if event.operator == "lost" or any(mark.kind != "if" for mark in beyond):
            return None
        if any(mark not in around for mark in needed):
            return None
        made = self._assigned(declared, fields, event, before, here, needed)
        if made is None or not beyond:
            return made
        if not before and declared.form == "none" and not declared.type.startswith("dim3"):
            return made  # nothing else gives it a value
        otherwise = self._latest(declared, fields, before, here, needed)
        if otherwise is None:
            return None
        value, real = otherwise.value, otherwise.real or made.real
        chosen = made.value
        for mark in beyond:
            condition = self.inner().term(mark.start, mark.end).value
            args = (condition, chosen, value) if mark.taken else (condition, value, chosen)
            chosen = Operation("?:", args)
        return Term(chosen, real)

    def _assigned(
        self,
        declared: Declared,
        fields: tuple[str, ...],
        event: Event,
        before: list[Event],
        here: list[Mark],
        needed: list[Mark],
    ) -> Term | None:
        if event.operator == "=":
            if event.fields == fields:
                return self._value_of(declared, (), event.start, event.end)
            return self._value_of(declared, fields[len(event.fields) :], event.start, event.end)
        if event.fields != fields:
            return None
        old = self._latest(declared, fields, before, here, needed)
        if old is None:
            return None
        if event.operator in ("++", "--"):
            return Term(Operation(event.operator[0], (old.value, ONE)), old.real)
        return binary(event.operator[:-1], old, self.inner().term(event.start, event.end))

    def _initial(self, declared: Declared, fields: tuple[str, ...]) -> Term | None:
        start, end = declared.start, declared.end
        match declared.form:
            case "=":
                return self._value_of(declared, fields, start, end)
            case "(" | "{":
                if declared.type.startswith("dim3"):
                    return of_triple(listed(self.inner(), start, end), fields)
                if fields or len(self.text.split(start, end)) != 1:
                    return None
                return self.inner().term(start, end)
            case "none" if declared.type.startswith("dim3"):
                return of_triple((ONE, ONE, ONE), fields)
            case _:
                return None

    def _value_of(
        self, declared: Declared, fields: tuple[str, ...], start: int, end: int
    ) -> Term | None:
        """What a variable, or the field of it, gets from an expression."""
        inner = self.inner()
        if fields:
            if len(fields) != 1 or fields[0] not in AXES:
                return None
            return of_triple(dimensions(inner, start, end), fields)
        if declared.type.endswith("[]") or "*" in declared.type:
            return None
        try:
            found = inner.term(start, end)
        except Unread:
            return None
        kind = self.number(declared)
        if kind is not None:
            return Term(found.value, True) if kind.is_float else Term(whole(found))
        return found

    def number(self, declared: Declared) -> Scalar | None:
        """The number type that a variable is declared with, through an alias of the file."""
        bare = declared.type.replace("const", "").replace("&", "").strip()
        found = named(bare) or named(self.names.alias(bare, declared.at))
        return found if isinstance(found, Scalar) else None

    def _enumerator(self, declared: Declared) -> Term | None:
        offset = Constant(int(declared.type.partition("+")[2]))
        if declared.start == declared.end:
            return Term(offset)
        first = self.inner().term(declared.start, declared.end)
        return binary("+", first, Term(offset)) if offset.value else first

    def kind(self, name: str, at: int) -> str:
        """The declared type of a variable at a place, empty where it is not known."""
        declared = self.names.lookup(name, at)
        if declared is None:
            return self.outer[0].kind(name, self.outer[1]) if self.outer is not None else ""
        return declared.type.replace("const", "").strip()

    def step(self) -> None:
        """Raises `Unread` when the words of a launch are used up."""
        self.steps[0] -= 1
        if self.steps[0] < 0:
            raise Unread

    # -- helpers ----------------------------------------------------------------------------

    def enter(
        self, taken: tuple[int, int], given: tuple[int, int], caller: Reader
    ) -> Reader | None:
        """A reader inside a function, its parameters bound to what a call gives."""
        names = parameters(self.text, *taken)
        arguments = caller.text.split(*given)
        if len(arguments) > len(names):
            return None
        bound = dict(self.bound)
        for position, parameter in enumerate(names):
            reader, part = (
                (caller, arguments[position])
                if position < len(arguments)
                else (self, (parameter.start, parameter.end))
            )
            if part[0] >= part[1]:
                return None
            if "dim3" in parameter.type:
                bound[parameter.at] = dimensions(reader.inner(), *part)
            else:
                bound[parameter.at] = (reader.inner().term(*part).value, ONE, ONE)
        return self.inner(bound=bound)

    def returned(self, opening: int) -> tuple[int, int] | None:
        """What a function returns, if it has one `return`, in front of which nothing branches."""
        text = self.text
        close = text.closing(opening, len(text.words))
        found = text.places("return", opening, close)
        if len(found) != 1 or text.parent[found[0]] != opening:
            return None
        end = found[0] + 1
        while end < close and text.words[end] != ";":
            end = text.closing(end, close) + 1 if text.words[end] in ("(", "[", "{") else end + 1
        return found[0] + 1, end

    def within(self, expanded: Words, at: int) -> Reader:
        """A reader of the words that a macro at a place stands for."""
        return self.inner(names=Names(expanded), outer=(self, at))

    def outside(self, outer: Reader) -> Reader:
        """The reader of what is around a macro, as deep as this one: macros can mean each other.

        Raises `Unread` where that is too deep.
        """
        return self.inner(names=outer.names, bound=outer.bound, outer=outer.outer)


def _free(value: HostExpression) -> bool:
    """Whether a call or member decides its value by itself, not from what it is given.

    `atoi(argv[1])` and `image.width()` are as free as a parameter, and so is
    `argc > 1 ? atoi(argv[1]) : 1024`; `blocks_for(n)` hangs on `n`, and a size of its own in
    its place would not.
    """
    match value:
        case Operation(operator="?:", args=(_, then, otherwise)):
            return _free(then) or _free(otherwise)
        case Symbol(name=called, of="result"):
            pass
        case _:
            return False
    if called.endswith("]") or not called.endswith(")"):
        return True
    given = called[called.index("(") + 1 :]
    return not set(_NAMES.findall(_STRINGS.sub("", given))) - {"argc", "argv", "true", "false"}


def _called(name: str, value: HostExpression) -> HostExpression:
    """The value under the name of the variable that holds it first."""
    match value:
        case Constant(value=found, name=""):
            return Constant(found, name)
        case Operation() if _literal(value) and (known := number_of(value, {})) is not None:
            return Constant(known, name)
        case _:
            return value


def _literal(value: HostExpression) -> bool:
    """Whether an expression is of bare numbers: what is made of a variable stays so."""
    match value:
        case Constant(name=name):
            return not name
        case Operation(args=args):
            return all(map(_literal, args))
        case _:
            return False
