"""Contacts scaled to be alike, for the solvers that work in the unit cones."""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.problem import AnyProblem
from palpo.physics.contact.solvers.products import STIFFEST


def unit_cones(problem: AnyProblem) -> tuple[NDArray[np.float64], float]:
    """Scale of r, shape (n, 3), that makes every cone the unit one and all contacts alike, and that of r . u.

    r = scale x and u = unit y / scale. The tangential scale of a contact without friction is 0.
    """
    n, mu, own = problem.n_contacts, problem.mu, _compliances(problem)
    unit = float((np.abs(problem.b).reshape(n, 3).max(axis=1) / np.sqrt(own)).max(initial=0.0)) or 1.0
    force = unit / np.sqrt(own)
    rubs = mu > 0.0
    return np.stack([force / np.where(rubs, mu, 1.0), rubs * force, rubs * force], axis=1), unit * unit


def _compliances(problem: AnyProblem) -> NDArray[np.float64]:
    """As `products.mean_compliances`, shape (n,)."""
    own = problem.w.diagonal().reshape(-1, 3).mean(axis=1)
    mean = own.mean() if own.any() else 1.0
    return np.asarray(np.where(own > 0.0, np.maximum(own, STIFFEST * mean), mean))
