"""What a name means while a function's tree is built, and the things building records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from migrate.budget import Meter
from migrate.cuda.ast import (
    Expression,
    Function,
    Literal,
    Opaque,
    OpaqueExpression,
    Storage,
    Variable,
)
from migrate.cuda.parse import Program
from migrate.cuda.types import Type, Unknown
from migrate.source import Span, shortened

MAX_DEPTH = 120
"""Levels of nesting that are read.  Deeper code is generated, and reported as such."""

# A callee and its template arguments (a type or a value each) to its typed tree, or why not.
Instantiate = Callable[
    [str, Sequence["Type | int | float | bool"], Sequence[Expression]], "Function | str"
]


@dataclass(slots=True)
class Scope:
    """The state of building one function."""

    program: Program
    meter: Meter
    instantiate: Instantiate
    types: dict[str, Type] = field(default_factory=dict)
    frames: list[dict[str, Variable | Literal]] = field(default_factory=lambda: [{}])
    known: dict[int, int | float | bool] = field(default_factory=dict)
    globals_used: dict[str, Variable] = field(default_factory=dict)
    issues: list[OpaqueExpression | Opaque] = field(default_factory=list)
    local_types: list[dict[str, Type]] = field(default_factory=lambda: [{}])
    depth: int = 0
    next_id: int = 0
    result: Type = Unknown("")  # noqa: RUF009

    def text(self, node: Node) -> str:
        return self.program.text(node)

    def span(self, node: Node) -> Span:
        return self.program.span(node)

    def push(self) -> None:
        self.frames.append({})
        self.local_types.append({})

    def pop(self) -> None:
        self.frames.pop()
        self.local_types.pop()

    def declare(
        self, name: str, kind: Type, storage: Storage, span: Span, *, const: bool = False
    ) -> Variable:
        """A new variable in the innermost block."""
        variable = Variable(self.next_id, name, kind, storage, span, const)
        self.next_id += 1
        self.frames[-1][name] = variable
        return variable

    def lookup(self, name: str) -> Variable | Literal | None:
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
            self.span(node),
            self._changed(node),
        )
        self.issues.append(issue)
        return issue

    def opaque_statement(self, node: Node, reason: str) -> Opaque:
        issue = Opaque(self._excerpt(node), shortened(reason), self.span(node), self._changed(node))
        self.issues.append(issue)
        return issue

    def _changed(self, node: Node) -> tuple[int, ...]:
        """Variables that may have another value after a piece of text that is not understood."""
        pending: list[tuple[Node, bool]] = [(node, False)]
        found: dict[int, None] = {}
        visited = 0
        while pending:
            visited += 1
            if visited % 64 == 0:
                self.meter.step(64)
            here, taken = pending.pop()
            kind = here.type
            if kind == "identifier" and taken:
                variable = self.lookup(self.text(here))
                if isinstance(variable, Variable) and not variable.const:
                    found[variable.id] = None
            targets = _targets(here) if kind in _ASSIGNING and not taken else ()
            everything = taken or kind in _ANYTHING
            for child in here.children:
                pending.append((child, everything or child in targets))
        return tuple(sorted(found))

    def _excerpt(self, node: Node) -> str:
        text = self.text(node)
        return text if len(text) <= MAX_EXCERPT else f"{text[:MAX_EXCERPT]}…"


MAX_EXCERPT = 200
"""Characters kept of a text that is not understood."""

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
