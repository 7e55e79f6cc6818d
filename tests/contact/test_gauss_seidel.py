"""Block Gauss-Seidel on stored problems and on random ones, judged by the natural map."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from physics.contact.problem import ContactProblem
from physics.contact.residual import natural_map_residual
from physics.contact.solvers.gauss_seidel import solve
from physics.errors import InputError

STORED = Path(__file__).resolve().parents[3] / "shared" / "data" / "friction"


def stored(name: str) -> ContactProblem:
    path = STORED / name
    if not path.exists():
        pytest.skip(f"the problem {name} is not kept with the project: {path} is not there")
    if path.suffix == ".npz":
        data = np.load(path)
        return ContactProblem(data["W"], data["q"], data["mu"])
    with h5py.File(path) as file:
        group = file["fclib_local"]
        parts = {key: group["W"][key][()] for key in group["W"]}
        shape = (int(parts["m"][0]), int(parts["n"][0]))
        nz, x = int(parts["nz"][0]), parts["x"]
        if nz == -1:
            w = sp.csc_matrix((x, parts["i"], parts["p"]), shape)
        elif nz == -2:
            w = sp.csr_matrix((x, parts["i"], parts["p"]), shape)
        else:
            w = sp.coo_matrix((x[:nz], (parts["i"][:nz], parts["p"][:nz])), shape)
        return ContactProblem(w.toarray(), group["vectors/q"][()], group["vectors/mu"][()])


@pytest.mark.parametrize("name", ["delassus_36.npz", "delassus_66.npz"])
def test_a_dragged_block_is_solved_to_a_natural_map_of_1e_8(name):
    result = solve(stored(name), tolerance=1e-10)
    assert result.converged
    assert result.residual <= 1e-8


def test_a_rank_deficient_packing_is_solved_as_well():
    """60 contacts, W of rank 72 of 180: forces are not unique, the residual is."""
    problem = stored("LMGC_100_PR_PerioBox-i00361-60-03000.hdf5")
    result = solve(problem, tolerance=1e-11, max_sweeps=50000)
    assert result.residual <= 1e-8


def test_a_warm_start_at_the_solution_is_left_within_a_sweep():
    problem = stored("delassus_36.npz")
    first = solve(problem, tolerance=1e-12)
    again = solve(ContactProblem(problem.w, problem.b, problem.mu, first.r), tolerance=1e-9)
    assert again.iterations == 1
    np.testing.assert_allclose(again.r, first.r, rtol=0, atol=1e-9 * np.abs(first.r).max())


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 8), st.integers(0, 2**32 - 1), st.floats(0.0, 0.8))
def test_random_problems_end_in_the_cone_with_signorini_and_the_slip_opposed(n, seed, mu):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(3 * n, 3 * n))
    # well conditioned, so that the coupling cannot defeat uniqueness
    w = half @ half.T / (3 * n) + 2.0 * np.eye(3 * n)
    problem = ContactProblem(w, rng.normal(size=3 * n), np.full(n, mu))
    result = solve(problem, tolerance=1e-12)
    assert result.residual <= 1e-8
    r, u = result.r.reshape(n, 3), (w @ result.r + problem.b).reshape(n, 3)
    size = max(np.abs(r).max(), 1e-9)
    assert (r[:, 0] >= 0.0).all()
    assert (np.hypot(r[:, 1], r[:, 2]) <= mu * r[:, 0] + 1e-12 * size).all()
    assert u[:, 0].min() > -1e-7
    assert np.abs(u[:, 0] * r[:, 0]).max() < 1e-6 * size
    # the slip never gains from friction
    assert (r[:, 1:] * u[:, 1:]).sum(axis=1).max() < 1e-6 * size


def test_the_residual_of_a_wrong_force_is_not_small():
    problem = stored("delassus_36.npz")
    right = solve(problem, tolerance=1e-12).r
    assert natural_map_residual(problem.w, problem.b, problem.mu, 1.1 * right) > 1e-3


@pytest.mark.parametrize(
    ("w", "b", "mu", "said"),
    [
        (np.eye(3), np.zeros(2), np.zeros(1), "shape"),
        (np.eye(3), np.full(3, np.nan), np.zeros(1), "finite"),
        (np.eye(3), np.zeros(3), np.array([-0.1]), "negative"),
    ],
)
def test_a_problem_that_is_none_is_refused(w, b, mu, said):
    with pytest.raises(InputError, match=said):
        ContactProblem(w, b, mu)
