"""The errors that people quote of a contact force, beside the one that judges every solver here.

All are of a force r with u = W r + b, v = u + mu |u_t| n and the cones K and K* (De Saxce & Feng 1998):

    natural map     |r - P_K(r - rho v)| / min(|r|, rho |b|), rho = 1 / mean(diag W): what all here stop by
    unit map        |r - P_K(r - v)| / |b|: the error of Siconos' drivers and of FCLIB's merit function, in
                    the file's own units, so that it is no pure number
    primal          the farthest that a force lies outside its cone, over |r|
    dual            the farthest that v lies outside K*, over |b|
    complementarity the largest |r . v| of a contact, over |r| |b|
    own             |r_k - P_K(r_k - rho_k v_k)| of a contact over its own force, rho_k = 1 / mean(diag W_kk)

All but the last are of all contacts together, so that a light contact may be far off beside heavy ones. Its
own force is the largest of r_k, of what it is corrected to, and of rho_k times the normal offset that it sees
from the others: for one that is open, what it would take to touch. What the roundings of W r + b explain is
taken off.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.problem import AnyProblem
from palpo.physics.contact.solvers.relaxation import project_cones

Array = NDArray[np.float64]

ROUNDINGS = 8.0
"""Roundings of the largest term that a sum of W r + b is allowed."""


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
    own: Array
    """Each contact's error over its own force, shape (n,)."""

    @property
    def worst_contact(self) -> int | None:
        """The contact that errs most for its own force; none where there is no contact."""
        return int(self.own.argmax()) if len(self.own) else None

    @property
    def worst(self) -> float:
        """Its error over its own force."""
        return float(self.own.max(initial=0.0))


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
        own_errors(problem, r),
    )


def own_errors(problem: AnyProblem, r: Array) -> Array:
    """Each contact's error over its own force, shape (n,): 1 for one that bears nothing and should."""
    w, n, mu = problem.w, problem.n_contacts, problem.mu
    own = w.diagonal().reshape(n, 3)
    mean = own.mean(axis=1)
    rho = np.where(mean > 0.0, 1.0 / np.where(mean > 0.0, mean, 1.0), 1.0)
    u, force = (w @ r + problem.b).reshape(n, 3), r.reshape(n, 3)
    v = u.copy()
    v[:, 0] += mu * np.hypot(u[:, 1], u[:, 2])
    image = _projected(mu, force - rho[:, None] * v)
    error = np.linalg.norm(force - image, axis=1)
    terms = (abs(w) @ np.abs(r) + np.abs(problem.b)).reshape(n, 3)
    error -= ROUNDINGS * np.finfo(float).eps * (1.0 + mu) * rho * np.linalg.norm(terms, axis=1)
    seen = u - _own_products(w, force)
    size = np.maximum(np.linalg.norm(force, axis=1), np.linalg.norm(image, axis=1))
    size = np.maximum(size, rho * np.abs(seen[:, 0]))
    return np.asarray(np.where(error > 0.0, error / np.where(size > 0.0, size, 1.0), 0.0))


def _own_products(w: Any, force: Array) -> Array:
    """W_kk r_k, shape (n, 3)."""
    rows = np.arange(3 * len(force)).reshape(-1, 3)
    i, j = np.broadcast_arrays(rows[:, :, None], rows[:, None, :])
    blocks = np.asarray(w[i.ravel(), j.ravel()]).reshape(-1, 3, 3)
    return np.asarray(np.einsum("kij,kj->ki", blocks, force))


def _projected(mu: Array, x: Array) -> Array:
    out = np.ascontiguousarray(x).reshape(-1).copy()
    project_cones(mu, out)
    return out.reshape(-1, 3)


def _over(value: Any, size: float) -> float:
    return float(value / size) if size > 0.0 else float(value)
