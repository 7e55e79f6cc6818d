"""Semi-smooth Newton on the equations of all contacts at once, for the servo too: nothing is allocated.

Alart & Curnier's equations (Comput. Methods Appl. Mech. Eng. 92, 1991; SICONOS_FRICTION_3D_NSN_AC in Acary,
Bremond & Huber, Advanced Topics in Nonsmooth Dynamics 2018) with p_n = r_n - rho_n u_n, s = r_t - rho_t u_t:

    open    p_n <= 0             r = 0
    stick   |s| <= mu p_n        u = 0
    slip    otherwise            u_n = 0,   r_t = mu p_n s / |s|

Each step solves their linearisation at the present statuses. Rows of open contacts fall out, so only what
bears is factored. A ridge, RIDGE / rho_n on the diagonal of normal and sticking rows, makes a singular W
regular without moving the solution: it acts on the change of the force, as in a proximal step. The end of a
step is brought into the cones and taken if the natural map's residual falls there, else at a half of it, and
so on; a step that finds nothing raises the ridge and is tried again.

`advance_freely` instead goes where each step leads, out of the cones too, and keeps the best force on the
way: from a warm start among contacts that hardly differ from each other, where no step makes the residual
fall at once, a handful of such steps arrive.
"""

import math
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import OPEN, SLIP, STICK, judge, relative_natural_map, runaway, scale_to_disc
from palpo.physics.contact.problem import ContactProblem, ContactResult, Reason, Stop
from palpo.physics.contact.solvers.block import set_offset
from palpo.physics.contact.solvers.products import dot
from palpo.physics.contact.solvers.relaxation import starting_force
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.lapack import lu_factor, lu_solve, make_words

HALVINGS, FALL = 5, 1e-3
"""Lengths of a step that are tried, and the share of it by which the residual has to fall."""

LEAST_RIDGE, FIRST_RIDGE, GROWTH = 1e-10, 1e-8, 100.0
"""Ridge of steps that go well and after the first that does not; the factor between two tries."""

TRIES = 5
"""Steps without success after which it has stalled."""

FREE_RIDGE = 1e-3
"""Ridge of steps that go freely: with 1e-2 they take twice as many on the rim of a suction cup, and without
one contacts that lie side by side may change places for ever."""

CONTINUE, CONVERGED, STALLED = range(3)
REASONS: dict[int, Reason] = {CONTINUE: "iterations", CONVERGED: "converged", STALLED: "stalled"}

STATE = np.dtype(
    (np.record, [(name, np.int64) for name in ("steps", "bearing", "failed")]
     + [(name, np.float64) for name in ("residual", "ridge")])
)  # fmt: skip
"""Steps done, contacts that bear, steps without success since the last one; relative residual of r; ridge."""


class SemiSmooth(NamedTuple):
    """What a solve carries from step to step, for n contacts; N = 3 n."""

    matrix: NDArray[np.float64]  # (N, N) of the bearing rows, then its factors
    words: NDArray[np.int32]
    step: NDArray[np.float64]  # (n, 2) rho_n, rho_t [N/m]
    bearing: NDArray[np.int64]  # (n,) contacts that are not open, in order
    status: NDArray[np.int64]  # (n,)
    right: NDArray[np.float64]  # (N,) right-hand side, then the solution
    change: NDArray[np.float64]  # (N,) of r [N]
    r: NDArray[np.float64]  # (N,) force of the least residual [N]
    u: NDArray[np.float64]  # (N,) W r + b [m]
    trial: NDArray[np.float64]  # (N,) force tried [N]
    ahead: NDArray[np.float64]  # (N,) its offset [m]
    state: NDArray[Any]  # (1,) of STATE
    scratch: NDArray[np.float64]  # (2, 3)


def make_semi_smooth(n_contacts: int, room: NDArray[np.float64] | None = None) -> SemiSmooth:
    """Room for a solve of n_contacts contacts; room: for the matrix, (N, N), where another lends some."""
    n = 3 * n_contacts
    matrix = np.zeros((n, n)) if room is None else room
    return SemiSmooth(
        matrix, make_words(n), np.zeros((n_contacts, 2)), np.zeros(n_contacts, np.int64),
        np.zeros(n_contacts, np.int64), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n),
        np.zeros(n), np.zeros(1, STATE), np.zeros((2, 3)),
    )  # fmt: skip


@kernel
def begin(w, b, mu, r, a):
    """Start at the force r (N,) in the cones."""
    rows = b.shape[0]
    for k in range(mu.shape[0]):
        i = 3 * k
        half = 0.5 * (w[i + 1, i + 1] + w[i + 2, i + 2])
        spread = (0.25 * (w[i + 1, i + 1] - w[i + 2, i + 2]) ** 2 + w[i + 1, i + 2] ** 2) ** 0.5
        a.step[k, 0] = 1.0 / w[i, i] if w[i, i] > 0.0 else 0.0
        a.step[k, 1] = 1.0 / (half + spread) if half + spread > 0.0 else a.step[k, 0]
    for i in range(rows):
        a.r[i] = r[i]
    set_offset(w, b, a.r, a.u, 0, rows)
    state = a.state[0]
    state.steps = state.bearing = state.failed = 0
    state.residual, state.ridge = _residual(w, b, mu, a.r, a.u, np.inf, a), LEAST_RIDGE


@kernel
def advance(w, b, mu, tolerance, bound, steps, a):
    """Up to `steps` steps more after `begin`; a.r is the force of the least residual, in the cones.

    Its |r| is at most `bound` [N]; w (N, N), b (N,), mu (n,), contiguous. Returns CONVERGED where the
    residual is at most `tolerance`, STALLED where no step is better, else CONTINUE.
    """
    if a.state[0].residual <= tolerance:
        return CONVERGED
    for _ in range(steps):
        _classify(mu, a)
        _leave(w, a)
        assemble(w, mu, a)
        a.state[0].steps += 1
        if lu_factor(a.matrix, 3 * a.state[0].bearing, a.words) and _search(w, b, mu, bound, a):
            if a.state[0].residual <= tolerance:
                return CONVERGED
        else:
            a.state[0].failed += 1
            a.state[0].ridge = max(a.state[0].ridge * GROWTH, FIRST_RIDGE)
            if a.state[0].failed > TRIES:
                return STALLED
    return CONTINUE


@kernel
def advance_freely(w, b, mu, tolerance, bound, steps, best, a):
    """Up to `steps` steps after `begin`, wherever they lead, each whole; best (N,): see below.

    As `advance`, but a.r is where the last step has led, in the cones or not. best becomes the force in the
    cones of the least residual on the way, that of the start among them, a.state[0].residual its residual.
    """
    for i in range(b.shape[0]):
        best[i] = a.r[i]
    if a.state[0].residual <= tolerance:
        return CONVERGED
    a.state[0].ridge = FREE_RIDGE
    for _ in range(steps):
        _classify(mu, a)
        _leave(w, a)
        assemble(w, mu, a)
        a.state[0].steps += 1
        if not lu_factor(a.matrix, 3 * a.state[0].bearing, a.words):
            return STALLED
        _solve(a)
        _try(mu, 1.0, a)
        for i in range(b.shape[0]):
            a.ahead[i] = b[i] + dot(w[i], a.trial)
        error = _residual(w, b, mu, a.trial, a.ahead, bound, a)
        if error < a.state[0].residual:
            a.state[0].residual = error
            for i in range(b.shape[0]):
                best[i] = a.trial[i]
        if error <= tolerance:
            return CONVERGED
        for i in range(b.shape[0]):
            a.r[i] += a.change[i]
        for i in range(b.shape[0]):
            a.u[i] = b[i] + dot(w[i], a.r)
    return CONTINUE


@inlined
def _residual(w, b, mu, r, u, bound, a):
    """Relative residual, infinite for zero forces that are wrong and those past the bound."""
    error, size = relative_natural_map(w, b, mu, r, u, 0, mu.shape[0], a.scratch)
    return error if size <= bound else np.inf


@inlined
def _classify(mu, a):
    """Statuses at r, and the list of contacts that bear."""
    bearing = 0
    for k in range(mu.shape[0]):
        i = 3 * k
        p_n = a.r[i] - a.step[k, 0] * a.u[i]
        if p_n <= 0.0 or a.step[k, 0] <= 0.0:
            a.status[k] = OPEN
            continue
        s1 = a.r[i + 1] - a.step[k, 1] * a.u[i + 1]
        s2 = a.r[i + 2] - a.step[k, 1] * a.u[i + 2]
        sticks = mu[k] > 0.0 and (s1 * s1 + s2 * s2) ** 0.5 <= mu[k] * p_n
        a.status[k] = STICK if sticks else SLIP
        a.bearing[bearing] = k
        bearing += 1
    a.state[0].bearing = bearing


@inlined
def _leave(w, a):
    """change = -r at the open contacts, 0 elsewhere; ahead = the offset after it."""
    rows = a.r.shape[0]
    for i in range(rows):
        a.change[i] = 0.0
        a.ahead[i] = a.u[i]
    for i in range(rows):
        if a.status[i // 3] == OPEN and a.r[i] != 0.0:
            a.change[i] = -a.r[i]
            row = w[i]
            for j in range(rows):
                a.ahead[j] -= a.r[i] * row[j]


@inlined
def assemble(w, mu, a):
    """matrix change = right over the rows of the contacts that bear, all in metres, at a.r and a.u.

    a.ahead is u after the open contacts have been left; a.status and a.bearing are not asked anew.
    """
    for p in range(a.state[0].bearing):
        k, q = a.bearing[p], 3 * p
        i = 3 * k
        rho_n, rho_t = a.step[k, 0], a.step[k, 1]
        ridge, unit = a.state[0].ridge / rho_n, 1.0 / rho_t
        m0, m1, m2 = a.matrix[q], a.matrix[q + 1], a.matrix[q + 2]
        w0, w1, w2 = w[i], w[i + 1], w[i + 2]
        # tangential rows: (I - P) dr_t unit + P du_t + g du_n - mu e dr_n unit
        p11, p12, p22, g1, g2, e1, e2, pressed = 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0
        slips = a.status[k] == SLIP
        if slips:
            pressed = mu[k] * (a.r[i] - rho_n * a.u[i])
            s1, s2 = a.r[i + 1] - rho_t * a.u[i + 1], a.r[i + 2] - rho_t * a.u[i + 2]
            length = (s1 * s1 + s2 * s2) ** 0.5
            share = 0.0
            if length > 0.0:
                e1, e2, share = s1 / length, s2 / length, pressed / length
            p11, p12, p22 = share * e2 * e2, -share * e1 * e2, share * e1 * e1
            g1, g2 = mu[k] * rho_n * unit * e1, mu[k] * rho_n * unit * e2
        for o in range(a.state[0].bearing):
            j, t = 3 * a.bearing[o], 3 * o
            for c in range(3):
                n, x, y = w0[j + c], w1[j + c], w2[j + c]
                m0[t + c] = n
                m1[t + c] = p11 * x + p12 * y + g1 * n
                m2[t + c] = p12 * x + p22 * y + g2 * n
        m0[q] += ridge
        a.right[q] = -a.ahead[i]
        if slips:
            m1[q] -= mu[k] * e1 * unit
            m2[q] -= mu[k] * e2 * unit
            m1[q + 1] += (1.0 - p11) * unit
            m1[q + 2] -= p12 * unit
            m2[q + 1] -= p12 * unit
            m2[q + 2] += (1.0 - p22) * unit
            d0, d1, d2 = a.ahead[i] - a.u[i], a.ahead[i + 1] - a.u[i + 1], a.ahead[i + 2] - a.u[i + 2]
            a.right[q + 1] = -unit * (a.r[i + 1] - pressed * e1) - p11 * d1 - p12 * d2 - g1 * d0
            a.right[q + 2] = -unit * (a.r[i + 2] - pressed * e2) - p12 * d1 - p22 * d2 - g2 * d0
        else:
            m1[q + 1] += ridge
            m2[q + 2] += ridge
            a.right[q + 1], a.right[q + 2] = -a.ahead[i + 1], -a.ahead[i + 2]


@inlined
def _solve(a):
    """change, of the contacts that bear too."""
    lu_solve(a.matrix, 3 * a.state[0].bearing, a.words, a.right)
    for p in range(a.state[0].bearing):
        for c in range(3):
            a.change[3 * a.bearing[p] + c] = a.right[3 * p + c]


@inlined
def _try(mu, length, a):
    """trial = r after so much of the change, brought into the cones."""
    for k in range(mu.shape[0]):
        i = 3 * k
        r_n = max(0.0, a.r[i] + length * a.change[i])
        t1, t2 = a.r[i + 1] + length * a.change[i + 1], a.r[i + 2] + length * a.change[i + 2]
        scale = scale_to_disc(t1, t2, mu[k] * r_n)
        a.trial[i], a.trial[i + 1], a.trial[i + 2] = r_n, scale * t1, scale * t2


@inlined
def _search(w, b, mu, bound, a):
    """Whether a point of the step is better; the first one found becomes r."""
    _solve(a)
    length = 1.0
    for _ in range(HALVINGS):
        _try(mu, length, a)
        for i in range(b.shape[0]):
            a.ahead[i] = b[i] + dot(w[i], a.trial)
        error = _residual(w, b, mu, a.trial, a.ahead, bound, a)
        if error < (1.0 - FALL * length) * a.state[0].residual:
            for i in range(b.shape[0]):
                a.r[i], a.u[i] = a.trial[i], a.ahead[i]
            a.state[0].residual = error
            a.state[0].failed = 0
            if length == 1.0:
                a.state[0].ridge = max(LEAST_RIDGE, a.state[0].ridge / GROWTH)
            return True
        length *= 0.5
    return False


def solve(problem: ContactProblem, stop: Stop) -> ContactResult:
    """Newton steps from the warm start until the residual is at most `stop.tolerance`.

    An iteration is a factorisation. Without a warm start the statuses of zero forces say little: it may stall
    far from a solution, and says so.
    """
    started = perf_counter()
    w, b, mu = np.ascontiguousarray(problem.w), problem.b, problem.mu
    a = make_semi_smooth(problem.n_contacts)
    begin(w, b, mu, starting_force(problem), a)
    code, bound = CONTINUE, runaway(problem)
    while code == CONTINUE and a.state["steps"].item() < stop.max_iterations:
        left = stop.max_iterations - a.state["steps"].item()
        code = advance(w, b, mu, stop.tolerance, bound, 1 if math.isfinite(stop.seconds) else left, a)
        if code == CONTINUE and perf_counter() - started >= stop.seconds:
            return judge(problem, stop, a.r, a.state["steps"].item(), "time", started)
    return judge(problem, stop, a.r, a.state["steps"].item(), REASONS[code], started)
