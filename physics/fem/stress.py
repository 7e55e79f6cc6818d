"""Stress and strain of a linear body at its nodes: what a part is judged by.

Cauchy's stress sigma = lam tr(eps) I + 2 mu eps of the small strain eps = (grad u + grad u^T) / 2, and its
equivalent after von Mises, sqrt(3/2 s : s) with s = sigma - tr(sigma) I / 3: O. C. Zienkiewicz, R. L. Taylor,
The Finite Element Method (2005), volume 1, section 6.2, and volume 2, section 3.3.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.fem.material import Material
from palpo.physics.fem.tet4 import gradients

Floats = NDArray[np.float64]


class NodalStress(NamedTuple):
    """At each of n nodes, the mean of the elements around it, weighted by their volume."""

    stress: Floats
    """Equivalent, after von Mises [Pa], shape (n,)."""
    strain: Floats
    """Largest principal one [-], shape (n,); negative where all are compressed."""


class NodalLoad:
    """Loads of a mesh for its displacements; raises InputError for an element without positive volume.

    nodes: at rest [m], (n, 3). tets: (m, 4).
    """

    def __init__(self, nodes: ArrayLike, tets: ArrayLike, material: Material) -> None:
        nodes, self._tets = np.asarray(nodes, float), np.asarray(tets)
        volumes, self._gradients = gradients(nodes, self._tets)
        self._n = len(nodes)
        around = np.bincount(self._tets.ravel(), np.repeat(volumes, 4), minlength=self._n)
        self._shares = volumes[:, None] / np.where(around > 0.0, around, 1.0)[self._tets]
        self._lame = material.lame()

    def at(self, displacement: Floats) -> NodalStress:
        """Loads under a displacement (n, 3) [m]."""
        grad = np.einsum("mai,maj->mij", displacement[self._tets], self._gradients)
        strain = 0.5 * (grad + grad.transpose(0, 2, 1))
        _, mu = self._lame
        trace = np.trace(strain, axis1=1, axis2=2)
        deviator = strain - trace[:, None, None] / 3.0 * np.eye(3)
        stress = 2.0 * mu * np.sqrt(1.5 * np.einsum("mij,mij->m", deviator, deviator))
        return NodalStress(self._nodal(stress), self._nodal(np.linalg.eigvalsh(strain)[:, 2]))

    def _nodal(self, of_elements: Floats) -> Floats:
        out = np.zeros(self._n)
        np.add.at(out, self._tets, self._shares * of_elements[:, None])
        return out
