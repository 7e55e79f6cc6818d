"""Strain and stress of a deformed body at its nodes, in the scene's axes: what a solid is asked for.

With F = V R of an element, by the means of its shape functions' gradients, the strain is V - 1. The stress is
Cauchy's of a law in principal stretches, dPsi/dF F^T / J, and of the linear law, whose strain is small in
axes that turn with the element, 2 mu (V - 1) + lam tr(V - 1): what the body's forces are of. Elements that
change their volume in patches have their patch's share of it (palpo.physics.fem.patch_tetrahedra). Means of
the elements around a node, weighted by their volumes, are its own: Zienkiewicz & Zhu 1987, section 2.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.element import Elements
from palpo.physics.fem.integrated import PatchIntegrated
from palpo.physics.fem.laws import LAWS, LINEAR
from palpo.physics.fem.material import Material
from palpo.physics.fem.patch_tetrahedra import PatchTetrahedra

Floats = NDArray[np.float64]


class Loads(NamedTuple):
    """Strain and stress, of elements (m, 3, 3) or at nodes (n, 3, 3)."""

    strain: Floats
    """V - 1 [-]."""
    stress: Floats
    """Elastic, without damping and relaxation [Pa]."""


def element_loads(elements: Elements, material: Material, x: Floats) -> Loads:
    """Of each element, at positions x (n, 3) [m]."""
    f = np.einsum("mai,maj->mij", x[elements.cells], elements.gradients)
    u, s, vh = np.linalg.svd(f)
    turned = np.linalg.det(u @ vh) < 0.0  # an inverted element: its smallest stretch is negative
    s[turned, 2] *= -1.0
    strain = (u * (s - 1.0)[:, None, :]) @ u.transpose(0, 2, 1)
    patches = elements.hooke if isinstance(elements, PatchIntegrated) else elements
    lam, mu = material.lame()
    linear = material.law == LINEAR
    change = s.sum(axis=1) - 3.0 if linear else s.prod(axis=1) - 1.0
    shared = change
    if isinstance(patches, PatchTetrahedra):
        shared = patches.mean(change)
    if linear:
        stress = 2.0 * mu * strain
    else:
        law = LAWS[material.law](lam, mu, material.shape)
        stress = law.stress(f) @ f.transpose(0, 2, 1) / s.prod(axis=1)[:, None, None]
        shared = shared - change
    stress = stress + lam * shared[:, None, None] * np.eye(3)
    return Loads(strain, material.stiffness_of(len(strain))[:, None, None] * stress)


def nodal_mean(elements: Elements, values: Floats, nodes: int) -> Floats:
    """Means at so many nodes (n, ...) of what is told of elements (m, ...), by their volumes; 0 at none."""
    volumes, corners = elements.shares.sum(axis=1), elements.cells.shape[1]
    weights = np.bincount(elements.cells.ravel(), np.repeat(volumes, corners), nodes)
    flat = values.reshape(len(values), -1)
    means = np.zeros((nodes, flat.shape[1]))
    np.add.at(means, elements.cells, (volumes[:, None] * flat)[:, None, :])
    means /= np.maximum(weights, np.finfo(float).tiny)[:, None]
    return means.reshape(nodes, *values.shape[1:])


def nodal_loads(elements: Elements, material: Material, x: Floats) -> Loads:
    """At each node, at positions x (n, 3) [m] of all nodes."""
    strain, stress = element_loads(elements, material, x)
    return Loads(nodal_mean(elements, strain, len(x)), nodal_mean(elements, stress, len(x)))
