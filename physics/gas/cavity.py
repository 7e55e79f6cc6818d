"""Cavities as closed surfaces: a wall on each body and the ribbon between their borders.

Closing each wall at its own border's centroid, as thesis 000 does, leaves out the slab between a border and
its projection; the ribbon takes it in. A quadrilateral of the ribbon is bent, so it is there twice, cut along
either diagonal, and each counts half: the volume under it is that of the ruled surface, and a symmetric
cavity has a symmetric gradient.

Volume of a cavity and its gradient, the area vector that turns pressure into force.

The volume is the signed sum of tetrahedra about any one point (000, 3.2.6; Zhang and Chen 2001, without the
absolute value that the thesis prints). For a closed surface, dV/dx of a vertex is a third of the outward area
vectors around it, and reaches the bodies' nodes through the barycentric weights of inserted vertices.

**The ribbon is part of the gradient.** So it is exact for the frozen topology, and neither moving nor turning
the pair changes V: the forces (p - P_atm) dV/dx on the pair have no resultant and no moment. Physically it is
the pressure on the walls between the border and the contact line, which the ribbon closes; that share goes to
the border's vertices, half to each body. Walls alone would leave the pair a force of p times the area vector
of the ribbon.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import inlined, kernel

CAVITY_COUNT = np.dtype(
    [("found", np.int64), ("vertices", np.int64), ("triangles", np.int64), ("clamped", np.int64),
     ("lost", np.int64)]
)  # fmt: skip
"""Cavities, their vertices and triangles; volumes clamped to 0; cavities lost for room."""

WALL_A, WALL_B, RIBBON, RIBBON_AGAIN, END = 0, 1, 2, 3, 4
"""Columns of `Cavities.span`: where a cavity's walls and ribbons begin, and where it ends."""


class CavitySurfaces(NamedTuple):
    """The closed surfaces of a step's cavities, one after the other; triangles face into the cavity."""

    count: NDArray[np.void]  # type: ignore[assignment]  # (1,) of CAVITY_COUNT
    first: NDArray[np.int64]  # (c + 1,) first vertex of each cavity
    span: NDArray[np.int64]  # (c, 5) first triangle of each part; WALL_A to RIBBON_AGAIN is a closed surface
    body: NDArray[np.int64]  # (k,) 0 for a vertex on body A, 1 on body B
    parents: NDArray[np.int64]  # (k, 3) vertices of that body's surface
    weights: NDArray[np.float64]  # (k, 3) barycentric
    points: NDArray[np.float64]  # (k, 3) positions [m]
    triangles: NDArray[np.int64]  # (t, 3) vertices
    volume: NDArray[np.float64]  # (c,) [m3], not negative


def make_cavities(count: int, vertices: int, triangles: int) -> CavitySurfaces:
    """Room for so many cavities, and for so many vertices and triangles of all of them."""
    return CavitySurfaces(
        count=np.zeros(1, CAVITY_COUNT),
        first=np.zeros(count + 1, np.int64),
        span=np.zeros((count, 5), np.int64),
        body=np.zeros(vertices, np.int64),
        parents=np.zeros((vertices, 3), np.int64),
        weights=np.zeros((vertices, 3)),
        points=np.zeros((vertices, 3)),
        triangles=np.zeros((triangles, 3), np.int64),
        volume=np.zeros(count),
    )


@kernel
def forget(cavities):
    """There are none."""
    count = cavities.count[0]
    count.found = count.vertices = count.triangles = count.clamped = count.lost = 0


@kernel
def place_cavity(cavities, c, x_a, x_b):
    """Move cavity c with its bodies' surfaces x_a, x_b (n, 3) [m]; its topology stays."""
    for k in range(cavities.first[c], cavities.first[c + 1]):
        for i in range(3):
            total = 0.0
            for j in range(3):
                v = cavities.parents[k, j]
                total += cavities.weights[k, j] * (x_b[v, i] if cavities.body[k] else x_a[v, i])
            cavities.points[k, i] = total


@kernel
def area_of_wall(cavities, c):
    """Area [m2] of cavity c's wall on body A."""
    points, total = cavities.points, 0.0
    for t in range(cavities.span[c, WALL_A], cavities.span[c, WALL_B]):
        corners = cavities.triangles[t]
        a, b, d = points[corners[0]], points[corners[1]], points[corners[2]]
        u0, u1, u2 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
        v0, v1, v2 = d[0] - a[0], d[1] - a[1], d[2] - a[2]
        total += 0.5 * ((u1 * v2 - u2 * v1) ** 2 + (u2 * v0 - u0 * v2) ** 2 + (u0 * v1 - u1 * v0) ** 2) ** 0.5
    return total


@inlined
def _minor(p, q, i):
    """Component i of p x q."""
    j, k = (i + 1) % 3, (i + 2) % 3
    return p[j] * q[k] - p[k] * q[j]


@inlined
def _area(p, q, r, i):
    """Component i of twice the area vector of the triangle p, q, r."""
    j, k = (i + 1) % 3, (i + 2) % 3
    return (q[j] - p[j]) * (r[k] - p[k]) - (q[k] - p[k]) * (r[j] - p[j])


@inlined
def _share(cavities, c, t):
    """What triangle t counts: of the ribbon's two triangulations, each one half."""
    return 1.0 if t < cavities.span[c, RIBBON] else 0.5


@kernel
def signed_volume(cavities, c, origin):
    """Volume [m3] of cavity c, as placed, summed about `origin` (3,); any origin will do.

    One in or near the cavity keeps the sum's rounding at that of its volume. Negative where the walls have
    passed through each other.
    """
    points, total = cavities.points, 0.0
    for t in range(cavities.span[c, WALL_A], cavities.span[c, END]):
        p, q, r = (
            points[cavities.triangles[t, 0]],
            points[cavities.triangles[t, 1]],
            points[cavities.triangles[t, 2]],
        )
        six = 0.0
        for i in range(3):
            six += (p[i] - origin[i]) * _area(p, q, r, i)
        # the triangles face into the cavity
        total -= _share(cavities, c, t) * six / 6.0
    return total


@kernel
def volume_gradient(cavities, c, gradient_a, gradient_b):
    """dV/dx [m2] of cavity c, as placed, on the surface vertices of both bodies, each (n, 3)."""
    points, parents, weights = cavities.points, cavities.parents, cavities.weights
    gradient_a[:] = 0.0
    gradient_b[:] = 0.0
    for t in range(cavities.span[c, WALL_A], cavities.span[c, END]):
        corners, share = cavities.triangles[t], _share(cavities, c, t)
        p, q, r = points[corners[0]], points[corners[1]], points[corners[2]]
        for i in range(3):
            third = -share * _area(p, q, r, i) / 6.0
            for corner in range(3):
                k = corners[corner]
                for j in range(3):
                    if cavities.body[k]:
                        gradient_b[parents[k, j], i] += weights[k, j] * third
                    else:
                        gradient_a[parents[k, j], i] += weights[k, j] * third


@kernel
def kept_volume(cavities, c, depth, gradient_b):
    """Volume [m3] of cavity c, as placed, below a height `depth` [m] over body B's wall: what contact keeps.

    That wall's vector area times the depth, so that a hole in it counts no more than its mouth. Its gradient,
    over body B's vertices, is taken from gradient_b (n, 3) [m2].
    """
    points = cavities.points
    area = (0.0, 0.0, 0.0)
    for t in range(cavities.span[c, WALL_B], cavities.span[c, RIBBON]):
        p, q, r = (
            points[cavities.triangles[t, 0]],
            points[cavities.triangles[t, 1]],
            points[cavities.triangles[t, 2]],
        )
        area = (
            area[0] + 0.5 * _area(p, q, r, 0),
            area[1] + 0.5 * _area(p, q, r, 1),
            area[2] + 0.5 * _area(p, q, r, 2),
        )
    size = (area[0] ** 2 + area[1] ** 2 + area[2] ** 2) ** 0.5
    if size == 0.0:
        return 0.0
    n = (area[0] / size, area[1] / size, area[2] / size)
    for t in range(cavities.span[c, WALL_B], cavities.span[c, RIBBON]):
        corners = cavities.triangles[t]
        for corner in range(3):
            k = corners[corner]
            head, tail = points[corners[(corner + 1) % 3]], points[corners[(corner + 2) % 3]]
            edge = (head[0] - tail[0], head[1] - tail[1], head[2] - tail[2])
            for i in range(3):
                grown = 0.5 * depth * _minor(edge, n, i)
                for j in range(3):
                    gradient_b[cavities.parents[k, j], i] -= cavities.weights[k, j] * grown
    return depth * size


@kernel
def residual_volume(patch, points, gap, roughness):
    """Volume [m3] left between a flattened wall and the other body: gap plus roughness depth, integrated.

    patch: everything inside the outermost sealed ring. points (k, 3): its vertices [m]. gap (k,): their
    distances from contact with the other body [m], linear over each triangle. roughness: mean depth of the
    pockets that contact leaves open [m]: at gap 0, the air that is left still has roughness times area.
    """
    total = 0.0
    for t in range(patch.size[0].triangles):
        a, b, c = patch.triangles[t, 0], patch.triangles[t, 1], patch.triangles[t, 2]
        depth = roughness + (gap[a] + gap[b] + gap[c]) / 3.0
        twice = 0.0
        for i in range(3):
            twice += _area(points[a], points[b], points[c], i) ** 2
        total += 0.5 * depth * twice**0.5
    return total


@kernel
def residual_gradient(
    patch, points, gap, normal, roughness, foot_parents, foot_weights, gradient_a, gradient_b
):
    """d(residual volume)/dx [m2] on the surface vertices of both bodies, each (n, 3).

    normal (k, 3): unit, from the closest point of the other body to each vertex; foot_parents, foot_weights
    (k, 3): that point. The ring so has its pressure area; without resultant on the pair, as the cavity's.
    """
    gradient_a[:] = 0.0
    gradient_b[:] = 0.0
    parents, weights = patch.parents, patch.weights
    for t in range(patch.size[0].triangles):
        a, b, c = patch.triangles[t, 0], patch.triangles[t, 1], patch.triangles[t, 2]
        p, q, r = points[a], points[b], points[c]
        twice = 0.0
        for i in range(3):
            twice += _area(p, q, r, i) ** 2
        twice = twice**0.5
        if twice == 0.0:
            continue
        depth = roughness + (gap[a] + gap[b] + gap[c]) / 3.0
        n = (_area(p, q, r, 0) / twice, _area(p, q, r, 1) / twice, _area(p, q, r, 2) / twice)
        for k, tail, head in ((a, q, r), (b, r, p), (c, p, q)):
            edge = (head[0] - tail[0], head[1] - tail[1], head[2] - tail[2])
            for i in range(3):
                push = twice / 6.0 * normal[k, i]
                # the area grows across the opposite edge, within the plane of the triangle
                pull = 0.5 * depth * _minor(n, edge, i)
                for j in range(3):
                    gradient_a[parents[k, j], i] += weights[k, j] * (push + pull)
                    gradient_b[foot_parents[k, j], i] -= foot_weights[k, j] * push
