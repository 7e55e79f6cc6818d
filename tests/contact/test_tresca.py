"""Tresca's law with a held limit, and Coulomb's as its fixed point."""

import numpy as np
import pytest

from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.reference.tresca import _Held
from palpo.physics.contact.solvers.registry import find_solver
from palpo.physics.contact.solvers.relaxation import project_cones
from tests.contact.stored import in_cones, stored

pytestmark = pytest.mark.portable


def drawn(seed, n=5, mu=0.3):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(3 * n, 3 * n + 6))
    b = rng.normal(size=3 * n)
    b[::3] -= 1.0
    return ContactProblem(half @ half.T, b, np.full(n, mu))


@pytest.mark.parametrize("seed", range(3))
def test_the_force_of_a_held_limit_has_the_least_energy_of_all_that_it_allows(seed):
    """1/2 r W r + b r over half-lines and discs is convex: no other force there may have less."""
    problem, rng = drawn(seed), np.random.default_rng(seed)
    limit = rng.uniform(0.0, 0.2, problem.n_contacts)
    held = _Held(problem, Stop(1e-12, 20_000))
    held.solve(limit)
    energy = lambda r: 0.5 * r @ problem.w @ r + problem.b @ r  # noqa: E731
    least = energy(held.r)
    assert (np.hypot(held.r[1::3], held.r[2::3]) <= limit * (1.0 + 1e-12)).all()
    for size in (1e-3, 1e-1, 1.0):
        for _ in range(50):
            other = (held.r + size * rng.normal(size=held.r.size)).reshape(-1, 3)
            other[:, 0] = np.maximum(other[:, 0], 0.0)
            length = np.hypot(other[:, 1], other[:, 2])
            other[:, 1:] *= np.minimum(1.0, limit / np.maximum(length, 1e-300))[:, None]
            assert energy(other.ravel()) >= least - 1e-10 * abs(least)


@pytest.mark.parametrize("name", ["easy.npz", "wedge_loose.npz"])
def test_the_fixed_point_of_the_limit_is_coulombs_law(name):
    result = find_solver("tresca-coulomb").solve(stored(name), Stop(1e-8, 100_000))
    assert result.converged
    assert in_cones(stored(name), result.r)


def test_without_friction_both_are_the_problem_of_the_normals():
    problem = drawn(1, mu=0.0)
    right = find_solver("portfolio").solve(problem, Stop(1e-11)).r
    for name in ("tresca", "tresca-coulomb"):
        found = find_solver(name).solve(problem, Stop(1e-10, 50_000))
        assert found.converged, name
        np.testing.assert_allclose(
            found.r, right, atol=1e-9 * np.linalg.cond(problem.w) * np.abs(right).max()
        )


def test_tresca_is_coulombs_law_where_friction_does_not_change_the_normal_forces():
    """W without coupling of normal and tangent: the limit is right from the start."""
    n, rng = 4, np.random.default_rng(2)
    w = np.zeros((3 * n, 3 * n))
    for rows in (np.arange(0, 3 * n, 3), np.flatnonzero(np.arange(3 * n) % 3)):
        half = rng.normal(size=(len(rows), len(rows) + 3))
        w[np.ix_(rows, rows)] = half @ half.T
    problem = ContactProblem(w, rng.normal(size=3 * n) - 0.5, np.full(n, 0.4))
    found = find_solver("tresca").solve(problem, Stop(1e-9, 50_000))
    assert found.converged
    r = found.r.copy()
    project_cones(problem.mu, r)
    np.testing.assert_array_equal(r, found.r)
