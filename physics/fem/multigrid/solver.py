"""A_h = (1 + alpha h) M + (beta h + h^2) K of a large body, solved without a factor.

A direct factor of 12,000 unknowns takes a second. Here a step size costs the sums of its levels' blocks, and
a right side as many multigrid cycles as its accuracy wants. The preconditioner works in single precision. The
system itself stands in single precision for the columns of a reduced model, whose error enters it squared,
and in double precision for what is to be as good as a factor's.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.multigrid.hierarchy import Hierarchy, LevelRows, NodeWindow
from palpo.physics.fem.multigrid.kernels import (
    Preconditioner,
    combined,
    conjugate_gradients,
    invert_diagonal,
    product,
)

LANES = 32
"""Columns solved together; a single one goes alone."""

EXACT = 1e-9
"""Relative residual of `solve` and `solve_many`."""

COMPLIANCE = 1e-5
"""Relative residual of the columns of a compliance: single precision gives no more than a digit beyond."""

SHIFT = 1e-4
"""Share by which the diagonal of the coarsest level grows: far below its least eigenvalue that matters."""

ACCURATE = 1e-5
"""Residual, relative to its load, at which a change of velocity is known."""

SETTLED = 1e-1
"""The same for one of many substeps."""

ENDED = 1e-2
"""The same for the last of them, which leaves what it lacks to nobody."""

MOST_STEPS = 60
"""Steps of conjugate gradients that a change may take."""

MOST = 200
"""Steps that they may take; thirty are usual."""


class MultigridFactor:
    """Stands for a factor of A_h; `refactor` takes the hierarchy's present stiffness."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self.hierarchy = hierarchy
        self.n_dof = 3 * int(hierarchy.rows.level[1])
        self._data = np.zeros((hierarchy.entry[-1], 9), np.float32)
        self._inverse = np.zeros((int(hierarchy.rows.level[-1]), 9), np.float32)
        self._coarsest = np.zeros((0, 0), np.float32)
        self._fine = np.zeros((hierarchy.entry[1], 9))
        self._known: dict[tuple[int, float], NDArray[np.float32]] = {}

    def refactor(
        self, stiffness: NDArray, mass: NDArray, stiffness_weight: float, mass_weight: float
    ) -> None:
        """As that of a CholeskyFactor; levels are made anew where another array of stiffness comes.

        The mass is that of the hierarchy. Raises FloatingPointError where K is not finite.
        """
        held, pull = mass_weight, stiffness_weight
        self.hierarchy.renew(stiffness)
        levels = self.hierarchy
        combined(held, pull, levels.mass, levels.stiffness, self._data)
        invert_diagonal(levels.rows.diagonal, self._data, self._inverse)
        if not np.isfinite(self._inverse).all():
            raise FloatingPointError("the stiffness of a body is not finite")
        end = levels.entry[1]
        combined(held, pull, levels.mass[:end], levels.stiffness[:end], self._fine)
        first, last = levels.rows.level[-2:]
        count, entry = int(last - first), slice(levels.entry[-2], levels.entry[-1])
        row = np.repeat(np.arange(count), np.diff(levels.rows.start[first:]))
        dense = np.zeros((count, count, 9))
        blocks = np.empty((len(row), 9))
        combined(held, pull, levels.mass[entry], levels.stiffness[entry], blocks)
        dense[row, levels.rows.node[entry] - first] = blocks
        matrix = dense.reshape(count, count, 3, 3).transpose(0, 2, 1, 3).reshape(3 * count, 3 * count)
        # two nodes may carry the same others, which leaves the level singular
        matrix[np.diag_indices(3 * count)] *= 1.0 + SHIFT
        inverse = np.linalg.inv(matrix)
        self._coarsest = (0.5 * (inverse + inverse.T)).astype(np.float32)

    def product(self, x: NDArray) -> NDArray:
        """A_h x, shape (n_dof,)."""
        return self._times(self._fine, x)

    def stiffness_product(self, x: NDArray) -> NDArray:
        """K x of the last `refactor`, shape (n_dof,)."""
        return self._times(self.hierarchy.stiffness, x)

    def _times(self, blocks: NDArray, x: NDArray) -> NDArray:
        out = np.empty((self.n_dof, 1))
        product((0,), self.hierarchy.rows, blocks, np.ascontiguousarray(x)[:, None], out, np.empty(1))
        return out[:, 0]

    def solve(self, b: NDArray) -> NDArray:
        """A_h^-1 b, shape (n_dof,)."""
        return self.solve_many(np.asarray(b)[:, None])[:, 0]

    def solve_many(self, b: NDArray, out: NDArray | None = None) -> NDArray:
        """A_h^-1 b for b (n_dof, k); written to out, which may be b, and returned."""
        if out is None:
            out = np.empty(b.shape)
        for part in groups(b.shape[1]):
            out[:, part] = self.approach(b[:, part], EXACT, MOST)[0]
        return out

    def velocity(self, push: NDArray, momentum: NDArray, v: NDArray) -> NDArray:
        """A_h^-1 (push + momentum) to ACCURATE of its change from v, each (n_dof,)."""
        return v + self._change(push + momentum - self.product(v), ACCURATE)[0]

    def stepping(self, v: NDArray, count: int) -> Callable[[NDArray, NDArray], NDArray]:
        """A function that gives `velocity`, of (push, momentum), in so many steps from v.

        What a step leaves of its impulse the next one has.
        """
        carried, held, steps = np.zeros(self.n_dof), self.product(v), 0

        def step(push: NDArray, momentum: NDArray) -> NDArray:
            nonlocal carried, v, steps
            left = push + carried + momentum - held
            steps += 1
            change, carried = self._change(left, SETTLED if steps < count else ENDED)
            # A_h v of the next step
            held[:] += left - carried
            v = v + change
            return v

        return step

    def _change(self, left: NDArray, tolerance: float) -> tuple[NDArray, NDArray]:
        """dv = A_h^-1 left (n_dof,), and what it leaves of that; dv is small: single precision serves."""
        x, _, rest = self.approach(left[:, None].astype(np.float32), tolerance, MOST_STEPS)
        return x[:, 0].astype(float), rest[:, 0].astype(float)

    def half_solve_many(self, b: NDArray, out: NDArray | None = None) -> NDArray:
        """Y (k, k) with Y^T Y = b^T A_h^-1 b: the symmetric root of that compliance.

        Its columns are solved from those that the last call had for the same loads.
        """
        loads = [
            (int(np.flatnonzero(column)[0]), column.sum()) if column.any() else (-1, 0.0) for column in b.T
        ]
        nothing = np.zeros(self.n_dof, np.float32)
        start = np.column_stack([nothing, *(self._known.get(load, nothing) for load in loads)])[:, 1:]
        solved = np.zeros(b.shape, np.float32)
        for part in groups(b.shape[1]):
            given = b[:, part].astype(np.float32)
            solved[:, part] = self.approach(given, COMPLIANCE, MOST, start[:, part])[0]
        self._known = dict(zip(loads, solved.T.copy(), strict=True))
        compliance = b.T @ solved
        values, shapes = np.linalg.eigh(0.5 * (compliance + compliance.T))
        return (shapes * np.sqrt(np.maximum(values, 0.0))) @ shapes.T

    def approach(
        self, b: NDArray, tolerance: float, most: int, start: NDArray | None = None
    ) -> tuple[NDArray, int, NDArray]:
        """A_h^-1 b (n_dof, k) for at most LANES columns, in b's precision, the steps made, and the rest of b.

        It ends where every column's residual is below `tolerance` times its b, or after `most` steps.
        start (n_dof, k): where to begin.
        """
        fine = self._data[: len(self._fine)] if b.dtype == np.float32 else self._fine
        known = Preconditioner(self._data, self._inverse, self._coarsest)
        return approach(self.hierarchy.rows, fine, known, b, tolerance, most, start)

    def within(self, window: NodeWindow) -> "WindowSystem":
        """A_h of the last `refactor` on the window's nodes alone, all others held."""
        none = np.zeros((0, 0), np.float32)
        own = Preconditioner(self._data[window.entries], self._inverse[window.nodes], none)
        return WindowSystem(window, own)


class WindowSystem:
    """A system in single precision on the nodes of a window, without coarser levels: for short steps, where
    what acts on a point does not reach far."""

    def __init__(self, window: NodeWindow, known: Preconditioner) -> None:
        self.window, self._known = window, known

    def approach(
        self, b: NDArray, tolerance: float, most: int, start: NDArray | None = None
    ) -> tuple[NDArray, int, NDArray]:
        """As that of a MultigridFactor, for b (3 nodes, k) in single precision."""
        return approach(self.window.rows, self._known.data, self._known, b, tolerance, most, start)


def approach(
    levels: LevelRows,
    fine: NDArray,
    known: Preconditioner,
    b: NDArray,
    tolerance: float,
    most: int,
    start: NDArray | None,
) -> tuple[NDArray, int, NDArray]:
    """See MultigridFactor.approach; fine: blocks of the first level in b's precision."""
    (n, count), kind = b.shape, b.dtype
    width = LANES if count > 1 else 1
    single = np.zeros((2, 3 * int(levels.level[-1]), width), np.float32)
    r, z = single[:, :n] if kind == np.float32 else np.zeros((2, n, width))
    x = np.zeros((n, width), kind)
    r[:, :count] = b
    if start is not None:
        x[:, :count] = start
    steps = conjugate_gradients(
        (0,) * width, levels, fine, known, x, r, z, np.empty((2, n, width), kind), single, tolerance, most,
        np.empty(width, kind),
    )  # fmt: skip
    return x[:, :count], int(steps), r[:, :count]


def groups(columns: int) -> list[slice]:
    """Columns that are solved together."""
    return [slice(first, min(first + LANES, columns)) for first in range(0, columns, LANES)]
