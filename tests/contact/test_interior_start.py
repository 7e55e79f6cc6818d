"""An interior point that begins near a rough force: inside the cones, and sooner at the solution."""

import numpy as np
import pytest

from palpo.benchmarks.contact_problems import pressed_block, soft_on_soft, squeezed_block
from palpo.physics.contact.laws import relative_residual
from palpo.physics.contact.problem import Stop
from palpo.physics.contact.solvers import anderson, interior_point
from palpo.physics.contact.solvers.interior_start import begin_near
from tests.contact.stored import NAMED, stored

ROUGH = 24
"""Sweeps that lead to the rough force."""


def rough(problem):
    return anderson.solve(problem, Stop(1e-8, ROUGH)).r


def near(problem, r):
    a = interior_point.make_interior(problem.w, problem.n_contacts)
    begin_near(problem.w, problem.b, problem.mu, r, relative_residual(problem, r), 0.1, False, a)
    return a


def steps(problem, a):
    code = interior_point.advance(problem.w, problem.b, problem.mu, 1e-8, np.inf, 100, a)
    return a.state["steps"].item() if code == interior_point.CONVERGED else np.inf


@pytest.mark.parametrize("name", NAMED)
def test_the_start_is_inside_the_cones_wherever_the_force_is(name):
    problem = stored(name)
    for r in (rough(problem), 3.0 * rough(problem), np.zeros_like(problem.b)):
        a = near(problem, r)
        for v in (a.x.reshape(-1, 3), a.y.reshape(-1, 3)):
            assert (v[:, 0] > np.hypot(v[:, 1], v[:, 2])).all()


def test_from_no_force_it_is_the_middle():
    problem = stored("easy.npz")
    a, middle = (
        near(problem, np.zeros_like(problem.b)),
        interior_point.make_interior(problem.w, problem.n_contacts),
    )
    interior_point.begin(problem.w, problem.b, problem.mu, 0.1, False, middle)
    np.testing.assert_array_equal(a.x, middle.x)
    np.testing.assert_array_equal(a.y, middle.y)


def test_from_a_rough_force_fewer_steps_lead_to_the_solution():
    """The first three or four of a solve from the middle only bring force and displacement to their sizes."""
    problems = [stored(f"{name}.npz") for name in ("soft_on_soft", "high_friction", "hyperstatic_grip")]
    problems += [pressed_block(5, 0.5), soft_on_soft(5, 0.5), squeezed_block(5, 1.0)]
    middle, sooner = 0.0, 0.0
    for problem in problems:
        a = interior_point.make_interior(problem.w, problem.n_contacts)
        interior_point.begin(problem.w, problem.b, problem.mu, 0.1, False, a)
        middle += steps(problem, a)
        sooner += steps(problem, near(problem, rough(problem)))
    assert sooner <= 0.8 * middle
