"""From drafts to findings: every rule is asked, repetitions are told once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from migrate.results import SEVERITIES, Finding
from migrate.rules.registry import RULES
from migrate.rules.rule import Draft, Evidence, Rule
from migrate.source import Span

MAX_MESSAGE = 300
"""Characters of a message: what is read at a glance."""


@dataclass(frozen=True, slots=True)
class Found:
    """A finding, and the places among which its cause is if the rule could not tell.

    `guess` is the end of its message that holds only if the cause is not found.
    """

    finding: Finding
    suspects: tuple[Span, ...] = ()
    guess: str = ""


def findings(evidence: Evidence) -> tuple[Found, ...]:
    """What the rules say, the gravest first, then in the order of the text.

    The same rule at the same place is one finding, however many sizes show it and calls lead
    there; the first one with a witness is kept.
    """
    kept: dict[tuple[object, ...], tuple[Rule, Draft]] = {}
    for rule in RULES:
        for draft in rule.check(evidence):
            key = (rule.id, draft.side, *_place(draft.span))
            known = kept.get(key)
            if known is None or (known[1].witness is None and draft.witness is not None):
                kept[key] = (rule, draft)
    ordered = sorted(kept.values(), key=_order)
    return tuple(
        Found(
            Finding(
                id=f"f{number}",
                rule=rule.id,
                family=rule.family,
                severity=draft.severity or rule.severity,
                effect=draft.effect or rule.effect,
                message=_cut(draft.message + draft.guess),
                side=draft.side,
                span=draft.span,
                related=draft.related,
                witness=draft.witness,
            ),
            draft.suspects,
            draft.guess,
        )
        for number, (rule, draft) in enumerate(ordered, 1)
    )


def _cut(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 1]}…"


def _order(entry: tuple[Rule, Draft]) -> tuple[object, ...]:
    rule, draft = entry
    severity = draft.severity or rule.severity
    return (SEVERITIES.index(severity), draft.side, draft.span, rule.id)


def _place(span: Span) -> tuple[object, ...]:
    return (span.file, span.start_line, span.start_column, span.end_line, span.end_column)


def unrefuted(found: Sequence[Finding]) -> bool:
    """Whether a finding stands that says the kernel is wrong or cannot run."""
    return any(f.effect in {"wrong", "rejects"} and f.suppressed is None for f in found)
