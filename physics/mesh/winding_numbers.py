"""Inside or outside by solid angle.

Source: van Oosterom and Strackee, The solid angle of a plane triangle (IEEE TBME 1983).
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.mesh.surface import SurfaceMesh


def winding_numbers(points: NDArray[np.float64], surface: SurfaceMesh) -> NDArray[np.float64]:
    """How often a closed surface winds round each point (n, 3) [m]; shape (n,), 1 inside and 0 outside."""
    used = surface.vertices[surface.used_vertices]
    near = ((points > used.min(axis=0)) & (points < used.max(axis=0))).all(axis=1)
    winding = np.zeros(len(points))
    a, b, c = (surface.vertices[surface.triangles[:, i]] - points[near, None] for i in range(3))
    la, lb, lc = (np.linalg.norm(side, axis=2) for side in (a, b, c))
    numerator = np.einsum("nti,nti->nt", a, np.cross(b, c))
    ab, bc, ca = (np.einsum("nti,nti->nt", p, q) for p, q in ((a, b), (b, c), (c, a)))
    half_angles = np.arctan2(numerator, la * lb * lc + ab * lc + bc * la + ca * lb)
    winding[near] = half_angles.sum(axis=1) / (2.0 * np.pi)
    return winding
