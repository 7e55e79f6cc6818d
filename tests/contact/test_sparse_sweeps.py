"""Solvers on a W that is kept sparse: the sweeps and forces of the dense ones, from the blocks alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from palpo.benchmarks.contact_problems import brick_wall, large_brick_wall
from palpo.physics.contact.laws import natural_map_residual
from palpo.physics.contact.problem import ContactProblem, SparseProblem, Stop, thinned
from palpo.physics.contact.solvers import anderson, portfolio
from palpo.physics.contact.solvers.factors import SparseFactor
from palpo.physics.contact.solvers.operator import block_rows
from palpo.physics.contact.solvers.registry import find_solver, solver_names
from tests.contact.stored import in_cones, stored

pytestmark = pytest.mark.portable

DEFINITE = ["easy.npz", "wedge_paper.npz", "high_friction.npz"]
KEEPERS = [
    name for name in solver_names()
    if find_solver(name).sparse and find_solver(name).consistent and find_solver(name).sure
]  # fmt: skip


def kept_sparse(problem):
    return SparseProblem(sp.csr_array(problem.w), problem.b, problem.mu)


@pytest.mark.parametrize("name", [*DEFINITE, "rank_deficient_stack.npz"])
def test_one_sweep_is_that_over_the_dense_matrix(name):
    held, n = stored(name), stored(name).n_contacts
    a, r, u = anderson.make_acceleration(n), np.zeros(3 * n), np.zeros(3 * n)
    anderson.begin(held.w, held.b, held.mu, r, u, 0, a)
    sweeps = anderson.Sweeps(kept_sparse(held), 1e-8, anderson.FEW)
    for _ in range(3):
        dense = anderson.sweep(held.w, held.mu, r, u, 0, a.step, a.before)
        kept = anderson.sweep(sweeps.w, held.mu, sweeps.r, sweeps.u, 0, sweeps.a.step, sweeps.a.before)
        np.testing.assert_allclose(kept, dense, rtol=1e-10)
        np.testing.assert_allclose(sweeps.r, r, atol=1e-12 * np.abs(r).max())
        np.testing.assert_allclose(sweeps.u, u, atol=1e-12 * np.abs(u).max())


@pytest.mark.parametrize("solver", KEEPERS)
@pytest.mark.parametrize("name", DEFINITE)
def test_forces_are_those_of_the_dense_solver(name, solver):
    """W is definite here, and each has one solution: two forces with residual e differ by its condition."""
    held = stored(name)
    dense, kept = (
        find_solver(solver).solve(problem, Stop(1e-11, 100_000)) for problem in (held, kept_sparse(held))
    )
    assert dense.converged and kept.converged
    values = np.linalg.eigvalsh(held.w)
    near = 10.0 * 1e-11 * values[-1] / values[0] * np.abs(dense.r).max()
    np.testing.assert_allclose(kept.r, dense.r, atol=near)


def test_a_wall_of_a_thousand_contacts_is_solved_without_its_dense_matrix():
    wall = large_brick_wall(8, 20, 0.5)
    assert wall.n_contacts > 1000 and wall.w.nnz < 0.03 * wall.w.shape[0] ** 2
    result = find_solver("portfolio").solve(wall, Stop(1e-8, 20_000))
    assert result.converged and in_cones(wall, result.r)
    u = wall.w @ result.r + wall.b
    assert natural_map_residual(wall.w.toarray(), wall.b, wall.mu, result.r) <= 1e-8
    assert u[0::3].min() > -1e-6 * np.abs(wall.b).max()


def test_a_solver_that_needs_a_dense_matrix_gets_that_of_a_small_problem():
    held = stored("easy.npz")
    dense, kept = (find_solver("homotopy").solve(p, Stop(1e-10, 2000)) for p in (held, kept_sparse(held)))
    assert kept.converged
    np.testing.assert_array_equal(kept.r, dense.r)


def test_what_sweeps_and_interior_point_leave_of_a_small_problem_goes_on_dense(monkeypatch):
    held = stored("hard/wedge_reduced.npz")
    monkeypatch.setattr(portfolio, "SPARSE_SWEEPS", 8)
    monkeypatch.setattr(portfolio, "INTERIOR", 2)
    result = portfolio.solve(kept_sparse(held), Stop(1e-8, 5000))
    assert result.converged and in_cones(held, result.r)
    assert result.iterations > 8 + 2


def factored(problem):
    """The factor of W and a ridge, and the ridge."""
    rows, ridge = block_rows(problem.w), 1e-3 * problem.w.diagonal().mean()
    factor = SparseFactor(rows)
    factor.matrix[:] = rows.blocks
    factor.matrix[factor.diagonal] += ridge * np.eye(3)
    factor.take()
    return factor, ridge


def test_blocks_and_fill_grow_with_the_wall_and_not_with_its_square():
    """Four times as many bricks in a course: as many blocks a contact, and hardly more of the factor."""
    walls = [large_brick_wall(4, bricks, 0.5) for bricks in (8, 32)]
    blocks, fill = [], []
    for wall in walls:
        blocks.append(len(block_rows(wall.w).column) / wall.n_contacts)
        factor, _ = factored(wall)
        fill.append(factor.factor.L.nnz / wall.n_contacts)
    assert blocks[1] < 1.1 * blocks[0]
    assert fill[1] < 1.5 * fill[0]


def test_the_factor_solves():
    wall, rng = large_brick_wall(3, 5, 0.5), np.random.default_rng(1)
    factor, ridge = factored(wall)
    matrix = wall.w.toarray() + ridge * np.eye(wall.w.shape[0])
    right = rng.normal(size=len(matrix))
    np.testing.assert_allclose(matrix @ factor.solve(right), right, atol=1e-9)


@pytest.mark.parametrize("solver", ["interior-point", "admm", "portfolio"])
def test_a_contact_that_nothing_moves_changes_nothing_for_the_others(solver):
    """Its own block is zero, and a sparse W may not even store it."""
    held = stored("easy.npz")
    n = held.n_contacts
    w = sp.block_diag([held.w, sp.csr_array((3, 3))], format="csr")
    more = SparseProblem(sp.csr_array(w), np.append(held.b, [1e-3, 0.0, 0.0]), np.append(held.mu, 0.5))
    assert sp.bsr_array(more.w, blocksize=(3, 3)).indices[-1] != n
    found, alone = (find_solver(solver).solve(p, Stop(1e-10, 5000)) for p in (more, kept_sparse(held)))
    assert found.converged
    np.testing.assert_allclose(found.r[: 3 * n], alone.r, atol=1e-6 * np.abs(alone.r).max())


@pytest.mark.parametrize("solver", ["interior-point", "admm"])
def test_an_interrupt_while_the_interpreter_factors_comes_through(solver, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(SparseFactor, "take", interrupted)
    with pytest.raises(KeyboardInterrupt):
        find_solver(solver).solve(kept_sparse(stored("easy.npz")), Stop(1e-10, 5000))


def test_a_dense_matrix_whose_pattern_is_sparse_is_solved_as_a_sparse_one():
    wall = brick_wall(4, 9, 0.5)
    kept = kept_sparse(wall)
    for solver in ("portfolio", "anderson", "interior-point"):
        dense, sparse = (find_solver(solver).solve(p, Stop(1e-8, 300)) for p in (wall, kept))
        np.testing.assert_array_equal(dense.r, sparse.r)
        assert dense.iterations == sparse.iterations


def test_what_is_small_or_hangs_together_stays_dense():
    wall, n = brick_wall(4, 9, 0.5), 150
    small = brick_wall(2, 3, 0.5)
    assert isinstance(thinned(wall), SparseProblem) and thinned(small) is small
    full = ContactProblem(np.ones((3 * n, 3 * n)), np.ones(3 * n), np.ones(n))
    assert thinned(full) is full
