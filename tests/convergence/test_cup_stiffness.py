"""Axial stiffness of the small cup: linear tetrahedra against a converged model of revolution."""

import numpy as np
import pytest
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

from palpo.physics.fem.axisymmetric import Solid
from palpo.physics.fem.material import Material
from palpo.physics.fem.rest_stiffness import rest_stiffness
from palpo.physics.mesh.cups import CUPS, GRIDS, POISSON_RATIO, cup, meridian

DESIGN = CUPS["small"]


def pushed(k, lifted, fixed):
    """Force over displacement [N/m] of the freedoms `lifted`, moved as one while `fixed` stay."""
    u = np.zeros(k.shape[0])
    u[lifted] = 1.0
    given = np.union1d(lifted, fixed)
    free = np.setdiff1d(np.arange(len(u)), given)
    k = csc_array(k)
    u[free] = splu(k[free][:, free]).solve(-(k[free][:, given] @ u[given]))
    return float((k @ u)[lifted].sum())


def revolved(finer):
    """Of quadratic elements on the meridian, `finer` times as many a side; the rim slides on its plane."""
    mesh = meridian(DESIGN.shape, 12 * finer, 3 * finer, 2 * finer, 3 * finer)
    solid = Solid(mesh.nodes, mesh.elements, DESIGN.youngs_modulus, POISSON_RATIO)
    _, _, k = solid.elastic(np.zeros(2 * len(mesh.nodes)))
    rim = np.flatnonzero(mesh.nodes[:, 1] < 1e-9)
    fixed = np.concatenate([2 * rim + 1, 2 * np.asarray(mesh.axis), 2 * np.asarray(mesh.held)])
    return pushed(k, 2 * np.asarray(mesh.held) + 1, fixed)


def tetrahedral(resolution):
    """Number of nodes and stiffness of the program's own cup, held and free alike."""
    made = cup(DESIGN.shape, GRIDS[resolution])
    nodes, held = made.mesh.nodes, made.held
    low = made.rim[nodes[made.rim, 1] < nodes[:, 1].min() + 1e-9]
    material = Material(DESIGN.youngs_modulus, POISSON_RATIO, 1000.0, 0.0, 0.0)
    fixed = np.concatenate([3 * low + 1, 3 * held, 3 * held + 2])
    return len(nodes), pushed(rest_stiffness(made.mesh, material), 3 * held + 1, fixed)


def test_the_cup_grows_softer_with_its_mesh_towards_the_model_of_revolution_at_first_order():
    coarse, fine = revolved(1), revolved(2)
    assert fine < coarse and fine == pytest.approx(coarse, rel=0.03)
    counts, found = zip(*(tetrahedral(r) for r in (203, 576, 1200, 2400)), strict=True)
    errors = np.array(found) / fine - 1.0
    # displacements of linear elements are too few: always too stiff, and less so in each
    assert (np.diff(errors) < 0.0).all() and (errors > 0.0).all()
    # the reference cup by a quarter, as docs/suction.md says
    assert errors[1] == pytest.approx(0.23, abs=0.01)
    order = np.log(errors[0] / errors[-1]) / np.log((counts[-1] / counts[0]) ** (1 / 3))
    assert order > 1.0
