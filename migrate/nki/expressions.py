"""Expressions of kernel source as closures over a frame.

Each node becomes a Python closure once; evaluating a kernel then never looks at syntax
again.  Only the constructs here exist: everything else raises `Unsupported`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from migrate.nki import (
    classes,
    generators,
    index_arithmetic,
    indices,
    members,
    objects,
    tensor_operators,
)
from migrate.nki.calls import call
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.formatting import formatted
from migrate.nki.frames import Code, Evaluate, Frame
from migrate.nki.language import assigning, elementwise
from migrate.nki.operations import (
    INDICES,
    arithmetic,
    compare,
    integer,
    items_of,
    key_of,
    list_part,
    negated,
    replace_part,
    signed,
    truth,
)
from migrate.nki.scoping import lookup, looped, name_of, store, subscript
from migrate.nki.symbols import Number, Origin, constant, placed
from migrate.nki.values import (
    MAX_ITEMS,
    Builtin,
    Function,
    Instructive,
    Namespace,
    OperatorName,
    Slice,
    View,
    describe,
)
from migrate.source import Source

WRITERS = (Builtin, Instructive, OperatorName)
"""What may write its result where it is assigned to."""
TENSORS = (View, indices.Masked)
TENSOR_SIGNS = frozenset({"<", "<=", ">", ">=", "==", "!="})

if TYPE_CHECKING:
    Assign = Callable[[Frame, object], None]
    Each = Callable[[Frame, Callable[[], None]], None]

_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


ORDERS = frozenset({"<", "<=", ">", ">="})
INLINED = (Function, objects.Bound, objects.Class, objects.Partial)
"""What is interpreted when it is called: its arguments have places."""


def sign_of(operator: ast.operator) -> str:
    return _SIGNS.get(type(operator), "@")


def _gone_through(*values: object) -> tuple[object, ...]:
    """What an operator may go through item by item; index tensors are reckoned with whole."""
    return tuple(value for value in values if not isinstance(value, INDICES))


class Expressions:
    """Compiles expressions of one source file."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def origin(self, node: ast.expr | ast.stmt | ast.arg) -> Origin:
        return Origin(self.source, node)

    def function_code(self, node: ast.FunctionDef | ast.Lambda) -> Code:
        """Overridden where statements are compiled; lambdas need it."""
        raise NotImplementedError

    def expression(self, node: ast.expr) -> Evaluate:
        match node:
            case ast.Constant():
                return self._constant(node)
            case ast.Name():
                return self._name(node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                return self._subscript(node)
            case ast.Call():
                return self._call(node)
            case ast.BinOp():
                return self._binary(node)
            case ast.UnaryOp():
                return self._unary(node)
            case ast.BoolOp():
                return self._logical(node)
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                return self._conditional(node)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return self._sequence(node, items, isinstance(node, ast.List))
            case ast.Dict():
                return self._dictionary(node)
            case ast.JoinedStr():
                return self._joined(node)
            case ast.Slice():
                return self._slice(node)
            case ast.ListComp(elt=element, generators=generators):
                return self._comprehension(element, generators, lazy=False)
            case ast.GeneratorExp(elt=element, generators=generators):
                return self._comprehension(element, generators, lazy=True)
            case ast.DictComp():
                return self._dict_comprehension(node)
            case ast.Lambda():
                return self._lambda(node)
            case ast.NamedExpr(target=target, value=value):
                return self._named(target, value)
            case ast.Set(elts=items):
                return self._set(self._sequence(node, items, True), self.origin(node))
            case ast.SetComp(elt=element, generators=generators):
                whole = self._comprehension(element, generators, lazy=False)
                return self._set(whole, self.origin(node))
            case ast.Yield(value=value):
                return self._yield(node, value)
            case ast.YieldFrom(value=value):
                return self._yield_from(node, value)
            case _:
                return self._unsupported(node, f"{type(node).__name__} expressions")

    def _unsupported(self, node: ast.expr, what: str) -> Evaluate:
        origin = self.origin(node)

        def fail(_: Frame) -> object:
            raise Unsupported(what, origin)

        return fail

    def _constant(self, node: ast.Constant) -> Evaluate:
        value = node.value
        if isinstance(value, bool) or value is None or isinstance(value, str):
            return lambda _: value
        if value is Ellipsis:
            return lambda _: Ellipsis
        if isinstance(value, float) or (isinstance(value, int) and value.bit_length() <= 64):
            number = constant(value, self.origin(node))
            return lambda _: number
        return self._unsupported(node, "this kind of literal")

    def _name(self, node: ast.Name) -> Evaluate:
        name = node.id
        origin = self.origin(node)

        def load(frame: Frame) -> object:
            return lookup(frame, name, origin)

        return load

    def _attribute(self, node: ast.Attribute) -> Evaluate:
        inner = self.expression(node.value)
        name = node.attr
        origin = self.origin(node)

        whole = name in members.WHOLE
        of_libraries: dict[str, object] = {}

        def load(frame: Frame) -> object:
            value = inner(frame)
            if isinstance(value, Namespace):
                # A library's names are always the same.
                found = of_libraries.get(value.path)
                if found is None:
                    found = of_libraries[value.path] = members.attribute(value, name, origin)
                return found
            if whole:
                frame.run.touch(value)
            if isinstance(value, objects.OBJECTS):
                return members.object_attribute(value, name, frame, origin)
            return members.attribute(value, name, origin)

        return load

    def _subscript(self, node: ast.Subscript) -> Evaluate:
        inner = self.expression(node.value)
        key = self.expression(node.slice)
        origin = self.origin(node)
        if indices.is_literal(node):
            return self._literal_index(node, inner, key)

        def load(frame: Frame) -> object:
            value, wanted = inner(frame), key(frame)
            if isinstance(wanted, Slice):
                frame.run.touch(value)
            return subscript(value, wanted, origin)

        return load

    def _literal_index(self, node: ast.Subscript, inner: Evaluate, key: Evaluate) -> Evaluate:
        """`nl.arange(128)[:, None]`: the same each time, as long as the function is."""
        assert isinstance(node.value, ast.Call)
        callee = self.expression(node.value.func)
        origin = self.origin(node)
        made: list[object] = []

        def load(frame: Frame) -> object:
            function = callee(frame)
            if not isinstance(function, Builtin) or function.call is not indices.arange:
                return subscript(inner(frame), key(frame), origin)
            if not made:
                made.append(subscript(inner(frame), key(frame), origin))
            return made[0]

        return load

    def _call(self, node: ast.Call) -> Evaluate:
        callee = self.expression(node.func)
        positional: list[tuple[bool, Evaluate, Origin]] = []
        for arg in node.args:
            spread = isinstance(arg, ast.Starred)
            inner = arg.value if isinstance(arg, ast.Starred) else arg
            positional.append((spread, self.expression(inner), self.origin(inner)))
        keywords = [
            (word.arg, self.expression(word.value), self.origin(word.value))
            for word in node.keywords
        ]
        origin = self.origin(node)

        def evaluate(frame: Frame) -> object:
            function = callee(frame)
            inlined = isinstance(function, INLINED)
            args: list[object] = []
            for spread, argument, place in positional:
                value = argument(frame)
                if spread:
                    frame.run.touch(value)
                    args.extend(items_of(value, origin))
                else:
                    if inlined and isinstance(value, Number):
                        value = placed(value, place)
                    args.append(value)
            named: dict[str, object] = {}
            for name, argument, place in keywords:
                value = argument(frame)
                if inlined and isinstance(value, Number):
                    value = placed(value, place)
                if name is not None:
                    named[name] = value
                elif isinstance(value, dict) and all(isinstance(key, str) for key in value):
                    named.update(value)
                else:
                    raise KernelFault("type", f"** of {describe(value)}", origin)
            if frame.run.pending is not None and isinstance(function, WRITERS):
                with frame.run.towards(node):
                    return call(function, tuple(args), named, frame, origin)
            return call(function, tuple(args), named, frame, origin)

        return evaluate

    def _binary(self, node: ast.BinOp) -> Evaluate:
        left, right = self.expression(node.left), self.expression(node.right)
        sign = sign_of(node.op)
        origin = self.origin(node)

        def evaluate(frame: Frame) -> object:
            a, b = left(frame), right(frame)
            if not isinstance(a, Number):
                frame.run.touch(*_gone_through(a, b))
            if isinstance(a, objects.Instance) or isinstance(b, objects.Instance):
                found = classes.operate(sign, a, b, frame, origin)
                if found is not objects.MISSING:
                    return found
            if frame.run.legacy and (isinstance(a, TENSORS) or isinstance(b, TENSORS)):
                with frame.run.towards(node):
                    return elementwise.operate(sign, a, b, frame, origin)
            try:
                made = arithmetic(sign, a, b, origin)
            except Unsupported:
                tensor_operators.tell(sign, frame, origin, a, b)
                raise
            if sign == "*" and not isinstance(made, Number):
                frame.run.touch(*_gone_through(made))
            return made

        return evaluate

    def _unary(self, node: ast.UnaryOp) -> Evaluate:
        operand = self.expression(node.operand)
        origin = self.origin(node)
        if isinstance(node.op, ast.Not):
            return lambda frame: negated(operand(frame), origin)
        sign = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}[type(node.op)]

        def evaluate(frame: Frame) -> object:
            value = operand(frame)
            if frame.run.legacy and isinstance(value, TENSORS):
                with frame.run.towards(node):
                    return elementwise.signed(sign, value, frame, origin)
            try:
                return signed(sign, value, origin)
            except Unsupported:
                tensor_operators.tell(sign, frame, origin, value)
                raise

        return evaluate

    def _logical(self, node: ast.BoolOp) -> Evaluate:
        parts = [self.expression(value) for value in node.values]
        stop_at = isinstance(node.op, ast.Or)
        origin = self.origin(node)

        def masked(frame: Frame, mask: object, others: list[Evaluate]) -> object:
            join = index_arithmetic.disjunction if stop_at else index_arithmetic.conjunction
            for part in others:
                mask = join(mask, part(frame), origin)
            return mask

        def evaluate(frame: Frame) -> object:
            value: object = None
            for position, part in enumerate(parts):
                value = part(frame)
                if isinstance(value, indices.Condition):
                    return masked(frame, value, parts[position + 1 :])
                if truth(value, origin) is stop_at:
                    return value
            return value

        return evaluate

    def _compare(self, node: ast.Compare) -> Evaluate:
        first = self.expression(node.left)
        rest = [
            (_COMPARISONS[type(op)], self.expression(value))
            for op, value in zip(node.ops, node.comparators, strict=True)
        ]
        origin = self.origin(node)

        def evaluate(frame: Frame) -> object:
            left = first(frame)
            held: object = True
            for sign, operand in rest:
                right = operand(frame)
                if not isinstance(left, Number) or not isinstance(right, Number):
                    frame.run.touch(*_gone_through(left, right))
                    if (
                        frame.run.legacy
                        and sign in TENSOR_SIGNS
                        and (isinstance(left, TENSORS) or isinstance(right, TENSORS))
                        and not (isinstance(left, indices.IndexTensor | None | str))
                        and not (isinstance(right, indices.IndexTensor | None | str))
                    ):
                        if len(rest) > 1:
                            raise Unsupported("a chain of comparisons of tensors", origin)
                        with frame.run.towards(node):
                            return elementwise.operate(sign, left, right, frame, origin)
                    if isinstance(left, INDICES) or isinstance(right, INDICES):
                        mask = index_arithmetic.compare(sign, left, right, origin)
                        held = index_arithmetic.conjunction(held, mask, origin)
                        left = right
                        continue
                if sign in ORDERS and isinstance(left, objects.Instance):
                    found = classes.operate(sign, left, right, frame, origin)
                    if found is not objects.MISSING:
                        if not truth(found, origin):
                            return False
                        left = right
                        continue
                if sign in ORDERS:
                    tensor_operators.tell(sign, frame, origin, left, right)
                if frame.run.on_comparison is not None:
                    frame.run.on_comparison(sign, left, right)
                if not compare(sign, left, right, origin):
                    return False
                left = right
            return held

        return evaluate

    def _conditional(self, node: ast.IfExp) -> Evaluate:
        test, then = self.expression(node.test), self.expression(node.body)
        otherwise = self.expression(node.orelse)
        origin = self.origin(node)
        return lambda frame: (then if truth(test(frame), origin) else otherwise)(frame)

    def _sequence(self, node: ast.expr, items: list[ast.expr], as_list: bool) -> Evaluate:
        parts = [
            (True, self.expression(item.value))
            if isinstance(item, ast.Starred)
            else (False, self.expression(item))
            for item in items
        ]
        origin = self.origin(node)

        def evaluate(frame: Frame) -> object:
            found: list[object] = []
            for spread, part in parts:
                if spread:
                    value = part(frame)
                    frame.run.touch(value)
                    found.extend(items_of(value, origin))
                else:
                    found.append(part(frame))
            return found if as_list else tuple(found)

        return evaluate

    def _dictionary(self, node: ast.Dict) -> Evaluate:
        origin = self.origin(node)
        pairs = [
            (self.expression(key) if key is not None else None, self.expression(value))
            for key, value in zip(node.keys, node.values, strict=True)
        ]

        def evaluate(frame: Frame) -> object:
            found: dict[object, object] = {}
            for key, value in pairs:
                if key is None:
                    other = value(frame)
                    if not isinstance(other, dict):
                        raise KernelFault("type", f"** of {describe(other)}", origin)
                    found.update(other)
                else:
                    found[key_of(key(frame), origin)] = value(frame)
            return found

        return evaluate

    def _joined(self, node: ast.JoinedStr) -> Evaluate:
        parts: list[Evaluate] = []
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                parts.append(self._formatted(value))
            else:
                parts.append(self.expression(value))
        origin = self.origin(node)

        def evaluate(frame: Frame) -> object:
            text = ""
            for part in parts:
                text += str(part(frame))
                if len(text) > MAX_ITEMS:
                    raise Unsupported("a very long string", origin)
            frame.run.touch(text)
            return text

        return evaluate

    def _formatted(self, node: ast.FormattedValue) -> Evaluate:
        inner = self.expression(node.value)
        spec = self.expression(node.format_spec) if node.format_spec is not None else None
        conversion = node.conversion
        origin = self.origin(node)

        def evaluate(frame: Frame) -> object:
            wanted = str(spec(frame)) if spec is not None else ""
            return formatted(inner(frame), conversion, wanted, origin)

        return evaluate

    def _slice(self, node: ast.Slice) -> Evaluate:
        parts = [
            self.expression(part) if part is not None else None
            for part in (node.lower, node.upper, node.step)
        ]
        origin = self.origin(node)

        def evaluate(frame: Frame) -> object:
            found: list[Number | None] = []
            for part in parts:
                value = part(frame) if part is not None else None
                found.append(None if value is None else integer(value, origin))
            return Slice(found[0], found[1], found[2])

        return evaluate

    def _comprehension(
        self, element: ast.expr, generators: list[ast.comprehension], *, lazy: bool
    ) -> Evaluate:
        value = self.expression(element)
        each = self._generators(generators)

        def evaluate(frame: Frame) -> object:
            found: list[object] = []
            inner = Frame(frame.run, None, frame, frame.stack, frame.depth)
            each(inner, lambda: found.append(value(inner)))
            return objects.Cursor(found) if lazy else found

        return evaluate

    def _dict_comprehension(self, node: ast.DictComp) -> Evaluate:
        key, value = self.expression(node.key), self.expression(node.value)
        each = self._generators(node.generators)
        origin = self.origin(node)

        def evaluate(frame: Frame) -> object:
            found: dict[object, object] = {}
            inner = Frame(frame.run, None, frame, frame.stack, frame.depth)

            def add() -> None:
                found[key_of(key(inner), origin)] = value(inner)

            each(inner, add)
            return found

        return evaluate

    def _generators(self, generators: list[ast.comprehension]) -> Each:
        def nothing(_: Frame, action: Callable[[], None]) -> None:
            action()

        body: Each = nothing
        for generator in reversed(generators):
            body = self._generator(generator, body)
        return body

    def _generator(
        self,
        generator: ast.comprehension,
        body: Each,
    ) -> Each:
        over = self.expression(generator.iter)
        bind = self.target(generator.target)
        tests = [self.expression(test) for test in generator.ifs]
        origin = self.origin(generator.target)
        variable = name_of(generator.target)

        def loop(frame: Frame, action: Callable[[], None]) -> None:
            for value in looped(over(frame), frame, origin, variable):
                bind(frame, value)
                if all(truth(test(frame), origin) for test in tests):
                    body(frame, action)

        return loop

    def _lambda(self, node: ast.Lambda) -> Evaluate:
        code = self.function_code(node)
        defaults = [self.expression(value) for value in node.args.defaults]
        keyword_defaults = [
            (arg.arg, self.expression(value))
            for arg, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            if value is not None
        ]

        def evaluate(frame: Frame) -> object:
            return Function(
                code,
                frame.enclosing,
                tuple(default(frame) for default in defaults),
                tuple((name, default(frame)) for name, default in keyword_defaults),
                node,
            )

        return evaluate

    def _named(self, target: ast.expr, value: ast.expr) -> Evaluate:
        bind, compute = self.target(target), self.expression(value)

        def evaluate(frame: Frame) -> object:
            found = compute(frame)
            here = frame
            # A comprehension binds in the function around it.
            while here.code is None and not here.is_class and isinstance(here.outer, Frame):
                here = here.outer
            bind(here, found)
            return found

        return evaluate

    def _set(self, items: Evaluate, origin: Origin) -> Evaluate:
        def evaluate(frame: Frame) -> object:
            found = items_of(items(frame), origin)
            entries: dict[object, object] = {}
            for item in found:
                entries.setdefault(key_of(item, origin), item)
            return objects.Set(entries)

        return evaluate

    def _yield(self, node: ast.Yield, value: ast.expr | None) -> Evaluate:
        compute = self.expression(value) if value is not None else None
        origin = self.origin(node)

        def evaluate(frame: Frame) -> object:
            found = compute(frame) if compute is not None else None
            generators.sink_of(frame, origin)(found, origin)
            return None

        return evaluate

    def _yield_from(self, node: ast.YieldFrom, value: ast.expr) -> Evaluate:
        compute = self.expression(value)
        origin = self.origin(node)

        def evaluate(frame: Frame) -> object:
            sink = generators.sink_of(frame, origin)
            found = compute(frame)
            if isinstance(found, objects.Generator):
                return generators.drive(found, sink, origin)
            for item in looped(found, frame, origin, "i"):
                sink(item, origin)
            return None

        return evaluate

    def target(self, node: ast.expr) -> Assign:
        """How a value is bound to an assignment target."""
        origin = self.origin(node)
        match node:
            case ast.Name(id=name):
                return lambda frame, value: store(frame, name, value)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return self._unpacking(items, origin)
            case ast.Subscript():
                return self._item_target(node, origin)
            case ast.Attribute(value=value, attr=name):
                holder = self.expression(value)
                return lambda frame, value: classes.assign(
                    holder(frame), name, value, frame, origin
                )
            case _:

                def fail(_: Frame, __: object) -> None:
                    raise Unsupported(f"assigning to {type(node).__name__}", origin)

                return fail

    def _unpacking(self, items: list[ast.expr], origin: Origin) -> Assign:
        places = [self.origin(item) for item in items]
        stars = [k for k, item in enumerate(items) if isinstance(item, ast.Starred)]
        parts = [
            self.target(item.value if isinstance(item, ast.Starred) else item) for item in items
        ]

        def bind(frame: Frame, value: object) -> None:
            frame.run.touch(value)
            found = items_of(value, origin)
            if stars:
                star, after = stars[0], len(parts) - stars[0] - 1
                if len(found) < len(parts) - 1:
                    raise KernelFault("value", "not enough values to unpack", origin)
                middle = found[star : len(found) - after]
                found = [*found[:star], list(middle), *found[len(found) - after :]]
            if len(found) != len(parts):
                raise KernelFault("value", f"{len(found)} values for {len(parts)} names", origin)
            for part, item, place in zip(parts, found, places, strict=True):
                # A size of a tensor has no place of its own: it gets that of its name.
                if isinstance(item, Number) and item.origin is None:
                    item = placed(item, place)
                part(frame, item)

        return bind

    def _item_target(self, node: ast.Subscript, origin: Origin) -> Assign:
        container = self.expression(node.value)
        key = self.expression(node.slice)

        def bind(frame: Frame, value: object) -> None:
            holder, wanted = container(frame), key(frame)
            match holder:
                case list() if isinstance(wanted, Number):
                    position = int(integer(wanted, origin).value)
                    if not -len(holder) <= position < len(holder):
                        raise KernelFault(
                            "index", f"index {position} in {describe(holder)}", origin
                        )
                    holder[position] = value
                case list() if isinstance(wanted, Slice):
                    replace_part(holder, list_part(wanted, origin), value, origin)
                case dict():
                    if len(holder) >= MAX_ITEMS:
                        raise Unsupported("a very large dictionary", origin)
                    holder[key_of(wanted, origin)] = value
                case objects.Instance() if (
                    method := classes.special(holder, "__setitem__")
                ) is not None:
                    call(method, (wanted, value), {}, frame, origin)
                case View() if frame.run.legacy:
                    assigning.assign(subscript(holder, wanted, origin), value, frame, origin)
                case View():
                    raise Unsupported("assigning to a tensor's elements", origin)
                case _:
                    raise Unsupported(f"assigning to items of {describe(holder)}", origin)

        return bind
