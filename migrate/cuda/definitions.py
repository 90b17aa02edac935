"""What syntax nodes say before anything has a meaning: parts, template headers, parameters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from tree_sitter import Node

from migrate.cuda.parse import TemplateParameter


def children_of(node: Node | None) -> list[Node]:
    """A node's parts without comments."""
    if node is None:
        return []
    return [child for child in node.named_children if child.type != "comment"]


def template_parameters(
    header: Node | None, text: Callable[[Node], str]
) -> tuple[TemplateParameter, ...]:
    """The parameters of a template header."""
    return tuple(_parameters(header, text))


def template_of(node: Node, text: Callable[[Node], str]) -> tuple[TemplateParameter, ...]:
    """The template parameters of a definition, by the header around it."""
    around = node.parent
    if around is None or around.type != "template_declaration":
        return ()
    return template_parameters(around.child_by_field_name("parameters"), text)


def _parameters(header: Node | None, text: Callable[[Node], str]) -> Iterator[TemplateParameter]:
    def named(node: Node | None) -> str:
        return text(node) if node is not None else ""

    for child in children_of(header):
        match child.type:
            case "type_parameter_declaration":
                names = child.named_children
                yield TemplateParameter(text(names[0]) if names else "", "type")
            case "optional_type_parameter_declaration":
                yield TemplateParameter(
                    named(child.child_by_field_name("name")),
                    "type",
                    default=child.child_by_field_name("default_type"),
                )
            case "parameter_declaration" | "optional_parameter_declaration":
                declarator = child.child_by_field_name("declarator")
                yield TemplateParameter(
                    named(_declared_name(declarator)),
                    "value",
                    type=child.child_by_field_name("type"),
                    default=child.child_by_field_name("default_value"),
                )
            case _:
                yield TemplateParameter(text(child), "pack")


def _declared_name(node: Node | None) -> Node | None:
    """The name inside a declarator: `Op` of `float (*Op)(float, float)`."""
    for _ in range(16):
        if node is None or node.type in ("identifier", "field_identifier", "type_identifier"):
            return node
        following = node.child_by_field_name("declarator")
        node = following or next(iter(children_of(node)), None)
    return node


def parameter_nodes(node: Node) -> list[Node]:
    """The parameters of a function definition or of a lambda."""
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type not in (
        "function_declarator",
        "lambda_declarator",
        "abstract_function_declarator",
    ):
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            inner = next((c for c in declarator.named_children if "declarator" in c.type), None)
        declarator = inner
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    kinds = ("parameter_declaration", "optional_parameter_declaration")
    return [
        child
        for child in children_of(listed)
        if child.type in kinds
        and child.child_by_field_name("type") is not None
        and not (
            child.child_by_field_name("declarator") is None
            and (child.child_by_field_name("type") or child).text == b"void"
        )
    ]


def has_pack(node: Node) -> bool:
    """Whether a function takes a parameter pack."""
    declarator = node.child_by_field_name("declarator")
    for _ in range(16):
        if declarator is None or declarator.type == "function_declarator":
            break
        inner = declarator.child_by_field_name("declarator")
        declarator = inner or next(
            (c for c in declarator.named_children if "declarator" in c.type), None
        )
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    return any(child.type == "variadic_parameter_declaration" for child in children_of(listed))


def arity(node: Node) -> tuple[int, int]:
    """How few and how many arguments a function takes."""
    nodes = parameter_nodes(node)
    optional = sum(child.type == "optional_parameter_declaration" for child in nodes)
    return len(nodes) - optional, len(nodes)


def returns_reference(node: Node) -> bool:
    """Whether a function's result is declared `T&`."""
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type == "pointer_declarator":
        declarator = declarator.child_by_field_name("declarator")
    return declarator is not None and declarator.type == "reference_declarator"


def is_const_method(node: Node) -> bool:
    """Whether a method is declared `const`."""
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type not in (
        "function_declarator",
        "operator_cast",
    ):
        following = declarator.child_by_field_name("declarator")
        declarator = following or next(
            (c for c in declarator.named_children if "declarator" in c.type), None
        )
    if declarator is not None and declarator.type == "operator_cast":
        declarator = declarator.child_by_field_name("declarator")
    if declarator is None:
        return False
    return any(
        child.type == "type_qualifier" and child.text == b"const" for child in declarator.children
    )


def innermost(node: Node) -> Node:
    """What stands in parentheses."""
    while node.type == "parenthesized_expression" and node.named_child_count == 1:
        node = node.named_children[0]
    return node


def method_name(node: Node, text: Callable[[Node], str]) -> tuple[str, Node | None]:
    """The name of a function definition (`operator float` for a conversion) and its scope."""
    current = node.child_by_field_name("declarator")
    while current is not None:
        match current.type:
            case "operator_cast":
                kind = current.child_by_field_name("type")
                return f"operator {text(kind)}" if kind is not None else "", None
            case "function_declarator":
                inner = current.child_by_field_name("declarator")
                if inner is None:
                    return "", None
                if inner.type == "qualified_identifier":
                    around = inner.child_by_field_name("scope")
                    last = inner.child_by_field_name("name") or inner
                    return _plain(text(last)), around
                return _plain(text(inner)), None
            case _:
                following = current.child_by_field_name("declarator")
                if following is None:
                    following = next(
                        (c for c in current.named_children if "declarator" in c.type), None
                    )
                current = following
    return "", None


def _plain(name: str) -> str:
    return "".join(name.split()) if name.startswith("operator") else name


def pattern_of(node: Node, names: Collection[str], text: Callable[[Node], str]) -> tuple[str, ...]:
    """Template arguments as written, those that are the template's own parameters as `?`."""
    listed = children_of(node.child_by_field_name("arguments"))
    written = ["".join(text(child).split()) for child in listed]
    return tuple("?" if one in names else one for one in written)
