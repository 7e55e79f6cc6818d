"""A deforming surface as contact sees it: neighbours to walk over, normals to press along, creases.

Normals are smoothed over the surface but for its *creases*, the edges sharper than an angle: a corner of a
triangle takes the mean over those triangles around its vertex that no crease cuts off from it, and a point
of the triangle the mean of its corners. So a flat face stays flat up to its rim, and a hollow is round.
The weights are those of Max (Weights for computing vertex normals from facet normals, JGT 1999): exact on
spheres, and no arc cosine.

Numbers are *slots*, the places of nodes among a body's boundary nodes.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from palpo.physics.collision.closest import EDGE_AB, FACE, VERTEX_A, to_triangle, triangle_normal, vector
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.kernels import inlined, kernel

CREASE = np.deg2rad(40.0)
"""Angle between the normals of two triangles beyond which their edge is a crease [rad]."""

STEPS = 64
"""Most triangles that a walk crosses; what is left is for the next tick."""

FARTHER = 1.0 - 1e-12
"""Factor on a squared distance below which another triangle is closer by more than rounding."""


class ContactSurface(NamedTuple):
    """Connectivity of a boundary of s slots, m triangles and k edges; it never changes."""

    triangles: NDArray[np.int32]  # (m, 3) outward
    across: NDArray[np.int32]  # (m, 3) triangle beyond the edges ab, bc, ca, -1 at a border
    creased: NDArray[np.bool_]  # (m, 3) whether these edges are creases
    around: NDArray[np.int32]  # (s + 1,) span of each slot in `fan`
    fan: NDArray[np.int32]  # triangles around each slot
    sharp: NDArray[np.bool_]  # (s,) whether a crease ends there
    corner: NDArray[np.int32]  # (m, 3) smooth normal of each corner
    share: NDArray[np.int32]  # (normals + 1,) span of each smooth normal in `part`
    part: NDArray[np.int32]  # 3 triangle + corner of those that make up a normal
    edges: NDArray[np.int32]  # (k, 2)
    opposite: NDArray[np.int32]  # (k, 2) third slots of their triangles, -1 at a border
    concave: NDArray[np.bool_]  # (k,) creases that no edge of another body reaches
    ridge: NDArray[np.int32]  # the other creases, and borders


def contact_surface(surface: SurfaceMesh, slot: NDArray[np.int32], crease: float = CREASE) -> ContactSurface:
    """The surface of a body at rest; slot: place of each of its vertices among the boundary nodes."""
    corners = slot[surface.triangles].astype(np.int32)
    m, n_slots = len(corners), int(slot.max()) + 1
    left, right = surface.edge_triangles.T
    inner = right >= 0
    sides = np.where(inner, right, left)
    normals = surface.triangle_normals
    bend = np.einsum("ki,ki->k", normals[left], normals[sides])
    creased = np.where(inner, bend < np.cos(crease), True)

    place = _edge_places(surface)
    across = np.full((m, 3), -1, np.int32)
    across[left[inner], place[inner, 0]] = right[inner]
    across[right[inner], place[inner, 1]] = left[inner]
    marked = np.zeros((m, 3), bool)
    marked[left, place[:, 0]] = creased
    marked[sides, place[:, 1]] = creased

    around, fan = _grouped(corners.ravel(), n_slots)
    sharp = np.zeros(n_slots, bool)
    sharp[slot[surface.edges[creased]]] = True
    corner = _smooth_groups(surface, ~creased & inner)
    share, part = _grouped(corner.ravel(), int(corner.max()) + 1)

    opposite = np.full((len(left), 2), -1, np.int32)
    opposite[:, 0] = corners[left, (place[:, 0] + 2) % 3]
    opposite[inner, 1] = corners[right[inner], (place[inner, 1] + 2) % 3]
    # beyond a ridge the other triangle falls away from the plane of the first
    far = surface.vertices[surface.triangles[sides, (place[:, 1] + 2) % 3]]
    height = np.einsum("ki,ki->k", far - surface.vertices[surface.edges[:, 0]], normals[left])
    concave = creased & inner & (height > 0.0)
    edges = np.ascontiguousarray(slot[surface.edges].astype(np.int32))
    return ContactSurface(
        corners, across, marked, around, (fan // 3).astype(np.int32), sharp, corner, share, part, edges,
        opposite, concave, np.flatnonzero(creased & ~concave).astype(np.int32),
    )  # fmt: skip


def _edge_places(surface: SurfaceMesh) -> NDArray[np.int64]:
    """Which of the edges ab, bc, ca of its left and of its right triangle each edge is, shape (k, 2)."""
    start, end = surface.edges.T
    left, right = surface.edge_triangles.T
    forward = np.argmax(surface.triangles[left] == start[:, None], axis=1)
    # its second triangle runs an edge from its end to its start
    backward = np.argmax(surface.triangles[np.where(right >= 0, right, left)] == end[:, None], axis=1)
    return np.stack([forward, np.where(right >= 0, backward, forward)], axis=1)


def _grouped(group: NDArray, n: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Members of each of n groups: their spans (n + 1,) in the list of members (len(group),)."""
    order = np.argsort(group, kind="stable").astype(np.int32)
    return np.searchsorted(group[order], np.arange(n + 1)).astype(np.int32), order


def _smooth_groups(surface: SurfaceMesh, smooth: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Number of the normal that each corner of each triangle shares over smooth edges, shape (m, 3)."""
    triangles = surface.triangles
    links = []
    for end in range(2):
        left, right = surface.edge_triangles[smooth].T
        vertex = surface.edges[smooth, end][:, None]
        links.append(
            np.stack(
                [
                    3 * left + np.argmax(triangles[left] == vertex, axis=1),
                    3 * right + np.argmax(triangles[right] == vertex, axis=1),
                ]
            )
        )
    i, j = np.concatenate(links, axis=1)
    graph = coo_array((np.ones(i.size, np.int8), (i, j)), shape=(triangles.size, triangles.size))
    return connected_components(graph, directed=False)[1].reshape(-1, 3).astype(np.int32)


@inlined
def weighted_point(x, slots, weights, out):
    """out = sum of weights (3,) times the positions x of slots (3,)."""
    a, b, c = slots[0], slots[1], slots[2]
    for i in range(3):
        out[i] = weights[0] * x[a, i] + weights[1] * x[b, i] + weights[2] * x[c, i]


@kernel
def walk(surface, x, p, t, weights, trial):
    """From triangle t to the one where the distance from p, a tuple, has a minimum over the surface x (s, 3).

    Returns the triangle; weights (3,): of its closest point. trial (3,): scratch.
    """
    triangles = surface.triangles
    d2, feature, _ = to_triangle(p, x, triangles, t, weights)
    for _ in range(STEPS):
        if feature == FACE:
            return t
        best = t
        if feature < VERTEX_A:
            other = surface.across[t, feature - EDGE_AB]
            if other >= 0:
                d2_other, _, _ = to_triangle(p, x, triangles, other, trial)
                if d2_other < FARTHER * d2:
                    best, d2 = other, d2_other
        else:
            slot = triangles[t, feature - VERTEX_A]
            for k in range(surface.around[slot], surface.around[slot + 1]):
                other = surface.fan[k]
                d2_other, _, _ = to_triangle(p, x, triangles, other, trial)
                if d2_other < FARTHER * d2:
                    best, d2 = other, d2_other
        if best == t:
            return t
        t = best
        d2, feature, _ = to_triangle(p, x, triangles, t, weights)
    return t


@kernel
def search(surface, x, points, held, first, count, triangle, nearest, trial):
    """triangle[k] = the triangle closest to points[k] (n, 3) of all, for `count` of them from `first` on.

    Their numbers run around at n. Points of held[k] >= 0 are left alone. A triangle is looked into where the
    sphere about it comes closer than the best so far. nearest (n,), trial (2, 3): scratch.
    """
    n, centre = points.shape[0], trial[1]
    for c in range(count):
        k = (first + c) % n
        if held[k] < 0:
            nearest[k] = to_triangle(vector(points, k), x, surface.triangles, triangle[k], trial[0])[0] ** 0.5
    for t in range(surface.triangles.shape[0]):
        radius2 = 0.0
        for i in range(3):
            centre[i] = 0.0
            for j in range(3):
                centre[i] += x[surface.triangles[t, j], i] / 3.0
        for j in range(3):
            s, d2 = surface.triangles[t, j], 0.0
            for i in range(3):
                d2 += (x[s, i] - centre[i]) ** 2
            radius2 = max(radius2, d2)
        radius = radius2**0.5
        for c in range(count):
            k = (first + c) % n
            if held[k] >= 0:
                continue
            d2 = 0.0
            for i in range(3):
                d2 += (points[k, i] - centre[i]) ** 2
            if d2 < (nearest[k] + radius) ** 2:
                distance = to_triangle(vector(points, k), x, surface.triangles, t, trial[0])[0] ** 0.5
                if distance < nearest[k]:
                    nearest[k], triangle[k] = distance, t


@kernel
def smooth_normal(surface, x, t, weights, n, face):
    """n (3,) = unit mean, by weights (3,), of the smooth normals at triangle t's corners.

    face (3,): scratch.
    """
    n[0], n[1], n[2] = 0.0, 0.0, 0.0
    for j in range(3):
        if weights[j] == 0.0:
            continue
        g = surface.corner[t, j]
        s0, s1, s2 = 0.0, 0.0, 0.0
        for k in range(surface.share[g], surface.share[g + 1]):
            _corner_vector(surface, x, surface.part[k] // 3, surface.part[k] % 3, face)
            s0, s1, s2 = s0 + face[0], s1 + face[1], s2 + face[2]
        length = (s0 * s0 + s1 * s1 + s2 * s2) ** 0.5
        scale = weights[j] / length if length > 0.0 else 0.0
        n[0], n[1], n[2] = n[0] + scale * s0, n[1] + scale * s1, n[2] + scale * s2
    if not _unit(n):
        faceted_normal(surface, x, t, n)


@inlined
def _corner_vector(surface, x, t, j, out):
    """out = (e1 x e2) / (|e1|^2 |e2|^2) of the two edges of triangle t at its corner j (Max 1999)."""
    a = surface.triangles[t, j]
    b = surface.triangles[t, (j + 1) % 3]
    c = surface.triangles[t, (j + 2) % 3]
    u0, u1, u2 = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
    v0, v1, v2 = x[c, 0] - x[a, 0], x[c, 1] - x[a, 1], x[c, 2] - x[a, 2]
    size = (u0 * u0 + u1 * u1 + u2 * u2) * (v0 * v0 + v1 * v1 + v2 * v2)
    scale = 1.0 / size if size > 0.0 else 0.0
    out[0] = scale * (u1 * v2 - u2 * v1)
    out[1] = scale * (u2 * v0 - u0 * v2)
    out[2] = scale * (u0 * v1 - u1 * v0)


@inlined
def _unit(n):
    """Scale n to length 1; False where it has no length."""
    length = (n[0] * n[0] + n[1] * n[1] + n[2] * n[2]) ** 0.5
    if length == 0.0:
        return False
    for i in range(3):
        n[i] /= length
    return True


@inlined
def faceted_normal(surface, x, t, n):
    """n (3,) = unit normal of triangle t."""
    a, b, c = surface.triangles[t, 0], surface.triangles[t, 1], surface.triangles[t, 2]
    triangle_normal(x[a], x[b], x[c], n)


@inlined
def crease_at(surface, t, weights):
    """The crease that a point of triangle t lies on: 0 none, 1 + j its edge j, 4 + j its corner j."""
    zeros, here = 0, 0
    for j in range(3):
        if weights[j] == 0.0:
            zeros += 1
        else:
            here = j
    if zeros == 2:
        return 4 + here if surface.sharp[surface.triangles[t, here]] else 0
    if zeros == 1:
        for j in range(3):
            # edge j joins corners j and j + 1, so that it is the third that has no weight
            if weights[(j + 2) % 3] == 0.0 and surface.creased[t, j]:
                return 1 + j
    return 0


@kernel
def crease_normal(surface, x, t, crease, n, face):
    """n (3,) = the angle-weighted normal there, whose side tells inside from outside (Baerentzen 2005)."""
    if crease < 4:
        faceted_normal(surface, x, t, n)
        other = surface.across[t, crease - 1]
        if other >= 0:
            faceted_normal(surface, x, other, face)
            for i in range(3):
                n[i] += face[i]
    else:
        slot = surface.triangles[t, crease - 4]
        n[0], n[1], n[2] = 0.0, 0.0, 0.0
        for k in range(surface.around[slot], surface.around[slot + 1]):
            other = surface.fan[k]
            faceted_normal(surface, x, other, face)
            angle = _corner_angle(surface, x, other, slot)
            for i in range(3):
                n[i] += angle * face[i]
    if not _unit(n):
        faceted_normal(surface, x, t, n)


@inlined
def _corner_angle(surface, x, t, slot):
    """Angle of triangle t at one of its slots [rad]."""
    j = 0
    while surface.triangles[t, j] != slot:
        j += 1
    b, c = surface.triangles[t, (j + 1) % 3], surface.triangles[t, (j + 2) % 3]
    uv, uu, vv = 0.0, 0.0, 0.0
    for i in range(3):
        u, v = x[b, i] - x[slot, i], x[c, i] - x[slot, i]
        uv, uu, vv = uv + u * v, uu + u * u, vv + v * v
    size = (uu * vv) ** 0.5
    return np.arccos(min(1.0, max(-1.0, uv / size))) if size > 0.0 else 0.0
