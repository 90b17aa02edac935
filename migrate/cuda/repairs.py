"""Repairs of what the parser reads otherwise than C++ does.

The grammar knows no names: `(T)(x)` is a call to it, `T v(a, b);` a prototype, and
`i < size<0>(t)` a call of the template `i`.  The language decides by what the names are,
and so do the repairs: each puts in what makes the text unambiguous (`(const T)(x)`,
`T v((a), b);`, `(i) < size<0>(t)`), so that all that reads the tree sees the right one.
What cannot be decided stays and is found again by `disagreements`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from tree_sitter import Node

from migrate.cuda.origins import Edit
from migrate.cuda.syntax import AHEAD, DEVICE, Captures, declared_names, is_on_device
from migrate.cuda.tokens import marks
from migrate.cuda.types import named

_DECLARED_TYPES: Final = (
    re.compile(rb"\b(?:typename|class|struct|union|enum)\s+([A-Za-z_]\w*)"),
    re.compile(rb"\busing\s+([A-Za-z_]\w*)\s*="),
    re.compile(rb"\busing\s+(?:\w+::)+([A-Za-z_]\w*)\s*;"),
    re.compile(rb"\btypedef\b[^;{}]{0,400}?([A-Za-z_]\w*)\s*;"),
    re.compile(
        rb"\btypedef\s+(?:struct|union|enum)\b[^{;]{0,200}\{[^}]{0,4000}\}\s*([A-Za-z_]\w*)"
    ),
)
_LIBRARY_TYPE: Final = re.compile(rb"(?:\w+::)*\w+_t|(?:\w+::)*\w+_type")

_CASTS: Final = (b"static_cast", b"reinterpret_cast", b"const_cast", b"dynamic_cast")
_JOINED: Final = frozenset({b"_", b".", b":", b"$"})
_JOINS: Final = re.compile(rb"[\w$]|\s*[<(:]")
MAX_SEARCHES: Final = 200
"""Names of one text that are looked for in the whole of it."""

_AROUND_PROTOTYPES: Final = frozenset({"pointer_declarator", "reference_declarator"})
_BLOCKS: Final = frozenset({"compound_statement", "case_statement", "if_statement", "else_clause"})
_OBJECT_PARAMETERS: Final = frozenset({"type_identifier", "qualified_identifier", "template_type"})


class Names:
    """What a text declares: types in it anywhere, variables by function."""

    def __init__(self, text: bytes, found: Captures) -> None:
        self.text = text
        self._functions = _outermost(found.get("function", ()))
        self._starts = [function.start_byte for function in self._functions]
        self._locals: dict[int, frozenset[bytes]] = {}
        self._on_device: dict[int, bool] = {}
        self._concerned: dict[int, bool] = {}
        self._is_type: dict[bytes, bool] = {}
        self._used: dict[bytes, bool] = {}
        self._plain: dict[bytes, bool] = dict.fromkeys(_CASTS, False)

    @cached_property
    def code(self) -> bytes:
        """The text with blanks for comments and literals."""
        quiet = marks(self.text)
        out = bytearray(self.text)
        for start, end in zip(quiet.quiet_starts, quiet.quiet_ends, strict=True):
            out[start:end] = b" " * (end - start)
        return bytes(out)

    @cached_property
    def types(self) -> frozenset[bytes]:
        return frozenset(name for pattern in _DECLARED_TYPES for name in pattern.findall(self.code))

    def function_at(self, position: int) -> Node | None:
        """The outermost function around a place."""
        index = bisect_right(self._starts, position) - 1
        if index < 0 or position >= self._functions[index].end_byte:
            return None
        return self._functions[index]

    def locals_at(self, position: int) -> frozenset[bytes]:
        """The variables and template parameters of the outermost function around a place."""
        outer = self.function_at(position)
        if outer is None:
            return frozenset()
        if outer.start_byte not in self._locals:
            above = outer.parent
            whole = above if above is not None and above.type == "template_declaration" else outer
            self._locals[outer.start_byte] = declared_names(whole)
        return self._locals[outer.start_byte]

    def on_device(self, position: int) -> bool:
        """Whether the outermost function around a place can be part of a kernel."""
        outer = self.function_at(position)
        if outer is None:
            return False
        if outer.start_byte not in self._on_device:
            self._on_device[outer.start_byte] = is_on_device(outer, self.text)
        return self._on_device[outer.start_byte]

    def concerns_device(self, error: Node, near: int) -> bool:
        """Whether an error may keep something of a kernel from being read."""
        outer = self.function_at(error.start_byte)
        if outer is None:
            start, end = error.start_byte - near, error.end_byte + near
            return DEVICE.search(self.text, max(start, 0), end) is not None
        body = outer.child_by_field_name("body")
        if body is None or error.start_byte < body.start_byte:
            # A qualifier that is not known may be one of the device.
            return True
        # The text of a function may have swallowed others.
        if outer.start_byte not in self._concerned:
            start = max(outer.start_byte - AHEAD, 0)
            found = DEVICE.search(self.text, start, outer.end_byte)
            self._concerned[outer.start_byte] = found is not None
        return self._concerned[outer.start_byte]

    def may_be_variable(self, name: bytes) -> bool:
        """Whether a name is ever written without template or call brackets behind it."""
        if name not in self._plain:
            if len(self._plain) > MAX_SEARCHES:
                return True
            self._plain[name] = self._stands_alone(name)
        return self._plain[name]

    def _stands_alone(self, name: bytes) -> bool:
        at = self.text.find(name)
        while at >= 0:
            after = at + len(name)
            before = self.text[at - 1 : at]
            if not (before.isalnum() or before in _JOINED) and not _JOINS.match(self.text, after):
                return True
            at = self.text.find(name, after)
        return False

    def is_type(self, name: bytes) -> bool:
        """Whether a name that is no variable is certainly a type."""
        if name not in self._is_type:
            plain = name.split(b"<")[0].rsplit(b"::", 1)[-1]
            self._is_type[name] = (
                named(plain.decode("utf-8", "replace")) is not None
                or _LIBRARY_TYPE.fullmatch(name.split(b"<")[0]) is not None
                or plain in self.types
                or self._is_used_as_type(name)
            )
        return self._is_type[name]

    def _is_used_as_type(self, name: bytes) -> bool:
        """Whether a name stands somewhere where only a type can: `const T`, `T x`, `(T*)`."""
        if name not in self._used:
            if len(self._used) > MAX_SEARCHES:
                return False
            forms = (rb"const\s+%b\b(?!\s*\()", rb"\b%b\s+const\b", rb"\(\s*%b\s*\*+\s*\)",
                     rb"\b%b\s+[A-Za-z_]\w*\s*[,;=)(\[]", rb"\w<%b>")  # fmt: skip
            pattern = b"|".join(form % re.escape(name) for form in forms)
            self._used[name] = re.search(pattern, self.code) is not None
        return self._used[name]


def _outermost(functions: Sequence[Node]) -> list[Node]:
    out: list[Node] = []
    for function in sorted(functions, key=lambda node: (node.start_byte, -node.end_byte)):
        if not out or function.start_byte >= out[-1].end_byte:
            out.append(function)
    return out


Change = tuple[Edit, ...]
"""Edits that belong together."""


def repairs(found: Captures, names: Names) -> list[Edit]:
    """The edits that make a clean tree right, in order."""
    changes = [
        *_casts(found, names),
        *_operations(found, names),
        *_prototypes(found, names),
        *_comparisons(found, names),
    ]
    return apart(changes)


def apart(changes: Sequence[Change]) -> list[Edit]:
    """The edits of all changes that do not meet an earlier one, in order."""
    out: list[Edit] = []
    end = -1
    for change in sorted(set(changes)):
        if change[0].start > end:
            out += change
            end = change[-1].end
    return out


def _casts(found: Captures, names: Names) -> list[Change]:
    changes: list[Change] = []
    for node in found.get("cast", ()):
        name = node.text or b""
        if not names.on_device(node.start_byte):
            continue
        if name not in names.locals_at(node.start_byte) and names.is_type(name):
            changes.append((Edit(node.start_byte, node.start_byte, b"const "),))
    return changes


def _operations(found: Captures, names: Names) -> list[Change]:
    """`(a) - b` with a variable, which reads as a cast of `-b` and so binds too tightly."""
    changes: list[Change] = []
    for node in found.get("operation", ()):
        kind = node.child_by_field_name("type")
        if kind is None or kind.named_child_count > 1 or not names.on_device(node.start_byte):
            continue
        name = kind.text or b""
        end = names.text.find(b")", kind.end_byte) + 1
        if name in names.locals_at(node.start_byte) or not names.is_type(name):
            changes.append(parenthesized(node.start_byte, end))
    return changes


def _prototypes(found: Captures, names: Names) -> list[Change]:
    changes: list[Change] = []
    for node in found.get("prototype", ()):
        if not names.on_device(node.start_byte):
            # Of host code only launches are read, and those from its words.
            continue
        parameters = node.child_by_field_name("parameters")
        above = node.parent
        while above is not None and above.type in _AROUND_PROTOTYPES:
            above = above.parent
        if parameters is None or above is None or not in_block(above):
            continue
        kind = above.child_by_field_name("type")
        if kind is None or (kind.text == b"void" and node.parent == above):
            continue
        given = [child for child in parameters.named_children if child.type != "comment"]
        if given and all(_is_value(child, node, names) for child in given):
            changes.append(parenthesized(given[0].start_byte, given[0].end_byte))
    return changes


def in_block(declaration: Node) -> bool:
    """Whether a declaration is a statement: no member, nothing at file scope."""
    inside = declaration.parent
    return inside is not None and inside.type in _BLOCKS


def parenthesized(start: int, end: int) -> Change:
    """Parentheses around a range."""
    return (Edit(start, start, b"("), Edit(end, end, b")"))


def _is_value(parameter: Node, where: Node, names: Names) -> bool:
    """Whether what reads as a parameter is the expression that initialises an object."""
    kind = parameter.child_by_field_name("type")
    if parameter.type != "parameter_declaration" or kind is None:
        return False
    if kind.type not in _OBJECT_PARAMETERS or kind.start_byte != parameter.start_byte:
        return False
    name = kind.text or b""
    if name in names.locals_at(where.start_byte):
        return True
    declarator = parameter.child_by_field_name("declarator")
    if declarator is not None and declarator.type == "identifier":
        return False
    return not names.is_type(name)


def _comparisons(found: Captures, names: Names) -> list[Change]:
    changes: list[Change] = []
    for node in found.get("template", ()):
        name = node.child_by_field_name("name")
        if name is None or name.text is None or not names.may_be_variable(name.text):
            continue
        if name.text in names.locals_at(node.start_byte):
            changes.append(parenthesized(name.start_byte, name.end_byte))
    return changes
