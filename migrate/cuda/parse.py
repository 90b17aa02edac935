"""From text to the definitions of a CUDA file, not yet typed.

`parse` preprocesses and parses a file and lists what a kernel can refer to: functions,
file-scope variables, type names, enumerators.  A file that does not parse as a whole still
gives every definition that does: host code with library macros is what breaks files, hardly
ever the kernels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from msgspec.structs import replace
from tree_sitter import Node

from migrate.budget import Meter
from migrate.cuda.disagreements import Disagreement, disagreements
from migrate.cuda.preprocess import Expanded, Include, preprocess
from migrate.cuda.recoveries import error_bytes, recoveries
from migrate.cuda.repairs import Names, repairs
from migrate.cuda.syntax import Captures, captures, tree
from migrate.source import Source, Span


@dataclass(frozen=True, slots=True)
class TemplateParameter:
    """`kind` is `pack` for what cannot be given by name."""

    name: str
    kind: Literal["type", "value", "pack"]
    type: Node | None = None
    default: Node | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """A function with a body, as found."""

    name: str
    kind: Literal["kernel", "device", "host"]
    node: Node
    template: tuple[TemplateParameter, ...]
    span: Span
    specialised: bool = False


Memory = Literal["constant", "device", "managed", "shared", "dynamic-shared", "host"]


@dataclass(frozen=True, slots=True)
class FileVariable:
    """A variable at file scope: `memory` is `host` for what only constants can be taken from."""

    name: str
    memory: Memory
    declaration: Node
    declarator: Node


@dataclass(frozen=True, slots=True)
class Alias:
    """A `typedef` or `using` name: the type and, for a typedef, the declarator around it."""

    type: Node
    declarator: Node | None
    template: bool = False


@dataclass(frozen=True)
class Program:
    """One file's definitions by name (overloads together, in order)."""

    source: Source
    expanded: Expanded
    functions: Mapping[str, tuple[Definition, ...]]
    variables: Mapping[str, FileVariable]
    aliases: Mapping[str, Alias]
    enumerators: Mapping[str, tuple[Node | None, int]]
    structs: Mapping[str, Node]
    root: Node = field(repr=False)
    disagreements: tuple[Disagreement, ...] = ()

    @cached_property
    def _disagreed(self) -> Mapping[tuple[int, int], Disagreement]:
        return {issue.node: issue for issue in reversed(self.disagreements)}

    def disagreement(self, node: Node) -> Disagreement | None:
        """Why a statement, or the head of a function, must not be read from its tree."""
        if not self.disagreements:
            return None
        return self._disagreed.get((node.start_byte, node.end_byte))

    @property
    def kernels(self) -> tuple[Definition, ...]:
        """Every `__global__` definition, in file order."""
        found = [
            definition
            for group in self.functions.values()
            for definition in group
            if definition.kind == "kernel"
        ]
        return tuple(sorted(found, key=lambda definition: definition.node.start_byte))

    def text(self, node: Node) -> str:
        """A node's text after preprocessing."""
        return self.expanded.text[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def span(self, node: Node) -> Span:
        """A node's place in the file as written."""
        return self.expanded.span(node.start_byte, node.end_byte)


def parse(
    source: Source,
    *,
    defines: Mapping[str, str] | None = None,
    include: Include | None = None,
    meter: Meter | None = None,
) -> Program:
    """Read a CUDA file.

    `defines` and `include` as for `preprocess`.  Raises `Exhausted` when the meter runs out,
    and `SourceError` only for text that no parser could make anything of.
    """
    meter = meter if meter is not None else Meter(doing=f"parsing {source.name}")
    expanded = preprocess(source, defines=defines, include=include, meter=meter)
    repaired = _repaired(expanded, source, meter)
    found = _Found(repaired.expanded)
    for node, template, specialised in _definitions(repaired.root, meter):
        found.add(node, template, specialised)
    on_device = [
        definition.node
        for group in found.functions.values()
        for definition in group
        if definition.kind != "host"
    ]
    return Program(
        source=source,
        expanded=repaired.expanded,
        functions={name: tuple(group) for name, group in found.functions.items()},
        variables=found.variables,
        aliases=found.aliases,
        enumerators=found.enumerators,
        structs=found.structs,
        root=repaired.root,
        disagreements=disagreements(
            repaired.found,
            on_device,
            repaired.expanded,
            repaired.names,
            {*found.functions, *found.variables, *found.enumerators},
        ),
    )


MAX_ROUNDS = 4
"""Repairs uncover others: an expression is repaired only where its statement is one."""


class _Repaired(NamedTuple):
    expanded: Expanded
    root: Node
    found: Captures
    names: Names


def _repaired(expanded: Expanded, source: Source, meter: Meter) -> _Repaired:
    """The tree of a text, repaired; rewriting after an error stays only where it helps."""
    state = _parsed(expanded, source, meter)
    for _ in range(MAX_ROUNDS):
        recovered = recoveries(state.found, state.expanded.text, state.names)
        if recovered:
            candidate = _parsed(state.expanded.edited(recovered), source, meter)
            if error_bytes(candidate.found) < error_bytes(state.found):
                state = candidate
            else:
                recovered = []
        edits = repairs(state.found, state.names)
        if edits:
            state = _parsed(state.expanded.edited(edits), source, meter)
        if not (recovered or edits):
            break
    return state


def _parsed(expanded: Expanded, source: Source, meter: Meter) -> _Repaired:
    root = tree(expanded.text, source.name, meter)
    found = captures(root, expanded.text, source.name)
    return _Repaired(expanded, root, found, Names(expanded.text, found))


def first_error(program: Program) -> Span | None:
    """Where the text first is no CUDA C++, `None` for nowhere."""
    node = program.root
    if not node.has_error:
        return None
    while not (node.type == "ERROR" or node.is_missing):
        following = next((child for child in node.children if child.has_error), None)
        if following is None:
            break
        node = following
    return program.span(node)


_QUALIFIERS_AHEAD = re.compile(
    rb"(?:\b(?:__global__|__device__|__host__|__forceinline__|static|inline)\s+)*\Z"
)

_CONTAINERS = frozenset(
    {
        "translation_unit",
        "namespace_definition",
        "declaration_list",
        "linkage_specification",
        "ERROR",
    }
)


def _definitions(root: Node, meter: Meter) -> Iterator[tuple[Node, Node | None, bool]]:
    """Definitions and declarations at file or namespace level, with their template header."""
    stack: list[tuple[Node, Node | None, bool]] = [(root, None, False)]
    while stack:
        node, template, specialised = stack.pop()
        meter.step()
        match node.type:
            case "template_declaration":
                header = node.child_by_field_name("parameters")
                inner = [child for child in node.named_children if child != header]
                empty = header is not None and header.named_child_count == 0
                stack += [(child, header, empty) for child in reversed(inner)]
            case kind if kind in _CONTAINERS:
                stack += [(child, template, False) for child in reversed(node.children)]
            case "function_definition":
                yield node, template, specialised
                # After an error the parser may take the rest of a file for one body.
                body = node.child_by_field_name("body")
                if body is not None and node.has_error and body.type == "compound_statement":
                    stack += [
                        (child, None, False)
                        for child in reversed(body.children)
                        if child.type in ("function_definition", "template_declaration", "ERROR")
                    ]
            case _:
                yield node, template, specialised


class _Found:
    def __init__(self, expanded: Expanded) -> None:
        self.expanded = expanded
        self.functions: dict[str, list[Definition]] = {}
        self.variables: dict[str, FileVariable] = {}
        self.aliases: dict[str, Alias] = {}
        self.enumerators: dict[str, tuple[Node | None, int]] = {}
        self.structs: dict[str, Node] = {}

    def text(self, node: Node | None) -> str:
        if node is None:
            return ""
        return self.expanded.text[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def add(self, node: Node, template: Node | None, specialised: bool) -> None:
        match node.type:
            case "function_definition":
                self._function(node, template, specialised)
            case "declaration":
                self._declaration(node)
            case "type_definition":
                self._typedef(node)
            case "alias_declaration":
                name = self.text(node.child_by_field_name("name"))
                target = node.child_by_field_name("type")
                if target is not None:
                    self.aliases[name] = Alias(target, None, template is not None)
            case "enum_specifier":
                self._enum(node)
            case "struct_specifier" | "class_specifier" | "union_specifier":
                name = self.text(node.child_by_field_name("name"))
                if node.child_by_field_name("body") is not None or name not in self.structs:
                    self.structs[name] = node
            case _:
                return

    def _function(self, node: Node, template: Node | None, specialised: bool) -> None:
        declarator = node.child_by_field_name("declarator")
        while declarator is not None and declarator.type != "function_declarator":
            inner = declarator.child_by_field_name("declarator")
            declarator = inner if inner is not None else _first_declarator(declarator)
        if declarator is None:
            return
        named = declarator.child_by_field_name("declarator")
        if named is None:
            return
        if named.type == "template_function":
            named = named.child_by_field_name("name") or named
            specialised = True
        words = {child.type for child in node.children if not child.is_named}
        # After a macro without a semicolon the keyword ends up in the error before.
        ahead = self.expanded.text[max(node.start_byte - 80, 0) : node.start_byte]
        found = _QUALIFIERS_AHEAD.search(ahead)
        words |= {word.decode() for word in found[0].split()} if found is not None else set()
        kind: Literal["kernel", "device", "host"] = (
            "kernel" if "__global__" in words else "device" if "__device__" in words else "host"
        )
        name = self.text(named).rsplit("::", 1)[-1]
        parameters = tuple(self._template(template)) if template is not None else ()
        span = self.expanded.span(node.start_byte, node.end_byte)
        group = self.functions.setdefault(name, [])
        made = Definition(name, kind, node, parameters, span, specialised)
        for position, other in enumerate(group):
            if (span.via or other.span.via) and self._again(made, other):
                if len(span.via) < len(other.span.via):
                    group[position] = made
                return
        group.append(made)

    def _again(self, made: Definition, other: Definition) -> bool:
        """Whether a definition is another one, included once more."""
        same = replace(made.span, via=()) == replace(other.span, via=())
        return same and self.text(made.node) == self.text(other.node)

    def _template(self, header: Node) -> Iterator[TemplateParameter]:
        for child in header.named_children:
            match child.type:
                case "type_parameter_declaration":
                    names = child.named_children
                    yield TemplateParameter(self.text(names[0]) if names else "", "type")
                case "optional_type_parameter_declaration":
                    yield TemplateParameter(
                        self.text(child.child_by_field_name("name")),
                        "type",
                        default=child.child_by_field_name("default_type"),
                    )
                case "parameter_declaration" | "optional_parameter_declaration":
                    yield TemplateParameter(
                        self.text(_named(child.child_by_field_name("declarator"))),
                        "value",
                        type=child.child_by_field_name("type"),
                        default=child.child_by_field_name("default_value"),
                    )
                case "comment":
                    continue
                case _:
                    yield TemplateParameter(self.text(child), "pack")

    def _declaration(self, node: Node) -> None:
        words = {self.text(child) for child in node.children if child.type != "init_declarator"}
        memory: Memory = "host"
        if "__shared__" in words:
            memory = "dynamic-shared" if "extern" in words else "shared"
        elif "__constant__" in words:
            memory = "constant"
        elif "__managed__" in words:
            memory = "managed"
        elif "__device__" in words:
            memory = "device"
        elif not words & {"const", "constexpr"}:
            return
        for declarator in node.children_by_field_name("declarator"):
            named: Node | None = declarator
            while named is not None and named.type != "identifier":
                named = named.child_by_field_name("declarator")
            if named is not None:
                name = self.text(named)
                self.variables[name] = FileVariable(name, memory, node, declarator)

    def _typedef(self, node: Node) -> None:
        target = node.child_by_field_name("type")
        if target is None:
            return
        for declarator in node.children_by_field_name("declarator"):
            named: Node | None = declarator
            while named is not None and named.type != "type_identifier":
                inner = named.child_by_field_name("declarator")
                named = inner if inner is not None else _first_declarator(named)
            if named is None:
                named = declarator
            self.aliases[self.text(named)] = Alias(target, declarator)
            if target.type == "enum_specifier":
                self._enum(target)
            if target.type in ("struct_specifier", "union_specifier", "class_specifier"):
                self.structs[self.text(named)] = target

    def _enum(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        base: Node | None = None
        offset = 0
        for child in body.named_children if body is not None else ():
            if child.type != "enumerator":
                continue
            value = child.child_by_field_name("value")
            if value is not None:
                base, offset = value, 0
            self.enumerators[self.text(child.child_by_field_name("name"))] = (base, offset)
            offset += 1


def _named(declarator: Node | None) -> Node | None:
    """The name in a declarator: `Op` of `float (*Op)(float, float)`."""
    for _ in range(16):
        if declarator is None or declarator.type == "identifier":
            return declarator
        inner = declarator.child_by_field_name("declarator")
        declarator = inner or next(iter(declarator.named_children), None)
    return declarator


def _first_declarator(node: Node) -> Node | None:
    return next((child for child in node.named_children if "declarator" in child.type), None)
