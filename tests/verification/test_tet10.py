"""Ten-node tetrahedra: bending is exact, and a connector's prong of few of them has converged."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from palpo.physics.fem.material import Material
from palpo.physics.fem.rest_stiffness import node_volumes, rest_stiffness
from palpo.physics.mesh import generate
from palpo.physics.mesh.quadratic import with_chosen_middles, with_middles
from palpo.physics.reduction.linear_model import linear_model
from palpo.physics.systems.snap.connectors import two_prong

MATERIAL = Material(164.76e6, 0.35, 1040.0)


def bar(nx: int = 4, ny: int = 1, nz: int = 1):
    return generate.block((0.04, 0.004, 0.008), (nx, ny, nz))


def test_the_split_elements_fill_the_mesh_and_its_boundary_cuts_each_triangle_in_four():
    coarse = bar()
    split, body, ends = with_middles(coarse)
    assert len(split.tets) == 8 * len(coarse.tets)
    np.testing.assert_allclose(split.volumes, np.repeat(coarse.volumes / 8.0, 8), rtol=1e-9)
    assert len(split.surface().triangles) == 4 * len(coarse.surface().triangles)
    np.testing.assert_allclose(split.nodes[len(coarse.nodes) :], coarse.nodes[ends].mean(axis=1))
    # the integral of 1, and no node without mass
    volumes = node_volumes(body)
    assert volumes.sum() == pytest.approx(coarse.volume, rel=1e-12)
    assert volumes.min() > 0.0


def test_a_middle_is_chosen_with_both_of_its_ends():
    ends = np.array([[0, 1], [1, 2], [0, 2]], np.int32)
    assert with_chosen_middles(np.array([2, 0]), ends, 3).tolist() == [0, 2, 5]


def bent(x: np.ndarray, curvature: float = 2.0) -> np.ndarray:
    """Displacement of a bar under pure bending, Saint-Venant's solution, (n, 3)."""
    nu = MATERIAL.poisson_ratio
    X, Y, Z = x.T
    return curvature * np.stack([X * Y, 0.5 * (-(X**2) + nu * (Z**2 - Y**2)), -nu * Y * Z], axis=1)


def test_pure_bending_is_exact_with_one_element_through_the_thickness():
    coarse = bar()
    _, body, _ = with_middles(coarse)
    K, x = rest_stiffness(body, MATERIAL), body.nodes
    u = bent(x).ravel()
    inertia = 0.008 * 0.004**3 / 12.0
    assert 0.5 * u @ (K @ u) == pytest.approx(0.5 * MATERIAL.youngs_modulus * inertia * 4.0 * 0.04, rel=1e-10)
    # moments act on the ends alone
    force = (K @ u).reshape(-1, 3)
    away = np.abs(x[:, 0]) < 0.5 * 0.04 - 1e-9
    assert np.abs(force[away]).max() < 1e-10 * np.abs(force).max()
    # four-node elements on the same corners are far stiffer
    flat = bent(coarse.nodes).ravel()
    assert 0.5 * flat @ (rest_stiffness(coarse, MATERIAL) @ flat) > 2.0 * 0.5 * u @ (K @ u)


def deflection(nx: int, ny: int, order: int) -> float:
    """Of a cantilever's end under an even load across it [m]."""
    mesh, body = bar(nx, ny, ny), None
    if order == 2:
        mesh, body, _ = with_middles(mesh)
    body = body or mesh
    clamped = np.flatnonzero(mesh.nodes[:, 0] < -0.02 + 1e-9)
    end = np.flatnonzero(mesh.nodes[:, 0] > 0.02 - 1e-9)
    model = linear_model(body, MATERIAL, clamped)
    load = np.zeros(model.n_dof)
    load[model.dofs_of(end)[1::3]] = 1.0 / end.size
    return float(load @ splu(sp.csc_matrix(model.K)).solve(load))


def test_a_cantilever_converges_faster_than_of_four_node_elements():
    """Timoshenko: L^3 / 3 E I + L / kappa G A; clamped corners stiffen it by some hundredths at most.

    There the solution grows as r^a, a > 1/2, so that half as long edges at least halve what is missing of the
    energy, which is the deflection under this load; four-node elements are far from it here.
    """
    E, G = MATERIAL.youngs_modulus, MATERIAL.lame()[1]
    inertia, area = 0.008 * 0.004**3 / 12.0, 0.008 * 0.004
    beam = 0.04**3 / (3.0 * E * inertia) + 0.04 / (5.0 / 6.0 * G * area)
    linear = deflection(10, 1, 1)
    coarse, fine, finest = (deflection(10 * n, n, 2) for n in (1, 2, 4))
    assert linear < 0.5 * beam
    assert 0.95 * beam < coarse < fine < finest < 1.01 * beam
    assert finest - fine < 0.5 * (fine - coarse)


def test_a_coarse_prong_of_a_file_yields_as_a_converged_one():
    """Its hook is pushed aside; the converged one is of bending hexahedra."""

    def stiffness(body, clamped, touched) -> float:
        model = linear_model(body, MATERIAL, clamped)
        load = np.zeros(model.n_dof)
        load[model.dofs_of(touched)[0::3]] = 1.0 / touched.size
        return 1.0 / float(load @ splu(sp.csc_matrix(model.K)).solve(load))

    def top(prong, nodes):
        highest = prong.mesh.nodes[prong.contact, 1].max()
        return np.flatnonzero(nodes[:, 1] > highest - 1e-9)

    fine = two_prong.TwoProng().build(two_prong.TwoProngCells(4, 22, 4, 2, 4)).prongs[0]
    converged = stiffness(fine.body, fine.clamped, top(fine, fine.mesh.nodes))
    prong = two_prong.TwoProng().build(two_prong.COARSE).prongs[0]
    own = top(prong, prong.mesh.nodes)
    _, body, ends = with_middles(prong.mesh)
    n = len(prong.mesh.nodes)
    held, touched = (with_chosen_middles(chosen, ends, n) for chosen in (prong.clamped, own))
    assert stiffness(prong.mesh, prong.clamped, own) > 1.3 * converged
    assert stiffness(body, held, touched) == pytest.approx(converged, rel=0.05)
