"""GNU statement expressions in macros, read as plain expressions where that is the same.

    #define MAX(a, b) ({ __typeof__(a) x = (a); __typeof__(b) y = (b); x > y ? x : y; })

names each argument once so that it is evaluated once.  Where the arguments have no effects,
the last expression with the arguments in place of the names is the same value of the same
type, and an expression that the rest of the tool understands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from migrate.cuda.tokens import Token

_TYPES = frozenset({b"__typeof__", b"typeof", b"__typeof", b"__auto_type", b"auto", b"decltype"})
_CHANGING = frozenset({b"=", b"++", b"--"})

# Functions of the language's library that change nothing (CUDA Math API, cuda_runtime.h).
_PURE = frozenset(
    b"min max abs fabs fabsf fmin fminf fmax fmaxf sqrt sqrtf floor floorf ceil ceilf exp expf"
    b" log logf pow powf __ldg sizeof float double int unsigned".split()
)


class Reduced(NamedTuple):
    """A macro's body without its statements, for arguments without effects."""

    body: tuple[Token, ...]
    bound_once: tuple[bytes, ...]

    def holds(self, arguments: Mapping[bytes, Sequence[Token]]) -> bool:
        """Whether these (expanded) arguments may be evaluated more than once or not at all."""
        return all(_pure(arguments.get(name, ())) for name in self.bound_once)


def reduce(body: Sequence[Token], parameters: Sequence[bytes]) -> Reduced | None:
    """The expression that a macro's statement expression is, if it is one of this form."""
    texts = [token.text for token in body]
    if texts[:2] != [b"(", b"{"] or texts[-2:] != [b"}", b")"]:
        return None
    statements = _statements(body[2:-2])
    if statements is None or len(statements) < 2:
        return None
    bound: dict[bytes, list[Token]] = {}
    for statement in statements[:-1]:
        named = _declaration(statement)
        if named is None or named[0] in bound:
            return None
        name, value = named
        bound[name] = _wrapped(_put(value, bound))
    final = statements[-1]
    if any(token.text in _CHANGING for token in final if token.text not in bound):
        return None
    if any(_assigns(final, position) for position in range(len(final))):
        return None
    return Reduced(tuple(_wrapped(_put(final, bound))), tuple(parameters))


def _statements(body: Sequence[Token]) -> list[list[Token]] | None:
    out: list[list[Token]] = [[]]
    level = 0
    for token in body:
        if token.text in (b"{", b"}", b"#", b"##"):
            return None
        level += (token.text == b"(") - (token.text == b")")
        if token.text == b";" and level == 0:
            out.append([])
        else:
            out[-1].append(token)
    return [statement for statement in out if statement]


def _declaration(statement: list[Token]) -> tuple[bytes, list[Token]] | None:
    """The name and value of `__typeof__(x) name = value`."""
    position = 1 if statement[0].text == b"const" else 0
    if position >= len(statement) or statement[position].text not in _TYPES:
        return None
    position += 1
    if position < len(statement) and statement[position].text == b"(":
        level = 0
        while position < len(statement):
            text = statement[position].text
            level += (text == b"(") - (text == b")")
            position += 1
            if level == 0:
                break
    rest = statement[position:]
    if len(rest) < 3 or rest[0].kind != "name" or rest[1].text != b"=" or rest[2].text == b"=":
        return None
    return rest[0].text, rest[2:]


def _put(piece: list[Token], bound: Mapping[bytes, list[Token]]) -> list[Token]:
    out: list[Token] = []
    for token in piece:
        out += bound.get(token.text, [token]) if token.kind == "name" else [token]
    return out


def _wrapped(piece: list[Token]) -> list[Token]:
    first, last = piece[0], piece[-1]
    opening = first._replace(kind="punctuation", text=b"(", end=first.start)
    return [opening, *piece, last._replace(kind="punctuation", text=b")", start=last.end)]


def _assigns(piece: Sequence[Token], position: int) -> bool:
    """Whether a `=`, `+=`, `++` or such stands here; operators come in single characters."""
    text = piece[position].text
    if text in (b"+", b"-"):
        following = piece[position + 1] if position + 1 < len(piece) else None
        return following is not None and following.text == text and not following.spaced
    if text != b"=":
        return False
    before = piece[position - 1] if position else None
    after = piece[position + 1] if position + 1 < len(piece) else None
    joined_before = before is not None and not piece[position].spaced
    joined_after = after is not None and after.text == b"=" and not after.spaced
    if joined_after or (joined_before and before is not None and before.text in (b"=", b"!")):
        return False
    shift = position > 1 and before is not None and piece[position - 2].text == before.text
    comparison = joined_before and before is not None and before.text in (b"<", b">")
    return not (comparison and not shift)


def _pure(argument: Sequence[Token]) -> bool:
    for position, token in enumerate(argument):
        if _assigns(argument, position):
            return False
        if token.text == b"(" and position:
            before = argument[position - 1]
            if before.kind == "name" and before.text not in _PURE:
                return False
    return True
