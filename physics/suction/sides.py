"""What touches in a suction scene, soft, rigid or fixed: its surface, and what the surface shuts in.

How the bodies behind it move and yield is palpo.physics.compliance.full. Geometry is done in the side's own
axes, in which a rigid surface never moves: its boxes are fitted once.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.chain_body import RigidBody
from palpo.physics.bodies.held_body import HeldBody
from palpo.physics.collision.nearest import target
from palpo.physics.compliance.full import FullOrder, FullRigid, FullSoft, Motion
from palpo.physics.compliance.full_fixed import FullFixed
from palpo.physics.gas.wall_regions import SoftWall, Wall
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.suction.contacts import Partner
from palpo.physics.suction.folds import Folds


class ContactSide(Wall, FullOrder, Protocol):
    """A side of the contact."""

    nodes: NDArray[np.int32]
    """Node of each vertex of the surface, shape (n,); of a rigid side, the vertex itself."""
    place: NDArray[np.int32]
    """Place of each node among those that may touch, -1 for none; of a rigid side, 0."""

    @property
    def axes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Origin (3,) [m] and axes (3, 3), columns in world axes."""
        ...

    def place_surface(self) -> None:
        """Bring `local` up to date with the body."""
        ...

    def fit_target(self) -> None:
        """Bring the target up to date with `local`."""
        ...

    def onward(self, free: Motion, h: float) -> NDArray[np.float64]:
        """Velocities (n, 3) [m/s] of the surface's vertices in a step of h, world axes.

        free: its motion without contact, which of a soft body that is pressed would be its springing back:
        that goes on as it moves, a free one with what weight adds.
        """
        ...

    def as_one(self, free: Motion, h: float) -> NDArray[np.float64]:
        """How the body moves as one, as palpo.physics.gas.gaps.fastest has it (3, 3); see `onward`."""
        ...

    def force_of_wall(self, gradient: NDArray[np.float64]) -> Motion:
        """What forces (n, 3) on the surface's vertices, own axes, are on the body."""
        ...


class SoftSide(FullSoft, SoftWall):
    """The surface of a HeldBody; folds: where it may touch itself."""

    body: HeldBody

    def __init__(self, body: HeldBody, capacity: int, folds: Folds | None = None) -> None:
        # a contact with itself has two points of the body
        FullSoft.__init__(self, body, capacity if folds is None else 2 * capacity)
        SoftWall.__init__(self, body)
        self.folds = folds

    def vertex_of(self, node: int | None) -> int | None:
        """The vertex of the surface at a node; InputError where it is inside the body."""
        if node is None:
            return None
        vertex = np.flatnonzero(self.nodes == node)
        if not vertex.size:
            raise InputError(f"the seed, node {node}, is not on the surface of {self.body.name!r}.")
        return int(vertex[0])

    @property
    def axes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The world's."""
        return np.zeros(3), np.eye(3)

    def onward(self, free: Motion, h: float) -> NDArray[np.float64]:
        """See Side."""
        return self._velocities(h)[self.nodes]

    def as_one(self, free: Motion, h: float) -> NDArray[np.float64]:
        """See Side; by the mean velocity."""
        mean = self.body.node_mass @ self._velocities(h) / self.body.mass
        return np.array([np.zeros(3), mean, np.zeros(3)])

    def _velocities(self, h: float) -> NDArray[np.float64]:
        body, handle = self.body, self.body.handle
        out = body.node_velocities()
        if handle is not None:
            out[body.fixed] = handle.velocity[:3]
        return out if handle is not None and handle.driven else out + h * body.gravity

    def urge(self, h: float) -> float:
        """By how much [m/s] a driven handle changes its velocity in a step of h."""
        handle = self.body.handle
        if handle is None or not handle.driven:
            return 0.0
        return float(np.linalg.norm((handle.imposed_velocity(h) - handle.velocity)[:3]))

    def force_of_wall(self, gradient: NDArray[np.float64]) -> Motion:
        """See Side."""
        out = np.zeros_like(self.body.x)
        out[self.nodes] = gradient
        return out


class RigidSide(FullRigid):
    """The surface of a free rigid body: vertices about its centre of mass, in its axes."""

    def __init__(self, body: RigidBody, surface: SurfaceMesh, capacity: int) -> None:
        super().__init__(body, capacity)
        self.surface = surface.compact()
        n = len(self.surface.vertices)
        self.local = np.ascontiguousarray(self.surface.vertices)
        self.nodes = np.arange(n, dtype=np.int32)
        self.place = np.zeros(n, dtype=np.int32)
        self.odometer = 0.0
        self.target = target(self.surface)

    @property
    def axes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The body's."""
        w, x, y, z = self.body.q[0]
        return self.body.x[0], np.array(
            [
                [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
                [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
                [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
            ]
        )

    def place_surface(self) -> None:
        """Nothing moves in its axes."""

    def fit_target(self) -> None:
        """Nothing moves in its axes."""

    def onward(self, free: Motion, h: float) -> NDArray[np.float64]:
        """See Side."""
        turn = self.axes[1]
        wx, wy, wz = free[3:]
        # a product with a matrix takes a tenth of the time of np.cross
        spin = np.array([[0.0, wz, -wy], [-wz, 0.0, wx], [wy, -wx, 0.0]])
        return np.asarray(free[:3] + self.local @ turn.T @ spin)

    def as_one(self, free: Motion, h: float) -> NDArray[np.float64]:
        """See Side."""
        return np.array([self.body.x[0], free[:3], free[3:]])

    def force_of_wall(self, gradient: NDArray[np.float64]) -> Motion:
        """See Side."""
        rotation = self.axes[1]
        m = self.local.T @ gradient
        moment = np.array([m[1, 2] - m[2, 1], m[2, 0] - m[0, 2], m[0, 1] - m[1, 0]])
        return np.concatenate([rotation @ gradient.sum(axis=0), rotation @ moment])


class FixedSide(FullFixed):
    """A surface that never moves."""

    def __init__(self, surface: SurfaceMesh) -> None:
        super().__init__()
        self.surface = surface.compact()
        n = len(self.surface.vertices)
        self.local = np.ascontiguousarray(self.surface.vertices)
        self.nodes = np.arange(n, dtype=np.int32)
        self.place = np.full(n, -1, dtype=np.int32)
        self.odometer = 0.0
        self.target = target(self.surface)

    @property
    def axes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The world's."""
        return np.zeros(3), np.eye(3)

    def place_surface(self) -> None:
        """Nothing moves."""

    def fit_target(self) -> None:
        """Nothing moves."""

    def onward(self, free: Motion, h: float) -> NDArray[np.float64]:
        """See Side."""
        return np.zeros_like(self.local)

    def as_one(self, free: Motion, h: float) -> NDArray[np.float64]:
        """See Side."""
        return np.zeros((3, 3))

    def force_of_wall(self, gradient: NDArray[np.float64]) -> Motion:
        """It takes none."""
        return np.zeros(0)


def partner_of(side: ContactSide, number: int, origin: NDArray[np.float64]) -> Partner:
    """The side of that number as contacts are found on it; origin (3,): of its axes [m]."""
    return Partner(number, not isinstance(side, SoftSide), origin, side.nodes)
