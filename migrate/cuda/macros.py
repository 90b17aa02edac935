"""Macro definitions and their expansion (C++ [cpp.replace], with hide sets)."""

from __future__ import annotations

from collections import deque
from collections.abc import ItemsView
from dataclasses import dataclass, field

from migrate.cuda.tokens import Expansion, Token
from migrate.source import MAX_NAME

MAX_WORK = 400_000
"""Tokens that the macros of one file may go through."""

MAX_NESTING = 64
"""Macro uses in the arguments of others."""


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


@dataclass(frozen=True, slots=True)
class Macro:
    """A definition; `parameters` is `None` for an object-like one."""

    name: bytes
    parameters: tuple[bytes, ...] | None
    variadic: bool
    body: tuple[Token, ...]


@dataclass(slots=True)
class Table:
    """The macros defined at one point of the text."""

    _macros: dict[bytes, Macro] = field(default_factory=dict)

    def get(self, name: bytes) -> Macro | None:
        return self._macros.get(name)

    def define(self, macro: Macro) -> None:
        self._macros[macro.name] = macro

    def remove(self, name: bytes) -> None:
        self._macros.pop(name, None)

    def items(self) -> ItemsView[bytes, Macro]:
        return self._macros.items()


def parse_define(line: list[Token]) -> Macro:
    """The macro that the tokens after `#define` define."""
    name = line[0]
    if len(line) < 2 or line[1].text != b"(" or line[1].spaced:
        return Macro(name.text, None, False, tuple(line[1:]))
    parameters: list[bytes] = []
    variadic = False
    position = 2
    while position < len(line) and line[position].text != b")":
        token = line[position]
        if token.text == b"...":
            variadic = True
            # `args...` names the rest; plain `...` is __VA_ARGS__.
            if line[position - 1].kind != "name":
                parameters.append(b"__VA_ARGS__")
        elif token.kind == "name":
            parameters.append(token.text)
        position += 1
    return Macro(name.text, tuple(parameters), variadic, tuple(line[position + 1 :]))


def expand(use: list[Token], table: Table, allowance: Allowance, nesting: int = 0) -> list[Token]:
    """Expand tokens fully.  Raises `TooLarge`."""
    if nesting > MAX_NESTING:
        raise TooLarge(f"macro arguments nest deeper than {MAX_NESTING} levels")
    out: list[Token] = []
    work: deque[Token] = deque(use)
    while work:
        token = work.popleft()
        allowance.use(1)
        macro = table.get(token.text) if token.kind == "name" else None
        if macro is None or token.text in token.hidden:
            out.append(token)
            continue
        if macro.parameters is None:
            expansion = _use_of(macro, token, token)
            replaced = _substitute(macro, token, {}, {}, expansion)
            allowance.use(len(replaced) * (1 + len(token.hidden) // 16))
            work.extendleft(reversed(_hide(replaced, token.hidden | {macro.name})))
            continue
        taken = _arguments(work, allowance)
        if taken is None:
            out.append(token)
            continue
        arguments, closing = taken
        expansion = _use_of(macro, token, closing)
        raw = _bind(macro, arguments)
        full = {name: expand(value, table, allowance, nesting + 1) for name, value in raw.items()}
        replaced = _substitute(macro, token, raw, full, expansion)
        made = sum(len(piece.text) for piece in replaced if piece.kind == "string")
        allowance.use(len(replaced) * (1 + len(token.hidden) // 16) + made // 16)
        hidden = (token.hidden & closing.hidden) | {macro.name}
        work.extendleft(reversed(_hide(replaced, hidden)))
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


def _hide(replaced: list[Token], names: frozenset[bytes]) -> list[Token]:
    return [token._replace(hidden=token.hidden | names) for token in replaced]


def _arguments(work: deque[Token], allowance: Allowance) -> tuple[list[list[Token]], Token] | None:
    """Take the parenthesised arguments off the front of `work`."""
    if not work or work[0].text != b"(":
        return None
    level = 0
    arguments: list[list[Token]] = [[]]
    for count, token in enumerate(work, start=1):
        if token.text == b"(":
            level += 1
            if level == 1:
                continue
        elif token.text == b")":
            level -= 1
            if level == 0:
                for _ in range(count):
                    work.popleft()
                return arguments, token
        elif token.text == b"," and level == 1:
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
) -> list[Token]:
    """The body with arguments in place of parameters; `#` and `##` done."""
    out: list[Token] = []
    body = macro.body
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
            if right:
                glued = out[-1].text + right[0].text
                if len(glued) > MAX_NAME:
                    raise TooLarge(f"a macro pastes a name of more than {MAX_NAME:,} characters")
                out[-1] = out[-1]._replace(text=glued, kind=_kind(glued, out[-1].kind))
                out += right[1:]
            position += 2
            continue
        pasted = following is not None and following.text == b"##"
        out += _pieces(token, raw if pasted else full, expansion, use)
        position += 1
    if out:
        out[0] = out[0]._replace(spaced=use.spaced)
    return out


def _pieces(
    token: Token, bound: dict[bytes, list[Token]], expansion: Expansion, use: Token
) -> list[Token]:
    if token.text not in bound:
        return [_spelled(token, expansion, use)]
    pieces = [_came_through(piece, expansion) for piece in bound[token.text]]
    if pieces:
        pieces[0] = pieces[0]._replace(spaced=token.spaced)
    return pieces


def _came_through(piece: Token, expansion: Expansion) -> Token:
    return piece if piece.inside is not None else piece._replace(inside=expansion)


def _spelled(token: Token, expansion: Expansion, use: Token) -> Token:
    if token.source is None:
        # A definition that is in no file: everything it makes stands where it is used.
        return token._replace(
            source=use.source,
            start=expansion.start,
            end=expansion.end,
            expansion=use.expansion,
            inside=expansion,
        )
    return token._replace(expansion=expansion, inside=expansion)


def _kind(text: bytes, fallback: str) -> str:
    if text[:1].isdigit():
        return "number"
    return "name" if text.replace(b"_", b"a").isalnum() else fallback
