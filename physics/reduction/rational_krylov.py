"""The rational Krylov basis of a soft body and its modes (EQUATIONS.md, 1, "The Krylov interface").

The columns are what low step L5 computes anyway: A_h^-1 J^T at two or three step sizes h, with the
velocity and the free accelerations. The Galerkin model on their span has W_soft^dt and W_soft^DT exactly,
and everything between in good approximation.

A reduction basis most of whose columns stay from frame to frame, with its mass Gram matrix carried along.

Of B^T M B only what belongs to columns that have changed is computed; rigid motions, which are taken out of
the columns about the present shape, change the rest by a product of rank six:

    B' = B - R (R^T M R)^-1 R^T M B,    B'^T M B' = B^T M B - (R^T M B)^T (R^T M R)^-1 (R^T M B)

Subtracting leaves roundings. Columns enter without rigid motions, so that later ones take little away, and
HEALED columns in turn are computed anew in every frame.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg as sl
import scipy.sparse.linalg as ssl
from numpy.typing import NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.numerics.kernels import fast_kernel

HEALED = 4
"""Columns whose part of the mass Gram matrix is computed anew in each frame, though they have not changed."""


class RecycledBasis:
    """B (n, k) of at most `most` columns for a body of node masses `mass` (n,) [kg], one a freedom."""

    def __init__(self, mass: NDArray[np.float64], most: int) -> None:
        self.mass = mass
        self.count = 0
        """Columns in use, k: the first ones."""
        self.whole = np.zeros((len(mass), most))
        """Room for all columns; zero beyond `count`."""
        self._gram = np.zeros((most, most))
        self._changed = np.zeros(most, bool)
        self._next = 0

    @property
    def gram(self) -> NDArray[np.float64]:
        """B^T M B (k, k), a view; as of the last `settle`."""
        return self._gram[: self.count, : self.count]

    def put(self, places: NDArray[np.intp], columns: NDArray[np.float64]) -> None:
        """Columns (n, m) to those places (m,); `count` grows to hold them."""
        self.whole[:, places] = columns
        self._changed[places] = True
        self.count = max(self.count, int(np.max(places, initial=-1)) + 1)

    def widen(self, more: int) -> None:
        """Room for so many columns more."""
        self.whole = np.pad(self.whole, ((0, 0), (0, more)))
        self._gram = np.pad(self._gram, (0, more))
        self._changed = np.pad(self._changed, (0, more))

    def cut(self, count: int) -> None:
        """Forget the columns from `count` on."""
        self.whole[:, count : self.count] = 0.0
        self.count = min(self.count, count)

    def settle(self, rigid: NDArray[np.float64] | None) -> None:
        """Take the rigid motions (n, 6) out of all columns, and bring the Gram matrix up to date."""
        k = self.count
        if rigid is not None:
            heavy = self.mass[:, None] * rigid
            met = heavy.T @ self.whole
            share = np.asarray(np.linalg.solve(rigid.T @ heavy, met), np.float64)
            # in place: B is C-contiguous, so that its transpose is what BLAS calls a matrix
            sl.blas.dgemm(-1.0, share, rigid, 1.0, self.whole.T, trans_a=1, trans_b=1, overwrite_c=1)
            self._gram -= met.T @ share
        self._changed[(self._next + np.arange(HEALED)) % max(k, 1)] = True
        self._next += HEALED
        stale = np.flatnonzero(self._changed[:k])
        self._changed[:] = False
        part = self.whole[:, :k].T @ (self.mass[:, None] * self.whole[:, stale])
        self._gram[:k, stale] = part
        self._gram[stale, :k] = part.T


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
    # its type is told: asked for it, SciPy would try a vector of bytes, and have a solver for these compiled
    inverse = ssl.LinearOperator(
        (body.n_dof, body.n_dof), lambda b: weight * factor.solve(b.ravel()), dtype=np.float64
    )
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


RANK_TOLERANCE = 1e-11
"""Columns whose squared norm, after those before them, is below this share of their own are dropped."""


class ReducedModes(NamedTuple):
    """V = B T with V^T A V = 1 and V^T K V = S."""

    order: NDArray[np.intp]  # (modes,) columns of B that T combines
    factor: NDArray[np.float64]  # (modes, modes) T on those columns, Fortran order
    triangular: bool  # whether that is an upper triangle
    stiffness: NDArray[np.float64]  # (modes, modes) S, positive semidefinite
    gram: NDArray[np.float64]  # (columns, columns) of B, in which the modes are orthogonal
    weight: NDArray[np.float64]  # (modes,) inverse squares of their norms there

    @property
    def transform(self) -> NDArray[np.float64]:
        """T (columns, modes)."""
        out = np.zeros((len(self.gram), len(self.order)))
        out[self.order] = self.factor
        return out

    def coordinates(self, column: int) -> NDArray[np.float64]:
        """c (modes,) with V c = that column of B."""
        return self.weight * (self.gram[column, self.order] @ self.factor)

    def expand(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """T z (columns, m) for z (modes, m)."""
        out = np.zeros((len(self.gram), z.shape[1]))
        out[self.order] = self.factor @ z
        return out

    def combine(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """rows T (m, modes) of rows of B (m, modes), C-contiguous, its columns those of `order`; in place
        where that can be."""
        if not self.triangular:
            return rows @ self.factor
        # the transpose of a C-contiguous array is a matrix of BLAS: half the products of a full T
        sl.blas.dtrmm(1.0, self.factor, rows.T, trans_a=1, overwrite_b=1)
        return rows


def krylov_modes(
    mass: NDArray[np.float64], stiffness: NDArray[np.float64], held: float, pull: float, limit: int
) -> ReducedModes:
    """Modes from B^T M B and B^T K B, both (k, k), for A = held M + pull K; at most `limit` of them.

    Columns are scaled to unit norm and dependent ones dropped by pivoted Cholesky. Where the exact tangent K
    is indefinite (a body about to buckle, a crushed element), its negative part is left out: a model that
    must last until the next low step, however late, may not grow by itself.
    """
    system = held * mass + pull * stiffness
    diagonal = system.diagonal()
    if diagonal.min(initial=0.0) >= -RANK_TOLERANCE * diagonal.max(initial=0.0):
        order, scale, factor = _independent(system, limit)
        transform = _inverse(scale, factor)
        reduced = _reduced(stiffness, order, transform)
        if semidefinite(reduced):
            return ReducedModes(order, transform, True, reduced, system, np.ones(len(order)))
    order, scale, factor = _independent(mass, limit)
    transform = _inverse(scale, factor)
    values, shapes = sl.eigh(_reduced(stiffness, order, transform), driver="evd", check_finite=False)
    values = np.maximum(values, 0.0)
    weight = held + pull * values
    whitened = np.asfortranarray((transform @ shapes) / np.sqrt(weight))
    return ReducedModes(order, whitened, False, np.diag(values / weight), mass, weight)


def _independent(
    gram: NDArray[np.float64], limit: int
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Columns (r,), r <= limit, that pivoted Cholesky finds independent, D (r,) and U (r, r), upper, with
    D gram D = U^T U on them."""
    diagonal = gram.diagonal()
    kept = np.flatnonzero(diagonal > 1e-28 * max(float(diagonal.max(initial=0.0)), 1e-300))
    if not len(kept):
        return kept, np.zeros(0), np.zeros((0, 0))
    scale = 1.0 / np.sqrt(diagonal[kept])
    correlation = gram[np.ix_(kept, kept)] * scale[:, None] * scale
    factor, pivots, rank, _ = sl.lapack.dpstrf(correlation.T, tol=RANK_TOLERANCE, lower=0, overwrite_a=1)
    rank = min(int(rank), limit)
    pivots = pivots[:rank] - 1
    return kept[pivots], scale[pivots], np.asfortranarray(factor[:rank, :rank])


def _inverse(scale: NDArray[np.float64], factor: NDArray[np.float64]) -> NDArray[np.float64]:
    """D U^-1 (r, r), an upper triangle in Fortran order."""
    if not len(scale):
        return np.zeros((0, 0), order="F")
    inverse, _ = sl.lapack.dtrtri(factor)
    return np.asfortranarray(np.triu(inverse) * scale[:, None])


def _reduced(
    matrix: NDArray[np.float64], order: NDArray[np.intp], transform: NDArray[np.float64]
) -> NDArray[np.float64]:
    """T^T A T (r, r) of a symmetric A (k, k) on columns `order`, T upper; symmetric to the bit."""
    if not len(order):
        return np.zeros((0, 0))
    half = sl.blas.dtrmm(1.0, transform, matrix[np.ix_(order, order)].T, side=1, overwrite_b=1)
    out = sl.blas.dtrmm(1.0, transform, half, trans_a=1, overwrite_b=1)
    return np.ascontiguousarray(0.5 * (out + out.T))


def semidefinite(matrix: NDArray[np.float64]) -> bool:
    """Whether a symmetric matrix is positive semidefinite to rounding."""
    shift = 1e-12 * float(np.abs(matrix.diagonal()).sum())
    _, failed = sl.lapack.dpotrf(matrix + shift * np.eye(len(matrix)), lower=1)
    return not failed


def best_rotation(
    rest: NDArray[np.float64], x: NDArray[np.float64], mass: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Rotation (3, 3) that turns the centred positions rest (n, 3) into x (n, 3), in the mass norm."""
    u, _, vt = np.linalg.svd((mass[:, None] * x).T @ rest)
    u[:, -1] *= np.sign(np.linalg.det(u @ vt))
    return u @ vt
