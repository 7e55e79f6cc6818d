"""Where a blade is in a body, and what its edge has cut: inner points of the material under the blade's own.

Once in a low step. A point of the blade is in the element that has it where the material lies in the middle
between the sides of the cut, and so at a place X of the material at rest. What the edge has swept there since
the last step is a surface: the edges of elements that it crosses are cut, and the body goes on as it is, with
nodes that part (palpo.physics.bodies.cut_body). So a cut is as fine as the mesh, and lags by a low step at
most; the force of cutting does not wait for it (palpo.physics.engine.blade).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.cut_body import CutBody
from palpo.physics.exchange.constraint_frame import BLADE_POINT, ConstraintFrame
from palpo.physics.mesh.crossings import crossings, meet, mesh_edges
from palpo.physics.mesh.cutting import cut_mesh
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import cross3, dot3
from palpo.physics.systems.multirate.member import Member
from palpo.physics.systems.multirate.needle_paths import tip_yields

Floats = NDArray[np.float64]
Fits = Callable[[NDArray[np.int32]], bool]

NEAR = 0.4
"""Least barycentric weight, below 0, of a place that counts as inside: an edge that touches the surface is to
be held by it in the tick that it breaks through."""

ENTERS = 2
"""Steps inside from which on only what is in the material counts as cut: until then the edge is at the
skin, which has given way in a tick that no frame knew of."""

FAR = 1.5
"""The same of a place at which an edge outside is still followed, so that it cuts the skin it passes."""

MOVED = 0.05
"""Share of the points' distance by which the edge must have moved for its way to be a surface."""

LINE = 2.0
"""Of that distance, how far from a place of the sides the cut is looked for, at most."""

FINE = 4
"""Places between a point of the edge and the middle to the next at which it is looked at whether it cuts."""

AHEAD = 0.25
"""Share of that distance at which what lies before the edge is looked at: whether it has been cut before."""


@kernel
def _locate(x, tets, sides, at, cell, inner, outside, inverse):
    """The elements in which the least weight of points at (k, 3) is greatest, with their weights (k, 4).

    x (n, 3): of the nodes; elements lie in the middle between both of their `sides` (m, 2). outside (k,): by
    how much that weight is below 0. inverse (k, 3, 3): of the edges from an element's first corner, as
    columns.
    """
    c, a, best = np.empty((4, 3)), np.empty((3, 3)), np.empty(3)
    for e in range(sides.shape[0]):
        one, two = sides[e, 0], sides[e, 1]
        for j in range(4):
            p, q = tets[one, j], tets[two, j]
            for i in range(3):
                c[j, i] = 0.5 * (x[p, i] + x[q, i])
        for j in range(3):
            for i in range(3):
                c[j + 1, i] -= c[0, i]
        cross3(c[2], c[3], a[0])
        cross3(c[3], c[1], a[1])
        cross3(c[1], c[2], a[2])
        volume = dot3(c[1], a[0])
        if not volume > 0.0:
            continue
        for k in range(at.shape[0]):
            least, total = np.inf, 0.0
            for j in range(3):
                best[j] = 0.0
                for i in range(3):
                    best[j] += a[j, i] / volume * (at[k, i] - c[0, i])
                least = min(least, best[j])
                total += best[j]
            least = min(least, 1.0 - total)
            if -least < outside[k]:
                outside[k], cell[k], inner[k, 0] = -least, e, 1.0 - total
                for j in range(3):
                    inner[k, j + 1] = best[j]
                    for i in range(3):
                        inverse[k, j, i] = a[j, i] / volume


def axes_of(at: Floats, edge: int) -> tuple[Floats, Floats]:
    """Unit vectors across a blade and where its edge cuts to, of points at (m, 3) [m], `edge` on it."""
    along, behind = at[edge - 1] - at[0], at[edge:].mean(axis=0) - at[:edge].mean(axis=0)
    ahead = behind @ along / (along @ along) * along - behind
    across = np.cross(along, ahead)
    return across / np.linalg.norm(across), ahead / np.linalg.norm(ahead)


@dataclass(frozen=True)
class Blade:
    """A blade that may cut a body."""

    points: NDArray[np.int32]
    """Global numbers of the three points of the tool that its own are weighted of."""
    weights: Floats
    """(m, 3), those of the edge first, one after another."""
    edge: int
    """How many of them are on the edge."""
    direction: Floats
    """Across it and where its edge cuts to, (2, 3), axes of the tool's frame."""
    member: Member
    step: float
    """How far points of the edge are apart [m]."""
    toughness: float
    """Energy to cut the body, an area [J/m2]."""
    puncture: float
    """Push [N] at which the surface gives way."""
    spacing: float
    """About how far its points are apart [m]."""


class BladePath:
    """The places of one blade in one body; `number` is its place in a frame.

    The blade's points are e on its edge, then two for each of the s places of its sides: on the lip that is
    across, and on the one behind. The body's inner points from `first` on are its own, twice as many: those
    of one plan and of the next by turns, so that a point never has another place while the servo's forces on
    it are not yet the body's.
    """

    def __init__(self, number: int, spec: Blade, first: int, shares: Floats) -> None:
        """shares: where the edges of the body's mesh are cut already, as `crossings` tells it."""
        body, m, e = spec.member.body, len(spec.weights), spec.edge
        assert isinstance(body, CutBody)
        self.number, self.spec, self.body, self.first = number, spec, body, first
        self.edges, self.shares = mesh_edges(body.cut.mesh.tets)[0], shares
        self.cell, self.inner = np.zeros(m, np.intp), np.zeros((m, 4))
        """Elements of the mesh that the places are in, and their weights of its corners."""
        self.outside = np.full(m, np.inf)
        """By how much the least of these is below 0."""
        self.edge = np.zeros((spec.edge, 3))
        """Places of the edge in the material at rest [m] to which it has cut, of those `followed`."""
        self.followed = np.zeros(spec.edge, bool)
        self.swept = np.zeros((0, 3, 3))
        """What the edge has passed, triangles at rest [m]."""
        self.told = np.zeros(2 * m - e, BLADE_POINT)
        self.told["give"][:e] = tip_yields(body.material, 0.5 * spec.step)
        self.plan, self.lost = 0, False
        """Number of the places; whether once there was no room for what was cut."""
        self._steps = 0
        """Since it has been inside."""
        self._sides = self._both_sides()
        nodes, tets = body.cut.mesh.nodes, body.cut.mesh.tets
        self._whole = nodes, tets, np.repeat(np.arange(len(tets))[:, None], 2, axis=1)
        """The mesh as it was, at rest, as `_locate` takes it."""
        self._inverse = np.zeros((m, 3, 3))
        """Of the elements that the points are in, of what turns weights into places."""

    def _both_sides(self) -> NDArray[np.int64]:
        """Copies (m, 2) of each element on the two sides of a cut, those of the most material; twice the
        same one where there is but one."""
        cut = self.body.cut
        order = np.lexsort((-cut.volumes, cut.element))
        first = np.searchsorted(cut.element[order], np.arange(len(cut.mesh.tets) + 1))
        return order[np.column_stack([first[:-1], np.minimum(first[:-1] + 1, first[1:] - 1)])]

    def look(self, x: Floats, inside: bool, fits: Fits) -> NDArray[np.int64] | None:
        """Where the blade is, with the tool where x (points, 3) [m] has it, and what its edge has cut.

        inside: whether the servo has it in the tissue. fits: see CutSurface.follow. Returns what
        CutBody.cut_on does if the body was cut.
        """
        spec, e = self.spec, self.spec.edge
        at = spec.weights @ x[spec.points]
        self.outside[:] = np.inf
        _locate(
            self.body.x,
            self.body.cut.tets,
            self._sides,
            at,
            self.cell,
            self.inner,
            self.outside,
            self._inverse,
        )
        rest = self._rest(self.cell, self.inner)
        across, ahead = (self._at_rest(way) for way in axes_of(at, e))
        was = self._cut(rest[:e], ahead[:e], fits) if inside else None
        self._steps = self._steps + 1 if inside else 0
        if not inside:
            self.followed[:] = False
        at_front = ~self._is_cut(rest[:e], across[:e], ahead[:e])
        uncut = self._uncut(rest[:e], across[:e], ahead[:e])
        self.told["inside"][:e] = (at_front & (self.outside[:e] <= NEAR)) | (uncut > 0.0)
        self.told["limit"][:e] = spec.toughness * uncut
        # until a step knows that the servo has it inside, no frame says that it is out
        within = (self.outside <= NEAR) | (not inside)
        self.told["within"] = np.append(within[:e], np.repeat(within[e:], 2))
        self.plan += 1
        self._place_edge()
        self._place_sides(rest[e:], across[e:])
        return was

    def _rest(self, cell: NDArray[np.intp], inner: Floats) -> Floats:
        """Places at rest (k, 3) [m] of weights (k, 4) in elements."""
        mesh = self.body.cut.mesh
        return np.einsum("kw,kwi->ki", inner, mesh.nodes[mesh.tets[cell]])

    def _at_rest(self, way: Floats) -> Floats:
        """Of a vector (3,) what it is in the material at rest at each place, (m, 3)."""
        mesh = self.body.cut.mesh
        corners = mesh.nodes[mesh.tets[self.cell]]
        shift = np.einsum("kij,j->ki", self._inverse, way)
        return np.asarray(np.einsum("kw,kwi->ki", shift, corners[:, 1:] - corners[:, :1]))

    def _cut(self, rest: Floats, ahead: Floats, fits: Fits) -> NDArray[np.int64] | None:
        """Cut what the edge has swept since it was at `edge`; where it has just come, from above the skin."""
        spacing, now, here = self.spec.spacing, rest, self.outside[: self.spec.edge] <= FAR
        came = here & ~self.followed
        self.edge[came] = now[came] - self.body.side * ahead[came]
        moved = np.linalg.norm(now - self.edge, axis=1) > MOVED * spacing
        if not (moved & here).any():
            return None
        before, self.followed = self.edge.copy(), here
        self.edge = now.copy()
        strip = np.flatnonzero(here[:-1] & here[1:])
        new = np.concatenate([
            np.stack([before[strip], before[strip + 1], now[strip + 1]], axis=1),
            np.stack([before[strip], now[strip + 1], now[strip]], axis=1),
        ])  # fmt: skip
        self.swept = np.concatenate([self.swept, new])
        mesh = self.body.cut.mesh
        met = crossings(mesh.nodes, self.edges, new)
        if not (np.isnan(self.shares) & ~np.isnan(met)).any():
            return None
        shares = np.where(np.isnan(self.shares), met, self.shares)
        was = self.body.cut_on(cut_mesh(mesh, shares, self.body.cut), fits)
        self.lost |= was is None
        if was is not None:
            self.shares, self._sides = shares, self._both_sides()
        return was

    def _is_cut(self, rest: Floats, across: Floats, ahead: Floats) -> NDArray[np.bool_]:
        """Before which points of the edge the material has been cut, (edge,)."""
        spacing = self.spec.spacing
        start, share = rest + AHEAD * spacing * ahead - 0.5 * spacing * across, np.full(len(rest), np.inf)
        meet(start, spacing * across, self.swept, share)
        return share < np.inf

    def _uncut(self, rest: Floats, across: Floats, ahead: Floats) -> Floats:
        """Length [m] of the edge, of what each of its points stands for, that is in material not cut yet,
        (edge,).
        """
        t = (np.arange(2 * FINE) + 0.5) / (2 * FINE)
        rest, across, ahead = (
            ((1.0 - t)[:, None] * of[:-1, None] + t[:, None] * of[1:, None]).reshape(-1, 3)
            for of in (rest, across, ahead)
        )
        n, outside = len(rest), np.full(len(rest), np.inf)
        _locate(*self._whole, rest, np.zeros(n, np.intp), np.zeros((n, 4)), outside, np.zeros((n, 3, 3)))
        counts = (outside <= (0.0 if self._steps > ENTERS else NEAR)) & ~self._is_cut(rest, across, ahead)
        halves = counts.reshape(-1, 2, FINE).mean(axis=2) * 0.5 * self.spec.step
        return np.append(halves[:, 0], 0.0) + np.insert(halves[:, 1], 0, 0.0)

    def _own(self) -> slice:
        """The body's inner points that are the blade's in this plan."""
        first = self.first + self.plan % 2 * len(self.told)
        return slice(first, first + len(self.told))

    def _place_edge(self) -> None:
        """Inner points of the edge, in the middle between the sides of the cut."""
        e, tets, first = self.spec.edge, self.body.cut.tets, self._own().start
        one, two = self._sides[self.cell[:e]].T
        share = np.where(one == two, 1.0, 0.5)[:, None]
        self.body.inner[first : first + e] = np.hstack([tets[one], tets[two]])
        self.body.inner_weights[first : first + e] = np.hstack(
            [share * self.inner[:e], (1.0 - share) * self.inner[:e]]
        )

    def _place_sides(self, rest: Floats, across: Floats) -> None:
        """Inner points on both lips, where lines across the blade by its places (s, 3) meet the cut."""
        e, reach, share = self.spec.edge, LINE * self.spec.spacing, np.full(len(rest), np.inf)
        start, way = rest - reach * across, 2.0 * reach * across
        meet(start, way, self.swept, share)
        k = np.flatnonzero(np.isfinite(share))
        at, cell, inner = start[k] + share[k, None] * way[k], np.zeros(len(k), np.intp), np.zeros((len(k), 4))
        outside = np.full(len(k), np.inf)
        _locate(*self._whole, at, cell, inner, outside, np.zeros((len(k), 3, 3)))
        parted = (outside <= 0.0) & (self._sides[cell, 0] != self._sides[cell, 1])
        k, at, cell, inner = k[parted], at[parted], cell[parted], inner[parted]
        self.told["inside"][e:] = np.repeat(np.isin(np.arange(len(rest)), k), 2)
        first = self._own().start + e
        for lip, copy in enumerate(self._lips(cell, at, across[k])):
            rows = first + 2 * k + lip
            self.body.inner[rows, :4], self.body.inner[rows, 4:] = self.body.cut.tets[copy], 0
            self.body.inner_weights[rows, :4], self.body.inner_weights[rows, 4:] = inner, 0.0

    def _lips(self, cell: NDArray[np.intp], at: Floats, across: Floats) -> tuple[NDArray, NDArray]:
        """Copies (k,) of parted elements on the side of their places at (k, 3) that is across, and behind."""
        cut, height = self.body.cut, np.zeros((2, len(cell)))
        own = cut.numbers[np.searchsorted(cut.split, cell)][:, range(4), range(4)]
        up = np.einsum("kwi,ki->kw", cut.mesh.nodes[cut.mesh.tets[cell]] - at[:, None], across)
        one, two = self._sides[cell].T
        for side, copy in enumerate((one, two)):
            real = cut.tets[copy] == own
            height[side] = (up * real).sum(axis=1) / real.sum(axis=1)
        swap = height[0] < height[1]
        return np.where(swap, two, one), np.where(swap, one, two)

    def weights(self) -> Floats:
        """Of the blade's points, as Blade has those of its places, (e + 2 s, 3)."""
        w, e = self.spec.weights, self.spec.edge
        return np.concatenate([w[:e], np.repeat(w[e:], 2, axis=0)])

    def points(self) -> NDArray[np.int32]:
        """Global numbers of the inner points that are inside."""
        first = self.spec.member.first + self.body.first_inner + self._own().start
        return first + np.flatnonzero(self.told["inside"]).astype(np.int32)

    def write(self, frame: ConstraintFrame, f: int) -> None:
        """The places into slot f of a frame."""
        frame.blade_plan[f, self.number] = self.plan
        frame.blades[f, self.number, : len(self.told)] = self.told
