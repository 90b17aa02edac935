"""Reading the syntax tree of a Python text, which is never compiled or imported.

CPython's parser itself bounds nesting (200 brackets, 100 indents, its own stack); what it does
not bound is memory, at about 1.7 kB a node, so that a text with an absurd number of words is
refused first.
"""

from __future__ import annotations

import ast
import re
import warnings

from migrate.source import MAX_NAME, Source, SourceError, Span

MAX_TOKENS = 400_000
"""Words and punctuation marks in a file; the largest in 400 public NKI files has 150,000."""

MAX_DEPTH = 120
"""Nesting of syntax nodes; the deepest in 600 public NKI files is 25."""


def syntax_tree(source: Source) -> ast.Module:
    """Parse a text.

    Raises `SourceError`, with the place, for text that is not Python or is nested or long
    beyond what a person writes.
    """
    for count, _ in enumerate(re.finditer(r"\w++|[^\w\s]", source.text)):
        if count >= MAX_TOKENS:
            raise SourceError(f"has more than {MAX_TOKENS:,} words", file=source.name)
    tree = _tree(source)
    _check_depth(tree, source)
    return tree


def span_of(source: Source, node: ast.expr | ast.stmt | ast.arg) -> Span:
    """The span of a syntax node."""
    return source.span_of_lines(
        node.lineno,
        node.col_offset,
        node.end_lineno or node.lineno,
        node.end_col_offset or node.col_offset,
    )


def _tree(source: Source) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source.text)
    except SyntaxError as error:
        line = min(max(error.lineno or 1, 1), source.line_count)
        column = max((error.offset or 1) - 1, 0)
        text = source.line(line)
        column = min(column, len(text))
        where = Span(
            file=source.name,
            start_line=line,
            start_column=column + 1,
            end_line=line,
            end_column=column + 2 if column < len(text) else column + 1,
        )
        # CPython's own advice on long literals is for who runs the program.
        long_literal = error.msg.startswith("Exceeds the limit")
        reason = "an integer has too many digits" if long_literal else error.msg
        raise SourceError(f"is not Python: {reason}", file=source.name, where=where) from None
    except (RecursionError, MemoryError):
        raise SourceError("is nested too deeply to be read", file=source.name) from None
    except (ValueError, OverflowError) as error:
        raise SourceError(f"is not Python: {error}", file=source.name) from None


def _check_depth(tree: ast.Module, source: Source) -> None:
    """Raises `SourceError` for what is nested too deeply, and for a name that nobody writes."""
    pending: list[tuple[ast.AST, int]] = [(tree, 0)]
    while pending:
        node, depth = pending.pop()
        if depth > MAX_DEPTH:
            where = span_of(source, node) if isinstance(node, ast.expr | ast.stmt) else None
            raise SourceError(
                f"is nested more than {MAX_DEPTH} levels deep", file=source.name, where=where
            )
        for name in (getattr(node, field, None) for field in ("id", "name", "attr", "arg")):
            if isinstance(name, str) and len(name) > MAX_NAME:
                where = span_of(source, node) if isinstance(node, ast.expr | ast.stmt) else None
                raise SourceError(
                    f"a name has more than {MAX_NAME:,} characters", file=source.name, where=where
                )
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr_context | ast.operator | ast.cmpop | ast.unaryop):
                pending.append((child, depth + 1))
