"""How a CUDA kernel is launched, where no case says so: from the host code of its file.

Everything is said over sizes.  An integer parameter is a size of its own name; a variable of
the host code that is passed for it is that size, and any other variable of the host code is a
size of the variable's name.  Numbers that the host code passes are kept as values of sizes.
Without a launch in the file, `infer_geometry` looks at the kernel itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from migrate.case.expression import parse as parse_expression
from migrate.case.types import Integer
from migrate.case.types import Launch as Given
from migrate.cuda import ast
from migrate.cuda.check import function
from migrate.cuda.conversions import number
from migrate.cuda.launches import (
    Constant,
    HostExpression,
    Launch,
    NotRead,
    Operation,
    Symbol,
    deduced,
    evaluate,
    index,
    launches,
    settled,
)
from migrate.cuda.parse import Definition, Program
from migrate.cuda.types import Scalar, named
from migrate.ir.index import Index
from migrate.pipeline.kernels import Pair
from migrate.source import SourceError

Triple = tuple[Index, Index, Index]

TemplateValue = bool | int | float | str

LITERAL = 1024
"""A number written in a launch that is larger counts as one size wherever it is repeated."""

_RESERVED = frozenset({"min", "max", "ceil_div"})
_MAX_DEPTH = 40


def substituted(extents: Triple, values: Mapping[str, int | Index]) -> Triple:
    """The extents of a grid or block with sizes replaced."""
    x, y, z = (extent.substitute(values) for extent in extents)
    return x, y, z


@dataclass(frozen=True, slots=True)
class Started:
    """A kernel with its launch over sizes.

    `grid`, `block` and `shared` (bytes) are `None` where the host code leaves them open.
    `integers` has the value of every integer parameter, `floats` of those floating-point
    ones that the host code gives as numbers.  `values` are the sizes that it gives as
    numbers, `firm` those of them that the launch repeats without a name.
    """

    function: ast.Function
    template: Mapping[str, TemplateValue]
    grid: Triple | None
    block: Triple | None
    shared: Index | None
    integers: Mapping[str, Index]
    floats: Mapping[str, float] = field(default_factory=dict)
    values: Mapping[str, int] = field(default_factory=dict)
    firm: frozenset[str] = frozenset()
    told: tuple[str, ...] = ()


def started(pair: Pair, stated: Mapping[str, Index]) -> Started:
    """The launch of the pair's kernel; `stated` are its integer parameters that a case gives.

    Raises `SourceError` where a template parameter is open.
    """
    return begun(pair.program, pair.cuda, pair.launch, launches(pair.program), stated)


def begun(
    program: Program,
    definition: Definition,
    case: Given,
    host_launches: Sequence[Launch],
    stated: Mapping[str, Index],
    assumed: int | None = None,
    *,
    open_members: bool = False,
) -> Started:
    """As `started`, from launches that stand in any file; `case` is what is given of one.

    `assumed` is the value of template parameters that nothing tells.  With `open_members` the
    integers in a struct that is passed are sizes like any other; else they have to be stated.
    """
    candidates = [la for la in host_launches if la.kernel == definition.name]
    told: list[str] = []
    chosen = next((la for la in candidates if _read(la)), candidates[0] if candidates else None)
    template = _template(program, definition, case, chosen, told, assumed)
    kernel = function(program, definition.name, template or None)
    host = _Host(kernel, chosen, stated, open_members)
    grid = _stated(case.grid)
    block = _stated(case.block)
    shared = _stated_one(case.dynamic_shared) if case.dynamic_shared else None
    if chosen is not None:
        where = f"the launch at {chosen.span.file}:{chosen.span.start_line}"
        if len({_shown(la) for la in candidates}) > 1:
            where = f"{where}, the first of {len(candidates)},"
        if grid is None:
            grid = host.triple(chosen.grid)
            if grid is not None:
                told.append(f"grid [{_listed(grid)}] from {where}")
        if block is None:
            block = host.triple(chosen.block)
            if block is not None:
                told.append(f"block [{_listed(block)}] from {where}")
        if shared is None:
            shared = host.index(chosen.shared)
    return Started(
        function=kernel,
        template=template,
        grid=grid,
        block=block,
        shared=shared,
        integers=host.integers,
        floats=host.floats,
        values=host.values,
        firm=frozenset(host.firm),
        told=tuple(told),
    )


def _read(launch: Launch) -> bool:
    return all(map(settled, (*launch.grid, *launch.block, launch.shared)))


def _shown(launch: Launch) -> str:
    return repr((launch.template, launch.grid, launch.block, launch.shared))


def _listed(extents: Triple) -> str:
    kept = list(extents)
    while len(kept) > 1 and kept[-1].constant == 1:
        kept.pop()
    return ", ".join(map(str, kept))


def _stated(extents: Sequence[Integer] | None) -> Triple | None:
    if extents is None:
        return None
    x, y, z = (*map(_stated_one, extents), Index.of(1), Index.of(1), Index.of(1))[:3]
    return x, y, z


def _stated_one(extent: Integer) -> Index:
    return Index.of(extent) if isinstance(extent, int) else parse_expression(extent).index()


# -- template arguments ---------------------------------------------------------------


def _template(
    program: Program,
    definition: Definition,
    case: Given,
    launch: Launch | None,
    told: list[str],
    assumed: int | None,
) -> dict[str, TemplateValue]:
    """Template arguments: of the case, of the launch, defaults; a type else is `float`."""
    found: dict[str, TemplateValue] = dict(case.template)
    given = list(zip(launch.template, launch.template_values, strict=True)) if launch else []
    types = deduced(program, definition, launch) if launch else {}
    for position, parameter in enumerate(definition.template):
        if parameter.name in found:
            continue
        text, value = given[position] if position < len(given) else ("", None)
        number = evaluate(value, dict(launch.instance)) if value is not None and launch else None
        if parameter.kind == "value" and text in ("true", "false"):
            found[parameter.name] = text == "true"
        elif parameter.kind == "value" and number is not None:
            found[parameter.name] = number
        elif parameter.kind == "type" and named(text) is not None:
            found[parameter.name] = text
        elif position >= len(given) and parameter.name in types:
            found[parameter.name] = types[parameter.name]
        elif parameter.default is not None:
            continue
        elif parameter.kind == "type":
            found[parameter.name] = "float"
            told.append(f"{parameter.name} = float: no launch says which type it is")
        elif assumed is not None:
            truth = parameter.type is not None and program.text(parameter.type) == "bool"
            found[parameter.name] = bool(assumed & 1) if truth else assumed
            told.append(f"{parameter.name} = {found[parameter.name]}: nothing tells it")
        else:
            raise SourceError(
                f"the template parameter {parameter.name} of {definition.name} is open;"
                " state it in a case ([cuda] template)",
                file=program.source.name,
                where=definition.span,
            )
    return found


# -- host expressions -----------------------------------------------------------------


def _positions(kernel: ast.Function) -> Iterator[tuple[int, ast.Variable]]:
    """The parameters with the positions of their arguments, -1 for members of structs.

    A struct's members are parameters of their own here, and one argument of the launch.
    """
    position = -1
    struct = ""
    for parameter in kernel.parameters:
        root, _, member = parameter.name.partition(".")
        if not member or root != struct:
            position += 1
        struct = root if member else ""
        yield (-1 if member else position), parameter


class _Host:
    """What the names of the host code mean as sizes, and the arguments it passes."""

    def __init__(
        self,
        kernel: ast.Function,
        launch: Launch | None,
        stated: Mapping[str, Index],
        open_members: bool,
    ) -> None:
        self.integers: dict[str, Index] = {}
        self.floats: dict[str, float] = {}
        self.values: dict[str, int] = {}
        self.firm: set[str] = set()
        self.symbols: dict[str, Index] = {}
        # A host function that is a template is read as its first call instantiates it.
        for name, fixed in launch.instance if launch is not None else ():
            self.symbols[name] = Index.of(fixed)
        self.passed: list[tuple[HostExpression, str]] = []
        arguments = launch.arguments if launch is not None else ()
        scalars = [
            (position, parameter, parameter.type)
            for position, parameter in _positions(kernel)
            if isinstance(parameter.type, Scalar)
        ]
        self.taken = {parameter.name for _, parameter, kind in scalars if kind.is_integer}
        pending: list[tuple[str, HostExpression]] = []
        for position, parameter, kind in scalars:
            given = arguments[position] if 0 <= position < len(arguments) else None
            name = parameter.name
            if position < 0 and kind.is_integer and name not in stated and not open_members:
                raise SourceError(
                    f"the value of {name}, a member of a struct, is not read from the launch;"
                    f' state it in a case ([[scalar]] cuda = "{name}")',
                    file=kernel.span.file,
                    where=parameter.span,
                )
            if kind.is_float:
                literal = _literal(given)
                if literal is not None:
                    self.floats[name] = literal
                continue
            own = stated.get(name, Index.size(usable(name)))
            match given:
                case Symbol(name=called) if called not in self.symbols:
                    self.integers[name] = self.symbols[called] = own
                case Symbol(name=called):
                    self.integers[name] = self.symbols[called]
                case Constant() | Operation() if (value := evaluate(given, {})) is not None:
                    self.integers[name] = own
                    if name not in stated:
                        self._number(usable(name), given, value)
                case Operation():
                    pending.append((name, given))
                case NotRead(text=("true" | "false") as word):
                    self.integers[name] = Index.of(int(word == "true"))
                case _:
                    self.integers[name] = own
            if name in stated:
                self.integers[name] = stated[name]
        for name, expression in pending:
            own = stated.get(name, Index.size(usable(name)))
            made = self.index(expression)
            self.integers[name] = own if made is None or name in stated else made

    def _number(self, name: str, given: HostExpression, value: int) -> None:
        self.values[name] = value
        match given:
            case Constant(name=""):
                if value <= LITERAL:
                    self.firm.add(name)
                    return
        self.passed.append((given, name))

    def index(self, expression: HostExpression) -> Index | None:
        """The expression over sizes; `None` where it cannot be read.

        What hangs on a call of unknown meaning is no size: any number would do for it.
        """
        if not settled(expression):
            return None
        known = self._repeated(expression, 0)
        for symbol in _symbols(known):
            if symbol not in self.symbols:
                name = usable(symbol)
                while name in self.taken:
                    name = f"host_{name}"
                self.taken.add(name)
                self.symbols[symbol] = Index.size(name)
        return index(known, self.symbols)

    def triple(self, parts: tuple[HostExpression, HostExpression, HostExpression]) -> Triple | None:
        x, y, z = map(self.index, parts)
        return None if x is None or y is None or z is None else (x, y, z)

    def _repeated(self, expression: HostExpression, depth: int) -> HostExpression:
        """The expression with the numbers that are passed as arguments as sizes."""
        for given, name in self.passed:
            if _same(expression, given):
                key = f"size {name}"
                self.symbols[key] = Index.size(name)
                return Symbol(key)
        if isinstance(expression, Operation) and depth < _MAX_DEPTH:
            args = tuple(self._repeated(arg, depth + 1) for arg in expression.args)
            return Operation(expression.operator, args)
        return expression


def _same(left: HostExpression, right: HostExpression) -> bool:
    if isinstance(left, Constant) and isinstance(right, Constant):
        return left.value == right.value and left.name == right.name
    return left == right


def _symbols(expression: HostExpression) -> list[str]:
    found: dict[str, None] = {}
    pending = [expression]
    while pending:
        match pending.pop():
            case Symbol(name=name):
                found.setdefault(name)
            case Operation(args=args):
                pending += reversed(args)
            case Constant() | NotRead():
                pass
    return list(found)


def usable(name: str) -> str:
    """A name that a size can have."""
    made = re.sub(r"\W+", "_", name).strip("_") or "size"
    if made[0].isdigit() or made in _RESERVED:
        made = f"size_{made}"
    return made


def _literal(given: HostExpression | None) -> float | None:
    """The value of a number written in a launch."""
    match given:
        case Constant(value=value):
            return float(value)
        case NotRead(text=text):
            negative = text.startswith("-")
            found = number(text.removeprefix("-").strip())
            if found is not None:
                return -float(found[0]) if negative else float(found[0])
    return None
