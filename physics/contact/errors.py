"""The errors that people quote of a contact force, beside the one that judges every solver here.

All are of a force r with u = W r + b, v = u + mu |u_t| n and the cones K and K* (De Saxce & Feng 1998):

    natural map     |r - P_K(r - rho v)| / min(|r|, rho |b|), rho = 1 / mean(diag W): what all here stop by
    unit map        |r - P_K(r - v)| / |b|: the error of Siconos' drivers and of FCLIB's merit function, in
                    the file's own units, so that it is no pure number
    primal          the farthest that a force lies outside its cone, over |r|
    dual            the farthest that v lies outside K*, over |b|
    complementarity the largest |r . v| of a contact, over |r| |b|
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.problem import AnyProblem
from palpo.physics.contact.solvers.relaxation import project_cones

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ForceErrors:
    """Errors of a force by the names above; a ratio whose denominator is zero is its numerator."""

    natural_map: float
    unit_map: float
    primal: float
    dual: float
    complementarity: float
    per_contact: Array
    """|r - P_K(r - rho v)| of each contact over the same, shape (n,): their norm is the natural map's."""


def quoted_errors(problem: AnyProblem, r: Array) -> ForceErrors:
    """The errors of the force r, shape (3 n,)."""
    u = (problem.w @ r + problem.b).reshape(-1, 3)
    v = u.copy()
    v[:, 0] += problem.mu * np.hypot(u[:, 1], u[:, 2])
    force = r.reshape(-1, 3)
    mean = float(problem.w.diagonal().mean()) if len(r) else 0.0
    rho = 1.0 / mean if mean > 0.0 else 1.0
    size, free = float(np.linalg.norm(r)), float(np.linalg.norm(problem.b))
    judged = min(size, rho * free)
    natural = np.linalg.norm(force - _projected(problem.mu, force - rho * v), axis=1)
    unit = np.linalg.norm(force - _projected(problem.mu, force - v))
    primal = np.linalg.norm(force - _projected(problem.mu, force), axis=1)
    # P_K(-v) is how far v is from K* (Moreau)
    dual = np.linalg.norm(_projected(problem.mu, -v), axis=1)
    product = np.abs((force * v).sum(axis=1))
    return ForceErrors(
        _over(float(np.linalg.norm(natural)), judged),
        _over(float(unit), free),
        _over(primal.max(initial=0.0), size),
        _over(dual.max(initial=0.0), free),
        _over(product.max(initial=0.0), size * free),
        natural / judged if judged > 0.0 else natural,
    )


def _projected(mu: Array, x: Array) -> Array:
    out = np.ascontiguousarray(x).reshape(-1).copy()
    project_cones(mu, out)
    return out.reshape(-1, 3)


def _over(value: Any, size: float) -> float:
    return float(value / size) if size > 0.0 else float(value)
