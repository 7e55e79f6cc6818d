"""Friction that depends on the direction, as a problem of plain cones in scaled tangents.

With coefficients mu_1 and mu_2 along a contact's tangents the cone is elliptical, and sliding along the
ellipse's outer normal dissipates most (Michalowski & Mroz, Archives of Mechanics 30, 1978):

    (r_1 / mu_1)^2 + (r_2 / mu_2)^2 <= r_n^2,    u_t = -lambda (r_1 / mu_1^2, r_2 / mu_2^2)

r = S r', u' = S u with S = diag(1, mu_1, mu_2) / mu on the tangents, mu the larger one, makes the cone
|r'_t| <= mu r_n and the sliding u'_t = -lambda' r'_t: Coulomb's problem of W' = S W S and b' = S b, for any
solver. The tangents are the ellipse's axes: whoever makes the rows turns them so.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.problem import AnyProblem, ContactProblem, SparseProblem
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
