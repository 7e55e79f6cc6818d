"""What a cup is set on, place by place: where it is rougher than elsewhere, and where it lets air through.

A wall that is L thick up to where the atmosphere is on its other side, or in its pores, of permeability K,
passes by Darcy's law for an ideal gas at one temperature

    dn/dt = A K / (2 eta L) (p_1^2 - p_2^2) / (R T)

into a cavity, viscous flow alone, as in pores much wider than air's mean free path of 66 nm. So each place
has a seal (palpo.physics.gas.roughness) and a permeance K / (2 eta L) [m/(Pa s)].

A surface that shuts in air, and that of a soft body.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.collision.nearest import Target, fit, target
from palpo.physics.gas.cavity import RIBBON, WALL_B
from palpo.physics.gas.flood import OUTSIDE
from palpo.physics.gas.gaps import farthest
from palpo.physics.gas.law import VISCOSITY
from palpo.physics.gas.rim_flow import double_area
from palpo.physics.gas.roughness import SealTable
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.kernels import inlined, kernel


class Wall(Protocol):
    """A surface that shuts in air; `local`: its vertices (n, 3) [m] in its own axes."""

    surface: SurfaceMesh
    local: NDArray[np.float64]
    odometer: float
    """How far [m] the surface has moved at most in its own axes, altogether."""
    target: Target


class SoftWall:
    """The surface of a soft body, in the world's axes; nodes (n,): of its vertices."""

    def __init__(self, body: SoftBody) -> None:
        self.body = body
        whole = body.mesh.surface(body.name)
        self.surface = whole.compact()
        self.nodes = whole.used_vertices
        self.local = np.ascontiguousarray(body.x[self.nodes])
        self.odometer = 0.0
        self.target = target(self.surface)

    def place_surface(self) -> None:
        """Bring `local` up to date with the body."""
        before = self.local
        self.local = np.ascontiguousarray(self.body.x[self.nodes])
        self.odometer += farthest(self.local, before)

    def fit_target(self) -> None:
        """Bring the target up to date with `local`."""
        fit(self.target.boxes, self.local)


def permeance_of(permeability: float, thickness: float) -> float:
    """K / (2 eta L) [m/(Pa s)] of a wall of that permeability [m2] and thickness [m]."""
    return permeability / (2.0 * VISCOSITY * thickness)


@dataclass(frozen=True, eq=False)
class WallPart:
    """A part of the other surface, in the scene's axes at rest: where a box and a ball overlap.

    seal: None where it is as rough as elsewhere. permeance [m/(Pa s)]: see `permeance_of`.
    """

    low: ArrayLike = (-np.inf, -np.inf, -np.inf)
    high: ArrayLike = (np.inf, np.inf, np.inf)
    centre: ArrayLike = (0.0, 0.0, 0.0)
    radius: float = np.inf
    seal: SealTable | None = None
    permeance: float = 0.0


class Walls(NamedTuple):
    """The kinds of a surface of m vertices: 0, and one for each of r regions, of which the last counts."""

    rest: NDArray[np.float64]  # (m, 3) [m] of its vertices, in the scene's axes at rest
    low: NDArray[np.float64]  # (r, 3) [m]
    high: NDArray[np.float64]  # (r, 3) [m]
    centre: NDArray[np.float64]  # (r, 3) [m]
    radius: NDArray[np.float64]  # (r,) [m]
    first: NDArray[np.float64]  # (r + 1,) of `Seal`, as are the next two
    step: NDArray[np.float64]  # (r + 1,)
    gap: NDArray[np.float64]  # (r + 1, s) [m]
    permeance: NDArray[np.float64]  # (r + 1,) [m/(Pa s)]


def walls_of_regions(rest: ArrayLike, seal: SealTable, regions: Sequence[WallPart] = ()) -> Walls:
    """The kinds of a surface of vertices rest (m, 3) [m]: `seal` everywhere, but for the regions."""
    seals = [seal, *(seal if region.seal is None else region.seal for region in regions)]

    def rows(values: list[ArrayLike]) -> NDArray[np.float64]:
        return np.array(values, float).reshape(-1, 3)

    return Walls(
        np.ascontiguousarray(rest, float),
        rows([r.low for r in regions]),
        rows([r.high for r in regions]),
        rows([r.centre for r in regions]),
        np.array([r.radius for r in regions], float),
        np.array([s.first for s in seals]),
        np.array([s.step for s in seals]),
        np.stack([s.gap for s in seals]),
        np.array([0.0, *(r.permeance for r in regions)]),
    )


@inlined
def _kind_at(walls, parents, weights):
    """The kind of the place that the weights (3,) give of the vertices `parents` (3,)."""
    at = (0.0, 0.0, 0.0)
    for j in range(3):
        rest, w = walls.rest[parents[j]], weights[j]
        at = (at[0] + w * rest[0], at[1] + w * rest[1], at[2] + w * rest[2])
    kind = 0
    for r in range(walls.radius.size):
        inside, square = True, 0.0
        for i in range(3):
            inside &= walls.low[r, i] <= at[i] <= walls.high[r, i]
            square += (at[i] - walls.centre[r, i]) ** 2
        if inside and square <= walls.radius[r] ** 2:
            kind = r + 1
    return kind


@kernel
def find_kinds(walls, gaps, triangles, out):
    """out (n,) = kind of the wall that is nearest to each of n points; 0 for those too far from any.

    gaps: of the points; triangles (t, 3): of the wall.
    """
    for v in range(out.size):
        out[v] = 0
        if walls.radius.size > 0 and gaps.distance[v] < np.inf:
            out[v] = _kind_at(walls, triangles[gaps.triangle[v]], gaps.weights[v])


@kernel
def kinds_of_triangles(walls, triangles, out):
    """out (t,) = kind of the middle of each triangle (t, 3) of the wall."""
    for t in range(out.size):
        out[t] = _kind_at(walls, triangles[t], (1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0))


@kernel
def find_seeping(triangles, x, kind, permeance, cavity, out):
    """out (n,) = what the wall under each vertex lets out of the gap there [m3/(Pa s)], a third per triangle.

    triangles (t, 3), x (n, 3) [m]: the cup's. cavity (n,): of the flood; where the wall is far, it is not
    counted here but in `through_wall`.
    """
    out[:] = 0.0
    for t in range(triangles.shape[0]):
        corners = triangles[t]
        share = double_area(x, corners[0], corners[1], corners[2]) / 6.0
        for j in range(3):
            v = corners[j]
            if cavity[v] < OUTSIDE:
                out[v] += share * permeance[kind[v]]


@kernel
def through_wall(cavities, c, walls):
    """G [m3/(Pa s)] through cavity c's wall on the other surface, by the mean of each triangle's corners."""
    total = 0.0
    for t in range(cavities.span[c, WALL_B], cavities.span[c, RIBBON]):
        corners = cavities.triangles[t]
        mean = 0.0
        for j in range(3):
            k = corners[j]
            mean += walls.permeance[_kind_at(walls, cavities.parents[k], cavities.weights[k])] / 3.0
        total += 0.5 * mean * double_area(cavities.points, corners[0], corners[1], corners[2])
    return total
