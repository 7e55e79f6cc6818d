"""The central path walked by its arc length: folds, turns and the end of it."""

import numpy as np
import pytest

from palpo.physics.contact.laws import natural_map_residual
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.solvers import homotopy, path_following
from palpo.physics.contact.solvers.homotopy import Walk
from palpo.physics.contact.solvers.registry import find_solver
from tests.contact.stored import HARD, in_cones, stored

pytestmark = pytest.mark.portable


def differences(walk, x, t, step=1e-6):
    """The derivative of F by x and t dF / dt, by central differences."""
    path, n = walk.path, len(x)
    by_x = np.stack([(path.at(x + e, t).f - path.at(x - e, t).f) / (2 * step) for e in step * np.eye(n)], 1)
    by_t = (path.at(x, t * (1 + step)).f - path.at(x, t * (1 - step)).f) / (2 * step)
    return by_x, by_t


@pytest.mark.parametrize("name", ["wedge_loose.npz", "padded_grip.npz"])
def test_the_bordered_system_is_the_derivative_of_the_equations(name, monkeypatch):
    """Second differences of a function of curvature 1 / t^2 leave step^2 / t^2."""
    monkeypatch.setattr(homotopy, "FADED", 0.0)
    walk, rng = Walk(stored(name)), np.random.default_rng(0)
    x, t = walk.x + 0.3 * rng.normal(size=len(walk.x)), 0.05
    by_x, by_t = differences(walk, x, t)
    metric, border = homotopy._Metric(x, t), rng.normal(size=len(x) + 1)
    factor = homotopy._Factor(walk.path, walk.path.at(x, t), metric, border)
    f = rng.normal(size=len(x))
    change = factor.solve(f, 0.7)
    np.testing.assert_allclose(by_x @ metric.meant(change[:-1]) + by_t * change[-1], -f, atol=1e-6)
    assert border @ change == pytest.approx(0.7, rel=1e-9)


def test_changes_measured_and_meant_are_each_others_inverse():
    rng = np.random.default_rng(1)
    x, change = rng.normal(size=30), rng.normal(size=30)
    x[0::3] = np.abs(x[0::3])
    metric = homotopy._Metric(x, 1e-3)
    np.testing.assert_allclose(metric.meant(metric.measured(change)), change, rtol=1e-9)


@pytest.mark.parametrize("name", ["wedge_paper.npz", "easy.npz"])
def test_a_walk_keeps_to_the_central_path(name):
    """A few of Newton's steps away from it at most; there x and y are in the cones and x o y = t^2 n."""
    walk = Walk(stored(name))
    for _ in range(25):
        assert walk.step()
        x, log_t, far = walk.x, walk.log_t, 0.0
        metric = homotopy._Metric(x, walk.t)
        for _ in range(8):
            point = walk.path.at(x, np.exp(log_t))
            border = np.append(np.zeros(len(x)), 1.0)
            change = homotopy._Factor(walk.path, point, metric, border).solve(point.f, 0.0)
            far = max(far, float(np.linalg.norm(change)))
            x = x + metric.meant(change[:-1])
        assert far <= 0.5
        y = walk.path._displacement(x, walk.t)[0]
        a, c = x.reshape(-1, 3), y.reshape(-1, 3)
        product = np.column_stack([(a * c).sum(axis=1), a[:, :1] * c[:, 1:] + c[:, :1] * a[:, 1:]])
        expected = walk.t**2 * np.array([1.0, 0.0, 0.0])
        np.testing.assert_allclose(
            product, np.tile(expected, (len(a), 1)), atol=1e-9 * max(1.0, abs(y).max())
        )
        for v in (a, c):
            assert (v[:, 0] > np.hypot(v[:, 1], v[:, 2])).all()


@pytest.mark.parametrize("name", ["wedge_paper.npz", "padded_grip.npz"])
def test_a_walk_may_begin_near_any_force_and_that_is_on_its_path(name):
    """x = c n and y = n / c solve the equations at t = 1 to rounding, for the c of any force."""
    problem, rng = stored(name), np.random.default_rng(0)
    for force in (np.zeros(problem.b.size), rng.exponential(size=problem.b.size) ** 4):
        path = homotopy.Path(problem, force)
        y = path._displacement(path.start, 1.0)[0]
        np.testing.assert_allclose(path.start[0::3] * y[0::3], 1.0, rtol=1e-9)
        assert np.abs(path.at(path.start, 1.0).f).max() <= 1e-12 * np.abs(path.start).max() * np.abs(y).max()


@pytest.mark.parametrize("name", HARD)
def test_a_walk_from_near_a_force_ends_at_a_solution_too(name):
    problem = stored(name)
    rough = find_solver("anderson").solve(problem, Stop(1e-8, 40)).r
    walk = Walk(problem, rough)
    while walk.t > 1e-12 and walk.factors < 4000 and walk.step():
        pass
    assert walk.t <= 1e-12
    assert natural_map_residual(problem.w, problem.b, problem.mu, walk.path.force(walk.x)) <= 1e-6


@pytest.mark.parametrize("name", [*HARD, "soft_on_soft.npz", "rank_deficient_stack.npz", "high_friction.npz"])
def test_a_walk_ends_at_a_solution(name):
    problem = stored(name)
    result = homotopy.solve(problem, Stop(1e-8, 4000))
    assert result.converged
    assert in_cones(problem, result.r)


def test_the_walk_goes_round_a_fold_at_which_newton_stalls(monkeypatch):
    """Two points joined by a stiff bar, friction 3, dragged: t rises on the way, and the walk still ends.

    Without Newton's help, so that it is the walk alone.
    """
    monkeypatch.setattr(path_following, "POLISH", 0)
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        half = rng.normal(size=(6, 6))
        problem = ContactProblem(half @ half.T + 1e-3 * np.eye(6), rng.normal(size=6), np.full(2, 3.0))
        walk, times = Walk(problem), [1.0]
        while walk.t > 1e-10 and walk.factors < 3000 and walk.step():
            times.append(walk.t)
        if (np.diff(times) > 0.0).any():
            found += 1
            assert walk.t <= 1e-10, seed
            assert homotopy.solve(problem, Stop(1e-8, 3000)).converged
    assert found > 0  # or there was no fold to go round
