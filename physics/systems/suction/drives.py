"""What acts on cups besides the hand: a path, cables, a figure on a spring, and the switches of a pump."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.chain_body import RigidBody
from palpo.physics.bodies.held_body import HeldBody
from palpo.physics.gas.network import PumpedCups

Course = Callable[[float], float]
"""A quantity over time [s]."""


FASTEST = 0.15
"""Speed [m/s] at which a hand leads cups, at most."""


class CupDrive(Protocol):
    """Something that acts on cups."""

    def prepare(self, time: float) -> None:
        """Bring it to a step that ends at `time` [s]."""
        ...


class Lead:
    """How far a hand that feels nothing has led what moves on a path: `way` (3,) [m], as far as its device.

    It goes no quicker than `FASTEST`: at once, what a cup holds would be torn off.
    """

    def __init__(self) -> None:
        self.way, self._start = np.zeros(3), np.full(3, np.nan)

    def follow(self, target: NDArray[np.float64], h: float) -> None:
        """The device is at target (3,) [m], h [s] after it was last looked at."""
        if np.isnan(self._start).any():
            self._start[:] = target
        left = target - self._start - self.way
        self.way += left * min(1.0, FASTEST * h / max(float(np.linalg.norm(left)), 1e-300))


@dataclass(frozen=True, eq=False)
class PathDrive:
    """The handle follows a path of displacements (3,) [m] from where it is at rest, and who leads it."""

    body: HeldBody
    path: Callable[[float], NDArray[np.float64]]
    lead: Lead | None = None

    def prepare(self, time: float) -> None:
        """See CupDrive."""
        handle = self.body.handle
        assert handle is not None
        handle.drive(handle.centre + self.path(time) + (0.0 if self.lead is None else self.lead.way))


@dataclass(eq=False)
class Switches:
    """Pump, vent and the cups' valves over time [s]: on or open where true.

    Pump and vent are as `by_hand` says once a hand leads the cups.
    """

    pumped: PumpedCups
    running: Callable[[float], bool]
    vented: Callable[[float], bool]
    valves: Sequence[Callable[[float], bool]]
    by_hand: tuple[bool, bool]
    lead: Lead | None = None

    def prepare(self, time: float) -> None:
        """See CupDrive."""
        taken = self.lead is not None and bool(self.lead.way.any())
        runs, open_now = self.by_hand if taken else (self.running(time), self.vented(time))
        self.pumped.switch(runs, open_now, [valve(time) for valve in self.valves])


class Cables:
    """Cables led through nodes: a pull t [N] is t e on a node and -t e on the next, e the direction between.

    nodes: those of each cable, from the base on. pulls [N] over time. shares: part of the pull in each
    segment, one less than nodes; a cable is a bundle of strands, of which some end at every node.

    As a segment of length l turns, the force falls off with t / l (1 - e e^T) across it, as much as a body
    resists that soft rubber is. Explicitly this stiffness makes a zigzag that never ends, so the body gets it
    as `links`, for its implicit step; along e a constant pull has none.
    """

    def __init__(
        self, body: HeldBody, nodes: Sequence[NDArray[np.int64]], pulls: Sequence[Course],
        shares: Sequence[NDArray[np.float64]],
    ) -> None:  # fmt: skip
        self._body, self._pulls, self._shares = body, pulls, shares
        self._links = cable_links(nodes)

    def prepare(self, time: float) -> None:
        """See CupDrive."""
        body = self._body
        pull = np.concatenate([p(time) * share for p, share in zip(self._pulls, self._shares, strict=True)])
        first, second = self._links.T
        along = body.x[second] - body.x[first]
        length = np.linalg.norm(along, axis=1)
        along /= length[:, None]
        force = pull[:, None] * along
        body.load[:] = 0.0
        np.add.at(body.load, first, force)
        np.subtract.at(body.load, second, force)
        across = np.eye(3) - along[:, :, None] * along[:, None, :]
        body.link_stiffness[:] = (pull / length)[:, None, None] * across


def cable_links(nodes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Segments (k, 2) of all cables, one after the other: the `links` of the body that they pull at."""
    pairs = [np.stack([cable[:-1], cable[1:]], axis=1) for cable in nodes]
    return np.concatenate([np.zeros((0, 2), np.int64), *pairs])


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
        """See CupDrive."""
        handle, partner = self._handle, self._partner
        stretch = np.append(handle.position - self._base() - self._rest, 2.0 * handle.orientation[1:])
        speed = np.zeros(3) if partner is None else partner.v[:3]
        spring = -self._stiffness * stretch
        spring[:3] += self._damping[:3] * speed
        handle.load = spring - np.array([0.0, self._push(time), 0.0, 0.0, 0.0, 0.0])
        if partner is not None:
            pull = spring[:3] - self._damping[:3] * handle.velocity[:3]
            partner.gravity[:] = self._gravity - pull / partner.mass
