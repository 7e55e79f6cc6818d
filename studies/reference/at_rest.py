"""A soft body at rest under imposed motions: its exact tangent, Newton's method, an energy that falls.

The body is that of the scenes, with the elements and laws that they have, only its steps in time being
replaced, or another program's that answers the same questions. `ways` (3 n, k), orthonormal columns, are the
motions of the n nodes that are free: planes of symmetry and plates take the others. An imposed motion that
does not converge is taken again in halves.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

Floats = NDArray[np.float64]
Outside = Callable[[Floats], tuple[float, Floats, sp.csc_matrix]]
"""Of positions (n, 3) [m]: energy [J], force (3 n,) [N] and stiffness (3 n, 3 n) [N/m] of what else acts."""
ENOUGH = 1e-7
"""Force that is left, over Young's modulus times the square of the body's size."""
ITERATIONS, HALVINGS = 100, 5
ARMIJO, SHORTEST, ROUNDING = 1e-4, 1e-4, 1e-14


class Unbalanced(Exception):
    """No state at rest was found."""


class RestingBody(Protocol):
    """What is asked of a body: x (n, 3) [m], all else being of the positions that it has."""

    x: Floats

    @property
    def K(self) -> Any:
        """Stiffness (3 n, 3 n) [N/m] without its negative part, at the positions of the last tangent."""

    def energy(self) -> float:
        """[J]"""

    def undamped_force(self) -> Floats:
        """Of its elements (3 n,) [N]."""

    def tangent(self) -> Any:
        """Exact stiffness (3 n, 3 n) [N/m]."""


class BodyAtRest:
    """A body without fixed nodes and weight, at rest as it is moved; `outside`: what else acts on it.

    youngs_modulus [Pa]: of its material, by which it is told what force may be left.
    """

    def __init__(
        self, body: RestingBody, ways: sp.csc_matrix, youngs_modulus: float, outside: Outside | None = None
    ) -> None:
        self.body, self.ways, self.outside = body, ways, outside
        self._enough = ENOUGH * youngs_modulus * float(np.ptp(body.x, axis=0).max()) ** 2

    def force(self) -> Floats:
        """What the free motions do not balance [N], (n, 3): the reactions of those that are not free."""
        return self._all()[1].reshape(-1, 3)

    def move(self, way: Floats, halvings: int = HALVINGS) -> None:
        """Impose the displacement way (n, 3) [m] of the motions that are not free, and come to rest.

        Raises Unbalanced where no step however small does; the body is then as it was.
        """
        before = self.body.x.copy()
        try:
            self._settle(way)
        except Unbalanced:
            self.body.x = before.copy()
            if halvings == 0:
                raise
            try:
                self.move(0.5 * way, halvings - 1)
                self.move(0.5 * way, halvings - 1)
            except Unbalanced:
                self.body.x = before.copy()
                raise

    def _settle(self, way: Floats) -> None:
        stiffness, force = self._tangent(), self._all()[1]
        # the first step takes along what moves
        self.body.x += way + self._solved(stiffness, force - stiffness @ way.ravel())
        for _ in range(ITERATIONS):
            energy, force = self._all()
            if not np.isfinite(energy):
                break
            if np.abs(self.ways.T @ force).max() < self._enough:
                return
            step = self._solved(self._tangent(), force)
            if not np.vdot(force, step) > 0.0:
                # a saddle: with what steps in time are made with the energy falls
                step = self._solved(self._tangent(positive=True), force)
            slope, start, length = float(np.vdot(force, step)), self.body.x.copy(), 1.0
            while length > SHORTEST:
                self.body.x = start + length * step
                if self._all()[0] <= energy - ARMIJO * length * slope + ROUNDING * abs(energy):
                    break
                length *= 0.5
        raise Unbalanced

    def _all(self) -> tuple[float, Floats]:
        energy, force = self.body.energy(), self.body.undamped_force()
        if self.outside is None:
            return energy, force
        more, push, _ = self.outside(self.body.x)
        return energy + more, force + push

    def _tangent(self, positive: bool = False) -> sp.csc_matrix:
        own = self.body.K if positive else self.body.tangent()
        return own if self.outside is None else own + self.outside(self.body.x)[2]

    def _solved(self, stiffness: sp.csc_matrix, force: Floats) -> Floats:
        """Displacement (n, 3) [m] along the free motions."""
        try:
            factor = splu(
                (self.ways.T @ stiffness @ self.ways).tocsc(), permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0, options={"SymmetricMode": True},
            )  # fmt: skip
        except RuntimeError as error:
            raise Unbalanced from error
        return np.asarray(self.ways @ factor.solve(self.ways.T @ force)).reshape(-1, 3)


def free_ways(held: NDArray[np.bool_], axes: Floats | None = None) -> sp.csc_matrix:
    """Ways of n nodes, whose motion along axis k of theirs is not free where held (n, 3) says so.

    axes (n, 3, 3): columns are a node's own axes; without them the world's.
    """
    n = len(held)
    turned = np.tile(np.eye(3), (n, 1, 1)) if axes is None else axes
    blocks = sp.bsr_matrix((turned, np.arange(n), np.arange(n + 1)), shape=(3 * n, 3 * n))
    return blocks.tocsc()[:, np.flatnonzero(~held.ravel())]
