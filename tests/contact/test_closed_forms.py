"""Problems that can be solved by hand, for every consistent solver of the registry."""

import numpy as np
import pytest

from palpo.physics.contact.laws import OPEN, SLIP, STICK
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.solvers.registry import find_solver
from tests.contact.generate_problems import box_corners, rigid_rows
from tests.contact.stored import CONSISTENT, in_cones, offsets

STOP = Stop(1e-11, 50000)
CLOSE = 1e-8
"""Relative error of a force whose natural map is below 1e-11, W being conditioned better than 1000."""

each_solver = pytest.mark.parametrize("name", CONSISTENT)

W = np.array([[2.0, 0.3, -0.1], [0.3, 1.0, 0.2], [-0.1, 0.2, 1.5]]) * 1e-3
"""Compliance of one contact, all directions coupled [m/N]."""


def solved(name, w, b, mu):
    problem = ContactProblem(np.array(w, float), np.array(b, float), np.array(mu, float))
    result = find_solver(name).solve(problem, STOP)
    assert result.converged, f"{name}: {result.reason} at {result.residual:.1e}"
    assert in_cones(problem, result.r)
    return result


@each_solver
def test_an_open_contact_bears_nothing(name):
    result = solved(name, W, [1e-4, 3e-3, -2e-3], [0.5])
    assert not result.r.any()
    assert list(result.status) == [OPEN]


@each_solver
def test_a_sticking_contact_is_the_linear_solution(name):
    b = np.array([-1e-3, 1e-4, -5e-5])
    result = solved(name, W, b, [0.9])
    np.testing.assert_allclose(result.r, -np.linalg.solve(W, b), rtol=CLOSE)
    assert list(result.status) == [STICK]


@each_solver
def test_a_sliding_contact_bears_its_friction_on_the_cone_against_the_slip(name):
    """Slip along t1: 0 = w_nn r_n + w_nt r_t + b_n and r_t = -mu r_n, so r_n = -b_n / (w_nn - mu w_nt)."""
    w_nn, w_nt, mu, b_n = 2e-3, 8e-4, 0.5, -1e-3
    w = np.array([[w_nn, w_nt, 0.0], [w_nt, 1e-3, 0.0], [0.0, 0.0, 1e-3]])
    result = solved(name, w, [b_n, 5e-3, 0.0], [mu])
    r_n = -b_n / (w_nn - mu * w_nt)
    np.testing.assert_allclose(result.r, [r_n, -mu * r_n, 0.0], rtol=CLOSE, atol=CLOSE * r_n)
    assert list(result.status) == [SLIP]


@each_solver
def test_a_contact_on_the_edge_of_its_cone_neither_slides_nor_leaves_it(name):
    """b is chosen so that the blocking force lies exactly on the cone: x = 0 with |r_t| = mu r_n."""
    mu, r = 0.5, np.array([2.0, 0.6, -0.8])
    result = solved(name, W, -W @ r, [mu])
    np.testing.assert_allclose(result.r, r, rtol=1e-6)  # the map is flat to first order across the edge


@each_solver
def test_without_friction_only_the_normal_force_remains(name):
    result = solved(name, W, [-1e-3, 2e-3, 0.0], [0.0])
    np.testing.assert_allclose(result.r, [0.5, 0.0, 0.0], rtol=CLOSE, atol=CLOSE)


@each_solver
def test_pressing_one_contact_opens_its_neighbour(name):
    """W_n = [[2, 1], [1, 2]]: both closed would need r_n = (0.6, -0.2), so the second opens by 0.3 mm."""
    w = np.kron([[2.0, 1.0], [1.0, 2.0]], np.eye(3)) * 1e-3
    b = np.array([-1.0, 0.1, 0.0, -0.2, 0.0, 0.0]) * 1e-3
    result = solved(name, w, b, [0.3, 0.3])
    np.testing.assert_allclose(result.r, [0.5, -0.05, 0.0, 0.0, 0.0, 0.0], rtol=CLOSE, atol=CLOSE)
    assert list(result.status) == [STICK, OPEN]
    assert (w @ result.r + b)[3] == pytest.approx(0.3e-3)


@each_solver
def test_a_sliding_contact_drags_on_a_sticking_neighbour(name):
    """r_n = (1, 1), uncoupled. The first slides, r_1 = -mu; the second sticks, 2 r_2 + r_1 + b_2 = 0."""
    coupling, mu = np.array([[2.0, 1.0], [1.0, 2.0]]), 0.4
    w = np.zeros((6, 6))
    w[0::3, 0::3] = 2.0 * np.eye(2)
    w[1::3, 1::3] = w[2::3, 2::3] = coupling
    result = solved(name, w * 1e-3, np.array([-2.0, 3.0, 0.0, -2.0, 0.1, 0.0]) * 1e-3, [mu, mu])
    np.testing.assert_allclose(result.r, [1.0, -mu, 0.0, 1.0, (mu - 0.1) / 2, 0.0], rtol=CLOSE, atol=CLOSE)
    assert list(result.status) == [SLIP, STICK]


def slab_on_incline(angle: float, mu: float, h: float = 0.01, mass: float = 0.1, gravity: float = 9.81):
    """A slab on four corners over a step h, gravity turned by `angle` toward +x: problem, J, weight."""
    size = np.array([0.08, 0.01, 0.08])
    inertia = (
        mass
        / 12
        * np.array([size[1] ** 2 + size[2] ** 2, size[0] ** 2 + size[2] ** 2, size[0] ** 2 + size[1] ** 2])
    )
    j = rigid_rows(box_corners(size, 1, -1.0), np.tile([0.0, 1.0, 0.0], (4, 1)), np.zeros(3))
    v = h * gravity * np.array([np.sin(angle), -np.cos(angle), 0.0, 0.0, 0.0, 0.0])
    w = h * h * j / np.concatenate([np.full(3, mass), inertia]) @ j.T
    return ContactProblem(0.5 * (w + w.T), h * j @ v, np.full(4, mu)), j, mass * gravity


@each_solver
@pytest.mark.parametrize(("share", "slides"), [(0.98, False), (1.02, True)])
def test_a_slab_slides_beyond_atan_mu_and_its_friction_is_mu_times_its_weight(name, share, slides):
    """Four feet on a rigid slab: their forces are not unique, the resultant is."""
    mu = 0.4
    angle = share * np.arctan(mu)
    problem, j, weight = slab_on_incline(angle, mu)
    result = find_solver(name).solve(problem, STOP)
    assert result.converged
    force = (j.T @ result.r)[:3]
    friction = mu * weight * np.cos(angle) if slides else weight * np.sin(angle)
    np.testing.assert_allclose(force, [-friction, weight * np.cos(angle), 0.0], rtol=1e-6, atol=1e-6 * weight)
    step = 0.01**2 * 9.81
    slip = step * max(np.sin(angle) - mu * np.cos(angle), 0.0)
    np.testing.assert_allclose(
        offsets(problem, result.r), np.tile([0.0, slip, 0.0], (4, 1)), atol=1e-6 * step
    )
