"""What touches in a suction scene, soft, rigid or fixed, as the step sees it.

A side has a surface, a motion and forces. The *motion* is what its body moves by: velocities of the nodes
(n, 3) [m/s] of a soft one, (6,) of a rigid one; a *force* has the same shape, [N] or [N, N m]. Geometry is
done in the side's own axes, in which a rigid surface never moves: its boxes are fitted once.
"""

from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.boundary import GatherScratch, add_delassus, add_rows, gather_scratch
from palpo.physics.bodies.chain_body import RigidBody
from palpo.physics.bodies.held_body import HeldBody
from palpo.physics.errors import InputError
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.suction.contacts import (
    Points,
    Rows,
    add_nodal_forces,
    make_points,
    points_of_body,
    wrench_rows,
)
from palpo.physics.suction.gaps import Target, move_target, target

Motion = Any
"""Velocities, or forces, in the shape that is a side's own."""


class Wall(Protocol):
    """A surface that shuts in air; `local`: its vertices (n, 3) [m] in its own axes."""

    surface: SurfaceMesh
    local: NDArray[np.float64]
    odometer: float
    """How far [m] the surface has moved at most in its own axes, altogether."""
    target: Target


class Side(Wall, Protocol):
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
        """Bring `local` and the target up to date with the body."""
        ...

    def free_motion(self, h: float) -> Motion:
        """The motion at the end of a step without contact and pressure."""
        ...

    def onward(self, free: Motion, h: float) -> NDArray[np.float64]:
        """Velocities (n, 3) [m/s] of the surface's vertices in a step of h, world axes.

        free: its motion without contact, which of a soft body that is pressed would be its springing back:
        that goes on as it moves, a free one with what weight adds.
        """
        ...

    def carried(self, points: NDArray[np.float64], free: Motion, h: float) -> NDArray[np.float64]:
        """Velocities (k, 3) [m/s] of points (k, 3) [m] that move with the body as one; see `onward`."""
        ...

    def take_rows(self, rows: Rows, number: int) -> None:
        """Note the rows of the body of that number."""
        ...

    def find_compliance(self, h: float) -> None:
        """What `add_compliance` adds, for the rows taken; two sides may find theirs at once."""
        ...

    def add_compliance(self, w: NDArray[np.float64], span: NDArray[np.int64]) -> None:
        """w += h^2 H A^-1 H^T [m/N] of the rows taken, at least within each span of contacts (m + 1,)."""
        ...

    def add_displacement(self, motion: Motion, h: float, out: NDArray[np.float64]) -> None:
        """out (3 c,) += h H v [m] of the rows taken."""
        ...

    def force_of_rows(self, r: NDArray[np.float64]) -> Motion:
        """H^T r of the rows taken, r (3 c,) [N]."""
        ...

    def force_of_wall(self, gradient: NDArray[np.float64]) -> Motion:
        """What forces (n, 3) on the surface's vertices, own axes, are on the body."""
        ...

    def respond(self, force: Motion, h: float) -> Motion:
        """h A^-1 f: the change of motion by a force."""
        ...

    def finish(self, motion: Motion, h: float) -> None:
        """End the step with that motion."""
        ...


class SoftSide:
    """The surface of a HeldBody."""

    def __init__(self, body: HeldBody, capacity: int) -> None:
        whole = body.mesh.surface(body.name)
        self.body = body
        self.surface = whole.compact()
        self.nodes = whole.used_vertices
        self.place = body.place_of
        self.local = np.ascontiguousarray(body.x[self.nodes])
        self.odometer = 0.0
        self.target = target(self.surface)
        self._points: Points = make_points(capacity)
        self._scratch: GatherScratch = gather_scratch(max(1, body.last.size), capacity)
        self._least = 0
        self._compliance = np.zeros((0, 0))

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

    def place_surface(self) -> None:
        """See Side."""
        before = self.local
        self.local = np.ascontiguousarray(self.body.x[self.nodes])
        self.odometer += float(np.sqrt(((self.local - before) ** 2).sum(axis=1).max()))
        move_target(self.target, self.local)

    def free_motion(self, h: float) -> Motion:
        """See Side."""
        return self.body.free_motion(h)

    def onward(self, free: Motion, h: float) -> NDArray[np.float64]:
        """See Side."""
        return self._velocities(h)[self.nodes]

    def carried(self, points: NDArray[np.float64], free: Motion, h: float) -> NDArray[np.float64]:
        """See Side; by the mean velocity."""
        return np.broadcast_to(self.body.node_mass @ self._velocities(h) / self.body.mass, points.shape)

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

    def take_rows(self, rows: Rows, number: int) -> None:
        """See Side."""
        self._least = points_of_body(rows, number, self.place, self._points)

    def find_compliance(self, h: float) -> None:
        """See Side."""
        touched = self.body.last.size - self._least
        needed = touched > 0 and self._points.count[0] > 0
        self._compliance = self.body.compliance(touched, h) if needed else np.zeros((0, 0))

    def add_compliance(self, w: NDArray[np.float64], span: NDArray[np.int64]) -> None:
        """See Side."""
        points, count, compliance = self._points, int(self._points.count[0]), self._compliance
        if not compliance.size:
            return
        skipped = self.body.last.size - len(compliance) // 3
        slots = np.maximum(points.slots[:count] - np.int32(skipped), 0)
        add_delassus(compliance, count, points.contact, slots, points.yielding, points.axes, self._scratch, w)

    def add_displacement(self, motion: Motion, h: float, out: NDArray[np.float64]) -> None:
        """See Side."""
        p = self._points
        add_rows(h * motion, int(p.count[0]), p.contact, p.nodes, p.weights, p.axes, out)

    def force_of_rows(self, r: NDArray[np.float64]) -> Motion:
        """See Side."""
        out = np.zeros_like(self.body.x)
        add_nodal_forces(self._points, r, out)
        return out

    def force_of_wall(self, gradient: NDArray[np.float64]) -> Motion:
        """See Side."""
        out = np.zeros_like(self.body.x)
        out[self.nodes] = gradient
        return out

    def respond(self, force: Motion, h: float) -> Motion:
        """See Side."""
        return self.body.respond(force, h)

    def finish(self, motion: Motion, h: float) -> None:
        """See Side."""
        self.body.finish(motion, h)


class RigidSide:
    """The surface of a free rigid body: vertices about its centre of mass, in its axes."""

    def __init__(self, body: RigidBody, surface: SurfaceMesh, capacity: int) -> None:
        self.body = body
        self.surface = surface.compact()
        n = len(self.surface.vertices)
        self.local = np.ascontiguousarray(self.surface.vertices)
        self.nodes = np.arange(n, dtype=np.int32)
        self.place = np.zeros(n, dtype=np.int32)
        self.odometer = 0.0
        self.target = target(self.surface)
        self.rotation = np.eye(3)
        self._rows = np.zeros((3 * capacity, 6))
        self.half = np.zeros((0, 6))
        """Y (3 c, 6) of palpo.physics.suction.cup_blocks, of the rows taken."""
        self._count = 0

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

    def free_motion(self, h: float) -> Motion:
        """See Side."""
        self.body.linearise()
        self._factor = self.body.factor(h)
        return self.body.free_velocity(self._factor, h)

    def onward(self, free: Motion, h: float) -> NDArray[np.float64]:
        """See Side."""
        origin, turn = self.axes
        return self.carried(origin + self.local @ turn.T, free, h)

    def carried(self, points: NDArray[np.float64], free: Motion, h: float) -> NDArray[np.float64]:
        """See Side."""
        wx, wy, wz = free[3:]
        # a product with a matrix takes a tenth of the time of np.cross
        spin = np.array([[0.0, wz, -wy], [-wz, 0.0, wx], [wy, -wx, 0.0]])
        return np.asarray(free[:3] + (points - self.body.x[0]) @ spin)

    def take_rows(self, rows: Rows, number: int) -> None:
        """See Side."""
        self._count = 3 * int(rows.size[0])
        wrench_rows(rows, number, self.body.x[0], self._rows[: self._count])

    def find_compliance(self, h: float) -> None:
        """See Side."""
        self.half = np.ascontiguousarray(self.half_motion(self._rows[: self._count].T, h).T)

    def half_motion(self, forces: NDArray[np.float64], h: float) -> NDArray[np.float64]:
        """h M_p^-1/2 f (6, n) of forces (6, n): products of two are what one moves in a step by the other."""
        return np.asarray(h * self._factor.half_solve_many(np.ascontiguousarray(forces)))

    def add_compliance(self, w: NDArray[np.float64], span: NDArray[np.int64]) -> None:
        """See Side; no more than that."""
        for first, last in pairwise((3 * span).tolist()):
            half = self.half[first:last]
            w[first:last, first:last] += half @ half.T

    def add_displacement(self, motion: Motion, h: float, out: NDArray[np.float64]) -> None:
        """See Side."""
        out[: self._count] += self._rows[: self._count] @ (h * motion)

    def force_of_rows(self, r: NDArray[np.float64]) -> Motion:
        """See Side."""
        return self._rows[: self._count].T @ r[: self._count]

    def force_of_wall(self, gradient: NDArray[np.float64]) -> Motion:
        """See Side."""
        rotation = self.axes[1]
        m = self.local.T @ gradient
        moment = np.array([m[1, 2] - m[2, 1], m[2, 0] - m[0, 2], m[0, 1] - m[1, 0]])
        return np.concatenate([rotation @ gradient.sum(axis=0), rotation @ moment])

    def respond(self, force: Motion, h: float) -> Motion:
        """See Side."""
        return self.body.correction_velocity(self._factor, h, force)

    def finish(self, motion: Motion, h: float) -> None:
        """See Side."""
        self.body.advance(motion, h)


class FixedSide:
    """A surface that never moves."""

    def __init__(self, surface: SurfaceMesh) -> None:
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

    def free_motion(self, h: float) -> Motion:
        """It has no motion."""
        return np.zeros(0)

    def onward(self, free: Motion, h: float) -> NDArray[np.float64]:
        """See Side."""
        return np.zeros_like(self.local)

    def carried(self, points: NDArray[np.float64], free: Motion, h: float) -> NDArray[np.float64]:
        """See Side."""
        return np.zeros_like(points)

    def take_rows(self, rows: Rows, number: int) -> None:
        """They do not move it."""

    def find_compliance(self, h: float) -> None:
        """It has none."""

    def add_compliance(self, w: NDArray[np.float64], span: NDArray[np.int64]) -> None:
        """It has none."""

    def add_displacement(self, motion: Motion, h: float, out: NDArray[np.float64]) -> None:
        """It has none."""

    def force_of_rows(self, r: NDArray[np.float64]) -> Motion:
        """It takes none."""
        return np.zeros(0)

    def force_of_wall(self, gradient: NDArray[np.float64]) -> Motion:
        """It takes none."""
        return np.zeros(0)

    def respond(self, force: Motion, h: float) -> Motion:
        """It does not."""
        return np.zeros(0)

    def finish(self, motion: Motion, h: float) -> None:
        """It stays."""
