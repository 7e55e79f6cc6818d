"""The one residual that judges every contact solver: the natural map of the frictional problem.

    e = || r - Proj_K( r - rho (u + mu |u_t| n) ) || / min(|| r ||, rho || b ||)

    u = W r + b,    rho = 1 / mean(diag W)

The map vanishes exactly at solutions (De Saxce & Feng 1998; Acary & Brogliato 2008, ch. 13). What it is
divided by makes e two things at once, and a number without units:

- over |r|, the share of the force that is wrong;
- over rho |b|, the force that the free offset asks for, a backward error (Rigal & Gaches, J. ACM 14, 1967):
  the projection z in the numerator is an exact solution of the problem with another b, farther from it by
  |db| <= e (1 + mu + rho |W|) |b|.

So a force is never solved by its mere size: where no force can part the contacts, or only one out of all
proportion (W singular, friction strong), |r| grows and e over it falls, but no near problem is solved.
"""

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import BIPOTENTIAL_PRINTED, augment, contact_status, project_cone
from palpo.physics.contact.problem import AnyProblem, ContactResult, Reason, Stop
from palpo.physics.numerics.kernels import inlined, kernel

RUNAWAY = 1e12
"""Multiple of |b| / mean(diag W), the force of the free offset, past which a force is no answer: roundings of
W r are all that its offset is made of."""


@inlined
def _scale(w, first, n_contacts):
    """rho = 1 / mean(diag W) [N/m]; 1 where W vanishes, so that what no force can mend still shows."""
    mean = 0.0
    for i in range(first, first + 3 * n_contacts):
        mean += w[i, i]
    return 3 * n_contacts / mean if mean > 0.0 else 1.0


@kernel
def natural_map_norm(w, mu, r, u, first, n_contacts, scratch):
    """(|| r - Proj_K(r - rho (u + mu |u_t| n)) ||, || r ||) of the contacts in the rows from `first` on [N].

    u = W r + b over those rows; mu (n_contacts,); scratch: (2, 3) at least.
    """
    rho = _scale(w, first, n_contacts)
    error, size = 0.0, 0.0
    star, image = scratch[0], scratch[1]
    for k in range(n_contacts):
        i = first + 3 * k
        augment(BIPOTENTIAL_PRINTED, r[i : i + 3], u[i : i + 3], mu[k], rho, rho, star)
        project_cone(star, mu[k], image)
        for c in range(3):
            error += (r[i + c] - image[c]) ** 2
            size += r[i + c] ** 2
    return error**0.5, size**0.5


@kernel
def asked_force(w, b, first, n_contacts):
    """rho |b| [N] of the contacts in the rows from `first` on: the force that their free offset asks for."""
    square = 0.0
    for i in range(first, first + 3 * n_contacts):
        square += b[i] * b[i]
    return _scale(w, first, n_contacts) * square**0.5


@inlined
def relative_error(error, size, asked):
    """The natural map's `error` over the lesser of |r| = `size` and `asked` [N]; infinite over nothing."""
    if error == 0.0:
        return 0.0
    over = min(size, asked)
    return error / over if over > 0.0 else np.inf


@kernel
def relative_natural_map(w, b, mu, r, u, first, n_contacts, scratch):
    """(e, || r || [N]) of the contacts in the rows from `first` on: infinite for zero forces that are wrong.

    u = W r + b over those rows; mu (n_contacts,); scratch: (2, 3) at least.
    """
    error, size = natural_map_norm(w, mu, r, u, first, n_contacts, scratch)
    return relative_error(error, size, asked_force(w, b, first, n_contacts)), size


@kernel
def contact_statuses(w, mu, r, u, status):
    """status (n,) = OPEN, STICK or SLIP of each contact, by the branch of the natural map's projection."""
    n = mu.shape[0]
    rho, star = _scale(w, 0, n), np.empty(3)
    for k in range(n):
        i = 3 * k
        augment(BIPOTENTIAL_PRINTED, r[i : i + 3], u[i : i + 3], mu[k], rho, rho, star)
        status[k] = contact_status(r[i], star, mu[k])


def natural_map_residual(
    w: NDArray[np.float64], b: NDArray[np.float64], mu: NDArray[np.float64], r: NDArray[np.float64]
) -> float:
    """e of the force r, shape (3 n,); infinite for zero forces that are wrong."""
    return _judged(diagonal_only(w), b, mu, r, w @ r + b)[0]


def relative_residual(problem: AnyProblem, r: NDArray[np.float64]) -> float:
    """e of r, shape (3 n,); infinite for zero forces that are wrong."""
    return natural_map_residual(problem.w, problem.b, problem.mu, r)


Array = NDArray[np.float64]


def _judged(w: Any, b: Array, mu: Array, r: Array, u: Array) -> tuple[float, float]:
    error, size = relative_natural_map(w, b, mu, r, u, 0, len(mu), np.zeros((2, 3)))
    return float(error), float(size)


def diagonal_only(w: Any) -> NDArray[np.float64]:
    """What the kernels here need of W, dense or sparse: a view that is right on the diagonal alone."""
    return np.broadcast_to(w.diagonal()[:, None], w.shape)


def runaway(problem: AnyProblem) -> float:
    """|r| past which a solver has diverged [N]; a warm start may be as large as it is."""
    trace = float(problem.w.diagonal().sum())
    free = float(np.linalg.norm(problem.b)) * (problem.w.shape[0] / trace if trace > 0.0 else 1.0)
    warm = 0.0 if problem.warm is None else float(np.linalg.norm(problem.warm))
    return RUNAWAY * (free + warm)


def judge(
    problem: AnyProblem,
    stop: Stop,
    r: NDArray[np.float64],
    iterations: int,
    reason: Reason,
    started: float,
    u: NDArray[np.float64] | None = None,
) -> ContactResult:
    """The result of a solver that gives back r (3 n,), finite and in the cones, and says why it ended.

    Whether it has converged is for the residual to say: a reason "converged" that the residual does not
    bear out becomes "stalled", and one that it does replaces any other. A force past `runaway` has diverged.
    started: perf_counter() at the start. u: the offset under r, shape (3 n,), where it is not W r + b.
    """
    status = np.zeros(problem.n_contacts, np.int32)
    if u is None:
        u = problem.w @ r + problem.b
    w = diagonal_only(problem.w)
    residual, size = _judged(w, problem.b, problem.mu, r, u)
    contact_statuses(w, problem.mu, r, u, status)
    diverged = size > runaway(problem)
    converged = residual <= stop.tolerance and not diverged
    if converged:
        reason = "converged"
    elif diverged:
        reason = "diverged"
    elif reason == "converged":
        reason = "stalled"
    return ContactResult(r, status, iterations, residual, converged, reason, perf_counter() - started)
