"""Equivalent strain of a deformed mesh at its nodes: a measure to colour it by.

Green-Lagrange strain E = (F^T F - I) / 2 of an element's mean deformation gradient F; equivalent strain after
von Mises, sqrt(2/3 e : e) with the deviator e = E - tr(E) I / 3: Belytschko et al., Nonlinear Finite Elements
for Continua and Structures (2014), section 3.3. It does not see a change of volume, nor any rigid motion.
"""

import math

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.elements import SolidMesh, element_of
from palpo.physics.numerics.kernels import inlined, kernel


class NodalStrain:
    """Equivalent strain [-] at the nodes, the mean of the elements around each, weighted by rest volume.

    mesh: at rest, of the usual elements of its kind. Raises InputError for one without positive volume.
    """

    def __init__(self, mesh: SolidMesh) -> None:
        element, self._cells = element_of(mesh), np.ascontiguousarray(mesh.cells, np.int32)
        self._gradients = element.gradients(mesh.nodes, self._cells)
        volumes = element.volumes(mesh.nodes, self._cells).sum(axis=1)
        around = np.bincount(
            self._cells.ravel(), np.repeat(volumes, self._cells.shape[1]), minlength=len(mesh.nodes)
        )
        self._shares = volumes[:, None] / around[self._cells]

    def evaluate(self, x: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Write the strain at positions x (n, 3) [m] to out (n,), without the interpreter's lock."""
        nodal_strain(x, self._cells, self._gradients, self._shares, out)


@kernel
def nodal_strain(x, cells, g, shares, out):
    """out (n,) = sum over elements of shares (m, c) times the element's strain; g (m, c, 3) [1/m]."""
    out[:] = 0.0
    for e in range(cells.shape[0]):
        strain = equivalent_strain(x, cells[e], g[e])
        for a in range(cells.shape[1]):
            out[cells[e, a]] += shares[e, a] * strain


@kernel
def equivalent_strain(x, cell, g):
    """sqrt(2/3 e : e) of one element with mean gradients g (c, 3) [1/m] of its shape functions."""
    square = 0.0
    trace = 0.0
    for i in range(3):
        for j in range(i, 3):
            # C_ij = F_ki F_kj; edges instead of positions lose no digits far from the origin
            c = 0.0
            for k in range(3):
                fi, fj = 0.0, 0.0
                for a in range(1, cell.size):
                    edge = x[cell[a], k] - x[cell[0], k]
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


@inlined
def _gradient(u, cell, g, f):
    """f (3, 3) = sum_a u_a g_a^T of an element's nodes cell (c,) and their gradients g (c, 3)."""
    f[:] = 0.0
    for a in range(cell.size):
        for i in range(3):
            for j in range(3):
                f[i, j] += u[cell[a], i] * g[a, j]


@kernel
def largest_gradient(u, cells, gradients):
    """The largest Frobenius norm of sum_a u_a g_a^T over elements (m, c), of a field u (n, 3)."""
    most, f = 0.0, np.empty((3, 3))
    for e in range(cells.shape[0]):
        _gradient(u, cells[e], gradients[e], f)
        square = 0.0
        for i in range(3):
            for j in range(3):
                square += f[i, j] * f[i, j]
        most = max(most, square)
    return math.sqrt(most)


@kernel
def volume_ratios(x, cells, gradients):
    """det F (m,) of elements (m, c) at x (n, 3) [m], in their mean: volumes over those at rest.

    F = sum_a x_a g_a^T with gradients g (m, c, 3) [1/m]; not above 0 where one is turned inside out.
    """
    out, f = np.empty(cells.shape[0]), np.empty((3, 3))
    for e in range(cells.shape[0]):
        _gradient(x, cells[e], gradients[e], f)
        volume = f[0, 0] * (f[1, 1] * f[2, 2] - f[1, 2] * f[2, 1])
        volume -= f[0, 1] * (f[1, 0] * f[2, 2] - f[1, 2] * f[2, 0])
        volume += f[0, 2] * (f[1, 0] * f[2, 1] - f[1, 1] * f[2, 0])
        out[e] = volume
    return out
