"""The one residual that judges every contact solver: the natural map of the frictional problem.

    e = || r - Proj_K( r - rho (u + mu |u_t| n) ) || / || r ||,    u = W r + b,  rho = 1 / mean(diag W)

It vanishes exactly at solutions (De Saxce & Feng 1998; Acary & Brogliato 2008, ch. 13).
"""

import math
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import BIPOTENTIAL_PRINTED, augment, contact_status, project_cone
from palpo.physics.contact.problem import AnyProblem, ContactResult, Reason, Stop
from palpo.physics.kernels import inlined, kernel

RUNAWAY = 1e12
"""Multiple of |b| / mean(diag W), the force of the free offset, past which a force is no answer: so it grows
where no force can part the contacts, and its relative residual is small by its mere size."""


PLAUSIBLE = 1e6
"""The same for solvers that make W regular: where no force can part the contacts, what they add does, with a
force so large that any residual is small by it. Below, a residual of 1e-8 is 1 % of the free offset's."""


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
    """Relative natural-map residual of the force r, shape (3 n,); absolute [N] where r is zero."""
    error, size = natural_map_norm(w, mu, r, w @ r + b, 0, len(mu), np.zeros((2, 3)))
    return float(error / size if size > 0.0 else error)


def relative_residual(problem: AnyProblem, r: NDArray[np.float64]) -> float:
    """Relative natural-map residual of r, shape (3 n,); infinite for zero forces that are wrong."""
    u = problem.w @ r + problem.b
    w = diagonal_only(problem.w)
    error, size = natural_map_norm(w, problem.mu, r, u, 0, problem.n_contacts, np.zeros((2, 3)))
    if error > 0.0:
        return float(error / size) if size > 0.0 else math.inf
    return 0.0


def diagonal_only(w: Any) -> NDArray[np.float64]:
    """What the kernels here need of W, dense or sparse: a view that is right on the diagonal alone."""
    return np.broadcast_to(w.diagonal()[:, None], w.shape)


def runaway(problem: AnyProblem, multiple: float = RUNAWAY) -> float:
    """|r| past which a solver has diverged [N]; a warm start may be as large as it is."""
    trace = float(problem.w.diagonal().sum())
    free = float(np.linalg.norm(problem.b)) * (problem.w.shape[0] / trace if trace > 0.0 else 1.0)
    warm = 0.0 if problem.warm is None else float(np.linalg.norm(problem.warm))
    return multiple * (free + warm)


def judge(
    problem: AnyProblem,
    stop: Stop,
    r: NDArray[np.float64],
    iterations: int,
    reason: Reason,
    started: float,
) -> ContactResult:
    """The result of a solver that gives back r (3 n,), finite and in the cones, and says why it ended.

    Whether it has converged is for the residual to say: a reason "converged" that the residual does not
    bear out becomes "stalled", and one that it does replaces any other. A force past `runaway` has diverged.
    started: perf_counter() at the start.
    """
    status = np.zeros(problem.n_contacts, np.int32)
    u = problem.w @ r + problem.b
    w = diagonal_only(problem.w)
    error, size = natural_map_norm(w, problem.mu, r, u, 0, problem.n_contacts, np.zeros((2, 3)))
    contact_statuses(w, problem.mu, r, u, status)
    residual = float(error / size if size > 0.0 else error)
    diverged = size > runaway(problem)
    converged = residual <= stop.tolerance and not diverged
    if converged:
        reason = "converged"
    elif diverged:
        reason = "diverged"
    elif reason == "converged":
        reason = "stalled"
    return ContactResult(r, status, iterations, residual, converged, reason, perf_counter() - started)
