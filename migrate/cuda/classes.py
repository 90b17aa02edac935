"""Structs, classes and unions of a program: found by name, instantiated, laid out.

A `Class` is one with its template arguments replaced.  Members of bases are members of the
derived type too, at their offsets, and so are those of anonymous unions and structs: names
need no further search, and a method of a base runs on the derived object.  Layout follows
the platform ABI (Itanium C++ ABI, section 2.4, for what has no virtual functions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from migrate.cuda.ast import Literal, Variable
from migrate.cuda.definitions import children_of, method_name, pattern_of, template_of
from migrate.cuda.parse import Definition, Program, TemplateParameter
from migrate.cuda.scope import Binding, Meaning, Resolver, Scope
from migrate.cuda.types import (
    INT,
    Layout,
    Scalar,
    Struct,
    Type,
    Unknown,
    named,
)
from migrate.source import shortened

MAX_INSTANTIATIONS = 4000
MAX_NESTING = 48
MAX_PARTS = 4000
"""Members of a class, those of its members included."""

MAX_DEPTH = 24
"""How deep members nest in members."""

SPECIFIERS = frozenset({"struct_specifier", "class_specifier", "union_specifier"})


@dataclass(slots=True)
class Class:
    """One class: `types` and `values` are what its template parameters stand for.

    `problem` is why its objects cannot be laid out, where they cannot; `around` is the scope
    that its definition stands in.  `captures` of a lambda tells which are by reference.
    """

    type: Struct
    node: Node
    types: dict[str, Type]
    values: dict[str, Literal]
    around: Scope | None = None
    outer: Class | None = None
    bases: list[Class] = field(default_factory=list)
    methods: dict[str, list[Definition]] = field(default_factory=dict)
    aliases: dict[str, tuple[Node, Node | None]] = field(default_factory=dict)
    statics: dict[str, tuple[Node, Node, Node | None]] = field(default_factory=dict)
    nested: dict[str, Node] = field(default_factory=dict)
    enumerators: dict[str, tuple[Node | None, int]] = field(default_factory=dict)
    defaults: dict[str, Node] = field(default_factory=dict)
    constants: dict[str, Literal | None] = field(default_factory=dict)
    captures: dict[str, bool] | None = None
    references: set[str] = field(default_factory=set)
    problem: str | None = None
    complete: bool = False

    @property
    def constructor(self) -> str:
        """The name that its constructors have."""
        return self.type.template or self.type.name


@dataclass(frozen=True, slots=True)
class _Candidate:
    node: Node
    parameters: tuple[TemplateParameter, ...]
    specialised: tuple[Node, ...] | None


class Classes:
    """Every class of a program, made when it is asked for."""

    def __init__(self, program: Program, resolver: Resolver) -> None:
        self.program = program
        self.resolver = resolver
        self._index: dict[str, list[_Candidate]] | None = None
        self._made: dict[str, Class | str] = {}
        self._of: dict[str, Class] = {}
        self._depth = 0

    def known(self, name: str) -> bool:
        """Whether the file defines a class, or a template of one, by this name."""
        return name in self._candidates()

    def is_template(self, name: str) -> bool:
        return any(c.parameters or c.specialised for c in self._candidates().get(name, ()))

    def of(self, kind: Type) -> Class | None:
        """The class of a type."""
        return self._of.get(kind.key) if isinstance(kind, Struct) else None

    def is_reference(self, kind: Type, name: str) -> bool:
        """Whether a member is declared as a reference."""
        owner = self.of(kind)
        return owner is not None and (
            name in owner.references or any(self.is_reference(b.type, name) for b in owner.bases)
        )

    def nested_template(self, owner: Class, name: str) -> bool:
        """Whether a class has a member template of types by this name (not understood)."""
        node = owner.nested.get(name)
        return node is not None and bool(template_of(node, self.program.text))

    def constructors(self, owner: Class) -> list[tuple[Definition, Class]]:
        """The class's constructors, `= default` and deleted ones included."""
        inside = [(definition, owner) for definition in owner.methods.get(owner.constructor, ())]
        return inside + self._outside(owner, owner.constructor)

    def conversions(self, owner: Class, depth: int = 0) -> list[str]:
        """The names of the class's conversion functions, `operator float` for one."""
        found = [name for name in owner.methods if name.startswith("operator ")]
        for base in owner.bases if depth < MAX_NESTING else ():
            found += self.conversions(base, depth + 1)
        return found

    def _outside(self, owner: Class, name: str) -> list[tuple[Definition, Class]]:
        """Functions of a class that are defined outside of it."""
        found = []
        text = self.program.text
        for definition in self.program.functions.get(name, ()):
            around = method_name(definition.node, text)[1]
            if around is None:
                continue
            names = {parameter.name for parameter in definition.template}
            written = around
            if around.type == "template_type":
                around = around.child_by_field_name("name") or around
            if text(around).rsplit("::", 1)[-1] != (owner.type.template or owner.type.name):
                continue
            if pattern_of(written, names, text) != self._pattern(owner):
                continue
            # The header repeats that of the class, whose parameters are bound already.
            if names <= set(owner.types) | set(owner.values):
                found.append((replace(definition, template=(), specialised=False), owner))
        return found

    def _pattern(self, owner: Class) -> tuple[str, ...]:
        """The template arguments of a specialisation as written; of the template itself open."""
        names = {*owner.types, *owner.values} if owner.type.template else set()
        node = owner.node.child_by_field_name("name")
        if node is not None and node.type == "template_type":
            return pattern_of(node, names, self.program.text)
        return ("?",) * len(names)

    def method(self, owner: Class, name: str, depth: int = 0) -> list[tuple[Definition, Class]]:
        """The functions of this name that the class, or the nearest base, has."""
        found = [(definition, owner) for definition in owner.methods.get(name, ())]
        found += self._outside(owner, name)
        if found or depth > MAX_NESTING:
            return found
        for base in owner.bases:
            found += self.method(base, name, depth + 1)
        return found

    def named(self, name: str, arguments: Sequence[Binding], scope: Scope) -> Type:
        """The type of a class's name with template arguments."""
        candidates = self._candidates().get(name, [])
        if not candidates:
            return Unknown(shortened(name))
        chosen = self._chosen(candidates, arguments, scope)
        if isinstance(chosen, str):
            return Unknown(f"{shortened(name)} ({chosen})")
        candidate, bindings = chosen
        shown = ", ".join(str(value) for value in arguments)
        title = f"{name}<{shown}>" if arguments or candidate.parameters else name
        made = self.instantiate(candidate.node, title, name, tuple(arguments), bindings, scope)
        return made.type if isinstance(made, Class) else Unknown(made)

    def local(self, node: Node, scope: Scope, outer: Class | None = None, name: str = "") -> Type:
        """The type of a definition that stands in a function or in a class."""
        title = name or scope.text(node.child_by_field_name("name") or node).split("{")[0].strip()
        bindings: dict[str, Binding] = {}
        for meaning, literal in scope.frames[0].items():
            if isinstance(literal, Literal):
                bindings[meaning] = literal.value
        bindings.update(scope.types)
        made = self.instantiate(node, title or "struct", "", (), bindings, scope, outer)
        return made.type if isinstance(made, Class) else Unknown(made)

    def instantiate(
        self,
        node: Node,
        title: str,
        template: str,
        arguments: tuple[Binding, ...],
        bindings: Mapping[str, Binding],
        scope: Scope,
        outer: Class | None = None,
    ) -> Class | str:
        given = ",".join(f"{key}={value}" for key, value in sorted(bindings.items()))
        key = f"{node.start_byte}:{template}:{given}"
        if key in self._made:
            return self._made[key]
        if self._depth >= MAX_NESTING or len(self._made) >= MAX_INSTANTIATIONS:
            return "classes nest too deep"
        scope.meter.step(20)
        made = Class(Struct(title, key, Layout(), template, arguments), node, {}, {}, outer=outer)
        if not template:
            made.around = scope
        for name, value in bindings.items():
            if isinstance(value, bool | int | float):
                made.values[name] = Literal(value, literal_type(value), self.program.span(node))
            else:
                made.types[name] = value
        self._made[key] = made
        self._of[key] = made
        self._depth += 1
        try:
            from migrate.cuda.members import Scan

            made.problem = Scan(self, made, scope).run()
        finally:
            self._depth -= 1
        if made.problem is not None:
            self._made[key] = f"{title}: {made.problem}"
            return f"{title}: {made.problem}"
        made.complete = True
        return made

    def register(self, made: Class) -> None:
        """Know a class that was made elsewhere (a lambda's)."""
        made.complete = True
        self._of[made.type.key] = made

    def unique(self, prefix: str) -> str:
        return f"{prefix}:{len(self._of)}"

    def within(self, owner: Class, scope: Scope) -> Scope:
        """The scope of a function, with names that a class around them would give."""
        inner = self.scope(owner, scope)
        inner.outer, inner.issues, inner.pending = scope, scope.issues, scope.pending
        return inner

    def scope(self, owner: Class, meter_from: Scope) -> Scope:
        """The scope inside a class's definition."""
        made = Scope(self.program, meter_from.meter, self.resolver, self)
        around: dict[str, Meaning] = {}
        lexical = owner.around
        if lexical is not None:
            made.types.update(lexical.types)
            for local in lexical.local_types:
                made.types.update(local)
            for frame in lexical.frames:
                around.update(_constants(frame, lexical))
        chain: list[Class] = []
        current: Class | None = owner
        while current is not None and len(chain) < MAX_NESTING:
            chain.append(current)
            current = current.outer
        for part in reversed(chain):
            made.types.update(part.types)
            around.update(part.values)
        made.frames = [around]
        made.inside = owner
        made.globals_used = meter_from.globals_used
        made.initials = meter_from.initials
        made.depth = meter_from.depth
        return made

    def member_type(self, owner: Class, name: str, scope: Scope, depth: int = 0) -> Type | None:
        """What a type name means inside a class: its own, of a base, of the class around."""
        from migrate.cuda.declarators import aliased

        if depth > MAX_NESTING:
            return None
        if name in (owner.type.name, owner.type.template):
            return owner.type
        if name in owner.types:
            return owner.types[name]
        if name in owner.aliases:
            target, declarator = owner.aliases[name]
            return aliased(target, declarator, self.scope(owner, scope))
        if name in owner.nested:
            return self.local(owner.nested[name], self.scope(owner, scope), owner, name)
        for base in owner.bases:
            found = self.member_type(base, name, scope, depth + 1)
            if found is not None:
                return found
        if owner.outer is not None:
            return self.member_type(owner.outer, name, scope, depth + 1)
        return None

    def member_constant(
        self, owner: Class, name: str, scope: Scope, depth: int = 0
    ) -> Literal | None:
        """The value of a static constant, an enumerator or a template parameter of a class."""
        from migrate.cuda.expressions import extent
        from migrate.cuda.names import static_constant

        if depth > MAX_NESTING:
            return None
        if name in owner.constants:
            return owner.constants[name]
        if name in owner.values:
            return owner.values[name]
        found: Literal | None = None
        if name in owner.enumerators:
            base, offset = owner.enumerators[name]
            value = 0 if base is None else extent(base, self.scope(owner, scope))
            if value is not None:
                found = Literal(value + offset, INT, self.program.span(owner.node))
        elif name in owner.statics:
            owner.constants[name] = None  # one that is defined by itself has no value
            declaration, declarator, value_node = owner.statics[name]
            found = static_constant(declaration, declarator, value_node, self.scope(owner, scope))
        else:
            for around in (*owner.bases, *([owner.outer] if owner.outer else ())):
                found = self.member_constant(around, name, scope, depth + 1)
                if found is not None:
                    return found
            return None
        owner.constants[name] = found
        return found

    def _candidates(self) -> dict[str, list[_Candidate]]:
        if self._index is None:
            self._index = {}
            for node in self.program.structs.values():
                self._add(self._index, node)
            for name, node in self.program.structs.items():
                if name and name not in self._index and "<" not in name:
                    self._index[name] = [_Candidate(node, (), None)]
        return self._index

    def _add(self, index: dict[str, list[_Candidate]], node: Node) -> None:
        named_node = node.child_by_field_name("name")
        if node.child_by_field_name("body") is None or named_node is None:
            return
        specialised: tuple[Node, ...] | None = None
        if named_node.type == "template_type":
            listed = named_node.child_by_field_name("arguments")
            specialised = tuple(children_of(listed))
            named_node = named_node.child_by_field_name("name") or named_node
        parameters = template_of(node, self.program.text)
        name = self.program.text(named_node).rsplit("::", 1)[-1]
        index.setdefault(name, []).append(_Candidate(node, parameters, specialised))

    def _chosen(
        self, candidates: list[_Candidate], arguments: Sequence[Binding], scope: Scope
    ) -> tuple[_Candidate, dict[str, Binding]] | str:
        from migrate.cuda.templates import UNDECIDED, complete, unify

        primary = next((c for c in candidates if c.specialised is None), None)
        full = list(arguments)
        bindings: dict[str, Binding] = {}
        if primary is not None:
            completed = complete(primary.parameters, arguments, scope)
            if isinstance(completed, str):
                return completed
            bindings = completed
            full = [completed[p.name] for p in primary.parameters if p.name in completed]
        best: tuple[int, _Candidate, dict[str, Binding]] | None = None
        undecided = False
        for candidate in candidates:
            if candidate.specialised is None or len(candidate.specialised) != len(full):
                continue
            open_names = {parameter.name for parameter in candidate.parameters}
            found: dict[str, Binding] = {}
            fits = all(
                unify(pattern, actual, open_names, found, scope)
                for pattern, actual in zip(candidate.specialised, full, strict=True)
            )
            undecided |= UNDECIDED in found
            if fits and open_names <= set(found):
                rank = len(open_names)
                if best is None or rank < best[0]:
                    best = (rank, candidate, found)
        if best is not None:
            return best[1], best[2]
        if undecided:
            return "which specialisation fits is not known"
        if primary is None:
            return "no specialisation fits"
        return primary, bindings


def _constants(frame: Mapping[str, Meaning], scope: Scope) -> dict[str, Meaning]:
    """What of a function's names has a meaning outside of its execution."""
    found: dict[str, Meaning] = {}
    for name, meaning in frame.items():
        match meaning:
            case Literal():
                found[name] = meaning
            case Variable(id=number, type=Scalar() as kind, where=where) if number in scope.known:
                found[name] = Literal(scope.known[number], kind, where)
            case _:
                continue
    return found


def literal_type(value: int | float | bool) -> Scalar:
    from migrate.cuda.types import BOOL, DOUBLE

    if isinstance(value, bool):
        return BOOL
    if isinstance(value, float):
        return DOUBLE
    wide = named("long long")
    assert isinstance(wide, Scalar)
    return INT if -(2**31) <= value < 2**31 else wide
