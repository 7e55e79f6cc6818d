"""Contacts of passive midpoint: impacts, sliding to rest, penetrations parted, all on a free mass."""

import numpy as np
import pytest

from palpo.physics.contact.problem import Stop
from palpo.physics.contact.solvers.maximal_dissipation import solve
from palpo.physics.numerics.errors import InputError
from palpo.studies.reference.midpoint_problem import assemble, contact_problem

STEP, MASS, GRAVITY = 1e-3, 0.3, 9.81
FREE = STEP / (2.0 * MASS) * np.eye(3)
"""C of a point mass: M (v+ - v) / T = r and vh = (v+ + v) / 2."""


def step(v, gap, mu, restitution=0.0, load=(0.0, 0.0, 0.0)):
    """(v+, r) of a point mass over a plane, rows (n, t1, t2), under a load [N]."""
    middle = v + FREE @ load
    problem = contact_problem(FREE, middle, v, np.array([gap]), np.array([mu]), STEP, restitution)
    r = solve(problem, Stop(1e-12)).r
    return 2.0 * (FREE @ r + middle) - v, r


@pytest.mark.parametrize("restitution", [0.0, 0.35, 1.0])
def test_an_impact_leaves_with_eps_times_its_approach_speed(restitution):
    after, _ = step(np.array([-0.8, 0.0, 0.0]), 0.0, 0.2, restitution)
    np.testing.assert_allclose(after, [restitution * 0.8, 0.0, 0.0], atol=1e-14)


def test_an_elastic_impact_without_friction_keeps_its_energy_and_its_tangential_velocity():
    before = np.array([-0.8, 0.3, -0.1])
    after, _ = step(before, 0.0, 0.0, 1.0)
    np.testing.assert_allclose(after, before * [-1.0, 1.0, 1.0], atol=1e-14)


def test_a_contact_that_does_not_close_within_the_step_bears_nothing():
    v = np.array([-0.8, 0.1, 0.0])
    after, r = step(v, 0.81e-3, 0.2)
    assert not r.any()
    np.testing.assert_array_equal(after, v)


def test_a_sliding_block_decelerates_at_mu_g_stops_and_stays():
    """Coulomb's law on v+: exact at each step; on vh the block would flip its velocity for ever."""
    mu, v = 0.4, np.array([0.0, 0.03, -0.04])
    along, speed = v / 0.05, 0.05
    for _ in range(40):
        v, r = step(v, 0.0, mu, load=(-MASS * GRAVITY, 0.0, 0.0))
        speed = max(speed - mu * GRAVITY * STEP, 0.0)
        np.testing.assert_allclose(v, speed * along, atol=1e-15)
        assert r[0] == pytest.approx(MASS * GRAVITY, rel=1e-12)
        if speed > 0.0:
            np.testing.assert_allclose(r[1:], -mu * r[0] * along[1:], rtol=1e-11)
    assert speed == 0.0
    assert np.abs(r[1:]).max() <= 1e-12  # at rest, no friction


def test_a_resting_penetration_is_parted_at_its_depth_a_step_and_the_contact_does_that_work():
    depth = 2e-5
    after, r = step(np.zeros(3), -depth, 0.3)
    np.testing.assert_allclose(after, [depth / STEP, 0.0, 0.0], rtol=1e-12)
    work = r @ (0.5 * after) * STEP  # f vh T
    assert work == pytest.approx(0.5 * MASS * after @ after, rel=1e-12)


def test_rows_beyond_the_contacts_are_left_alone_and_w_may_be_c():
    rng = np.random.default_rng(0)
    c, middle, now, gap = rng.normal(size=(9, 9)), rng.normal(size=9), rng.normal(size=9), rng.normal(size=2)
    w, b, same = np.full((9, 9), 5.0), np.full(9, 5.0), c.copy()
    assemble(c, middle, now, gap, STEP, 0.5, w, b)
    assemble(same, middle, now, gap, STEP, 0.5, same, np.zeros(9))
    np.testing.assert_array_equal(w[:6, :6], 2.0 * STEP * c[:6, :6])
    np.testing.assert_array_equal(same[:6, :6], w[:6, :6])
    np.testing.assert_array_equal(same[6:], c[6:])
    assert (w[6:] == 5.0).all()
    assert (b[6:] == 5.0).all()
    after = 2.0 * middle[:6] - now[:6]
    np.testing.assert_allclose(b[1:3], STEP * after[1:3])
    np.testing.assert_allclose(b[0:6:3], gap + STEP * (after[0::3] + 0.5 * now[0:6:3]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"middle": np.zeros(2)}, "shape"),
        ({"step": 0.0}, "step"),
        ({"restitution": 1.5}, "restitution"),
        ({"mu": np.array([-0.1])}, "negative"),
    ],
)
def test_a_step_that_is_none_is_refused(change, said):
    given = {
        "c": FREE,
        "middle": np.zeros(3),
        "now": np.zeros(3),
        "gap": np.zeros(1),
        "mu": np.ones(1),
        "step": STEP,
    }
    with pytest.raises(InputError, match=said):
        contact_problem(**{**given, **change})
