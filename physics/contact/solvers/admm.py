"""Alternating directions (ADMM) on the cones, with a step taken from W's spectrum: for a singular W.

Carpentier, Le Lidec & Montaut (From Compliant to Rigid Contact Simulation: a Unified and Efficient Approach,
Robotics: Science and Systems 2024) split the problem into a linear one and a projection. On W and b scaled
so that every contact's own block is 1,

    x+ = (W + (eta + rho) I)^-1 (-(b + sigma n) + eta x + rho y + z),    sigma = mu |z_t|
    y+ = Proj_K(v - z / rho),    v = alpha x+ + (1 - alpha) y
    z+ = z - rho (v - y+)

where z tends to u + mu |u_t| n. rho starts at sqrt(m L) (L / m)^EXPONENT, m and L the least and the largest
eigenvalue of W, and is multiplied or divided by (L / m)^EXPONENT where the primal and the dual residual are
BALANCE apart: each costs a factor, which has W's pattern. alpha is the over-relaxation.
"""

import math
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import judge, project_cone, relative_natural_map, runaway
from palpo.physics.contact.problem import AnyProblem, ContactResult, Reason, Stop
from palpo.physics.contact.solvers import factors
from palpo.physics.contact.solvers.operator import operator, own_entries, times
from palpo.physics.contact.solvers.products import dot, mean_compliances
from palpo.physics.contact.solvers.relaxation import starting_force
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import inlined, kernel

PROXIMAL = 1e-9
"""eta, which keeps x where a singular W leaves it free."""

EXPONENT, BALANCE, FLATTEST = 0.05, 10.0, 1e-6
"""The last: least m / L."""

POWERS = 20
"""Products that find L, and solves that find m."""

OFTEN = 10
"""Iterations between two looks at the residual and at rho."""

RELAXATION = 1.6

CONTINUE, CONVERGED, STALLED = range(3)
REASONS: dict[int, Reason] = {CONTINUE: "iterations", CONVERGED: "converged", STALLED: "stalled"}

STATE = np.dtype(
    (np.record, [(name, np.int64) for name in ("iterations", "factors")]
     + [(name, np.float64) for name in ("rho", "largest", "smallest", "residual")])
)  # fmt: skip
"""Iterations, factorisations; rho, L, m, least relative residual."""


class Alternation(NamedTuple):
    """What a solve carries from iteration to iteration, for n contacts; N = 3 n."""

    factor: Any  # of W + (eta + rho) I (palpo.physics.contact.solvers.factors)
    scale: NDArray[np.float64]  # (N,) r = scale y / unit of W
    x: NDArray[np.float64]  # (N,)
    y: NDArray[np.float64]  # (N,) in the cones
    z: NDArray[np.float64]  # (N,)
    force: NDArray[np.float64]  # (N,) [N]
    offset: NDArray[np.float64]  # (N,) [m]
    best: NDArray[np.float64]  # (N,) force of the least residual [N]
    state: NDArray[Any]  # (1,) of STATE
    scratch: NDArray[np.float64]  # (3, 3)


def make_alternation(w: Any, n_contacts: int) -> Alternation:
    """Room for solves with an operator w of n_contacts contacts."""
    n = 3 * n_contacts
    return Alternation(
        factors.make_factor(w, definite=True), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n),
        np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(1, STATE), np.zeros((3, 3)),
    )  # fmt: skip


@kernel
def begin(w, b, mu, r, a):
    """Start at the force r (N,) in the cones. Returns whether W + rho I could be factored."""
    rows = b.shape[0]
    mean_compliances(own_entries(w), a.offset)
    for i in range(rows):
        a.scale[i] = 1.0 / a.offset[i // 3] ** 0.5
    for i in range(rows):
        a.y[i] = r[i] / a.scale[i]
        a.x[i], a.best[i], a.force[i] = a.y[i], r[i], r[i]
    a.state[0].iterations = a.state[0].factors = 0
    a.state[0].residual = np.inf
    _look(w, b, mu, np.inf, a)
    for k in range(mu.shape[0]):
        i = 3 * k
        for c in range(3):
            a.z[i + c] = a.offset[i + c] * a.scale[i + c]
        a.z[i] += mu[k] * (a.z[i + 1] ** 2 + a.z[i + 2] ** 2) ** 0.5
    return _spectrum(w, a)


@inlined
def _look(w, b, mu, bound, a):
    """Relative residual of y, and its offset."""
    rows = b.shape[0]
    for i in range(rows):
        a.force[i] = a.y[i] * a.scale[i]
    times(w, a.force, a.offset)
    for i in range(rows):
        a.offset[i] += b[i]
    error, size = relative_natural_map(own_entries(w), b, mu, a.force, a.offset, 0, mu.shape[0], a.scratch)
    if size > bound:
        error = np.inf
    if error < a.state[0].residual:
        a.state[0].residual = error
        for i in range(rows):
            a.best[i] = a.force[i]
    return error


@inlined
def _spectrum(w, a):
    """L by products, m by solves with W + FLATTEST L I, and the first rho; whether its factor exists."""
    rows, size = a.x.shape[0], 0.0
    for i in range(rows):
        a.force[i] = 1.0 + 0.5 * (i % 7)
    for _ in range(POWERS):
        for i in range(rows):
            a.force[i] *= a.scale[i]
        times(w, a.force, a.offset)
        for i in range(rows):
            a.offset[i] *= a.scale[i]
        size = dot(a.offset, a.offset) ** 0.5
        for i in range(rows):
            a.force[i] = a.offset[i] / size if size > 0.0 else 0.0
    largest = max(size, 1e-300)
    least, small = FLATTEST * largest, FLATTEST * largest
    if _refactor(w, least, a):
        for i in range(rows):
            a.force[i] = 1.0 - 0.5 * (i % 5)
        for _ in range(POWERS):
            factors.solve(a.factor, a.force)
            size = dot(a.force, a.force) ** 0.5
            for i in range(rows):
                a.force[i] /= size
        small = max(least, 1.0 / size - least)
    a.state[0].largest, a.state[0].smallest = largest, small
    a.state[0].rho = (small * largest) ** 0.5 * (largest / small) ** EXPONENT
    return _refactor(w, PROXIMAL + a.state[0].rho, a)


@inlined
def _refactor(w, ridge, a):
    """factor = that of the scaled W + ridge I; whether there is one."""
    own = a.scratch
    for k in range(a.x.shape[0] // 3):
        for c in range(3):
            own[c, 0] = own[c, 1] = own[c, 2] = 0.0
            own[c, c] = a.scale[3 * k + c]
        factors.fill(a.factor, w, k, own, a.scale)
        block = factors.own_block(a.factor, k)
        for c in range(3):
            block[c, c] += ridge
    a.state[0].factors += 1
    return factors.factor(a.factor)


@kernel
def advance(w, b, mu, relaxation, tolerance, bound, iterations, a):
    """Up to `iterations` more after `begin`; a.best is the force of the least residual met, in the cones.

    Its |r| is at most `bound` [N]. Returns CONVERGED where that residual is at most `tolerance`, STALLED
    where no factor exists, else CONTINUE.
    """
    rows = b.shape[0]
    if a.state[0].residual <= tolerance:
        return CONVERGED
    for done in range(1, iterations + 1):
        rho = a.state[0].rho
        for i in range(rows):
            a.x[i] = PROXIMAL * a.x[i] + rho * a.y[i] + a.z[i] - b[i] * a.scale[i]
        for k in range(mu.shape[0]):
            i = 3 * k
            a.x[i] -= mu[k] * (a.z[i + 1] ** 2 + a.z[i + 2] ** 2) ** 0.5
        factors.solve(a.factor, a.x)
        primal, dual = 0.0, 0.0
        for k in range(mu.shape[0]):
            i = 3 * k
            for c in range(3):
                a.force[i + c] = relaxation * a.x[i + c] + (1.0 - relaxation) * a.y[i + c]
                a.scratch[0, c] = a.force[i + c] - a.z[i + c] / rho
            project_cone(a.scratch[0], mu[k], a.scratch[1])
            for c in range(3):
                y = a.scratch[1, c]
                a.z[i + c] -= rho * (a.force[i + c] - y)
                primal += (a.x[i + c] - y) ** 2
                dual += (rho * (y - a.y[i + c])) ** 2
                a.y[i + c] = y
        a.state[0].iterations += 1
        if a.state[0].iterations % OFTEN == 0 or done == iterations:
            error = _look(w, b, mu, bound, a)
            if error <= tolerance:
                return CONVERGED
            if error != error:  # NaN
                return STALLED
            factor = (a.state[0].largest / a.state[0].smallest) ** EXPONENT
            apart = BALANCE * BALANCE
            if a.state[0].iterations % OFTEN == 0 and (primal > apart * dual or dual > apart * primal):
                a.state[0].rho = rho * factor if primal > dual else rho / factor
                if not _refactor(w, PROXIMAL + a.state[0].rho, a):
                    return STALLED
    return CONTINUE


def solve(problem: AnyProblem, stop: Stop, *, relaxation: float = RELAXATION) -> ContactResult:
    """Alternate until the residual is at most `stop.tolerance`; an iteration is a solve with the factor.

    Starts from the warm start. relaxation: alpha, between 0 and 2. Raises InputError for one that is not.
    """
    started = perf_counter()
    if not 0.0 < relaxation < 2.0:
        raise InputError(f"relaxation = {relaxation}: must lie between 0 and 2")
    b, mu, r = problem.b, problem.mu, starting_force(problem)
    if not problem.n_contacts:
        return judge(problem, stop, r, 0, "converged", started)
    w = operator(problem)
    a = make_alternation(w, problem.n_contacts)
    code, bound = CONTINUE if begin(w, b, mu, r, a) else STALLED, runaway(problem)
    factors.raise_held_back(a.factor)
    while code == CONTINUE and a.state["iterations"].item() < stop.max_iterations:
        left = stop.max_iterations - a.state["iterations"].item()
        chunk = min(OFTEN, left) if math.isfinite(stop.seconds) else left
        code = advance(w, b, mu, float(relaxation), stop.tolerance, bound, chunk, a)
        factors.raise_held_back(a.factor)
        if code == CONTINUE and perf_counter() - started >= stop.seconds:
            return judge(problem, stop, a.best, a.state["iterations"].item(), "time", started)
    return judge(problem, stop, a.best, a.state["iterations"].item(), REASONS[code], started)
