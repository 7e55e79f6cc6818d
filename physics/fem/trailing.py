"""Sparse Cholesky with chosen nodes last: their compliance is that of the factor's dense trailing block.

With the chosen nodes c at the end of the elimination, whose order never changes,

    A = L L^T,   L = [[L_11, 0], [L_21, L_22]],   (A^-1)_cc = (L_22 L_22^T)^-1

so that W = J (A^-1)_cc J^T of any contacts on these nodes needs no solve with the whole factor. The last
panel is dense: LAPACK factorises and inverts it, without the interpreter's lock, so that it may be done
beside the steps (palpo.physics.bodies.renewal).
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.cholesky import CholeskyFactor
from palpo.physics.fem.elimination import Symbolic
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.lapack import cholesky, cholesky_inverse, make_words

TILE = 32
"""Rows and columns that are transposed together: a tile fits in the first cache."""


class TrailingFactor(CholeskyFactor):
    """A_h = L L^T whose symbolic factor ends with n_last nodes (`analyse(..., last)`)."""

    def __init__(self, symbolic: Symbolic, n_last: int) -> None:
        super().__init__(symbolic)
        width = 3 * int(symbolic.column[-1] - symbolic.column[-2])
        self._front = self.panels[symbolic.panel[-2] :].reshape(width, width)
        self._trailing = self._front[width - 3 * n_last :, width - 3 * n_last :]
        self._words = make_words(0)
        self._inverse = np.empty(9 * n_last * n_last)
        self._block = np.empty(9 * n_last * n_last)
        self._compliance = np.empty((0, 0))
        self._scale = 0.0

    def _factorise(self) -> None:
        self._scale = 0.0
        fronts = self.symbolic.column.size - 2
        self._eliminate(fronts)
        cholesky(self._front, len(self._front), self._words)
        # not every LAPACK tells of a NaN
        bad = np.flatnonzero(~(self._front.diagonal() > 0.0))
        if bad.size:
            self._refuse_pivot(self.symbolic.column[fronts] + bad[0] // 3)

    def compliance(self, scale: float, count: int | None = None) -> NDArray[np.float64]:
        """scale (A_h^-1)_cc of the last nodes, in their order, shape (3 c, 3 c), symmetric to the bit.

        scale = h^2 gives displacement per force [m/N]. count: of at least so many of them, those at the end;
        all of them without it. Inverted once for each factor, and again for a greater count; the array is
        the factor's own and holds until then.
        """
        width = len(self._trailing) if count is None else 3 * count
        if scale != self._scale or width > len(self._compliance):
            inverse = self._inverse[: width * width].reshape(width, width)
            first = len(self._trailing) - width
            # what ends a triangular factor is the factor of that part's own Schur complement
            inverse[:] = self._trailing[first:, first:]
            cholesky_inverse(inverse, width, self._words)
            self._compliance = self._block[: width * width].reshape(width, width)
            _fill_symmetric(inverse, scale, self._compliance)
            self._scale = scale
        return self._compliance


@kernel
def _fill_symmetric(upper, scale, out):
    """out = scale times the symmetric matrix whose upper triangle is given, both C-contiguous."""
    n = upper.shape[0]
    for first in range(0, n, TILE):
        for begin in range(first, n, TILE):
            for i in range(first, min(first + TILE, n)):
                for j in range(max(begin, i), min(begin + TILE, n)):
                    value = scale * upper[i, j]
                    out[i, j] = value
                    out[j, i] = value
