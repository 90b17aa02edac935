"""The IR as text: what `migrate ir` prints and golden files hold."""

from __future__ import annotations

from collections.abc import Sequence

from migrate.ir.index import Index
from migrate.ir.nodes import (
    AsyncCopy,
    Axis,
    Barrier,
    Block,
    Buffer,
    Cast,
    Contract,
    Fill,
    Fold,
    Gather,
    Guard,
    Kernel,
    Load,
    Map,
    Op,
    Opaque,
    Parallel,
    Position,
    Random,
    Reduce,
    Scan,
    Scatter,
    Select,
    Store,
    Transpose,
    Value,
)
from migrate.ir.predicate import TRUE, Predicate
from migrate.source import neutral


def render(kernel: Kernel, *, spans: bool = False) -> str:
    """The kernel as lines of text; with `spans`, each op ends in `@ line:column`."""
    lines = [f"kernel {kernel.name} ({kernel.side})"]
    if kernel.sizes:
        lines.append(f"  sizes {', '.join(kernel.sizes)}")
    if kernel.computed_at is not None:
        at = ", ".join(f"{name} = {value}" for name, value in kernel.computed_at)
        lines.append(f"  read at {at or 'fixed sizes'}")
    lines += [f"  {_buffer(buffer)}" for buffer in kernel.buffers]
    _block(kernel.body, 1, lines, spans)
    for output in kernel.outputs:
        place = "in place" if output.position is None else f"result {output.position}"
        lines.append(f"  output {output.version} ({place})")
    shown = kernel.statements
    lines.append(f"  understood {shown.total - shown.opaque} of {shown.total} statements")
    return "\n".join(lines) + "\n"


def render_op(op: Op) -> str:
    """One op on one line, with what it carries or merges, without what is inside it."""
    return "; ".join((_head(op), *_passed_on(op)))


def _passed_on(op: Op) -> list[str]:
    """What a region hands from round to round, or from its branches to what follows."""
    match op:
        case Fold(state=state):
            return [f"carry {s.inner} = {s.initial} then {s.next} -> {s.result}" for s in state]
        case Guard(merges=merges):
            return [f"merge {m.result} = {m.then} else {m.otherwise}" for m in merges]
        case _:
            return []


def _buffer(buffer: Buffer) -> str:
    shape = ", ".join(map(str, buffer.shape))
    return f"buffer {buffer.name}[{shape}] {buffer.dtype.value} {buffer.space.value} {buffer.role}"


def _block(block: Block, depth: int, lines: list[str], spans: bool) -> None:
    # Regions nest as deep as the source's loops and branches, which front ends bound.
    for op in block:
        where = f"  @ {op.span.start_line}:{op.span.start_column}" if spans else ""
        lines.append("  " * depth + _head(op) + where)
        match op:
            case Parallel(body=body) | Reduce(body=body) | Contract(body=body):
                _block(body, depth + 1, lines, spans)
            case Fold(body=body):
                lines += ["  " * (depth + 1) + line for line in _passed_on(op)]
                _block(body, depth + 1, lines, spans)
            case Guard(body=body, otherwise=otherwise):
                _block(body, depth + 1, lines, spans)
                if otherwise:
                    lines.append("  " * depth + "else")
                    _block(otherwise, depth + 1, lines, spans)
                lines += ["  " * (depth + 1) + line for line in _passed_on(op)]


def _head(op: Op) -> str:
    match op:
        case Parallel(axes=axes, where=where):
            return f"parallel {_axes(axes)}{_where(where)}"
        case Fold(axes=axes, where=where):
            return f"fold {_axes(axes)}{_where(where)}"
        case Guard(condition=condition):
            return f"if {condition}"
        case Reduce(result=result, operator=operator, axes=axes, arg=arg, where=where):
            start = f" from {op.initial}" if op.initial is not None else ""
            over = f"over {_axes(axes)}{_where(where)}{start}"
            return f"{_typed(result)} = reduce {operator} {arg} {over}"
        case Contract(result=result, axes=axes, left=left, right=right, where=where):
            start = f" from {op.initial}" if op.initial is not None else ""
            over = f"over {_axes(axes)}{_where(where)}{start}"
            return f"{_typed(result)} = contract {left}, {right} {over}"
        case Load(result=result, source=source, index=index, where=where):
            return f"{_typed(result)} = load {source}{_index(index)}{_where(where)}"
        case Store(result=result, into=into, index=index, value=value, where=where, mask=mask):
            masked = f" mask {mask}" if mask is not None else ""
            return f"{result} = store {into}{_index(index)} <- {value}{_where(where)}{masked}"
        case Gather(result=result, source=source, index=index, where=where):
            return f"{_typed(result)} = gather {source}{_index(index)}{_where(where)}"
        case Scatter(result=result, into=into, index=index, value=value, where=where):
            combine = f" combine {op.combine}" if op.combine else ""
            masked = f" mask {op.mask}" if op.mask is not None else ""
            how = f"{combine}{_where(where)}{masked}"
            return f"{result} = scatter {into}{_index(index)} <- {value}{how}"
        case AsyncCopy(result=result, into=into, source=source, where=where):
            return (
                f"{result} = copy-async {into}{_index(op.index)}"
                f" <- {source}{_index(op.source_index)}{_where(where)}"
            )
        case Map(result=result, operator=operator, args=args):
            return f"{_typed(result)} = {operator} {', '.join(map(str, args))}"
        case Cast(result=result, arg=arg, rounding=rounding):
            return f"{_typed(result)} = cast {arg} {rounding.value}"
        case Select(result=result, condition=condition, then=then, otherwise=otherwise):
            return f"{_typed(result)} = select {condition} ? {then} : {otherwise}"
        case Fill(result=result, number=number):
            return f"{_typed(result)} = {number!r}"
        case Position(result=result, index=index):
            return f"{_typed(result)} = position {index}"
        case Scan(result=result, operator=operator, axis=axis, arg=arg, inclusive=inclusive):
            which = "inclusive" if inclusive else "exclusive"
            return f"{_typed(result)} = scan {operator} {arg} along {axis} {which}"
        case Transpose(result=result, arg=arg, renames=renames):
            pairs = ", ".join(f"{old} -> {new}" for old, new in renames)
            return f"{_typed(result)} = transpose {arg} ({pairs})"
        case Random(result=result, distribution=distribution, seed=seed, index=index):
            seeds = ", ".join(map(str, seed))
            return f"{_typed(result)} = random {distribution} seed {seeds} at {index}"
        case Barrier(scope=scope):
            return f"barrier {scope}"
        case Opaque(results=made, args=args, text=text, reason=reason):
            gives = ", ".join(map(str, made)) + " = " if made else ""
            given = ", ".join(map(str, args))
            return f"{gives}opaque({given}) {neutral(text)!r}: {neutral(reason)}"


def _typed(value: Value) -> str:
    return f"{value}:{value.dtype.value}"


def _axes(axes: Sequence[Axis]) -> str:
    return ", ".join(f"{a.name}<{a.extent} ({a.kind.value})" for a in axes)


def _index(index: Sequence[Index | Value]) -> str:
    return f"[{', '.join(map(str, index))}]"


def _where(where: Predicate) -> str:
    return "" if where == TRUE else f" where {where}"
