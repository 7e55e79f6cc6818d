"""Tresca's law, friction up to a force that is held, and the fixed point on it that leads back to Coulomb's.

With the limit g of each contact held, friction no longer depends on the normal force:

    0 <= u_n  perp  r_n >= 0,    |r_t| <= g,    sliding against r_t where |r_t| = g

is the least of 1/2 r W r + b r over half-lines and discs: convex, and sweeps descend it. Coulomb's law is the
fixed point g = mu r_n (Panagiotopoulos, Ingenieur-Archiv 44, 1975; Haslinger, Math. Methods Appl. Sci. 5,
1983), a contraction where mu is small against W's coupling of normal and tangent. References: slow, and
nothing is said where it does not contract.
"""

from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import judge, relative_residual, scale_to_disc
from palpo.physics.contact.problem import ContactProblem, ContactResult, Reason, Stop
from palpo.physics.contact.solvers.anderson import make_acceleration, prepare
from palpo.physics.contact.solvers.block import add_row
from palpo.physics.contact.solvers.relaxation import project_cones, starting_force
from palpo.physics.numerics.kernels import kernel

Array = NDArray[np.float64]

INNER, CHUNK = 0.1, 50
"""|dr| / |r| of a sweep, over the solve's tolerance, at which a held limit counts as solved; sweeps between
two looks."""


@kernel
def held_sweeps(w, limit, step, r, u, most, still):
    """Up to `most` sweeps with friction of at most limit (n,) [N]. Returns (sweeps, whether it rests).

    w (3 n, 3 n); r and u = W r + b (3 n,) follow; step (n, 2) [N/m]; it rests where |dr| <= still |r|.
    """
    for sweep in range(1, most + 1):
        move, size = 0.0, 0.0
        for k in range(limit.shape[0]):
            i = 3 * k
            n, t1, t2 = r[i], r[i + 1], r[i + 2]
            r[i] = max(0.0, n - step[k, 0] * u[i])
            add_row(u, w[i], r[i] - n)
            p1, p2 = t1 - step[k, 1] * u[i + 1], t2 - step[k, 1] * u[i + 2]
            scale = scale_to_disc(p1, p2, limit[k])
            r[i + 1], r[i + 2] = scale * p1, scale * p2
            add_row(u, w[i + 1], r[i + 1] - t1)
            add_row(u, w[i + 2], r[i + 2] - t2)
            move += (r[i] - n) ** 2 + (r[i + 1] - t1) ** 2 + (r[i + 2] - t2) ** 2
            size += r[i] ** 2 + r[i + 1] ** 2 + r[i + 2] ** 2
        if move <= still * still * size:
            return sweep, True
    return most, False


class _Held:
    """A problem's sweeps, how many were done, and when they have to end."""

    def __init__(self, problem: ContactProblem, stop: Stop) -> None:
        self.problem, self.stop, self.started, self.done = problem, stop, perf_counter(), 0
        self.w, self.r = np.ascontiguousarray(problem.w), starting_force(problem)
        a = make_acceleration(problem.n_contacts, 1)
        prepare(self.w, problem.mu, self.r, 0, a)
        self.step = a.step

    @property
    def late(self) -> bool:
        return perf_counter() - self.started >= self.stop.seconds

    @property
    def spent(self) -> bool:
        return self.done >= self.stop.max_iterations or (self.done > 0 and self.late)

    def solve(self, limit: Array) -> Array:
        """The force with that limit, brought into Coulomb's cones; self.r stays Tresca's."""
        rests, still = False, INNER * self.stop.tolerance
        while not rests and not self.spent:
            u = self.w @ self.r + self.problem.b
            most = min(CHUNK, self.stop.max_iterations - self.done)
            sweeps, rests = held_sweeps(self.w, limit, self.step, self.r, u, most, still)
            self.done += sweeps
        r = self.r.copy()
        project_cones(self.problem.mu, r)
        return r


def fixed_point(problem: ContactProblem, stop: Stop) -> ContactResult:
    """Tresca's problem with the limit mu r_n of the last one, until the residual is at most the tolerance.

    An iteration is a sweep. Gives back the force of the least residual.
    """
    held = _Held(problem, stop)
    best = held.r.copy()
    least = relative_residual(problem, best)
    while least > stop.tolerance and not held.spent:
        limit = problem.mu * held.r[0::3]
        r = held.solve(limit)
        error = relative_residual(problem, r)
        if error < least:
            least, best = error, r
        elif (problem.mu * held.r[0::3] == limit).all():
            return judge(problem, stop, best, held.done, "stalled", held.started)
    reason: Reason = "iterations" if held.done >= stop.max_iterations else "time"
    return judge(problem, stop, best, held.done, reason, held.started)


def tresca(problem: ContactProblem, stop: Stop) -> ContactResult:
    """Tresca's law with mu times the normal forces without friction for its limit; an iteration is a sweep.

    Coulomb's law where friction does not change the normal forces. The result's force is Tresca's own,
    brought into Coulomb's cones.
    """
    held = _Held(problem, stop)
    held.r[1::3] = held.r[2::3] = 0.0
    held.solve(np.zeros(problem.n_contacts))
    r = held.solve(problem.mu * held.r[0::3])
    return judge(problem, stop, r, held.done, "stalled", held.started)
