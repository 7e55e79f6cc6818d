"""Reduction of a segment: gramians, the error that the H-infinity norm predicts, passivity, exactness."""

import numpy as np
import pytest
import scipy.linalg as sl

from palpo.physics.fem.material import Material
from palpo.physics.mesh import generate
from palpo.physics.numerics.errors import InputError
from palpo.physics.reduction.balanced import GRAMIAN_DAMPING, balanced, gramian_damping, gramians
from palpo.physics.reduction.error_norm import error_norm
from palpo.physics.reduction.linear_model import linear_model, vibration_modes
from palpo.studies.reference.craig_bampton import craig_bampton
from palpo.studies.reference.modal import modal
from palpo.studies.reference.passive_midpoint import LinearBody

MESH = generate.block((0.02, 0.004, 0.008), (6, 2, 2))
CLAMPED = np.flatnonzero(MESH.nodes[:, 0] < -0.00999)
INPUTS = np.flatnonzero(MESH.nodes[:, 0] > 0.006)
BODY = linear_model(MESH, Material(164.76e6, 0.35, 1050.0), CLAMPED)
MODES = vibration_modes(BODY)
FREE = linear_model(MESH, Material(164.76e6, 0.35, 1050.0))
FREE_MODES = vibration_modes(FREE)
N = BODY.n_dof
DAMPING = (1.0, 1e-5)


def bases(order: int):
    return {
        "balanced": balanced(BODY, MODES, INPUTS, order),
        "modal": modal(BODY, MODES, order),
        "Craig-Bampton": craig_bampton(BODY, MODES, INPUTS, order),
    }


def norm_of(basis):
    return error_norm(BODY, MODES, basis, INPUTS, *DAMPING)


def test_the_gramians_are_those_of_the_lyapunov_equations_of_the_first_order_form():
    rng = np.random.default_rng(0)
    n = 7
    w2, c = np.sort(rng.uniform(1.0, 50.0, n)), rng.uniform(0.1, 20.0, n)  # under- and overdamped
    B, C = rng.standard_normal((n, 3)), rng.standard_normal((4, n))
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.diag(w2), -np.diag(c)]])
    b, o = np.vstack([0.0 * B, B]), np.hstack([C, 0.0 * C])
    P = sl.solve_continuous_lyapunov(A, -b @ b.T)[:n, :n]
    Q = sl.solve_continuous_lyapunov(A.T, -o.T @ o)[:n, :n]
    ours = gramians(w2, c, B, C)
    assert np.abs(ours[0] - P).max() < 1e-11 * np.abs(P).max()
    assert np.abs(ours[1] - Q).max() < 1e-11 * np.abs(Q).max()


@pytest.mark.parametrize("method", ["balanced", "modal", "Craig-Bampton"])
def test_a_basis_is_orthonormal_and_diagonal_in_mass_and_stiffness(method):
    V = bases(20)[method]
    assert np.abs(V.vectors.T @ (BODY.M @ V.vectors) - np.eye(20)).max() < 1e-11
    K = V.vectors.T @ (BODY.K @ V.vectors)
    assert np.abs(K - np.diag(V.stiffness)).max() < 1e-10 * V.stiffness[-1]
    # Rayleigh quotients on a subspace lie above the eigenvalues (Courant and Fischer)
    assert np.all(V.stiffness >= MODES.stiffness[:20] * (1.0 - 1e-9))


def discrete_response(M, D, K, force_hat, frequency, n=2000, step=1e-5) -> np.ndarray:
    """Amplitude of xh (n,) after transients, at the w of which `frequency` is (2 / T) tan(w T / 2)."""
    w = 2.0 / step * np.arctan(0.5 * frequency * step)
    body = LinearBody(M, D, K, step)
    hats = np.empty((n, M.shape[0]), dtype=complex)
    for k in range(n):
        vh = body.step((force_hat * np.exp(1j * w * step * k)).real)
        hats[k] = body.x - 0.5 * step * vh
    # the last half, where the slowest transient has decayed, fitted by cosine and sine
    k = np.arange(n // 2, n)
    waves = np.stack([np.cos(w * step * k), -np.sin(w * step * k)], axis=1)
    real, imaginary = np.linalg.lstsq(waves, hats[k].real, rcond=None)[0]
    return real + 1j * imaginary


@pytest.mark.parametrize("method", ["balanced", "modal"])
def test_the_worst_input_costs_in_simulation_what_the_h_infinity_error_says(method):
    basis = bases(8)[method]
    damping = (2e3, 1e-5)  # strong, that transients of all modes end within 20 ms
    found = error_norm(BODY, MODES, basis, INPUTS, *damping)
    assert 0.0 < found.error < found.size
    f = np.zeros(N, dtype=complex)
    f[BODY.dofs_of(INPUTS)] = found.force
    V = basis.vectors
    K_r, one = np.diag(basis.stiffness), np.eye(basis.order)
    full = discrete_response(BODY.M, damping[0] * BODY.M + damping[1] * BODY.K, BODY.K, f, found.frequency)
    less = discrete_response(one, damping[0] * one + damping[1] * K_r, K_r, V.T @ f, found.frequency)
    # transients of exp(-alpha t / 2) at 10 to 20 ms
    assert np.linalg.norm(full - V @ less) == pytest.approx(found.error, rel=1e-3)


def test_no_input_at_any_frequency_costs_more_than_the_h_infinity_error():
    basis = bases(8)["balanced"]
    alpha, beta = 4e3, 1e-6  # peaks stand off the natural frequencies, where the search starts
    found = error_norm(BODY, MODES, basis, INPUTS, alpha, beta)
    rows = BODY.dofs_of(INPUTS)

    def error_at(w: float) -> float:
        less = -(w**2) + 1j * w * alpha, 1.0 + 1j * w * beta
        full = (MODES.vectors / (less[0] + less[1] * MODES.stiffness)) @ MODES.vectors[rows].T
        reduced = (basis.vectors / (less[0] + less[1] * basis.stiffness)) @ basis.vectors[rows].T
        return np.linalg.norm(full - reduced, 2)

    scan = [
        error_at(w) for w in np.r_[np.geomspace(1e2, 1e6, 20), found.frequency * np.linspace(0.98, 1.02, 21)]
    ]
    # between two points of the fine scan a parabola rises by 1e-6 of its height at most
    assert max(scan) == pytest.approx(found.error, rel=1e-5)


def test_at_equal_order_balanced_beats_modal_truncation_and_craig_bampton_for_its_inputs():
    errors = {name: norm_of(basis).error for name, basis in bases(25).items()}
    assert errors["balanced"] < errors["modal"]
    assert errors["balanced"] < errors["Craig-Bampton"]


@pytest.mark.parametrize("method", ["balanced", "modal", "Craig-Bampton"])
def test_a_basis_of_full_order_is_exact(method):
    basis = bases(N)[method]
    assert basis.stiffness == pytest.approx(MODES.stiffness, rel=1e-7)
    kept = basis.vectors @ (basis.vectors.T @ (BODY.M @ np.eye(N)))
    # V^T M V = 1 to 1e-12, squared
    assert np.abs(kept - np.eye(N)).max() < 1e-9


def test_a_tolerance_is_kept_by_the_order_it_gives_and_missed_by_a_lower_one():
    basis = balanced(BODY, MODES, INPUTS, tolerance=0.01, damping=DAMPING)
    found = norm_of(basis)
    assert found.error <= 0.01 * found.size
    lower = balanced(BODY, MODES, INPUTS, basis.order - max(1, basis.order // 8), damping=DAMPING)
    assert norm_of(lower).error > 0.01 * found.size


def test_hankel_values_fall_and_the_reduced_model_is_passive():
    basis = balanced(BODY, MODES, INPUTS, 12)
    assert basis.hankel.size == N
    assert np.all(np.diff(basis.hankel) <= 0.0)
    assert basis.stiffness.min() > 0.0
    one = np.eye(12)
    body = LinearBody(one, 0.0 * one, np.diag(basis.stiffness), 1e-3)
    f = basis.vectors.T @ np.ones(N)
    work = sum(1e-3 * f @ body.step(f) for _ in range(200))
    assert work == pytest.approx(body.energy(), rel=1e-9)


@pytest.mark.parametrize("method", [balanced, craig_bampton])
def test_the_rigid_motions_of_a_floating_body_are_in_its_basis(method):
    basis = method(FREE, FREE_MODES, INPUTS, order=10)
    assert (FREE_MODES.rigid, basis.rigid) == (6, 6)
    assert np.array_equal(basis.stiffness[:6], np.zeros(6))
    rigid = FREE_MODES.vectors[:, :6]
    kept = basis.vectors[:, :6] @ (basis.vectors[:, :6].T @ (FREE.M @ rigid))
    assert np.abs(kept - rigid).max() < 1e-6 * np.abs(rigid).max()


def test_at_vanishing_damping_balanced_reduction_tends_to_a_choice_of_vibration_modes():
    def outside(beta):
        """Largest angle between the basis and the nearest six modes."""
        V = balanced(BODY, MODES, INPUTS, 6, damping=(0.0, beta)).vectors
        share = ((MODES.vectors.T @ (BODY.M @ V)) ** 2).sum(axis=1)
        return 6.0 - np.sort(share)[-6:].sum()

    strong, weak, weakest = outside(1e-4), outside(1e-7), outside(1e-10)
    assert weakest < 1e-6
    assert weakest < weak < strong


def test_gramians_of_an_undamped_model_take_the_small_damping_of_the_paper():
    assert gramian_damping(BODY) == GRAMIAN_DAMPING
    assert gramian_damping(linear_model(MESH, Material(1e6, 0.3, 1e3, 0.5, 0.0))) == (0.5, 0.0)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"order": 0}, "order is 0, expected a whole number from 1 to"),
        ({"order": N + 1}, f"expected a whole number from 1 to {N}"),
        ({"tolerance": 0.0}, "tolerance is 0.0, expected a number between 0 and 1"),
        ({}, "either an order or a tolerance"),
    ],
)
def test_orders_and_tolerances_out_of_range_are_refused(asked, words):
    with pytest.raises(InputError, match=words):
        balanced(BODY, MODES, INPUTS, **asked)


def test_boundaries_that_leave_nothing_or_hold_nothing_are_refused():
    with pytest.raises(InputError, match="every node is a boundary node"):
        craig_bampton(BODY, MODES, BODY.nodes, 10)
    with pytest.raises(InputError, match="1 boundary nodes do not hold the body"):
        craig_bampton(FREE, FREE_MODES, [0], 10)
