"""Whether contacts may be wedged: a certificate that only what slides could solve a problem, if anything.

With forces s in the cones and W s = 0, which hold one another, s . u = s . b whatever the forces are. By the
law u + mu |u_t| n is in the dual cones (De Saxce & Feng 1998), so that

    sum_k mu_k s_n,k |u_t,k| >= -s . b.

Where s . b < 0 the contacts cannot all be at rest, the convex problem at rest has no solution (Acary, Cadoux,
Lemarechal & Malick, ZAMM 91, 2011), and Coulomb's may have none. Where there is no such s it has one
(Klarbring & Pang, Existence of solutions to discrete semicoercive frictional contact problems, SIAM J. Optim.
8, 1998). Such s are found by a linear program on cones of FACETS facets inside of Coulomb's, then made exact.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from palpo.physics.contact.feasibility import ANSWERED, FELT, KNOWN, hanging_together
from palpo.physics.contact.problem import AnyProblem, Wedge
from palpo.physics.contact.symmetry import own_scales

Array = NDArray[np.float64]

FACETS, INSIDE = 16, 1e-6
"""Of a cone, and the share by which they lie inside of it: room for making W s = 0 exact."""

BEARS = 1e-7
"""Share of the largest force below which a contact takes no part."""

MOST = 300
"""Contacts that hang together up to which they are looked at: a program of FACETS unknowns for each."""


def find_wedge(problem: AnyProblem) -> Wedge | None:
    """Forces that hold one another and against which the free offset works; None where none are found.

    Contacts that hang together by W are looked at together, up to MOST of them; of these parts the one where
    they are worth most.
    """
    w, best = sp.csr_array(problem.w), None
    scales = own_scales(w)
    for contacts in hanging_together(w):
        if len(contacts) > MOST:
            continue
        rows = (3 * contacts[:, None] + np.arange(3)).ravel()
        own = w[rows][:, rows].toarray() / scales[rows, None] / scales[rows]
        part = _of_part(own, problem.b[rows] / scales[rows], problem.mu[contacts], scales[rows])
        s = np.zeros(len(problem.b))
        s[rows] = part / scales[rows]
        if not s.any():
            continue
        s /= s[::3].max()
        answer, depth = check_wedge(problem, s)
        if answer <= ANSWERED and depth < 0.0 and (best is None or depth < best.depth):
            best = Wedge(s, depth, answer)
    return best


def check_wedge(problem: AnyProblem, s: Array) -> tuple[float, float]:
    """(what W answers to forces s (3 n,), over its terms, infinite where one is out of its cone; s . b)."""
    scales, tangent = own_scales(problem.w), np.hypot(s[1::3], s[2::3])
    if (tangent > problem.mu * s[::3]).any():
        return np.inf, float(s @ problem.b)
    answer, terms = np.abs(problem.w @ s) / scales, (abs(problem.w) @ np.abs(s)) / scales
    largest = float(terms.max(initial=0.0))
    return float(answer.max(initial=0.0)) / largest if largest > 0.0 else 0.0, float(s @ problem.b)


def _of_part(w: Array, b: Array, mu: Array, scales: Array) -> Array:
    """The s (N,) of least s . b for a sum of normal forces of 1, W and b scaled; 0 unless it is below 0."""
    none, n = np.zeros(len(b)), len(mu)
    facets = _facets(mu, scales.reshape(n, 3))
    values, vectors = np.linalg.eigh(w)
    moved = vectors[:, values > _rounding(values[-1], len(b))].T
    equal = np.concatenate([moved @ facets, np.ones((1, n * FACETS))])
    found = linprog(b @ facets, A_eq=equal, b_eq=np.append(np.zeros(len(moved)), 1.0), method="highs")
    if found.status != 0:
        return none
    s = facets @ found.x
    bears = np.repeat(s[::3] > BEARS * s[::3].max(), 3)
    _, values, vectors = np.linalg.svd(moved[:, bears])
    free = vectors[np.count_nonzero(values > _rounding(values.max(initial=0.0), len(b))) :]
    exact = none.copy()
    exact[bears] = free.T @ (free @ s[bears])
    return exact if exact @ b < -FELT * np.linalg.norm(b) * np.linalg.norm(exact) else none


def _facets(mu: Array, scales: Array) -> Array:
    """Forces (3 n, n FACETS), scaled by scales (n, 3), on facets inside of the cones, of normal force 1."""
    n, angle = len(mu), 2.0 * np.pi * np.arange(FACETS) / FACETS
    out, k = np.zeros((n, 3, n, FACETS)), np.arange(n)
    out[k, 0, k] = 1.0
    for t, along in ((1, np.cos(angle)), (2, np.sin(angle))):
        out[k, t, k] = ((1.0 - INSIDE) * mu * scales[:, t] / scales[:, 0])[:, None] * along
    return out.reshape(3 * n, n * FACETS)


def _rounding(largest: float, rows: int) -> float:
    return float(KNOWN * np.finfo(float).eps * rows * max(largest, np.finfo(float).tiny))
