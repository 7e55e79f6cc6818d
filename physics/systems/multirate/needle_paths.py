"""Where a needle will go in a body: inner points of the material along its line, as the low loop plans them.

Once in a low step. Outside the plan begins where the tip touches the surface, or is nearest to it, and goes
on in the direction of the needle, which the material's deformation turns: F^-1 a. Where another material
begins, there is a point. Inside, the points that the path has, and as many more as a quick hand may come to
while the next frame is made, stay where they are; those beyond are laid anew along the needle as it is now.
So a path that is there never moves in the material.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.collision.closest import to_triangle
from palpo.physics.exchange.constraint_frame import PATH_TISSUE, ConstraintFrame
from palpo.physics.fem.material import Material
from palpo.physics.mesh.quadratic import EDGES
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel
from palpo.physics.systems.multirate.member import Member

Floats = NDArray[np.float64]

LEAST_AHEAD = 4
"""Points that are planned beyond those that stay, at least."""

SERVICE = 2.5
"""Times that a step takes until the next frame is there, as that of candidates is (krylov.LIFE)."""

EXIT, NO_STEP = 0.02, 0.1
"""Shares of the spacing: to which the place is found where a line leaves the body; and from the last point on
from which that is a point of its own."""

INSIDE = -1e-9
"""Least barycentric weight of a place that is in an element."""

OUTSIDE = -2
"""Material of a place outside of the body, whose own is -1."""

LATTICE = 0.1985
"""Radius, in sides of a lattice's cell, of the cylinder that a line load at its nodes acts as: that of wells
in grids (D. W. Peaceman, SPE Journal 18, 1978), e^-gamma / sqrt(8)."""

EDGES_A_SIDE = 1.25
"""Mean edge of the tetrahedra of a cube, five or six of them, by its side."""

THINNEST = 0.05
"""Least ln(R/r): a point always yields a little, so that points of one element do not contradict each
other."""


def line_yields(material: Material) -> tuple[float, float]:
    """What a line load sinks in by, a unit of ln(R/r), across and along [m2/N].

    Across by (3 - 4 nu) / (8 pi G (1 - nu)), along by 1 / (2 pi G): the logarithmic parts of Kelvin's line
    load and of antiplane shear (EQUATIONS.md, 1, "A needle in tissue").
    """
    nu, shear = material.poisson_ratio, 0.5 * material.youngs_modulus / (1.0 + material.poisson_ratio)
    return (3.0 - 4.0 * nu) / (8.0 * math.pi * shear * (1.0 - nu)), 1.0 / (2.0 * math.pi * shear)


def tip_yields(material: Material, radius: float) -> float:
    """What a tip of that radius [m] sinks in by in an endless body [m/N], as a rigid sphere does:
    (5 - 6 nu) / (24 pi G (1 - nu) r) (A. I. Lur'e, Theory of Elasticity, 2005, section 5.1)."""
    nu, shear = material.poisson_ratio, 0.5 * material.youngs_modulus / (1.0 + material.poisson_ratio)
    return (5.0 - 6.0 * nu) / (24.0 * math.pi * shear * (1.0 - nu) * radius)


class MaterialPlaces:
    """Places in a body of tetrahedra at rest: which element each is in, and by which weights of its nodes."""

    def __init__(self, body: SoftBody) -> None:
        cells = body.mesh.cells
        if cells.shape[1] not in (4, 10):
            said = 'a needle goes into tetrahedra alone; choose elements = "tet10"'
            raise InputError(f'body "{body.name}" is made of hexahedra: {said}.')
        self.nodes, self.cells = body.mesh.nodes, cells
        corners = self.nodes[cells[:, :4]]
        self.origin = corners[:, 0]
        self.inverse = np.linalg.inv(np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2))

    def find(self, place: Floats, least: float = INSIDE) -> tuple[int, Floats]:
        """The element that a place (3,) [m] is in and its weights (4,) there; -1 outside of all by
        `least`."""
        inner = np.einsum("mij,mj->mi", self.inverse, place - self.origin)
        worst = np.minimum(inner.min(axis=1), 1.0 - inner.sum(axis=1))
        cell = int(worst.argmax())
        if worst[cell] < least:
            return -1, np.zeros(4)
        weights = np.clip([1.0 - inner[cell].sum(), *inner[cell]], 0.0, 1.0)
        return cell, weights / weights.sum()

    def shares(self, weights: Floats) -> Floats:
        """Weights of all nodes of the element, (w,)."""
        if self.cells.shape[1] == 4:
            return weights
        one, two = weights[EDGES].T
        return np.concatenate([weights * (2.0 * weights - 1.0), 4.0 * one * two])

    def unresolved(self, cell: int, shares: Floats, along: Floats, radius: float) -> float:
        """ln(R/r) of a shaft in direction `along` (3,) that loads an element's nodes by their shares (w,).

        R is what the mesh resolves. The load of each node acts as one on a cylinder of LATTICE sides, and
        sinks in under those of the others by the logarithm of their distance across:
        ln R = sum_ij w_i w_j ln max(d_ij, LATTICE h).
        """
        nodes = self.nodes[self.cells[cell]]
        apart = nodes[:, None] - nodes
        apart -= (apart @ along)[..., None] * along
        edges = nodes[EDGES[:, 0]] - nodes[EDGES[:, 1]]
        side = np.linalg.norm(edges, axis=1).mean() / EDGES_A_SIDE
        across = np.maximum(np.linalg.norm(apart, axis=2), LATTICE * side)
        return max(THINNEST, float(shares @ np.log(across / radius) @ shares))

    def gradient(self, cell: int, x: Floats) -> Floats:
        """F (3, 3) of an element whose corners are where x (nodes, 3) [m] has them."""
        corners = x[self.cells[cell, :4]]
        return np.asarray((corners[1:] - corners[0]).T @ self.inverse[cell])


@kernel
def _nearest(p, x, triangles, weights):
    """(triangle nearest to p (3,), its distance [m]); weights (3,) = of its nearest point."""
    best, at, trial = np.inf, 0, np.zeros(3)
    for t in range(triangles.shape[0]):
        square = to_triangle((p[0], p[1], p[2]), x, triangles, t, trial)[0]
        if square < best:
            best, at = square, t
            weights[:] = trial
    return at, best**0.5


@dataclass(frozen=True)
class Needle:
    """A needle that may go into a body."""

    points: NDArray[np.int32]
    """Global numbers of the tool's points from the tip on, (m,)."""
    member: Member
    radius: float
    """Of the shaft [m]."""
    puncture: float
    """Force on the tip at which the surface gives way [N]."""
    part: NDArray[np.intp]
    """Of which material each element of the body is, (m,)."""
    cutting: Floats
    """Force that it cuts at in each element [N], (m,)."""
    friction: Floats
    """Of the shaft there, a length [N/m], (m,)."""
    wall: Floats
    """Force on the tip at which the border of its material gives way [N], (m,); 0 of one that has none."""
    turn: float
    """By what angle the tip cuts aside of the needle's direction [rad]."""
    point: NDArray[np.float64]
    """Where it points and where it cuts to, (2, 3), axes of its frame."""
    spacing: float
    """About how far points of the path are apart [m]."""


class NeedlePath:
    """The plan of one needle in one body, whose inner points are its own; `number` is its place in a
    frame."""

    def __init__(self, number: int, spec: Needle) -> None:
        body = spec.member.body
        assert isinstance(body, SoftBody)
        self.number, self.spec, self.body = number, spec, body
        self.places = MaterialPlaces(body)
        self.triangles = body.mesh.surface().triangles
        room = len(body.inner)
        self.rest, self.cells = np.zeros((room, 3)), np.zeros(room, np.intp)
        """Places of the planned points in the material at rest [m], and the elements that they are in."""
        self.tissue = np.zeros(room, PATH_TISSUE)
        self._softness = 1.0 / body.material.stiffness_of(len(self.places.cells))
        self.plan = self.planned = self.count = 0
        """Number of the plan; points of it, and of the path that the servo has told."""
        self.ends = False
        """Whether the last planned point is where the tissue ends."""

    def look(self, x: Floats, u: Floats, told: NDArray, takes: float) -> None:
        """The plan for what the servo told: x, u (points, 3) of all points [m], [m/s]; takes: a step [s]."""
        spec, tip, next_ = self.spec, self.spec.points[0], self.spec.points[1]
        ahead = (x[tip] - x[next_]) / np.linalg.norm(x[tip] - x[next_])
        quick = int(np.linalg.norm(u[tip]) * SERVICE * takes / spec.spacing) + 2
        self.count = int(told["count"])
        if self.count == 0 or self.planned == 0:
            reach = math.inf if self.count else spec.spacing * (quick + LEAST_AHEAD)
            start = self._entry(x[tip], told, reach)
            self.plan, self.planned = self.plan + 1, 0
            if start is not None:
                self._add(start, ahead, -np.inf)
        self.planned = min(self.planned, max(1, self.count + quick))
        self._lay(ahead, self.count + quick + LEAST_AHEAD)

    def _entry(self, tip: Floats, told: NDArray, reach: float) -> Floats | None:
        """Where on the surface at rest the tip touches, or is nearest to; None out of reach [m]."""
        own, first = self.body.mesh.nodes, self.spec.member.first
        touched = told["point"] >= 0
        if touched.any():
            nodes = told["point"][touched] - first
            inside = (nodes >= 0) & (nodes < len(own))
            if inside.all():
                return np.asarray(told["weight"][touched] @ own[nodes])
        weights = np.zeros(3)
        t, apart = _nearest(tip, self.body.x, self.triangles, weights)
        return None if apart > reach else weights @ own[self.triangles[t]]

    def _lay(self, ahead: Floats, most: int) -> None:
        """Points on along the needle's direction, up to so many, or to where the body ends."""
        self.ends = False
        while 0 < self.planned < min(most, len(self.rest)) and not self.ends:
            k = self.planned - 1
            turned = np.linalg.solve(self.places.gradient(int(self.cells[k]), self.body.x), ahead)
            along = (turned / np.linalg.norm(turned)).astype(np.float64)
            step, part = self.spec.spacing, self._part(self.rest[k])
            ahead_part = self._part(self.rest[k] + step * along)
            if ahead_part == OUTSIDE:
                self._add_last(self.rest[k], along)
                self.ends = True
                return
            if ahead_part != part:
                step = self._last(self.rest[k], along, partial(operator.eq, part))[1]
            self.ends = not self._add(self.rest[k] + step * along, along)

    def _part(self, place: Floats) -> int:
        """Of which material a place (3,) [m] is."""
        cell = self.places.find(place)[0]
        return OUTSIDE if cell < 0 else int(self.spec.part[cell])

    def _last(self, start: Floats, along: Floats, holds: Callable[[int], bool]) -> tuple[float, float]:
        """Lengths from a start (3,) between which what holds of a place's material ceases to [m]."""
        inside, outside = 0.0, self.spec.spacing
        while outside - inside > EXIT * self.spec.spacing:
            middle = 0.5 * (inside + outside)
            if holds(self._part(start + middle * along)):
                inside = middle
            else:
                outside = middle
        return inside, outside

    def _add_last(self, last: Floats, along: Floats) -> None:
        """The place where the line from the last point leaves the body, if that is not at once."""
        inside = self._last(last, along, partial(operator.ne, OUTSIDE))[0]
        if inside > NO_STEP * self.spec.spacing:
            self._add(last + inside * along, along)

    def _add(self, place: Floats, along: Floats, least: float = INSIDE) -> bool:
        """Another point of the plan, and the body's inner point there; False outside of the body by
        `least`."""
        cell, weights = self.places.find(place, least)
        if cell < 0:
            return False
        k, places, shares = self.planned, self.places, self.places.shares(weights)
        self.rest[k], self.cells[k] = place, cell
        self.body.inner[k], self.body.inner_weights[k] = places.cells[cell], shares
        spec, entered = self.spec, k > 0 and self.spec.part[cell] != self.spec.part[self.cells[k - 1]]
        self.tissue[k] = (
            places.unresolved(cell, shares, along, spec.radius), self._softness[cell], spec.cutting[cell],
            spec.friction[cell], spec.wall[cell] if entered else 0.0,
        )  # fmt: skip
        self.planned = k + 1
        return True

    def points(self) -> NDArray[np.int32]:
        """Global numbers of the planned points: about the tip first, then evenly along the path."""
        n = self.planned
        near = [k for k in (self.count, self.count - 1, self.count + 1) if 0 <= k < n]
        order, stride = near, 1 << max(0, n.bit_length())
        while stride:
            order = order + list(range(0, n, stride))
            stride //= 2
        first = self.spec.member.first + self.body.first_inner
        return first + np.array(list(dict.fromkeys(order)), np.int32)

    def write(self, frame: ConstraintFrame, f: int) -> None:
        """The plan into slot f of a frame."""
        path = frame.paths[f, self.number]
        path["plan"], path["planned"], path["ends"] = self.plan, self.planned, int(self.ends)
        frame.path_tissue[f, self.number, : len(self.tissue)] = self.tissue
