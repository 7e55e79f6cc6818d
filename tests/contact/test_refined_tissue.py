"""Refined blocks in sliding contact: near singular, and none of them may be left unsolved.

The fixed block is so much coarser than the contacts that only the stiff tip tells their forces apart: W has
two groups of eigenvalues, for aluminium on tissue five orders of magnitude from each other.
"""

import numpy as np
import pytest

from palpo.physics.contact.laws import natural_map_residual
from palpo.physics.contact.problem import Stop
from palpo.physics.contact.solvers import admm, anderson, homotopy, interior_point, portfolio
from palpo.studies.hapco_benches import PAIRS, sliding
from palpo.studies.hapco_contacts import build, problems_along, refined
from tests.contact.stored import in_cones


@pytest.fixture(scope="module")
def tissue():
    return problems_along(build(refined(8), *PAIRS["tissue-tissue"]), sliding(10), 8)[0]


@pytest.mark.parametrize(
    ("solve", "most"),
    [(portfolio.solve, 1000), (interior_point.solve, 100), (admm.solve, 5000), (anderson.solve, 100_000)],
    ids=["portfolio", "interior-point", "admm", "anderson"],
)
def test_tissue_on_tissue_is_solved_at_every_step_of_its_path(tissue, solve, most):
    """By all solvers of our own that start cold; plain sweeps leave the first at 1e-3 after 200,000."""
    for problem in tissue:
        assert problem.n_contacts == 64
        result = solve(problem, Stop(1e-8, most))
        assert result.converged
        assert natural_map_residual(problem.w, problem.b, problem.mu, result.r) <= 1e-8
        assert in_cones(problem, result.r)


def test_sweeps_alone_do_not_solve_them(tissue):
    """Or they would not be hard, and the portfolio no better."""
    assert not all(anderson.solve(problem, Stop(1e-8, 600)).converged for problem in tissue)


def test_where_interior_point_and_sweeps_stall_the_walk_along_the_path_arrives():
    """Aluminium on tissue, 100 contacts, the step at which the central path folds ten times and more."""
    problem = problems_along(build(refined(10), *PAIRS["aluminium-tissue"]), sliding(10), 8)[0][1]
    values = np.linalg.eigvalsh(problem.w)
    assert values[-1] > 1e8 * values[0]
    assert not interior_point.solve(problem, Stop(1e-8, 1000)).converged
    assert not anderson.solve(problem, Stop(1e-8, 5000)).converged
    for solve in (homotopy.solve, portfolio.solve):
        result = solve(problem, Stop(1e-8, 10_000))
        assert result.converged
        assert natural_map_residual(problem.w, problem.b, problem.mu, result.r) <= 1e-8
