"""Contact by penalty (001, N. Talbi's thesis, 2.4.1): springs of stiffness rho in place of the laws.

    r_n = max(0, -rho_n x_n),    r_t = Proj_disc(mu r_n)(-rho_t x_t)

*Implicit* (2.19, 2.20): x is the displacement with the forces. A spring in series with its contact is an
exact contact of a softer body, so this is the frictional problem of W + diag(1 / rho), and any solver of it
will do. *Explicit* (2.21, 2.22): x is the free displacement; no equations are solved at all. Neither solves
the problem: contacts penetrate by r_n / rho_n and stick with r_t / rho_t of sliding.
"""

from dataclasses import replace
from time import perf_counter

import numpy as np

from palpo.physics.contact.laws import PSEUDOPOTENTIAL, correct, judge
from palpo.physics.contact.problem import ContactProblem, ContactResult, Stop
from palpo.physics.contact.solvers.gauss_seidel import solve
from palpo.physics.contact.solvers.relaxation import stiffnesses


def implicit(problem: ContactProblem, stop: Stop, *, stiffness: float = 100.0) -> ContactResult:
    """Springs of `stiffness` rho_alpha (3.2), balanced by Gauss-Seidel; first order in 1 / stiffness."""
    started = perf_counter()
    softer = problem.w.copy()
    rho = stiffnesses(problem, "rho_alpha", stiffness)
    softer[np.diag_indices(len(softer))] += 1.0 / rho[:, [0, 1, 1]].reshape(-1)
    found = solve(replace(problem, w=softer), stop)
    return judge(problem, stop, found.r, found.iterations, found.reason, started)


def explicit(problem: ContactProblem, stop: Stop, *, stiffness: float = 1.0) -> ContactResult:
    """Springs of `stiffness` rho_alpha (3.2) on the free displacement; no iteration."""
    started = perf_counter()
    rho = stiffnesses(problem, "rho_alpha", stiffness)
    star = -rho[:, [0, 1, 1]] * problem.b.reshape(-1, 3)
    r = np.zeros_like(star)
    for k in range(problem.n_contacts):
        correct(PSEUDOPOTENTIAL, star[k], problem.mu[k], rho[k, 0], rho[k, 1], r[k])
    return judge(problem, stop, r.reshape(-1), 1, "converged", started)
