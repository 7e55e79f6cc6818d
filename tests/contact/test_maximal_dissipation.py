"""Maximal dissipation: one contact against the roots of its quartic, jamming, many contacts, the servo."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palpo.physics.contact.laws import OPEN, SLIP, STICK, natural_map_residual
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.solvers.maximal_dissipation import (
    COULOMB,
    ELLIPSE,
    dissipate,
    solve,
)
from palpo.physics.contact.solvers.registry import find_solver
from palpo.physics.contract.stages import make_problem
from palpo.physics.engine.dissipating import solve_dissipating
from palpo.physics.engine.solve import make_solver
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.port import SOLVE_DIVERGED, SWEEPS_SPENT
from palpo.physics.numerics.errors import InputError
from tests.contact.stored import HARD, in_cones, stored

WEDGES = ["wedge_loose.npz", "wedge_paper.npz", "wedge_gripped.npz"]


def force(w, b, mu, law=COULOMB):
    r = np.full(3, 7.0)  # whatever it was
    status = dissipate(law, np.array(w, float), np.array(b, float), float(mu), r)
    return r, status


def random_contact(rng, regular=0.05):
    half = rng.normal(size=(3, 3))
    w = half @ half.T + regular * np.eye(3)
    b = rng.normal(size=3) * 10.0 ** rng.uniform(-1, 1)
    b[0] = -abs(b[0])
    return w, b, rng.uniform(0.05, 1.5)


def on_the_ellipse(w, b, mu, angle):
    """Force of the cone and of the plane u_n = 0 along an angle, and its slip; NaN where it is open."""
    d = np.stack([np.cos(angle), np.sin(angle)])
    reach = w[0, 0] + mu * (w[0, 1:] @ d)
    r_n = np.where(reach > 0.0, -b[0] / np.where(reach > 0.0, reach, 1.0), np.nan)
    slip = b[1:, None] + (w[1:, :1] + mu * (w[1:, 1:] @ d)) * r_n
    return r_n, d, slip


def sliding_angles(w, b, mu):
    """All angles at which slip and friction are collinear and opposed, by the roots of a quartic.

    d x u_t times W_nn + mu W_nt.d is a trigonometric polynomial of degree 2 in the angle: five samples give
    its coefficients, z = exp(i angle) turns it into a quartic, Newton's method polishes the real roots.
    """

    def collinearity(angle):
        d = np.array([np.cos(angle), np.sin(angle)])
        reach = w[0, 0] + mu * (w[0, 1:] @ d)
        slip = b[1:, None] * reach - b[0] * (w[1:, :1] + mu * (w[1:, 1:] @ d))
        return d[0] * slip[1] - d[1] * slip[0]

    samples = 2.0 * np.pi * np.arange(5) / 5.0
    c = np.fft.fft(collinearity(samples)) / 5.0  # powers 0, 1, 2, -2, -1
    roots = np.roots([c[2], c[1], c[0], c[4], c[3]])
    angles = np.angle(roots[np.abs(np.abs(roots) - 1.0) < 1e-6])
    slope = 1j * np.array([0.0, 1.0, 2.0, -2.0, -1.0]) * c
    for _ in range(3):
        waves = np.exp(1j * np.outer(angles, [0.0, 1.0, 2.0, -2.0, -1.0]))
        angles = angles - ((waves @ c) / (waves @ slope)).real
    _, d, slip = on_the_ellipse(w, b, mu, angles)
    return angles[(d * slip).sum(axis=0) < 0.0]  # not of NaN


# one contact


def test_a_sliding_force_is_a_root_of_the_quartic_of_its_direction():
    rng, slides = np.random.default_rng(3), 0
    for _ in range(400):
        w, b, mu = random_contact(rng)
        r, status = force(w, b, mu)
        if status != SLIP:
            continue
        slides += 1
        angles = sliding_angles(w, b, mu)
        r_n, d, _ = on_the_ellipse(w, b, mu, angles)
        exact = np.stack([r_n, mu * r_n * d[0], mu * r_n * d[1]], axis=1)
        # roundings of 1e-16, times the sensitivity of a root, and of r_n where the ellipse is slender
        assert np.abs(exact - r).max(axis=1).min() <= 1e-10 * np.abs(r).max()
    assert slides > 200


def test_every_answer_annihilates_the_natural_map_beyond_the_limit_of_jamming_too():
    """Up to mu = 3 many ellipses are open; a contact whose W is positive definite always has an answer."""
    rng, jammed = np.random.default_rng(4), 0
    for _ in range(500):
        w, b, mu = random_contact(rng)
        mu *= 2.0
        jammed += mu * np.hypot(w[0, 1], w[0, 2]) > w[0, 0]
        r, status = force(w, b, mu)
        assert status in (STICK, SLIP)
        assert natural_map_residual(w, b, np.array([mu]), r) <= 1e-11
        assert np.hypot(r[1], r[2]) <= mu * r[0] * (1.0 + 1e-12)
    assert jammed > 100


@pytest.mark.parametrize("excess", [0.0, 1e-12, 0.5, 10.0])
def test_where_friction_would_close_the_contact_faster_than_its_force_parts_it_the_contact_sticks(excess):
    """Friction along +t1 and W_nn + mu W_nt <= 0: no force slides, however hard it is pushed along -t1."""
    mu, w_nn = 0.8, 1e-3
    w_nt = -(1.0 + excess) * w_nn / mu
    w_tt = 2.0 * w_nt**2 / w_nn
    w = np.array([[w_nn, w_nt, 0.0], [w_nt, w_tt, 0.0], [0.0, 0.0, w_tt]])
    for push in (0.1, 10.0, 1e4):
        b = np.array([-w_nn, -push * w_tt, 0.0])
        r, status = force(w, b, mu)
        assert status == STICK
        np.testing.assert_allclose(r, -np.linalg.solve(w, b), rtol=1e-10, atol=1e-14)
        apart = np.diag(np.diag(w))
        assert force(apart, b, mu)[1] == (STICK if push < mu else SLIP)


def test_a_contact_that_moves_along_one_line_and_jams_gets_a_finite_force_in_the_cone():
    """W of rank one: along its only line friction closes faster, so nothing solves it."""
    line = np.array([1.0, -2.0, 0.0])
    r, _ = force(1e-3 * np.outer(line, line), [-1e-3, -1e-3, 0.0], 1.0)
    assert np.isfinite(r).all()
    assert np.hypot(r[1], r[2]) <= r[0] * (1.0 + 1e-12)


@pytest.mark.parametrize("law", [COULOMB, ELLIPSE])
def test_an_open_contact_bears_nothing_and_a_sticking_one_its_blocking_force(law):
    w, b, _ = random_contact(np.random.default_rng(0))
    r, status = force(w, np.abs(b), 0.5, law)
    assert status == OPEN
    assert not r.any()
    held = np.array([2.0, 0.3, -0.4])
    r, status = force(w, -w @ held, 0.6, law)
    assert status == STICK
    np.testing.assert_allclose(r, held, rtol=1e-12)


def test_the_printed_law_is_the_least_on_the_ellipse_and_slides_along_its_normal_not_against_friction():
    rng, apart = np.random.default_rng(5), []
    angle = np.linspace(0.0, 2.0 * np.pi, 20000)
    for _ in range(60):
        w, b, mu = random_contact(rng)
        r, status = force(w, b, mu, ELLIPSE)
        r_n, d, _ = on_the_ellipse(w, b, mu, angle)
        if status != SLIP or np.isnan(r_n).any():
            continue
        others = np.stack([r_n, mu * r_n * d[0], mu * r_n * d[1]])
        cost = 0.5 * (others * (w @ others)).sum(axis=0) + b @ others
        least = 0.5 * r @ w @ r + b @ r
        assert least <= cost.min() + 1e-12 * abs(cost.min())
        slip, normal = (w @ r + b)[1:], r[1:] / np.hypot(r[1], r[2]) + mu * w[0, 1:] / w[0, 0]
        across = slip[0] * normal[1] - slip[1] * normal[0]
        assert abs(across) <= 1e-8 * np.linalg.norm(slip) * np.linalg.norm(normal)
        assert slip @ normal <= 0.0
        apart.append(np.linalg.norm(r - force(w, b, mu)[0]) / np.linalg.norm(r))
    assert len(apart) > 30
    assert np.median(apart) > 0.01  # it is another law


def test_the_printed_law_is_coulomb_s_where_normal_and_tangent_are_not_coupled():
    rng = np.random.default_rng(6)
    for _ in range(50):
        w, b, mu = random_contact(rng)
        w[0, 1:] = w[1:, 0] = 0.0
        np.testing.assert_allclose(force(w, b, mu, ELLIPSE)[0], force(w, b, mu)[0], rtol=1e-10)


# many contacts


@pytest.mark.parametrize("name", HARD)
def test_squeezes_with_more_contacts_than_freedoms_are_solved_to_1e_8(name):
    problem = stored(name)
    assert np.linalg.matrix_rank(problem.w) == 18 < len(problem.w)
    assert solve(problem, Stop(1e-8, 20000)).converged


@pytest.mark.parametrize("name", WEDGES)
def test_without_relaxation_it_is_block_gauss_seidel(name):
    """Sweep by sweep the forces of another exact local solution, by Newton's method."""
    problem = stored(name)
    ours, other = (
        find_solver(s).solve(problem, Stop(1e-14, 40))
        for s in ("maximal-dissipation", "newton-pseudopotential")
    )
    np.testing.assert_allclose(ours.r, other.r, rtol=0, atol=1e-9 * np.abs(other.r).max())


@pytest.mark.parametrize("relaxation", [(1.0, 0.99, 0.6), (1.3, 1.0, 1.3)])
def test_relaxation_and_the_order_of_the_contacts_change_the_pace_and_not_the_answer(relaxation):
    """W is regular: the answer found is one force."""
    problem, n = stored("wedge_paper.npz"), 12
    right = solve(problem, Stop(1e-12, 50000)).r
    order = np.random.default_rng(1).permutation(n)
    rows = (3 * order[:, None] + np.arange(3)).reshape(-1)
    turned = ContactProblem(problem.w[np.ix_(rows, rows)], problem.b[rows], problem.mu[order])
    start, decay, floor = relaxation
    found = solve(turned, Stop(1e-12, 50000), start=start, decay=decay, floor=floor)
    assert found.converged
    # residual times condition (1200), twice
    np.testing.assert_allclose(found.r, right[rows], rtol=0, atol=1e-8 * np.abs(right).max())


def test_the_printed_law_of_many_contacts_rests_at_another_force():
    problem = stored("wedge_paper.npz")
    result = find_solver("maximal-dissipation-printed").solve(problem, Stop(1e-10, 50000))
    assert result.reason == "stalled"
    assert result.residual > 1e-4
    assert in_cones(problem, result.r)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 8),
    st.integers(0, 2**32 - 1),
    st.floats(0.0, 2.0),
    st.floats(0.1, 1.95),
    st.integers(1, 30),
)
def test_whatever_ends_it_the_force_is_in_the_cones_and_no_worse_than_the_start(n, seed, mu, alpha, budget):
    """Random W of any rank, also problems that have no solution."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(3 * n, rng.integers(1, 3 * n + 1)))
    warm = np.abs(rng.normal(size=3 * n)) * np.tile([1.0, 0.0, 0.0], n)
    problem = ContactProblem(half @ half.T, rng.normal(size=3 * n), np.full(n, mu), warm)
    result = solve(problem, Stop(1e-9, budget), start=alpha, floor=alpha)
    assert in_cones(problem, result.r)
    assert result.residual <= natural_map_residual(problem.w, problem.b, problem.mu, warm) * (1.0 + 1e-9)


def test_a_solve_is_the_same_in_chunks_between_looks_at_the_clock():
    problem = stored("wedge_loose.npz")
    whole, chunks = (
        solve(problem, Stop(1e-8, 5000, s), start=1.2, floor=0.9, decay=0.9) for s in (np.inf, 60.0)
    )
    assert abs(whole.iterations - chunks.iterations) <= 16  # the residual is asked at other sweeps
    np.testing.assert_allclose(whole.r, chunks.r, rtol=0, atol=1e-6 * np.abs(whole.r).max())


def in_the_servo(problem, r, joints=0, tolerance=1e-9, sweeps=5000):
    """(Problem, what its solver told) after the servo's solve from r, behind the rows of so many joints."""
    n, first = problem.n_contacts, 3 * joints
    p, solver = make_problem(joints + n), make_solver(n, tolerance, sweeps)
    p.rows[:] = first, first + 3 * n
    w = p.w.reshape(p.rows[1], p.rows[1])
    w[:first, :first], w[first:, first:] = np.eye(first), problem.w
    p.b[:first], p.b[first:], p.r[first:], p.mu[:n] = 1.0, problem.b, r, problem.mu
    solver.told["tolerance"] = tolerance
    solve_dissipating(Handle(p), Handle(solver))
    return p, solver.told[0]


def test_the_servo_solves_the_rows_of_contacts_and_touches_no_other():
    problem = stored("wedge_loose.npz")
    p, told = in_the_servo(problem, 0.0, joints=2)
    found = solve(problem, Stop(1e-9))
    assert told["sweeps"] == found.iterations and told["residual"] <= 1e-9 and told["flags"] == 0
    r, u = p.r[6:], p.u[6:]
    np.testing.assert_allclose(r, found.r, rtol=0, atol=1e-13 * np.abs(found.r).max())
    np.testing.assert_allclose(
        u, problem.w @ found.r + problem.b, rtol=0, atol=1e-12 * np.abs(problem.b).max()
    )
    assert not p.r[:6].any() and not p.u[:6].any()


def test_a_servo_s_solve_that_is_cut_short_is_no_worse_than_its_start():
    problem = stored("hard/wedge_jamming.npz")
    r = solve(problem, Stop(1e-4, 20000)).r
    start = natural_map_residual(problem.w, problem.b, problem.mu, r)
    for most in (1, 2, 3, 5):
        p, told = in_the_servo(problem, r, sweeps=most)
        r = p.r.copy()
        assert told["sweeps"] == most and told["flags"] == SWEEPS_SPENT and told["sweep_caps"] == 1
        assert told["residual"] <= start * (1.0 + 1e-9)
        start = told["residual"]
        assert in_cones(problem, r)
        u = problem.w @ r + problem.b
        np.testing.assert_allclose(p.u, u, rtol=0, atol=1e-12 * np.abs(problem.b).max())


def test_an_offset_that_is_no_number_leaves_the_servo_its_last_force():
    problem = stored("wedge_loose.npz")
    r = solve(problem, Stop(1e-8)).r
    b = problem.b.copy()
    b[0] = np.nan
    p, told = in_the_servo(SimpleNamespace(n_contacts=problem.n_contacts, w=problem.w, b=b, mu=problem.mu), r)
    assert told["flags"] == SOLVE_DIVERGED and told["divergences"] == 1
    np.testing.assert_array_equal(p.r, r)


@pytest.mark.parametrize("wrong", [{"start": 0.0}, {"floor": 2.0}, {"decay": 1.5}, {"start": np.nan}])
def test_a_relaxation_that_cannot_converge_is_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        solve(stored("wedge_loose.npz"), Stop(), **wrong)
