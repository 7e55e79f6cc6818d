"""Trilinear hexahedron: gradients at the integration points and stiffness, with four integrations.

With two points a direction (2x2x2, exact for the volume and for every constant stress) the element is "full":
it locks as nu approaches 1/2, since a trilinear field cannot bend without a change of volume at some point.
The two remedies replace the divergence by its value for the whole element:
  "selective"  reduced integration of the volumetric part, the divergence at the centre;
  "bbar"       the mean divergence over the element.
They agree on parallelepipeds. On other shapes only B-bar (and full) passes the patch test.
All three lock in shear as soon as an element bends: its edges stay straight. A fourth does neither:
  "incompatible"  three bubbles (1 - xi_i^2) of each displacement, which neighbours do not share, condensed
                  out; a block that is one element thick bends as a beam does.
It passes the patch test on every shape, since the bubbles' gradients, taken with the Jacobian at the centre
and weighted by its ratio to the local one, vanish in the mean.
Source: Hughes, Generalization of selective integration procedures (IJNME 1980); the mean dilatation after
Nagtegaal, Parks & Rice (CMAME 1974); Taylor, Beresford and Wilson, A non-conforming element for stress
analysis (IJNME 1976).
"""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from palpo.physics.mesh.hex import CORNERS
from palpo.physics.numerics.errors import InputError

Integration = Literal["bbar", "selective", "full", "incompatible"]

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
    nodes: NDArray, hexes: NDArray, lam: float, mu: float, integration: Integration = "incompatible"
) -> NDArray:
    """Element stiffness [N/m], shape (m, 24, 24), of Lame constants lam, mu [Pa].

    Deviatoric part at the eight points; bulk part kappa = lam + 2 mu / 3 by `integration`.
    Raises InputError for an element of non-positive Jacobian and an unknown integration.
    """
    if integration not in get_args(Integration):
        raise InputError(
            f"integration is {integration!r}, expected one of {', '.join(get_args(Integration))}."
        )
    if integration == "incompatible":
        return _condensed(nodes, hexes, lam, mu)
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


def _condensed(nodes: NDArray, hexes: NDArray, lam: float, mu: float) -> NDArray:
    """Stiffness (m, 24, 24) of eight corners and three bubbles, the bubbles without force."""
    w, g = gradients(nodes, hexes)
    d = shape_gradients(np.zeros((1, 3)))[0]
    centre = np.einsum("eai,ak->eik", nodes[hexes], d)
    # bubble k has the one local derivative -2 xi_k
    share = np.linalg.det(centre)[:, None] / w
    bubbles = share[:, :, None, None] * np.einsum("qk,eki->eqki", -2.0 * POINTS, np.linalg.inv(centre))
    both = np.concatenate([g, bubbles], axis=2)
    m, n = len(hexes), 3 * both.shape[2]
    dot = np.einsum("eq,eqak,eqbk->eab", w, both, both, optimize=True)
    outer = np.einsum("eq,eqai,eqbj->eaibj", w, both, both, optimize=True)
    k = mu * (np.einsum("eab,ij->eaibj", dot, np.eye(3)) + outer.transpose(0, 1, 4, 3, 2)) + lam * outer
    k = k.reshape(m, n, n)
    across, inner = k[:, 24:, :24], k[:, 24:, 24:]
    return k[:, :24, :24] - across.transpose(0, 2, 1) @ np.linalg.solve(inner, across)


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


def mean_gradients(nodes: NDArray, hexes: NDArray) -> NDArray:
    """Means of grad N_a over an element [1/m], shape (m, 8, 3)."""
    w, g = gradients(nodes, hexes)
    return np.einsum("eq,eqai->eai", w, g) / w.sum(axis=1)[:, None, None]


def products(nodes: NDArray, hexes: NDArray) -> NDArray:
    """Integrals of N_a N_b [m3], shape (m, 8, 8), by the integration points."""
    w, _ = gradients(nodes, hexes)
    shape = (1.0 + POINTS[:, None, :] * CORNERS).prod(axis=2) / 8.0
    return np.einsum("eq,qa,qb->eab", w, shape, shape, optimize=True)
