"""What a picture shows of bodies that have no mesh: round ones, and planes."""

import numpy as np
from numpy.typing import NDArray

from palpo.config.schema.body import Plane
from palpo.config.schema.geometry import RigidGeometry
from palpo.physics.exchange.snapshot import plane_corners
from palpo.physics.numerics.math3 import quat_to_matrix

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]

AROUND, RINGS = 24, 7
"""Facets of round rigid bodies: around the axis, and from the rim of an end to its pole."""
PLATE = 2.6
"""Half a plate's width, in lengths of the scene: where the picture's ground has faded."""


def capsule_surface(
    radius: float, length: float, around: int = AROUND, n_rings: int = RINGS
) -> tuple[Floats, Indices]:
    """Vertices and outward triangles of a capsule about y, length [m] between its centres; a ball for 0."""
    rise = np.linspace(-np.pi / 2, np.pi / 2, 2 * n_rings)[1:-1]
    turn = np.linspace(0.0, 2 * np.pi, around, endpoint=False)
    rings = np.empty((len(rise), around, 3))
    rings[..., 0] = radius * np.cos(rise)[:, None] * np.sin(turn)
    rings[..., 1] = (radius * np.sin(rise) + 0.5 * length * np.sign(rise))[:, None]
    rings[..., 2] = radius * np.cos(rise)[:, None] * np.cos(turn)
    poles = np.array([[0.0, -radius - length / 2, 0.0], [0.0, radius + length / 2, 0.0]])
    vertices = np.vstack([rings.reshape(-1, 3), poles])
    k, after = np.arange(around), (np.arange(around) + 1) % around
    bottom, top = len(vertices) - 2, len(vertices) - 1
    triangles = [np.stack([np.full(around, bottom), after, k], axis=1)]
    for ring in range(len(rise) - 1):
        low, high = ring * around, (ring + 1) * around
        triangles.append(np.stack([low + k, low + after, high + after], axis=1))
        triangles.append(np.stack([low + k, high + after, high + k], axis=1))
    last = (len(rise) - 1) * around
    triangles.append(np.stack([np.full(around, top), last + k, last + after], axis=1))
    return vertices, np.vstack(triangles).astype(np.int32)


def round_surface(g: RigidGeometry, scale: float = 1.0) -> tuple[Floats, Indices] | None:
    """What is shown of a ball or a capsule at a scale, in its own frame; None of another shape."""
    match g.kind:
        case "sphere":
            return capsule_surface(g.radius * scale, 0.0)
        case "capsule":
            return capsule_surface(g.radius * scale, g.length * scale)
        case _:
            return None


def plate(body: Plane, solid: Floats) -> Floats:
    """Corners (4, 3) [m] of a plane around points (n, 3), so wide that it fades before it ends."""
    lower, upper = solid.min(axis=0), solid.max(axis=0)
    normal = np.array(body.normal, float) / np.linalg.norm(body.normal)
    centre = 0.5 * (lower + upper)
    centre -= normal * (normal @ (centre - np.array(body.point)))
    return plane_corners(centre, normal, PLATE * float(np.linalg.norm(upper - lower)))


def rotate(q: Floats, points: Floats) -> Floats:
    """Points (n, 3) turned by the unit quaternion q (w, x, y, z)."""
    matrix = np.empty((3, 3))
    quat_to_matrix(q, matrix)
    return points @ matrix.T
