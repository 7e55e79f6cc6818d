"""A W with a negative eigenvalue is refused, dense or sparse, by a sentence that holds its eigenvalues."""

import numpy as np
import pytest
import scipy.sparse as sp

from palpo.benchmarks.contact_problems import brick_wall
from palpo.physics.contact.io import read_problem
from palpo.physics.contact.semidefinite import require_semidefinite
from palpo.physics.contact.solving import solve
from palpo.physics.numerics.errors import InputError

pytestmark = pytest.mark.portable


def with_eigenvalues(values, seed=0):
    """A dense symmetric matrix of these eigenvalues, its diagonal positive."""
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))
    w = (q * values) @ q.T
    w = 0.5 * (w + w.T)
    assert w.diagonal().min() > 0.0
    return w


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_negative_eigenvalue_behind_a_positive_diagonal_is_refused_and_said(kind):
    values = np.r_[-0.25, np.linspace(1.0, 3.0, 29)]
    with pytest.raises(InputError) as caught:
        require_semidefinite(kind(with_eigenvalues(values)))
    assert "-0.25" in str(caught.value) and "3" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("least", "refused"), [(0.0, False), (-1e-8, False), (-1e-3, True), (1e-9, False)])
def test_rounding_is_excused_and_no_more(kind, least, refused):
    w = kind(with_eigenvalues(np.r_[least, least, np.linspace(0.5, 1.0, 28)]))
    if refused:
        with pytest.raises(InputError):
            require_semidefinite(w)
    else:
        require_semidefinite(w)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_nothing_that_yields_much_hides_a_negative_eigenvalue_elsewhere(kind):
    w = np.zeros((33, 33))
    w[:30, :30] = with_eigenvalues(np.r_[-0.25, np.linspace(1.0, 3.0, 29)])
    w[30:, 30:] = 1e9 * np.eye(3)
    with pytest.raises(InputError, match="scaled to a diagonal of ones"):
        require_semidefinite(kind(w))


def test_singular_problems_of_rigid_bodies_are_none_of_them():
    wall = brick_wall(6, 4, 0.6)
    assert np.linalg.matrix_rank(wall.w) < len(wall.w)
    require_semidefinite(wall.w)
    require_semidefinite(sp.csr_array(wall.w))


def test_files_and_matrices_are_looked_at(tmp_path):
    w = with_eigenvalues(np.r_[-0.25, np.linspace(1.0, 3.0, 29)])
    b, mu = np.full(30, -1.0), np.full(10, 0.5)
    for held in (w, sp.csr_array(w)):
        with pytest.raises(InputError, match="eigenvalue"):
            solve((held, b, mu))
    np.savez(tmp_path / "indefinite.npz", W=w, q=b, mu=mu)
    with pytest.raises(InputError, match=r"indefinite\.npz.*eigenvalue"):
        read_problem(tmp_path / "indefinite.npz")
