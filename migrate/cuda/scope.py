"""What a name means while a function's tree is built, and the things building records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tree_sitter import Node

from migrate.budget import Meter
from migrate.cuda.ast import (
    Declare,
    Expression,
    Literal,
    Name,
    Opaque,
    OpaqueExpression,
    Storage,
    Variable,
)
from migrate.cuda.origins import Place, Where
from migrate.cuda.parse import Program
from migrate.cuda.types import Struct, Type, Unknown
from migrate.source import shortened

if TYPE_CHECKING:
    from migrate.cuda.classes import Class, Classes

MAX_DEPTH = 120
"""Levels of nesting that are read.  Deeper code is generated, and reported as such."""

Binding = Type | int | float | bool
"""What a template parameter stands for."""


BRACES = Unknown("braces")
"""The type of `{a, b}` before it is known what it initialises."""


def not_understood(value: Expression) -> bool:
    """Whether an expression has no type that is known."""
    return isinstance(value.type, Unknown) and value.type != BRACES


@dataclass(frozen=True, slots=True)
class Bound:
    """A name that stands for an expression (a reference, or a parameter of what is inlined)."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Capture:
    """What a lambda takes with it; `variable` is the captured one, or its copy."""

    name: str
    by_reference: bool
    variable: Variable


@dataclass(frozen=True, slots=True)
class Closure:
    """A lambda that was given a name: its class, and where its captures are."""

    kind: Struct
    captures: tuple[Capture, ...]


Meaning = Variable | Literal | Bound | Closure
"""What a name of a function can stand for."""


@dataclass(frozen=True, slots=True)
class Callee:
    """What a call may mean: functions by name, or those of a class on an object."""

    name: str
    template: Sequence[Binding] = ()
    owner: Class | None = None
    this: Expression | None = None
    captures: tuple[Capture, ...] | None = None


class Resolver(Protocol):
    """Whoever finds and builds the functions that calls mean."""

    def invoke(
        self, callee: Callee, arguments: Sequence[Expression], node: Node, scope: Scope
    ) -> Expression:
        """The call as an expression; what is not understood comes back opaque."""
        ...

    def accepts(self, callee: Callee, arguments: Sequence[Expression], scope: Scope) -> bool:
        """Whether some function fits the call."""
        ...


@dataclass(slots=True)
class Scope:
    """The state of building one function.

    `inside` is the class whose members names may mean, `this` the object.  `pending` are
    declarations of temporaries that belong before the statement being read, `prologue` those
    that belong where the function begins.  `outer` is the
    function that this one is written into, where its one expression takes the place of a call.
    """

    program: Program
    meter: Meter
    resolver: Resolver
    classes: Classes
    types: dict[str, Type] = field(default_factory=dict)
    frames: list[dict[str, Meaning]] = field(default_factory=lambda: [{}])
    known: dict[int, int | float | bool] = field(default_factory=dict)
    globals_used: dict[str, Variable] = field(default_factory=dict)
    initials: dict[str, tuple[int | float | bool, ...]] = field(default_factory=dict)
    issues: list[OpaqueExpression | Opaque] = field(default_factory=list)
    local_types: list[dict[str, Type]] = field(default_factory=lambda: [{}])
    pending: list[Declare] = field(default_factory=list)
    prologue: list[Declare] = field(default_factory=list)
    inside: Class | None = None
    this: Expression | None = None
    outer: Scope | None = None
    depth: int = 0
    angles: int = 0
    next_id: int = 0
    result: Type = Unknown("")  # noqa: RUF009
    _looked: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    _looked_at: tuple[int, int] = (0, 0)
    # What inline assembly says that registers hold, by name (`library.registers`).
    held: dict[str, Type] = field(default_factory=dict)
    # Where objects stand that are of no library's class.
    no_library: set[tuple[int, int]] = field(default_factory=set)
    returns_place: bool = False
    # What `break` and `continue` can leave here.
    ways_out: frozenset[str] = frozenset()

    def text(self, node: Node) -> str:
        text = self.program.expanded.text
        return text[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def where(self, node: Node) -> Place:
        """Where a node stands."""
        return Place(self.program.expanded, node.start_byte, node.end_byte)

    def snapshot(self) -> Scope:
        """What names mean here, kept while the function goes on."""
        made = Scope(self.program, self.meter, self.resolver, self.classes)
        made.types = dict(self.types)
        made.local_types = [dict(frame) for frame in self.local_types]
        made.frames = [dict(frame) for frame in self.frames]
        made.known = dict(self.known)
        made.inside = self.inside
        return made

    def push(self) -> None:
        self.frames.append({})
        self.local_types.append({})

    def pop(self) -> None:
        self.frames.pop()
        self.local_types.pop()

    def declare(
        self, name: str, kind: Type, storage: Storage, where: Where, *, const: bool = False
    ) -> Variable:
        """A new variable in the innermost block."""
        variable = Variable(self.next_id, name, kind, storage, where, const)
        self.next_id += 1
        self.frames[-1][name] = variable
        return variable

    def temporary(self, kind: Type, where: Where) -> Name:
        """A new variable without a name, declared before the statement being read."""
        if self.outer is not None:
            return self.outer.temporary(kind, where)
        variable = Variable(self.next_id, "", kind, "local", where)
        self.next_id += 1
        self.pending.append(Declare(variable, None, where))
        return Name(variable, kind, where)

    def lookup(self, name: str) -> Meaning | None:
        for frame in reversed(self.frames):
            if name in frame:
                return frame[name]
        return None

    def type_named(self, name: str) -> Type | None:
        for frame in reversed(self.local_types):
            if name in frame:
                return frame[name]
        return self.types.get(name)

    def opaque(self, node: Node, reason: str, kind: Type | None = None) -> OpaqueExpression:
        """An expression that is not understood, noted as an issue."""
        issue = OpaqueExpression(
            self._excerpt(node),
            shortened(reason),
            kind if kind is not None else Unknown("?"),
            self.where(node),
            self._changed(node),
        )
        self.issues.append(issue)
        return issue

    def unclear(self, node: Node, operand: Expression) -> OpaqueExpression:
        """An expression whose operand is not understood: what it would change is changed."""
        if isinstance(operand, OpaqueExpression):
            return self.opaque(node, operand.reason, operand.type)
        return self.opaque(node, f"a value of type {operand.type} is not understood", operand.type)

    def opaque_statement(self, node: Node, reason: str) -> Opaque:
        issue = Opaque(
            self._excerpt(node), shortened(reason), self.where(node), self._changed(node)
        )
        self.issues.append(issue)
        return issue

    def _changed(self, node: Node) -> tuple[int, ...]:
        """Variables that may have another value after a piece of text that is not understood."""
        text = self.program.expanded.text
        if not node.has_error and not _CHANGES.search(text, node.start_byte, node.end_byte):
            return ()
        # What is not understood in what is not understood is not looked through again.
        if self._looked_at != (self.next_id, len(self.frames)):
            self._looked_at = (self.next_id, len(self.frames))
            self._looked.clear()
        pending: list[tuple[Node, bool]] = [(node, False)]
        found: dict[int, None] = {}
        visited = 0
        while pending:
            visited += 1
            if visited % 64 == 0:
                self.meter.step(64)
            here, taken = pending.pop()
            known = self._looked.get((here.start_byte, here.end_byte)) if not taken else None
            if known is not None:
                found.update(dict.fromkeys(known))
                continue
            kind = here.type
            if kind == "identifier" and taken:
                variable = self.lookup(self.text(here))
                if isinstance(variable, Variable) and not variable.const:
                    found[variable.id] = None
            targets = _targets(here) if kind in _ASSIGNING and not taken else ()
            everything = taken or kind in _ANYTHING
            for child in here.children:
                pending.append((child, everything or child in targets))
        changed = tuple(sorted(found))
        self._looked[node.start_byte, node.end_byte] = changed
        return changed

    def _excerpt(self, node: Node) -> str:
        text = self.text(node)
        return text if len(text) <= MAX_EXCERPT else f"{text[:MAX_EXCERPT]}…"


MAX_EXCERPT = 200
"""Characters kept of a text that is not understood."""

_CHANGES = re.compile(
    rb"(?<![=!<>])=(?!=)|[<>]{2}=|\+\+|--|(?<!&)&(?!&)|[(,]\s*+\w++\s*+[,)]|\{|asm|bitand|_eq|/[/*]"
)
"""What a text must have in it to change a variable: an assignment, an address, a call that is
given a variable, a lambda, an assembly; or a comment, which may stand between."""

_ANYTHING = frozenset({"ERROR", "lambda_expression", "gnu_asm_output_operand_list"})
"""Syntax in which every name may be assigned to."""


_ASSIGNING = frozenset(
    {"assignment_expression", "update_expression", "pointer_expression", "call_expression"}
)


def _targets(node: Node) -> list[Node]:
    """The parts of a piece of syntax that it can assign to."""
    match node.type:
        case "assignment_expression":
            targets = [node.child_by_field_name("left")]
        case "update_expression":
            targets = [node.child_by_field_name("argument")]
        case "pointer_expression" if node.children and node.children[0].type == "&":
            targets = [node.child_by_field_name("argument")]
        case "call_expression":
            # Whether a parameter is a reference is not known.
            given = node.child_by_field_name("arguments")
            named = given.children if given is not None else []
            targets = [child for child in named if child.type == "identifier"]
        case _:
            targets = []
    return [target for target in targets if target is not None]
