"""Air between walls that lie on each other: what stays of a cavity when its wall is pressed flat.

A cavity's wall ends where the gap is the sealing distance, so pressing a cup flat shrinks the wall to
nothing, and its volume with it: with the gas law's clamp alone all air would be lost (n -> P_max V -> 0). But
where the wall lies on the other body it still holds air, in the valleys of rough surfaces. These *pockets*
are the part of the cup's surface that has been wall of the cavity since it was last outside, and is sealed
now; the rim, which never was, has none. Their volume, roughness depth and what the gap is wider than the one
that contact keeps, and their area belong to the cavity beside them, or to the flattened one that they are all
of. So volume and pressure area go on without a jump while the sealing line moves over the wall: the pockets
begin where the wall ends, and end at the vertices that never were wall.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.kernels import kernel
from palpo.physics.suction.border import cut_patch, make_border_work, whole_patch
from palpo.physics.suction.connectivity import Connectivity
from palpo.physics.suction.flood import OUTSIDE, RING
from palpo.physics.suction.gaps import make_gaps, measure
from palpo.physics.suction.labels import FAR, Thresholds
from palpo.physics.suction.patch import border_length, place_points, wall_area
from palpo.physics.suction.sides import Wall
from palpo.physics.suction.tracking import Tracks
from palpo.physics.suction.volume import residual_gradient, residual_volume

BEYOND = 1.0
"""Gap [m] that stands for a rim in the cut: the pockets' border falls on their own vertices."""


class Pockets:
    """The pockets of one surface of n vertices, step by step. roughness [m]: depth of the valleys of both.

    of (n,): number of the cavity whose pocket has the vertex, -1 for none. walls: the pockets of each cavity
    that has some, as triangles (t, 3) over points with parents (k, 3) and weights (k, 3), as in a Patch.
    extent: area [m2] and border length [m] of each cavity's.
    """

    def __init__(
        self, connectivity: Connectivity, partner: Wall, limits: Thresholds, roughness: float
    ) -> None:
        n, m = len(connectivity.rim), len(partner.local)
        self._connectivity, self._partner, self._limits = connectivity, partner, limits
        self.roughness = roughness
        self.of = np.full(n, -1, np.int64)
        self._once = np.zeros(n, np.bool_)
        self._label, self._distance = np.zeros(n, np.int64), np.zeros(n)
        self._patch, self._work = whole_patch(connectivity), make_border_work(connectivity)
        k = len(self._patch.parents)
        self._points, self._gaps = np.zeros((k, 3)), make_gaps(k)
        self._gradient, self._partner_gradient = np.zeros((n, 3)), np.zeros((m, 3))
        self.walls: dict[int, tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = {}
        self.extent: dict[int, tuple[float, float]] = {}

    def mark(self, cavity: NDArray[np.int64], tracks: Tracks) -> NDArray[np.int64]:
        """Find the pockets; cavity (n,): of the flood. Returns the numbers of the cavities that have some."""
        self.walls.clear()
        self.extent.clear()
        mark_pockets(cavity, tracks.region, self._once, self.of)
        return np.unique(self.of[self.of >= 0])

    def add(
        self, number: int, x: NDArray[np.float64], label: NDArray[np.int64], distance: NDArray[np.float64],
        gradient: NDArray[np.float64], partner_gradient: NDArray[np.float64],
    ) -> float:  # fmt: skip
        """Volume [m3] of a cavity's pockets at x (n, 3) [m], in the partner's axes.

        label, distance (n,): of the vertices. gradient (n, 3), partner_gradient (m, 3) [m2]: added to.
        """
        partner, patch, gaps = self._partner, self._patch, self._gaps
        own = self.of == number
        rim = (label > FAR) & ~own & np.isfinite(distance) & (distance <= self._limits.sealing)
        self._label[:] = np.where(rim, FAR, label)
        self._distance[:] = np.where(rim, BEYOND, distance)
        cut_patch(
            self._connectivity, self.of, number, self._label, self._distance, self._limits, True, patch,
            self._work,
        )  # fmt: skip
        place_points(patch, x, self._points)
        k, t = int(patch.size[0].vertices), int(patch.size[0].triangles)
        self.walls[number] = patch.triangles[:t].copy(), patch.parents[:k].copy(), patch.weights[:k].copy()
        self.extent[number] = wall_area(patch, self._points), border_length(patch, self._points)
        gaps.triangle[:k] = -1  # other points than in the last step: no triangle is a hint
        measure(partner.target, partner.local, self._points, np.arange(k), partner.odometer, gaps)
        gap = np.maximum(gaps.distance - self._limits.contact, 0.0)
        feet = partner.target.surface.triangles[gaps.triangle].astype(np.int64)
        residual_gradient(
            patch, self._points, gap, gaps.normal, self.roughness, feet, gaps.weights, self._gradient,
            self._partner_gradient,
        )  # fmt: skip
        gradient += self._gradient
        partner_gradient += self._partner_gradient
        return float(residual_volume(patch, self._points, gap, self.roughness))


@kernel
def mark_pockets(cavity, region, once, out):
    """out (n,) = region of the sealed vertices that were wall since they were last outside, -1 elsewhere.

    cavity (n,): of the flood; region (n,): of the tracks; once (n,): kept from step to step.
    """
    for v in range(cavity.size):
        out[v] = -1
        if cavity[v] == OUTSIDE:
            once[v] = False
        elif cavity[v] != RING:
            once[v] = True
        elif once[v]:
            out[v] = region[v]
