"""Linear tetrahedron: gradients of the shape functions, stiffness and mass at rest.

Source: Felippa & Haugen, A unified formulation of small-strain corotational finite elements (CMAME 2005),
reference 17 of Dervaux et al. (IROS 2013), for the role of K0; the element itself is the textbook one.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.errors import InputError


def gradients(nodes: NDArray, tets: NDArray) -> tuple[NDArray, NDArray]:
    """Volumes [m3], shape (m,), and shape-function gradients [1/m], shape (m, 4, 3).

    nodes (n, 3) [m], tets (m, 4). Raises InputError for the first element without positive volume.
    """
    edges = nodes[tets[:, 1:]] - nodes[tets[:, :1]]
    volumes = np.linalg.det(edges) / 6.0
    size = np.abs(edges).max(axis=(1, 2))
    flat = np.flatnonzero(~(volumes > 1e-14 * size**3))
    if flat.size:
        raise InputError(
            f"tetrahedron {flat[0]} has volume {volumes[flat[0]]:.3g} m3 but needs a positive one "
            "(nodes in right-handed order)."
        )
    g = np.empty((len(tets), 4, 3))
    g[:, 1:] = np.linalg.inv(edges).transpose(0, 2, 1)
    g[:, 0] = -g[:, 1:].sum(axis=1)
    return volumes, g


def stiffness(volumes: NDArray, g: NDArray, lam: float, mu: float) -> NDArray:
    """K0 [N/m], shape (m, 12, 12), of gradients (m, 4, 3)."""
    return blocks(volumes, g, lam, mu)


def blocks(volumes: NDArray, g: NDArray, lam: float, mu: float) -> NDArray:
    """K_ab = V (lam g_a g_b^T + mu g_b g_a^T + mu g_a.g_b I) [N/m], (m, 3 c, 3 c), of gradients (m, c, 3)."""
    k = (
        lam * np.einsum("eai,ebj->eaibj", g, g)
        + mu * np.einsum("ebi,eaj->eaibj", g, g)
        + mu * np.einsum("eak,ebk,ij->eaibj", g, g, np.eye(3))
    )
    n = 3 * g.shape[1]
    return (volumes[:, None, None, None, None] * k).reshape(-1, n, n)


def consistent_mass(volumes: NDArray, density: float) -> NDArray:
    """Scalar element mass [kg], shape (m, 4, 4); the same in each direction: rho V / 20 (1 + delta_ab)."""
    return density * volumes[:, None, None] / 20.0 * (np.ones((4, 4)) + np.eye(4))
