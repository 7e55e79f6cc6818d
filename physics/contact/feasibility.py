"""Whether any forces could part the contacts at all; if none, a certificate, and the least that has to give.

With p >= 0 along normals and W p = 0, no force moves what p weighs: p . u_n = p . b_n for every r, since
p . W r = r . W p = 0. Signorini wants u_n >= 0, so that p . b_n < 0 leaves the problem without a solution
(Farkas; when Coulomb's law has one: Acary, Cadoux, Lemarechal & Malick, ZAMM 91, 2011). p is a set of normal
forces that nothing answers, as of a rigid block between jaws that do not yield; who has W and b can check it.
It is of the normals alone: for friction, see `palpo.physics.contact.wedging`.

The least violation s >= 0 makes (W r + b)_n + s >= 0 possible with the least |s|, each contact's measured by
sqrt(W_nn). With Z an orthonormal basis of the p with W p = 0 (scaled so), s = Z (Z^T x - Z^T b_n) for the
x >= 0 of least |Z^T x - Z^T b_n| (Lawson & Hanson, Solving Least Squares Problems, ch. 23). s is a
certificate itself: s >= 0 and W s = 0 by what it is, and s . b_n = -|s|^2.
"""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.sparse.csgraph import connected_components

from palpo.physics.contact.problem import AnyProblem, Infeasible
from palpo.physics.contact.symmetry import own_scales

Array = NDArray[np.float64]

KNOWN, ANSWERED = 16.0, 1e-12
"""Roundings of the largest up to which a scaled W's singular value is zero, times its columns, and what W may
answer to a certificate, over its terms: stacks of mass ratio 1e8 have singular values far above."""

FELT = 1e-10
"""Least violation, over the free offset, that is one: the roundings of b are below."""

MOST = 1500
"""Contacts that hang together up to which they are looked at: their normals' singular values are taken."""


def find_infeasible(problem: AnyProblem) -> Infeasible | None:
    """The certificate of a problem that no forces solve; None where there is none.

    Contacts that hang together by W are looked at together, up to MOST of them.
    """
    n, w = problem.n_contacts, sp.csr_array(problem.w)
    all_scales = own_scales(w)
    scales = all_scales[::3]
    violation, certificate = np.zeros(n), np.zeros(n)
    offsets = problem.b[::3] / scales
    for contacts in hanging_together(w):
        if len(contacts) > MOST or offsets[contacts].min() >= 0.0:
            continue
        rows = (3 * contacts[:, None] + np.arange(3)).ravel()
        own = w[rows][:, rows].toarray()
        free = _unanswered(own[:, ::3] / all_scales[rows, None] / scales[contacts])
        found = _least_violation(free, offsets[contacts])
        if np.linalg.norm(found) > FELT * np.linalg.norm(problem.b[rows] / all_scales[rows]):
            violation[contacts] = found * scales[contacts]
            certificate[contacts] = found / scales[contacts]
    if not certificate.any():
        return None
    certificate /= certificate.max()
    answer, depth = check_certificate(problem, certificate)
    if answer > ANSWERED or depth >= 0.0:
        return None
    return Infeasible(certificate, depth, answer, violation)


def check_certificate(problem: AnyProblem, p: Array) -> tuple[float, float]:
    """(what W answers to normal forces p (n,), relative to its terms; p . b_n): the first is rounding and the
    second below zero where no forces solve the problem."""
    forces = np.zeros(3 * len(p))
    forces[::3] = p
    scales = own_scales(problem.w)
    answer, terms = np.abs(problem.w @ forces) / scales, (abs(problem.w) @ np.abs(forces)) / scales
    largest = float(terms.max(initial=0.0))
    return float(answer.max(initial=0.0)) / largest if largest > 0.0 else 0.0, float(p @ problem.b[::3])


def giving_way(problem: AnyProblem) -> tuple[AnyProblem, Infeasible | None]:
    """The problem whose normals give by the least violation, u_n + s >= 0, and why that is needed; the same
    problem where it is not."""
    found = find_infeasible(problem)
    if found is None:
        return problem, None
    b = problem.b.copy()
    b[::3] += found.violation
    return replace(problem, b=b), found


def hanging_together(w: sp.csr_array) -> list[NDArray[np.int64]]:
    """The contacts of each part of W that nothing couples to the others."""
    n = w.shape[0] // 3
    i, j = w.nonzero()
    blocks = sp.csr_array((np.ones(len(i)), (i // 3, j // 3)), (n, n))
    count, part = connected_components(blocks, directed=False)
    order = np.argsort(part, kind="stable")
    return np.split(order, np.cumsum(np.bincount(part, minlength=count))[:-1]) if n else []


def _unanswered(columns: Array) -> Array:
    """Z (m, k), an orthonormal basis of the p (m,) with columns @ p = 0 to rounding; columns (3 m, m)."""
    _, values, vectors = np.linalg.svd(columns, full_matrices=False)
    least = KNOWN * np.finfo(float).eps * columns.shape[1] * max(float(values[0]), np.finfo(float).tiny)
    return np.asarray(vectors[values <= least].T)


def _least_violation(free: Array, offsets: Array) -> Array:
    if not free.shape[1]:
        return np.zeros(len(offsets))
    aim = free.T @ offsets
    try:
        x, _ = nnls(free.T, aim, maxiter=30 * len(offsets))
    except RuntimeError:  # it has not ended: nothing is known
        return np.zeros(len(offsets))
    return np.asarray(np.maximum(free @ (free.T @ x - aim), 0.0))
