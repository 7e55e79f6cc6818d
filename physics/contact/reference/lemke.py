"""The cone with h facets: a linear complementarity problem, solved exactly by Lemke's pivots.

Unknowns of a contact (001, N. Talbi's thesis, 2.4.2.3): r_n, beta_1 ... beta_h along d_k (2.27, 2.28) and
lambda, its slip; (2.29) reads

    x_n >= 0  perp  r_n,    lambda + d_k . x_t >= 0  perp  beta_k,    mu r_n - sum beta_k >= 0  perp  lambda

The matrix is copositive, so that Lemke's path ends in a solution wherever the cone's forces can part the
contacts (Stewart & Trinkle 1996; Anitescu & Potra 1997; Cottle, Pang & Stone 1992, 4.4). Ties are broken
lexicographically in the columns of the basis inverse, so no basis comes twice. The polygon lies inside the
disc: its strength, and the work that it takes from sliding, are between cos(pi / h) = 1 - O(1 / h^2) and 1
times the disc's; the force itself may point up to pi / h beside the slip, which is what the common residual
then shows. A small reference: the tableau is dense.
"""

from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import judge
from palpo.physics.contact.problem import ContactProblem, ContactResult, Reason, Stop
from palpo.physics.contact.solvers.relaxation import project_cones
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel

LARGEST = 3000
"""Most unknowns n (h + 2): the tableau takes 16 bytes times their square, and a pivot as many products."""

PIVOTS = 5
"""Pivots between two looks at the clock."""

PIVOT, TIE = 1e-7, 1e-12
"""Least pivot, and least difference of two ratios, of data scaled to 1: a rank-deficient W leaves columns of
roundings, and a pivot on one of those ends in forces that pull."""

GOING, SOLVED, RAY = 0, 1, 2


def solve(problem: ContactProblem, stop: Stop, *, facets: int = 8) -> ContactResult:
    """The exact answer of the cone with `facets` >= 3 facets; iterations are pivots.

    Ends "stalled" where it is the polygon's answer but not, to the tolerance, the disc's, and where the path
    ends in a ray: then no answer was found. Raises InputError for a problem that is too large.
    """
    started = perf_counter()
    n = problem.n_contacts
    if facets < 3:
        raise InputError(f"facets = {facets}: a cone needs 3 facets at least")
    if n * (facets + 2) > LARGEST:
        raise InputError(
            f"{n} contacts of {facets} facets make {n * (facets + 2)} unknowns; Lemke's tableau holds "
            f"{LARGEST}"
        )
    direction = _directions(facets)
    matrix, q, unit = _complementarity(problem, direction)
    tableau, basis = _start(matrix, q)
    pivots, code, entering = 0, GOING, -1
    reason: Reason = "iterations"
    while code == GOING and pivots < stop.max_iterations:
        if pivots and perf_counter() - started >= stop.seconds:
            reason = "time"
            break
        code, entering, done = _pivots(tableau, basis, entering, min(PIVOTS, stop.max_iterations - pivots))
        pivots += done
    z = np.zeros(2 * len(q) + 1)
    z[basis] = tableau[:, -1]
    parts = unit * z[len(q) : -1].reshape(n, facets + 2)
    r = np.hstack([parts[:, :1], parts[:, 1:-1] @ direction]).reshape(-1)
    project_cones(problem.mu, r)
    return judge(problem, stop, r, pivots, reason if code == GOING else "stalled", started)


def _directions(facets: int) -> NDArray[np.float64]:
    """d_k of (2.27), shape (facets, 2)."""
    angle = 2.0 * np.pi * np.arange(facets) / facets
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _complementarity(
    problem: ContactProblem, direction: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """M, q of (2.29) with z = (r_n, beta, lambda) of each contact, and the force [N] of z = 1."""
    n, facets = problem.n_contacts, len(direction)
    size = facets + 2
    mean = float(problem.w.diagonal().mean()) if n else 1.0
    rho = 1.0 / mean if mean > 0.0 else 1.0
    unit = rho * float(np.abs(problem.b).max(initial=0.0)) or 1.0
    generator = np.zeros((3, size))
    generator[0, 0] = 1.0
    generator[1:, 1:-1] = direction.T
    forces = np.kron(np.eye(n), generator)
    matrix = rho * forces.T @ problem.w @ forces
    q = rho / unit * forces.T @ problem.b
    for k in range(n):
        i = size * k
        matrix[i + 1 : i + 1 + facets, i + size - 1] = 1.0
        matrix[i + size - 1, i] = problem.mu[k]
        matrix[i + size - 1, i + 1 : i + 1 + facets] = -1.0
    return matrix, q, unit


def _start(
    matrix: NDArray[np.float64], q: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Tableau (m, 2 m + 2) of w - M z - 1 z_0 = q, columns (w, z, z_0, q), and the basis w."""
    m = len(q)
    tableau = np.concatenate([np.eye(m), -matrix, -np.ones((m, 1)), q[:, None]], axis=1)
    return np.ascontiguousarray(tableau), np.arange(m)


@kernel
def _pivots(tableau, basis, entering, most):
    """Up to `most` pivots; entering = -1 at the start. Returns (GOING, SOLVED or RAY, entering, pivots)."""
    m = basis.shape[0]
    z0 = 2 * m
    if entering < 0:
        row = 0
        for i in range(1, m):
            if tableau[i, z0 + 1] < tableau[row, z0 + 1]:
                row = i
        if m == 0 or tableau[row, z0 + 1] >= 0.0:
            return SOLVED, entering, 0
        entering = z0
    else:
        row = _leaving(tableau, basis, entering)
    for done in range(most):
        if row < 0:
            return RAY, entering, done
        _pivot(tableau, row, entering)
        left = basis[row]
        basis[row] = entering
        if left == z0:
            return SOLVED, entering, done + 1
        entering = left + m if left < m else left - m
        if done + 1 < most:
            row = _leaving(tableau, basis, entering)
    return GOING, entering, most


@kernel
def _leaving(tableau, basis, entering):
    """Row of the lexicographically least ratio (q, B^-1) / column; z_0 leaves a tie; -1 on a ray."""
    m = basis.shape[0]
    z0 = 2 * m
    best = -1
    for i in range(m):
        pivot = tableau[i, entering]
        if pivot <= PIVOT:
            continue
        if best < 0:
            best = i
            continue
        other = tableau[best, entering]
        difference = tableau[i, z0 + 1] / pivot - tableau[best, z0 + 1] / other
        if abs(difference) <= TIE:
            if basis[best] == z0:
                continue
            if basis[i] == z0:
                best = i
                continue
            for j in range(m):
                difference = tableau[i, j] / pivot - tableau[best, j] / other
                if abs(difference) > TIE:
                    break
        if difference < 0.0:
            best = i
    return best


@kernel
def _pivot(tableau, row, column):
    """Make `column` the unit vector of `row`."""
    line = tableau[row]
    line /= line[column]
    for i in range(tableau.shape[0]):
        factor = tableau[i, column]
        if i != row and factor != 0.0:
            other = tableau[i]
            for j in range(line.shape[0]):
                other[j] -= factor * line[j]
