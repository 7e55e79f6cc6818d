"""Equivalent strain of a deformed tetrahedral mesh at its nodes: a measure to colour it by.

Green-Lagrange strain E = (F^T F - I) / 2 of the deformation gradient F; equivalent strain after von Mises,
sqrt(2/3 e : e) with the deviator e = E - tr(E) I / 3: Belytschko et al., Nonlinear Finite Elements for
Continua and Structures (2014), section 3.3. It does not see a change of volume, nor any rigid motion.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.fem.tet4 import gradients
from palpo.physics.numerics.kernels import kernel


class NodalStrain:
    """Equivalent strain [-] at the nodes, the mean of the elements around each, weighted by rest volume.

    nodes: shape at rest [m], (n, 3); tets (m, 4). Raises InputError for an element without positive volume.
    """

    def __init__(self, nodes: ArrayLike, tets: ArrayLike) -> None:
        nodes = np.asarray(nodes, np.float64)
        self._tets = np.ascontiguousarray(tets, np.int32)
        volumes, self._gradients = gradients(nodes, self._tets)
        around = np.bincount(self._tets.ravel(), np.repeat(volumes, 4), minlength=len(nodes))
        self._shares = volumes[:, None] / around[self._tets]

    def evaluate(self, x: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Write the strain at positions x (n, 3) [m] to out (n,), without the interpreter's lock."""
        nodal_strain(x, self._tets, self._gradients, self._shares, out)


@kernel
def nodal_strain(x, tets, g, shares, out):
    """out (n,) = sum over elements of shares (m, 4) times the element's strain; g (m, 4, 3) [1/m]."""
    out[:] = 0.0
    for e in range(tets.shape[0]):
        strain = equivalent_strain(x, tets[e], g[e])
        for a in range(4):
            out[tets[e, a]] += shares[e, a] * strain


@kernel
def equivalent_strain(x, tet, g):
    """sqrt(2/3 e : e) of one element with shape-function gradients g (4, 3) [1/m]."""
    square = 0.0
    trace = 0.0
    for i in range(3):
        for j in range(i, 3):
            # C_ij = F_ki F_kj; edges instead of positions lose no digits far from the origin
            c = 0.0
            for k in range(3):
                fi, fj = 0.0, 0.0
                for a in range(1, 4):
                    edge = x[tet[a], k] - x[tet[0], k]
                    fi += edge * g[a, i]
                    fj += edge * g[a, j]
                c += fi * fj
            if i == j:
                strain = 0.5 * (c - 1.0)
                trace += strain
                square += strain * strain
            else:
                square += 0.5 * c * c
    # e : e = E : E - tr(E)^2 / 3, which rounding may take below zero
    return math.sqrt(2.0 / 3.0 * max(square - trace * trace / 3.0, 0.0))
