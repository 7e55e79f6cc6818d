"""Linear tetrahedron: gradients of the shape functions, stiffness and mass at rest.

Source: Felippa & Haugen, A unified formulation of small-strain corotational finite elements (CMAME 2005),
reference 17 of Dervaux et al. (IROS 2013), for the role of K0; the element itself is the textbook one.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.mesh.tet import tet_volumes
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


def stiffness(nodes: NDArray, cells: NDArray, lam: float, mu: float) -> NDArray:
    """K0 [N/m], shape (m, 12, 12), of Lame constants lam, mu [Pa]; see Element."""
    return blocks(*gradients(nodes, cells), lam, mu)


def points(nodes: NDArray, cells: NDArray) -> tuple[NDArray, NDArray]:
    """See Element: one."""
    volumes, g = gradients(nodes, cells)
    return volumes[:, None], g[:, None]


def mean_gradients(nodes: NDArray, cells: NDArray) -> NDArray:
    """See Element."""
    return gradients(nodes, cells)[1]


def lumped_volumes(nodes: NDArray, cells: NDArray) -> NDArray:
    """See Element: a quarter each."""
    return np.repeat(tet_volumes(nodes, cells)[:, None] / 4.0, 4, axis=1)


def products(nodes: NDArray, cells: NDArray) -> NDArray:
    """See Element: V / 20 (1 + delta_ab)."""
    return tet_volumes(nodes, cells)[:, None, None] / 20.0 * (np.ones((4, 4)) + np.eye(4))


def blocks(volumes: NDArray, g: NDArray, lam: float, mu: float) -> NDArray:
    """K_ab = V (lam g_a g_b^T + mu g_b g_a^T + mu g_a.g_b I) [N/m], (m, 3 c, 3 c), of gradients (m, c, 3)."""
    k = (
        lam * np.einsum("eai,ebj->eaibj", g, g)
        + mu * np.einsum("ebi,eaj->eaibj", g, g)
        + mu * np.einsum("eak,ebk,ij->eaibj", g, g, np.eye(3))
    )
    n = 3 * g.shape[1]
    return (volumes[:, None, None, None, None] * k).reshape(-1, n, n)
