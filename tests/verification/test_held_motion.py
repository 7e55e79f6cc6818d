"""Nodes on a rigid handle move as one with it: their velocities, energy and the power of forces on them."""

import numpy as np
import pytest

from palpo.physics.bodies.held_motion import add_held, move_held, speed_and_change, spread
from palpo.physics.bodies.rigid_handle import RigidHandle

rng = np.random.default_rng(2)
N, HELD = 12, np.array([1, 4, 5, 9], np.int32)
FREE = np.setdiff1d(np.arange(N), HELD).astype(np.int32)
X, MASS, W = rng.standard_normal((N, 3)), rng.random(N) + 0.1, rng.standard_normal(6)
PLACE = X[HELD].mean(axis=0)


def as_one(w):
    """Velocities of all nodes on a body that moves by w."""
    return w[:3] + np.cross(w[3:], X - PLACE)


def test_held_nodes_move_with_the_handle_and_free_ones_by_themselves():
    twist = np.zeros((N, 3, 6))
    for node in HELD:
        twist[node] = np.stack([as_one(e)[node] for e in np.eye(6)], axis=1)
    own, found, turned = rng.standard_normal(3 * len(FREE)), np.empty((N, 3)), np.full((N, 3), np.nan)
    spread(own, W, FREE, HELD, twist, found)
    move_held(HELD, X, PLACE, W, turned)
    np.testing.assert_allclose(found[HELD], as_one(W)[HELD], atol=1e-14)
    np.testing.assert_allclose(turned[HELD], as_one(W)[HELD], atol=1e-14)
    np.testing.assert_array_equal(found[FREE].ravel(), own)
    assert np.isnan(turned[FREE]).all()


def test_the_mass_on_a_handle_has_the_energy_of_its_nodes_and_of_itself_and_its_wrench_their_power():
    inertia = np.diag([1.0, 2.0, 2.5])
    handle = RigidHandle(HELD, X, 0.7, inertia)
    mass, wrench, force = handle.own_mass(), np.zeros(6), rng.standard_normal((N, 3))
    add_held(HELD, X, PLACE, MASS, force, mass, wrench)
    v = as_one(W)
    own = 0.7 * W[:3] @ W[:3] + W[3:] @ inertia @ W[3:]
    nodes = MASS[HELD] @ (v[HELD] ** 2).sum(axis=1)
    assert W @ mass @ W == pytest.approx(own + nodes, rel=1e-14)
    assert wrench @ W == pytest.approx((force * v)[HELD].sum(), rel=1e-13)
    np.testing.assert_array_equal(mass, mass.T)


def test_a_body_that_moves_as_one_has_no_speed_against_its_centre():
    """And as large a change as speed where it was at rest; a common velocity changes the speed by nothing."""
    v = rng.standard_normal((N, 3))
    speed, change = speed_and_change(v, np.zeros(3 * len(FREE)), FREE, MASS)
    centre = MASS[FREE] @ v[FREE] / MASS[FREE].sum()
    assert change == pytest.approx(speed + MASS[FREE].sum() * centre @ centre, rel=1e-13)
    both = speed_and_change(v + np.array([3.0, -1.0, 2.0]), v[FREE].ravel(), FREE, MASS)
    assert both == pytest.approx((speed, 14.0 * MASS[FREE].sum()), rel=1e-13)
