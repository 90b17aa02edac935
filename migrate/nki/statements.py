"""Statements of kernel source as closures over a frame.

A statement that is not understood does not end the reading: it is reported, the names
it would have bound become unknown, and what it may have touched is handed on as an
opaque instruction.  An error that the compiler would report does end it.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from migrate.budget import Exhausted
from migrate.nki import (
    definitions,
    deleting,
    device_loops,
    forgetting,
    generators,
    managing,
    modules,
    patterns,
    trying,
)
from migrate.nki.calls import call
from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.expressions import Expressions, sign_of
from migrate.nki.flow import BREAK, CONTINUE, Execute, Flow, Returned
from migrate.nki.frames import Assertion, Code, Evaluate, Frame
from migrate.nki.language import assigning
from migrate.nki.objects import Class, Cursor, Generator, Instance, Set
from migrate.nki.operations import arithmetic, text_of, truth
from migrate.nki.parse import is_jit
from migrate.nki.registers import DeviceRange, Register, settled
from migrate.nki.scoping import lookup, looped, name_of, store
from migrate.nki.symbols import Number, Origin, placed
from migrate.nki.syntax import as_load, bound_names, depth_of, own_statements, views_in, yields
from migrate.nki.values import MAX_ITEMS, Function, LoopValue, Unknown, View
from migrate.source import Source

if TYPE_CHECKING:
    from migrate.nki.expressions import Assign

GIVING_UP = 40
"""Steps that reporting an opaque statement is worth."""

_COMPILERS: WeakKeyDictionary[ast.Module, Compiler] = WeakKeyDictionary()


def compiler_of(tree: ast.Module, source: Source, file: Path | None) -> Compiler:
    """The compiler of a parsed file, with what it has compiled before: it depends on no run."""
    found = _COMPILERS.get(tree)
    if found is None or found.source is not source or found.file != file:
        found = _COMPILERS[tree] = Compiler(source, file)
    return found


class Compiler(Expressions):
    """Compiles statements and functions of one source file, which lies at `file` if anywhere."""

    def __init__(self, source: Source, file: Path | None = None) -> None:
        super().__init__(source)
        self.file = file
        self._codes: dict[int, Code] = {}
        self._top: dict[int, Execute] = {}

    def top_statement(self, node: ast.stmt) -> Execute:
        """A statement of the module itself; compiled once."""
        found = self._top.get(id(node))
        if found is None:
            found = self._top[id(node)] = self.statement(node)
        return found

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
        bound, outer, above = set(parameters), set[str](), set[str]()
        for inner in own_statements(node.body):
            match inner:
                case ast.Nonlocal(names=names):
                    outer.update(names)
                case ast.Global(names=names):
                    outer.update(names)
                    above.update(names)
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
            frozenset(above),
            yields(node.body),
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
                    if gap.span is None and gap.origin is not None:
                        gap.span = run.reached(gap.origin.span, frame.stack)
                    self._give_up(node, gap, frame)
                    continue
                except KernelFault as fault:
                    if fault.origin is None:
                        fault.origin = self.origin(node)
                    if fault.span is None:
                        fault.span = run.reached(fault.origin.span, frame.stack)
                    raise
                if flow is not None:
                    return flow
            return None

        return execute

    def _give_up(self, node: ast.stmt, gap: Unsupported, frame: Frame) -> None:
        """Report a statement as opaque and forget what it may have changed."""
        run = frame.run
        leaves = any(isinstance(inner, ast.Return) for inner in own_statements([node]))
        if leaves or not run.open or yields([node]):
            # What the function returns is unknown: the caller's statement is opaque too.
            raise gap
        run.step(GIVING_UP)
        span = gap.span or run.reached((gap.origin or self.origin(node)).span, frame.stack)
        run.event("unsupported", gap.reason, span)
        run.opaque_statements.add(self.origin(node).span)
        touched: list[View] = []
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                self.forget(inner, frame, touched)
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

    def forget(self, node: ast.Name, frame: Frame, touched: list[View]) -> None:
        """What a statement that was not understood may have changed through a name."""
        try:
            value = lookup(frame, node.id, self.origin(node))
        except (Unsupported, KernelFault):
            return
        if isinstance(value, View | list | tuple | dict | Instance):
            views_in(value, touched)
        if isinstance(value, Instance):
            forgetting.forget(value)
        if isinstance(value, list | dict | Set | Cursor | Generator):
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
            case ast.Nonlocal() | ast.Global():
                return lambda _: None
            case ast.With():
                return self._with(node)
            case ast.Try():
                return trying.compiled(self, node)
            case ast.Match():
                return patterns.compiled(self, node)
            case ast.Delete(targets=targets):
                return self._delete(targets)
            case ast.ClassDef():
                return self._class(node)
            case _:
                return self._fail(node, f"{type(node).__name__} statements")

    def _fail(self, node: ast.stmt, what: str) -> Execute:
        origin = self.origin(node)

        def fail(_: Frame) -> Flow:
            raise Unsupported(what, origin)

        return fail

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
        filled = None
        if len(targets) == 1 and isinstance(targets[0], ast.Subscript):
            filled = assigning.into(self.expression(as_load(targets[0])), compute, value)

        def execute(frame: Frame) -> Flow:
            if hint:
                frame.run.hint = hint
            if filled is not None and frame.run.legacy:
                found = filled(frame)
                if found is assigning.WRITTEN:
                    return None
            else:
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

        adds = assigning.onto(load, compute, node.value, sign, origin)

        def execute(frame: Frame) -> Flow:
            if frame.run.legacy and adds(frame):
                return None
            before = load(frame)
            operand = compute(frame)
            if not isinstance(before, Number):
                frame.run.touch(before, operand)
            if isinstance(before, list) and sign == "+" and isinstance(operand, list | tuple):
                if len(before) + len(operand) > MAX_ITEMS:
                    raise Unsupported("a very long list", origin)
                before.extend(operand)
                return None
            made = arithmetic(sign, before, operand, origin)
            if sign == "*" and not isinstance(made, Number):
                frame.run.touch(made)
            bind(frame, made)
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
            values = over(frame)
            if isinstance(values, DeviceRange):

                def turn(position: object) -> Flow:
                    bind(frame, position)
                    return body(frame)

                device_loops.run_range(values, frame, header, variable, turn)
                return after(frame)
            if isinstance(values, Generator) and values.rest is None:
                flow = self._driven(values, bind, body, frame, header)
                return after(frame) if flow is None else None if flow is BREAK else flow
            for value in looped(values, frame, header, variable):
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

    def _driven(
        self, values: Generator, bind: Assign, body: Execute, frame: Frame, origin: Origin
    ) -> Flow:
        """A loop over a generator: the body stands in the place of every `yield`."""
        run = frame.run
        left: list[Flow] = []
        several = values.code.yields > 1
        stack = frame.stack

        def turn(value: object, place: Origin) -> None:
            run.step()
            if several:
                # Each `yield` has instructions of its own.
                frame.stack = run.stack(stack, place, values.code.name)
            try:
                bind(frame, value)
                flow = body(frame)
            finally:
                frame.stack = stack
            if flow is BREAK or isinstance(flow, Returned):
                left.append(flow)
                raise generators.Stop

        try:
            generators.drive(values, turn, origin)
        except generators.Stop:
            if not left:
                raise
        return left[0] if left else None

    def _while(self, node: ast.While) -> Execute:
        test = self.expression(node.test)
        body = self.block(node.body)
        after = self.block(node.orelse)
        origin, whole = self.origin(node.test), self.origin(node)

        def execute(frame: Frame) -> Flow:
            run = frame.run
            outer = run.loops
            loop = run.loop(origin, frame.stack, "while", "while", False)
            iteration = 0
            while True:
                found = settled(run, test(frame))
                if isinstance(found, Register):
                    run.loops = outer
                    device_loops.run_while(found, frame, whole, lambda: body(frame))
                    break
                if not truth(found, origin):
                    break
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
            if frame.run.open:
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

        decorators = self._decorators(node)

        def execute(frame: Frame) -> Flow:
            function = Function(
                self.function_code(node),
                frame.enclosing,
                tuple(default(frame) for default in defaults),
                tuple((name, default(frame)) for name, default in keyword_defaults),
                node,
            )
            frame.run.functions_of.setdefault(node, function)
            store(frame, node.name, self._decorated(node, function, decorators, frame))
            return None

        return execute

    def _decorators(self, node: ast.FunctionDef | ast.ClassDef) -> list[tuple[Evaluate, Origin]]:
        """Those that do something, innermost first; a kernel is the function it is made from."""
        return [
            (self.expression(decorator), self.origin(decorator))
            for decorator in reversed(node.decorator_list)
            if not is_jit(decorator)
        ]

    def _decorated(
        self,
        node: ast.FunctionDef | ast.ClassDef,
        value: object,
        decorators: list[tuple[Evaluate, Origin]],
        frame: Frame,
    ) -> object:
        for decorator, origin in decorators:
            try:
                value = call(decorator(frame), (value,), {}, frame, origin)
            except Unsupported as gap:
                text = self.source.excerpt(origin.span)
                reason = f"the decorator {text} is not understood ({gap.reason})"
                return Unknown(node.name, reason, origin.span)
        return value

    def _class(self, node: ast.ClassDef) -> Execute:
        bases = [self.expression(base) for base in node.bases]
        body = self.block(node.body)
        decorators = self._decorators(node)
        origin = self.origin(node)

        def base(compute: Evaluate, frame: Frame) -> object:
            try:
                return compute(frame)
            except Unsupported as gap:
                return Unknown("another class", gap.reason, origin.span)

        def execute(frame: Frame) -> Flow:
            frame.run.step(8)
            found = [base(compute, frame) for compute in bases]
            inner = Frame(frame.run, None, frame, frame.stack, frame.depth)
            inner.is_class = True
            body(inner)
            cls: object = definitions.define(node, found, inner.names, frame, origin)
            store(frame, node.name, cls)
            if decorators:
                store(frame, node.name, self._decorated(node, cls, decorators, frame))
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
        compute = self.expression(node.exc) if node.exc is not None else None

        def execute(frame: Frame) -> Flow:
            value: object = None
            if compute is None and frame.run.handling:
                raise frame.run.handling[-1]
            if compute is not None:
                try:
                    value = compute(frame)
                    if isinstance(value, Class):
                        value = call(value, (), {}, frame, origin)
                except Unsupported:
                    # Which error it is was not understood; that there is one was.
                    value = None
            shown = ""
            if isinstance(value, Instance):
                shown = text_of(value) or value.cls.name
            fault = KernelFault("raise", shown or "the kernel raises an error", origin)
            fault.value = value
            raise fault

        return execute

    def _import(self, node: ast.Import | ast.ImportFrom) -> Execute:
        origin = self.origin(node)

        def execute(frame: Frame) -> Flow:
            modules.bind(node, self.file, frame, origin)
            return None

        return execute

    def _with(self, node: ast.With) -> Execute:
        body = self.block(node.body)
        origin = self.origin(node)
        for item in reversed(node.items):
            target = self.target(item.optional_vars) if item.optional_vars is not None else None
            body = managing.compiled(self.expression(item.context_expr), target, body, origin)
        return body

    def _delete(self, targets: list[ast.expr]) -> Execute:
        deletions = [deleting.compiled(self, target) for target in targets]

        def execute(frame: Frame) -> Flow:
            for delete in deletions:
                delete(frame)
            return None

        return execute
