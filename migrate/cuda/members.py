"""What a class declares: members and where they lie, functions, names of types and constants."""

from __future__ import annotations

from tree_sitter import Node

from migrate.cuda.classes import MAX_DEPTH, MAX_PARTS, SPECIFIERS, Class, Classes
from migrate.cuda.definitions import children_of, method_name, template_parameters
from migrate.cuda.parse import Definition, TemplateParameter
from migrate.cuda.scope import Scope
from migrate.cuda.types import (
    INT,
    Array,
    Member,
    Pointer,
    Struct,
    Type,
    Unknown,
    understood,
)


class Scan:
    """Reads a class's definition: members, where they lie, and what else it declares."""

    def __init__(self, classes: Classes, owner: Class, scope: Scope) -> None:
        self.classes = classes
        self.owner = owner
        self.scope = _quiet(classes, owner, scope)
        self.parts = 0
        self.depth = 1
        self.members: list[Member] = []
        self.at = 0
        self.align = 1
        self.size = 0
        self.union = owner.node.type == "union_specifier"
        self.overlaid = self.union

    def run(self) -> str | None:
        body = self.owner.node.child_by_field_name("body")
        if body is None:
            return "it is declared only"
        problem = self._bases()
        for child in children_of(body):
            problem = problem or self._declare(child, ())
        if problem is not None:
            return problem
        for child in self.owner.node.children:
            if child.type == "alignas_qualifier":
                self.align = max(self.align, self._alignment(child))
        size = self.size if self.union else self.at
        layout = self.owner.type.layout
        layout.members = tuple(self.members)
        layout.align = self.align
        layout.size = max(-(-size // self.align) * self.align, 1)
        layout.overlaid = self.overlaid
        layout.parts, layout.depth = self.parts, self.depth
        return None

    def _alignment(self, node: Node) -> int:
        from migrate.cuda.expressions import extent

        values = [extent(child, self.scope) or 1 for child in children_of(node)]
        return max([value for value in values if value in (1, 2, 4, 8, 16, 32, 64, 128)] or [1])

    def _bases(self) -> str | None:
        from migrate.cuda.declarators import type_of
        from migrate.cuda.expressions import extent

        clause = next((c for c in self.owner.node.children if c.type == "base_class_clause"), None)
        for child in children_of(clause):
            if child.type in ("access_specifier", "attribute_declaration"):
                continue
            if child.type == "virtual":
                return "virtual bases are not understood"
            kind = type_of(child, self.scope, extent)
            base = self.classes.of(kind)
            if base is None or not base.complete:
                return f"its base {kind} is not understood"
            self.owner.bases.append(base)
            if base.type.members:
                self._place(base.type.size, base.type.align, base.type.members)
                self.overlaid |= base.type.layout.overlaid
                problem = self._count(base.type)
                if problem is not None:
                    return problem
        return None

    def _place(self, size: int, align: int, members: tuple[Member, ...]) -> None:
        """Put members that belong together at the next place."""
        start = 0 if self.union else -(-self.at // align) * align
        for member in members:
            self.members.append(Member(member.name, member.type, start + member.offset))
        self.at = start + size
        self.size = max(self.size, size)
        self.align = max(self.align, align)

    def _declare(self, node: Node, template: tuple[TemplateParameter, ...]) -> str | None:
        match node.type:
            case "template_declaration":
                inner = children_of(node)
                parameters = template_parameters(
                    node.child_by_field_name("parameters"), self.scope.text
                )
                for child in inner:
                    if child.type in ("function_definition", "alias_declaration"):
                        return self._declare(child, parameters)
                return None
            case "function_definition":
                return self._method(node, template)
            case "alias_declaration":
                name = self.scope.text(node.child_by_field_name("name") or node)
                target = node.child_by_field_name("type")
                if target is not None and not template:
                    self.owner.aliases[name] = (target, None)
                return None
            case "type_definition":
                return self._typedef(node)
            case kind if kind in SPECIFIERS:
                return self._nested(node)
            case "enum_specifier":
                self._enum(node)
                return None
            case "field_declaration":
                return self._field(node)
            case "ERROR":
                return "the parser could not read a part of it"
            case _:
                return None

    def _method(self, node: Node, template: tuple[TemplateParameter, ...]) -> str | None:
        name, _ = method_name(node, self.scope.text)
        if any(child.type == "virtual" for child in node.children):
            return "virtual functions are not understood"
        if name:
            where = self.scope.where(node)
            self.owner.methods.setdefault(name, []).append(
                Definition(name, "device", node, template, where.span)
            )
        return None

    def _typedef(self, node: Node) -> str | None:
        target = node.child_by_field_name("type")
        for declarator in node.children_by_field_name("declarator"):
            named_node: Node | None = declarator
            while named_node is not None and named_node.type != "type_identifier":
                inner = named_node.child_by_field_name("declarator")
                named_node = inner or next(iter(named_node.named_children), None)
            if named_node is not None and target is not None:
                self.owner.aliases[self.scope.text(named_node)] = (target, declarator)
        return None

    def _nested(self, node: Node) -> str | None:
        name = node.child_by_field_name("name")
        if name is not None:
            self.owner.nested[self.scope.text(name)] = node
        return None

    def _enum(self, node: Node) -> None:
        base: Node | None = None
        offset = 0
        for child in children_of(node.child_by_field_name("body")):
            if child.type != "enumerator":
                continue
            value = child.child_by_field_name("value")
            if value is not None:
                base, offset = value, 0
            name = self.scope.text(child.child_by_field_name("name") or child)
            self.owner.enumerators[name] = (base, offset)
            offset += 1

    def _field(self, node: Node) -> str | None:
        from migrate.cuda.declarators import declared, type_of
        from migrate.cuda.expressions import extent

        words = {
            self.scope.text(c) for c in node.children if "specifier" in c.type or "qual" in c.type
        }
        type_node = node.child_by_field_name("type")
        declarators = node.children_by_field_name("declarator")
        if any(child.type == "virtual" for child in node.children):
            return "virtual functions are not understood"
        if type_node is None:
            return None
        if type_node.type == "enum_specifier":
            self._enum(type_node)
        defines = type_node.type in SPECIFIERS and type_node.child_by_field_name("body") is not None
        if defines:
            self._nested(type_node)
            if not declarators:
                if type_node.child_by_field_name("name") is None:
                    return self._anonymous(type_node)
                return None
        if not declarators:
            return None
        if "static" in words:
            values = _following_values(node)
            for declarator in declarators:
                name = declared(declarator, INT, self.scope, extent).name
                self.owner.statics[name] = (node, declarator, values.get(declarator.id))
            return None
        if any(child.type == "bitfield_clause" for child in node.children):
            return "bit fields are not understood"
        base: Type | None = None
        values = _following_values(node)
        for declarator in declarators:
            if _declares_function(declarator):
                continue
            if base is None:
                base = (
                    self.classes.local(type_node, self.scope, self.owner)
                    if defines
                    else type_of(type_node, self.scope, extent)
                )
            what = declared(declarator, base, self.scope, extent, const="const" in words)
            problem = self._member(what.name, what.type, what.reference)
            if problem is not None:
                return problem
            if declarator.id in values:
                self.owner.defaults[what.name] = values[declarator.id]
        return None

    def _member(self, name: str, kind: Type, reference: bool) -> str | None:
        if reference:
            # Kept as a pointer; whoever names the member gets what it points to.
            self.owner.references.add(name)
            kind = kind if isinstance(kind, Unknown) else Pointer(kind)
        if isinstance(kind, Array) and kind.length is None:
            return f"its member {name} has no length"
        inner = kind
        while isinstance(inner, Array):
            inner = inner.element
        held = self.classes.of(inner)
        if held is not None and not held.complete:
            return f"its member {name} is of the class that is being defined"
        if isinstance(kind, Unknown) or not (understood(kind) or _is_pointer(kind)):
            # The rest can be used; whoever names this member is told.
            kind = kind if isinstance(kind, Unknown) else Unknown(_reason(kind))
            self._place(8, 8, (Member(name, kind, 0),))
            return None
        problem = self._count(inner)
        if problem is not None:
            return problem
        self._place(kind.size, kind.align, (Member(name, kind, 0),))
        if isinstance(kind, Struct):
            self.overlaid |= kind.layout.overlaid
        return None

    def _count(self, kind: Type) -> str | None:
        layout = kind.layout if isinstance(kind, Struct) else None
        self.parts += 1 if layout is None else 1 + layout.parts
        self.depth = max(self.depth, 1 if layout is None else 1 + layout.depth)
        if self.parts > MAX_PARTS:
            return "it has too many members"
        return "its members nest too deep" if self.depth > MAX_DEPTH else None

    def _anonymous(self, node: Node) -> str | None:
        kind = self.classes.local(node, self.scope, self.owner)
        if not isinstance(kind, Struct):
            return f"an anonymous member is not understood: {kind}"
        self._place(kind.size, kind.align, kind.members)
        self.overlaid |= kind.layout.overlaid
        return self._count(kind)


def _quiet(classes: Classes, owner: Class, scope: Scope) -> Scope:
    """The scope inside the class, where what is not understood is not noted."""
    around = owner.around
    if around is None:
        around = Scope(classes.program, scope.meter, classes.resolver, classes)
    made = classes.scope(owner, around)
    made.meter = scope.meter
    return made


def _reason(kind: Type) -> str:
    """What of a type is not understood."""
    while isinstance(kind, Array):
        kind = kind.element
    held = kind.members if isinstance(kind, Struct) else ()
    unknown = next((member.type for member in held if isinstance(member.type, Unknown)), None)
    return unknown.name if unknown is not None else str(kind)


def _is_pointer(kind: Type) -> bool:
    while isinstance(kind, Array):
        kind = kind.element
    return isinstance(kind, Pointer)


def _following_values(node: Node) -> dict[int, Node]:
    """The default value behind each declarator of a member declaration."""
    found: dict[int, Node] = {}
    last: Node | None = None
    for position, child in enumerate(node.children):
        name = node.field_name_for_child(position)
        if name == "declarator":
            last = child
        elif name == "default_value" and last is not None:
            found[last.id] = child
    return found


def _declares_function(declarator: Node) -> bool:
    current: Node | None = declarator
    while current is not None:
        if current.type in ("function_declarator", "operator_cast"):
            inner = current.child_by_field_name("declarator")
            return inner is None or inner.type != "parenthesized_declarator"
        following = current.child_by_field_name("declarator")
        if following is None and current.type == "reference_declarator":
            following = next(iter(current.named_children), None)
        current = following
    return False
