"""Kernel arguments: arrays become buffers, numbers values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from migrate.budget import Meter
from migrate.cuda.ast import (
    Function,
    Variable,
)
from migrate.cuda.runtime import Buffer, Frame, Ref
from migrate.cuda.types import (
    Pointer,
    Scalar,
    scalar_of,
)
from migrate.numerics.domain import Domain
from migrate.source import SourceError


def bind(
    kernel: Function, args: Mapping[str, Any], domain: Domain[Any], meter: Meter
) -> tuple[dict[str, Ref], Frame, dict[int, Any]]:
    """Buffers by name, the file-scope frame, and the scalar parameters' values."""
    names = {variable.name for variable in (*kernel.parameters, *kernel.globals_used)}
    for name in args:
        if name not in names:
            raise SourceError(
                f"{kernel.name} has no parameter {name}",
                file=kernel.span.file,
                where=kernel.span,
            )
    buffers: dict[str, Ref] = {}
    scalars: dict[int, Any] = {}
    file_scope = Frame()
    zero = np.asarray(0, dtype=np.int64)
    for variable in (*kernel.parameters, *kernel.globals_used):
        if variable.name not in args:
            raise SourceError(
                f"{kernel.name} needs a value for {variable.name}",
                file=kernel.span.file,
                where=variable.span,
            )
        value = args[variable.name]
        kind = variable.type
        if variable.storage == "parameter" and isinstance(kind, Scalar):
            scalars[variable.id] = _number(variable, value, kind, domain)
            continue
        if value is None and isinstance(kind, Pointer):
            scalars[variable.id] = Ref(None, zero)
            continue
        buffer = _buffer(variable, value, domain, meter)
        buffers[variable.name] = Ref(buffer, zero)
        if variable.storage == "parameter":
            scalars[variable.id] = buffers[variable.name]
        else:
            file_scope.buffers[variable.id] = buffers[variable.name]
    return buffers, file_scope, scalars


def _number(variable: Variable, value: Any, kind: Scalar, domain: Domain[Any]) -> Any:
    array = np.asarray(value)
    if array.shape != () or array.dtype.kind not in "biuf":
        raise SourceError(
            f"{variable.name} is {kind}, which takes one number",
            file=variable.span.file,
            where=variable.span,
        )
    if kind.is_float:
        return domain.constant(float(array), kind.dtype)
    number = float(array)
    low, high = kind.dtype.range
    # 0xffffffff may be written for an int; what has no such bits is a mistake.
    if not number.is_integer() or not low <= int(array) <= max(high, 2**kind.dtype.bits - 1):
        raise SourceError(
            f"{variable.name} is {kind}, which has no value {array}",
            file=variable.span.file,
            where=variable.span,
        )
    return np.asarray(int(array)).astype(kind.dtype.numpy)


def _buffer(variable: Variable, value: Any, domain: Domain[Any], meter: Meter) -> Buffer:
    scalar = scalar_of(
        variable.type.element if isinstance(variable.type, Pointer) else variable.type
    )
    if scalar is None or value is None:
        raise SourceError(
            f"{variable.name} is {variable.type}, which cannot be given",
            file=variable.span.file,
            where=variable.span,
        )
    array = np.ascontiguousarray(value)
    if array.dtype != scalar.dtype.numpy:
        raise SourceError(
            f"{variable.name} points to {scalar}, not to {array.dtype.name}",
            file=variable.span.file,
            where=variable.span,
        )
    meter.take(array.nbytes + array.size)
    flat = array.reshape(-1)
    data = domain.from_array(flat, scalar.dtype) if scalar.is_float else flat.copy()
    space: Any = "constant" if variable.storage == "constant" else "global"
    stored = np.zeros(flat.size, np.bool_)
    return Buffer(variable.name, scalar, flat.size, data, space, stored=stored)
