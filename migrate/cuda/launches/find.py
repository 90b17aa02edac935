"""Where host code launches kernels, in every form that CUDA and HIP have for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from migrate.budget import Meter
from migrate.cuda.launches.callee import alias, beginning, kernel_of
from migrate.cuda.launches.declare import Body, parameters
from migrate.cuda.launches.extents import dimensions
from migrate.cuda.launches.host import (
    Constant,
    HostExpression,
    NotRead,
    Symbol,
    evaluate,
    readable,
)
from migrate.cuda.launches.names import Names
from migrate.cuda.launches.reader import Reader
from migrate.cuda.launches.terms import ONE, Triple, Unread
from migrate.cuda.launches.text import Words
from migrate.cuda.parse import Program
from migrate.source import Span

MAX_LAUNCHES = 5000
"""In one file."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel.

    `grid` and `block` are (x, y, z); `shared` is in bytes.  `arguments` pairs the kernel's
    parameters in order with expressions (`NotRead` for what is no integer, its text kept) and
    `argument_types` has their declared types as far as they are known.  `template` are the
    template arguments as written, `template_values` the same read.  `form` is `<<<` or the
    name of the function that launches; `function` is the host function it stands in, and
    `instance` what the first call of it in the file gives its template parameters.
    """

    kernel: str
    template: tuple[str, ...]
    grid: Triple
    block: Triple
    shared: HostExpression
    arguments: tuple[HostExpression, ...]
    function: str
    span: Span
    template_values: tuple[HostExpression, ...] = ()
    argument_types: tuple[str, ...] = ()
    form: str = "<<<"
    instance: tuple[tuple[str, int], ...] = ()

    @property
    def read(self) -> bool:
        """Whether grid and block are understood, if only over names."""
        return all(readable(part) for part in (*self.grid, *self.block))


# Functions that launch: where they take (kernel, grid, block, shared, arguments).
_CALLS: Final = {
    "hipLaunchKernelGGL": (0, 1, 2, 3, 5),
    "hipLaunchKernel": (0, 1, 2, 4, -3),
    "hipLaunchCooperativeKernel": (0, 1, 2, 4, -3),
    "cudaLaunchKernel": (0, 1, 2, 4, -3),
    "cudaLaunchCooperativeKernel": (0, 1, 2, 4, -3),
    "cudaLaunchKernelEx": (1, None, None, None, 2),
    "cudaLaunchKernelExC": (1, None, None, None, -2),
    "cuLaunchKernel": (0, 1, 4, 7, -9),
    "cuLaunchCooperativeKernel": (0, 1, 4, 7, -9),
    "hipModuleLaunchKernel": (0, 1, 4, 7, -9),
}
_MENTIONED = re.compile(rb"<<<|\b(?:" + "|".join(_CALLS).encode() + rb")\b|<\s<\s?<")


def launches(program: Program, meter: Meter | None = None) -> tuple[Launch, ...]:
    """Every launch of a file that names a kernel, in file order.

    Raises `Exhausted` when the meter runs out.
    """
    if _MENTIONED.search(program.expanded.text) is None:
        return ()
    text = Words.of(program.expanded.text, program.expanded.macros)
    names = Names(text)
    found: list[tuple[int, Launch]] = []
    for mark in text.places("<<<")[:MAX_LAUNCHES]:
        if meter is not None:
            meter.step(20)
        launch = _chevrons(mark, names, program)
        if launch is not None:
            found.append((mark, launch))
    for form in _CALLS:
        for at in text.places(form)[:MAX_LAUNCHES]:
            if meter is not None:
                meter.step(20)
            launch = _call(at, form, names, program)
            if launch is not None:
                found.append((at, launch))
    found.sort(key=lambda entry: entry[0])
    # A dispatch macro repeats one launch for every type.
    return tuple(dict.fromkeys(launch for _, launch in found))


def _chevrons(mark: int, names: Names, program: Program) -> Launch | None:
    text = names.text
    end = len(text.words)
    close = mark + 1
    while close < end and text.words[close] != ">>>":
        if text.words[close] in (";", "{", "}") and text.words[close] != "{":
            return None
        close = text.closing(close, end) if text.words[close] in ("(", "[", "{") else close
        close += 1
    opening = close + 1
    if opening >= end or text.words[opening] != "(":
        return None
    last = text.closing(opening, end)
    callee = beginning(mark, text)
    if callee is None or last >= end:
        return None
    reader = Reader(names)
    configuration = text.split(mark + 1, close)
    if len(configuration) < 2:
        return None
    return _made(
        reader,
        program,
        callee=(callee, mark),
        grid=dimensions(reader, *configuration[0]),
        block=dimensions(Reader(names), *configuration[1]),
        shared=(
            Reader(names).expression(*configuration[2]) if len(configuration) > 2 else Constant(0)
        ),
        arguments=[part for part in text.split(opening + 1, last) if part[0] < part[1]],
        span=(callee, last + 1),
        form="<<<",
    )


def _call(at: int, form: str, names: Names, program: Program) -> Launch | None:
    text = names.text
    end = len(text.words)
    opening = at + 1
    if opening < end and text.words[opening] == "<":
        opening = text.angle(opening, end) or opening
    if opening >= end or text.words[opening] != "(":
        return None
    last = text.closing(opening, end)
    parts = text.split(opening + 1, last)
    where, grid_at, block_at, shared_at, passed_at = _CALLS[form]
    passed = [part for part in parts[abs(passed_at) :] if part[0] < part[1]]
    if last >= end or len(parts) < max(abs(passed_at), 2) or _declares(at, text):
        return None
    grid: Triple
    block: Triple
    shared: HostExpression
    if grid_at is None or block_at is None or shared_at is None:
        grid, block, shared = _configured(parts[0], names)
    elif block_at - grid_at == 3:
        grid, block = (
            _three([Reader(names).expression(*part) for part in parts[first : first + 3]])
            for first in (grid_at, block_at)
        )
        shared = Reader(names).expression(*parts[shared_at])
    else:
        grid = dimensions(Reader(names), *parts[grid_at])
        block = dimensions(Reader(names), *parts[block_at])
        shared = (
            Reader(names).expression(*parts[shared_at]) if shared_at < len(parts) else Constant(0)
        )
    if passed_at < 0:
        passed = _packed(parts[-passed_at], names) if -passed_at < len(parts) else []
    return _made(
        Reader(names),
        program,
        callee=parts[where],
        grid=grid,
        block=block,
        shared=shared,
        arguments=passed,
        span=(at, last + 1),
        form=form,
    )


def _declares(at: int, text: Words) -> bool:
    """Whether a name stands where it is declared, not called."""
    before = text.words[at - 1] if at else ""
    return bool(before) and (before == "CUDARTAPI" or before in ("cudaError_t", "hipError_t"))


def _three(items: list[HostExpression]) -> Triple:
    x, y, z = (*items, ONE, ONE, ONE)[:3]
    return x, y, z


def _configured(part: tuple[int, int], names: Names) -> tuple[Triple, Triple, HostExpression]:
    """Extents and bytes of a `cudaLaunchConfig_t`, from what its fields are given."""
    start, end = part
    text = names.text
    start += text.words[start] in ("&", "*")
    if end != start + 1 or text.kinds[start] != "name":
        unread = NotRead(text.text(*part))
        return (unread,) * 3, (unread,) * 3, unread
    name = text.words[start]
    declared = names.lookup(name, start)

    def one(*fields: str) -> HostExpression:
        try:
            found = declared and Reader(names).variable(declared, fields, start)
        except Unread:
            found = None
        return found.value if found else Symbol(".".join((name, *fields)), "variable")

    grid, block = (_three([one(f, axis) for axis in "xyz"]) for f in ("gridDim", "blockDim"))
    return grid, block, one("dynamicSmemBytes")


def _packed(part: tuple[int, int], names: Names) -> list[tuple[int, int]]:
    """The arguments of `void* args[] = {&a, &b}`."""
    start, end = part
    text = names.text
    if end == start + 1 and text.kinds[start] == "name":
        declared = names.lookup(text.words[start], start)
        if declared is None or declared.form not in ("=", "{"):
            return []
        start, end = declared.start, declared.end
        if declared.form == "{":
            return _addressed(text, start, end)
    opening = next((at for at in range(start, end) if text.words[at] == "{"), None)
    if opening is None:
        return []
    return _addressed(text, opening + 1, text.closing(opening, end))


def _addressed(text: Words, start: int, end: int) -> list[tuple[int, int]]:
    found = []
    for begin, stop in text.split(start, end):
        while begin < stop and text.words[begin] == "(" and text.partner[begin] < stop - 1:
            begin = text.partner[begin] + 1
        if begin < stop and text.words[begin] == "&":
            begin += 1
        if begin < stop:
            found.append((begin, stop))
    return found


def _made(
    reader: Reader,
    program: Program,
    *,
    callee: tuple[int, int],
    grid: Triple,
    block: Triple,
    shared: HostExpression,
    arguments: list[tuple[int, int]],
    span: tuple[int, int],
    form: str,
) -> Launch | None:
    names = reader.names
    text = names.text
    named = kernel_of(callee, names)
    if named is None:
        return None
    kernel, template = named
    parts = text.split(*template) if template[0] < template[1] else []
    host = names.enclosing_function(span[0])
    return Launch(
        kernel=kernel,
        template=tuple(alias(part, names) for part in parts),
        grid=grid,
        block=block,
        shared=shared,
        arguments=tuple(_argument(part, names) for part in arguments),
        function=host.name if host is not None else "",
        span=program.expanded.span(text.starts[span[0]], text.ends[span[1] - 1]),
        template_values=tuple(Reader(names).expression(*part) for part in parts),
        argument_types=tuple(_argument_type(part, names) for part in arguments),
        form=form,
        instance=_instance(host, names) if host is not None else (),
    )


def _instance(host: Body, names: Names) -> tuple[tuple[str, int], ...]:
    """The template arguments of the first call of a host function that names them."""
    text = names.text
    if host.template[0] >= host.template[1]:
        return ()
    wanted = parameters(text, *host.template, template=True)
    for at in text.places(host.name):
        if at + 1 >= len(text.words) or text.words[at + 1] != "<":
            continue
        closed = text.angle(at + 1, len(text.words))
        if closed is None or text.words[closed : closed + 1] != ("(",):
            continue
        given = text.split(at + 2, closed - 1)
        found = [evaluate(Reader(names).expression(*part), {}) for part in given[: len(wanted)]]
        pairs = zip(wanted, found, strict=False)
        numbers = tuple((text.words[p.at], n) for p, n in pairs if n is not None)
        if numbers:
            return numbers
    return ()


def _argument(part: tuple[int, int], names: Names) -> HostExpression:
    """An argument as an integer expression; truth values and real numbers by their text."""
    text = names.text
    shown = text.text(*part)
    if part[1] == part[0] + 1 and shown in ("true", "false"):
        return NotRead(shown)
    reader = Reader(names)
    try:
        term = reader.term(*part)
    except Unread:
        return NotRead(shown)
    return NotRead(shown) if term.real else term.value


def _argument_type(part: tuple[int, int], names: Names) -> str:
    """The declared type of an argument, or that of the cast in front of it."""
    text = names.text
    start, end = part
    if text.words[start] == "(" and text.closing(start, end) < end - 1:
        inside = text.text(start + 1, text.closing(start, end))
        return inside if "*" in inside else ""
    if text.words[start] in ("reinterpret_cast", "static_cast"):
        closed = text.angle(start + 1, end)
        return text.text(start + 2, closed - 1) if closed is not None else ""
    if text.kinds[start] != "name":
        return ""
    if "data_ptr" in text.words[start:end]:
        return f"{_data_ptr(text, start, end)}"
    stop = start + 1
    if stop < end and text.words[stop] not in ("+", "["):
        return ""
    kind = Reader(names).kind(text.words[start], start)
    return "" if stop < end and text.words[stop] == "[" and "*" not in kind else kind


def _data_ptr(text: Words, start: int, end: int) -> str:
    at = text.words.index("data_ptr", start, end) + 1
    if at < end and text.words[at] == "<" and (closed := text.angle(at, end)) is not None:
        return f"{text.text(at + 1, closed - 1)}*"
    return ""
