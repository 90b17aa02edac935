"""Whether a call fits a signature: the rules of Python, and what NKI adds to them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from migrate.facts.nki import Brief, Signature, Version

Use: TypeAlias = Literal["statement", "tile", "value"]
"""How the result of a call is used: not at all, as a tile, or in a way that leaves it open."""

IGNORES_KEYWORDS: Final[Version] = "0.2.0"
"""Its first release (SDK 2.27) ignored keywords that it did not know (release notes of 2.28)."""

_OPERATOR: Final = re.compile(r"(\w+_)?op\d?|comp_op\d")
"""Names of parameters that take an operator."""


class Fit(Struct, frozen=True):
    """The versions that a call fits, and why it does not fit each of the others."""

    versions: frozenset[Version]
    misfits: dict[Version, str]


def fit(
    call: ast.Call,
    brief: Brief,
    versions: tuple[Version, ...],
    use: Use,
    is_operator: Callable[[ast.expr], bool],
) -> Fit:
    """Try a call on the signatures of each version."""
    required = {
        parameter.name
        for signature in brief.calls
        for parameter in signature.parameters
        if parameter.default is None
    }
    fitting: set[Version] = set()
    misfits: dict[Version, str] = {}
    for version in versions:
        if not brief.exists(version) or version in brief.absent_in:
            misfits[version] = "it does not exist"
            continue
        signatures = brief.signatures(version)
        if brief.kind == "instruction" and use != "value":
            signatures_fit = [s for s in signatures if _style_fits(s, use)]
            if signatures and not signatures_fit:
                misfits[version] = (
                    "it returns a tile, which is not used here"
                    if use == "statement"
                    else "it returns no tile"
                )
                continue
            signatures = tuple(signatures_fit)
        reasons = [
            _misfit(call, signature, required, is_operator, version == IGNORES_KEYWORDS)
            for signature in signatures
        ]
        if not reasons or None in reasons:
            fitting.add(version)
        else:
            misfits[version] = reasons[-1] or ""
    return Fit(frozenset(fitting), misfits)


def _style_fits(signature: Signature, use: Use) -> bool:
    wanted = "value" if use == "tile" else "destination"
    return signature.style is None or signature.style == wanted


def _misfit(
    call: ast.Call,
    signature: Signature,
    required: set[str],
    is_operator: Callable[[ast.expr], bool],
    swallows: bool,
) -> str | None:
    """Why a call does not fit a signature; `None` where it does.

    What `**kwargs` swallows fits, but not a parameter that other versions cannot do
    without: a call that names it is meant for them.
    """
    either = [p for p in signature.parameters if p.kind == "either"]
    named = {p.name for p in signature.parameters if p.kind in ("either", "keyword")}
    swallows = swallows or any(p.kind == "keywords" for p in signature.parameters)
    rest = any(p.kind == "rest" for p in signature.parameters)
    spread = any(isinstance(argument, ast.Starred) for argument in call.args)
    merged = any(keyword.arg is None for keyword in call.keywords)
    keywords = {k.arg for k in call.keywords if k.arg is not None}
    for keyword in sorted(keywords):
        if keyword in signature.refused:
            return f"`{keyword}` raises an error"
        if keyword not in named and (not swallows or keyword in required):
            return f"it has no parameter `{keyword}`"
    if spread:
        return None
    if len(call.args) > len(either) and not rest:
        return f"it takes {len(either)} positional arguments"
    for parameter, argument in zip(either, call.args, strict=False):
        if parameter.name in keywords:
            return f"`{parameter.name}` is given twice"
        if is_operator(argument) and not _OPERATOR.fullmatch(parameter.name):
            return f"an operator stands where `{parameter.name}` belongs"
    if merged:
        return None
    given = keywords | {p.name for p in either[: len(call.args)]}
    for parameter in signature.parameters:
        if (
            parameter.kind in ("either", "keyword")
            and parameter.default is None
            and parameter.name not in given
        ):
            return f"its parameter `{parameter.name}` is missing"
    return None
