"""Ten-node tetrahedron with straight edges: stiffness, and a lumped mass that is positive everywhere.

Displacements are quadratic, so that strains are linear: an element bends, where one of four nodes has to
shear. With straight edges the gradients of the volume coordinates are constant, and the stiffness's integrand
is quadratic: the rule of four points integrates it exactly. Nodes: four corners, then the middles of `EDGES`.
Source: Zienkiewicz and Taylor, The Finite Element Method; the mass after Hinton, Rock and Zienkiewicz, A note
on mass lumping and related processes in the finite element method (Earthq. Eng. Struct. Dyn. 1976).
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem import tet4
from palpo.physics.mesh.quadratic import EDGES

NEAR, FAR = (5.0 + 3.0 * 5.0**0.5) / 20.0, (5.0 - 5.0**0.5) / 20.0
"""Volume coordinates of an integration point: of the corner that it is near, and of the others."""

CORNER, MIDDLE = 1.0 / 36.0, 4.0 / 27.0
"""Shares of the mass, in proportion to the squares of the shape functions: the integral of a corner's shape
function itself is negative."""


def stiffness(nodes: NDArray, cells: NDArray, lam: float, mu: float) -> NDArray[np.float64]:
    """Element stiffness [N/m], shape (m, 30, 30), of Lame constants lam, mu [Pa].

    nodes (n, 3) [m], cells (m, 10). Raises InputError for the first element without positive volume.
    """
    k = np.zeros((len(cells), 30, 30))
    weights, slopes = points(nodes, cells)
    for corner in range(4):
        k += tet4.blocks(weights[:, corner], slopes[:, corner], lam, mu)
    return k


def points(nodes: NDArray, cells: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """See Element: four, each near a corner."""
    volumes, g = tet4.gradients(nodes, cells[:, :4])
    slopes = np.empty((len(cells), 4, 10, 3))
    for corner in range(4):
        at = np.full(4, FAR)
        at[corner] = NEAR
        slopes[:, corner, :4] = (4.0 * at - 1.0)[:, None] * g
        slopes[:, corner, 4:] = 4.0 * (
            at[EDGES[:, 0], None] * g[:, EDGES[:, 1]] + at[EDGES[:, 1], None] * g[:, EDGES[:, 0]]
        )
    return np.repeat(0.25 * volumes[:, None], 4, axis=1), slopes


def lumped_volumes(nodes: NDArray, cells: NDArray) -> NDArray[np.float64]:
    """Share of each node in its element's volume [m3], shape (m, 10)."""
    shares = np.repeat([CORNER, MIDDLE], [4, 6])
    return np.asarray(tet4.gradients(nodes, cells[:, :4])[0][:, None] * shares)


def mean_gradients(nodes: NDArray, cells: NDArray) -> NDArray[np.float64]:
    """Means of grad N_a [1/m], (m, 10, 3): none of a corner, of the middle of i and j grad (L_i + L_j)."""
    _, g = tet4.gradients(nodes, cells[:, :4])
    return np.concatenate([np.zeros_like(g), g[:, EDGES[:, 0]] + g[:, EDGES[:, 1]]], axis=1)


def products(nodes: NDArray, cells: NDArray) -> NDArray[np.float64]:
    """Integrals of N_a N_b [m3], shape (m, 10, 10)."""
    ends = [(i, i) for i in range(4)] + [tuple(edge) for edge in EDGES]
    shared = np.array([[len(set(a) & set(b)) for b in ends] for a in ends])
    middle = np.array([a[0] != a[1] for a in ends])
    table, corner = np.empty((10, 10)), ~middle
    table[np.ix_(corner, corner)] = 1.0 + 5.0 * np.eye(4)
    table[np.ix_(middle, middle)] = 8.0 + 8.0 * (shared[4:, 4:] == 1) + 24.0 * np.eye(6)
    table[np.ix_(corner, middle)] = np.where(shared[:4, 4:] == 1, -4.0, -6.0)
    table[np.ix_(middle, corner)] = table[np.ix_(corner, middle)].T
    return np.asarray(tet4.gradients(nodes, cells[:, :4])[0][:, None, None] / 420.0 * table)
