"""Completing a case: only what it leaves open is inferred (see `pipeline.infer`)."""

from __future__ import annotations

from migrate.budget import Budget, Exhausted
from migrate.cuda.check import function
from migrate.cuda.types import Pointer, Scalar
from migrate.ir.index import TooComplex
from migrate.pipeline.infer_signature import parameters
from migrate.pipeline.kernels import Pair
from migrate.source import SourceError


def completed(pair: Pair, budget: Budget | None = None) -> Pair:
    """The pair with its case completed, and sentences on what was inferred.

    A case that states everything is left as it is.  Raises `SourceError` for what is open.
    """
    if _stated(pair):
        return pair
    try:
        from migrate.pipeline.infer import Inference

        return Inference(pair, budget if budget is not None else Budget()).pair_with_case()
    except (Exhausted, TooComplex) as stop:
        raise SourceError(
            f"{stop}; state the sizes, tensors and launch in a case",
            file=pair.case.file or pair.cuda_source.name,
        ) from None


def _stated(pair: Pair) -> bool:
    """Whether the case leaves nothing open."""
    launch, case = pair.launch, pair.case
    if launch.grid is None or launch.block is None:
        return False
    try:
        kernel = function(pair.program, pair.cuda.name, dict(launch.template) or None)
    except SourceError:
        return False
    given = {t.cuda for t in case.tensors} | {s.cuda for s in case.scalars}
    known = {variable.name for variable in (*kernel.parameters, *kernel.globals_used)}
    for tensor in case.tensors:
        name = tensor.cuda
        if name is not None and name not in known and not tensor.symbol and "." not in name:
            raise SourceError(
                f"{kernel.name} has no parameter {name}",
                file=pair.cuda_source.name,
                where=pair.cuda.span,
            )
    if any(
        parameter.name not in given
        for parameter in kernel.parameters
        if isinstance(parameter.type, Pointer | Scalar)
    ):
        return False
    taken = {t.nki for t in case.tensors} | {s.nki for s in case.scalars} | case.nki.args.keys()
    if any(
        not parameter.optional and parameter.name not in taken
        for parameter in parameters(pair.module, pair.nki)
    ):
        return False
    return all(
        tensor.nki is not None or tensor.nki_out is not None
        for tensor in case.tensors
        if tensor.role in ("out", "inout")
    ) and all(tensor.role is not None for tensor in case.tensors)
