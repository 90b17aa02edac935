"""CUDA source in Python strings: `load_inline`, `RawKernel`, `SourceModule`, plain text.

A text is a string that has a `__global__` function in it, wherever it stands.  Strings that
stand next to each other, `+` and names that are assigned once are put together as Python
does; what is filled in when the program runs is refused with the reason.  An `Embedded` is
the text as a source whose spans point into the Python file, escapes counted.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from migrate.cuda.literals import Piece, pieces
from migrate.python_text import span_of, syntax_tree
from migrate.source import MAX_BYTES, Frame, Source, Span

_TEXTS = (ast.Constant, ast.JoinedStr, ast.BinOp, ast.Name)

MAX_TEXTS = 200
"""In one file."""

MAX_DEPTH = 200
"""Strings and names within each other: a sum of so many lines is one text."""

MAX_WORK = 200_000
"""Strings that the texts of one file are put together from, each as often as it is used."""

_MARK = re.compile(r"\b__global__\b")
_ENDS = re.compile(r"[;{}]")
_CALLED = re.compile(r"([%$\w]+(?:\(\w+\)s\w*)?)\s*\(")
"""A name in front of brackets; names may be filled in: `%(name)s`, `$name`."""

MAX_HEAD = 4000
"""Characters between `__global__` and the body of a kernel."""

_UNCHANGED = frozenset({"dedent", "cleandoc", "strip", "lstrip", "rstrip", "str"})
"""Calls after which the text is the same but for blanks at its ends and its margin."""

_FILLED = frozenset({"format", "replace", "substitute", "safe_substitute", "format_map", "join"})
_COMPILERS = frozenset(
    {"RawKernel", "RawModule", "SourceModule", "load_inline", "compile_inline", "Program"}
)
_LINE_END = re.compile(rb"\r\n?|\n")
_DEFINE = re.compile(r"-D\s*(\w+)(?:=(.*))?")


@dataclass(frozen=True, slots=True)
class Embedded(Source):
    """A CUDA text whose places are those of the Python file that holds it.

    Each run of the text begins at a byte of `_out` and came from `_start` to `_end` of the
    Python file; runs of the same length are verbatim, others are an escape.  `defines` are
    the macros that the call which compiles it sets.
    """

    outer: Source = field(kw_only=True)
    defines: Mapping[str, str] = field(kw_only=True, default_factory=dict)
    _out: tuple[int, ...] = field(kw_only=True, repr=False)
    _start: tuple[int, ...] = field(kw_only=True, repr=False)
    _end: tuple[int, ...] = field(kw_only=True, repr=False)

    def span(self, start_byte: int, end_byte: int, via: tuple[Frame, ...] = ()) -> Span:
        """The place in the Python file of a byte range of the CUDA text."""
        first = self._run(start_byte)
        start = self._place(first, start_byte)
        if end_byte <= start_byte:
            return self.outer.span(start, start, via)
        last = self._run(end_byte - 1)
        end = self._place(last, end_byte)
        if end < start:
            # Put together from strings in another order: the part in the first of them.
            end = self._end[first]
        return self.outer.span(start, end, via)

    def plain_line(self, byte: int) -> tuple[int, int, int] | None:
        """`None`: the bytes of this text are not those of the Python file."""
        del byte
        return None

    def _run(self, byte: int) -> int:
        return max(bisect_right(self._out, byte) - 1, 0)

    def _place(self, run: int, byte: int) -> int:
        following = run + 1
        stop = self._out[following] if following < len(self._out) else len(self.encoded)
        start, end = self._start[run], self._end[run]
        if stop - self._out[run] == end - start:
            return min(start + byte - self._out[run], end)
        return start if byte <= self._out[run] else end


@dataclass(frozen=True, slots=True)
class Refused:
    """A string with kernels in it that is only known when the program runs."""

    reason: str
    span: Span
    kernels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Texts:
    """The CUDA of a Python file, in the order of the file."""

    texts: tuple[Embedded, ...]
    refused: tuple[Refused, ...]


def has_cuda(source: Source) -> bool:
    """Whether a Python file may have CUDA in it."""
    return "__global__" in source.text


def kernel_names(text: str) -> tuple[str, ...]:
    """The kernels that a text seems to define: a `__global__` with brackets and a body."""
    found: dict[str, None] = {}
    for mark in _MARK.finditer(text):
        end = _ENDS.search(text, mark.end(), mark.end() + MAX_HEAD)
        if end is None or end.group() != "{":
            continue
        for called in _CALLED.finditer(text, mark.end(), end.start()):
            if not called[1].startswith("__"):  # __launch_bounds__
                found.setdefault(called[1])
                break
    return tuple(found)


def embedded(source: Source) -> Texts:
    """The CUDA texts of a Python file.  Raises `SourceError` for what is not Python."""
    if not has_cuda(source):
        return Texts((), ())
    tree = syntax_tree(source)
    finder = _Finder(source, tree)
    finder.look(tree)
    texts: list[Embedded] = []
    for node, found in finder.found:
        if id(node) not in finder.parts and len(texts) < MAX_TEXTS:
            texts.append(_source(source, found, finder.defines.get(id(node), {})))
    whole = {text.text for text in texts}
    kept = [text for text in texts if not _contained(text, whole)]
    return Texts(tuple(kept), tuple(finder.refused))


def _contained(text: Embedded, whole: Iterable[str]) -> bool:
    """Whether a text is also part of a longer one that was put together from it."""
    return any(len(other) > len(text.text) and text.text in other for other in whole)


class Unfollowed(Exception):
    """A string whose text is not known from the file; the message says why."""


@dataclass(slots=True)
class _Finder:
    source: Source
    tree: ast.Module
    assigned: dict[str, list[ast.expr]] = field(default_factory=dict)
    filled: dict[str, str] = field(default_factory=dict)
    found: list[tuple[ast.expr, list[Piece]]] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    parts: set[int] = field(default_factory=set)
    defines: dict[int, dict[str, str]] = field(default_factory=dict)
    work: int = MAX_WORK
    room: int = 2 * MAX_BYTES
    lines: list[int] = field(default_factory=list)
    """The byte at which each line begins."""

    def __post_init__(self) -> None:
        ends = _LINE_END.finditer(self.source.encoded)
        self.lines = [0, *(found.end() for found in ends)]
        for node in ast.walk(self.tree):
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        if isinstance(target, ast.Name):
                            self.assigned.setdefault(target.id, []).append(value)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self.assigned.setdefault(name, []).append(value)
                case ast.AugAssign(target=ast.Name(id=name), value=value):
                    self.assigned.setdefault(name, []).append(value)
                    self.filled[name] = "`+=`"
        for node in ast.walk(self.tree):
            match node:
                case ast.Call(func=func) if _name(func) in _COMPILERS:
                    self._compiled(node)
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)):
                    if attr in _FILLED:
                        self.filled[name] = f".{attr}()"
                case ast.BinOp(left=ast.Name(id=name), op=ast.Mod()):
                    self.filled[name] = "`%`"
                case ast.Call(func=func, args=[ast.Name(id=name), *_]) if _name(func) == "Template":
                    self.filled[name] = "Template()"

    def _compiled(self, node: ast.Call) -> None:
        """The macros that `options=("-DN=4",)` of a compiling call sets."""
        made: dict[str, str] = {}
        for keyword in node.keywords:
            if keyword.arg in ("options", "extra_cuda_cflags"):
                for value in ast.walk(keyword.value):
                    match value:
                        case ast.Constant(value=str(text)) if found := _DEFINE.fullmatch(text):
                            made[found[1]] = found[2] if found[2] is not None else "1"
        if not made:
            return
        for argument in (*node.args, *(k.value for k in node.keywords)):
            target: ast.expr = argument
            if isinstance(argument, ast.Name) and len(self.assigned.get(argument.id, ())) == 1:
                target = self.assigned[argument.id][0]
            self.defines[id(target)] = made

    def look(self, tree: ast.Module) -> None:
        pending: list[tuple[ast.AST, str]] = [(tree, "")]
        while pending:
            node, name = pending.pop()
            if isinstance(node, ast.expr) and self._string(node, name):
                continue
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
            children = list(ast.iter_child_nodes(node))
            pending += [(child, name) for child in reversed(children)]

    def _string(self, node: ast.expr, name: str) -> bool:
        """Keep an expression that is a CUDA text, or say why it cannot be one."""
        if not isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp | ast.Call | ast.List):
            return False
        if isinstance(node, ast.Constant):
            if not isinstance(node.value, str) or "__global__" not in node.value:
                return False
        if isinstance(node, ast.Call) and not self._has_literal(node):
            return False
        if isinstance(node, ast.List) and not all(isinstance(e, _TEXTS) for e in node.elts):
            return False
        if isinstance(node, ast.Call) and _name(node.func) not in _UNCHANGED | _FILLED:
            return False
        try:
            found = self._pieces(node, 0)
            if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp) and name in self.filled:
                self._check_filled(node, name)
            self.room -= sum(len(piece.text) for piece in found or ())
            if self.room < 0:
                raise Unfollowed("is more text than is read")
        except Unfollowed as reason:
            kernels = self._named(node)
            if not kernels:
                return False
            self.refused.append(Refused(str(reason), span_of(self.source, node), kernels))
            return True
        if found is None or not kernel_names("".join(piece.text for piece in found)):
            return False
        self.found.append((node, found))
        return True

    def _check_filled(self, node: ast.expr, name: str) -> None:
        value = self.assigned.get(name, ())
        if any(node is given for given in value):
            raise Unfollowed(f"{name} is a pattern that the program fills with {self.filled[name]}")

    def _has_literal(self, node: ast.expr) -> bool:
        return any(
            isinstance(child, ast.Constant)
            and isinstance(child.value, str)
            and "__global__" in child.value
            for child in ast.walk(node)
        )

    def _named(self, node: ast.expr) -> tuple[str, ...]:
        """The kernels that the strings in an expression seem to define."""
        text = "".join(
            child.value if isinstance(child.value, str) else ""
            for child in ast.walk(node)
            if isinstance(child, ast.Constant)
        )
        return kernel_names(text)

    def _pieces(self, node: ast.expr, depth: int) -> list[Piece] | None:
        """The text of an expression in pieces; `None` for what is no string."""
        self.work -= 1
        if depth > MAX_DEPTH or self.work < 0:
            raise Unfollowed("is put together from too many strings")
        match node:
            case ast.Constant(value=str()) | ast.JoinedStr():
                return self._literal(node)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first = self._pieces(left, depth + 1)
                second = self._pieces(right, depth + 1)
                return None if first is None or second is None else first + second
            case ast.BinOp(left=left, op=ast.Mod()) if self._pieces(left, depth + 1) is not None:
                raise Unfollowed("values are put into the text with `%`")
            case ast.List(elts=elements) if elements:
                return self._lines(elements, depth)
            case ast.Name(id=name):
                return self._variable(name, depth)
            case ast.Call(func=func, args=args):
                return self._call(func, args, depth)
            case _:
                return None

    def _lines(self, elements: list[ast.expr], depth: int) -> list[Piece] | None:
        """Texts in a list are compiled as one file, each on lines of its own."""
        found: list[Piece] = []
        for element in elements:
            part = self._pieces(element, depth + 1)
            if part is None:
                return None
            end = part[-1].end if part else 0
            found += [*part, Piece("\n", end, end)]
        return found

    def _variable(self, name: str, depth: int) -> list[Piece] | None:
        values = self.assigned.get(name, [])
        if not values:
            return None
        if len(values) > 1 or name in self.filled:
            if any(self._has_literal(value) for value in values):
                raise Unfollowed(f"{name} is assigned more than once")
            return None
        found = self._pieces(values[0], depth + 1)
        if found is not None:
            self.parts.add(id(values[0]))
        return found

    def _call(self, func: ast.expr, args: list[ast.expr], depth: int) -> list[Piece] | None:
        name = _name(func)
        inner = func.value if isinstance(func, ast.Attribute) else None
        if name in _UNCHANGED:
            text = self._pieces(args[0], depth + 1) if args else None
            if text is None and inner is not None:
                text = self._pieces(inner, depth + 1)
            return text
        if name in _FILLED and inner is not None and self._pieces(inner, depth + 1) is not None:
            raise Unfollowed(f"the text is made by .{name}() when the program runs")
        return None

    def _literal(self, node: ast.Constant | ast.JoinedStr) -> list[Piece]:
        span = span_of(self.source, node)
        start = self.lines[span.start_line - 1] + node.col_offset
        end = self.lines[span.end_line - 1] + (node.end_col_offset or 0)
        if isinstance(node, ast.JoinedStr):
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    raise Unfollowed("is an f-string with values in it")
        found = pieces(self.source.encoded[start:end].decode("utf-8", "replace"), start)
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        value = "".join(
            part.value
            for part in parts
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        )
        if found is None or "".join(piece.text for piece in found) != value:
            raise Unfollowed("has escapes that are not followed")
        return found


def _name(func: ast.expr) -> str:
    match func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _source(outer: Source, found: list[Piece], defines: Mapping[str, str]) -> Embedded:
    text = "".join(piece.text for piece in found)
    plain = Source.of(text, outer.name)
    given = {entry.name: getattr(plain, entry.name) for entry in fields(Source)}
    out: list[int] = []
    position = 0
    for piece in found:
        out.append(position)
        position += len(piece.text.encode("utf-8", "surrogatepass"))
    return Embedded(
        **given,
        outer=outer,
        defines=defines,
        _out=tuple(out),
        _start=tuple(piece.start for piece in found),
        _end=tuple(piece.end for piece in found),
    )
