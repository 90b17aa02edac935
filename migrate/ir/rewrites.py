"""Equal meaning in other form: operators written in terms of others.

Each entry is a named rewrite that holds over the reals (its sketch says why), applied
while a normal form is built.  Rewrites change no value over the reals; what they change
in rounding is judged by the numerics rules and by runs, not here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Rewrite:
    """`operator(args)` is `replacement(args)`.

    The replacement is called with `build` (`build(operator, *args)` makes a term), `number`
    (`number(x)` makes a constant), and the arguments.
    """

    name: str
    operator: str
    sketch: str
    replacement: Callable[..., Any]


def _gelu_inner(build: Any, number: Any, x: Any) -> Any:
    cube = build("multiply", x, build("multiply", x, x))
    inner = build("add", x, build("multiply", number(0.044715), cube))
    return build("multiply", number((2.0 / math.pi) ** 0.5), inner)


REWRITES: dict[str, Rewrite] = {
    rewrite.operator: rewrite
    for rewrite in (
        Rewrite(
            "subtract-is-add-negated",
            "subtract",
            "a - b = a + (-b)",
            lambda build, number, a, b: build("add", a, build("negate", b)),
        ),
        Rewrite(
            "divide-is-multiply-by-reciprocal",
            "divide",
            "a / b = a * (1 / b)",
            lambda build, number, a, b: build("multiply", a, build("reciprocal", b)),
        ),
        Rewrite(
            "square-is-multiply",
            "square",
            "x^2 = x * x",
            lambda build, number, x: build("multiply", x, x),
        ),
        Rewrite(
            "fma-is-multiply-add",
            "fma",
            "fma(a, b, c) = a * b + c",
            lambda build, number, a, b, c: build("add", build("multiply", a, b), c),
        ),
        Rewrite(
            "rsqrt-is-reciprocal-of-sqrt",
            "rsqrt",
            "x^(-1/2) = 1 / x^(1/2)",
            lambda build, number, x: build("reciprocal", build("sqrt", x)),
        ),
        Rewrite(
            "relu-is-maximum-with-zero",
            "relu",
            "relu(x) = max(x, 0) by definition",
            lambda build, number, x: build("maximum", x, number(0.0)),
        ),
        Rewrite(
            "sigmoid-is-reciprocal",
            "sigmoid",
            "sigmoid(x) = 1 / (1 + exp(-x)) by definition",
            lambda build, number, x: build(
                "reciprocal", build("add", number(1.0), build("exp", build("negate", x)))
            ),
        ),
        Rewrite(
            "silu-is-x-times-sigmoid",
            "silu",
            "silu(x) = x * sigmoid(x) by definition",
            lambda build, number, x: build("multiply", x, build("sigmoid", x)),
        ),
        Rewrite(
            "gelu-by-erf",
            "gelu",
            "gelu(x) = x / 2 * (1 + erf(x / sqrt 2)) by definition",
            lambda build, number, x: build(
                "multiply",
                build("multiply", number(0.5), x),
                build("add", number(1.0), build("erf", build("multiply", x, number(0.5**0.5)))),
            ),
        ),
        Rewrite(
            "gelu-by-tanh",
            "gelu_tanh",
            "gelu(x) is about x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))",
            lambda build, number, x: build(
                "multiply",
                build("multiply", number(0.5), x),
                build("add", number(1.0), build("tanh", _gelu_inner(build, number, x))),
            ),
        ),
        Rewrite(
            "gelu-by-sigmoid",
            "gelu_sigmoid",
            "gelu(x) is about x * sigmoid(1.702 x)",
            lambda build, number, x: build(
                "multiply", x, build("sigmoid", build("multiply", number(1.702), x))
            ),
        ),
        Rewrite(
            "softplus-is-log1p-of-exp",
            "softplus",
            "softplus(x) = log(1 + exp(x)) by definition",
            lambda build, number, x: build("log1p", build("exp", x)),
        ),
        Rewrite(
            "mish-is-x-times-tanh-of-softplus",
            "mish",
            "mish(x) = x * tanh(softplus(x)) by definition",
            lambda build, number, x: build("multiply", x, build("tanh", build("softplus", x))),
        ),
        Rewrite(
            "less-is-greater-swapped",
            "less",
            "a < b exactly if b > a",
            lambda build, number, a, b: build("greater", b, a),
        ),
        Rewrite(
            "less-equal-is-greater-equal-swapped",
            "less_equal",
            "a <= b exactly if b >= a",
            lambda build, number, a, b: build("greater_equal", b, a),
        ),
        Rewrite(
            "maximum-number-is-maximum",
            "maximum_number",
            "the two differ only where an argument is NaN, which no real is",
            lambda build, number, a, b: build("maximum", a, b),
        ),
        Rewrite(
            "minimum-number-is-minimum",
            "minimum_number",
            "the two differ only where an argument is NaN, which no real is",
            lambda build, number, a, b: build("minimum", a, b),
        ),
    )
}
