"""One contact problem by one call, for whoever has matrices and no files."""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from palpo.physics.contact.problem import AnyProblem, ContactProblem, ContactResult, SparseProblem, Stop
from palpo.physics.contact.semidefinite import require_semidefinite
from palpo.physics.contact.solvers.registry import find_solver


def solve(
    problem: AnyProblem | tuple[Any, ArrayLike, ArrayLike],
    solver: str = "portfolio",
    *,
    tolerance: float = 1e-8,
    max_iterations: int = 20_000,
    seconds: float = float("inf"),
    guess: ArrayLike | None = None,
    **options: Any,
) -> ContactResult:
    """Contact forces r in Coulomb's cones with u = W r + b (De Saxce & Feng 1998), as a `ContactResult`.

    problem: a `ContactProblem`, a `SparseProblem`, or (W, b, mu) of shapes (3 n, 3 n), (3 n,) and (n,), W
        dense or sparse, rows (n, t1, t2) of each contact, in any units that agree (m and N, m/s and N s)
    solver: a name of `palpo solve --solver all`; options are its own
    tolerance: relative residual of the natural map; max_iterations: in the solver's unit; seconds: wall time,
        after which the best force so far is given back; without it nothing depends on the clock
    guess: a force to start from, shape (3 n,)

    Read `result.converged` before `result.r`: a solver that fails says so, and r is then the best it had.
    Raises InputError, one sentence, for a problem that is none (shapes, NaN, mu < 0, W not symmetric or, of
    matrices, with a negative eigenvalue), and for a solver or an option that there is not.
    """
    if isinstance(problem, ContactProblem | SparseProblem):
        held = problem
    else:
        w, b, mu = problem
        b, mu = np.asarray(b, float), np.asarray(mu, float)
        held = SparseProblem(sp.csr_array(w), b, mu) if sp.issparse(w) else _dense(w, b, mu)
        require_semidefinite(held.w)
    if guess is not None:
        warm = np.array(guess, float)
        held = replace(held, warm=warm)
    return find_solver(solver).solve(held, Stop(tolerance, max_iterations, seconds), **options)


def _dense(w: Any, b: Any, mu: Any) -> ContactProblem:
    return ContactProblem(np.ascontiguousarray(w, dtype=float), b, mu)
