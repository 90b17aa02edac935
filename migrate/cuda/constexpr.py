"""Calls of functions whose value needs no thread to be known, run when the tree is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal as OneOf

from migrate.cuda.ast import (
    Assign,
    Binary,
    Block,
    Break,
    Call,
    Comma,
    Continue,
    Declare,
    Evaluate,
    Expression,
    If,
    Loop,
    Name,
    Return,
    Statement,
    Step,
)
from migrate.cuda.folding import Value, converted, fold
from migrate.cuda.types import Scalar

MAX_STEPS = 8000
"""Statements and rounds of loops that are run for one call."""

MAX_NESTING = 12


class _NotConstantError(Exception):
    """The value cannot be known, or not within the limits."""


_Left = OneOf["break", "continue", "return"] | None


def call(node: Call, known: Mapping[int, Value], depth: int) -> Value | None:
    """The value of a call; `None` where it is not constant."""
    if depth > MAX_NESTING * 10 or not isinstance(node.type, Scalar):
        return None
    if node.function.issues or any(p.storage == "reference" for p in node.function.parameters):
        return None
    here = _Values(known.allowance if isinstance(known, _Values) else [MAX_STEPS])
    for parameter, argument in zip(node.function.parameters, node.arguments, strict=True):
        value = fold(argument, known, depth + 10)
        if value is None:
            return None
        here[parameter.id] = value
    run = _Run(here, depth + 10)
    try:
        run.block(node.function.body)
    except _NotConstantError:
        return None
    return run.returned


class _Values(dict[int, Value]):
    """The variables of one call; calls within it share its allowance of steps."""

    def __init__(self, allowance: list[int]) -> None:
        super().__init__()
        self.allowance = allowance


class _Run:
    def __init__(self, values: _Values, depth: int) -> None:
        self.values = values
        self.depth = depth
        self.returned: Value | None = None

    def block(self, block: Block) -> _Left:
        for statement in block.body:
            left = self.statement(statement)
            if left is not None:
                return left
        return None

    def statement(self, statement: Statement) -> _Left:
        self._count()
        match statement:
            case Declare(variable=variable, initial=initial):
                if initial is None or isinstance(initial, tuple):
                    self.values.pop(variable.id, None)
                    if isinstance(initial, tuple):
                        raise _NotConstantError
                    return None
                self.values[variable.id] = self.value(initial)
                return None
            case Evaluate(expression=expression):
                self.value(expression)
                return None
            case Block():
                return self.block(statement)
            case If(condition=condition, then=then, otherwise=otherwise):
                if self.value(condition):
                    return self.block(then)
                return self.block(otherwise) if otherwise is not None else None
            case Loop():
                return self.loop(statement)
            case Return(value=value):
                self.returned = self.value(value) if value is not None else None
                return "return"
            case Break():
                return "break"
            case Continue():
                return "continue"
            case _:
                raise _NotConstantError

    def loop(self, loop: Loop) -> _Left:
        for start in loop.initial:
            self.statement(start)
        skip = loop.kind == "do"
        while True:
            self._count()
            if not skip and loop.condition is not None and not self.value(loop.condition):
                return None
            skip = False
            left = self.block(loop.body)
            if left == "return":
                return left
            if left == "break":
                return None
            if loop.step is not None:
                self.value(loop.step)

    def value(self, expression: Expression) -> Value:
        self._count()
        match expression:
            case Assign(target=Name(variable=variable), type=Scalar() as kind):
                made = self._assigned(expression, kind)
                self.values[variable.id] = made
                return made
            case Step(target=Name(variable=variable), type=Scalar() as kind):
                old = self.values.get(variable.id)
                if old is None:
                    raise _NotConstantError
                new = converted(old + expression.delta, kind)
                if new is None:
                    raise _NotConstantError
                self.values[variable.id] = new
                return new if expression.prefix else old
            case Comma(first=first, second=second):
                self.value(first)
                return self.value(second)
            case _:
                found = fold(expression, self.values, self.depth)
                if found is None:
                    raise _NotConstantError
                return found

    def _assigned(self, node: Assign, kind: Scalar) -> Value:
        if node.operator is None:
            value: Value | None = self.value(node.value)
        else:
            if not isinstance(node.compute, Scalar):
                raise _NotConstantError
            left = node.target
            combined = Binary(node.operator, left, node.value, node.compute, node.where)
            value = fold(combined, self.values, self.depth)
        value = converted(value, kind) if value is not None else None
        if value is None:
            raise _NotConstantError
        return value

    def _count(self) -> None:
        self.values.allowance[0] -= 1
        if self.values.allowance[0] < 0:
            raise _NotConstantError
