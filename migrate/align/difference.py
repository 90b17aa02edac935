"""Where two expressions part: the smallest differing pieces of two normal forms.

`differences` walks two forms of the same output elements side by side and stops where
they stop being alike.  What it finds is named for what a reviewer would say: another
operator, another tensor, another element of it, another constant, nothing written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Literal, TypeAlias

from migrate.ir.forms import (
    Apply,
    Combine,
    Element,
    Form,
    Hashed,
    Missing,
    Number,
    Part,
    Unknown,
    walk,
)
from migrate.source import Span

What: TypeAlias = Literal[
    "unwritten",
    "extra-write",
    "operator",
    "sign",
    "tensor",
    "element",
    "constant",
    "extent",
    "operand",
    "expression",
    "unwritten-operand",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the NKI expression is not the CUDA expression.

    The spans are those of the operators nearest to it; `within` are the NKI operators that it
    is an operand of, the outermost first.
    """

    what: What
    cuda: Form
    nki: Form
    cuda_span: Span | None
    nki_span: Span | None
    within: tuple[Span, ...] = ()


def differences(cuda: Form, nki: Form) -> tuple[Difference, ...]:
    """The differences of two forms over the same cells; empty if they are equal."""
    return tuple(_differences(cuda, nki, None, None))


def similarity(cuda: Form, nki: Form) -> float:
    """How alike two forms are, 0 to 1: the share of their nodes that correspond."""
    if cuda == nki:
        return 1.0
    total = max(_count(cuda), _count(nki))
    return _common(cuda, nki) / total if total else 0.0


def _differences(
    cuda: Form, nki: Form, cuda_at: Span | None, nki_at: Span | None
) -> Iterator[Difference]:
    # As deep as the forms, which `ir.normal` bounds.
    if cuda == nki:
        return
    what: What
    cuda_here = _span(cuda) or cuda_at
    nki_here = _span(nki) or nki_at

    # A number that is missing beside a value is missing where the value is used.
    used_at = nki_at if nki_at is not None and _scaled(nki, cuda) else nki_here

    def found(what: What) -> Difference:
        return Difference(what, cuda, nki, cuda_here, used_at if what == "operator" else nki_here)

    turned = _turned(cuda, nki)
    if turned is not None:
        yield found("sign")
        yield from _inside(nki, _differences(*turned, cuda_here, nki_here))
        return
    match cuda, nki:
        case (Unknown(), _) | (_, Unknown()):
            yield found("unknown")
        case _, Missing(used=used, span=made):
            what = "unwritten-operand" if used or nki_at is not None else "unwritten"
            yield Difference(what, cuda, nki, cuda_here, made or nki_here)
        case Missing(), _:
            yield found("extra-write" if cuda_at is None else "unwritten-operand")
        case Element(tensor=left), Element(tensor=right):
            what = "element" if left == right else "tensor"
            yield Difference(what, cuda, nki, cuda_at or cuda_here, nki_at or nki_here)
        case Number(), Number():
            yield Difference("constant", cuda, nki, cuda_at or cuda_here, nki_at or nki_here)
        case Apply(operator=a, args=given), Apply(operator=b, args=taken):
            if a != b or len(given) != len(taken):
                yield found("operator")
                return
            for left_arg, right_arg in zip(given, taken, strict=True):
                yield from _inside(nki, _differences(left_arg, right_arg, cuda_here, nki_here))
        case Combine(operator=a), Combine(operator=b):
            if a != b:
                yield found("operator")
                return
            yield from _inside(nki, _parts(cuda, nki, cuda_here, nki_here))
        case Combine(operator=a, parts=(Part(form=inner, power=1, count=count),)), _ if (
            count > 1 and (_same_but_extent(inner, nki) or _nothing(nki) == a)
        ):
            # All of the operands are left out, or all but one.
            yield found("extent")
        case (Apply() | Combine(), Apply() | Combine()):
            yield found("operator")
        case _:
            yield found("expression")


def _inside(nki: Form, found: Iterator[Difference]) -> Iterator[Difference]:
    """Differences of the operands of a form."""
    span = _span(nki)
    for difference in found:
        within = difference.within if span is None else (span, *difference.within)
        yield replace(difference, within=within)


def _scaled(inner: Form, outer: Form) -> bool:
    """Whether a form is another one with a number, as a factor or added."""
    if not isinstance(outer, Combine) or Part(inner) not in outer.parts:
        return False
    return all(part == Part(inner) or isinstance(part.form, Number) for part in outer.parts)


def _turned(cuda: Form, nki: Form) -> tuple[Form, Form] | None:
    """Both without their sign, where one alone is negated and they are alike otherwise."""
    minus = [_negated(form) for form in (cuda, nki)]
    if (minus[0] is None) == (minus[1] is None):
        return None
    left, right = minus[0] or cuda, minus[1] or nki
    match left, right:
        case (Apply(operator=a), Apply(operator=b)) | (Combine(operator=a), Combine(operator=b)):
            return (left, right) if a == b else None
    return (left, right) if left == right else None


def _negated(form: Form) -> Form | None:
    """What a form is the negation of, if it is written as one."""
    match form:
        case Combine(operator="add", parts=(Part(form=inner, power=-1, count=1),)):
            return inner
    return None


def _parts(
    cuda: Combine,
    nki: Combine,
    cuda_here: Span | None,
    nki_here: Span | None,
) -> Iterator[Difference]:
    """Parts without a counterpart, paired by likeness."""
    left, right = _remaining(cuda.parts, nki.parts)
    for part in list(left):
        flipped = next((p for p in right if p.form == part.form and p.count == part.count), None)
        if flipped is not None and flipped.power == -part.power:
            right.remove(flipped)
            left.remove(part)
            # A sign is lost where the operand is made, and so is the inverse of a root, which is
            # an instruction of its own; a division is lost where it is combined.
            made = cuda.operator != "multiply" or _is_root(flipped.form)
            at = (_span(flipped.form) if made else None) or nki_here
            given, taken = _alone(cuda, [part]), _alone(nki, [flipped])
            yield Difference("sign", given, taken, cuda_here, at)
    while left and right:
        part, other = max(
            ((a, b) for a in left for b in right),
            key=lambda pair: (
                similarity(pair[0].form, pair[1].form),
                pair[0].power == pair[1].power,
            ),
        )
        left.remove(part)
        right.remove(other)
        if part.count != other.count and _same_but_extent(part.form, other.form):
            # What else is combined is of the same range, taken apart.
            yield Difference("extent", cuda, nki, cuda_here, nki_here)
            return
        if part.count > 1 and _otherwise_combined(cuda.operator, part.form, other.form):
            yield Difference("operator", cuda, nki, cuda_here, _span(other.form) or nki_here)
            return
        if part.form == other.form or part.power != other.power:
            given, taken = _alone(cuda, [part]), _alone(nki, [other])
            yield Difference("operand", given, taken, cuda_here, nki_here)
        elif (part.count == 1) != (other.count == 1):
            given, taken = _alone(cuda, [part]), _alone(nki, [other])
            yield from _differences(given, taken, cuda_here, nki_here)
        else:
            yield from _differences(part.form, other.form, cuda_here, nki_here)
    if left or right:
        yield Difference("operand", _alone(cuda, left), _alone(nki, right), cuda_here, nki_here)


def _is_root(form: Form) -> bool:
    return isinstance(form, Apply) and form.operator == "sqrt"


def _remaining(given: tuple[Part, ...], taken: tuple[Part, ...]) -> tuple[list[Part], list[Part]]:
    """What is left of both when common operands are taken away as often as both have them."""
    left: list[Part] = []
    right = list(taken)
    for part in given:
        power = part.power
        for other in list(right):
            same = other.form == part.form and other.count == part.count
            if same and other.power * power > 0:
                common = min(abs(power), abs(other.power)) * (1 if power > 0 else -1)
                power -= common
                right.remove(other)
                if other.power != common:
                    right.append(replace(other, power=other.power - common))
                break
        if power:
            left.append(replace(part, power=power))
    return left, right


def _alone(whole: Combine, parts: list[Part]) -> Form:
    """Some parts of a combination by themselves."""
    if len(parts) == 1 and parts[0].power == 1 and parts[0].count == 1:
        return parts[0].form
    return Combine(whole.operator, tuple(parts), whole.span)


def _nothing(form: Form) -> str | None:
    """The operator that gives this number when it combines nothing."""
    if isinstance(form, Number):
        return {0.0: "add", 1.0: "multiply", -inf: "maximum", inf: "minimum"}.get(form.value)
    return None


def _otherwise_combined(operator: str, operand: Form, form: Form) -> bool:
    """Whether a form combines many such operands, by another operator."""
    match form:
        case Combine(operator=other, parts=(Part(form=inner, count=count),)):
            return other != operator and count > 1 and _same_but_extent(operand, inner)
    return False


def _same_but_extent(cuda: Form, nki: Form) -> bool:
    """Whether operands that differ in number are alike; where each lies may differ."""
    match cuda, nki:
        case Element(tensor=left), Element(tensor=right):
            return left == right
    return similarity(cuda, nki) > 0.5


def _span(form: Form) -> Span | None:
    match form:
        case Apply(span=span) | Combine(span=span) | Hashed(span=span) | Unknown(span=span):
            return span
        case Number(span=span):
            return span
        case _:
            return None


def _count(form: Form) -> int:
    return sum(1 for _ in walk(form))


def _common(cuda: Form, nki: Form) -> float:
    match cuda, nki:
        case Element(tensor=a, index=i), Element(tensor=b, index=j):
            return (0.5 if a == b else 0.0) + (0.5 if i == j else 0.0)
        case Number(value=a), Number(value=b):
            return 1.0 if a == b else 0.5
        case Apply(operator=a, args=given), Apply(operator=b, args=taken):
            inner = sum(_common(x, y) for x, y in zip(given, taken, strict=False))
            return inner + (1.0 if a == b else 0.0)
        case Combine(operator=a, parts=given_parts), Combine(operator=b, parts=taken_parts):
            rest = [part.form for part in taken_parts]
            total = 1.0 if a == b else 0.0
            for part in given_parts:
                if not rest:
                    break
                best = max(range(len(rest)), key=lambda n: _common(part.form, rest[n]))
                total += _common(part.form, rest.pop(best))
            return total
        case _:
            return 0.0
