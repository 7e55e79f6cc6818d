"""How far a mesh of linear tetrahedra is from what a press on it would feel on no mesh: by recovered stress.

Elements of one strain each have stresses that jump between them. Their means at the nodes, interpolated, are
nearer to the exact stress s than an element's s_h is, so that

    eta^2 = integral of (s* - s_h) : C^-1 (s* - s_h)

estimates the energy that the mesh lacks (Zienkiewicz & Zhu, A simple error estimator and adaptive procedure
for practical engineering analysis, IJNME 24, 1987). Under a given load f a body without a mesh would yield by
f u = f u_h + eta^2, since energies of the error and of the solution add up. What facets are known to yield by
between their nodes (palpo.physics.fem.facet_yield) is taken off it, where contacts meet by areas.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.integrated import PatchIntegrated
from palpo.physics.fem.nodal_fields import nodal_mean
from palpo.physics.fem.patch_tetrahedra import PatchTetrahedra
from palpo.physics.mesh.tet import TetMesh

Floats = NDArray[np.float64]

TOLERANCE = 1e-4
"""Of the solution under the load: far below what the estimate can tell."""
CUTS = 16
"""Parts of a facet's edge for the integral of the pressure over it."""
UNSURE = 1.0 / 3.0
"""Share by which eta^2 may be off on coarse meshes (tests/convergence/test_mesh_error.py)."""
_NEAR, _FAR = 0.58541020, 0.13819660
"""Weights of the corners at the four points that integrate squares over a tetrahedron."""


def can_estimate(body: SoftBody) -> bool:
    """Whether its elements have one strain each, and its surface ends where they do."""
    return isinstance(body.mesh, TetMesh) and body.mesh.filled is None


def press_error(
    body: SoftBody, triangles: NDArray[np.int32], centre: Floats, radius: float, by_area: bool
) -> tuple[float, float]:
    """By which share a press on the body at rest is felt too stiff (positive) or too soft, and how far off
    that may be: where what facets yield by takes nearly all of it away, the rest is no measure of the error.

    The load is Hertz's pressure sqrt(1 - r^2 / a^2) on those of the facets (m, 3) of its surface that lie
    within the radius a [m] of a centre (3,) [m] on it and face as the nearest one does, along their normals.
    by_area: whether contacts add what facets yield by between their nodes.
    """
    load, squares = _hertz(body.mesh.nodes, triangles, centre, radius)
    u = _pressed(body, load)
    stress, half = _stress(body, u)
    lacking = _recovered_error(body, stress)
    yielding = float(load.ravel() @ u.ravel()) if body.fixed.size else half
    given = float(body.facet_yield(triangles) @ squares) if by_area else 0.0
    return (lacking - given) / (yielding + given), UNSURE * lacking / (yielding + given)


def _hertz(x: Floats, triangles: NDArray[np.integer], centre: Floats, radius: float) -> tuple[Floats, Floats]:
    """Forces of the nodes (n, 3), 1 N in all, and the integral of p^2 over each facet (m,) [N^2/m2].

    A pressure that no facet is wide enough for is that of the nearest one's whole area.
    """
    cuts = [(i + 1 / 3, j + 1 / 3) for i in range(CUTS) for j in range(CUTS - i)]
    cuts += [(i + 2 / 3, j + 2 / 3) for i in range(CUTS) for j in range(CUTS - i - 1)]
    weights = np.array([(a, b, CUTS - a - b) for a, b in cuts]) / CUTS
    corners = x[triangles]
    normals = 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(normals, axis=1)
    away = np.linalg.norm(np.einsum("qk,tkd->tqd", weights, corners) - centre, axis=2)
    pressure = np.sqrt(np.clip(1.0 - (away / radius) ** 2, 0.0, None))
    nearest = int(away.min(axis=1).argmin())
    pressure[normals @ normals[nearest] <= 0.0] = 0.0  # the far side of a thin body is not pressed
    if not pressure.any():
        pressure[nearest] = 1.0
    shares = pressure @ weights / len(weights)
    force = np.zeros_like(x)
    np.add.at(force, triangles, -shares[:, :, None] * normals[:, None, :])
    whole = float(np.linalg.norm(force.sum(axis=0)))
    return force / whole, (pressure**2).mean(axis=1) * areas / whole**2


def _pressed(body: SoftBody, load: Floats) -> Floats:
    """Displacements (n, 3) of the body at rest under forces on its nodes (n, 3); of one that floats, what its
    acceleration under them leaves of its shape."""
    if not body.fixed.size:
        arms = body.mesh.nodes - body.node_mass @ body.mesh.nodes / body.mass
        inertia = np.einsum("n,nij->ij", body.node_mass, _crosses(arms).transpose(0, 2, 1) @ _crosses(arms))
        spin = np.linalg.solve(inertia, np.cross(arms, load).sum(axis=0))
        load = load - body.node_mass[:, None] * (load.sum(axis=0) / body.mass + np.cross(spin, arms))
    stiffness = body.rest_stiffness().tocsr()
    scale = 1.0 / stiffness.diagonal()
    precondition = LinearOperator(stiffness.shape, matvec=lambda r: scale * r, dtype=np.float64)
    found, _ = cg(stiffness, load[body.free].ravel(), rtol=TOLERANCE, M=precondition)
    u = np.zeros_like(load)
    u[body.free] = found.reshape(-1, 3)
    return u


def _crosses(arms: Floats) -> Floats:
    """Matrices of cross products with vectors (n, 3), shape (n, 3, 3)."""
    x, y, z = arms.T
    o = np.zeros_like(x)
    return np.stack([o, -z, y, z, o, -x, -y, x, o], axis=1).reshape(-1, 3, 3)


def _stress(body: SoftBody, u: Floats) -> tuple[Floats, float]:
    """Stress of each element (m, 3, 3) [Pa] in displacements (n, 3), and twice the elastic energy [J]."""
    e, (lam, mu) = body.elements, body.material.lame()
    stiffness = body.material.stiffness_of(len(e.cells))
    gradient = np.einsum("mad,mae->mde", u[e.cells], e.gradients)
    strain = 0.5 * (gradient + gradient.transpose(0, 2, 1))
    change, volumes = np.trace(strain, axis1=1, axis2=2), e.shares.sum(axis=1)
    patches = e.hooke if isinstance(e, PatchIntegrated) else e
    if isinstance(patches, PatchTetrahedra):
        change = patches.mean(change)
    energy = (stiffness * volumes) @ (2.0 * mu * (strain**2).sum(axis=(1, 2)) + lam * change**2)
    stress = 2.0 * mu * strain + lam * change[:, None, None] * np.eye(3)
    return stiffness[:, None, None] * stress, float(energy)


def _recovered_error(body: SoftBody, stress: Floats) -> float:
    """eta^2 [J] of stresses of elements (m, 3, 3) [Pa], which jump where materials meet."""
    moduli = body.material.youngs_modulus * body.material.stiffness_of(len(stress))
    alike = [np.flatnonzero(moduli == one) for one in np.unique(moduli)]
    return sum(_recovered_within(body, which, stress[which]) / moduli[which[0]] for which in alike)


def _recovered_within(body: SoftBody, which: NDArray[np.int64], stress: Floats) -> float:
    """E eta^2 [N^2/m] of the elements `which` (k,) of one modulus E, by their stresses (k, 3, 3) [Pa]."""
    e, ratio, found = body.elements.part(which), body.material.poisson_ratio, 0.0
    volumes = e.shares.sum(axis=1)
    means = nodal_mean(e, stress, len(body.mesh.nodes)).reshape(-1, 9)
    for corner in range(4):
        at = np.full(4, _FAR)
        at[corner] = _NEAR
        jump = np.einsum("a,mad->md", at, means[e.cells]).reshape(-1, 3, 3) - stress
        square, trace = (jump**2).sum(axis=(1, 2)), np.trace(jump, axis1=1, axis2=2)
        found += float(volumes @ ((1.0 + ratio) * square - ratio * trace**2))
    return found / 4.0
