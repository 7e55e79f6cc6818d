"""How the forces of a solved contact problem change with what moves it, while no contact changes its status.

With u = W r + b the laws are then linear: an open contact has no force, one that sticks has u = const, and
one that slides has u_n = 0 and r_t = mu r_n e, whose direction e is that of its friction. What is left
unknown are the normal forces of all that bear and the friction of what sticks, x, and one equation for each:

    (W_kk + W_ks D) x = -P db

with k the rows of those unknowns, s the friction of what slides, r_s = D x. While all sticks it is
W dr = -db instead. **One factor serves both**: with what sticks first, then the sliding contacts' normals,
then their friction, W = L L^T begins with the factor of W_kk, and below it stands W_sk L_kk^-T. So the first
equation is

    L_kk^T x + (L_sk^T D) x_n = -L_kk^-1 P db

whose last rows are as many equations in the sliding contacts' normal forces x_n alone; the rest is a
substitution.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtrs

from palpo.physics.contact.laws import SLIP, STICK
from palpo.physics.numerics.kernels import kernel

Array = NDArray[np.float64]

RIDGES = 1e-10, 1e-8, 1e-6
"""Added to the diagonal, in shares of its mean: more contacts than freedoms make W singular, and roundings
may leave it an eigenvalue below zero."""


class ForceTangents:
    """Both derivatives dr/dq (3 n, m) [N] of the forces of n contacts, per unit of each of m motions.

    w (3 n, 3 n) [m/N]. motion (3 n, m): db/dq. r (3 n,) [N]: the solution, whose friction has the directions
    of what slides. status (n,): OPEN, STICK or SLIP. mu (n,).
    Raises FloatingPointError where W has no factor, being no compliance or not finite.
    """

    def __init__(
        self, w: Array, motion: Array, r: Array, status: NDArray[np.integer], mu: NDArray[np.float64]
    ) -> None:
        self._w, self._motion, self._r = w, motion, r
        rows, friction = np.arange(r.size).reshape(-1, 3), r.reshape(-1, 3)[:, 1:]
        sticks, slides = rows[status == STICK], rows[status == SLIP]
        size = np.hypot(friction[:, 0], friction[:, 1])
        along = friction * np.divide(mu, size, out=np.zeros_like(size), where=size > 0.0)[:, None]
        self._along = along[status == SLIP]
        self._order = np.concatenate([sticks.ravel(), slides[:, 0], slides[:, 1:].ravel()])
        self._sticking, self._sliding = sticks.size, len(slides)
        order = self._order
        self._factor = _factor(order.size, lambda out: gather_rows(w, order, out))
        self._forward = _substitute(self._factor, -motion[order])

    @property
    def slides(self) -> bool:
        """Whether any contact slides against friction."""
        return bool(self._along.any())

    def following(self) -> Array:
        """While each contact does as it does."""
        first, kept = self._sticking, self._sticking + self._sliding
        x = np.zeros_like(self._forward)
        if self._sliding:
            below, along = self._factor[kept:, :kept], self._along
            coupled = (along[:, :1] * below[::2] + along[:, 1:] * below[1::2]).T
            own = np.tril(self._factor[first:kept, first:kept]).T
            normal = np.linalg.solve(own + coupled[first:], self._forward[first:kept])
            taken = coupled[:first] + self._factor[first:kept, :first].T
            x[:first] = self._forward[:first] - taken @ normal
            x = _substitute(self._factor, x, transposed=True)
            x[first:kept], x[kept::2], x[kept + 1 :: 2] = normal, along[:, :1] * normal, along[:, 1:] * normal
        else:
            x[:] = _substitute(self._factor, self._forward, transposed=True)
        return self._spread(self._order, x)

    def power(self, tangent: Array) -> Array:
        """Friction's power on what slides, per velocity of each motion, (m,) [N]; tangent: `following`."""
        rows = self._order[self._sticking + self._sliding :] if self.slides else self._order[:0]
        return np.asarray((self._w[rows] @ tangent + self._motion[rows]).T @ self._r[rows])

    def sticking(self, bears: NDArray[np.bool_]) -> Array:
        """While all that bears sticks, and those contacts (n,) that `bears` names beside."""
        rows = np.arange(self._motion.shape[0]).reshape(-1, 3)
        more = np.setdiff1d(rows[bears].ravel(), self._order)
        if more.size == 0:
            return self._spread(self._order, _substitute(self._factor, self._forward, transposed=True))
        w, order = self._w, self._order
        beside = _substitute(self._factor, w[np.ix_(order, more)])
        left = w[np.ix_(more, more)] - beside.T @ beside
        factor = _factor(more.size, lambda out: np.copyto(out, left))
        forward = _substitute(factor, -self._motion[more] - beside.T @ self._forward)
        x = _substitute(factor, forward, transposed=True)
        rest = _substitute(self._factor, self._forward - beside @ x, transposed=True)
        return self._spread(np.concatenate([order, more]), np.concatenate([rest, x]))

    def _spread(self, rows: NDArray[np.integer], x: Array) -> Array:
        tangent = np.zeros_like(self._motion)
        tangent[rows] = x
        return tangent


@kernel
def gather_rows(whole, rows, out):
    """out (m, m) = rows and columns `rows` (m,) of the symmetric whole, its upper triangle alone."""
    for i in range(rows.shape[0]):
        source, to = whole[rows[i]], out[i]
        for j in range(i, rows.shape[0]):
            to[j] = source[rows[j]]


def _factor(size: int, gather: Callable[[Array], object]) -> Array:
    """L (m, m) with L L^T the symmetric matrix whose upper triangle `gather` writes, and a ridge."""
    matrix = np.empty((size, size))
    diagonal = np.einsum("ii->i", matrix)
    for ridge in RIDGES if size else ():
        gather(matrix)
        diagonal += ridge * diagonal.mean()
        # in Fortran's order the triangle is the lower one, and the factor takes its place
        factor, failed = dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
        if not failed:
            return np.asarray(factor)
    if size:
        raise FloatingPointError("the contacts' compliance is not positive definite")
    return matrix.T


def _substitute(factor: Array, right: Array, transposed: bool = False) -> Array:
    """factor^-1 right, or by its transpose."""
    if factor.size == 0 or right.size == 0:
        return right.copy()
    return np.asarray(dtrtrs(factor, right, lower=1, trans=int(transposed))[0])
