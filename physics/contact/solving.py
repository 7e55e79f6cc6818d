"""One contact problem by one call, for whoever has matrices and no files.

Friction that depends on the direction, as a problem of plain cones in scaled tangents.

With coefficients mu_1 and mu_2 along a contact's tangents the cone is elliptical, and sliding along the
ellipse's outer normal dissipates most (Michalowski & Mroz, Archives of Mechanics 30, 1978):

    (r_1 / mu_1)^2 + (r_2 / mu_2)^2 <= r_n^2,    u_t = -lambda (r_1 / mu_1^2, r_2 / mu_2^2)

r = S r', u' = S u with S = diag(1, mu_1, mu_2) / mu on the tangents, mu the larger one, makes the cone
|r'_t| <= mu r_n and the sliding u'_t = -lambda' r'_t: Coulomb's problem of W' = S W S and b' = S b, for any
solver. The tangents are the ellipse's axes: whoever makes the rows turns them so.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from palpo.physics.contact.feasibility import find_infeasible, giving_way
from palpo.physics.contact.problem import AnyProblem, ContactProblem, ContactResult, SparseProblem, Stop
from palpo.physics.contact.semidefinite import require_semidefinite
from palpo.physics.contact.solvers.registry import find_solver
from palpo.physics.contact.wedging import find_wedge
from palpo.physics.numerics.errors import InputError

Array = NDArray[np.float64]


def scaled_tangents(problem: AnyProblem, friction: Array) -> tuple[AnyProblem, Array]:
    """The problem of plain cones, and S, shape (3 n,): its force times S is the anisotropic one.

    problem: W, b and warm start, in rows along the ellipses' axes; friction: mu_1 and mu_2 of each contact,
    shape (n, 2). Raises InputError for another shape and for what is not finite and at least 0.
    """
    n = problem.n_contacts
    if friction.shape != (n, 2) or not (np.isfinite(friction).all() and (friction >= 0.0).all()):
        raise InputError(
            f"anisotropic friction of {n} contacts is {n} pairs of coefficients, finite and at least 0; "
            f"got shape {friction.shape}"
        )
    mu = friction.max(axis=1, initial=0.0)
    scale = np.ones((n, 3))
    scale[:, 1:] = np.where(mu[:, None] > 0.0, friction / np.where(mu > 0.0, mu, 1.0)[:, None], 1.0)
    s = scale.ravel()
    warm = None
    if problem.warm is not None:
        warm = np.where(s > 0.0, problem.warm / np.where(s > 0.0, s, 1.0), 0.0)
    if isinstance(problem, ContactProblem):
        return ContactProblem(problem.w * s * s[:, None], problem.b * s, mu, warm), s
    w = problem.w.multiply(s).multiply(s[:, None]).tocsr()
    return replace(SparseProblem(w, problem.b * s, mu), warm=warm), s


def solve(
    problem: AnyProblem | tuple[Any, ArrayLike, ArrayLike],
    solver: str = "portfolio",
    *,
    tolerance: float = 1e-8,
    max_iterations: int = 20_000,
    seconds: float = float("inf"),
    guess: ArrayLike | None = None,
    each: bool = False,
    least_violation: bool = False,
    **options: Any,
) -> ContactResult:
    """Contact forces r in Coulomb's cones with u = W r + b (De Saxce & Feng 1998), as a `ContactResult`.

    problem: a `ContactProblem`, a `SparseProblem`, or (W, b, mu) of shapes (3 n, 3 n), (3 n,) and (n,), W
        dense or sparse, rows (n, t1, t2) of each contact, in any units that agree (m and N, m/s and N s);
        mu of shape (n, 2): of t1 and t2 apart; the residual is that of `anisotropy.scaled_tangents`
    solver: a name of `palpo solve --solver all`; options are its own
    tolerance: relative residual of the natural map; max_iterations: in the solver's unit; seconds: wall time,
        after which the best force so far is given back; without it nothing depends on the clock
    guess: a force to start from, shape (3 n,)
    each: whether each contact's error over its own force must be within the tolerance, too
    least_violation: whether a problem that no forces solve gets the forces of the one whose normals give by
        the least: u_n + s >= 0 with s = result.infeasible.violation

    Read `result.converged` before `result.r`: a solver that fails says so, and r is then the best it had.
    Where `result.reason` is "infeasible" no forces solve the problem: `result.infeasible.certificate` are
    normal forces p >= 0 with W p = 0 and p . b_n < 0, which anyone can check. Where it has not converged for
    another reason, result.wedge, if any, says that there may be no solution: result.wedge.certificate are
    forces s in the cones with W s = 0 and s . b < 0.
    Raises InputError, one sentence, for a problem that is none (shapes, NaN, mu < 0, W not symmetric or, of
    matrices, with a negative eigenvalue), and for a solver or an option that there is not.
    """
    friction = None
    if isinstance(problem, ContactProblem | SparseProblem):
        held = problem
    else:
        w, b, mu = problem
        b, mu = np.asarray(b, float), np.asarray(mu, float)
        friction = mu if mu.ndim == 2 else None
        most = mu.max(axis=1, initial=0.0) if mu.ndim == 2 else mu
        held = SparseProblem(sp.csr_array(w), b, most) if sp.issparse(w) else _dense(w, b, most)
        require_semidefinite(held.w)
    if guess is not None:
        warm = np.array(guess, float)
        held = replace(held, warm=warm)
    scale = None
    if friction is not None:
        held, scale = scaled_tangents(held, friction)
    stop = Stop(tolerance, max_iterations, seconds, each)
    eased, found = giving_way(held) if least_violation else (held, None)
    result = find_solver(solver).solve(eased, stop, **options)
    if found is not None:
        result = replace(result, infeasible=found)
    elif not result.converged:
        result = explained(held, result)
    return result if scale is None else replace(result, r=result.r * scale)


def _dense(w: Any, b: Any, mu: Any) -> ContactProblem:
    return ContactProblem(np.ascontiguousarray(w, dtype=float), b, mu)


def explained(problem: AnyProblem, result: ContactResult) -> ContactResult:
    """The result of a solver that has not converged, with why none can, or may be able to."""
    found = find_infeasible(problem)
    if found is not None:
        return replace(result, reason="infeasible", infeasible=found)
    return replace(result, wedge=find_wedge(problem))
