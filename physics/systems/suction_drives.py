"""What moves cups besides the hand: a path, cables, and a figure on a spring."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from physics.bodies.chain_body import RigidBody
from physics.bodies.held_body import HeldBody

Course = Callable[[float], float]
"""A quantity over time [s]."""


class Drive(Protocol):
    """Something that moves a cup."""

    def prepare(self, time: float) -> None:
        """Bring it to a step that ends at `time` [s]."""
        ...


@dataclass(frozen=True, eq=False)
class Scripted:
    """The handle follows a path of displacements (3,) [m] from where it is at rest."""

    body: HeldBody
    path: Callable[[float], NDArray[np.float64]]

    def prepare(self, time: float) -> None:
        """See Drive."""
        handle = self.body.handle
        assert handle is not None
        handle.drive(handle.centre + self.path(time))


@dataclass(frozen=True, eq=False)
class Cables:
    """Cables led through nodes: a pull t [N] is t (e_next - e_before) on each, e from node to node."""

    body: HeldBody
    nodes: Sequence[NDArray[np.int64]]
    pulls: Sequence[Course]

    def prepare(self, time: float) -> None:
        """See Drive."""
        load = self.body.load
        load[:] = 0.0
        for nodes, pull in zip(self.nodes, self.pulls, strict=True):
            along = np.diff(self.body.x[nodes], axis=0)
            along *= pull(time) / np.linalg.norm(along, axis=1)[:, None]
            load[nodes[:-1]] += along
            load[nodes[1:]] -= along


class FigureSpring:
    """A free handle, a rigid figure, on a coil that stands on the partner around the cup.

    The coil is relaxed where the figure is at first. Along any axis it has the same stiffness k [N/m] and
    damping [N s/m], and it keeps the figure upright with k radius^2 [N m/rad], like four springs around.
    partner: the free rigid body that takes the reaction at its centre; None for one that never moves.
    push: force downward on the figure over time [N].
    """

    def __init__(
        self, body: HeldBody, partner: RigidBody | None, stiffness: float, damping: float, radius: float,
        push: Course,
    ) -> None:  # fmt: skip
        assert body.handle is not None
        self._handle, self._partner, self._push = body.handle, partner, push
        self._handle.release()
        shares = np.repeat([1.0, radius * radius], 3)
        self._stiffness, self._damping = stiffness * shares, damping * shares
        self._handle.stiffness, self._handle.damping = np.diag(self._stiffness), np.diag(self._damping)
        self._rest = self._handle.position - self._base()
        if partner is not None:
            self._gravity = np.array(partner.gravity)

    def _base(self) -> NDArray[np.float64]:
        return np.zeros(3) if self._partner is None else self._partner.x[0]

    def prepare(self, time: float) -> None:
        """See Drive."""
        handle, partner = self._handle, self._partner
        stretch = np.append(handle.position - self._base() - self._rest, 2.0 * handle.orientation[1:])
        speed = np.zeros(3) if partner is None else partner.v[:3]
        spring = -self._stiffness * stretch
        spring[:3] += self._damping[:3] * speed
        handle.load = spring - np.array([0.0, self._push(time), 0.0, 0.0, 0.0, 0.0])
        if partner is not None:
            pull = spring[:3] - self._damping[:3] * handle.velocity[:3]
            partner.gravity[:] = self._gravity - pull / partner.mass
