"""A soft body of so many tetrahedra that no factor can be made in a low period."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.body import Factor
from palpo.physics.bodies.tet_body import TetBody
from palpo.physics.errors import InputError
from palpo.physics.fem.multigrid.hierarchy import Hierarchy
from palpo.physics.fem.multigrid.solver import MultigridFactor

ACCURATE = 1e-5
"""Residual, relative to its load, at which a change of velocity is known."""

SETTLED = 5e-2
"""The same for one of many substeps."""

ENDED = 1e-3
"""The same for the last of them, which leaves what it lacks to nobody."""

MOST_STEPS = 60
"""Steps of conjugate gradients that a change may take."""


class LargeTetBody(TetBody):
    """A TetBody whose systems are solved by multigrid: `factor` gives what stands for one.

    It takes the arguments of a TetBody. Raises InputError for `last` nodes, whose compliance needs a factor.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._renewing, self._stale = threading.Lock(), True
        self._systems: dict[float, MultigridFactor] = {}
        super().__init__(*args, **kwargs)
        if self.last.size:
            raise InputError(f"body {self.name!r} is solved by multigrid, which has no trailing nodes.")
        rows = self.neighbours
        self.hierarchy = Hierarchy(self.mesh.nodes[self.free], rows, self._mass[rows.block])

    def linearise(self) -> None:
        super().linearise()
        self._stale = True

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
        return self.v + self._change(factor, h, load, ACCURATE)

    def correction_velocity(self, factor: Factor, h: float, f: NDArray) -> NDArray:
        """dv = h A_h^-1 f, to ACCURATE of itself."""
        assert isinstance(factor, MultigridFactor)
        return factor.approach((h * f)[:, None].astype(np.float32), ACCURATE, MOST_STEPS)[0][:, 0].astype(
            float
        )

    def _change(self, factor: Factor, h: float, load: NDArray, tolerance: float) -> NDArray:
        """dv of a step under a load (n_dof,): it is small, so that single precision is enough for it."""
        assert isinstance(factor, MultigridFactor)
        left = h * load + self.M @ self.v - factor.product(self.v)
        return factor.approach(left[:, None].astype(np.float32), tolerance, MOST_STEPS)[0][:, 0].astype(float)

    def keep_factors(self, steps: Sequence[float]) -> None:
        """Forget the systems of all other steps h [s]."""
        self._systems = {h: system for h, system in self._systems.items() if h in steps}

    def substeps(self, factor: Factor, h: float, forces: NDArray, slot_nodes: NDArray) -> None:
        """As those of a TetBody, but for what a step leaves of its impulse, which the next one has."""
        assert isinstance(factor, MultigridFactor)
        dofs = self.dofs_of(slot_nodes).reshape(-1)
        kept = np.flatnonzero(dofs >= 0)
        carried = np.zeros(self.n_dof)
        for i, step in enumerate(forces):
            load = self.undamped_force() + carried / h
            np.add.at(load, dofs[kept], step.reshape(-1)[kept])
            change = self._change(factor, h, load, SETTLED if i < len(forces) - 1 else ENDED)
            carried = h * load + self.M @ self.v - factor.product(self.v + change)
            self.advance(self.v + change, h)
