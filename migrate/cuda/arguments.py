"""Kernel arguments: arrays become buffers, numbers values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from migrate.budget import Meter
from migrate.cuda.ast import Function, Variable
from migrate.cuda.memory import Buffer, Plane, held_as
from migrate.cuda.pointers import Addresses
from migrate.cuda.runtime import Frame, Ref
from migrate.cuda.types import (
    UNSIGNED_CHAR,
    UNSIGNED_LONG,
    Array,
    Pointer,
    Routine,
    Scalar,
    Struct,
    Type,
    Vector,
    scalar_of,
)
from migrate.numerics.domain import Domain
from migrate.source import SourceError

_ZERO = np.asarray(0, dtype=np.int64)


def bind(
    kernel: Function,
    args: Mapping[str, Any],
    domain: Domain[Any],
    meter: Meter,
    addresses: Addresses,
) -> tuple[dict[str, Ref], Frame, dict[int, Any]]:
    """Buffers by name, the file-scope frame, and the other parameters' values.

    A pointer takes an array of its element's dtype; one to a struct of several formats takes a
    structured array or bytes; one to pointers a list of arrays.  A vector takes as many numbers
    as it has components, `None` is a null pointer.
    """
    names = {variable.name for variable in (*kernel.parameters, *kernel.globals_used)}
    for name in args:
        if name not in names:
            raise SourceError(
                f"{kernel.name} has no parameter {name}",
                file=kernel.span.file,
                where=kernel.span,
            )
    buffers: dict[str, Ref] = {}
    values: dict[int, Any] = {}
    file_scope = Frame()
    initials = dict(kernel.initials)
    for variable in (*kernel.parameters, *kernel.globals_used):
        kind = variable.type
        if variable.storage == "reference":
            raise _refuse(variable, "is a reference, which a kernel cannot take")
        if isinstance(kind, Routine) or (isinstance(kind, Struct) and not kind.members):
            values[variable.id] = _ZERO if isinstance(kind, Routine) else ()
            continue
        given = initials.get(variable.name) if variable.storage != "parameter" else None
        if variable.name not in args and given is not None:
            scalar = scalar_of(kind)
            assert scalar is not None
            value = np.array(given).astype(scalar.dtype.numpy)
            ref = Ref(_buffer(variable, value, domain, meter, addresses), _ZERO)
            buffers[variable.name] = file_scope.buffers[variable.id] = ref
            continue
        if variable.name not in args:
            raise SourceError(
                f"{kernel.name} needs a value for {variable.name}",
                file=kernel.span.file,
                where=variable.span,
            )
        value = args[variable.name]
        if variable.storage == "parameter" and isinstance(kind, Scalar):
            values[variable.id] = _number(variable, value, kind, domain)
            continue
        if variable.storage == "parameter" and isinstance(kind, Vector):
            values[variable.id] = _components(variable, value, kind, domain)
            continue
        if value is None and isinstance(kind, Pointer):
            values[variable.id] = Ref(None, _ZERO)
            continue
        buffer = _buffer(variable, value, domain, meter, addresses)
        ref = Ref(buffer, _ZERO)
        if variable.storage == "parameter":
            values[variable.id] = ref
            if isinstance(kind, Pointer):
                buffers[variable.name] = ref
        else:
            buffers[variable.name] = ref
            file_scope.buffers[variable.id] = ref
    return buffers, file_scope, values


def _refuse(variable: Variable, reason: str) -> SourceError:
    return SourceError(f"{variable.name} {reason}", file=variable.span.file, where=variable.span)


def _number(variable: Variable, value: Any, kind: Scalar, domain: Domain[Any]) -> Any:
    array = np.asarray(value)
    if array.shape != () or array.dtype.kind not in "biuf":
        raise _refuse(variable, f"is {kind}, which takes one number")
    if kind.is_float:
        # 0.9 is meant, though the format holds 0.89999998: what hangs on it is no nearer to that.
        return domain.constant(float(array), kind.dtype, computed=True)
    number = float(array)
    low, high = kind.dtype.range
    # 0xffffffff may be written for an int; what has no such bits is a mistake.
    if not number.is_integer() or not low <= int(array) <= max(high, 2**kind.dtype.bits - 1):
        raise _refuse(variable, f"is {kind}, which has no value {array}")
    return np.asarray(int(array)).astype(kind.dtype.numpy)


def _components(variable: Variable, value: Any, kind: Vector, domain: Domain[Any]) -> Any:
    array = np.asarray(value).reshape(-1)
    if array.size != kind.lanes or array.dtype.kind not in "biuf":
        raise _refuse(variable, f"is {kind}, which takes {kind.lanes} numbers")
    return tuple(_number(variable, part, kind.element, domain) for part in array)


def _buffer(
    variable: Variable, value: Any, domain: Domain[Any], meter: Meter, addresses: Addresses
) -> Buffer:
    element: Type = variable.type.element if isinstance(variable.type, Pointer) else variable.type
    inner = element
    while isinstance(inner, Array):
        inner = inner.element
    if isinstance(inner, Pointer):
        return _pointers(variable, inner, value, domain, meter, addresses)
    if value is None or not isinstance(inner, Scalar | Vector | Struct):
        raise _refuse(variable, f"is {variable.type}, which cannot be given")
    return _filled(variable, scalar_of(inner), inner, value, domain, meter)


def _filled(
    variable: Variable,
    scalar: Scalar | None,
    element: Type,
    value: Any,
    domain: Domain[Any],
    meter: Meter,
) -> Buffer:
    array = np.ascontiguousarray(value)
    space: Any = "constant" if variable.storage == "constant" else "global"
    if scalar is None:
        if array.dtype.itemsize not in (1, element.size):
            raise _refuse(variable, f"points to {element} of {element.size} bytes")
        array = array.reshape(-1).view(np.uint8)
    elif array.dtype != scalar.dtype.numpy:
        raise _refuse(variable, f"points to {scalar}, not to {array.dtype.name}")
    meter.take(array.nbytes + array.size)
    flat = array.reshape(-1)
    buffer = Buffer(variable.name, scalar, flat.nbytes, flat.nbytes, space)
    held = held_as(scalar) if scalar is not None else UNSIGNED_CHAR
    assert held is not None
    if held.is_float:
        data = domain.from_array(flat, held.dtype)
    else:
        data = flat.astype(np.uint8) if flat.dtype == np.bool_ else flat.copy()
        data = data.view(held.dtype.numpy)
    buffer.planes[held] = Plane(1, held, data)
    buffer.stored = np.zeros(flat.size, np.bool_)
    return buffer


def _pointers(
    variable: Variable,
    kind: Pointer,
    value: Any,
    domain: Domain[Any],
    meter: Meter,
    addresses: Addresses,
) -> Buffer:
    """An array of pointers, from a list of arrays."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise _refuse(variable, f"is {variable.type}, which takes a list of arrays")
    numbers: list[int] = []
    for position, part in enumerate(value):
        if part is None:
            numbers.append(0)
            continue
        named = Variable(
            variable.id, f"{variable.name}[{position}]", kind, variable.storage, variable.span
        )
        numbers.append(addresses.of(_buffer(named, part, domain, meter, addresses)))
    array = np.array(numbers, dtype=np.uint64)
    return _filled(variable, UNSIGNED_LONG, UNSIGNED_LONG, array, domain, meter)
