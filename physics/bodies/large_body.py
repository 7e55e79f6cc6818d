"""A soft body of so many tetrahedra that no factor can be made in a low period."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.body import Factor
from palpo.physics.bodies.tet_body import TetBody
from palpo.physics.fem.multigrid.hierarchy import Hierarchy
from palpo.physics.fem.multigrid.solver import MultigridFactor
from palpo.physics.numerics.errors import InputError

ACCURATE = 1e-5
"""Residual, relative to its load, at which a change of velocity is known."""

SETTLED = 1e-1
"""The same for one of many substeps."""

ENDED = 1e-2
"""The same for the last of them, which leaves what it lacks to nobody."""

MOST_STEPS = 60
"""Steps of conjugate gradients that a change may take."""


class LargeTetBody(TetBody):
    """A TetBody whose systems are solved by multigrid: `factor` gives what stands for one.

    It takes the arguments of a TetBody. Raises InputError for `last` nodes, whose compliance needs a factor.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._renewing, self._stale = threading.Lock(), True
        self._stiff_at = np.zeros((0, 3))
        self._systems: dict[float, MultigridFactor] = {}
        super().__init__(*args, **kwargs)
        if self.last.size:
            raise InputError(f"body {self.name!r} is solved by multigrid, which has no trailing nodes.")
        rows = self.neighbours
        self.hierarchy = Hierarchy(self.mesh.nodes[self.free], rows, self._mass[rows.block])

    def linearise(self) -> None:
        """As that of a TetBody; nothing where no node has moved since the last."""
        if np.array_equal(self.x, self._stiff_at):
            return
        super().linearise()
        self._stiff_at, self._stale = self.x.copy(), True

    def factor(self, h: float) -> MultigridFactor:  # type: ignore[override]
        """A_h of the last `linearise`, solved to rounding by what is called a factor elsewhere."""
        with self._renewing:
            if self._stale:
                self.hierarchy.renew(self.warped_blocks)
                self._stale = False
            system = self._systems.setdefault(h, MultigridFactor(self.hierarchy))
        alpha, beta = self.material.alpha, self.material.beta
        system.refactor(h * (beta + h), 1.0 + h * alpha)
        return system

    def free_velocity(self, factor: Factor, h: float, f: NDArray | None = None) -> NDArray:
        """As that of a TetBody, to ACCURATE of the change of velocity."""
        load = self.undamped_force() if f is None else self.undamped_force() + f
        assert isinstance(factor, MultigridFactor)
        left = h * load + self.M @ self.v - factor.product(self.v)
        return self.v + self._change(factor, left, ACCURATE)[0]

    def correction_velocity(self, factor: Factor, h: float, f: NDArray) -> NDArray:
        """dv = h A_h^-1 f, to ACCURATE of itself."""
        assert isinstance(factor, MultigridFactor)
        return self._change(factor, h * f, ACCURATE)[0]

    def _change(self, factor: MultigridFactor, left: NDArray, tolerance: float) -> tuple[NDArray, NDArray]:
        """dv = A_h^-1 left (n_dof,), and what it leaves of that; dv is small: single precision serves."""
        x, _, rest = factor.approach(left[:, None].astype(np.float32), tolerance, MOST_STEPS)
        return x[:, 0].astype(float), rest[:, 0].astype(float)

    def keep_factors(self, steps: Sequence[float]) -> None:
        """Forget the systems of all other steps h [s]."""
        self._systems = {h: system for h, system in self._systems.items() if h in steps}

    def substeps(self, factor: Factor, h: float, forces: NDArray, slot_nodes: NDArray) -> None:
        """As those of a TetBody, but for what a step leaves of its impulse, which the next one has."""
        assert isinstance(factor, MultigridFactor)
        dofs = self.dofs_of(slot_nodes).reshape(-1)
        kept = np.flatnonzero(dofs >= 0)
        carried, held = np.zeros(self.n_dof), factor.product(self.v)
        for i, step in enumerate(forces):
            load = self.undamped_force()
            np.add.at(load, dofs[kept], step.reshape(-1)[kept])
            left = h * load + carried + self.M @ self.v - held
            change, carried = self._change(factor, left, SETTLED if i < len(forces) - 1 else ENDED)
            # A_h v of the next step
            held += left - carried
            self.advance(self.v + change, h)
