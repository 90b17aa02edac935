"""What the sites of a folded program read and write, for telling loops apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from migrate.ir.index import Index, Range, TooComplex
from migrate.nki.declare import writes
from migrate.nki.dependence import Access
from migrate.nki.fold import SiteNode
from migrate.nki.positions import ONE, ZERO, base_index, linear, same_base
from migrate.nki.program import Program
from migrate.nki.resolve import ResolvedSite
from migrate.nki.values import View


class Accesses:
    """The accesses of sites, worked out when first asked for."""

    def __init__(
        self,
        program: Program,
        sites: Mapping[int, ResolvedSite],
        ranges: Mapping[str, Range],
    ) -> None:
        self._program = program
        self._sites = sites
        self._ranges = ranges
        self._found: dict[int, list[Access]] = {}

    def of(self, node: SiteNode) -> list[Access]:
        found = self._found.get(id(node))
        if found is None:
            found = self._found[id(node)] = list(self._accesses(node))
        return found

    def _accesses(self, node: SiteNode) -> Iterator[Access]:
        site = self._sites.get(id(node))
        for name, allocation in node.allocations:
            buffer = self._program.names[allocation]
            view = site.instruction.view(name) if site is not None else None
            if site is None or view is None:
                yield Access(buffer, None, {}, writes(node, name))
                continue
            try:
                coordinates, ranges = self._coordinates(site, name, view)
            except TooComplex:
                yield Access(buffer, None, {}, writes(node, name))
                continue
            yield Access(buffer, coordinates, ranges, writes(node, name))

    def _coordinates(
        self, site: ResolvedSite, name: str, view: View
    ) -> tuple[dict[str, Index], dict[str, Range]]:
        ranges = self._loop_ranges(site)
        bounds = {**self._ranges, **ranges}
        place: list[Index] = []
        for position, extent in enumerate(view.shape):
            index = extent.index()
            if index == ONE:
                place.append(ZERO)
                continue
            axis = f"@{position}"
            _, high = index.bounds(bounds)
            ranges[axis] = (0, None if high is None else max(high - 1, 0))
            place.append(Index.axis(axis))
        base = base_index(view, tuple(place), {**bounds, **ranges})
        coordinates = {f"loop {k}": index for k, index in enumerate(site.leading[name])}
        if view.dtype.bytes != view.buffer.dtype.bytes:
            return coordinates, ranges
        anywhere = {part.dimension for part in view.indirect}
        if same_base(view, site.shapes[name]):
            coordinates.update(
                {f"axis {k}": index for k, index in enumerate(base) if k not in anywhere}
            )
        if not anywhere:
            coordinates["element"] = linear(base, [n.index() for n in view.base])
        return coordinates, ranges

    def _loop_ranges(self, site: ResolvedSite) -> dict[str, Range]:
        found: dict[str, Range] = {}
        for loop, extent in zip(site.node.loops, site.extents, strict=True):
            _, high = extent.bounds({**self._ranges, **found})
            found[loop.axis] = (0, None if high is None else max(high - 1, 0))
        return found
