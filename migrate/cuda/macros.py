"""Macro definitions and their expansion (C++ [cpp.replace], with hide sets)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import KeysView, Mapping, Sequence
from dataclasses import dataclass, field

from migrate.cuda.statement_expressions import Reduced, reduce
from migrate.cuda.tokens import Expansion, Token, made, tokens
from migrate.source import MAX_NAME, Source

MAX_WORK = 400_000
"""Tokens that the macros of one file may go through."""

MAX_NESTING = 64
"""Macro uses in the arguments of others."""

_PARAMETERS = re.compile(rb"[A-Za-z_$][\w$]*|\.\.\.")


class TooLarge(Exception):
    """Macros that expand to more than can be read; the message says what."""


@dataclass(slots=True)
class Allowance:
    """What is left of a file's `MAX_WORK`: expansion can be exponential."""

    left: int = MAX_WORK

    def use(self, count: int) -> None:
        """Raises `TooLarge`."""
        self.left -= count
        if self.left < 0:
            raise TooLarge(f"the macros expand to more than {MAX_WORK:,} words")


@dataclass(slots=True)
class Macro:
    """A definition; `parameters` is `None` for an object-like one.

    The body is the text from `start` to `end`, split into tokens when it is first used:
    most macros of a header never are.
    """

    name: bytes
    parameters: tuple[bytes, ...] | None
    variadic: bool
    source: Source | None
    text: bytes
    start: int
    end: int
    reduced: Reduced | None = None
    pastes: bool = False
    _body: tuple[Token, ...] | None = None

    @property
    def body(self) -> tuple[Token, ...]:
        """Raises `SourceError` as `tokens` does."""
        if self._body is None:
            found = tokens(self.source, self.text, self.start, self.end)
            body = tuple(token for token in found if token.kind != "newline")
            if self.parameters is not None:
                self.reduced = reduce(body, self.parameters)
            self.pastes = any(token.text in (b"#", b"##") for token in body)
            self._body = body
        return self._body


@dataclass(slots=True)
class Table:
    """The macros defined at one point of the text."""

    macros: dict[bytes, Macro] = field(default_factory=dict)

    def get(self, name: bytes) -> Macro | None:
        return self.macros.get(name)

    def define(self, macro: Macro) -> None:
        self.macros[macro.name] = macro

    def remove(self, name: bytes) -> None:
        self.macros.pop(name, None)

    def names(self) -> KeysView[bytes]:
        return self.macros.keys()


_HEAD = re.compile(rb"(?:[ \t]|\\\r?\n|/\*.*?\*/)*+([A-Za-z_$][\w$]*+)(\()?", re.DOTALL)
_LIST = re.compile(rb"(?:[^()/]|/(?!/)|//[^\n]*)*+\)")


def parse_define(source: Source | None, text: bytes, start: int, end: int) -> Macro | None:
    """The macro that the text after `#define` defines; `None` where it names none."""
    head = _HEAD.match(text, start, end)
    if head is None or len(head[1]) > MAX_NAME:
        return None
    if head[2] is None:
        return Macro(head[1], None, False, source, text, head.end(), end)
    closing = _LIST.match(text, head.end(), end)
    if closing is None:
        return None
    parameters: list[bytes] = []
    variadic = False
    named = False
    for word in _PARAMETERS.findall(_COMMENT.sub(b" ", closing[0])):
        if word == b"...":
            variadic = True
            # `args...` names the rest; plain `...` is __VA_ARGS__.
            if not (named and _NAMED_REST.search(closing[0])):
                parameters.append(b"__VA_ARGS__")
        else:
            parameters.append(word)
            named = True
    return Macro(head[1], tuple(parameters), variadic, source, text, closing.end(), end)


_COMMENT = re.compile(rb"/\*.*?\*/|//[^\n]*", re.DOTALL)
_NAMED_REST = re.compile(rb"[\w$]\s*\.\.\.")


def given(name: str, value: str) -> Macro | None:
    """The macro of a definition that stands in no file, `F(x)` and its text for instance."""
    text = f"{name} {value}".encode()
    return parse_define(None, text, 0, len(text))


def expand(use: list[Token], table: Table, allowance: Allowance, nesting: int = 0) -> list[Token]:
    """Expand tokens fully.  Raises `TooLarge`."""
    if nesting > MAX_NESTING:
        raise TooLarge(f"macro arguments nest deeper than {MAX_NESTING} levels")
    macros = table.macros
    allowance.use(len(use))
    if not any(token.text in macros for token in use):
        return use
    out: list[Token] = []
    work: deque[Token] = deque(use)
    while work:
        token = work.popleft()
        macro = macros.get(token.text)
        if macro is None or token.kind != "name" or token.text in token.hidden:
            out.append(token)
            continue
        if macro.parameters is None:
            expansion = _use_of(macro, token, token)
            replaced = _substitute(macro, token, {}, {}, expansion, allowance)
            hidden = token.hidden | {macro.name}
        else:
            taken = _arguments(work, allowance)
            if taken is None:
                out.append(token)
                continue
            arguments, closing = taken
            expansion = _use_of(macro, token, closing)
            raw = _bind(macro, arguments)
            full = {
                name: expand(value, table, allowance, nesting + 1) for name, value in raw.items()
            }
            replaced = _substitute(macro, token, raw, full, expansion, allowance)
            if macro.pastes:
                size = sum(len(piece.text) for piece in replaced if piece.kind == "string")
                allowance.use(size // 16)
            hidden = (token.hidden & closing.hidden) | {macro.name}
        allowance.use(len(replaced) * (1 + len(token.hidden) // 16))
        if not any(piece.text in macros for piece in replaced):
            out += replaced
            continue
        work.extendleft(reversed(_hide(replaced, hidden, macros)))
    return out


def _use_of(macro: Macro, first: Token, last: Token) -> Expansion:
    same = first.source is last.source and first.end <= last.end
    return Expansion(
        macro.name.decode(),
        first.source,
        first.start,
        last.end if same else first.end,
        first.expansion,
    )


def _hide(
    replaced: list[Token], names: frozenset[bytes], macros: Mapping[bytes, Macro]
) -> list[Token]:
    """Forbid that macros expand themselves; only what is a macro's name can."""
    return [
        made(Token, (*token[:7], token.hidden | names, token.spaced))
        if token.text in macros
        else token
        for token in replaced
    ]


def _arguments(work: deque[Token], allowance: Allowance) -> tuple[list[list[Token]], Token] | None:
    """Take the parenthesised arguments off the front of `work`."""
    if not work or work[0].text != b"(":
        return None
    level = 0
    arguments: list[list[Token]] = [[]]
    for count, token in enumerate(work, start=1):
        text = token.text
        if text == b"(":
            level += 1
            if level == 1:
                continue
        elif text == b")":
            level -= 1
            if level == 0:
                for _ in range(count):
                    work.popleft()
                return arguments, token
        elif text == b"," and level == 1:
            arguments.append([])
            continue
        arguments[-1].append(token)
    allowance.use(len(work) // 8)
    return None


def _bind(macro: Macro, arguments: list[list[Token]]) -> dict[bytes, list[Token]]:
    names = macro.parameters or ()
    bound: dict[bytes, list[Token]] = {}
    for index, name in enumerate(names):
        if macro.variadic and index == len(names) - 1:
            rest: list[Token] = []
            for extra in arguments[index:]:
                if rest and extra:
                    rest.append(extra[0]._replace(kind="punctuation", text=b","))
                rest += extra
            bound[name] = rest
        else:
            bound[name] = arguments[index] if index < len(arguments) else []
    return bound


def _substitute(
    macro: Macro,
    use: Token,
    raw: dict[bytes, list[Token]],
    full: dict[bytes, list[Token]],
    expansion: Expansion,
    allowance: Allowance,
) -> list[Token]:
    """The body with arguments in place of parameters; `#` and `##` done."""
    body = macro.body
    if macro.reduced is not None and macro.reduced.holds(full):
        body = macro.reduced.body
    allowance.use(len(body) // 8)
    if macro.pastes:
        out = _pasted(body, use, raw, full, expansion)
    else:
        out = []
        for token in body:
            if token.text in full and token.kind == "name":
                out += _pieces(token, full, expansion, use)
            else:
                out.append(_spelled(token, expansion, use))
    if out:
        out[0] = made(Token, (*out[0][:8], use.spaced))
    return out


def _pasted(
    body: Sequence[Token],
    use: Token,
    raw: dict[bytes, list[Token]],
    full: dict[bytes, list[Token]],
    expansion: Expansion,
) -> list[Token]:
    """The same of a body with `#` or `##`."""
    out: list[Token] = []
    position = 0
    while position < len(body):
        token = body[position]
        following = body[position + 1] if position + 1 < len(body) else None
        if token.text == b"#" and following is not None and following.text in raw:
            words = b" ".join(piece.text for piece in raw[following.text])
            quoted = b'"' + words.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
            out.append(_spelled(token, expansion, use)._replace(kind="string", text=quoted))
            position += 2
            continue
        if token.text == b"##" and out and following is not None:
            right = _pieces(following, raw, expansion, use)
            if token.spaced and out[-1].text == b"," and following.text == b"__VA_ARGS__":
                # GNU: `, ## __VA_ARGS__` drops the comma where there are no arguments.
                out = out if right else out[:-1]
                out += right
            elif right:
                glued = out[-1].text + right[0].text
                if len(glued) > MAX_NAME:
                    raise TooLarge(f"a macro pastes a name of more than {MAX_NAME:,} characters")
                out[-1] = out[-1]._replace(text=glued, kind=_kind(glued, out[-1].kind))
                out += right[1:]
            elif out[-1].text == b"," and following.text in raw:
                out.pop()
            position += 2
            continue
        if token.kind == "name" and token.text in raw:
            pasted = following is not None and following.text == b"##"
            out += _pieces(token, raw if pasted else full, expansion, use)
        else:
            out.append(_spelled(token, expansion, use))
        position += 1
    return out


def _pieces(
    token: Token, bound: dict[bytes, list[Token]], expansion: Expansion, use: Token
) -> list[Token]:
    if token.text not in bound:
        return [_spelled(token, expansion, use)]
    pieces = [
        piece
        if piece.inside is not None
        else made(Token, (*piece[:6], expansion, piece.hidden, piece.spaced))
        for piece in bound[token.text]
    ]
    if pieces:
        pieces[0] = made(Token, (*pieces[0][:8], token.spaced))
    return pieces


def _spelled(token: Token, expansion: Expansion, use: Token) -> Token:
    kind, text, source, start, end, _, _, hidden, spaced = token
    if source is not None:
        return made(Token, (kind, text, source, start, end, expansion, expansion, hidden, spaced))
    # A definition that is in no file: everything it makes stands where it is used.
    place = (use.source, expansion.start, expansion.end, use.expansion)
    return made(Token, (kind, text, *place, expansion, hidden, spaced))


def _kind(text: bytes, fallback: str) -> str:
    if text[:1].isdigit():
        return "number"
    return "name" if text.replace(b"_", b"a").isalnum() else fallback
