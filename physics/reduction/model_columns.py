"""What the columns of a body's reduced models are made and judged by."""

import numpy as np
import scipy.sparse.linalg as ssl
from numpy.typing import NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.numerics.kernels import fast_kernel

Floats = NDArray[np.float64]

SLOW = 12
"""Slowest modes of the body at rest, turned with it, in every basis: without them what rings freely would be
lost with the velocity's column, which is one shape only."""


def slow_modes(body: SoftBody, h: float) -> Floats:
    """The SLOW slowest modes of a body at rest but for its rigid motions, (n_dof, k), by its factor at h."""
    body, (alpha, beta) = body, body.damping
    rigid = 6 if body.rides else 0
    factor = body.factor(h)
    weight = h * (beta + h)
    inverse = ssl.LinearOperator((body.n_dof, body.n_dof), lambda b: weight * factor.solve(b.ravel()))
    _, shapes = ssl.eigsh(
        body.K, min(SLOW + rigid, body.n_dof - 1), body.M, sigma=-(1.0 + h * alpha) / weight, OPinv=inverse,
        v0=np.linspace(1.0, 2.0, body.n_dof),
    )  # fmt: skip
    return np.asarray(shapes[:, rigid:])


def worst_residual(
    body: SoftBody, h: float, warped: Floats, tested: tuple[Floats, Floats, NDArray[np.int64]]
) -> float:
    """The largest |A_h b - e| / |e| in the norm of diag(A_h)^-1 of columns b of a body at h [s].

    warped: blocks of its stiffness without the geometric part, which the factors do without too. tested: the
    columns b (n_dof, k) and K b, and of each the freedom (k,) at which e is one.
    """
    columns, pulled, known = tested
    alpha, beta = body.damping
    held, pull = (1.0 + h * alpha) * np.repeat(body.mass_free, 3), h * (beta + h)
    diagonal = held + pull * warped[body.neighbours.diagonal][:, [0, 4, 8]].reshape(-1)
    squares = np.empty(len(known))
    residual_squares(columns, pulled, known, held, pull, diagonal, squares)
    return float(np.sqrt(squares.max(initial=0.0)))


@fast_kernel
def residual_squares(columns, pulled, known, held, pull, diagonal, out):
    """out (k,) = |A b - e|^2 / |e|^2 in the norm of diag(A)^-1 for columns b (n, k) and A = held + pull K.

    e is one at the freedom known[j] of a column; pulled: K b.
    """
    out[:] = 0.0
    for i in range(diagonal.size):
        mass, weight = held[i], 1.0 / diagonal[i]
        for j in range(out.size):
            left = mass * columns[i, j] + pull * pulled[i, j]
            out[j] += weight * left * left
    for j in range(out.size):
        i = known[j]
        left = held[i] * columns[i, j] + pull * pulled[i, j]
        out[j] = diagonal[i] * out[j] + (left - 1.0) ** 2 - left * left


def turned(fields: Floats, axes: Floats) -> Floats:
    """R applied to nodal vector fields (3 n, k)."""
    return np.einsum("ij,njk->nik", axes, fields.reshape(len(fields) // 3, 3, fields.shape[1])).reshape(
        fields.shape
    )


def symmetric_product(a: Floats, b: Floats) -> Floats:
    """a^T b (k, k) where it is known to be symmetric: a quarter of it is the mirror image of another one."""
    half = a.shape[1] // 2
    out = np.empty((a.shape[1], a.shape[1]))
    np.matmul(a[:, :half].T, b, out=out[:half])
    np.matmul(a[:, half:].T, b[:, half:], out=out[half:, half:])
    out[half:, :half] = out[:half, half:].T
    return out
