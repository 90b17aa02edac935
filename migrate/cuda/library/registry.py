"""Which library answers for a name.

A name that the file defines itself hides one of a library.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from migrate.cuda.ast import Declare, Evaluate, Expression, Statement, Variable
from migrate.cuda.library.request import Handler, Lowered, Request, TypeMaker
from migrate.cuda.scope import Scope
from migrate.cuda.types import Array, Library, Struct, Type, Unknown

_MAX_NESTING = 16


@dataclass(frozen=True, slots=True)
class _Tables:
    functions: Mapping[str, Handler]
    members: Mapping[str, Handler]
    types: Mapping[str, TypeMaker]
    constants: Mapping[str, int]


# Each library's module, and what a text has in it that uses the library.
_MODULES: Mapping[str, tuple[bytes, ...]] = {
    "bits": (b"",),
    "groups": (b"cooperative_groups", b"cg::", b"thread_block", b"tiled_partition"),
    "cub": (
        b"cub",
        b"TempStorage",
        b"BLOCK_LOAD_",
        b"BlockReduce",
        b"BlockScan",
        b"WarpReduce",
        b"BlockLoad",
    ),
    "operators": (b"cooperative_groups", b"cg::", b"thread_block", b"tiled_partition", b"cub"),
    "halves": (b"half", b"bfloat16", b"__h"),
    "pipeline": (b"memcpy_async", b"__pipeline", b"__cvta_generic", b"__nvvm_get_smem"),
    "random": (b"curand",),
    "wmma": (b"wmma", b"fragment", b"_to_tf32"),
}


def _tables(scope: Scope) -> _Tables:
    """What the libraries that a program uses have; the modules of others are not loaded."""
    return _loaded(_used(scope.program.expanded.text))


@functools.lru_cache(maxsize=256)
def _used(text: bytes) -> tuple[str, ...]:
    present: dict[bytes, bool] = {}

    def has(word: bytes) -> bool:
        if word not in present:
            present[word] = word in text
        return present[word]

    return tuple(module for module, words in _MODULES.items() if any(map(has, words)))


@functools.cache
def _loaded(modules: tuple[str, ...]) -> _Tables:
    functions: dict[str, Handler] = {}
    members: dict[str, Handler] = {}
    types: dict[str, TypeMaker] = {}
    constants: dict[str, int] = {}
    for name in modules:
        module = importlib.import_module(f"migrate.cuda.library.{name}")
        functions.update(module.FUNCTIONS)
        members.update(module.MEMBERS)
        types.update(module.TYPES)
        constants.update(getattr(module, "CONSTANTS", {}))
    return _Tables(functions, members, types, constants)


def constant(name: str, scope: Scope) -> int | None:
    """The value of a library's enumerator."""
    return _tables(scope).constants.get(name)


def member(base: Expression, name: str, node: Node, scope: Scope) -> Expression | None:
    """A member of an object that has storage, `f.x` of a fragment; `None` for other objects."""
    if not isinstance(base.type, Array):
        return None
    from migrate.cuda.library import wmma

    return wmma.member(base, name, node, scope)


def type_of(node: Node, scope: Scope) -> Type | None:
    """The library type that a type's syntax names; `None` for any other."""
    for _ in range(_MAX_NESTING):
        match node.type:
            case "dependent_type":
                node = node.named_children[0]
            case "qualified_identifier":
                inner = node.child_by_field_name("name")
                if inner is None:
                    return None
                if inner.type in ("type_identifier", "identifier"):
                    name = scope.text(inner)
                    if name == "TempStorage":
                        return Library(name)
                    return None if _hidden(name, scope) else type_named(name, scope)
                node = inner
            case "template_type" | "template_function":
                name_node = node.child_by_field_name("name")
                name = scope.text(name_node) if name_node is not None else ""
                make = _tables(scope).types.get(name)
                if make is None or _hidden(name, scope):
                    return None
                return make(_parameters(node, scope))
            case _:
                return None
    return None


def is_storage(kind: Type) -> bool:
    """Whether a struct or union has nothing in it but objects of libraries."""
    if not isinstance(kind, Struct) or not kind.members:
        return False
    return all(isinstance(m.type, Library) or is_storage(m.type) for m in kind.members)


def type_named(name: str, scope: Scope) -> Type | None:
    """The library type of a plain name, which the file does not define."""
    make = _tables(scope).types.get(name.rsplit("::", 1)[-1])
    return make(()) if make is not None else None


def _parameters(node: Node, scope: Scope) -> tuple[Type | int | float | bool, ...]:
    from migrate.cuda.expressions import template_argument

    listed = node.child_by_field_name("arguments")
    written = listed.named_children if listed is not None else []
    return tuple(template_argument(one, scope) for one in written if one.type != "comment")


def _hidden(name: str, scope: Scope) -> bool:
    program = scope.program
    return (
        name in program.functions
        or name in program.structs
        or name in program.aliases
        or scope.type_named(name) is not None
        or scope.lookup(name) is not None
    )


def call(node: Node, scope: Scope) -> Lowered:
    """What a call of a library means; `None` where no library is called."""
    function = node.child_by_field_name("function")
    listed = node.child_by_field_name("arguments")
    if function is None or listed is None:
        return None
    written = tuple(c for c in listed.named_children if c.type != "comment")
    if function.type == "field_expression":
        return _member(function, written, node, scope)
    core = _last(function)
    template: tuple[Node, ...] = ()
    if core.type == "template_function":
        given = core.child_by_field_name("arguments")
        template = tuple(given.named_children) if given is not None else ()
        core = core.child_by_field_name("name") or core
    if core.type not in ("identifier", "type_identifier"):
        return None
    name = scope.text(core)
    tables = _tables(scope)
    handler = tables.functions.get(name)
    if handler is not None and (not _hidden(name, scope) or _of_library(function, scope)):
        mark = len(scope.issues)
        made = handler(Request(name, template, written, node, scope))
        if made is not None:
            return made
        del scope.issues[mark:]
    kind = _constructed(function, name, scope)
    return _object(kind, node, scope) if kind is not None else None


_NAMESPACES = frozenset({"cooperative_groups", "cg", "cub", "nvcuda", "wmma", "cuda", "thrust"})


def _of_library(function: Node, scope: Scope) -> bool:
    """Whether a name is written with a namespace of a library before it."""
    if function.type != "qualified_identifier":
        return False
    first = function.child_by_field_name("scope")
    return first is not None and scope.text(first) in _NAMESPACES


def _last(node: Node) -> Node:
    for _ in range(_MAX_NESTING):
        inner = node.child_by_field_name("name") if node.type == "qualified_identifier" else None
        if inner is None:
            return node
        node = inner
    return node


def _constructed(function: Node, name: str, scope: Scope) -> Library | None:
    """The library class whose constructor a call is, `BlockReduce(storage)`."""
    kind: Type | None
    if function.type == "identifier":
        if name in scope.program.functions:
            return None
        from migrate.cuda.declarators import is_type_name
        from migrate.cuda.expressions import resolve

        if name in _tables(scope).types and not _hidden(name, scope):
            kind = type_named(name, scope)
        elif scope.lookup(name) is None and is_type_name(name, scope):
            kind = resolve(function, scope)
        else:
            return None
    else:
        kind = type_of(function, scope)
        if kind is None and function.type == "qualified_identifier":
            kind = _of_class(function, scope)
    return kind if isinstance(kind, Library) else None


def _of_class(function: Node, scope: Scope) -> Type | None:
    """The type that a name of one of the program's classes stands for, `Traits::Scan`."""
    from migrate.cuda.declarators import is_type_name
    from migrate.cuda.expressions import resolve

    first = function.child_by_field_name("scope")
    if first is None or not is_type_name(scope.text(first), scope):
        return None
    return resolve(function, scope)


def _object(kind: Library, node: Node, scope: Scope) -> Expression:
    from migrate.cuda.library.request import thing

    return thing(kind, scope.text(node)[:80], scope.where(node))


def _member(function: Node, written: tuple[Node, ...], node: Node, scope: Scope) -> Lowered:
    argument = function.child_by_field_name("argument")
    field = function.child_by_field_name("field")
    if argument is None or field is None:
        return None
    base = _library_object(argument, scope)
    if base is None or not isinstance(base.type, Library):
        return None
    template: tuple[Node, ...] = ()
    if field.type == "template_method":
        given = field.child_by_field_name("arguments")
        template = tuple(given.named_children) if given is not None else ()
        field = field.child_by_field_name("name") or field
    handler = _tables(scope).members.get(base.type.name)
    name = scope.text(field)
    request = Request(name, template, written, node, scope, base)
    made = handler(request) if handler is not None else None
    if made is None:
        return scope.opaque(node, f"{base.type.name}::{name} is not understood")
    return made


def _library_object(node: Node, scope: Scope) -> Expression | None:
    """The object whose member is called, where it can be one of a library."""
    from migrate.cuda.expressions import expression

    if node.type == "identifier":
        found = scope.lookup(scope.text(node))
        if not isinstance(found, Variable) or not isinstance(found.type, Library):
            return None
    elif node.type not in ("call_expression", "field_expression", "parenthesized_expression"):
        return None
    # Asked again for each call of a chain `a.b().c()`, whose objects hold one another.
    place = (node.start_byte, node.end_byte)
    if place in scope.no_library:
        return None
    mark, waiting = len(scope.issues), len(scope.pending)
    made = expression(node, scope)
    if isinstance(made.type, Library):
        return made
    del scope.issues[mark:]
    del scope.pending[waiting:]
    scope.no_library.add(place)
    return None


def statements(node: Node, scope: Scope) -> list[Statement] | None:
    """A statement that is a library's as a whole: a call, or a declaration read as comparisons.

    `None` where it is neither.
    """
    if node.type == "binary_expression":
        return _compared(node, scope)
    if node.type == "gnu_asm_expression":
        from migrate.cuda.library import ptx

        return ptx.statements(node, scope)
    if node.type != "call_expression":
        return None
    made = call(node, scope)
    if made is None:
        return None
    if isinstance(made, tuple):
        return list(made)
    return [Evaluate(made, scope.where(node))]


def _compared(node: Node, scope: Scope) -> list[Statement] | None:
    """`T<n> name = value;`, which reads as `(T < n) > (name = value)`."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None or left.type != "binary_expression":
        return None
    if _sign(node, scope) != ">" or _sign(left, scope) != "<":
        return None
    class_node, given = left.child_by_field_name("left"), left.child_by_field_name("right")
    if class_node is None or given is None:
        return None
    value: Node | None = None
    name = right
    if right.type == "assignment_expression" and _sign(right, scope) == "=":
        name = right.child_by_field_name("left") or right
        value = right.child_by_field_name("right")
    written = scope.text(_last(class_node))
    make = _tables(scope).types.get(written)
    if make is None or name.type != "identifier" or _hidden(written, scope):
        return None
    from migrate.cuda.expressions import template_argument

    kind = make((template_argument(given, scope),))
    if not isinstance(kind, Library):
        return [scope.opaque_statement(node, f"the type {written}<…> is not understood")]
    return declare(scope.text(name), kind, value, node, scope)


def _sign(node: Node, scope: Scope) -> str:
    operator = node.child_by_field_name("operator")
    return scope.text(operator) if operator is not None else ""


def value(node: Node, scope: Scope) -> Expression | None:
    """A call of a library inside an expression; `None` where it is none."""
    made = call(node, scope)
    if isinstance(made, tuple):
        return scope.opaque(node, "a statement of a library is used inside an expression")
    return made


def declare(
    name: str, kind: Library, value: Node | None, node: Node, scope: Scope
) -> list[Statement]:
    """The declaration of an object of a library's class.

    It has no storage, only a name; of a group the initial value says more than the class does.
    """
    from migrate.cuda.expressions import expression

    if value is not None and value.type not in ("argument_list", "initializer_list"):
        initial = expression(value, scope)
        if isinstance(initial.type, Unknown):
            return [scope.opaque_statement(node, f"{name} is not understood")]
        if isinstance(initial.type, Library) and initial.type.parameters:
            kind = initial.type
    return declared(name, kind, node, scope)


def declared(name: str, kind: Library, node: Node, scope: Scope) -> list[Statement]:
    """A name for an object of a library's class, and the variable that it holds, if any."""
    scope.declare(name, kind, "local", scope.where(node))
    held = kind.parameters[0] if kind.parameters else None
    return [held] if isinstance(held, Declare) else []
