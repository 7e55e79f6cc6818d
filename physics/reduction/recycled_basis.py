"""A reduction basis most of whose columns stay from frame to frame, with its mass Gram matrix carried along.

Of B^T M B only what belongs to columns that have changed is computed; rigid motions, which are taken out of
the columns about the present shape, change the rest by a product of rank six:

    B' = B - R (R^T M R)^-1 R^T M B,    B'^T M B' = B^T M B - (R^T M B)^T (R^T M R)^-1 (R^T M B)

Subtracting leaves roundings. Columns enter without rigid motions, so that later ones take little away, and
HEALED columns in turn are computed anew in every frame.
"""

import numpy as np
import scipy.linalg as sl
from numpy.typing import NDArray

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
