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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.gas.border import BorderWork, cut_patch, make_border_work, whole_patch
from palpo.physics.gas.cavity import residual_gradient, residual_volume
from palpo.physics.gas.flood import FAR, OUTSIDE, RING, Connectivity
from palpo.physics.gas.gaps import Gaps, make_gaps, measure
from palpo.physics.gas.patch import Patch, border_length, place_points, wall_area
from palpo.physics.numerics.kernels import kernel

BEYOND = 1.0
"""Gap [m] that stands for a rim in the cut: the pockets' border falls on their own vertices."""


class Pockets(NamedTuple):
    """The pockets of c cavities on one surface of n vertices, step by step, and scratch.

    A cavity's are triangles over points with parents and weights, as in a Patch: see `walls_of`.
    """

    of: NDArray[np.int64]  # (n,) number of the cavity whose pocket has the vertex, -1 for none
    once: NDArray[np.bool_]  # (n,) kept from step to step: wall since it was last outside
    has: NDArray[np.bool_]  # (c,) which cavities have some
    size: NDArray[np.int64]  # (c, 2) points and triangles
    triangles: NDArray[np.int64]  # (c, t, 3)
    parents: NDArray[np.int64]  # (c, k, 3)
    weights: NDArray[np.float64]  # (c, k, 3)
    extent: NDArray[np.float64]  # (c, 2) area [m2] and border length [m]
    label: NDArray[np.int64]  # (n,)
    distance: NDArray[np.float64]  # (n,)
    patch: Patch
    work: BorderWork
    points: NDArray[np.float64]  # (k, 3)
    gaps: Gaps  # of the points
    gap: NDArray[np.float64]  # (k,)
    feet: NDArray[np.int64]  # (k, 3)
    gradient: NDArray[np.float64]  # (n, 3)
    partner_gradient: NDArray[np.float64]  # (m, 3)


def make_pockets(connectivity: Connectivity, m: int, c: int) -> Pockets:
    """Those of a surface against one of m vertices, of up to c cavities."""
    n, patch = len(connectivity.rim), whole_patch(connectivity)
    k, t = len(patch.parents), len(patch.triangles)
    return Pockets(
        np.full(n, -1, np.int64), np.zeros(n, np.bool_), np.zeros(c, np.bool_), np.zeros((c, 2), np.int64),
        np.zeros((c, t, 3), np.int64), np.zeros((c, k, 3), np.int64), np.zeros((c, k, 3)), np.zeros((c, 2)),
        np.zeros(n, np.int64), np.zeros(n), patch, make_border_work(connectivity), np.zeros((k, 3)),
        make_gaps(k), np.zeros(k), np.zeros((k, 3), np.int64), np.zeros((n, 3)), np.zeros((m, 3)),
    )  # fmt: skip


def walls_of(pockets: Pockets, c: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Triangles (t, 3), parents (k, 3) and weights (k, 3) of a cavity's pockets; none of one without."""
    k, t = pockets.size[c] if pockets.has[c] else (0, 0)
    return pockets.triangles[c, :t], pockets.parents[c, :k], pockets.weights[c, :k]


@kernel
def find_pockets(pockets, cavity, region):
    """Which vertices and cavities have pockets; cavity (n,): of the flood, region (n,): of the tracks."""
    mark_pockets(cavity, region, pockets.once, pockets.of)
    pockets.has[:] = False
    for v in range(pockets.of.size):
        if pockets.of[v] >= 0:
            pockets.has[pockets.of[v]] = True


@kernel
def add_pockets(pockets, i, surface, target, x, x_b, odometer, air, gradient, partner_gradient):
    """Volume [m3] of a cavity's pockets at x (n, 3) [m], in the axes of the other surface at x_b (m, 3).

    odometer: of the other surface [m]. air: label (n,) and gaps of the vertices, the three distances and
    the depth of the valleys of both surfaces [m]. gradient (n, 3), partner_gradient (m, 3) [m2]: added to.
    """
    label, (distance, nearest), limits, roughness = air
    patch, gaps = pockets.patch, pockets.gaps
    for v in range(label.size):
        d = distance[v]
        rim = label[v] > FAR and pockets.of[v] != i and abs(d) < np.inf and d <= limits.sealing
        pockets.label[v] = FAR if rim else label[v]
        pockets.distance[v] = BEYOND if rim else d
    cut_patch(
        surface, pockets.of, i, pockets.label, pockets.distance, limits, True, patch, pockets.work
    )  # fmt: skip
    place_points(patch, x, pockets.points)
    k, t = patch.size[0].vertices, patch.size[0].triangles
    pockets.size[i, 0], pockets.size[i, 1] = k, t
    pockets.triangles[i, :t] = patch.triangles[:t]
    pockets.parents[i, :k] = patch.parents[:k]
    pockets.weights[i, :k] = patch.weights[:k]
    pockets.extent[i, 0] = wall_area(patch, pockets.points)
    pockets.extent[i, 1] = border_length(patch, pockets.points)
    for p in range(k):
        # other points than in the last step: what is nearest to a vertex beside one is near
        gaps.triangle[p] = nearest[patch.parents[p, 0]]
        gaps.asked[p] = p
    measure(target, x_b, pockets.points, gaps.asked[:k], odometer, gaps)
    for p in range(k):
        pockets.gap[p] = max(gaps.distance[p] - limits.contact, 0.0)
        for j in range(3):
            pockets.feet[p, j] = target.surface.triangles[gaps.triangle[p], j]
    residual_gradient(
        patch, pockets.points, pockets.gap, gaps.normal, roughness, pockets.feet, gaps.weights,
        pockets.gradient, pockets.partner_gradient,
    )  # fmt: skip
    gradient += pockets.gradient
    partner_gradient += pockets.partner_gradient
    return residual_volume(patch, pockets.points, pockets.gap, roughness)


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
