"""Trilinear hexahedron: gradients at the integration points and stiffness, with three integrations.

With two points a direction (2x2x2, exact for the volume and for every constant stress) the element is "full":
it locks as nu approaches 1/2, since a trilinear field cannot bend without a change of volume at some point.
The two remedies replace the divergence by its value for the whole element:
  "selective"  reduced integration of the volumetric part, the divergence at the centre;
  "bbar"       the mean divergence over the element.
They agree on parallelepipeds. On other shapes only B-bar (and full) passes the patch test.
Source: Hughes, Generalization of selective integration procedures (IJNME 1980); the mean dilatation after
Nagtegaal, Parks & Rice (CMAME 1974).
"""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from palpo.physics.errors import InputError
from palpo.physics.mesh.hex import CORNERS

Integration = Literal["bbar", "selective", "full"]

POINTS = CORNERS / np.sqrt(3.0)
"""Local coordinates of the integration points, all of weight 1."""


def shape_gradients(local: NDArray) -> NDArray:
    """dN_a/dxi of N_a = (1 + xi xi_a)(1 + eta eta_a)(1 + zeta zeta_a) / 8 at points (q, 3); (q, 8, 3)."""
    factors = 1.0 + local[:, None, :] * CORNERS
    others = factors[:, :, [[1, 2], [2, 0], [0, 1]]].prod(axis=3)
    return CORNERS * others / 8.0


def gradients(nodes: NDArray, hexes: NDArray, local: NDArray = POINTS) -> tuple[NDArray, NDArray]:
    """Jacobians [m3], shape (m, q), and shape-function gradients [1/m], shape (m, q, 8, 3), at local points.

    nodes (n, 3) [m], hexes (m, 8). Raises InputError for the first element that is not positive at a point.
    """
    d = shape_gradients(local)
    jacobian = np.einsum("eai,qak->eqik", nodes[hexes], d)
    determinants = np.linalg.det(jacobian)
    bad = np.flatnonzero(~(determinants > 0.0).all(axis=1))
    if bad.size:
        raise InputError(
            f"hexahedron {bad[0]} has the Jacobian {determinants[bad[0]].min():.3g} m3 at an integration "
            "point but needs a positive one (nodes in the order of VTK, convex shape)."
        )
    return determinants, np.einsum("qak,eqki->eqai", d, np.linalg.inv(jacobian))


def stiffness(
    nodes: NDArray, hexes: NDArray, lam: float, mu: float, integration: Integration = "bbar"
) -> NDArray:
    """Element stiffness [N/m], shape (m, 24, 24), of Lame constants lam, mu [Pa].

    Deviatoric part at the eight points; bulk part kappa = lam + 2 mu / 3 by `integration`.
    Raises InputError for an element of non-positive Jacobian and an unknown integration.
    """
    if integration not in get_args(Integration):
        raise InputError(
            f"integration is {integration!r}, expected one of {', '.join(get_args(Integration))}."
        )
    w, g = gradients(nodes, hexes)
    dot = np.einsum("eq,eqak,eqbk->eab", w, g, g)
    outer = np.einsum("eq,eqai,eqbj->eaibj", w, g, g)
    k = mu * (np.einsum("eab,ij->eaibj", dot, np.eye(3)) + outer.transpose(0, 1, 4, 3, 2))
    if integration == "full":
        k += lam * outer
    else:
        k -= 2.0 / 3.0 * mu * outer
        volume, mean = _element_divergence(nodes, hexes, w, g, integration)
        k += (lam + 2.0 / 3.0 * mu) * np.einsum("e,eai,ebj->eaibj", volume, mean, mean)
    return k.reshape(-1, 24, 24)


def _element_divergence(
    nodes: NDArray, hexes: NDArray, w: NDArray, g: NDArray, integration: Integration
) -> tuple[NDArray, NDArray]:
    """Weight [m3], shape (m,), and gradients [1/m], shape (m, 8, 3), that stand for the whole element."""
    if integration == "selective":
        centre, at_centre = gradients(nodes, hexes, np.zeros((1, 3)))
        return 8.0 * centre[:, 0], at_centre[:, 0]
    volume = w.sum(axis=1)
    return volume, np.einsum("eq,eqai->eai", w, g) / volume[:, None, None]


def lumped_volumes(nodes: NDArray, hexes: NDArray) -> NDArray:
    """Share of each corner in its element's volume, the integral of N_a [m3], shape (m, 8)."""
    w, _ = gradients(nodes, hexes)
    shape = (1.0 + POINTS[:, None, :] * CORNERS).prod(axis=2) / 8.0
    return w @ shape
