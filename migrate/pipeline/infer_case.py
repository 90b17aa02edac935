"""A guess at how two kernels belong together, and the case that says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from migrate.case.types import Case, Integer, Scalar, Tensor
from migrate.ir.index import Index
from migrate.numerics.dtypes import DType
from migrate.pipeline.infer_cuda import Subject, stated_for
from migrate.pipeline.infer_host import NOTHING, Host, launched, spelled
from migrate.pipeline.infer_match import Array, Match
from migrate.pipeline.kernels import Pair
from migrate.source import SourceError

_NKI_DTYPES = {DType.FLOAT64: "float32", DType.INT64: "int32", DType.UINT64: "uint32"}
"""Formats that no engine computes in, and what a kernel is given in their place."""


@dataclass(frozen=True, slots=True)
class Guess:
    """How the kernels belong together.

    `layouts` are by array.  `outputs` are positions in the NKI kernel's return value.
    `floats` are values of scalars, `constants` of integers that decide no shape.  `unordered`
    are arrays whose axes no access puts in order.  `host` is what a wrapper of the NKI kernel
    says, `settled` are the arrays whose layout it decides.
    """

    subject: Subject
    match: Match
    layouts: Mapping[str, str | None] = field(default_factory=dict)
    outputs: Mapping[str, int] = field(default_factory=dict)
    floats: Mapping[str, float] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)
    unordered: frozenset[str] = frozenset()
    host: Host = NOTHING
    settled: frozenset[str] = frozenset()


def case_of(pair: Pair, guess: Guess, sizes: Mapping[str, Sequence[int]]) -> Case:
    """The guess as a case; what the pair's case states stays."""
    subject = guess.subject
    launch = msgspec.structs.replace(
        pair.launch,
        kernel=pair.cuda.name,
        grid=_extents(subject.grid) if pair.launch.grid is None else pair.launch.grid,
        block=_extents(subject.block) if pair.launch.block is None else pair.launch.block,
        dynamic_shared=pair.launch.dynamic_shared or integer(subject.shared),
        template=dict(subject.template),
    )
    tensors = [_tensor(array, guess, pair) for array in subject.arrays]
    mine = {tensor.name for tensor in tensors}
    rest = [tensor for tensor in pair.case.tensors if tensor.name not in mine]
    nki = pair.case.nki
    if not nki.grid:
        grid = tuple(map(integer, launched(guess.host, subject)))
        nki = msgspec.structs.replace(nki, grid=grid)
    return msgspec.structs.replace(
        pair.case,
        cuda=msgspec.structs.replace(pair.case.cuda, launch=(launch,)),
        nki=nki,
        sizes={**{n: tuple(v) for n, v in sizes.items()}, **pair.case.sizes},
        tensors=(*tensors, *rest),
        scalars=_scalars(guess, pair.case),
    )


def _tensor(array: Array, guess: Guess, pair: Pair) -> Tensor:
    stated = stated_for(array.name, pair.case.tensors)
    shape = tuple(map(integer, array.extents or ()))
    nki = guess.match.arrays.get(array.name)
    position = guess.outputs.get(array.name)
    layout = guess.layouts.get(array.name)
    cast = guess.host.dtype(array.name) if array.is_input else None
    narrow = _NKI_DTYPES.get(array.dtype)
    if cast is not None and cast != array.dtype:
        narrow = _NKI_DTYPES.get(cast, cast.value)
    if stated is None:
        return Tensor(
            name=array.name,
            shape=shape,
            dtype=None if narrow else array.dtype.value,
            cuda_dtype=array.dtype.value if narrow else None,
            nki_dtype=narrow,
            role=array.role or "in",  # type: ignore[arg-type]  # one of the IR's roles
            cuda=array.name,
            nki=nki,
            nki_out=position,
            nki_layout=layout,
        )
    untyped = stated.dtype is None and stated.cuda_dtype is None
    return msgspec.structs.replace(
        stated,
        dtype=array.dtype.value if untyped else stated.dtype,
        role=stated.role or array.role or "in",
        cuda=stated.cuda or array.name,
        nki=stated.nki or nki,
        nki_out=stated.nki_out if stated.nki_out is not None else position,
        nki_layout=stated.nki_layout or layout,
    )


def _scalars(guess: Guess, case: Case) -> tuple[Scalar, ...]:
    subject, matched = guess.subject, guess.match.scalars
    stated = {scalar.cuda for scalar in case.scalars}
    stated_nki = {scalar.nki for scalar in case.scalars}

    def nki(name: str) -> str | None:
        given = matched.get(name)
        return None if given in stated_nki else given

    found = [
        msgspec.structs.replace(scalar, nki=nki(scalar.cuda))
        if scalar.cuda is not None and scalar.nki is None
        else scalar
        for scalar in case.scalars
    ]
    for name, index in subject.integers.items():
        if name not in stated:
            value = integer(index.substitute(guess.constants))
            dtype = subject.dtypes[name]
            found.append(Scalar(name=name, value=value, cuda=name, nki=nki(name), dtype=dtype))
    for name, number in guess.floats.items():
        if name not in stated:
            dtype = subject.dtypes[name]
            found.append(Scalar(name=name, value=number, cuda=name, nki=nki(name), dtype=dtype))
    for name in subject.sizes():
        # A size that only the NKI kernel is given as an argument.
        if name in matched and name not in subject.integers:
            found.append(Scalar(name=name, value=name, nki=nki(name), dtype="int32"))
    return tuple(found)


def _extents(extents: Sequence[Index]) -> tuple[Integer, ...]:
    return tuple(map(integer, extents))


def integer(index: Index) -> Integer:
    """An expression as a case writes it; raises `SourceError` for one that it cannot."""
    if index.constant is not None:
        return index.constant
    text = spelled(index)
    if text is not None:
        return text
    raise SourceError(
        f"what was inferred is no expression of a case: {index}; state it", file="the case"
    )
