"""Functions of host code: which there are, and what their parameters are taken to be."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate.nki.parse import is_jit

_NUMBERS = frozenset({"int", "float", "bool", "str"})
_COUNTED = frozenset({"reshape", "view", "range", "zeros", "new_zeros", "ones", "empty", "full"})


def functions(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, bool]]:
    """The functions of a file and of its classes; the latter are marked."""
    pending: list[tuple[ast.stmt, bool]] = [(node, False) for node in reversed(tree.body)]
    while pending:
        node, inside = pending.pop()
        if isinstance(node, ast.FunctionDef):
            yield node, inside
        elif isinstance(node, ast.ClassDef):
            pending += [(part, True) for part in reversed(node.body)]


def defaults(node: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """The parameters that may be left out, and what they then are."""
    positional = [*node.args.posonlyargs, *node.args.args]
    for argument, value in zip(reversed(positional), reversed(node.args.defaults), strict=False):
        yield argument.arg, value
    for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        if default is not None:
            yield argument.arg, default


def parametrized(node: ast.FunctionDef) -> list[dict[str, ast.expr]]:
    """The first values of `@pytest.mark.parametrize("m, n", [(1, 2), ...])`, all of them in one."""
    names: dict[str, ast.expr] = {}
    for decorator in node.decorator_list:
        match decorator:
            case ast.Call(
                func=ast.Attribute(attr="parametrize"),
                args=[ast.Constant(value=str() as listed), ast.List(elts=[first, *_]), *_],
            ):
                wanted = [part.strip() for part in listed.split(",") if part.strip()]
                parts = first.elts if isinstance(first, ast.Tuple | ast.List) else [first]
                if len(wanted) == 1:
                    parts = [first]
                names.update(zip(wanted, parts, strict=False))
            case _:
                pass
    return [names] if names else []


def is_wrapper(node: ast.FunctionDef) -> bool:
    """Whether the parameters of a function are what a caller hands over.

    Those of a test are what the test runner makes, those of a kernel are on the device.
    """
    if node.name.startswith("test_") or any(map(is_jit, node.decorator_list)):
        return False
    return not any("pytest" in ast.unparse(decorator) for decorator in node.decorator_list)


def given_arrays(node: ast.FunctionDef, *, method: bool) -> Iterator[tuple[str, bool]]:
    """The parameters without a default: their names, and whether they are arrays.

    A parameter that is only counted with, or annotated as a number, is a number.
    """
    optional = {name for name, _ in defaults(node)}
    positional = [*node.args.posonlyargs, *node.args.args]
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
    receiver = positional[0].arg if method and positional and not static else None
    if positional and positional[0].arg == "ctx":
        receiver = "ctx"
    counted, used = _counted(node)
    for argument in (*positional, *node.args.kwonlyargs):
        if argument.arg in optional or argument.arg == receiver:
            continue
        note = ast.unparse(argument.annotation) if argument.annotation is not None else ""
        if note in _NUMBERS:
            if note == "int":
                yield argument.arg, False
            continue
        number = argument.arg in counted and argument.arg not in used and "ensor" not in note
        yield argument.arg, not number


def _counted(node: ast.FunctionDef) -> tuple[set[str], set[str]]:
    """Names in sums and extents, and names that something is asked of."""
    counted: set[str] = set()
    used: set[str] = set()
    for part in ast.walk(node):
        match part:
            case ast.Attribute(value=ast.Name(id=name)) | ast.Subscript(value=ast.Name(id=name)):
                used.add(name)
            case ast.BinOp(left=left, right=right):
                counted |= {side.id for side in (left, right) if isinstance(side, ast.Name)}
            case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called), args=args) if (
                called in _COUNTED
            ):
                for arg in args:
                    parts = arg.elts if isinstance(arg, ast.Tuple | ast.List) else [arg]
                    counted |= {inner.id for inner in parts if isinstance(inner, ast.Name)}
            case _:
                pass
    return counted, used


def assigned(body: list[ast.stmt]) -> set[str]:
    """The names that statements bind, or store into."""
    found: set[str] = set()
    for statement in body:
        for node in ast.walk(statement):
            match node:
                case ast.Name(id=name, ctx=ast.Store()):
                    found.add(name)
                case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                    found.add(name)
                case _:
                    pass
    return found


_MODULES = frozenset({"np", "numpy", "torch", "F", "nn", "jax", "jnp", "einops", "ml_dtypes"})


def imported(tree: ast.Module) -> frozenset[str]:
    """Names that stand for a module, in any function of a file."""
    found = set(_MODULES)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return frozenset(found)


def reaching(tree: ast.Module, names: set[str]) -> list[tuple[ast.FunctionDef, bool]]:
    """The functions in which a name is used, or a function that does so, in order."""
    mentioned = {
        node: {
            part.id if isinstance(part, ast.Name) else part.attr
            for part in ast.walk(node)
            if isinstance(part, ast.Name | ast.Attribute)
        }
        for node, _ in functions(tree)
    }
    wanted = set(names) | _bound_to(tree, names)
    grown = True
    while grown:
        more = {node.name for node, used in mentioned.items() if used & wanted} - wanted
        wanted |= more
        grown = bool(more)
    return [(node, inside) for node, inside in functions(tree) if mentioned[node] & wanted]


def _bound_to(tree: ast.Module, names: set[str]) -> set[str]:
    """`run = nki.jit(kernel)` at module level."""
    return {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node.value))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
