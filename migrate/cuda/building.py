"""Functions of a program, found for a call and built.

A call is answered in four steps: who may be meant (`_candidates`), with what template
arguments and parameters (`_offer`), who fits best (`_rank`), and the body (`build`).  A
function that returns a reference to a part of an argument, in one expression, takes the
place of its call, so that `v[i]` of a class is the element itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from weakref import proxy

from tree_sitter import Node

from migrate.budget import Meter
from migrate.cuda import objects
from migrate.cuda.ast import (
    Call,
    Comma,
    Component,
    Element,
    Expression,
    Function,
    Literal,
    Name,
    OpaqueExpression,
    Variable,
)
from migrate.cuda.classes import Class, Classes
from migrate.cuda.conversions import is_place, pure, small
from migrate.cuda.definitions import (
    arity,
    children_of,
    has_pack,
    is_const_method,
    method_name,
    returns_reference,
)
from migrate.cuda.expressions import expression, extent, resolve
from migrate.cuda.initialisers import initialisers
from migrate.cuda.library.registers import held_types, retyped
from migrate.cuda.offers import (
    Parameter,
    bound_scope,
    exactly,
    is_const,
    parameters_of,
    qualified_further,
    specialised_for,
    specificity,
)
from migrate.cuda.parse import Definition, Program
from migrate.cuda.ranking import distance
from migrate.cuda.scope import Binding, Bound, Callee, Scope, not_understood
from migrate.cuda.statements import block
from migrate.cuda.templates import deduce, implied_arguments, same
from migrate.cuda.types import (
    INT,
    VOID,
    Array,
    Library,
    Pointer,
    Struct,
    Type,
    Unknown,
)

MAX_CALL_DEPTH = 32


@dataclass(frozen=True, slots=True)
class _Offer:
    """A function that fits a call, with its template arguments."""

    definition: Definition
    owner: Class | None
    bindings: dict[str, Binding]
    parameters: tuple[Parameter, ...]
    this: Expression | None


Key = tuple[int, tuple[tuple[str, str], ...], str, str, str]


@dataclass(slots=True, weakref_slot=True)
class Builder:
    """Builds functions of one program; it is the `Resolver` of every scope it makes."""

    program: Program
    meter: Meter
    done: dict[Key, Function | str] = field(default_factory=dict)
    globals_used: dict[str, Variable] = field(default_factory=dict)
    initials: dict[str, tuple[int | float | bool, ...]] = field(default_factory=dict)
    depth: int = 0
    classes: Classes = field(init=False)

    def __post_init__(self) -> None:
        # Without a cycle, the program and all that was built go with their last user.
        self.classes = Classes(self.program, proxy(self))

    # What other parts of reading ask for

    def invoke(
        self, callee: Callee, arguments: Sequence[Expression], node: Node, scope: Scope
    ) -> Expression:
        """The call as an expression; what is not understood comes back opaque."""
        unclear = next((value for value in arguments if not_understood(value)), None)
        if unclear is not None:
            return unclear
        chosen = self._chosen(callee, arguments, scope)
        if isinstance(chosen, str):
            return scope.opaque(node, chosen)
        known: tuple[Parameter, ...] | None = chosen.parameters
        if len(chosen.parameters) > len(arguments):
            arguments = [*arguments, *self._defaults(chosen, len(arguments), scope)]
            known = None
        if returns_reference(chosen.definition.node):
            made = self._inlined(chosen, callee, arguments, node, scope)
            if made is not None:
                return made
        built = self.build(
            chosen.definition,
            chosen.bindings,
            chosen.owner,
            chosen.this,
            callee,
            arguments,
            parameters=known,
        )
        if isinstance(built, str):
            return scope.opaque(node, built)
        return self._call(chosen, built, callee, arguments, node, scope)

    def accepts(self, callee: Callee, arguments: Sequence[Expression], scope: Scope) -> bool:
        """Whether some function fits the call."""
        if any(not_understood(value) for value in arguments):
            return False
        return not isinstance(self._chosen(callee, arguments, scope), str)

    def type_from_text(self, text: str) -> Type:
        """The type that a piece of text names, such as `Pair<int, 4>`."""
        found = self._snippet(text)
        return Unknown(text) if found is None or isinstance(found, bool | int | float) else found

    def value_from_text(self, text: str) -> int | float | bool | None:
        """The value of a constant expression given as text."""
        found = self._snippet(text)
        return found if isinstance(found, bool | int | float) else None

    def _snippet(self, text: str) -> Binding | None:
        from migrate.cuda.snippets import binding

        return binding(text, Scope(self.program, self.meter, self, self.classes))

    # Who is meant

    def _candidates(self, callee: Callee) -> list[tuple[Definition, Class | None]]:
        if callee.owner is not None:
            found = list(self.classes.method(callee.owner, callee.name))
            if callee.name == callee.owner.constructor:
                found = self.classes.constructors(callee.owner)
            return [(d, o) for d, o in found if d.node.child_by_field_name("body") is not None]
        group = self.program.functions.get(callee.name, ())
        plain = [d for d in group if method_name(d.node, self.program.text)[1] is None]
        plain = plain or list(group)
        device = [d for d in plain if d.kind != "host"]
        # A plain constexpr or host-device helper may lack the keyword in a header.
        return [(d, None) for d in (device or plain)]

    def _chosen(
        self, callee: Callee, arguments: Sequence[Expression], scope: Scope
    ) -> _Offer | str:
        reasons: list[str] = []
        best: tuple[tuple[int, int, int], _Offer] | None = None
        rival: _Offer | None = None
        for definition, owner in self._candidates(callee):
            self.meter.step(5)
            offer = self._offer(definition, owner, callee, arguments, scope)
            if isinstance(offer, str):
                reasons.append(offer)
                continue
            cost = self._cost(offer, callee, arguments, scope)
            if cost is None:
                reasons.append(f"no {callee.name} of the file takes these arguments")
                continue
            if best is None or cost < best[0]:
                best, rival = (cost, offer), None
            elif cost == best[0] and offer.definition.node.text != best[1].definition.node.text:
                rival = offer
        if rival is not None:
            # Of two namespaces, or told apart by rules of the language that are not followed.
            return f"several functions named {callee.name} take these arguments"
        if best is not None:
            return best[1]
        return reasons[0] if reasons else f"{callee.name} has no definition"

    def _cost(
        self, offer: _Offer, callee: Callee, arguments: Sequence[Expression], scope: Scope
    ) -> tuple[int, int, int] | None:
        total = 0
        for parameter, value in zip(offer.parameters, arguments, strict=False):
            cost = distance(parameter.type, parameter.reference, parameter.const, value, scope)
            if cost is None or (parameter.changes and is_const(value)):
                return None
            total += 4 * cost + qualified_further(parameter, value)
        if callee.this is not None and offer.owner is not None:
            # A method that may change the object is the better one for an object that may.
            constant = _is_const(callee.this)
            if constant != is_const_method(offer.definition.node):
                total += 1
        kind = 0 if offer.definition.specialised else 1 if not offer.definition.template else 2
        return total, kind, -specificity(offer.definition)

    def _offer(
        self,
        definition: Definition,
        owner: Class | None,
        callee: Callee,
        arguments: Sequence[Expression],
        scope: Scope,
    ) -> _Offer | str:
        needed, allowed = arity(definition.node)
        if has_pack(definition.node):
            return f"the parameter pack of {definition.name} is not understood"
        if not needed <= len(arguments) <= allowed:
            return f"{callee.name} takes {allowed} arguments"
        base = self._scope(owner, scope)
        given: Sequence[Binding] = callee.template
        if definition.specialised:
            explicit = specialised_for(definition, given, base)
            if explicit is False and given:
                explicit = self._implied(definition, given, base)
            if explicit is None or not (explicit or exactly(definition, arguments, base)):
                return f"{callee.name} is specialised for other arguments"
            given = ()
        elif given and not definition.template:
            return f"{callee.name} is no template"
        bindings = deduce(definition, given, arguments, base)
        if isinstance(bindings, str):
            return bindings
        inner = bound_scope(definition, bindings, base)
        if isinstance(inner, str):
            return f"{definition.name}: {inner}"
        parameters = parameters_of(definition, inner, arguments)
        this = callee.this if owner is not None and not _is_static(definition.node) else None
        return _Offer(definition, owner, bindings, parameters, this)

    # Scopes and parameters

    def _scope(self, owner: Class | None, around: Scope) -> Scope:
        if owner is not None:
            made = self.classes.scope(owner, around)
        else:
            made = Scope(self.program, self.meter, self, self.classes)
        made.globals_used, made.initials = self.globals_used, self.initials
        made.depth = around.depth
        return made

    def _defaults(self, offer: _Offer, given: int, scope: Scope) -> list[Expression]:
        """The default arguments of the parameters that a call leaves out."""
        out: list[Expression] = []
        for parameter in offer.parameters[given:]:
            inner = self._scope(offer.owner, scope)
            bound_scope(offer.definition, offer.bindings, inner)
            inner.issues = scope.issues
            if parameter.default is None:
                break
            out.append(objects.initialised(parameter.default, parameter.type, inner, scope))
        return out

    def _implied(
        self, definition: Definition, given: Sequence[Binding], scope: Scope
    ) -> bool | None:
        """Whether a specialisation that leaves its template arguments out is for those given.

        They follow from its parameters and its result, held against the template's.
        """
        for primary in self.program.functions.get(definition.name, ()):
            if not primary.template or primary.specialised:
                continue
            wanted = implied_arguments(definition, primary, scope)
            if wanted is not None:
                return True if all(map(same, wanted, given)) else None
        return False

    # Bodies

    def build(
        self,
        definition: Definition,
        bindings: Mapping[str, Binding],
        owner: Class | None = None,
        this: Expression | None = None,
        callee: Callee | None = None,
        arguments: Sequence[Expression] = (),
        *,
        parameters: Sequence[Parameter] | None = None,
    ) -> Function | str:
        """Instantiate a definition; the reason where that is not possible.

        `parameters` are its own as the call found them, where a call did.
        """
        scope = Scope(self.program, self.meter, self, self.classes)
        if owner is not None:
            scope = self._scope(owner, scope)
        scope.globals_used, scope.initials = self.globals_used, self.initials
        bound = bound_scope(definition, bindings, scope)
        if isinstance(bound, str):
            return f"{definition.name}: {bound}"
        shown: list[tuple[str, str]] = []
        for parameter in definition.template:
            value = scope.frames[0].get(parameter.name)
            text = value.value if isinstance(value, Literal) else scope.types.get(parameter.name)
            shown.append((parameter.name, str(text)))
        if parameters is None:
            parameters = parameters_of(definition, scope, arguments)
        kinds = ",".join(str(parameter.type) for parameter in parameters)
        direct = "direct" if callee is not None and callee.captures is not None else ""
        key: Key = (
            definition.node.start_byte,
            tuple(shown),
            owner.type.key if owner is not None else "",
            f"{this.type}{direct}" if this is not None else direct,
            kinds,
        )
        if key in self.done:
            return self.done[key]
        if self.depth >= MAX_CALL_DEPTH:
            return f"calls nest deeper than {MAX_CALL_DEPTH} levels"
        # A call of itself finds this and is reported; C++ recursion on device is not followed.
        self.done[key] = f"{definition.name} calls itself"
        self.depth += 1
        try:
            built = self._body(definition, tuple(shown), scope, parameters, owner, this, callee)
        finally:
            self.depth -= 1
        self.done[key] = built
        return built

    def _body(
        self,
        definition: Definition,
        template: tuple[tuple[str, str], ...],
        scope: Scope,
        parameters: Sequence[Parameter],
        owner: Class | None,
        this: Expression | None,
        callee: Callee | None,
    ) -> Function | str:
        node = definition.node
        body = node.child_by_field_name("body")
        if body is None or body.type != "compound_statement":
            return f"{definition.name} has no body that can be read"
        head = [child for child in node.children if child != body]
        if definition.kind != "kernel" and any(child.has_error for child in head):
            return f"the head of {definition.name} cannot be read"
        issue = self.program.disagreement(node)
        if issue is not None:
            return f"{definition.name} cannot be read: {issue.message}"
        scope.result = self._result(node, scope)
        if returns_reference(node):
            scope.result = Pointer(scope.result)
            scope.returns_place = True
        scope.push()
        scope.held = held_types(body, scope)
        taken: list[Variable] = []
        where = scope.where(node)
        if this is not None:
            held = scope.declare("this", this.type, "reference", where)
            taken.append(held)
            scope.this = Name(held, held.type, where)
        if owner is not None and owner.captures is not None:
            taken += _captured(owner, callee, scope)
        for parameter in parameters:
            variable = scope.declare(
                parameter.name,
                parameter.type
                if definition.kind == "kernel"
                else retyped(parameter.type, scope.held.get(parameter.name)),
                parameter.storage,
                scope.where(parameter.node),
                const=parameter.const,
            )
            if not isinstance(parameter.type, Library):
                # An object of a library is not passed: it holds nothing.
                taken.append(variable)
        before = initialisers(node, owner, scope)
        made = block(body, scope)
        if scope.result == Unknown("auto"):
            # Nothing is returned.
            scope.result = VOID
        if before or scope.prologue:
            made = type(made)((*scope.prologue, *before, *made.body), made.where)
        return Function(
            name=definition.name,
            parameters=tuple(taken),
            result=scope.result,
            body=made,
            span=definition.span,
            kernel=definition.kind == "kernel",
            template=template,
            globals_used=tuple(self.globals_used.values()),
            initials=tuple(self.initials.items()),
            launch_bounds=_launch_bounds(node, scope),
            issues=tuple(scope.issues),
            variables=scope.next_id,
        )

    def _result(self, node: Node, scope: Scope) -> Type:
        declarator = node.child_by_field_name("declarator")
        if declarator is not None and declarator.type == "operator_cast":
            kind = resolve(declarator.child_by_field_name("type"), scope)
            inner = declarator.child_by_field_name("declarator")
            while inner is not None and inner.type == "abstract_pointer_declarator":
                kind = Pointer(kind)
                inner = inner.child_by_field_name("declarator")
            return kind
        type_node = node.child_by_field_name("type")
        trailing = _trailing(node)
        if trailing is not None:
            return resolve(trailing, scope)
        if type_node is None:
            # A constructor has no result; a lambda's is that of its return statement.
            return Unknown("auto") if node.type == "lambda_expression" else VOID
        if type_node.type == "placeholder_type_specifier":
            return Unknown("auto")
        kind = resolve(type_node, scope)
        while declarator is not None and declarator.type == "pointer_declarator":
            kind = Pointer(kind)
            declarator = declarator.child_by_field_name("declarator")
        return kind

    # Calls

    def _call(
        self,
        offer: _Offer,
        built: Function,
        callee: Callee,
        arguments: Sequence[Expression],
        node: Node,
        scope: Scope,
    ) -> Expression:
        where = scope.where(node)
        values: list[Expression] = []
        before: list[Expression] = []
        if offer.this is not None:
            values.append(offer.this)
        elif offer.owner is not None and not _is_static(offer.definition.node):
            if callee.captures is None:
                return scope.opaque(node, f"{callee.name} is called without an object")
        for capture in callee.captures or ():
            values.append(Name(capture.variable, capture.variable.type, where))
        for parameter, value in zip(offer.parameters, arguments, strict=True):
            if isinstance(parameter.type, Library):
                continue
            if parameter.reference:
                place, setting = self._place(parameter, value, node, scope)
                if setting is not None:
                    before.append(setting)
                values.append(place)
                continue
            passed = len(values)
            kind = built.parameters[passed].type if built.kernel is False else parameter.type
            made = objects.fitted(value, kind, node, scope)
            if isinstance(made, OpaqueExpression):
                return made
            values.append(made)
        result = built.result
        if isinstance(result, Unknown):
            return scope.opaque(
                node, f"the result of {callee.name} is {result}, which is not understood"
            )
        made_call: Expression = Call(built, tuple(values), result, where)
        if returns_reference(offer.definition.node) and isinstance(result, Pointer):
            made_call = Element(made_call, Literal(0, INT, where), result.element, where)
        for setting in reversed(before):
            made_call = Comma(setting, made_call, made_call.type, where)
        return made_call

    def _place(
        self, parameter: Parameter, value: Expression, node: Node, scope: Scope
    ) -> tuple[Expression, Expression | None]:
        """What a reference parameter takes: the place itself, or one made for a value."""
        if is_place(value):
            if value.type == parameter.type or isinstance(value.type, Array):
                return value, None
            if isinstance(value.type, Struct) and isinstance(parameter.type, Struct):
                return value, None
        return objects.stored(objects.fitted(value, parameter.type, node, scope), scope)

    def _inlined(
        self,
        offer: _Offer,
        callee: Callee,
        arguments: Sequence[Expression],
        node: Node,
        scope: Scope,
    ) -> Expression | None:
        """The expression that a function of one `return` stands for; `None` where it is more."""
        value = _only_return(offer.definition.node)
        if value is None or self.depth >= MAX_CALL_DEPTH:
            return None
        if offer.this is not None and not (small(offer.this) and pure(offer.this)):
            return None
        inner = self._scope(offer.owner, scope)
        if isinstance(bound_scope(offer.definition, offer.bindings, inner), str):
            return None
        inner.outer, inner.issues, inner.pending = scope, scope.issues, scope.pending
        inner.this = offer.this
        inner.push()
        for parameter, given in zip(offer.parameters, arguments, strict=True):
            fitted = (
                given if parameter.reference else objects.fitted(given, parameter.type, node, scope)
            )
            if not (small(fitted) and pure(fitted)):
                return None
            inner.frames[-1][parameter.name] = Bound(fitted)
        self.depth += 1
        try:
            made = expression(value, inner)
        finally:
            self.depth -= 1
        return made if is_place(made) or isinstance(made.type, Unknown) else None


def _captured(owner: Class, callee: Callee | None, scope: Scope) -> list[Variable]:
    """A lambda's captures as names of its body: reference parameters, or parts of the object."""
    made: list[Variable] = []
    assert owner.captures is not None
    if callee is not None and callee.captures is not None:
        for capture in callee.captures:
            held = capture.variable
            made.append(scope.declare(capture.name, held.type, "reference", held.where))
        return made
    kind = owner.type
    for position, member in enumerate(kind.members):
        if scope.this is None:
            continue
        where = scope.this.where
        place: Expression = Component(scope.this, position, member.type, where)
        if owner.captures.get(member.name) and isinstance(member.type, Pointer):
            place = Element(place, Literal(0, INT, where), member.type.element, where)
        scope.frames[-1][member.name] = Bound(place)
    return made


def _is_const(value: Expression) -> bool:
    while isinstance(value, Component):
        value = value.base
    return isinstance(value, Name) and value.variable.const


def _is_static(node: Node) -> bool:
    return any(
        child.type == "storage_class_specifier" and child.text == b"static"
        for child in node.children
    )


def _trailing(node: Node) -> Node | None:
    declarator = node.child_by_field_name("declarator")
    while declarator is not None:
        for child in declarator.children:
            if child.type == "trailing_return_type":
                inner = children_of(child)
                return inner[0] if inner else None
        declarator = declarator.child_by_field_name("declarator")
    return None


_SILENT = frozenset({"static_assert_declaration", "preproc_call", "using_declaration"})


def _only_return(node: Node) -> Node | None:
    """The expression of a body that is one return statement, assertions aside."""
    found: Node | None = None
    for child in children_of(node.child_by_field_name("body")):
        if child.type in _SILENT:
            continue
        if child.type != "return_statement" or found is not None:
            return None
        inner = children_of(child)
        if len(inner) != 1 or inner[0].type == "initializer_list":
            return None
        found = inner[0]
    return found


def _launch_bounds(node: Node, scope: Scope) -> tuple[int, ...]:
    found = next((child for child in node.children if child.type == "launch_bounds"), None)
    if found is None:
        return ()
    values = [extent(child, scope) for child in found.named_children if child.type != "comment"]
    return tuple(value for value in values if value is not None)
