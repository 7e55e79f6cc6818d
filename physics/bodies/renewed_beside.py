"""A large body's steps with a factor that is late, and how the next one is made beside them.

The factor is begun when elements have turned EARLIER against their nodes, and taken a fixed number of steps
later. Where the body turns fast it is older than a step alone could bear. Such a step adds what its factor
misses: with dv the change of velocity that was found under all forces f, and A' the present matrix,

    A' d = M v_0 + h f - A' (v_0 + dv),

by conjugate gradients, for which the factor is the preconditioner. d moves the gaps, so contacts are solved
for once more (palpo.physics.systems.suction.rows), still as the factor has it that they yield.
Source of the idea: Courtecuisse et al., see palpo.physics.fem.single; Saad, Iterative Methods for Sparse
Linear Systems (SIAM 2003), algorithm 9.1.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.coupling import Coupled
from palpo.physics.bodies.held_factor import HeldFactor, Matrix, Orders
from palpo.physics.bodies.links import add_link_forces
from palpo.physics.bodies.renewal import FactorRenewal, TurnedShape
from palpo.physics.bodies.rigid_handle import RigidHandle
from palpo.physics.bodies.soft import SoftBody


def conjugate_gradients(
    matrix: Callable[[NDArray], NDArray],
    preconditioner: Callable[[NDArray], NDArray],
    b: NDArray[np.float64],
    bound: float,
    most: int,
) -> tuple[NDArray[np.float64], int]:
    """x (n,) of A x = b from zero, and how many iterations bring r^T P r, r = b - A x, to `bound`.

    P, the preconditioner, stands for A^-1, so that r^T P r is near the square of the error in the norm of A.
    """
    x, r = np.zeros_like(b), b.copy()
    z = preconditioner(r)
    p, left = z, float(r @ z)
    for iteration in range(most):
        if not left > bound:
            return x, iteration
        q = matrix(p)
        alpha = left / float(p @ q)
        x += alpha * p
        r -= alpha * q
        z = preconditioner(r)
        before, left = left, float(r @ z)
        p = z + (left / before) * p
    return x, most


Floats = NDArray[np.float64]

EARLIER = 0.4
"""Part of `turn` at which a large body begins its next factor."""

LATEST = 3.0
"""Over `turn`, how far elements of a large body may turn before a step awaits the next factor, or makes it:
what contacts yield is that of the old one, and forces of contact swing from step to step past some 0.08."""


MISSED = 3e-3
"""What a refined step may miss of its change of velocity, in the norm of its matrix. One whose elements have
turned by 0.02 against their nodes misses some 0.01."""

MOST_ITERATIONS = 40


class RenewedBeside(SoftBody):
    """What a HeldBody does if it is large.

    late: whether the factor of the step begun is older than a step can bear alone. iterations: of conjugate
    gradients in it.
    """

    handle: RigidHandle | None
    link_stiffness: Floats
    turn: float
    renews: bool
    age: int
    _links: NDArray[np.int64]
    _orders: Orders
    _factor: HeldFactor | None
    _coupled_then: Coupled
    _rotation_then: Floats
    _from: Floats | None
    _bare: Floats
    """Of the step begun: what changes the motion, but for held nodes."""
    late: bool
    iterations: int
    _renewal: FactorRenewal | None
    _spare: HeldFactor | None

    def _couple(self, h: float) -> tuple[Floats, Coupled]:
        raise NotImplementedError

    def _spread(self, y: NDArray, w: NDArray | None) -> Floats:
        raise NotImplementedError

    @property
    def _may_be_late(self) -> bool:
        """Not under a free handle, which swings and hits."""
        return self.handle is None or self.handle.driven

    def _renew_beside(self, h: float) -> None:
        """Take the factor that was made beside the steps, if it is time, and begin the next one."""
        assert self._factor is not None
        turned = self.turned(h)
        if self._renewal is not None:
            self._renewal.steps -= 1
            if self._renewal.steps <= 0 or turned > LATEST * self.turn:
                self._spare, self._factor = self._factor, self._renewal.take()
                self._factors[h] = cast(Any, self._factor)
                shape = self._renewal.shape
                self._factored_at[h], self._rotation_then = shape.quats, shape.rotation
                self._coupled_then = shape.coupled
                self.age = self._orders.delay - self._renewal.steps
                self._renewal = None
                turned = self.turned(h)
        if turned > LATEST * self.turn:
            self.linearise()
            self.factor(h)
            turned = 0.0
        due = turned > EARLIER * self.turn or self.renews or (not self._factor.ready and self.last.size > 0)
        if self._renewal is None and due:
            self.linearise()
            m = self.material
            matrix = Matrix(self._blocks.copy(), self._mass, h * (m.beta + h), 1.0 + h * m.alpha)
            shape = TurnedShape(self._linearised_at.copy(), *self._couple(h))
            factor = self._spare or cast(HeldFactor, self._make_factor())
            self._renewal = FactorRenewal(factor, matrix, h * h, self._orders.delay, shape)
            self._spare = None
        self.late = turned > self.turn

    def refine(self, motion: Floats, force: Floats, h: float) -> Floats | None:
        """What the step to `motion` (n, 3) [m/s] under forces (n, 3) [N] lacks since its factor is too old.

        Velocities (n, 3) to add; None where it is new enough, or lacks next to nothing.
        """
        if not self.late:
            return None
        assert self._from is not None and self._factor is not None
        change = motion - self._from
        stiff = self._with_stiffness(change, h)
        missing = self._bare + h * force[self.free].ravel() - stiff
        bound = MISSED**2 * float(np.abs(change[self.free].ravel() @ stiff))

        def product(p: Floats) -> Floats:
            return self._with_stiffness(self._spread(p, np.zeros(6)), h)

        y, self.iterations = conjugate_gradients(product, self._factor.solve, missing, bound, MOST_ITERATIONS)
        return self._spread(y, np.zeros(6)) if self.iterations else None

    def _with_stiffness(self, v: Floats, h: float) -> Floats:
        """A' v of the free nodes, of velocities v (n, 3)."""
        out = np.zeros_like(self.x)
        self._elements.add_stiff(v, self._quats, h * (self.material.beta + h), out)
        moving = v.copy()
        moving[self.fixed] = 0.0
        add_link_forces(self._links, -h * (self.material.beta + h) * self.link_stiffness, moving, out)
        return out[self.free].ravel() + (1.0 + h * self.material.alpha) * (self.M @ v[self.free].ravel())

    def keep_factors(self, steps: Sequence[float]) -> None:
        """See SoftBody."""
        super().keep_factors(steps)
        if self._renewal is not None:
            self._renewal.rest()
            self._renewal = None
