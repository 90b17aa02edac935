"""`nki.collectives` for a rank that is alone in its group: what it sends it gets itself.

One rank is run.  What several of them do together is not known from it, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from migrate.nki.errors import KernelFault, Unsupported
from migrate.nki.frames import Frame
from migrate.nki.issue import issue
from migrate.nki.operations import items_of
from migrate.nki.symbols import Number, Origin, constant
from migrate.nki.values import Builtin, OperatorName, View, describe

REDUCING = frozenset({"add", "minimum", "maximum"})
"""Operators of collectives (nki/api/nki/collectives)."""

_PARAMETERS = {
    "all_reduce": ("srcs", "dsts", "replica_group", "op", "priority", "name"),
    "all_gather": ("srcs", "dsts", "replica_group", "collective_dim", "priority", "name"),
    "reduce_scatter": (
        "srcs", "dsts", "replica_group", "collective_dim", "op", "priority", "name",
    ),
    "all_to_all": ("srcs", "dsts", "replica_group", "collective_dim", "priority", "name"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReplicaGroup:
    """The lists of ranks that take part in a collective."""

    described: ClassVar[str] = "a replica group"
    ranks: tuple[tuple[int, ...], ...]


def _group(
    _: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> ReplicaGroup:
    """`ReplicaGroup([[0, 1], [2, 3]])`."""
    if len(args) != 1 or keywords:
        raise Unsupported("ReplicaGroup with other arguments than its lists of ranks", origin)
    lists: list[tuple[int, ...]] = []
    for ranks in items_of(args[0], origin):
        numbers = items_of(ranks, origin)
        if not all(isinstance(rank, Number) and rank.integral for rank in numbers):
            raise Unsupported("ranks that are not integers", origin)
        lists.append(tuple(int(rank.value) for rank in numbers if isinstance(rank, Number)))
    return ReplicaGroup(tuple(lists))


def _rank(
    frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
) -> Number:
    """The one rank there is in a run; what is read without one is for all of them."""
    if args or keywords.keys() - {"name"}:
        raise KernelFault("type", "rank_id is called with the wrong arguments", origin)
    if frame.run.accumulators is None:
        raise Unsupported("which rank of a group it is", origin)
    return constant(0, origin)


def _collective(name: str) -> Callable[..., object]:
    parameters = _PARAMETERS[name]

    def call(
        frame: Frame, args: tuple[object, ...], keywords: dict[str, object], origin: Origin
    ) -> object:
        given = {**dict(zip(parameters, args, strict=False)), **keywords}
        needed = parameters[:-2]
        if len(args) > len(parameters) or given.keys() - set(parameters):
            raise KernelFault("type", f"{name} is called with the wrong arguments", origin)
        for parameter in needed:
            if parameter not in given:
                raise KernelFault("type", f"{name} is not given {parameter}", origin)
        _alone(given["replica_group"], name, origin)
        if "op" in needed:
            op = given["op"]
            if not isinstance(op, OperatorName) or op.name not in REDUCING:
                raise KernelFault("value", f"{name} with {describe(op)} as op", origin)
        sources, targets = (_tensors(given[side], name, origin) for side in ("srcs", "dsts"))
        if len(sources) != len(targets):
            raise KernelFault(
                "value", f"{name} from {len(sources)} tensors to {len(targets)}", origin
            )
        for part, (source, target) in enumerate(zip(sources, targets, strict=True)):
            issue("dma_copy", (target, source), {}, frame, origin, part, on_every_target=True)
        return None

    return call


def _alone(group: object, name: str, origin: Origin) -> None:
    if not isinstance(group, ReplicaGroup):
        raise KernelFault("type", f"{name} with {describe(group)} as replica_group", origin)
    most = max((len(ranks) for ranks in group.ranks), default=0)
    if most != 1:
        raise Unsupported(f"{name} between {most} ranks, of which one is run", origin)


def _tensors(value: object, name: str, origin: Origin) -> list[View]:
    items = items_of(value, origin) if isinstance(value, list | tuple) else ()
    views = [item for item in items if isinstance(item, View)]
    if not views or len(views) != len(items):
        raise KernelFault("type", f"{name} takes lists of tensors", origin)
    return views


FUNCTIONS: dict[str, object] = {
    "ReplicaGroup": Builtin("ReplicaGroup", _group),
    "rank_id": Builtin("rank_id", _rank),
    **{name: Builtin(name, _collective(name)) for name in _PARAMETERS},
}
"""What is read of `nki.collectives`."""
