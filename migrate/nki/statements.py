"""Statements of kernel source as closures over a frame.

A statement that is not understood does not end the reading: it is reported, the names
it would have bound become unknown, and what it may have touched is handed on as an
opaque instruction.  An error that the compiler would report does end it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from migrate.budget import Exhausted
from migrate.nki import imports
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.expressions import Expressions, sign_of
from migrate.nki.frames import Assertion, Code, Frame
from migrate.nki.operations import arithmetic, text_of, truth
from migrate.nki.scoping import lookup, looped, name_of, store
from migrate.nki.symbols import Number, Origin, placed
from migrate.nki.syntax import as_load, bound_names, depth_of, own_statements, views_in
from migrate.nki.values import MAX_ITEMS, Function, LoopValue, Unknown, View
from migrate.source import Source

GIVING_UP = 40
"""Steps that reporting an opaque statement is worth."""


@dataclass(frozen=True, slots=True)
class Returned:
    """A `return` on its way out of the statements around it."""

    value: object


class _Signal:
    __slots__ = ()


BREAK = _Signal()
CONTINUE = _Signal()

Flow: TypeAlias = Returned | _Signal | None
Execute: TypeAlias = Callable[[Frame], Flow]


class Compiler(Expressions):
    """Compiles statements and functions of one source file."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._codes: dict[int, Code] = {}

    def function_code(self, node: ast.FunctionDef | ast.Lambda) -> Code:
        """A function's code, compiled when first needed."""
        found = self._codes.get(id(node))
        if found is None:
            found = self._codes[id(node)] = self._function_code(node)
        return found

    def _function_code(self, node: ast.FunctionDef | ast.Lambda) -> Code:
        arguments = node.args
        parameters = {
            arg.arg
            for arg in (
                *arguments.posonlyargs,
                *arguments.args,
                *arguments.kwonlyargs,
                *filter(None, (arguments.vararg, arguments.kwarg)),
            )
        }
        if isinstance(node, ast.Lambda):
            value = self.expression(node.body)
            return Code("lambda", arguments, value, frozenset(parameters), frozenset(), 8)
        bound, outer = set(parameters), set[str]()
        for inner in own_statements(node.body):
            match inner:
                case ast.Nonlocal(names=names) | ast.Global(names=names):
                    outer.update(names)
                case _:
                    bound.update(bound_names(inner))
        body = self.block(node.body)

        def run(frame: Frame) -> object:
            flow = body(frame)
            return flow.value if isinstance(flow, Returned) else None

        return Code(
            node.name,
            arguments,
            run,
            frozenset(bound - outer),
            frozenset(outer),
            depth_of(node),
        )

    def block(self, body: list[ast.stmt]) -> Execute:
        """A run of statements, each of which may turn out opaque."""
        compiled = [(self.statement(node), node) for node in body]

        def execute(frame: Frame) -> Flow:
            run = frame.run
            for statement, node in compiled:
                loops = run.loops
                try:
                    run.step()
                    flow = statement(frame)
                except Exhausted:
                    if run.stopped_at is None:
                        run.stopped_at = run.reached(self.origin(node).span, frame.stack)
                    raise
                except Unsupported as gap:
                    run.loops = loops
                    self._give_up(node, gap, frame)
                    continue
                except KernelFault as fault:
                    if fault.origin is None:
                        fault.origin = self.origin(node)
                    raise
                if flow is not None:
                    return flow
            return None

        return execute

    def _give_up(self, node: ast.stmt, gap: Unsupported, frame: Frame) -> None:
        """Report a statement as opaque and forget what it may have changed."""
        if isinstance(node, ast.Return) or any(
            isinstance(inner, ast.Return) for inner in own_statements([node])
        ):
            # What the function returns is unknown: the caller's statement is opaque too.
            raise gap
        run = frame.run
        run.step(GIVING_UP)
        where = gap.origin or self.origin(node)
        span = run.reached(where.span, frame.stack)
        run.event("unsupported", gap.reason, span)
        run.opaque_statements.add(self.origin(node).span)
        touched: list[View] = []
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                self._forget(inner, frame, touched)
        if run.open:
            run.emit(
                "opaque",
                [(f"touched{k}", view) for k, view in enumerate(touched)],
                [],
                run.site(self.origin(node), frame.stack),
                reason=gap.reason,
            )
        for inner in own_statements([node]):
            for name in bound_names(inner):
                store(frame, name, Unknown(name, gap.reason, span))

    def _forget(self, node: ast.Name, frame: Frame, touched: list[View]) -> None:
        try:
            value = lookup(frame, node.id, self.origin(node))
        except (Unsupported, KernelFault):
            return
        if isinstance(value, View | list | tuple | dict):
            views_in(value, touched)
        if isinstance(value, list | dict):
            # The statement may have changed it half way.
            store(frame, node.id, Unknown(node.id, "a statement not understood used it", None))

    def statement(self, node: ast.stmt) -> Execute:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return lambda _: None
            case ast.Expr(value=value):
                return self._discarded(value)
            case ast.Assign():
                return self._assign(node)
            case ast.AnnAssign(target=target, value=value):
                return self._bound([target], value) if value is not None else lambda _: None
            case ast.AugAssign():
                return self._augmented(node)
            case ast.For():
                return self._for(node)
            case ast.While():
                return self._while(node)
            case ast.If():
                return self._if(node)
            case ast.FunctionDef():
                return self._define(node)
            case ast.Return(value=value):
                return self._return(value)
            case ast.Assert():
                return self._assert(node)
            case ast.Raise():
                return self._raise(node)
            case ast.Break():
                return lambda _: BREAK
            case ast.Continue():
                return lambda _: CONTINUE
            case ast.Import() | ast.ImportFrom():
                return self._import(node)
            case ast.Nonlocal():
                return lambda _: None
            case ast.With():
                return self._with(node)
            case ast.Try(body=body):
                return self._try(node, body)
            case ast.Delete(targets=targets) if all(isinstance(t, ast.Name) for t in targets):
                return self._delete([t.id for t in targets if isinstance(t, ast.Name)])
            case ast.ClassDef(name=name):
                return self._unknown(name, "classes are not interpreted")
            case _:
                return self._fail(node, f"{type(node).__name__} statements")

    def _fail(self, node: ast.stmt, what: str) -> Execute:
        origin = self.origin(node)

        def fail(_: Frame) -> Flow:
            raise Unsupported(what, origin)

        return fail

    def _unknown(self, name: str, reason: str) -> Execute:
        def bind(frame: Frame) -> Flow:
            store(frame, name, Unknown(name, reason, None))
            return None

        return bind

    def _discarded(self, value: ast.expr) -> Execute:
        compute = self.expression(value)

        def execute(frame: Frame) -> Flow:
            compute(frame)
            return None

        return execute

    def _assign(self, node: ast.Assign) -> Execute:
        return self._bound(node.targets, node.value)

    def _bound(self, targets: list[ast.expr], value: ast.expr) -> Execute:
        compute = self.expression(value)
        binds = [self.target(target) for target in targets]
        hint = targets[0].id if isinstance(targets[0], ast.Name) else ""
        place = self.origin(value)

        def execute(frame: Frame) -> Flow:
            if hint:
                frame.run.hint = hint
            found = compute(frame)
            if isinstance(found, Number):
                found = placed(found, place)
            for bind in binds:
                bind(frame, found)
            return None

        return execute

    def _augmented(self, node: ast.AugAssign) -> Execute:
        load_node = as_load(node.target)
        load = self.expression(load_node)
        compute = self.expression(node.value)
        bind = self.target(node.target)
        sign = sign_of(node.op)
        origin = self.origin(node)

        def execute(frame: Frame) -> Flow:
            before = load(frame)
            operand = compute(frame)
            if not isinstance(before, Number):
                frame.run.touch(before, operand)
            if isinstance(before, list) and sign == "+" and isinstance(operand, list | tuple):
                if len(before) + len(operand) > MAX_ITEMS:
                    raise Unsupported("a very long list", origin)
                before.extend(operand)
                return None
            bind(frame, arithmetic(sign, before, operand, origin))
            return None

        return execute

    def _for(self, node: ast.For) -> Execute:
        over = self.expression(node.iter)
        bind = self.target(node.target)
        body = self.block(node.body)
        after = self.block(node.orelse)
        variable = name_of(node.target)
        header = Origin(
            self.source,
            node,
            self.source.span_of_lines(
                node.lineno,
                node.col_offset,
                node.iter.end_lineno or node.lineno,
                node.iter.end_col_offset or 0,
            ),
        )

        def execute(frame: Frame) -> Flow:
            run = frame.run
            outer = run.loops
            for value in looped(over(frame), frame, header, variable):
                bind(frame, value)
                flow = body(frame)
                if flow is BREAK:
                    run.loops = outer
                    return None
                if isinstance(flow, Returned):
                    run.loops = outer
                    return flow
            run.loops = outer
            return after(frame)

        return execute

    def _while(self, node: ast.While) -> Execute:
        test = self.expression(node.test)
        body = self.block(node.body)
        after = self.block(node.orelse)
        origin = self.origin(node.test)

        def execute(frame: Frame) -> Flow:
            run = frame.run
            outer = run.loops
            loop = run.loop(origin, frame.stack, "while", "while", False)
            iteration = 0
            while truth(test(frame), origin):
                run.step()
                run.loops = (*outer, LoopValue(loop, iteration, None))
                flow = body(frame)
                iteration += 1
                if flow is BREAK:
                    run.loops = outer
                    return None
                if isinstance(flow, Returned):
                    run.loops = outer
                    return flow
            run.loops = outer
            return after(frame)

        return execute

    def _if(self, node: ast.If) -> Execute:
        test = self.expression(node.test)
        then, otherwise = self.block(node.body), self.block(node.orelse)
        origin = self.origin(node.test)

        def execute(frame: Frame) -> Flow:
            held = truth(test(frame), origin)
            frame.run.decided(node, origin, held)
            return (then if held else otherwise)(frame)

        return execute

    def _define(self, node: ast.FunctionDef) -> Execute:
        defaults = [self.expression(value) for value in node.args.defaults]
        keyword_defaults = [
            (arg.arg, self.expression(value))
            for arg, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            if value is not None
        ]

        def execute(frame: Frame) -> Flow:
            function = Function(
                self.function_code(node),
                frame,
                tuple(default(frame) for default in defaults),
                tuple((name, default(frame)) for name, default in keyword_defaults),
                node,
            )
            store(frame, node.name, function)
            return None

        return execute

    def _return(self, value: ast.expr | None) -> Execute:
        if value is None:
            return lambda _: Returned(None)
        compute = self.expression(value)
        return lambda frame: Returned(compute(frame))

    def _assert(self, node: ast.Assert) -> Execute:
        test = self.expression(node.test)
        message = self.expression(node.msg) if node.msg is not None else None
        origin = self.origin(node)
        text = self.source.excerpt(self.origin(node.test).span)

        def execute(frame: Frame) -> Flow:
            if truth(test(frame), origin):
                if len(frame.run.assertions) < 1000:
                    frame.run.assertions.append(Assertion(text, origin.span))
                return None
            shown = text_of(message(frame)) if message is not None else text
            raise KernelFault("assert", shown, origin)

        return execute

    def _raise(self, node: ast.Raise) -> Execute:
        origin = self.origin(node)
        call = node.exc if isinstance(node.exc, ast.Call) else None
        message = self.expression(call.args[0]) if call is not None and call.args else None

        def execute(frame: Frame) -> Flow:
            shown = "the kernel raises an error"
            if message is not None:
                shown = text_of(message(frame))
            raise KernelFault("raise", shown, origin)

        return execute

    def _import(self, node: ast.Import | ast.ImportFrom) -> Execute:
        bindings = imports.bindings(node)

        def execute(frame: Frame) -> Flow:
            for name, value in bindings:
                store(frame, name, value)
            return None

        return execute

    def _with(self, node: ast.With) -> Execute:
        """Scheduling annotations of `nki.language` do not change what is computed."""
        body = self.block(node.body)
        contexts = [self.expression(item.context_expr) for item in node.items]
        origin = self.origin(node)

        def execute(frame: Frame) -> Flow:
            for context in contexts:
                value = context(frame)
                if not isinstance(value, imports.Annotation):
                    raise Unsupported("a with statement", origin)
            return body(frame)

        return execute

    def _try(self, node: ast.Try, body: list[ast.stmt]) -> Execute:
        """`try` around imports: both branches bind the same names, the first is taken."""
        if all(isinstance(inner, ast.Import | ast.ImportFrom) for inner in body):
            return self.block([*body, *node.orelse, *node.finalbody])
        return self._fail(node, "try statements")

    def _delete(self, names: list[str]) -> Execute:
        def execute(frame: Frame) -> Flow:
            for name in names:
                frame.names.pop(name, None)
            return None

        return execute
